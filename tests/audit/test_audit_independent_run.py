"""One run with independent canaries: exact laws, a simulated level, and what breaks without the
assumption."""

import mpmath
import numpy as np
import pytest
from scipy.special import betainc

import jaxgdp
from jaxgdp import audit


def binomial(number, prob, at_least):
    return float(betainc(at_least, number - at_least + 1.0, prob))


@pytest.mark.parametrize("mu", [0.3, 1.0, 3.0])
def test_all_canaries_guessed_are_a_binomial(mu):
    with mpmath.workdps(30):
        exact = [binomial(40, float(mpmath.ncdf(mu / mpmath.mpf(2))), v) for v in (22, 30, 40)]
    found = [audit.independent_run_level(mu, 40, 40, v) for v in (22, 30, 40)]
    assert all(e <= f <= 1.05 * e + 1e-11 for e, f in zip(exact, found, strict=True))


@pytest.mark.parametrize("r", [1, 7, 40])
def test_pure_privacy_is_a_binomial_whatever_is_guessed(r):
    found = audit.independent_run_level((1.0, 0.0), 40, r, r)
    assert found == pytest.approx((1.0 / (1.0 + np.exp(-1.0))) ** r, rel=2e-3)


def game(mu, repetitions, m, r, common):
    """Right guesses of independent canaries, or of canaries that share a part of their noise."""
    rng = np.random.default_rng(7)
    included = rng.random((repetitions, m)) < 0.5
    noise = rng.standard_normal((repetitions, m))
    noise = np.sqrt(1.0 - common) * noise + np.sqrt(common) * rng.standard_normal((repetitions, 1))
    seen = mu * (included - 0.5) + noise
    surest = np.argsort(-np.abs(seen), axis=1)[:, :r]
    return np.sum(np.take_along_axis((seen > 0) == included, surest, 1), axis=1)


def one_loss(mu, repetitions, m):
    rng = np.random.default_rng(8)
    loss = np.abs(mu * rng.standard_normal(repetitions) + mu**2 / 2)
    return rng.binomial(m, 1.0 / (1.0 + np.exp(-loss)))


def refuted_too_often(right, level, m, r, mu):
    values = np.array([level(mu, m, r, v) for v in range(r + 1)])[right]
    return any(
        np.mean(values <= a) > a + 4.0 * np.sqrt(a * (1.0 - a) / len(values))
        for a in (0.02, 0.05, 0.2)
    )


@pytest.mark.parametrize("r", [15, pytest.param(60, marks=pytest.mark.nightly)])
def test_level_holds_for_independent_canaries_alone(r):
    level = audit.independent_run_level
    right = game(1.0, 3000, 60, r, 0.0)
    assert not refuted_too_often(right, level, 60, r, 1.0)
    # and is nearly used up
    assert refuted_too_often(right, lambda *a: 0.5 * level(*a), 60, r, 1.0)
    # canaries that share their privacy loss: no p-value any more, while that of any mechanism is
    shared = one_loss(1.0, 3000, 60)
    assert refuted_too_often(shared, level, 60, 60, 1.0)
    levels = audit.one_run_levels(1.0, 60, 60, np.arange(61))
    assert not refuted_too_often(shared, lambda *a: levels[a[3]], 60, 60, 1.0)


def test_scores_of_independent_canaries_are_those_of_many_runs():
    """Canaries drawn from a population, each with an offset of its own: bounds from the scores of
    one run hold. With one privacy loss for all canaries they do not."""
    rng, runs, m = np.random.default_rng(9), 400, 200
    included = np.arange(m) < m // 2  # as many of each, so that all runs are bounded at once
    bound = lambda scores, confidence: np.asarray(
        audit.mu_lower_bound(
            scores[:, included], scores[:, ~included], confidence, "threshold", 0.5
        )
    )
    too_often = lambda scores, c: (
        np.mean(bound(scores, c) > 1.0) > 1 - c + 4 * np.sqrt(c * (1 - c) / runs)
    )
    scores = rng.standard_exponential((runs, m)) + included + rng.standard_normal((runs, m))
    assert not too_often(scores, 0.6) and not too_often(scores, 0.95)
    loss = np.abs(rng.standard_normal((runs, 1)) + 0.5)
    told = np.where(rng.random((runs, m)) < 1.0 / (1.0 + np.exp(-loss)), included, ~included)
    assert too_often(1.0 * told, 0.95) and 0.25 < np.mean(bound(1.0 * told, 0.95) > 1.0) < 0.45


def test_bound_names_its_assumption_and_exceeds_the_plain_one():
    found = audit.independent_run_mu(1000, 200, 190)
    assert 1.1 < found < 1.3 and found > audit.one_run_mu(1000, 200, 190)
    assert "if the outputs for different canaries are independent" in str(found)
    assert audit.independent_run_level(float(found), 1000, 200, 190) <= 0.05
    assert audit.independent_run_mu(10, 5, 3) == audit.independent_run_mu(10, 5, 0) == 0.0
    assert audit.independent_run_mu(10**5, 10**5, 10**5) > 5.0
    mechanism = jaxgdp.Gaussian(noise_multiplier=1.0)
    certified = audit.independent_run_level(mechanism, 300, 60, 57)
    assert certified == pytest.approx(audit.independent_run_level(1.0, 300, 60, 57), rel=0.02)
    with pytest.raises(ValueError, match="num_guesses must be at most"):
        audit.independent_run_mu(10, 11, 5)
