"""Batches whose size is told: the profile of one step against integrals over every size."""

import numpy as np
import pytest
from scipy.integrate import simpson
from scipy.stats import binom, norm

import jaxgdp

EPSILONS = np.array([0.0, 0.1, 0.5, 1.0, 2.0])


def exact(sigma, rate, number, known, removed):
    """δ(ε) of the size and the noisy sum, by definition."""
    y = np.linspace(-12.0 * sigma, 12.0 * sigma + 1.0, 40_001)
    without, with_it = norm.pdf(y, 0.0, sigma), norm.pdf(y, 1.0, sigma)
    total = np.zeros(len(EPSILONS))
    for k in range(number + 1):
        if known:
            p = binom.pmf(k, number, rate) * without
            q = binom.pmf(k, number, rate) * ((1.0 - k / number) * without + k / number * with_it)
        else:
            p = binom.pmf(k, number - 1, rate) * without
            q = (1.0 - rate) * p + rate * binom.pmf(k - 1, number - 1, rate) * with_it
        high, low = (q, p) if removed else (p, q)
        shown = np.maximum(high - np.exp(EPSILONS)[:, None] * low, 0.0)
        total += simpson(shown, x=y, axis=1)
    return total


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("sigma, rate, number", [(1.0, 0.3, 6), (2.0, 0.1, 40)])
def test_profile_of_one_step_is_that_of_all_sizes(sigma, rate, number, known):
    step = jaxgdp.DrawnBatchSize(sigma, rate, number, known)
    for adjacency in ("remove", "add"):
        truth = exact(sigma, rate, number, known, adjacency == "remove")
        found = jaxgdp.delta(step, epsilon=EPSILONS, adjacency=adjacency)
        assert np.all(truth <= found.upper * (1.0 + 1e-6) + 1e-12)
        assert np.all(found.upper <= truth * 1.01 + 1e-6)
        assert np.all(found.lower <= truth * (1.0 + 1e-6) + 1e-12)


@pytest.mark.nightly
def test_told_sizes_cost_little_where_the_number_of_records_is_known():
    kept = jaxgdp.epsilon(jaxgdp.dpsgd(1.0, 0.01, 100), delta=1e-5)
    known, told = (
        jaxgdp.epsilon(
            jaxgdp.compose([(jaxgdp.DrawnBatchSize(1.0, 0.01, 10_000, each), 100)]), delta=1e-5
        )
        for each in (True, False)
    )
    assert kept.lower <= known.upper <= 1.1 * kept.upper
    assert known.upper <= told.upper and told.lower >= 0.99 * kept.lower


def test_whole_batches_tell_nothing_more():
    found = jaxgdp.mu(jaxgdp.DrawnBatchSize(2.0, 1.0, 50))
    assert found.lower <= 0.5 <= found.upper <= 0.5 * 1.01


def test_bad_input_by_name():
    with pytest.raises(ValueError, match="dataset_size must be a whole number"):
        jaxgdp.DrawnBatchSize(1.0, 0.1, 10.5)
    with pytest.raises(ValueError, match="size_known must be True or False"):
        jaxgdp.DrawnBatchSize(1.0, 0.1, 10, 1)
