"""Reports say what of them is proven, in every format; the command proves, refutes and checks."""

import dataclasses
import json

import pytest

pytest.importorskip("flint")
import jaxgdp
from jaxgdp.cli import main
from jaxgdp.report import Report, differences
from jaxgdp.report.formats import FORMATS
from jaxgdp.report.proven import claims_of, line, prove_report


@pytest.fixture(scope="module")
def proven():
    mechanism = jaxgdp.compose([(jaxgdp.RandomizedResponse(0.5), 4)])
    return prove_report(jaxgdp.report(mechanism, delta=[1e-3, 1e-5], fpr=[0.01, 0.1]))


def test_every_number_of_a_report_is_proven(proven):
    assert [proof.verdict for proof in proven.proofs] == ["proven"] * len(claims_of(proven.report))
    quantities = {each.quantity for each in claims_of(proven.report)}
    assert {"mu", "approximate_mu", "regret", "advantage", "epsilon", "tpr", "beta"} <= quantities
    assert proven.report.proven.startswith(
        f"all {len(proven.proofs)} numbers proven in exact arith"
    )


def test_line_names_what_is_not_proven(proven):
    first, second, *rest = proven.proofs
    wrong = (
        dataclasses.replace(first, verdict="refuted"),
        dataclasses.replace(second, verdict="undecided"),
    )
    text = line([*wrong, *rest])
    assert text.startswith(f"{len(rest)} of {len(rest) + 2} numbers proven")
    assert "REFUTED: mu at fpr_floor = 1e-10" in text
    assert "not decided: approximate_mu at approximation = 1e-10" in text


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_has_the_line(name, proven, tmp_path):
    format = FORMATS[name]
    for module in format.needs:
        pytest.importorskip(module)
    path = tmp_path / f"report{format.suffix}"
    format.save(proven.report, path)
    words = "proven in exact arithmetic on"
    if format.text is not None:
        assert words in " ".join(path.read_text(encoding="utf-8").split())
    else:
        assert path.stat().st_size > 1000
    assert words in str(proven.report)


def test_stored_report_keeps_the_line_and_is_the_same_report(proven):
    again = Report.from_dict(json.loads(proven.report.to_json()))
    assert again.proven == proven.report.proven
    assert differences(again, dataclasses.replace(again, proven="")) == []
    assert again == dataclasses.replace(again, proven="")


_RUN = ["--noise-multiplier", "2", "--num-steps", "1", "--quantity", "epsilon", "--delta", "1e-5"]


def test_command_proves_and_refutes(capsys, tmp_path):
    path = tmp_path / "certificate.json"
    assert main(["prove", *_RUN, "--upper", "2", "--output", str(path)]) == 0
    assert ": proven; proven is [1.99" in capsys.readouterr().out
    assert json.loads(path.read_text())["verdict"] == "proven"
    assert main(["prove", "--check", str(path)]) == 0
    assert main(["prove", *_RUN, "--upper", "1.5"]) == 1
    assert "refuted: the upper side is wrong by at least 0.49" in capsys.readouterr().out
    assert main(["prove", *_RUN]) == 0  # what jaxgdp finds
    changed = path.read_text().replace('"proven"', '"refuted"')
    path.write_text(changed)
    assert main(["prove", "--check", str(path)]) == 2
    assert "changed after it was made" in capsys.readouterr().err


def test_command_proves_a_report(capsys, tmp_path, proven):
    path, out = tmp_path / "report.json", tmp_path / "certificates.json"
    proven.report.save(path)
    assert main(["prove", str(path), "--output", str(out)]) == 0
    assert len(json.loads(out.read_text())["certificates"]) == len(proven.proofs)
    assert main(["prove", "--check", str(out)]) == 0
    content = json.loads(path.read_text())
    content["mu"]["upper"] = content["mu"]["lower"] = 0.5
    path.write_text(json.dumps(content))
    assert main(["prove", str(path)]) == 1
    assert "refuted: the upper side" in capsys.readouterr().out


def test_report_command_says_what_is_proven(capsys):
    argv = ["report", "--noise-multiplier", "2", "--sampling-prob", "1", "--num-steps", "1"]
    assert main([*argv, "--fpr", "0.01", "--delta", "1e-5", "--prove"]) == 0
    assert "proven in exact arithmetic on" in capsys.readouterr().out


@pytest.mark.parametrize(
    "argv, message",
    [
        ([], "give one of REPORT"),
        (["--noise-multiplier", "1", "--num-steps", "1"], "give --quantity"),
        (["--noise-multiplier", "1", "--quantity", "mux"], "--quantity must be one of"),
        (["some.json", "--quantity", "mu"], "give no --quantity"),
        (["--num-steps", "2", "--quantity", "mu"], "missing --noise-multiplier"),
        (["--check", "nowhere.json"], "nowhere.json"),
    ],
)
def test_bad_commands_are_refused_by_name(argv, message, capsys):
    assert main(["prove", *argv]) == 2
    assert message in capsys.readouterr().err
