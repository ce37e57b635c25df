"""Tests that are chosen at random between others, against the hull of all with 60 digits."""

import numpy as np
import pytest
from mpmath import mp

import jaxgdp
from jaxgdp.accounting.certify.mixed_tests import raised


def _exp(log):
    return mp.exp(mp.mpf(float(log))) if log > -np.inf else mp.mpf(0)


def _best_mixed(alpha, points):
    """The largest TPR of all pairs at an FPR."""
    found = mp.mpf(0)
    for a, s in points:
        for b, t in points:
            if a <= alpha < b:
                found = max(found, s + (t - s) * (alpha - a) / (b - a))
    return max([found, *(t for a, t in points if a <= alpha)])


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("deep", [1.0, 30.0, 1e13])
def test_rates_are_those_of_the_hull_and_no_more(seed, deep):
    random = np.random.default_rng(seed)
    log_alpha = np.sort(random.uniform(-3.0, -0.05, 8))[::-1]
    log_alpha[5:] *= deep
    log_alpha = np.sort(log_alpha)[::-1]
    log_tpr = np.sort(random.uniform(0.3, 1.0, 8))[::-1]
    log_tpr = np.log(np.maximum(log_tpr, np.exp(log_alpha) * 1.001))
    log_beta = np.log1p(-np.exp(log_tpr))
    with mp.workdps(60):
        found = raised(log_alpha, log_tpr, log_beta)
        np.testing.assert_array_equal(found[0], log_alpha)
        points = [(mp.mpf(0), mp.mpf(0)), (mp.mpf(1), mp.mpf(1))]
        rates = zip(log_alpha, log_tpr, log_beta, strict=True)
        points += [(_exp(a), max(_exp(t), 1 - _exp(b))) for a, t, b in rates]
        for a, t, b in zip(*found, strict=True):
            exact = _best_mixed(_exp(a), points)
            assert max(_exp(t), 1 - _exp(b)) <= exact * (1 + mp.mpf("1e-15"))
            assert _exp(t) >= exact * (1 - mp.mpf("1e-9" if deep < 1e3 else "1e-2"))


def test_rates_of_one_test_are_left_as_they_are():
    one = np.log([0.1]), np.log([0.7]), np.log([0.3])
    for before, after in zip(one, raised(*one), strict=True):
        np.testing.assert_array_equal(before, after)


def test_tpr_between_tests_of_rare_steps_of_no_noise_is_as_narrow_as_asked():
    run = jaxgdp.compose(
        [(jaxgdp.SubsampledGaussian(1e-7, 4.86e-9), 10**8), (jaxgdp.Laplace(3.0), 1)]
    )
    seen = -np.expm1(1e8 * np.log1p(-4.86e-9))
    # (of Laplace noise a TPR of e^{1/3} times the FPR, up to one of 1/2)
    found = jaxgdp.tpr(run, fpr=0.1, adjacency="remove")
    exact = seen + (1.0 - seen) * 0.1 * np.exp(1.0 / 3.0)
    assert found.lower <= exact * (1.0 + 1e-12) and exact <= found.upper * (1.0 + 1e-12)
    assert found.upper <= found.lower * (1.0 + 1e-5)
