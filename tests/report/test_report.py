"""Reports: the two tiers, their numbers against closed forms, JSON that can be checked, and the
command line around them.
"""

import dataclasses
import io
import json
import shlex

import numpy as np
import pytest

import jaxgdp
from jaxgdp import gdp, spec
from jaxgdp.report import CURVE_FPRS, TPR_FPRS, Report, describe, differences, recompute

pytest.importorskip("click")

from jaxgdp.cli import main


@pytest.fixture(autouse=True)
def no_cache(monkeypatch):
    monkeypatch.setenv("JAXGDP_NO_CACHE", "1")


@pytest.fixture(scope="module")
def gaussian():
    return jaxgdp.report(jaxgdp.compose([(jaxgdp.Gaussian(2.0), 4)]))


@pytest.fixture(scope="module")
def response():
    return jaxgdp.report(jaxgdp.RandomizedResponse(1.0), rtol=1e-2)


def test_tier_one(gaussian):
    assert gaussian.tier == "I" and gaussian.regret.upper < 0.01 and gaussian.fnrs == ()
    assert gaussian.mu.contains(1.0) and gaussian.approximate_mu.upper >= 1.0 - 1e-6
    for delta, bracket in gaussian.epsilons:
        assert bracket.contains(gdp.epsilon(delta=delta, mu=1.0))
    for fpr, bracket in gaussian.tprs:
        assert bracket.contains(gdp.tpr(fpr=fpr, mu=1.0))
    assert [fpr for fpr, _ in gaussian.tprs] == [*TPR_FPRS, gaussian.advantage_fpr]
    text = str(gaussian)
    assert "Tier I: " in text and "trade-off curve  " not in text
    assert (
        f"reproduce with: {gaussian.command}" in text
        and "spec.json" not in text
        and "{" not in text
    )
    line = next(line for line in text.splitlines() if line.startswith("publish"))
    # what is published is never below the truth
    printed = [
        float(word.rstrip(";"))
        for word in line.replace("=", " ").split()
        if word.rstrip(";").replace(".", "").isdigit()
    ]
    assert printed[0] >= gaussian.mu.upper and printed[0] == pytest.approx(1.0, rel=1e-3)
    # (a μ that holds at every rate is stated once)
    assert "1e-10" in line and line.count("mu =") == 1 and "Delta <=" in line


def test_brackets_by_name_of_the_quantity(gaussian, response):
    assert gaussian["mu"] is gaussian.mu and gaussian["tpr"] == dict(gaussian.tprs)
    assert response["beta"] == dict(response.fnrs)
    one = jaxgdp.report(jaxgdp.Gaussian(1.0), delta=1e-5)
    assert one["epsilon"] is one.epsilons[0][1]
    with pytest.raises(KeyError, match="the report holds mu, .*, tpr; got 'beta'"):
        gaussian["beta"]


def test_notebooks_show_verdict_and_numbers(response):
    html = response._repr_html_()
    assert "What is assumed" not in html and "Protection: weak" in html
    assert html.count("<table>") == 3 and "<section>" in html and "<details>" in html


def test_tier_two(response):
    """Randomized response with ε = 1: regret 0.0575464, so its curve is tabulated."""
    slopes = np.linspace(0.0, 1.0, 100_001)
    gaps = gdp.delta(epsilon=slopes, mu=gdp.mu_from_pure_dp(epsilon=1.0)) - (
        np.e - np.exp(slopes)
    ) / (1.0 + np.e)
    exact = np.max(gaps / (1.0 + np.exp(slopes)))
    assert exact == pytest.approx(0.0575464, abs=1e-7)
    assert (
        response.tier == "II"
        and response.regret.lower <= exact + 1e-9
        and exact <= response.regret.upper
    )
    assert [fpr for fpr, _ in response.fnrs] == [*CURVE_FPRS, response.advantage_fpr]
    assert CURVE_FPRS == (1e-10, 1e-8, 1e-6, 1e-4, 1e-3, 1e-2, 1e-1)
    for fpr, bracket in response.fnrs:
        assert bracket.contains(max(1.0 - np.e * fpr, np.exp(-1.0) * (1.0 - fpr)))
    assert response.advantage_fpr == pytest.approx(1.0 / (1.0 + np.e), rel=1e-6)
    for text in (str(response), response.to_markdown()):
        assert (
            "Tier II: " in text
            and "f(alpha) at alpha = 1e-10" in text
            and "jaxgdp report --spec spec.json" in text
        )
        described = next(line for line in text.splitlines() if line.startswith("{"))
        assert json.loads(described) == response.spec
    assert all(row["report"] == "lower" for row in response.to_dict()["fnr"])


def test_json_goes_there_and_back(gaussian, response):
    endless = dataclasses.replace(gaussian, tail_mu=np.inf)
    for report in (gaussian, response, endless):
        text = report.to_json()
        data = json.loads(text, parse_constant=pytest.fail)
        assert Report.from_dict(data) == report
        assert Report.from_dict(data).to_json() == text
    assert json.loads(endless.to_json())["tail_mu"] == "inf"


def test_report_agrees_with_its_own_description(gaussian, response):
    for report in (gaussian, response):
        assert differences(report, recompute(report)) == []
        assert recompute(Report.from_dict(json.loads(report.to_json()))) == report


def _with(data, path, value):
    *before, last = path
    inner = data
    for key in before:
        inner = inner[key]
    inner[last] = value
    return data


@pytest.mark.parametrize(
    ("path", "value", "named"),
    [
        (("mu", "upper"), 0.99, "mu.upper: stored 0.99, computed 1."),
        (("mu", "lower"), 0.5, "mu.lower: stored 0.5"),
        (("tier",), "II", "tier: stored 'II', computed 'I'"),
        (("regret", "upper"), "inf", "regret.upper: stored 'inf'"),
        (("epsilon", 1, "upper"), 1.0, "epsilon[1].upper: stored 1.0"),
        (("tpr", 10, "fpr"), 0.1, "tpr[10].fpr: stored 0.1"),
        (("epsilon",), [], "epsilon.length: stored 0, computed 4"),
        (("mechanism",), "nothing", "mechanism: stored 'nothing'"),
        (("status",), "wide", "status: stored 'wide'"),
        (("fnr",), [{"fpr": 0.1, "lower": 0.0, "upper": 1.0}], "fnr.length: stored 1, computed 0"),
        (("tail_mu",), None, "tail_mu: stored None"),
    ],
)
def test_changed_report_is_noticed(gaussian, path, value, named):
    data = _with(json.loads(gaussian.to_json()), path, value)
    found = differences(Report.from_dict(data), gaussian)
    assert any(line.startswith(named) for line in found), found


def test_report_of_another_mechanism_is_noticed(gaussian):
    data = _with(json.loads(gaussian.to_json()), ("spec", "mechanism", 0, "noise_multiplier"), 2.01)
    stored = Report.from_dict(data)
    assert any(line.startswith("mu.upper: ") for line in differences(stored, recompute(stored)))


def test_rounding_between_machines_is_not_a_difference(gaussian):
    data = json.loads(gaussian.to_json())
    data["mu"]["upper"] *= 1.0 + 1e-9
    data["version"] = "0.0.1"
    assert differences(Report.from_dict(data), gaussian) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.pop("mu"), "report has no key 'mu'"),
        (lambda d: d.pop("spec"), "report has no key 'spec'"),
        (lambda d: d["mu"].pop("lower"), "key 'mu' of the report: needs the key 'lower'"),
        (lambda d: _with(d, ("mu",), 3), "key 'mu' of the report"),
        (
            lambda d: _with(d, ("mu", "lower"), "low"),
            "key 'mu' of the report: must be a number, got 'low'",
        ),
        (
            lambda d: _with(d, ("rtol",), True),
            "key 'rtol' of the report: must be a number, got True",
        ),
        (lambda d: _with(d, ("tier",), "III"), "must be 'I' or 'II', got 'III'"),
        (lambda d: _with(d, ("title",), 3), "key 'title' of the report: must be text, got 3"),
        (lambda d: _with(d, ("epsilon",), 3), "key 'epsilon' of the report"),
        (lambda d: _with(d, ("tpr",), [3]), "key 'tpr' of the report"),
        (lambda d: _with(d, ("spec",), "x"), "key 'spec' of the report"),
        (
            lambda d: d["approximate_mu"].pop("d"),
            "key 'approximate_mu' of the report needs a number d",
        ),
    ],
)
def test_files_that_are_not_reports(gaussian, change, message):
    data = json.loads(gaussian.to_json())
    change(data)
    with pytest.raises(ValueError) as caught:
        Report.from_dict(data)
    assert message in str(caught.value)


def test_descriptions_are_settled_in_order():
    """An argument wins over the description's setting, which wins over the default; the report
    keeps what is not default.
    """
    content = {
        "title": "mine",
        "neighbours": "all",
        "rtol": 0.05,
        "delta": [0.1],
        "mechanism": [{"type": "PureDP", "epsilon": 1.0}],
    }
    found = jaxgdp.report(spec.from_dict(content), delta=[0.2])
    assert (found.title, found.neighbours, found.rtol, found.fpr_floor) == (
        "mine",
        "all",
        0.05,
        1e-10,
    )
    assert "\nneighbours all\n" in str(found)
    assert [delta for delta, _ in found.epsilons] == [0.2]
    assert found.spec == {
        "title": "mine",
        "neighbours": "all",
        "rtol": 0.05,
        "delta": [0.2],
        "mechanism": [{"type": "PureDP", "epsilon": 1.0, "count": 1}],
    }
    assert recompute(found) == found


@pytest.mark.parametrize(
    ("content", "command"),
    [
        (
            {
                "mechanism": [
                    {
                        "type": "SubsampledGaussian",
                        "noise_multiplier": 9.4,
                        "sampling_prob": 0.32768,
                        "count": 2000,
                    }
                ]
            },
            "jaxgdp report --noise-multiplier 9.4 --sampling-prob 0.32768 --num-steps 2000",
        ),
        (
            {
                "rtol": 0.01,
                "delta": [0.1, 1e-6],
                "mechanism": [{"type": "Gaussian", "noise_multiplier": 2.0, "count": 4}],
            },
            "jaxgdp report --noise-multiplier 2.0 --num-steps 4 --rtol 0.01 --delta 0.1,1e-06",
        ),
        ({"deployment": "census_2022_august"}, "jaxgdp report --deployment census_2022_august"),
        (
            {"mechanism": [{"type": "PureDP", "epsilon": 1.0, "count": 1}]},
            "jaxgdp report --spec spec.json",
        ),
    ],
)
def test_commands(gaussian, content, command):
    assert dataclasses.replace(gaussian, spec=content).command == command


def test_printed_command_gives_the_same_numbers(gaussian, response, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "spec.json").write_text(json.dumps(response.spec))
    for report in (gaussian, response):
        assert main([*shlex.split(report.command)[1:], "--json"]) == 0
        again = json.loads(capsys.readouterr().out)
        assert again["mu"] == report.to_dict()["mu"] and again["tpr"] == report.to_dict()["tpr"]


def test_long_compositions_are_cut_short():
    mechanism = jaxgdp.deployments.census_2020_pl94_persons()
    text = describe(mechanism)
    assert text.count("DiscreteGaussian") == 5 and text.endswith(
        f" + {len(mechanism.counts) - 5} more (33 in all, 130 uses)"
    )
    arrays = describe(jaxgdp.compose([jaxgdp.Gaussian([1.0, 2.0])]))
    assert arrays == "Gaussian(noise_multiplier=<2 values>) x 1"


def test_rich_tables(gaussian, response):
    console = pytest.importorskip("rich.console")
    for report, words in (
        (gaussian, ["Tier I:"]),
        (response, ["Tier II:", "f(alpha) at alpha = 0.1", "--spec spec.json"]),
    ):
        out = io.StringIO()
        console.Console(file=out, width=200).print(report)
        for word in [*words, "advantage", "mu, FPR and FNR >= 1e-10"]:
            assert word in out.getvalue()


def test_terminal_gets_a_rich_table(response, capsys, monkeypatch, tmp_path):
    pytest.importorskip("rich")
    (tmp_path / "spec.json").write_text(json.dumps(response.spec))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "150")
    assert main(["report", "--spec", str(tmp_path / "spec.json")]) == 0
    out = capsys.readouterr().out
    assert "━" in out and "Tier II:" in out


def test_markdown_tables_are_well_formed(response):
    lines = response.to_markdown().splitlines()
    table = [line for line in lines if line.startswith("|")]
    # three μ and Δ, four ε, the advantage, eleven TPR and the limit; then eight points of the
    # curve; two lines above each
    assert len(table) == (2 + 3 + 4 + 1 + 11 + 1) + (2 + 8)
    assert {line.replace("\\|", "").count("|") for line in table} == {5}


def run_main(capsys, *argv):
    code = main(list(argv))
    out, err = capsys.readouterr()
    return code, out, err


def test_option_from_on_the_command_line(response, capsys, tmp_path):
    path = tmp_path / "report.json"
    path.write_text(response.to_json())
    code, out, err = run_main(capsys, "report", "--from", str(path))
    assert (code, err) == (0, "") and out == f"{path}: computed again, every number agrees\n"

    data = json.loads(response.to_json())
    data["mu"]["upper"] = 1.2
    path.write_text(json.dumps(data))
    code, out, err = run_main(capsys, "report", "--from", str(path))
    assert code == 1 and out == ""
    assert (
        "report.json does not agree with its own specification" in err
        and "mu.upper: stored 1.2, computed 1.23" in err
    )

    path.write_text(
        json.dumps(
            _with(json.loads(response.to_json()), ("command",), "jaxgdp report --spec other.json")
        )
    )
    code, _, err = run_main(capsys, "report", "--from", str(path))
    assert code == 1 and "command: stored" in err


def test_spec_on_the_command_line(capsys, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('title = "Mine"\nrtol = 0.01\n[[mechanism]]\ntype = "PureDP"\nepsilon = 1.0\n')
    code, out, _ = run_main(capsys, "report", "--spec", str(path), "--json", "--delta", "0.1")
    found = json.loads(out)
    assert (
        code == 0 and found["title"] == "Mine" and found["rtol"] == 0.01 and found["tier"] == "II"
    )
    assert [row["delta"] for row in found["epsilon"]] == [0.1]
    assert (
        found["epsilon"][0]["lower"]
        <= np.log(np.e - 0.1 * (1.0 + np.e))
        <= found["epsilon"][0]["upper"]
    )
    code, out, _ = run_main(capsys, "report", "--spec", str(path), "--markdown")
    assert code == 0 and out.startswith("### Privacy report") and "- **title**: Mine" in out


def test_deployment_on_the_command_line(capsys):
    code, out, _ = run_main(
        capsys, "report", "--deployment", "census_2020_pl94_units", "--rtol", "0.01", "--json"
    )
    found = json.loads(out)
    assert code == 0 and found["tier"] == "I"
    assert found["title"] == "US Census 2020 redistricting data (PL 94-171), housing units"
    assert found["mu"]["lower"] <= 0.38716 and found["mu"]["upper"] == pytest.approx(
        0.38715, rel=2e-2
    )
    assert found["command"] == "jaxgdp report --deployment census_2020_pl94_units --rtol 0.01"
    assert found["spec"] == {"deployment": "census_2020_pl94_units", "rtol": 0.01}
    assert found["neighbours"].startswith("one unit replaced by another")


def test_deployments_on_the_command_line(capsys):
    code, out, _ = run_main(capsys, "deployments")
    assert code == 0 and len(out.splitlines()) == len(jaxgdp.deployments.names())
    assert any(
        line.split()[:3] == ["census_2020_dhc_housing", "US", "Census"] for line in out.splitlines()
    )
    code, out, _ = run_main(capsys, "deployments", "census_2020_pl94_units", "--markdown")
    assert (
        code == 0 and out.startswith("### US Census 2020") and "| Block group | detailed |" in out
    )
    code, out, err = run_main(capsys, "deployments", "nothing")
    assert code == 2 and out == "" and "no deployment is called 'nothing'" in err


@pytest.mark.parametrize(
    ("argv", "mention"),
    [
        (["--spec", "missing.toml"], "missing.toml: cannot be read"),
        (
            ["--spec", "bad.toml"],
            "bad.toml, line 2: mechanism 1: unknown mechanism 'Gausian'; did you mean 'Gaussian'?",
        ),
        (
            ["--spec", "negative.toml"],
            "negative.toml, line 4: mechanism 1: count must be a whole number >= 1, got -3",
        ),
        (
            ["--spec", "nan.toml"],
            "nan.toml, line 3: mechanism 1 (Laplace): scale must be a finite number > 0, got nan",
        ),
        (["--spec", "broken.toml"], "broken.toml: Expected"),
        (["--spec", "broken.json"], "broken.json, line 1, column 2"),
        (["--spec", "swap.toml"], "swap.toml: adjacency must be one of 'add_remove'"),
        (["--spec", "batch.toml"], "batch.toml: mechanism must be scalar"),
        (["--spec", "good.toml", "--rtol", "7"], "rtol must be in [1e-8, 1), got 7"),
        (["--spec", "good.toml", "--approximation", "0"], "approximation must be in (0, 1), got 0"),
        (["--spec", "good.toml", "--adjacency", "swap"], "error: adjacency must be one of"),
        (
            ["--spec", "good.toml", "--deployment", "x"],
            "give one of --spec, --deployment, not several",
        ),
        (
            ["--spec", "good.toml", "--num-steps", "3"],
            "give one of --spec, --num-steps, not several",
        ),
        (["--spec", "good.toml", "--json", "--markdown"], "give --json or --markdown, not both"),
        (
            ["--deployment", "census_2020_pl94_units", "--adjacency", "replace_one"],
            "adjacency of a deployment is part of it",
        ),
        (["--deployment", "census_2020_pl94_person"], "did you mean 'census_2020_pl94_persons'?"),
        (["--from", "good.toml"], "good.toml, line 1, column"),
        (["--from", "other.json"], "other.json: report has no key 'version'"),
        (["--from", "missing.json"], "missing.json: cannot be read"),
        (
            ["--from", "stale.json"],
            "stale.json: spec of the report: mechanism 1: unknown mechanism 'Old'",
        ),
        (
            ["--from", "other.json", "--rtol", "0.1"],
            "--from takes everything from the stored report",
        ),
        (["--from", "other.json", "--json"], "--from takes everything from the stored report"),
        (["--noise-multiplier", "2"], "missing --num-steps"),
        (["--sampling-prob", "0.1"], "missing --noise-multiplier and --num-steps"),
    ],
)
def test_bad_command_lines(gaussian, capsys, tmp_path, monkeypatch, argv, mention):
    monkeypatch.chdir(tmp_path)
    laplace = '[[mechanism]]\ntype = "Laplace"\nscale = '
    files = {
        "good.toml": laplace + "1.0\n",
        "bad.toml": '[[mechanism]]\ntype = "Gausian"\nnoise_multiplier = 1.0\n',
        "negative.toml": laplace + "1.0\ncount = -3\n",
        "nan.toml": laplace + "nan\n",
        "broken.toml": "[[mechanism]\n",
        "broken.json": "{]",
        "swap.toml": 'adjacency = "swap"\n' + laplace + "1.0\n",
        "batch.toml": laplace + "[1.0, 2.0]\n",
        "other.json": "{}",
        "stale.json": json.dumps(
            _with(json.loads(gaussian.to_json()), ("spec", "mechanism", 0, "type"), "Old")
        ),
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    code, out, err = run_main(capsys, "report", *argv)
    assert code == 2 and out == ""
    assert err.startswith("jaxgdp: error: ") and err.count("\n") == 1 and mention in err, err


def test_every_report_says_where_it_is_gdp_and_why():
    said = {}
    for mechanism in (
        jaxgdp.Laplace(1.0),
        jaxgdp.dpsgd(1.5, 0.1, 30),
        jaxgdp.compose([(jaxgdp.ApproximateDP(0.5, 1e-4), 2)]),
    ):
        found = jaxgdp.report(mechanism, rtol=1e-2)
        (line,) = (text for text in str(found).splitlines() if text.startswith("GDP"))
        assert found.gdp_reason in line and found.gdp_reason in found.to_markdown()
        again = type(found).from_dict(json.loads(found.to_json()))
        assert again == found
        said[found.is_gdp, found.same_mu] = line
        # one stored before is still read, and still agrees
        old = found.to_dict()
        del old["gdp"]
        assert differences(type(found).from_dict(old), found) == []
        with pytest.raises(ValueError, match="key 'gdp'"):
            type(found).from_dict(old | {"gdp": {"is_gdp": 1}})
    assert "losses" not in said[True, True] and "at every rate, with that mu" in said[True, True]
    assert "at every rate with mu = 3.65149 only" in said[True, False]  # √30/1.5, rounded up
    assert "above the floor only" in said[False, False] and "0.0002" in said[False, False]
