"""Reproductions: the verdict logic against numbers worked out apart, and reduced runs of what the
command writes.
"""

import csv
import json
import math
import re
from fractions import Fraction
from types import SimpleNamespace

import mpmath
import numpy as np
import pytest
from scipy import optimize
from scipy.special import ndtr, ndtri

import jaxgdp
from jaxgdp import Bracket, gdp
from jaxgdp.report import rows_of
from jaxgdp.reproduce import items, outputs, reproduce
from jaxgdp.reproduce.document import markdown_table
from jaxgdp.reproduce.gap import largest_gap
from jaxgdp.reproduce.published import RELATIONS, numbers, read
from jaxgdp.reproduce.renyi import RenyiCurve, renyi_epsilon
from jaxgdp.reproduce.theorem_b2 import breakpoint_regret
from jaxgdp.reproduce.verdict import judge, judge_statement, printed_range, shown

DIGITS = 30
CORNER = 1.0 / (1.0 + math.e)
RESPONSE_MU = -2.0 * float(ndtri(CORNER))

PAPERS = "'gomez2025', 'kulynych2024', 'liu2022', 'chua2024', 'negoescu2023'"


# printed numbers and verdicts


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("1.307", "1.3065", "1.3075"),
        ("1.3", "1.25", "1.35"),
        ("0.50", "0.495", "0.505"),
        ("2", "1.5", "2.5"),
        ("8e-7", "7.5e-7", "8.5e-7"),
        ("10^-3", "0.5e-3", "1.5e-3"),
    ],
)
def test_printed_number_stands_for_half_a_unit_to_either_side(text, low, high):
    assert printed_range(text) == (float(Fraction(low)), float(Fraction(high)))


@pytest.mark.parametrize("text", ["", "about 1", "nan", "inf", "1,3"])
def test_text_that_is_no_decimal_is_refused(text):
    with pytest.raises(ValueError, match="printed must be a decimal number"):
        printed_range(text)


@pytest.mark.parametrize(
    ("printed", "relation", "bracket", "outcome"),
    [
        ("1.307", "=", (1.3067, 1.3069), "agrees"),
        ("1.307", "=", (1.3064, 1.3066), "undecided"),
        ("1.307", "=", (1.5669, 1.5671), "differs"),
        ("1.307", "=", (1.1, 1.3064), "differs"),
        ("10^-3", "≈", (0.0009, 0.0012), "agrees"),
        ("10^-3", "<", (0.0009, 0.00099), "agrees"),
        ("10^-3", "<", (0.0009, 0.0011), "undecided"),
        ("10^-3", "<", (0.001, 0.0011), "differs"),
        ("2", ">", (2.1, 2.2), "agrees"),
        ("2", ">", (1.9, 2.1), "undecided"),
        ("2", ">", (1.9, 2.0), "differs"),
    ],
)
def test_verdicts(printed, relation, bracket, outcome):
    assert judge(printed, Bracket(*bracket), relation).outcome == outcome


def test_number_that_differs_is_explained_only_by_a_reading_that_agrees():
    theirs = ("at N = 60,000", Bracket(1.3067, 1.3069))
    other = ("at N = 55,000", Bracket(1.42, 1.43))
    assert (
        "at N = 60,000"
        in judge("1.307", Bracket(1.5669, 1.5671), alternatives=[other, theirs]).because
    )
    unexplained = judge("1.307", Bracket(1.5669, 1.5671), alternatives=[other])
    assert (
        unexplained.outcome == "differs" and "below the certified lower side" in unexplained.because
    )
    assert "above the certified upper side" in judge("1.7", Bracket(1.5669, 1.5671)).because


def test_printed_number_below_the_bracket_is_called_rounded_down():
    assert "rounded down" in judge("0.72", Bracket(0.72414, 0.72417)).because
    assert judge("0.73", Bracket(0.72514, 0.72517)).because == ""


def test_unknown_relation_is_refused():
    with pytest.raises(ValueError, match="relation must be one of"):
        judge("1", Bracket(1.0, 1.0), "~")


def test_claims():
    assert [judge_statement(h, "x").outcome for h in (True, False, None)] == [
        "agrees",
        "differs",
        "undecided",
    ]


def test_brackets_are_shown_rounded_outward():
    low, high = json.loads(shown(Bracket(1.56694456, 1.5669507), digits=5))
    assert low <= 1.56694456 and high >= 1.5669507


# what the paper's own algorithm and older accounting give


def sides(text):
    """Both sides of the first bracket in a text; one number stands for two sides that print
    alike.
    """
    low, high = re.search(r"\[([-\d.e]+), ([-\d.e]+)\]|([-\d.e]+\d)", text).group(1, 2)
    if low is None:
        low = high = re.search(r"[-\d.e]*\d[-\d.e]*", text).group()
    return float(low), float(high)


def exact_response_regret():
    """max over ε of (δ_μ(ε) − δ(ε))/(1 + e^ε), in 30 digits; δ(ε) = (e − e^ε)₊/(1 + e) for
    randomized response at ε = 1.
    """
    mu = -2 * mpmath.sqrt(2) * mpmath.erfinv(2 / (1 + mpmath.e) - 1)
    phi = lambda x: mpmath.erfc(-x / mpmath.sqrt(2)) / 2

    def gap(e):
        delta = phi(mu / 2 - e / mu) - mpmath.exp(e) * phi(-mu / 2 - e / mu)
        return (delta - max(mpmath.e - mpmath.exp(e), 0) / (1 + mpmath.e)) / (1 + mpmath.exp(e))

    return float(max(gap(mpmath.mpf(k) / 2000) for k in range(1, 6000)))


def test_breakpoints_miss_the_regret_of_randomized_response():
    assert breakpoint_regret([0.0, CORNER, 1.0], [1.0, CORNER, 0.0], RESPONSE_MU) < 1e-15
    assert exact_response_regret() == pytest.approx(0.0575464, abs=1e-7)


def test_breakpoint_search_finds_the_regret_with_many_breakpoints():
    # f_1 against f_1.2: symmetric, and the gap is largest on the diagonal
    alpha = ndtr(np.linspace(-8.0, 8.0, 20001))
    alpha = np.unique([0.0, *alpha, 1.0])
    exact = float(ndtr(-0.5) - ndtr(-0.6))
    assert breakpoint_regret(alpha, gdp.beta(fpr=alpha, mu=1.0), 1.2) == pytest.approx(
        exact, abs=1e-6
    )


@pytest.mark.parametrize(
    ("alpha", "beta"),
    [([0.0, 0.5], [1.0, 0.0]), ([0.0, 0.5, 0.5, 1.0], [1.0, 0.5, 0.4, 0.0]), ([0.0, 1.0], [1.0])],
)
def test_breakpoints_must_span_the_range(alpha, beta):
    with pytest.raises(ValueError, match="alpha"):
        breakpoint_regret(alpha, beta, 1.0)


@pytest.mark.parametrize(
    ("sigma", "rate", "order"), [(1.3, 0.2, 3), (0.8, 0.01, 2), (5.0, 0.5, 7), (2.0, 1.0, 4)]
)
def test_renyi_divergence_is_the_integral(sigma, rate, order):
    def density(x):
        ratio = 1 - rate + rate * mpmath.exp((2 * x - 1) / (2 * mpmath.mpf(sigma) ** 2))
        return ratio**order * mpmath.npdf(x, 0, sigma)

    exact = mpmath.log(
        mpmath.quad(density, np.linspace(-20 * sigma, 20 * sigma + order, 41).tolist())
    ) / (order - 1)
    (found,) = RenyiCurve(sigma, rate, 1, [order]).divergence
    assert found == pytest.approx(float(exact), rel=1e-9)


def test_renyi_accounting_bounds_the_certified_epsilon():
    curve = jaxgdp.tradeoff(jaxgdp.dpsgd(2.0, 0.05, 500))
    bound, found = renyi_epsilon(2.0, 0.05, 500, 1e-5), curve.epsilon(delta=1e-5)
    assert found.lower < bound < 1.3 * found.upper


# the largest distance of two curves


def exactly(f):
    return SimpleNamespace(beta=lambda a: Bracket(f(a), f(a)))


@pytest.mark.parametrize(("low", "high"), [(0.4, 0.5), (1.0, 1.05), (2.0, 2.5)])
def test_largest_gap_holds_the_maximum(low, high):
    found = largest_gap(exactly(lambda a: gdp.beta(fpr=a, mu=low)), high)
    gap = lambda z: ndtr(-z - low) - ndtr(-z - high)
    exact = -optimize.minimize_scalar(
        lambda z: -gap(z), bounds=(-6.0, 6.0), method="bounded", options={"xatol": 1e-12}
    ).fun
    assert found.largest.lower <= exact + 1e-15 and found.largest.upper >= exact - 1e-15
    assert found.largest.width <= 0.02 * exact


def test_largest_gap_of_a_curve_with_a_corner():
    response = lambda a: np.maximum(1.0 - math.e * a, (1.0 - a) / math.e)
    found = largest_gap(exactly(response), RESPONSE_MU)
    alpha = np.linspace(1e-6, 1.0 - 1e-6, 400001)
    exact = np.max(response(alpha) - gdp.beta(fpr=alpha, mu=RESPONSE_MU))
    assert found.largest.lower <= exact + 1e-9 and found.largest.upper >= exact
    assert found.largest.width <= 0.02 * exact


# published data


def test_published_numbers_are_well_formed():
    listed = numbers("gomez2025")
    assert len({p.name for p in listed}) == len(listed)
    for p in listed:
        assert (
            p.item in items("gomez2025") and p.relation in RELATIONS and p.where and p.quantity
        ), p
        if p.relation != "words":
            printed_range(p.printed)
    assert (
        {p.item for p in listed}
        == set(items("gomez2025"))
        == {f"figure-{k}" for k in range(1, 7)} | {f"table-{k}" for k in range(2, 6)}
    )


def test_table_3_is_listed_number_by_number():
    table = read("gomez2025")["table-3"]
    by_name = {p.name: p.printed for p in numbers("gomez2025")}
    for epsilon, row in zip(table["epsilon"], table["mu"], strict=True):
        for delta, printed in zip(table["delta"], row, strict=True):
            assert by_name[f"table-3-{epsilon}-{delta}"] == printed


# runs


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    seen = []
    folder = tmp_path_factory.mktemp("tables")
    only = ["table-5", "table-2", "table-3", "table-4"]
    found = reproduce(
        "gomez2025", output=folder / "new", only=only, quick=True, progress=seen.append
    )
    return found, folder / "new", seen


def test_order_progress_and_files(tables):
    found, folder, seen = tables
    assert seen == ["table-2", "table-3", "table-4", "table-5"] == list(found.seconds)
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        path.name for path in found.files
    )
    assert found.files[0].name == "gomez2025.md"
    stored = json.loads(found.files[1].read_text(encoding="utf-8"), parse_constant=pytest.fail)
    assert [v["name"] for v in stored["verdicts"]] == [row.name for row in found.rows]
    assert {row.name for row in found.rows} == {
        p.name for p in numbers("gomez2025") if p.item.startswith("table")
    }
    text = found.files[0].read_text(encoding="utf-8")
    assert all(row.quantity in text for row in found.rows)


def test_table_3_agrees_to_the_last_digit(tables):
    rows = [row for row in tables[0].rows if row.item == "table-3"]
    assert len(rows) == 25 and {row.verdict for row in rows} == {"agrees"}
    # the printed number is the root of a profile evaluated in 30 digits
    for row in rows[:-1]:
        epsilon, delta = (mpmath.mpf(x) for x in row.name.removeprefix("table-3-").split("-", 1))
        phi = lambda x: mpmath.erfc(-x / mpmath.sqrt(2)) / 2
        profile = lambda m, e=epsilon, phi=phi: (
            phi(m / 2 - e / m) - mpmath.exp(e) * phi(-m / 2 - e / m)
        )
        low, high = json.loads(
            row.ours if row.ours.startswith("[") else f"[{row.ours}, {row.ours}]"
        )
        assert (
            profile(mpmath.mpf(low) * (1 - 1e-4)) < delta < profile(mpmath.mpf(high) * (1 + 1e-4))
        )


def test_table_2_is_that_of_another_number_of_records(tables):
    rows = {row.name: row for row in tables[0].rows}
    # an independent computation at 2^20 points: tests/accounting/data/dpsgd_brackets.json
    for name, reference in (("table-2-trained-8", 1.5669476), ("table-2-trained-1", 0.2470147)):
        row = rows[name]
        low, high = json.loads(row.ours.split(";")[0])
        assert low <= reference <= high and high - low <= 2e-3 * reference
        assert row.verdict == "differs" and "at N = 60,000" in row.because
    assert all(
        row.verdict == "differs" for name, row in rows.items() if name.startswith("table-2-t")
    )
    # certified above 10^-3 only by narrower brackets than those of a quick run
    assert rows["table-2-regret"].verdict in ("differs", "undecided")


def test_rényi_accounting_tells_the_number_of_records(tables):
    rows = {row.name: row for row in tables[0].rows}
    for table in ("table-4", "table-5"):
        assert rows[f"{table}-records"].verdict == "agrees"
    low, high = json.loads(rows["table-4-epsilon-8.0"].ours)
    assert low <= 7.424379 <= high and rows["table-4-epsilon-8.0"].verdict == "agrees"


def test_tables_are_written_as_csv(tables):
    header, *body = csv.reader(rows_of(tables[1] / "table-4.csv"))
    assert len(body) == 6 and header[:3] == ["σ", "T", "p"]
    assert [float(row[0]) for row in body] == [40.0, 24.0, 20.0, 16.0, 12.0, 9.4]


def test_figures_are_written(tmp_path):
    pytest.importorskip("matplotlib")
    pytest.importorskip("xarray")
    only = ["figure-1", "figure-3", "figure-5"]
    found = reproduce("gomez2025", output=tmp_path, only=only, quick=True)
    rows = {row.name: row for row in found.rows}
    for name in only:
        image = (tmp_path / f"{name}.png").read_bytes()
        assert image.startswith(b"\x89PNG") and len(image) > 10_000
        assert f"]({name}.png)" in found.files[0].read_text(encoding="utf-8")
    # 0.0132 at p = 0.1 to 0.2 by an independent computation
    assert rows["figure-3-rule"].verdict == "differs"
    assert "σ = 2, T = 400" in rows["figure-3-rule"].because
    assert rows["figure-3-rate"].verdict == "agrees"
    points = list(csv.DictReader(rows_of(tmp_path / "figure-5.csv")))
    assert {p["noise_multiplier"] for p in points} == {"40", "24", "16", "9.4"}
    # the curve lies above the Gaussian one of its μ where that μ is certified
    inside = [p for p in points if float(p["fpr"]) >= 1e-10 and float(p["fnr_upper"]) >= 1e-10]
    assert all(float(p["fnr_lower"]) <= float(p["fnr_upper"]) for p in points)
    assert all(float(p["fnr_upper"]) >= float(p["fnr_gdp"]) - 1e-12 for p in inside)


@pytest.mark.slow
def test_discrete_mechanisms(tmp_path):
    pytest.importorskip("matplotlib")
    found = reproduce(
        "gomez2025", output=tmp_path, only=["figure-2", "figure-4"], quick=True, figure_format="svg"
    )
    rows = {row.name: row for row in found.rows}
    assert (tmp_path / "figure-4.svg").read_text(encoding="utf-8").startswith("<?xml")
    # the paper's number, and that of a discrete Gaussian composed apart
    assert rows["figure-4b-mu"].verdict == "agrees"
    assert rows["figure-4b-regret"].verdict == "agrees"
    low, high = sides(rows["figure-4b-mu"].ours)
    assert low <= 2.701853 <= high
    low, high = sides(rows["figure-4c-regret"].ours)
    assert low <= exact_response_regret() <= high
    assert rows["figure-4c-regret"].verdict == "differs"
    assert rows["figure-4c-mu"].verdict == rows["figure-4c-approximate"].verdict == "agrees"
    # μ = 2Φ⁻¹(Pr[k ≥ 0]) of the integers with mass e^{−k²/2}, and a regret far above what
    # breakpoints show
    mass = np.exp(-0.5 * np.arange(0, 40) ** 2)
    exact_mu = 2.0 * float(ndtri(mass.sum() / (2.0 * mass.sum() - 1.0)))
    low, high = sides(rows["figure-2-regret"].ours)
    assert low <= exact_mu <= high
    assert rows["figure-2-regret"].verdict == "differs"


@pytest.mark.parametrize(
    ("changes", "mention"),
    [
        ({"paper": "gomez2024"}, f"paper must be one of {PAPERS}, got 'gomez2024'"),
        ({"only": ["figure-7"]}, "only must be one of 'figure-1'"),
        ({"only": []}, "only must name at least one"),
        ({"figure_format": "gif"}, "figure_format must be one of 'png', 'pdf', 'svg', got 'gif'"),
        ({"quick": "yes"}, "quick must be True or False"),
        ({"output": ""}, "output must be the path of a folder"),
        ({"output": "no/such/folder/there"}, "output must lie in an existing folder"),
    ],
)
def test_bad_input_is_refused_before_anything_is_computed(tmp_path, monkeypatch, changes, mention):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=mention.replace("(", r"\(")):
        reproduce(**({"paper": "gomez2025", "output": "out"} | changes))
    assert list(tmp_path.iterdir()) == []


def test_output_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "taken").write_text("")
    with pytest.raises(ValueError, match="output must be the path of a folder"):
        reproduce(output=tmp_path / "taken", only=["table-3"])


def test_markdown_cells_keep_their_bars():
    assert markdown_table(["a|b"], [["c"]])[0] == "| a\\|b |"


# the command


@pytest.fixture
def command(monkeypatch, tmp_path):
    pytest.importorskip("click")
    pytest.importorskip("rich")
    monkeypatch.setenv("JAXGDP_NO_CACHE", "1")
    monkeypatch.chdir(tmp_path)
    from jaxgdp.cli import main

    return main


def test_command_writes_where_it_is_told(command, tmp_path, capsys):
    assert (
        command(
            [
                "reproduce",
                "gomez2025",
                "--output",
                "out",
                "--only",
                "table-3,figure-1",
                "--format",
                "pdf",
                "--quick",
            ]
        )
        == 0
    )
    out, err = capsys.readouterr()
    assert "all agree" in out or "agree, 0 differ" in out
    assert (tmp_path / "out" / "figure-1.pdf").read_bytes().startswith(b"%PDF")
    assert (tmp_path / "out" / "gomez2025.md").exists()


def test_files_that_would_be_written_stop_the_command(command, tmp_path, capsys):
    run = ["reproduce", "gomez2025", "--output", "out", "--only", "table-3", "--quick", "--quiet"]
    (tmp_path / "out").mkdir()
    others = ["table-3-notes.csv", "table-3.png", "gomez2025-old.md", "figure-1.csv"]
    for name in others:
        (tmp_path / "out" / name).write_text("mine", encoding="utf-8")
    assert command(run) == 0
    written = outputs("gomez2025", ["table-3"])
    assert {path.name for path in (tmp_path / "out").iterdir()} == {*others, *written}
    assert all((tmp_path / "out" / name).read_text(encoding="utf-8") == "mine" for name in others)
    for name in written:
        for path in written:
            (tmp_path / "out" / path).unlink(missing_ok=True)
        (tmp_path / "out" / name).write_text("mine", encoding="utf-8")
        assert command(run) == 2
        assert f"{name} exists already: give --force to replace it" in capsys.readouterr().err
    assert command([*run, "--force"]) == 0


@pytest.mark.parametrize(
    ("argv", "mention"),
    [
        (["gomez2025"], "--output"),
        (["--output", "out"], "PAPER"),
        (["gomez2026", "--output", "out"], f"paper must be one of {PAPERS}, got 'gomez2026'"),
        (["gomez2025", "--output", "out", "--only", "figure-9"], "only must be one of"),
        (["gomez2025", "--output", "out", "--only", ""], "got ''"),
        (["gomez2025", "--output", "a/b"], "output must lie in an existing folder, got 'a/b'"),
        (["gomez2025", "--output", "out", "--format", "jpg"], "'jpg'"),
        (["gomez2025", "--output", "out", "--nothing"], "--nothing"),
    ],
)
def test_bad_command_is_one_line_and_exit_code_2(command, tmp_path, capsys, argv, mention):
    assert command(["reproduce", *argv]) == 2
    out, err = capsys.readouterr()
    assert (
        out == "" and err.startswith("jaxgdp: error: ") and err.count("\n") == 1 and mention in err
    )
    assert list(tmp_path.iterdir()) == []
