"""The two finite pairs that a mechanism lies between."""

import jax
import numpy as np
import pytest
from scipy.special import log_ndtr

import jaxgdp
from jaxgdp.accounting.certify.discrete_pairs import coarsened_pair, dominating_pair
from jaxgdp.accounting.steer.limit_plan import loss_points
from jaxgdp.numerics.precision import with_float64
from tests.mechanisms_of_every_class import SETTINGS

_EPSILONS = np.array([0.0, 1e-3, 0.05, 0.3, 1.0, 3.0])


@with_float64
def _both(mechanism, points=512):
    ell = loss_points(mechanism, 40.0, points)
    with np.errstate(all="ignore"):
        cells = mechanism.cells(ell, np.inf)
        return coarsened_pair(cells, ell), dominating_pair(cells, ell)


def _delta(pair, epsilon, counted):
    mass = np.exp(pair.log_p) * np.expm1(np.maximum(pair.loss - epsilon, 0.0)) * np.exp(epsilon)
    return np.sum(mass) + (pair.q_counted if counted else 0.0)


def _exact(sigma, p, epsilon, adding):
    """δ(ε) of one step of DP-SGD, in closed form."""
    sign = -1.0 if adding else 1.0
    rest = np.expm1(sign * epsilon) / p + 1.0
    if rest <= 0.0:
        return 0.0
    place = sigma * np.log(rest) + 0.5 / sigma
    tails = np.exp(log_ndtr(-sign * place)), np.exp(log_ndtr(-sign * (place - 1.0 / sigma)))
    one, other = tails[0], (1.0 - p) * tails[0] + p * tails[1]
    return one - np.exp(epsilon) * other if adding else other - np.exp(epsilon) * one


@pytest.mark.parametrize("sigma, p", [(0.05, 0.3), (0.8, 0.01), (1.0, 0.999), (30.0, 0.5)])
def test_profile_of_one_use_is_between_both_pairs(sigma, p):
    below, above = _both(jaxgdp.SubsampledGaussian(sigma, p))
    for adding in (False, True):
        for epsilon in _EPSILONS:
            exact = _exact(sigma, p, epsilon, adding)
            low, high = _delta(below, epsilon, False), _delta(above, epsilon, True)
            assert low * (1.0 - 1e-11) - 1e-15 <= exact <= high * (1.0 + 1e-11) + 1e-15
            assert high - low <= 1e-2 * exact + 1e-6
        below, above = below.swapped(), above.swapped()


@pytest.mark.parametrize("name", sorted(set(SETTINGS) - {"Shuffled", "FixedSize"}))
def test_every_class_has_both_pairs(name):
    run = jaxgdp.compose([(SETTINGS[name][0], 1)])
    mechanism, first = run.stacked()[0][0], (0,) * (len(run.shape) + 1)
    mechanism = jax.tree.map(lambda leaf: np.asarray(leaf)[first], mechanism)
    for pair, side in zip(_both(mechanism), (-1.0, 1.0), strict=True):
        p, q = np.exp(pair.log_p), np.exp(pair.log_p + pair.loss)
        slack = 1e-10 + float(np.max(pair.error))
        assert np.sum(p) + pair.p_minus == pytest.approx(1.0, abs=slack)
        assert np.sum(q) + pair.q_plus == pytest.approx(1.0, abs=slack)
        assert (pair.q_counted - pair.q_plus) * side >= -1e-300
    below, above = _both(mechanism)
    for epsilon in _EPSILONS:
        assert _delta(below, epsilon, True) <= _delta(above, epsilon, True) * (1 + 1e-7) + 1e-12
