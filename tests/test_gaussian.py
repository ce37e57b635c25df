"""p = 1 is the Gaussian mechanism: every number has a closed form."""

import mpmath
import numpy as np
import pytest

import jaxgdp

mpmath.mp.dps = 40
SETTINGS = [(1.0, 1), (0.5, 2000), (20.0, 100), (1000.0, 1_000_000), (50.0, 1_000_000), (100.0, 1)]


@pytest.fixture(scope="module")
def curve():
    sigma, steps = np.array(SETTINGS).T
    return jaxgdp.tradeoff(jaxgdp.dpsgd(sigma, 1.0, steps), rtol=1e-5)


def exact_mu(i):
    sigma, steps = SETTINGS[i]
    return np.sqrt(steps) / sigma


def test_mu(curve):
    exact = np.array([exact_mu(i) for i in range(len(SETTINGS))])
    for floor in (1e-5, 1e-10, 1e-300):
        found = curve.mu(fpr_floor=floor)
        assert np.all(found.lower <= exact * (1 + 1e-14)) and np.all(found.upper >= exact * (1 - 1e-14))
        assert np.all(found.upper - found.lower <= 1e-5 * exact)


@pytest.mark.parametrize("fpr", [0.3, 1e-3, 1e-10, 1e-100, 1e-300])
def test_tpr_to_the_far_tail(curve, fpr):
    found = curve.log_tpr(fpr)
    for i in range(len(SETTINGS)):
        mu = mpmath.sqrt(SETTINGS[i][1]) / mpmath.mpf(SETTINGS[i][0])
        z = -mpmath.findroot(lambda x: mpmath.log(mpmath.erfc(x / mpmath.sqrt(2)) / 2) - mpmath.log(fpr), _guess(fpr))
        exact = float(mpmath.log(mpmath.erfc(-(z + mu) / mpmath.sqrt(2)) / 2))
        slack = 1e-12 * (1 + abs(exact))
        assert found.lower[i] <= exact + slack and found.upper[i] >= exact - slack
        assert abs(found.upper[i] - exact) <= 1e-6 * max(abs(exact), 1.0)  # the side to report
        assert abs(found.lower[i] - exact) <= 1e-4 * max(abs(exact), 1.0)


def _guess(fpr):
    return float(np.sqrt(max(-2 * np.log(2.5 * fpr), 0.1)))


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 3.0, 20.0])
def test_delta(curve, epsilon):
    found = curve.delta(epsilon)
    for i in range(len(SETTINGS)):
        mu = mpmath.sqrt(SETTINGS[i][1]) / mpmath.mpf(SETTINGS[i][0])
        phi = lambda x: mpmath.erfc(-x / mpmath.sqrt(2)) / 2  # noqa: E731
        exact = phi(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * phi(-mu / 2 - epsilon / mu)
        assert found.lower[i] <= float(exact) * (1 + 1e-9) + 1e-300
        assert found.upper[i] >= float(exact) * (1 - 1e-9)


@pytest.mark.parametrize("delta", [1e-3, 1e-10, 1e-100, 1e-290])
def test_epsilon(curve, delta):
    found = curve.epsilon(delta)
    for i in range(len(SETTINGS)):
        exact = jaxgdp.gdp.epsilon(delta, exact_mu(i))
        assert found.lower[i] <= exact * (1 + 1e-9) + 1e-12
        assert found.upper[i] >= exact * (1 - 1e-9) - 1e-12
        assert found.upper[i] - found.lower[i] <= 1e-3 * exact + 1e-9


def test_almost_perfect_and_no_privacy():
    tiny = jaxgdp.tradeoff(jaxgdp.dpsgd(1e6, 1.0, 1))
    assert tiny.mu().lower <= 1e-6 <= tiny.mu().upper
    assert tiny.mu().upper - tiny.mu().lower <= 1e-9
    none = jaxgdp.tradeoff(jaxgdp.dpsgd(0.5, 1.0, 2000), rtol=1e-6)
    assert none.mu().lower == pytest.approx(np.sqrt(2000) / 0.5, rel=1e-6)
    assert none.log_beta(1e-10).lower < -3000.0


def test_composition_of_gaussians_is_one_gaussian():
    mechanism = jaxgdp.compose([(jaxgdp.Gaussian(3.0), 4), (jaxgdp.Gaussian(5.0), 7), jaxgdp.Gaussian(2.0)])
    exact = float(jaxgdp.gdp.compose(2 / 3.0, np.sqrt(7) / 5.0, 0.5))
    found = jaxgdp.tradeoff(mechanism).mu()
    assert found.lower <= exact * (1 + 1e-12) and found.upper >= exact * (1 - 1e-12)
    assert found.upper - found.lower <= 1e-3 * exact
