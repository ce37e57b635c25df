"""``jaxgdp calibrate``: one line and exit code 2 for bad input, safe numbers for good input."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("click")

import jaxgdp
from jaxgdp.cli import main

FNR = ["--fnr", "0.7", "--fpr", "0.1"]


@pytest.fixture(autouse=True)
def no_cache(monkeypatch):
    monkeypatch.setenv("JAXGDP_NO_CACHE", "1")


@pytest.mark.parametrize(
    ("argv", "mention"),
    [
        ([], "give exactly one target"),
        (["--mu", "1", "--advantage", "0.1"], "got --mu and --advantage"),
        (["--fnr", "0.7"], "--fnr needs --fpr"),
        (["--epsilon", "1"], "--epsilon needs --delta"),
        (["--success", "0.1"], "--success needs --baseline"),
        (["--mu", "1", "--fpr", "0.1"], "--fpr does not belong to --mu"),
        (["--advantage", "0"], "advantage must be in (0, 1)"),
        (["--advantage", "small"], "--advantage must be a number, got 'small'"),
        (["--fnr", "0.9", "--fpr", "0.2"], "fnr + fpr must be below 1"),
        (["--tpr", "0.1", "--fpr", "0.2"], "tpr must be above fpr"),
        ([*FNR, "--sampling-prob", "0"], "sampling_prob must be in (0, 1]"),
        ([*FNR, "--num-steps", "1.5"], "num_steps must be a whole number >= 1, got 1.5"),
        ([*FNR, "--num-steps", "1,2", "--sampling-prob", "1,1,1"], "shapes do not broadcast"),
        ([*FNR, "--rtol", "0"], "rtol must be"),
        ([*FNR, "--adjacency", "swap"], "adjacency must be one of"),
        ([*FNR, "--solve-for", "num_steps"], "noise_multiplier must be given"),
        ([*FNR, "--solve-for", "clip"], "solve_for must be one of"),
        ([*FNR, "--spec", "no_such.toml"], "no_such.toml"),
        (
            [*FNR, "--sampler", "balls"],
            "--sampler must be one of poisson, opacus, shuffled, random_allocation, deterministic",
        ),
        (
            [*FNR, "--sampler", "shuffled", "--sampling-prob", "0.1"],
            "sampling_prob must not be given with it",
        ),
        ([*FNR, "--num-epochs", "2"], "num_epochs must not be given with sampler='poisson'"),
        ([*FNR, "--black-box", "nothing"], "--black-box must be MODULE:FUNCTION"),
        ([*FNR, "--black-box", "no_such_module:f"], "cannot be imported"),
        (
            ["--advantage", "0.5", "--sampling-prob", "0.001", "--num-steps", "10"],
            "target weaker than no noise",
        ),
        (
            [
                "--fnr",
                "0.9",
                "--fpr",
                "0.09",
                "--noise-multiplier",
                "1",
                "--solve-for",
                "num_steps",
            ],
            "no num_steps meets it, not even 1",
        ),
    ],
)
def test_bad_input_is_one_line(capsys, tmp_path, monkeypatch, argv, mention):
    monkeypatch.chdir(tmp_path)
    assert main(["calibrate", *argv]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("jaxgdp: error: ") and err.count("\n") == 1
    assert mention in err


def test_help_shows_examples(capsys):
    assert main(["calibrate", "--help"]) == 0
    assert "jaxgdp calibrate --fnr 0.7 --fpr 0.1" in capsys.readouterr().out
    assert main(["--help"]) == 0
    assert "calibrate" in capsys.readouterr().out


TARGETS = [
    (["--mu", "0.7"], jaxgdp.targets.Mu(0.7)),
    (["--mu", "0.7", "--fpr-floor", "1e-5"], jaxgdp.targets.Mu(0.7, 1e-5)),
    (
        ["--approximate-mu", "0.7", "--approximation", "1e-5"],
        jaxgdp.targets.ApproximateMu(0.7, 1e-5),
    ),
    (["--epsilon", "1", "--delta", "1e-5"], jaxgdp.targets.EpsilonDelta(1.0, 1e-5)),
    (FNR, jaxgdp.targets.FNR(0.7, 0.1)),
    (["--tpr", "0.3", "--fpr", "1/10"], jaxgdp.targets.TPR(0.3, 0.1)),
    (["--accuracy", "0.6", "--fpr", "0.1"], jaxgdp.targets.Accuracy(0.6, 0.1)),
    (["--precision", "0.8", "--fpr", "0.1"], jaxgdp.targets.Precision(0.8, 0.1)),
    (["--bayes-risk", "0.2", "--prior", "0.7"], jaxgdp.targets.BayesRisk(0.2, 0.7)),
    (["--success", "0.1", "--baseline", "0.01"], jaxgdp.targets.AttackSuccess(0.1, 0.01)),
]


@pytest.mark.parametrize(
    ("argv", "target"), TARGETS, ids=[target.describe() for _, target in TARGETS]
)
def test_every_target(capsys, argv, target):
    """The same answer as the function's, to the last digit, as JSON and as text."""
    exact = jaxgdp.calibrate(target, num_steps=4)
    assert main(["calibrate", *argv, "--num-steps", "4", "--json"]) == 0
    told = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert (
        told["value"] == float(exact.value)
        and told["status"] == 0
        and told["target"]["type"] == type(target).__name__
    )
    assert main(["calibrate", *argv, "--num-steps", "4"]) == 0
    assert repr(float(exact.value)) in capsys.readouterr().out


def test_lists_make_a_table_whose_numbers_are_safe(capsys):
    assert main(["calibrate", "--fnr", "0.7,0.8", "--fpr", "0.1", "--num-steps", "9"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[1:3]]
    exact = jaxgdp.calibrate(jaxgdp.targets.FNR([0.7, 0.8], 0.1), num_steps=9)
    for row, value, asked in zip(rows, exact.value, (0.7, 0.8), strict=True):
        assert (
            float(row[0]) == asked
            and value <= float(row[1]) <= value * (1 + 1e-6)
            and row[-1] == "0"
        )
    settings = ["--sampling-prob", "1,0.001", "--num-steps", "9"]
    assert main(["calibrate", "--tpr", "0.3", "--fpr", "0.1", *settings]) == 0
    out = capsys.readouterr().out
    assert "none" in out and "every parameter meets the target" in out


def test_steps_are_rounded_down(capsys):
    argv = ["--noise-multiplier", "20", "--solve-for", "num_steps"]
    assert main(["calibrate", *FNR, *argv, "--json"]) == 0
    exact = jaxgdp.calibrate(
        jaxgdp.targets.FNR(0.7, 0.1), noise_multiplier=20.0, solve_for="num_steps"
    )
    assert json.loads(capsys.readouterr().out)["value"] == float(exact.value)


def test_composition_from_a_file_and_a_black_box(capsys, tmp_path, monkeypatch):
    """Two Gaussians of noise 3 and 4 are one of 2.4; a module in the working folder may hold the
    accountant.
    """
    monkeypatch.chdir(tmp_path)
    (tmp_path / "two.toml").write_text(
        "[[mechanism]]\n"
        'type = "Gaussian"\n'
        "noise_multiplier = 3.0\n"
        "[[mechanism]]\n"
        'type = "Gaussian"\n'
        "noise_multiplier = 4.0\n"
    )
    mu = float(jaxgdp.targets.FNR(0.7, 0.1).gaussian_mu())
    assert main(["calibrate", *FNR, "--spec", "two.toml", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["solve_for"] == "scale" and 1.0 <= told["value"] * 2.4 * mu <= 1.003
    (tmp_path / "my_accountant_for_a_test.py").write_text(
        "from jaxgdp import gdp\n"
        "\n"
        "\n"
        "def profile(scale):\n"
        "    return lambda epsilon: gdp.delta(epsilon=epsilon, mu=1.0 / scale)\n"
    )
    assert (
        main(["calibrate", *FNR, "--black-box", "my_accountant_for_a_test:profile", "--json"]) == 0
    )
    assert 1.0 <= json.loads(capsys.readouterr().out)["value"] * mu <= 1.003


def test_sampler_other_than_poisson(capsys):
    argv = [
        "calibrate",
        "--mu",
        "1.5",
        "--sampler",
        "deterministic",
        "--num-steps",
        "20",
        "--num-epochs",
        "4",
        "--json",
    ]
    assert main(argv) == 0
    found = json.loads(capsys.readouterr().out)
    # 4 epochs in a fixed order are 2/σ-GDP
    assert 2.0 / 1.5 <= found["value"] <= 1.0011 * 2.0 / 1.5
