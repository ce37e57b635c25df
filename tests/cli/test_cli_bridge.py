"""``jaxgdp bridge``: statements typed, from a file, or a described mechanism, as text, JSON and a
figure.
"""

import json

import numpy as np
import pytest

pytest.importorskip("click")

from jaxgdp import bridge, gdp
from jaxgdp.cli import main


@pytest.fixture(autouse=True)
def no_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("JAXGDP_NO_CACHE", "1")
    monkeypatch.chdir(tmp_path)


def run(capsys, *arguments):
    code = main(["bridge", *arguments])
    found = capsys.readouterr()
    return code, found.out, found.err


def test_statements_typed_and_from_a_file_are_the_same(capsys, tmp_path):
    typed = run(capsys, "--epsilon-delta", "1,1e-5", "--epsilon-delta", "2,1e-9", "--json")
    (tmp_path / "points.csv").write_text(
        "# a vendor's\nname, delta, epsilon\na, 1e-9, 2\n\nb, 1e-5, 1\n", encoding="utf-8"
    )
    (tmp_path / "plain.csv").write_text("2,1e-9\n1,1e-5\n", encoding="utf-8")
    for name in ("points.csv", "plain.csv"):
        assert run(capsys, "--csv", name, "--json") == typed
    assert typed[0] == 0
    data = json.loads(typed[1])
    verdict = bridge.identify(bridge.refine([1.0, 2.0], [1e-5, 1e-9]))
    assert (
        data["is_gdp"] is False
        and data["tail_mu"] == "inf"
        and data["everywhere"]["upper"] == "inf"
    )
    assert (
        data["mu"]["upper"] == verdict.head_mu.upper
        and data["fpr_floor"] == verdict.fpr_floor <= 1e-10
    )
    for row in data["fnr"]:
        # the trade-off curve of both statements, line by line
        a = row["fpr"]
        lines = [1 - d - np.exp(e) * a for e, d in ((1.0, 1e-5), (2.0, 1e-9))]
        lines += [np.exp(-e) * (1 - d - a) for e, d in ((1.0, 1e-5), (2.0, 1e-9))]
        assert max(lines) * (1 - 1e-13) <= row["lower"] * (1 + 1e-13) and row["lower"] <= max(
            lines
        ) * (1 + 1e-13)
        assert row["by_mu"] == pytest.approx(
            float(gdp.beta(fpr=a, mu=verdict.head_mu.upper)), rel=1e-12
        )
        assert row["by_mu"] <= row["lower"] * (1 + 1e-12)


def test_text_says_verdict_range_and_rates(capsys):
    code, out, err = run(capsys, "--epsilon-delta", "1,0")
    assert code == 0 and err == ""
    lines = out.splitlines()
    assert lines[0] == "verdict   1.23204-GDP at every rate" and lines[1].startswith(
        "why       delta is 0 from epsilon = 1 on"
    )
    assert (
        lines[2] == "mu        [1.23203, 1.23204], at every rate; report the upper side"
        and lines[3] == "tail mu   0"
    )
    assert len(lines) == 13 and lines[-1].split()[0] == "0.1"
    _, out, _ = run(capsys, "--epsilon-delta", "1,1e-3")
    assert "no finite mu at every rate" in out and "tail mu   inf" in out
    # below the floor a mu does not hold, and none is shown
    _, out, _ = run(capsys, "--epsilon-delta", "1,1e-3", "--fpr-floor", "1e-3")
    assert sum(line.split()[-1] == "-" for line in out.splitlines()[6:]) >= 3


def test_described_mechanism_and_its_figure(capsys, tmp_path):
    pytest.importorskip("matplotlib")
    (tmp_path / "m.toml").write_text(
        '[[mechanism]]\ntype = "Laplace"\nscale = 1.0\n', encoding="utf-8"
    )
    code, out, _ = run(capsys, "--spec", "m.toml", "--figure", "three.svg")
    assert code == 0 and "1.03007-GDP at every rate" in out and "wrote three.svg" in out
    text = (tmp_path / "three.svg").read_text(encoding="utf-8")
    assert text.startswith("<?xml") and text.count('id="axes_') == 3


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "give one of --epsilon-delta, --csv, --spec; got none"),
        (("--epsilon-delta", "1,0", "--csv", "x"), "got --epsilon-delta and --csv"),
        (("--epsilon-delta", "1"), "must be EPSILON,DELTA"),
        (("--epsilon-delta", "1,x"), "must be a number"),
        (("--epsilon-delta", "1,2"), "delta must be in [0, 1]"),
        (("--epsilon-delta=-1,0",), "epsilon must be a finite number >= 0"),
        (("--csv", "none.csv"), "path of a file"),
        (("--csv", "bad.csv"), "bad.csv, line 2: needs two numbers"),
        (("--csv", "empty.csv"), "no statements"),
        (("--csv", "wide.csv"), "line 1: needs columns epsilon and delta"),
        (("--epsilon-delta", "1,0", "--figure", "x.gif"), "--figure must end in"),
        (("--epsilon-delta", "1,0", "--fpr-floor", "2"), "fpr_floor"),
    ],
)
def test_bad_statements_are_refused_in_one_line(capsys, tmp_path, arguments, words):
    (tmp_path / "bad.csv").write_text("epsilon,delta\n1,a lot\n", encoding="utf-8")
    (tmp_path / "empty.csv").write_text("epsilon,delta\n", encoding="utf-8")
    (tmp_path / "wide.csv").write_text("1,2,3\n", encoding="utf-8")
    code, _, err = run(capsys, *arguments)
    assert code == 2 and err.startswith("jaxgdp: error: ") and words in err and err.count("\n") == 1
