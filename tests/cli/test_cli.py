"""The command line: bad input is one line and exit code 2; good input writes what was asked."""

from __future__ import annotations

import csv
import json

import pytest

pytest.importorskip("click")

from jaxgdp.cli import main
from jaxgdp.report import rounded_outward, rows_of

RUN = {"--noise-multiplier": "2", "--sampling-prob": "0.1", "--num-steps": "10"}


@pytest.fixture(autouse=True)
def no_cache(monkeypatch):
    monkeypatch.setenv("JAXGDP_NO_CACHE", "1")


def arguments(**changes):
    options = RUN | {"--" + name.replace("_", "-"): value for name, value in changes.items()}
    return ["report", *(part for pair in options.items() for part in pair)]


def assert_one_line_error(capsys, argv, mention):
    assert main(argv) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("jaxgdp: error: ") and err.endswith("\n") and err.count("\n") == 1, err
    assert mention in err


@pytest.mark.parametrize(
    ("changes", "mention"),
    [
        ({"noise_multiplier": "0"}, "noise_multiplier must be a finite number > 0, got 0"),
        ({"noise_multiplier": "-1"}, "noise_multiplier must be a finite number > 0, got -1"),
        ({"noise_multiplier": "nan"}, "got nan"),
        ({"noise_multiplier": "inf"}, "got inf"),
        ({"noise_multiplier": "two"}, "--noise-multiplier must be a number, got 'two'"),
        ({"noise_multiplier": ""}, "--noise-multiplier must be a number, got ''"),
        ({"sampling_prob": "0"}, "sampling_prob must be in (0, 1]"),
        ({"sampling_prob": "1.5"}, "sampling_prob must be in (0, 1]"),
        ({"sampling_prob": "nan"}, "sampling_prob must be in (0, 1]"),
        ({"sampling_prob": "1/0"}, "--sampling-prob must be a number"),
        ({"num_steps": "2.5"}, "num_steps must be a whole number >= 1, got 2.5"),
        ({"num_steps": "0"}, "num_steps must be a whole number >= 1, got 0"),
        ({"num_steps": "-3"}, "num_steps must be a whole number >= 1, got -3"),
        ({"num_steps": "1e400"}, "num_steps must be a whole number >= 1, got inf"),
        ({"delta": "0"}, "delta must be in (0, 1), got 0"),
        ({"delta": "1"}, "delta must be in (0, 1), got 1"),
        ({"delta": "1e-5,2"}, "delta must be in (0, 1), got 2"),
        ({"delta": "small"}, "--delta must be a number"),
        ({"rtol": "0"}, "rtol must be"),
        ({"rtol": "nan"}, "rtol must be"),
        ({"fpr_floor": "0.5"}, "fpr_floor must be"),
        ({"fpr_floor": "-1e-10"}, "fpr_floor must be"),
        (
            {"adjacency": "replace"},
            "adjacency must be one of 'add_remove', 'add', 'remove', 'replace_one', got 'replace'",
        ),
    ],
)
def test_bad_report_input(capsys, changes, mention):
    assert_one_line_error(capsys, arguments(**changes), mention)


@pytest.mark.parametrize(
    ("argv", "mention"),
    [
        (["nothing"], "nothing"),
        (["--nothing"], "--nothing"),
        (["report"], "--noise-multiplier"),
        (["report", "--noise-multiplier"], "--noise-multiplier"),
        (["report", "extra", "--noise-multiplier", "1", "--num-steps", "1"], "extra"),
        (["landscape", "--nothing"], "--nothing"),
        (["landscape", "--csv", "no/such/folder/a.csv"], "--csv must lie in an existing folder"),
        (
            ["landscape", "--netcdf", "no/such/folder/a.nc"],
            "--netcdf must lie in an existing folder",
        ),
        (
            ["landscape", "--figure", "no/such/folder/a.png"],
            "--figure must lie in an existing folder",
        ),
        (["landscape", "--figure", "a.jpg"], "--figure must end in .png, .pdf, .svg, got 'a.jpg'"),
        (["landscape", "--csv", "."], "--csv must be the path of a file"),
        (
            ["landscape", "--noise-multiplier", "1,x"],
            "--noise-multiplier must be a number, got 'x'",
        ),
        (
            ["landscape", "--noise-multiplier", "1,-2"],
            "noise_multiplier must be a finite number > 0, got -2",
        ),
        (["landscape", "--num-steps", "10,1.5"], "num_steps must be a whole number >= 1, got 1.5"),
        (
            ["landscape", "--sampling-prob", "0.1", "--sampling-prob", "1.1"],
            "sampling_prob must be in (0, 1]",
        ),
        (
            ["landscape", "--sampling-probs-number", "0"],
            "--sampling-probs-number must be a whole number",
        ),
        (
            ["landscape", "--sampling-probs-number", "nan"],
            "--sampling-probs-number must be a whole number",
        ),
        (["landscape", "--min-sampling-prob", "0"], "0 < min <= max <= 1"),
        (
            ["landscape", "--min-sampling-prob", "0.5", "--max-sampling-prob", "0.1"],
            "0 < min <= max <= 1",
        ),
        (["landscape", "--rtol", "2"], "rtol must be"),
        (["landscape", "--fpr-floor", "0"], "fpr_floor must be"),
    ],
)
def test_bad_command_line(capsys, tmp_path, monkeypatch, argv, mention):
    for module in ("xarray", "h5netcdf", "h5py", "matplotlib", "rich"):
        pytest.importorskip(module)
    monkeypatch.chdir(tmp_path)
    assert_one_line_error(capsys, argv, mention)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("argv", [["report", "--help"], ["landscape", "--help"], ["--help"], []])
def test_help_shows_an_example(capsys, argv):
    assert main(argv) == 0
    assert "Example" in capsys.readouterr().out


def test_version(capsys):
    from jaxgdp import __version__

    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"jaxgdp {__version__}\n"


def test_missing_package_names_the_extra(capsys, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert_one_line_error(capsys, ["landscape"], "pip install 'jaxgdp[sweep]'")


def test_report_json_and_text_agree(capsys):
    argv = arguments(sampling_prob="1", num_steps="4", delta="1e-5,1e-6")
    assert main([*argv, "--json"]) == 0
    found = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert found["mu"]["lower"] <= 1.0 <= found["mu"]["upper"]
    assert found["tier"] == "I" and found["status"] == "ok"
    assert [e["delta"] for e in found["epsilon"]] == [1e-5, 1e-6]
    assert len(found["tpr"]) == 11 and found["tpr"][-1]["fpr"] == found["advantage_fpr"]
    best = found["tpr"][-1]
    assert best["lower"] - best["fpr"] <= found["advantage"]["upper"]
    assert best["upper"] - best["fpr"] >= found["advantage"]["lower"]

    assert main(argv) == 0
    text = capsys.readouterr().out
    line = next(line for line in text.splitlines() if line.startswith("advantage "))
    _, lower, upper, side = line.split()
    assert side == "upper"
    assert (
        float(lower) <= found["advantage"]["lower"] <= found["advantage"]["upper"] <= float(upper)
    )
    assert "Tier I:" in text


def test_landscape_writes_figure_csv_and_netcdf(capsys, tmp_path):
    for module in ("h5netcdf", "h5py", "matplotlib", "rich"):
        pytest.importorskip(module)
    xarray = pytest.importorskip("xarray")
    paths = {
        name: tmp_path / f"grid.{suffix}"
        for name, suffix in (("csv", "csv"), ("netcdf", "nc"), ("figure", "png"))
    }
    grid = [
        "--noise-multiplier",
        "2",
        "--num-steps",
        "400",
        "--sampling-prob",
        "0.1,0.2",
        "--sampling-prob",
        "1",
    ]
    command = [
        "landscape",
        *grid,
        *(part for name, path in paths.items() for part in (f"--{name}", str(path))),
    ]
    assert main(command) == 0
    assert "sigma = 2, T = 400: fails at p = 0.1 to 0.2" in capsys.readouterr().out
    rows = list(csv.DictReader(rows_of(paths["csv"])))
    assert [float(r["sampling_prob"]) for r in rows] == [0.1, 0.2, 1.0]
    assert all(float(r["regret_lower"]) <= float(r["regret_upper"]) for r in rows)
    assert float(rows[2]["mu_lower"]) <= 10.0 <= float(rows[2]["mu_upper"])
    with xarray.open_dataset(paths["netcdf"], engine="h5netcdf") as stored:
        assert stored.sizes == {"noise_multiplier": 1, "sampling_prob": 3, "num_steps": 1}
        assert float(stored.regret[0, 1, 0]) == float(rows[1]["regret_upper"])
        told = {
            name: str(stored.attrs[name])
            for name in ("version", "date", "question", "fpr_floor", "rtol")
        }
    lines = paths["csv"].read_text(encoding="utf-8").splitlines()
    assert {f"# {name}: {value}" for name, value in told.items()} <= set(lines[:7]) and told[
        "fpr_floor"
    ] == "1e-10"
    # a second run replaces nothing unless it is told to
    before = {name: path.read_bytes() for name, path in paths.items()}
    assert f"{told['question']}; FPR floor 1e-10".encode() in before["figure"]
    paths["figure"].unlink()
    capsys.readouterr()
    assert main([*command, "--quiet"]) == 2
    assert "grid.csv exists already: give --force" in capsys.readouterr().err
    assert not paths["figure"].exists() and paths["csv"].read_bytes() == before["csv"]
    assert main([*command, "--quiet", "--force"]) == 0
    assert paths["figure"].read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    "value", [2 / 3, 1.0, 0.0, 1e-300, 5e-324, 9.999999e5, 123456789.0, 1e-5, 0.000123456789, 1e300]
)
@pytest.mark.parametrize("digits", [3, 6])
def test_printed_sides_are_rounded_outward(value, digits):
    assert float(rounded_outward(value, up=False, digits=digits)) <= value
    assert float(rounded_outward(value, up=True, digits=digits)) >= value


@pytest.mark.parametrize(
    ("argv", "name"),
    [
        (
            [
                "samplers",
                "--noise-multiplier",
                "1",
                "--dataset-size",
                "100",
                "--batch-size",
                "10",
                "--csv",
                "kept.csv",
            ],
            "kept.csv",
        ),
        (
            [
                "samplers",
                "--noise-multiplier",
                "1",
                "--dataset-size",
                "100",
                "--batch-size",
                "10",
                "--figure",
                "kept.png",
            ],
            "kept.png",
        ),
        (["bridge", "--epsilon-delta", "1,1e-5", "--figure", "kept.pdf"], "kept.pdf"),
        (["audit", "none.csv", "--mu", "1", "--json", "kept.json"], "kept.json"),
        (["audit", "none.csv", "--mu", "1", "--figure", "kept.svg"], "kept.svg"),
        (["landscape", "--netcdf", "kept.nc"], "kept.nc"),
        (
            ["report", "--noise-multiplier", "1", "--num-steps", "1", "--output", "kept.html"],
            "kept.html",
        ),
        (["reproduce", "gomez2025", "--output", ".", "--only", "table-3"], "table-3.csv"),
        (["reproduce", "gomez2025", "--output", ".", "--only", "table-3"], "gomez2025.json"),
    ],
)
def test_no_command_replaces_a_file_unasked(argv, name, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_text("mine")
    assert main(argv) == 2
    err = capsys.readouterr().err
    assert f"{name} exists already: give --force to replace it" in err and err.count("\n") == 1
    assert (tmp_path / name).read_text() == "mine" and [
        path.name for path in tmp_path.iterdir()
    ] == [name]


def test_printed_infinities():
    assert rounded_outward(float("inf"), up=True) == "inf"
