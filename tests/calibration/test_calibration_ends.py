"""Searches that end: large ε, ends of the range, whole numbers, regret; truth by dp_accounting."""

import numpy as np
import pytest
from mpmath import mp

import jaxgdp
from jaxgdp import targets

DIGITS = 40


@pytest.mark.parametrize(
    ("epsilon", "p", "steps"),
    [
        (300.0, 50 / 1279, 260),
        pytest.param(1000.0, 256 / 50_000, 3900, marks=pytest.mark.nightly),
        (300.0, 0.02, 5000),
    ],
)
def test_large_epsilon_is_met_and_needs_few_evaluations(epsilon, p, steps):
    found = jaxgdp.calibrate(targets.EpsilonDelta(epsilon, 1e-5), sampling_prob=p, num_steps=steps)
    assert found.achieved.upper <= epsilon and found.status == 0
    assert found.evaluations <= 6
    assert found.value / found.rejected == pytest.approx(1.001, rel=1e-9)


@pytest.mark.parametrize(
    ("sigma", "low", "high"),
    [pytest.param(0.18, 333.72, 333.821, marks=pytest.mark.nightly), (0.2, 259.32, 259.438)],
)
def test_large_epsilon_is_that_of_dp_accounting(sigma, low, high):
    """What dp_accounting 0.6 has of that noise."""
    run = {"sampling_prob": 50 / 1279, "num_steps": 260}
    needs_more = jaxgdp.calibrate(targets.EpsilonDelta(low, 1e-5), **run)
    needs_less = jaxgdp.calibrate(targets.EpsilonDelta(high, 1e-5), **run)
    assert needs_less.value / 1.002 <= sigma and needs_more.value >= sigma


def test_gaussian_noise_is_found_at_any_size():
    assert jaxgdp.calibrate(targets.Mu(1e5)).value == pytest.approx(1e-5, rel=1e-9)
    for epsilon, delta in ((5623.41, 1e-6), (1e6, 1e-6), (1e-9, 1e-12)):
        sigma = mp.mpf(float(jaxgdp.calibrate(targets.EpsilonDelta(epsilon, delta)).value))
        for factor, met in ((1, True), (mp.mpf(1) / mp.mpf("1.0011"), False)):
            mu = 1 / (sigma * factor)
            own = mp.ncdf(mu / 2 - epsilon / mu) - mp.exp(epsilon) * mp.ncdf(-mu / 2 - epsilon / mu)
            assert (own <= mp.mpf(delta)) == met


def test_small_deltas_are_calibrated():
    found = jaxgdp.calibrate(targets.EpsilonDelta(1.0, 1e-300), sampling_prob=0.5, num_steps=100)
    assert found.status == 0 and found.achieved.upper <= 1.0
    # sampling helps: less noise than without it
    whole = jaxgdp.calibrate(targets.EpsilonDelta(1.0, 1e-300), num_steps=100)
    assert found.value < 0.7 * whole.value


def test_whole_numbers_are_settled_exactly():
    """2024 steps have ε = 2.99940 (dp_accounting), 2025 have more than 3."""
    found = jaxgdp.calibrate(
        targets.EpsilonDelta(3.0, 1e-5),
        noise_multiplier=1.0,
        sampling_prob=512 / 45000,
        solve_for="num_steps",
    )
    assert (found.value, found.rejected, found.status) == (2024.0, 2025.0, 0)
    assert found.achieved.contains(2.99940) and found.proved_tight


def test_elements_without_an_answer_leave_the_others():
    asked = {"sampling_prob": 0.5, "noise_multiplier": 1.0, "solve_for": "num_steps"}
    target = targets.Advantage([1e-4, 0.9])
    found = jaxgdp.calibrate(target, **asked, infeasible="flag")
    assert found.status.tolist() == [4, 0] and found.value[1] == 43.0
    with pytest.raises(ValueError, match=r"not even 1; infeasible='flag' .* the other elements"):
        jaxgdp.calibrate(target, **asked)


def test_regret_is_scanned_down_to_what_breaks_it():
    """At σ = 1 the regret is at least 0.0669, so that 1e-6 needs more noise than that."""
    found = jaxgdp.calibrate(targets.Regret(1e-6), sampling_prob=0.05, num_steps=50)
    assert 1.0 < found.value < 1e4 and found.achieved.upper <= 1e-6
    assert found.rejected_achieved.upper > 1e-6


def test_regret_that_every_noise_meets_is_told_so():
    """Δ ≤ x = f(x) = (1 − η)/2 at small noise and Δ ≤ η_μ/2 at large noise leave no other."""
    with pytest.raises(ValueError, match="is met by every noise_multiplier tried, down to"):
        jaxgdp.calibrate(targets.Regret(0.4), sampling_prob=0.05, num_steps=50)
    sigmas = np.geomspace(0.3, 30.0, 9)
    assert np.all(jaxgdp.measure(jaxgdp.dpsgd(sigmas, 0.05, 50), "regret").regret.upper < 0.4)
