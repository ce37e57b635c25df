"""The two finite pairs that a mechanism lies between."""

import jax
import numpy as np
import pytest
from scipy.special import gammaln, log_ndtr
from scipy.stats import binom

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


@pytest.mark.parametrize("sigma, p", [(3e-4, 0.5), (1e-5, 1e-3), (1e-4, 1.0 - 1e-12)])
def test_no_mass_is_lost_in_cells_of_thousands_of_nats(sigma, p):
    for pair in _both(jaxgdp.SubsampledGaussian(sigma, p), 1024):
        assert np.max(np.diff(pair.loss)) > 2000.0
        masses, others = np.exp(pair.log_p), np.exp(pair.log_p + pair.loss)
        slack = 2.0 * float(np.sum(others * (pair.error + pair.loss_error))) + 1e-12
        assert np.sum(masses) + pair.p_minus == pytest.approx(1.0, abs=slack)
        assert np.sum(others) + pair.q_plus == pytest.approx(1.0, abs=slack)
        # Q is N(1, σ²) for a share p of the time, with losses of about 1/(2σ²)
        assert np.sum(others[pair.loss > 0.3 / sigma**2]) == pytest.approx(p, rel=1e-6)


@pytest.mark.parametrize("p", [0.5, 0.9999])
def test_epsilon_of_hardly_any_noise_is_more_than_counting_shows(p):
    """Who counts outputs above ½ of T = 10⁵ has TPR Pr[Bin(T, p) ≥ k] and an FPR of at most
    C(T, k)·Φ(−1/(2σ))^k, k = ⌊pT⌋, and ε(δ) ≥ log(TPR − δ) − log FPR."""
    sigma, steps, delta = 3e-4, 100_000, 1e-3
    k = int(p * steps)
    tpr = float(binom.sf(k - 1, steps, p))
    ways = gammaln(steps + 1.0) - gammaln(k + 1.0) - gammaln(steps - k + 1.0)
    least = np.log(tpr - delta) - (ways + k * log_ndtr(-0.5 / sigma))
    run = jaxgdp.dpsgd(sigma, p, steps)
    found = jaxgdp.epsilon(run, delta=delta, adjacency="remove")
    # (what it shows at most is 4 times that: T steps at 1/(2σ²) and their spread)
    assert least < found.upper < 4.2 * least
