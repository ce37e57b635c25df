"""Noise of a run from records, batches and epochs: the same as by rate and steps."""

import pytest

import jaxgdp

GOAL = jaxgdp.targets.Mu(1.0)
RUN = {"dataset_size": 45_000, "batch_size": 512, "num_epochs": 30, "rtol": 1e-2}


def test_noise_is_that_of_rate_and_steps():
    found = jaxgdp.calibrate(GOAL, **RUN)
    same = jaxgdp.calibrate(GOAL, sampling_prob=512 / 45_000, num_steps=2637, rtol=1e-2)
    assert found.value == same.value and found.achieved == same.achieved
    run = jaxgdp.run(float(found.value), 45_000, 512, num_epochs=30)
    assert jaxgdp.mu(run).upper <= 1.0
    loader = jaxgdp.calibrate(GOAL, **RUN, sampler="opacus").value
    assert loader == jaxgdp.calibrate(GOAL, sampling_prob=1 / 88, num_steps=2640, rtol=1e-2).value


def test_unknown_sampler_gets_the_larger_noise():
    ordered = jaxgdp.calibrate(GOAL, **RUN, sampler="deterministic").value
    # the upper side of shuffled batches is that of a fixed order: √30 at μ = 1
    assert jaxgdp.calibrate(GOAL, **RUN, sampler="unknown").value == pytest.approx(
        30**0.5, rel=1e-2
    )
    assert ordered == pytest.approx(30**0.5, rel=1e-2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"batch_size": None}, "batch_size must be given"),
        ({"num_steps": 3}, "give one of num_epochs and num_steps, got both"),
        ({"num_epochs": None}, "give one of num_epochs and num_steps, got none"),
        ({"sampling_prob": 0.5}, "sampling_prob must not be given with them"),
        ({"solve_for": "num_steps"}, "solve_for must not be given with them"),
        ({"sampler": "fixed_size"}, "sampler must not be 'fixed_size'"),
        ({"sampler": "unknown", "batch_size": [1, 2]}, "one calibration at a time"),
    ],
)
def test_arguments_that_exclude_each_other_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        jaxgdp.calibrate(GOAL, **RUN | change)
