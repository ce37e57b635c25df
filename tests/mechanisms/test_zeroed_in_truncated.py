"""Truncated Poisson sampling when a record counts as zero, against exact games of few records."""

import itertools
import math

import numpy as np
import pytest
from by_day import every_value
from scipy.integrate import quad
from scipy.special import ndtr

import jaxgdp
from jaxgdp.mechanisms.truncated_poisson import TruncatedPoisson


def law(record, others, rate, most):
    """Sum of a batch → its probability: who is drawn is enumerated, and who of them is kept."""
    found, everyone = {}, (record, *others)
    for drawn in itertools.product((0, 1), repeat=len(everyone)):
        chosen = [k for k, taken in enumerate(drawn) if taken]
        chance = math.prod(rate if taken else 1.0 - rate for taken in drawn)
        kept = list(itertools.combinations(chosen, most)) if len(chosen) > most else [chosen]
        for batch in kept:
            total = round(sum(everyone[k] for k in batch), 12)
            found[total] = found.get(total, 0.0) + chance / len(kept)
    return found


def delta(p, q, sigma, epsilon):
    """∫ (p − e^ε q)₊ of two mixtures of Gaussians, exact to quadrature."""
    density = lambda law, x: (
        sum(w * math.exp(-0.5 * ((x - m) / sigma) ** 2) for m, w in law.items())
        / (sigma * math.sqrt(2.0 * math.pi))
    )
    gain = lambda x: max(density(p, x) - math.exp(epsilon) * density(q, x), 0.0)
    low, high = min(*p, *q) - 9.0 * sigma, max(*p, *q) + 9.0 * sigma
    edges = np.linspace(low, high, 60)
    return sum(quad(gain, a, b, epsabs=1e-12)[0] for a, b in itertools.pairwise(edges))


GAMES = [
    (sigma, rate, most, others)
    for sigma, rate, most in ((0.7, 0.3, 2), (1.5, 0.6, 3), (1.0, 0.9, 1))
    for others in ((0.0,) * 5, (-1.0,) * 5, (1.0,) * 5, (-1.0, 1.0, 0.5, -0.5, -1.0))
]


@pytest.mark.parametrize(("sigma", "rate", "most", "others"), GAMES)
def test_no_game_shows_more_than_the_upper_side(sigma, rate, most, others):
    step = TruncatedPoisson(sigma, rate, most, len(others) + 1).zeroed()
    there, zero = (law(record, others, rate, most) for record in (1.0, 0.0))
    for order, p, q in (("remove", there, zero), ("add", zero, there)):
        for epsilon in (0.0, 0.3, 1.0, 2.5):
            found = jaxgdp.measure(step, "delta", epsilon=epsilon, adjacency=order).delta
            exact = delta(p, q, sigma, epsilon)
            assert exact <= found.upper * (1.0 + 1e-9) + 1e-10, (order, epsilon)
            if not any(others):
                assert found.lower <= exact * (1.0 + 1e-6) + 1e-10, (order, epsilon)


def test_profile_of_one_step_is_the_mean_of_both():
    """With the numbers of both parts summed up from their binomial law."""
    from scipy.stats import binom

    sigma, rate, most, size = 1.3, 0.08, 30, 250
    drawn = np.arange(size)
    chance = binom.pmf(drawn, size - 1, rate)
    cut = drawn >= most
    replaced = np.sum(chance[cut] * rate * most / (drawn[cut] + 1.0)) / np.sum(chance[cut])
    gaussian = lambda e, mu: ndtr(mu / 2 - e / mu) - math.exp(e) * ndtr(-mu / 2 - e / mu)
    for epsilon in (0.2, 1.0, 2.0):
        grown = math.expm1(epsilon)
        plain = rate * gaussian(math.log1p(grown / rate), 1.0 / sigma)
        inner = math.log1p(grown / replaced)
        beta = math.exp(epsilon - inner)
        fixed = replaced * (
            (1.0 - beta) * gaussian(inner, 2.0 / sigma) + beta * gaussian(inner, 1.0 / sigma)
        )
        exact = np.sum(chance[~cut]) * plain + np.sum(chance[cut]) * fixed
        step = TruncatedPoisson(sigma, rate, most, size).zeroed()
        found = jaxgdp.measure(step, "delta", epsilon=epsilon).delta
        assert exact <= found.upper <= exact * 1.001


@pytest.mark.parametrize(
    ("setting", "steps"),
    every_value(
        ((1.3, 0.08, 30, 250), (2.0, 0.147, 60, 334), (1.1, 0.01, 50, 1000), (0.8, 1.0, 7, 20)),
        (1, 20),
    ),
)
def test_sides_are_those_of_more_and_of_less(setting, steps):
    """No less than Poisson sampling at the rate with which the record is in a batch, and no more
    than without sampling, or where batches that are cut tell everything."""
    sigma, rate, most, size = setting
    step = TruncatedPoisson(sigma, rate, most, size).zeroed()
    found = jaxgdp.measure(jaxgdp.compose([(step, steps)]), ("delta", "mu"), epsilon=0.5)
    member = jaxgdp.compose([(step.lower_bound_mechanisms()[0], steps)])
    least = jaxgdp.measure(member, ("delta", "mu"), epsilon=0.5)
    assert least.delta.lower <= found.delta.upper and least.mu.lower <= found.mu.upper
    assert found.delta.lower <= least.delta.upper and found.mu.lower <= least.mu.upper
    whole = jaxgdp.measure(jaxgdp.dpsgd(sigma, 1.0, steps), ("delta", "mu"), epsilon=0.5)
    assert found.mu.upper <= whole.mu.upper * 1.01 and found.delta.upper <= whole.delta.upper * 1.01


def test_next_to_no_batch_is_cut():
    step = TruncatedPoisson(1.1, 0.01, 50, 1000).zeroed()
    run = jaxgdp.measure(jaxgdp.compose([(step, 200)]), "epsilon", delta=1e-5)
    plain = jaxgdp.measure(jaxgdp.dpsgd(1.1, 0.01, 200), "epsilon", delta=1e-5)
    assert run.status["epsilon"] == 0 and abs(run.epsilon.upper / plain.epsilon.upper - 1.0) < 1e-3


def test_batch():
    step = TruncatedPoisson(np.array([1.0, 2.0]), 0.1, np.array([[12.0], [20.0]]), 100).zeroed()
    found = jaxgdp.measure(step, "epsilon", delta=1e-6)
    assert found.epsilon.upper.shape == (2, 2)
    one = jaxgdp.measure(TruncatedPoisson(2.0, 0.1, 12.0, 100).zeroed(), "epsilon", delta=1e-6)
    np.testing.assert_allclose(found.epsilon.upper[0, 1], one.epsilon.upper, rtol=1e-9)
