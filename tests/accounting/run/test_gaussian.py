"""p = 1 is the Gaussian mechanism: every number has a closed form."""

import jax
import mpmath
import numpy as np
import pytest

import jaxgdp
from jaxgdp.quantities.quantities import quantity

DIGITS = 40
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
        assert np.all(found.lower <= exact * (1 + 1e-14)) and np.all(
            found.upper >= exact * (1 - 1e-14)
        )
        assert np.all(found.upper - found.lower <= 1e-5 * exact)


def _quantile(fpr):
    """Φ⁻¹(fpr) by Newton steps on log Φ."""
    log_fpr = mpmath.log(fpr)
    z = -mpmath.sqrt(-2 * log_fpr)
    for _ in range(40):
        value = _phi(z)
        z -= (mpmath.log(value) - log_fpr) * value / mpmath.npdf(z)
    return z


def _phi(x):
    return mpmath.erfc(-x / mpmath.sqrt(2)) / 2


@pytest.mark.parametrize("fpr", [0.3, 1e-3, 1e-10, 1e-100, 1e-300])
def test_tpr_to_the_far_tail(curve, fpr):
    tpr, beta = curve.log_tpr(fpr), curve.log_beta(fpr)
    for i in range(len(SETTINGS)):
        z = _quantile(fpr) + mpmath.sqrt(SETTINGS[i][1]) / mpmath.mpf(SETTINGS[i][0])
        for found, exact in ((tpr, _log_phi(z)), (beta, _log_phi(-z))):
            assert found.lower[i] <= exact <= found.upper[i]
            assert found.upper[i] - found.lower[i] <= max(1e-6 * abs(exact), 3e-308)


def _log_phi(x):
    return mpmath.log(_phi(x)) if x < 0 else mpmath.log1p(-_phi(-x))


def _floats(bracket):
    return jaxgdp.Bracket(*(float(side) for side in bracket))


def test_lattices_hold_the_closed_form_too(curve):
    """Without the closed forms of its Gaussian parts, what the lattice alone certifies."""
    with jax.enable_x64(True):
        for i, (sigma, steps) in enumerate(SETTINGS):
            alone = curve._curves[i][-1]._replace(gaussian_part_mu=0.0, tail_mu=np.inf)
            mu = mpmath.sqrt(steps) / mpmath.mpf(sigma)
            for fpr in (0.3, 1e-10, 1e-100):
                z = _quantile(fpr) + mu
                for name, exact in (("log_tpr", _log_phi(z)), ("log_beta", _log_phi(-z))):
                    found = _floats(quantity(name, alone, np.log(fpr), symmetric=True))
                    slack = 1e-12 * (1 + abs(exact))
                    assert found.lower <= exact + slack and found.upper >= exact - slack
            found = _floats(quantity("mu", alone, np.log(1e-10), symmetric=True))
            assert found.lower <= mu <= found.upper
            assert found.upper - found.lower <= 1e-2 * mu
            found = _floats(quantity("advantage", alone, 0.0, symmetric=True))
            assert found.lower <= 2 * _phi(mu / 2) - 1 <= found.upper


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 3.0, 20.0])
def test_delta(curve, epsilon):
    found = curve.delta(epsilon)
    for i in range(len(SETTINGS)):
        mu = mpmath.sqrt(SETTINGS[i][1]) / mpmath.mpf(SETTINGS[i][0])
        exact = _phi(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * _phi(-mu / 2 - epsilon / mu)
        assert found.lower[i] <= exact <= found.upper[i]
        assert found.upper[i] - found.lower[i] <= max(1e-9 * exact, 3e-308)


@pytest.mark.parametrize("delta", [1e-3, 1e-10, 1e-100, 1e-290])
def test_epsilon(curve, delta):
    found = curve.epsilon(delta)
    for i in range(len(SETTINGS)):
        mu = mpmath.sqrt(SETTINGS[i][1]) / mpmath.mpf(SETTINGS[i][0])
        assert found.upper[i] - found.lower[i] <= 1e-9 * found.upper[i]
        for epsilon, above in ((found.lower[i], True), (found.upper[i], False)):
            epsilon = mpmath.mpf(epsilon)
            there = _phi(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * _phi(-mu / 2 - epsilon / mu)
            assert epsilon == 0 or (there >= delta) == above


@pytest.mark.parametrize("prior", [1e-6, 0.3, 0.5, 0.9])
def test_bayes_risk(curve, prior):
    found = curve.bayes_risk(prior)
    for i in range(len(SETTINGS)):
        mu = mpmath.sqrt(SETTINGS[i][1]) / mpmath.mpf(SETTINGS[i][0])
        threshold = mpmath.log(prior / (1 - mpmath.mpf(prior))) / mu
        exact = prior * _phi(-threshold - mu / 2) + (1 - mpmath.mpf(prior)) * _phi(
            threshold - mu / 2
        )
        assert found.lower[i] <= exact <= found.upper[i] <= found.lower[i] + 1e-13


def test_regret_and_advantage(curve):
    regret, eta = curve.regret(), curve.advantage()
    assert np.all(regret.lower == 0.0) and np.all(regret.upper < 1e-12)
    for i in range(len(SETTINGS)):
        exact = 2 * _phi(mpmath.mpf(exact_mu(i)) / 2) - 1
        assert eta.lower[i] - 1e-15 <= exact <= eta.upper[i] + 1e-15
        assert eta.upper[i] - eta.lower[i] <= 1e-11 * exact


def test_privacy_that_is_almost_perfect_and_none():
    tiny = jaxgdp.tradeoff(jaxgdp.dpsgd(1e6, 1.0, 1))
    assert tiny.mu().lower <= 1e-6 <= tiny.mu().upper
    assert tiny.mu().upper - tiny.mu().lower <= 1e-9
    none = jaxgdp.tradeoff(jaxgdp.dpsgd(0.5, 1.0, 2000), rtol=1e-6)
    assert none.mu().lower == pytest.approx(np.sqrt(2000) / 0.5, rel=1e-6)
    assert none.log_beta(1e-10).lower < -3000.0


def test_composition_of_gaussians_is_one_gaussian():
    mechanism = jaxgdp.compose(
        [(jaxgdp.Gaussian(3.0), 4), (jaxgdp.Gaussian(5.0), 7), jaxgdp.Gaussian(2.0)]
    )
    exact = float(jaxgdp.gdp.compose(2 / 3.0, np.sqrt(7) / 5.0, 0.5))
    found = jaxgdp.tradeoff(mechanism).mu()
    assert found.lower <= exact * (1 + 1e-12) and found.upper >= exact * (1 - 1e-12)
    assert found.upper - found.lower <= 1e-3 * exact


def test_gaussian_parts_count_from_below_only_if_they_are_exact():
    discrete, sampled, plain = (
        jaxgdp.DiscreteGaussian(10.0),
        jaxgdp.dpsgd(1.0, 0.01, 200),
        jaxgdp.Gaussian(2.0),
    )
    assert jaxgdp.tradeoff(discrete)._curves[0][-1].gaussian_part_mu == 0.0
    assert jaxgdp.tradeoff(sampled)._curves[0][-1].gaussian_part_mu == 0.0
    curve = jaxgdp.tradeoff(jaxgdp.compose([(plain, 3), (sampled, 1)]))._curves[0][-1]
    assert curve.gaussian_part_mu == pytest.approx(np.sqrt(3) / 2.0, rel=1e-15)
    with jax.enable_x64(True):
        # what the lattices show by themselves lies above, so the closed form claims no more than
        # there is
        for name, at in (
            ("mu", np.log(1e-10)),
            ("epsilon", np.log(1e-6)),
            ("delta", 1.0),
            ("log_tpr", np.log(1e-4)),
        ):
            alone = quantity(name, curve._replace(gaussian_part_mu=0.0), at, symmetric=True)
            both = quantity(name, curve, at, symmetric=True)
            assert both.lower <= both.upper == alone.upper and both.lower >= alone.lower
            assert _gaussian(name, float(curve.gaussian_part_mu)) <= float(alone.upper)


def _gaussian(name, mu):
    if name == "mu":
        return mu
    if name == "epsilon":
        return jaxgdp.gdp.epsilon(delta=1e-6, mu=mu)
    return (
        jaxgdp.gdp.delta(epsilon=1.0, mu=mu)
        if name == "delta"
        else float(_log_phi(_quantile(1e-4) + mu))
    )


def test_slope_of_the_profile_in_mu_that_bounds_the_regret():
    mu = np.geomspace(1e-3, 30.0, 60)
    for epsilon in (0.0, 0.1, 1.0, 10.0):
        gap = (
            jaxgdp.gdp.delta(epsilon=epsilon, mu=mu * 1.01)
            - jaxgdp.gdp.delta(epsilon=epsilon, mu=mu)
        ) / (1.0 + np.exp(epsilon))
        assert np.all(gap <= 0.01 * mu / np.sqrt(8.0 * np.pi) + 1e-15)
