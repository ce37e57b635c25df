"""``jaxgdp audit``: files in, a line, a figure and JSON out, and what is refused."""

import io
import json

import numpy as np
import pytest

from jaxgdp import audit
from jaxgdp.cli import main
from jaxgdp.cli.audit import read_scores
from jaxgdp.cli.sequential import lines_of

pytest.importorskip("click")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scores")
    rng = np.random.default_rng(0)
    member, nonmember = 2.0 + rng.standard_normal(500), rng.standard_normal(500)
    lines = ["member,other,score"]
    lines += [
        f"{int(kind)},x,{float(s)!r}" for kind, side in ((1, member), (0, nonmember)) for s in side
    ]
    (folder / "scores.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    included = rng.random(400) < 0.5
    body = [
        f"{float(s)!r},{'yes' if i else 'no'}"
        for s, i in zip(included + 0.0, included, strict=True)
    ]
    (folder / "canaries.csv").write_text("\n".join(["Score,Member", *body]), encoding="utf-8")
    return folder, member, nonmember


def test_line_figure_and_json(files, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    folder, member, nonmember = files
    out, figure = tmp_path / "audit.json", tmp_path / "audit.png"
    arguments = [
        "audit",
        str(folder / "scores.csv"),
        "--mu",
        "1",
        "--json",
        str(out),
        "--figure",
        str(figure),
    ]
    assert main(arguments) == 0
    printed = capsys.readouterr().out
    expected = audit.verdict(1.0, member, nonmember)
    assert printed.splitlines()[0] == expected.line and printed.startswith("A BUG IS PROVEN: 1-GDP")
    assert json.loads(out.read_text(encoding="utf-8")) == json.loads(expected.to_json())
    assert figure.stat().st_size > 10_000


@pytest.mark.parametrize(
    ("claim", "first"),
    [
        (["--epsilon", "1", "--delta", "1e-5"], "A BUG IS PROVEN: (1, 1e-05)-DP"),
        (["--mu", "2.5", "--method", "split"], "consistent: 2.5-GDP"),
        (["--mu", "1", "--method", "threshold", "--threshold", "1"], "A BUG IS PROVEN"),
        (["--noise-multiplier", "1", "--num-steps", "1"], "A BUG IS PROVEN: "),
    ],
)
def test_claims(files, capsys, claim, first):
    assert main(["audit", str(files[0] / "scores.csv"), *claim]) == 0
    assert capsys.readouterr().out.startswith(first)


def test_described_mechanism_and_one_run(files, tmp_path, capsys):
    spec = tmp_path / "spec.toml"
    spec.write_text(
        'title = "One release"\n[[mechanism]]\ntype = "Gaussian"\nnoise_multiplier = 2.0\n',
        encoding="utf-8",
    )
    assert main(["audit", str(files[0] / "scores.csv"), "--spec", str(spec)]) == 0
    assert capsys.readouterr().out.startswith("A BUG IS PROVEN: One release")
    one_run = ["--mu", "0.5", "--method", "one-run", "--num-guesses", "100", "--json", "-"]
    assert main(["audit", str(files[0] / "canaries.csv"), *one_run]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (
        found["refuted"] and found["details"]["num_correct"] == 100 and found["method"] == "one run"
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("score\n1\n", "column 'member' is missing"),
        ("score,member\n1,maybe\n", "line 2: member must be 1 or 0, got 'maybe'"),
        ("score,member\nhigh,1\n", "line 2: score must be a number"),
        ("score,member\n", "has no scores"),
        ("", "column 'score' is missing"),
        ("score,member\n1,1\n2,1\n", "no nonmember"),
        ("score,member\nnan,1\n2,0\n", "no NaN"),
    ],
)
def test_files_that_are_refused(tmp_path, capsys, text, words):
    path = tmp_path / "scores.csv"
    path.write_text(text, encoding="utf-8")
    assert main(["audit", str(path), "--mu", "1"]) == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("claim", "words"),
    [
        ([], "give one claim"),
        (["--mu", "1", "--epsilon", "1"], "give one claim"),
        (["--epsilon", "1"], "needs both --epsilon and --delta"),
        (["--sampling-prob", "0.1"], "missing --noise-multiplier"),
        (["--mu", "1", "--method", "one-run"], "needs --num-guesses"),
        (["--mu", "1", "--method", "best"], "method must be one of"),
        (["--mu", "1", "--figure", "audit.txt"], "--figure must end in"),
    ],
)
def test_options_that_are_refused(files, capsys, claim, words):
    assert main(["audit", str(files[0] / "scores.csv"), *claim]) == 2
    assert words in capsys.readouterr().err


def test_missing_file_is_named(tmp_path):
    with pytest.raises(ValueError, match="cannot be read"):
        read_scores(tmp_path / "none.csv")


def test_sequential_audit_stops_when_it_knows(files, tmp_path, capsys, monkeypatch):
    pytest.importorskip("matplotlib")
    folder, member, nonmember = files
    rows = [f"{float(s)!r},{k}" for pair in zip(member, nonmember, strict=True)
            for k, s in zip((1, 0), pair, strict=True)]  # fmt: skip
    text = "\n".join(["score,member", *rows])
    (tmp_path / "stream.csv").write_text(text, encoding="utf-8")
    out, figure = tmp_path / "audit.json", tmp_path / "wealth.png"
    arguments = ["--mu", "1", "--sequential", "--json", str(out), "--figure", str(figure)]
    assert main(["audit", str(tmp_path / "stream.csv"), *arguments]) == 3
    printed = capsys.readouterr().out
    assert printed.startswith("A BUG IS PROVEN: 1-GDP is refuted at confidence 95 % (")
    found = json.loads(out.read_text(encoding="utf-8"))
    path = audit.Sequential(1.0).path(member, nonmember)
    assert found["pairs"] == np.argmax(path >= np.log(20.0)) + 1 < 200 and found["refuted"]
    assert figure.stat().st_size > 10_000
    # line by line from stdin: the same
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    assert main(["audit", "-", "--mu", "1", "--sequential", "--json", "-"]) == 3
    assert json.loads(capsys.readouterr().out)["pairs"] == found["pairs"]
    assert main(["audit", str(tmp_path / "stream.csv"), "--mu", "3", "--sequential"]) == 0
    assert capsys.readouterr().out.startswith("consistent so far: 3-GDP is not refuted")


def test_growing_file_is_followed(tmp_path):
    path = tmp_path / "growing.csv"
    path.write_text("score,member\n1.0,1\n2.", encoding="utf-8")
    pieces = lines_of(str(path), follow=True)
    assert next(pieces) == ["score,member\n", "1.0,1\n"]
    with open(path, "a", encoding="utf-8") as file:
        file.write("5,0\n")
    assert next(pieces) == ["2.5,0\n"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--mu", "1", "--follow"], "--follow needs --sequential"),
        (["--mu", "1", "--sequential", "--method", "bands"], "--method has no meaning"),
        (["--sequential"], "give one claim"),
    ],
)
def test_options_of_sequential_audits_that_are_refused(files, capsys, options, words):
    assert main(["audit", str(files[0] / "scores.csv"), *options]) == 2
    assert words in capsys.readouterr().err
