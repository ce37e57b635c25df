"""The examples of training loops run, stop at the budget, and go on where they were ended."""

import importlib.util
from pathlib import Path

import jax
import numpy as np
import pytest

import jaxgdp

EXAMPLES = Path(__file__).parents[2] / "examples"
NEEDS = {
    "train_flax_nnx": "flax",
    "train_flax_linen": "flax",
    "train_equinox": "equinox",
    "train_opacus": "opacus",
}


def _example(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", [*NEEDS, "train_lora"])
def test_examples_are_short(name):
    lines = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 80


@pytest.mark.nightly
@pytest.mark.filterwarnings("default")  # (flax, orbax, torch and Opacus warn of their own)
@pytest.mark.parametrize("name", [n for n in NEEDS if n != "train_opacus"])
def test_run_that_is_killed_and_resumed_is_the_run_that_was_not(name, tmp_path):
    pytest.importorskip(NEEDS[name])
    pytest.importorskip("sklearn")
    pytest.importorskip("orbax.checkpoint")
    example = _example(name)
    whole, plan, last = example.main(tmp_path / "whole", epsilon=1.5)
    _, _, killed = example.main(tmp_path / "parts", epsilon=1.5, die_at=37)
    resumed, again, end = example.main(tmp_path / "parts", epsilon=1.5)
    assert killed == 37 and end == last
    for one, other in zip(jax.tree.leaves(whole), jax.tree.leaves(resumed), strict=True):
        assert np.array_equal(one, other)
    # within the budget, and one step more would not be
    spent = lambda steps: jaxgdp.measure(plan.composition(steps), "epsilon", delta=1e-5)["epsilon"]
    assert spent(last).upper <= 1.5 < spent(last + 1).upper * (1 + 1e-6)
    assert again.at(last)["epsilon"].upper <= 1.5
    assert "privacy" in (tmp_path / "parts" / "report.html").read_text(encoding="utf-8")


@pytest.mark.nightly
@pytest.mark.filterwarnings("default")
def test_opacus_run_is_resumed_with_the_same_account(tmp_path):
    pytest.importorskip("opacus")
    example = _example("train_opacus")
    _, _, killed = example.main(tmp_path, epsilon=1.0, die_at=17)
    engine, plan, last = example.main(tmp_path, epsilon=1.0)
    assert killed == 17 and len(engine.accountant) == last
    assert engine.get_epsilon(1e-5) <= 1.0 < 1.002 * engine.get_epsilon(1e-5) + 0.1
    live = plan.at(last)["epsilon"].upper
    assert abs(live / engine.get_epsilon(1e-5) - 1.0) < 5e-3


@pytest.mark.nightly
def test_adapters_learn_the_private_sequences():
    before, after, spent, report = _example("train_lora").main()
    assert after < 0.9 * before and spent <= 6.0
    assert report.to_markdown()
