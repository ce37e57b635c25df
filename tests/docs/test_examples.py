"""The examples run, in short, and end with what they promise."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from terminal import on_a_terminal

import jaxgdp
from jaxgdp.training import checkpoint, plan_budget

EXAMPLES = Path(__file__).parents[2] / "examples"


def _example(name):
    if not (EXAMPLES / f"{name}.py").exists():
        pytest.skip("the examples are in the source tree only")
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_digits_are_learned_within_the_budget(tmp_path, capsys):
    pytest.importorskip("sklearn")
    pytest.importorskip("rich")
    example = _example("dpsgd_digits")
    account, history = example.main(["--no-report", "--output", str(tmp_path)])
    printed = capsys.readouterr().out
    # the budget is spent before the last step, and the certified μ of the steps taken is within it
    plan = plan_budget(2.0, 0.1, 1000, every=10, delta=example.DELTA)
    assert 250 < account.num_steps < 350 and "budget spent: True" in printed
    assert account.num_steps == history["step"][-1] == plan.max_steps_within(mu=1.0)
    spent = account.spent(delta=example.DELTA)
    assert spent["mu"].upper <= 1.0 and "mu" in printed
    # what was shown live is never less than what is certified in the end, and not much more
    for name, bracket in spent.items():
        assert np.all(np.diff(history[name]) >= 0.0)
        assert bracket.lower <= history[name][-1] <= 1.03 * bracket.upper
    assert history["accuracy"][-1] > 0.85
    assert checkpoint.load(tmp_path / "account.json").settings == ((2.0, 0.1),)
    assert checkpoint.load(tmp_path / "account.json").num_steps == account.num_steps
    assert (tmp_path / "run.png").stat().st_size > 10_000


def test_run_that_ends_before_its_budget_does_not_say_that_it_is_spent(
    tmp_path, capsys, monkeypatch
):
    pytest.importorskip("sklearn")
    pytest.importorskip("rich")
    example, runs = _example("dpsgd_digits"), []
    short = ["--no-report", "--output", str(tmp_path), "--max-steps", "20", "--max-mu", "1"]
    told = on_a_terminal(monkeypatch, lambda: runs.append(example.main(short)))
    # and it says what it does while it does it
    assert all(
        words in told for words in ("loading the digits", "planning, ", "certifying the run")
    ), told
    account, _ = runs[0]
    printed = capsys.readouterr().out
    assert account.num_steps == 20 and float(account.mu().upper) < 0.9
    assert "budget spent: False (stopped at --max-steps 20, μ within 1)" in printed


@pytest.fixture(scope="module")
def broken():
    return _example("audit_broken_training")


def test_broken_loops_are_refuted_and_the_correct_one_is_not(broken, tmp_path, capsys):
    arguments = [
        "--quick",
        "--runs",
        "600",
        "--draws",
        "1000000",
        "--no-figures",
        "--output",
        str(tmp_path),
    ]
    outcomes = broken.main(arguments)
    refuted = {kind for kind in broken.LOOPS if outcomes[kind].refuted}
    assert refuted == {"unscaled", "reused", "per_batch", "cyclic"}
    printed = capsys.readouterr().out
    assert "cannot be refuted by retraining" in printed and printed.count("REFUTED") == 4
    # the certified μ of the claim lies above what the correct loop shows, and below what each
    # broken one does
    claimed = float(broken.claim().mu.upper)
    assert outcomes["correct"].best.mu_lower < claimed
    assert all(
        outcomes[kind].best.mu_lower > claimed for kind in ("unscaled", "reused", "per_batch")
    )
    assert (tmp_path / "cyclic.json").stat().st_size > 500


def test_correct_loop_is_refuted_no_oftener_than_the_level_allows(broken):
    repetitions, number, at_once = 200, 60, 600  # as many at once as in the test above: one program
    claimed = broken.claim()
    keys = broken.jax.random.split(broken.jax.random.key(3), 2 * repetitions * number // at_once)
    seen = [broken.runs(key, bool(i % 2), "correct", at_once) for i, key in enumerate(keys)]
    member, nonmember = (
        {
            a: rows.reshape(repetitions, number)
            for a, rows in broken.scores(np.concatenate(side)).items()
        }
        for side in (seen[1::2], seen[::2])
    )
    share = 1.0 - 0.05 / len(broken.ATTACKS)
    refuted = [
        any(
            broken.audit.verdict(claimed, member[a][i], nonmember[a][i], share).refuted
            for a in broken.ATTACKS
        )
        for i in range(repetitions)
    ]
    # 95 % of the time at least: 19 of 200 are four standard deviations above 10
    assert sum(refuted) <= 10 + 4 * np.sqrt(200 * 0.05 * 0.95)


def test_noise_without_a_tail_would_be_told_by_its_counts(broken):
    # the counts expected of 200 million draws of each kind
    hit = broken.ndtr(1.0 - broken.END)
    found = broken.audit.from_counts(0, 2e8, round(2e8 * (1 - hit)), 2e8)
    assert found.fnr_limit[0] < broken.jaxgdp.gdp.beta(fpr=found.fpr_limit[0], mu=1.0)
    honest = broken.audit.from_counts(
        round(2e8 * broken.ndtr(-broken.END)), 2e8, round(2e8 * (1 - hit)), 2e8
    )
    assert honest.fnr_limit[0] > broken.jaxgdp.gdp.beta(fpr=honest.fpr_limit[0], mu=1.0)
    assert 1e7 < broken.needed_draws() < 2e8


@pytest.mark.nightly
def test_slips_are_refuted_run_by_run(capsys):
    """Twelve loops and two kinds of noise: which are refuted, and that few runs are needed."""
    outcomes = _example("audit_until_refuted").main(["--quick"])
    private = {"correct", "short_tail", "noise_for_sum", "low bits 4"}
    assert {kind for kind, found in outcomes.items() if not found.refuted} == private
    assert max(found.pairs for found in outcomes.values() if found.refuted) <= 300
    assert capsys.readouterr().out.count("REFUTED") == len(outcomes) - len(private)


def test_low_bits_give_away_noise_in_32_bits():
    example = _example("audit_until_refuted")
    claim = example.audit.Sequential(1.0)
    found = example.until_refuted(claim, example.low_bits_draws(False, 1.0, 20), 60)
    assert found.refuted and found.pairs <= 40
    # every number drawn is in the table: no false alarm
    drawn = example.jax.random.normal(example.jax.random.key(5), (100_000,))
    table = example.attainable()
    assert np.array_equal(table[np.searchsorted(table, drawn)], drawn)


@pytest.mark.nightly
def test_attacks_stay_below_the_certified_mu(capsys):
    pytest.importorskip("sklearn")
    found = _example("audit_attacks").main(["--quick"])[1.0]
    assert 1.0 < found["certified"] < 2.0
    assert all(found[name] <= found["certified"] for name in ("loss", "ratio", "gradient"))
    assert "| noise multiplier | certified" in capsys.readouterr().out


@pytest.mark.nightly
def test_banded_noise_of_jax_privacy_trains_within_the_live_account(capsys):
    pytest.importorskip("sklearn")
    pytest.importorskip("jax_privacy", reason="jax_privacy is not installed")
    example = _example("train_bandmf")
    assert len((EXAMPLES / "train_bandmf.py").read_text(encoding="utf-8").splitlines()) <= 80
    plan, accuracy = example.main(steps=80)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == ["step 40", "step 80"] and accuracy > 0.5
    last = jaxgdp.mu(plan.composition(80))
    assert last.lower <= plan.at(80)["mu"].upper <= 1.002 * last.upper
