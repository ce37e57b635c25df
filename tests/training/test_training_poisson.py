"""Poisson batches of static shape: their distribution, and what emptying a batch that does not fit
costs.
"""

import itertools
import math

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from scipy.stats import norm

from jaxgdp.training import PoissonSampler, overflow_probability, poisson_sampler


def test_every_record_enters_on_its_own_with_the_same_probability():
    n, p, draws = 30, 0.2, 6000
    sampler = poisson_sampler(n, p, max_steps=draws)
    batch = jax.jit(jax.vmap(sampler.sample, (None, 0)))(jax.random.key(1), jnp.arange(draws))
    indices, mask = np.asarray(batch.indices), np.asarray(batch.mask)
    assert indices.shape == (draws, sampler.padded_size) and not np.any(batch.overflowed)
    chosen = np.zeros((draws, n))
    rows = np.repeat(np.arange(draws), mask.sum(1))
    chosen[rows, indices[mask]] += 1.0
    # no record twice in a batch, and nothing but padding behind the mask
    assert chosen.max() == 1.0 and chosen.sum() == mask.sum()
    spread = np.sqrt(p * (1 - p) / draws)
    assert np.all(np.abs(chosen.mean(0) - p) < 5 * spread)
    # independent: the correlation of any two records is noise, and the batch size is binomial
    correlation = np.corrcoef(chosen.T) - np.eye(n)
    assert np.max(np.abs(correlation)) < 5.5 / np.sqrt(draws)
    sizes = mask.sum(1)
    assert abs(sizes.var() / (n * p * (1 - p)) - 1.0) < 0.1


@pytest.mark.parametrize("p", [0.625 * 2.0**-23, 1e-5, 0.3, 2.0**-32, 1.0 - 2.0**-33])
def test_rate_is_not_rounded_to_the_grid_of_float32_uniforms(monkeypatch, p):
    # a float32 uniform is a multiple of 2⁻²³, so u < p would draw with probability 2⁻²³ in the
    # first case: 60 % too much
    threshold = math.floor(p * 2.0**32)
    words = np.array([0, threshold - 1, threshold, 2**32 - 1], np.uint32)
    monkeypatch.setattr(jax.random, "bits", lambda key, shape, dtype: jnp.asarray(words))
    batch = PoissonSampler(4, p, 4, 0.0, 1).sample(jax.random.key(0), 0)
    assert set(np.asarray(batch.indices)[np.asarray(batch.mask)].tolist()) == {0, 1}
    assert p - 2.0**-32 < threshold / 2.0**32 <= p


def test_batches_without_subsampling_hold_every_record():
    batch = poisson_sampler(7, 1.0, max_steps=3).sample(jax.random.key(0), 0)
    assert batch.indices.tolist() == list(range(7)) and bool(np.all(batch.mask))


def test_batch_that_does_not_fit_is_emptied_not_cut():
    sampler = PoissonSampler(
        dataset_size=100, sampling_prob=0.5, padded_size=50, overflow=0.5, max_steps=1
    )
    batch = jax.vmap(sampler.sample, (0, None))(jax.random.split(jax.random.key(0), 400), 0)
    sizes = np.asarray(batch.mask).sum(1)
    over = np.asarray(batch.overflowed)
    assert 100 < over.sum() < 300
    assert np.all(sizes[over] == 0) and np.all(sizes[~over] > 0) and sizes.max() <= 50


@pytest.mark.parametrize(
    "n, p, size", [(40, 0.3, 25), (1437, 0.1, 268), (60_000, 0.01, 860), (10**6, 1e-4, 190)]
)
def test_overflow_probability_is_a_tight_bound(n, p, size):
    with mpmath.workdps(40):
        term = lambda k: mpmath.binomial(n, k) * mpmath.mpf(p) ** k * (1 - mpmath.mpf(p)) ** (n - k)
        exact = 7 * sum(term(k) for k in range(size, min(n, size + 400) + 1))
        assert exact <= overflow_probability(n, p, size, max_steps=7) <= exact * (1 + 1e-5)


def test_padded_size_is_the_smallest_within_the_overflow():
    sampler = poisson_sampler(5000, 0.02, max_steps=1000, overflow=1e-12)
    assert (
        sampler.overflow <= 1e-12 < overflow_probability(5000, 0.02, sampler.padded_size - 1, 1000)
    )
    assert overflow_probability(20, 0.5, 20, 10) == 0.0
    assert poisson_sampler(5000, 0.02, 1000, padded_size=256).padded_size == 256


def _hockey_stick(p_density, q_density, epsilon, grid):
    return np.trapezoid(np.maximum(q_density - np.exp(epsilon) * p_density, 0.0), grid)


def test_cost_of_emptying_is_within_the_bound_and_would_be_missed_without_it():
    """One step on five records, by enumeration: the densities of the released sum with and without
    the last record.
    """
    rate, size, sigma, others = 0.4, 2, 0.7, np.array([3.0, 3.0, -2.0, 1.0])
    grid = np.linspace(-12.0, 14.0, 60_001)
    d = overflow_probability(len(others) + 1, rate, size, max_steps=1)

    def density(record):
        records = others if record is None else np.append(others, record)
        total = np.zeros_like(grid)
        for chosen in itertools.product([0, 1], repeat=len(records)):
            chosen = np.array(chosen)
            weight = np.prod(np.where(chosen == 1, rate, 1 - rate))
            centre = 0.0 if chosen.sum() > size else float(chosen @ records)
            total += weight * norm.pdf(grid, centre, sigma)
        return total

    absent, present = density(None), density(1.0)
    plain = norm.pdf(grid, 0.0, sigma)
    mixed = (1 - rate) * plain + rate * norm.pdf(grid, 1.0, sigma)
    missed = 0
    for epsilon in (0.0, 0.5, 1.0, 2.0, 3.0):
        for pair, poisson in (
            ((absent, present), (plain, mixed)),
            ((present, absent), (mixed, plain)),
        ):
            actual, without = (
                _hockey_stick(*pair, epsilon, grid),
                _hockey_stick(*poisson, epsilon, grid),
            )
            assert actual <= without + d + 1e-9
            missed += actual > without + 1e-6
    assert missed > 0


@pytest.mark.parametrize(
    "bad, named",
    [
        ({"dataset_size": 0}, "dataset_size"),
        ({"sampling_prob": 0.0}, "sampling_prob"),
        ({"sampling_prob": 1e-12}, r"sampling_prob must be in \[2\*\*-32, 1\]"),
        ({"max_steps": 1.5}, "max_steps"),
        ({"overflow": 0.5}, "overflow"),
        ({"padded_size": 12}, "padded_size must overflow in at most one run in a thousand, got 12"),
    ],
)
def test_bad_input_is_named(bad, named):
    with pytest.raises(ValueError, match=named):
        poisson_sampler(**({"dataset_size": 100, "sampling_prob": 0.1, "max_steps": 10} | bad))
