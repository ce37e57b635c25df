"""The examples run, in short, and end with what they promise."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from jaxgdp.training import checkpoint, plan_budget

EXAMPLES = Path(__file__).parent.parent / "examples"


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


def test_a_run_that_ends_before_its_budget_does_not_say_that_it_is_spent(tmp_path, capsys):
    pytest.importorskip("sklearn")
    pytest.importorskip("rich")
    example = _example("dpsgd_digits")
    account, _ = example.main(["--no-report", "--output", str(tmp_path), "--max-steps", "20", "--max-mu", "1"])
    printed = capsys.readouterr().out
    assert account.num_steps == 20 and float(account.mu().upper) < 0.9
    assert "budget spent: False (stopped at --max-steps 20, μ within 1)" in printed
