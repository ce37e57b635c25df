"""Optimised schedules: a closed form without subsampling, local optimality with it, and the
certificate.
"""

import numpy as np
import pytest

import jaxgdp
from jaxgdp import targets
from jaxgdp.optimization.optimize import _columns, _schedule, _variables, _whole_steps


@pytest.mark.slow
def test_gaussian_stages_have_a_closed_form():
    """Σ w_k·σ_k² at Σ T_k/σ_k² = μ² is least for σ_k ∝ (T_k/w_k)^{1/4}."""
    weights, steps = np.array([6.0, 1.0, 0.5]), np.array([100.0, 200.0, 100.0])
    found = jaxgdp.optimize(
        lambda s: (s.noise_multiplier**2) @ weights,
        targets.Mu(0.5),
        noise_multiplier=np.full(3, 30.0),
        num_steps=steps,
        iterations=40,
    )
    shape = (steps / weights) ** 0.25
    exact = shape * np.sqrt(np.sum(steps / shape**2)) / 0.5
    assert np.allclose(found.schedule.noise_multiplier, exact, rtol=1e-2)
    least = exact**2 @ weights
    assert least * (1 - 1e-9) <= found.proxy <= least * 1.004
    assert np.sqrt(np.sum(steps / found.schedule.noise_multiplier**2)) <= 0.5 * (1 + 1e-12)
    assert np.sqrt(np.sum(steps / found.start.noise_multiplier**2)) <= 0.5 * (1 + 1e-12)
    assert found.start_proxy > 1.05 * found.proxy and len(found.history) == 40


@pytest.mark.nightly
def test_subsampled_optimum_cannot_be_bettered_nearby():
    """Other shapes of noise and other sampling rates, each calibrated by itself to the same target,
    do no better.
    """
    weights = np.array([5.0, 1.0])

    def proxy(s):
        # noise of the mean gradient, and the cost of large batches
        return (
            s.noise_multiplier / s.sampling_prob
        ) ** 2 @ weights * 1e-4 + 30.0 * s.sampling_prob.sum()

    target = targets.TPR(tpr=0.2, fpr=0.1)
    found = jaxgdp.optimize(
        proxy,
        target,
        noise_multiplier=np.full(2, 2.0),
        sampling_prob=0.05,
        num_steps=100,
        over=("noise_multiplier", "sampling_prob"),
        iterations=40,
    )
    best = found.schedule
    again = jaxgdp.measure(best.mechanism(), "tpr", fpr=0.1, rtol=1e-4).brackets["tpr"]
    assert (
        again.upper <= 0.2
        and found.calibration.achieved.upper <= 0.2
        and found.proxy < 0.97 * found.start_proxy
    )
    rng = np.random.default_rng(0)
    for _ in range(4):
        noise = best.noise_multiplier * np.exp(rng.normal(0, 0.15, 2))
        rates = best.sampling_prob * np.exp(rng.normal(0, 0.15, 2))
        rival = jaxgdp.optimization.Schedule(noise, rates, best.num_steps, best.clip)
        scale = float(jaxgdp.calibrate(target, mechanism=rival.scaled).value)
        assert proxy(rival._replace(noise_multiplier=scale * noise)) >= found.proxy * (1 - 2e-3)


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="target must be one of"):
        jaxgdp.optimize(lambda s: 0.0, targets.Regret(0.01), noise_multiplier=[1.0], num_steps=100)
    with pytest.raises(ValueError, match="single"):
        jaxgdp.optimize(
            lambda s: 0.0, targets.Mu([1.0, 2.0]), noise_multiplier=[1.0], num_steps=100
        )
    with pytest.raises(ValueError, match="over must"):
        jaxgdp.optimize(
            lambda s: 0.0, targets.Mu(1.0), noise_multiplier=[1.0], num_steps=100, over="steps"
        )
    with pytest.raises(ValueError, match="sampling_prob"):
        jaxgdp.optimize(
            lambda s: 0.0,
            targets.Mu(1.0),
            noise_multiplier=[1.0],
            num_steps=100,
            over="sampling_prob",
        )
    with pytest.raises(ValueError, match="one axis"):
        jaxgdp.optimize(lambda s: 0.0, targets.Mu(1.0), noise_multiplier=1.0, num_steps=100)


def _error_of_sgd(schedule):
    """Bias that falls with the updates, and the noise that they add up."""
    noise = schedule.noise_multiplier / schedule.sampling_prob
    return (2e3 / schedule.num_steps + 1e-5 * noise**2 * schedule.num_steps).sum()


def test_batch_size_moves_rate_and_steps_at_the_same_number_of_examples():
    start = _columns(1.0, [0.02, 0.01], [400, 300], 1.0)
    free = _variables(start, ("batch_size",))
    moved = _schedule(start, {"batch_size": free["batch_size"] + 0.7}, 0.0)
    assert np.allclose(np.asarray(moved.sampling_prob) * moved.num_steps, [8.0, 3.0], rtol=1e-5)
    assert np.all(moved.sampling_prob > 1.9 * start.sampling_prob)
    whole = _whole_steps(start._replace(num_steps=np.array([201.3, 0.4])), [8.0, 3.0])
    assert whole.num_steps.tolist() == [201.0, 3.0]  # (a rate is at most 1)
    assert np.allclose(whole.sampling_prob * whole.num_steps, [8.0, 3.0], rtol=1e-15)


def test_batch_size_and_rate_cannot_both_change():
    with pytest.raises(ValueError, match="over must hold 'sampling_prob' or 'batch_size'"):
        jaxgdp.optimize(
            _error_of_sgd,
            targets.Mu(1.0),
            sampling_prob=0.1,
            num_steps=10,
            over=("sampling_prob", "batch_size"),
        )


@pytest.mark.nightly
def test_batch_size_cannot_be_bettered_by_another():
    """Every number of steps, with its rate and its own calibrated noise, does no better."""
    found = jaxgdp.optimize(
        _error_of_sgd,
        targets.Mu(1.0),
        noise_multiplier=[1.0],
        sampling_prob=0.01,
        num_steps=1000,
        over=("noise_multiplier", "batch_size"),
    )
    assert np.isclose(found.schedule.sampling_prob[0] * found.schedule.num_steps[0], 10.0)
    assert found.calibration.achieved.upper <= 1.0
    steps = np.rint(np.geomspace(30, 30_000, 120))
    noise = jaxgdp.calibrate(targets.Mu(1.0), sampling_prob=10.0 / steps, num_steps=steps).value
    error = 2e3 / steps + 1e-5 * (np.asarray(noise) * steps / 10.0) ** 2 * steps
    best = int(np.argmin(error))
    assert 0 < best < len(steps) - 1
    assert found.proxy <= 1.003 * error[best] and found.proxy < 0.95 * found.start_proxy
    assert 0.9 <= found.schedule.num_steps[0] / steps[best] <= 1.1
