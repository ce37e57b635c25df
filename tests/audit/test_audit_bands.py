"""Limits of error rates: their coverage, computed in two other ways and counted."""

import mpmath
import numpy as np
import pytest
from scipy.stats import beta, binom

from jaxgdp.audit import bands


def first_passage(limits, trials):
    """Pr[U₍ᵢ₎ ≤ limit i for all i] by the first rank that fails: a triangular system, all ranks."""
    failed = np.zeros(trials)
    for i in range(1, trials + 1):
        found = binom.pmf(i - 1, trials, limits[i - 1])
        for j in range(1, i):
            onward = (limits[i - 1] - limits[j - 1]) / (1.0 - limits[j - 1])
            found -= failed[j - 1] * binom.pmf(i - j, trials - j + 1, onward)
        failed[i - 1] = found
    return 1.0 - failed.sum()


@pytest.mark.parametrize("trials", [1, 2, 7, 40])
def test_coverage_is_that_of_the_first_passage(trials):
    at = np.arange(1, trials + 1)
    limits = bands.clopper_pearson(at - 1, trials, 0.02)
    assert bands.coverage(limits, at, trials) == pytest.approx(
        first_passage(limits, trials), abs=1e-12
    )


def test_coverage_of_two_uniforms_in_closed_form():
    # both below b and the smaller below a: b² − (b − a)²
    a, b = 0.3, 0.8
    assert bands.coverage(np.array([a, b]), np.array([1, 2]), 2) == pytest.approx(
        b**2 - (b - a) ** 2, abs=1e-14
    )


@pytest.mark.parametrize(("trials", "miss"), [(1, 0.025), (9, 0.025), (200, 0.025), (1500, 1e-4)])
def test_band_misses_as_often_as_allowed_and_no_oftener(trials, miss):
    at = bands.ranks(trials)
    level = bands.local_level(trials, miss)
    missed = 1.0 - bands.coverage(bands.clopper_pearson(at - 1, trials, level), at, trials)
    assert 0.99 * miss < missed <= miss
    assert miss / len(at) <= level <= miss


def test_simulated_uniforms_stay_below_the_band_as_often_as_computed():
    trials, repetitions = 60, 20_000
    band = bands.simultaneous(trials, 0.05)
    smallest = np.sort(np.random.default_rng(0).random((repetitions, trials)), axis=1)
    missed = np.mean(np.any(smallest > band[:trials], axis=1))
    # every rank is looked at here, so the level is met
    assert len(bands.ranks(trials)) == trials
    assert abs(missed - 0.05) < 4.0 * np.sqrt(0.05 * 0.95 / repetitions)


def test_ranks_that_are_left_out_cost_little_and_never_the_coverage():
    trials = 3000
    assert len(bands.ranks(trials)) < 0.6 * trials
    band = bands.simultaneous(trials, 0.025)
    assert band[-1] == 1.0 and np.all(np.diff(band) >= 0.0) and len(band) == trials + 1
    every = np.arange(1, trials + 1)
    assert 1.0 - bands.coverage(band[:trials], every, trials) <= 0.025


def test_band_is_narrower_than_that_of_dvoretzky_kiefer_and_wolfowitz_in_the_tail():
    trials = 1000
    band, counts = bands.simultaneous(trials, 0.025), np.arange(trials + 1)
    dkw = np.minimum(counts / trials + np.sqrt(np.log(1.0 / 0.025) / (2.0 * trials)), 1.0)
    assert np.all(band[:50] < dkw[:50]) and band[0] < 0.2 * dkw[0]
    # and than Clopper-Pearson limits with a union bound, everywhere but at the end
    union = bands.clopper_pearson(counts, trials, 0.025 / trials)
    assert np.all(band[:trials] < union[:trials])


def test_limit_of_one_threshold():
    for k, n in ((0, 10), (3, 10), (10, 10), (500, 1000)):
        limit = float(bands.clopper_pearson(k, n, 0.025))
        exact = 1.0 if k == n else beta.ppf(0.975, k + 1, n - k)
        assert limit == pytest.approx(exact, rel=1e-8) and limit >= exact * (1.0 - 1e-12)
    # at most k of n has the probability of the tail, no more: 40 digits
    with mpmath.workdps(40):
        p = mpmath.mpf(float(bands.clopper_pearson(10, 1000, 0.025)))
        tail = mpmath.fsum(
            mpmath.binomial(1000, j) * p**j * (1 - p) ** (1000 - j) for j in range(11)
        )
        assert 0.025 * (1 - 1e-7) < float(tail) <= 0.025
