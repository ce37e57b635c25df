"""Noise, steps and batch size for what is left after a run, against compositions measured anew."""

import numpy as np
import pytest

import jaxgdp
from jaxgdp import calibrate, dpsgd, measure, targets

DONE = dpsgd(1.0, 0.01, 1000)
TARGET = targets.EpsilonDelta(6.0, 1e-5)


def epsilon(*parts):
    run = jaxgdp.compose([(part, 1) for part in parts])
    return measure(run, "epsilon", delta=1e-5, rtol=1e-4)["epsilon"]


def test_noise_after_a_run_keeps_both_within_the_target():
    found = calibrate(TARGET, sampling_prob=0.02, num_steps=2000, after=DONE)
    assert epsilon(DONE, dpsgd(float(found.value), 0.02, 2000)).lower <= 6.0
    assert epsilon(DONE, dpsgd(float(found.rejected), 0.02, 2000)).upper > 6.0
    assert found.achieved.upper <= 6.0
    # what is spent asks for more noise than a run alone
    assert found.value > calibrate(TARGET, sampling_prob=0.02, num_steps=2000).value


def test_steps_after_a_run_keep_both_within_the_target():
    setting = {"sampling_prob": 0.02, "noise_multiplier": 1.0, "solve_for": "num_steps"}
    found = calibrate(TARGET, after=DONE, **setting)
    assert found.rejected == found.value + 1
    both = [epsilon(DONE, dpsgd(1.0, 0.02, float(T))) for T in (found.value, found.rejected)]
    assert both[0].lower <= 6.0 < both[1].upper


def test_gaussian_parts_after_a_gaussian_are_exact():
    """√(1/4 + 1/σ²) = 1 asks for σ = 1/√(3/4)."""
    found = calibrate(targets.Mu(1.0), after=jaxgdp.Gaussian(2.0))
    assert np.isclose(found.value, 0.75**-0.5, rtol=2e-3) and found.value >= 0.75**-0.5
    scaled = calibrate(targets.Mu(1.0), mechanism=jaxgdp.Gaussian(3.0), after=jaxgdp.Gaussian(2.0))
    assert np.isclose(3.0 * scaled.value, 0.75**-0.5, rtol=2e-3)


def test_target_that_is_exceeded_already_is_refused():
    with pytest.raises(ValueError, match="what is given as after exceeds it already"):
        calibrate(targets.EpsilonDelta(1.0, 1e-5), num_steps=5, after=DONE)
    flagged = calibrate(
        targets.EpsilonDelta([1.0, 6.0], 1e-5), sampling_prob=0.02, num_steps=9, after=DONE,
        infeasible="flag",
    )  # fmt: skip
    assert flagged.status.tolist() == [4, 0] and np.isnan(flagged.value[0])


def test_batch_size_of_a_fixed_number_of_epochs():
    sigma, records, epochs = np.array([1.0, 1.5]), 45_000, 10
    found = calibrate(
        targets.EpsilonDelta(3.0, 1e-5), noise_multiplier=sigma, num_epochs=epochs,
        dataset_size=records, solve_for="batch_size",
    )  # fmt: skip
    for one, size, more in zip(sigma, found.value, found.rejected, strict=True):
        # exact arithmetic of whole numbers for the steps
        run = lambda b, one=one: dpsgd(one, b / records, -(-epochs * records // int(b)))
        assert more == size + 1
        assert epsilon(run(size)).lower <= 3.0 < epsilon(run(more)).upper
    everything = calibrate(
        targets.EpsilonDelta(30.0, 1e-5), noise_multiplier=5.0, num_epochs=1, dataset_size=100,
        solve_for="batch_size",
    )  # fmt: skip
    assert everything.value == 100


@pytest.mark.parametrize(
    "bad, named",
    [
        ({"after": 3}, "after must be a mechanism or composition"),
        ({"after": dpsgd(1.0, [0.1, 0.2], 3)}, "after must have no shape"),
        ({"after": DONE, "client": "x"}, "after must not be given with client"),
        ({"solve_for": "batch_size"}, "noise_multiplier must be given to solve for batch_size"),
        ({"solve_for": "batch_size", "noise_multiplier": 1.0}, "dataset_size must be given"),
        ({"solve_for": "batch_size", "num_steps": 5}, "num_steps must not be given with solve_for"),
        (
            {"solve_for": "batch_size", "batch_size": 5},
            "batch_size must not be given with solve_fo",
        ),
    ],
)
def test_bad_arguments_are_named(bad, named):
    with pytest.raises(ValueError, match=named):
        calibrate(TARGET, **bad)
