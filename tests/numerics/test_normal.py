"""Normal tails, quantiles and closed forms against mpmath."""

import jax
import mpmath
import numpy as np
import pytest

import jaxgdp
from jaxgdp.numerics import normal

DIGITS = 50


def log_tail(z):
    return mpmath.log(mpmath.erfc(-mpmath.mpf(z) / mpmath.sqrt(2)) / 2)


def test_erfcx():
    z = np.concatenate([np.linspace(0.0, 20.0, 200), np.geomspace(1e-6, 1e3, 100)])
    with jax.enable_x64(True):
        found = np.asarray(normal.erfcx(z))
    exact = [mpmath.exp(mpmath.mpf(float(x)) ** 2) * mpmath.erfc(float(x)) for x in z]
    assert max(abs(float(f / e - 1)) for f, e in zip(found, exact, strict=True)) < 2e-15


def test_quantile_in_the_log_domain():
    z = np.concatenate([np.linspace(-8.0, 1.0, 30), -np.geomspace(9.0, 3000.0, 40)])
    log_p = np.array([float(log_tail(x)) for x in z])
    with jax.enable_x64(True):
        found = np.asarray(normal.ndtri_exp(log_p))
    assert np.max(np.abs(found / z - 1)) < 2e-13


def test_log_of_the_normal_distribution():
    z = np.concatenate([np.linspace(-40.0, 5.0, 181), -np.geomspace(50.0, 1e4, 20)])
    with jax.enable_x64(True):
        found = np.asarray(normal.log_ndtr(z))
    exact = np.array([float(log_tail(x)) for x in z])
    assert np.max(np.abs(found / exact - 1)) < 3e-14


@pytest.mark.parametrize("mu", [1e-3, 0.3, 2.0, 40.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 5.0, 60.0])
def test_gaussian_profile(mu, epsilon):
    m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
    phi = lambda x: mpmath.erfc(-x / mpmath.sqrt(2)) / 2
    with mpmath.workdps(2000 if mu == 1e-3 else 60):
        exact = phi(m / 2 - e / m) - mpmath.exp(e) * phi(-m / 2 - e / m)
        log_exact = float(mpmath.log(exact))
    with jax.enable_x64(True):
        found = float(normal.log_gaussian_delta(epsilon, mu))
    assert found == pytest.approx(log_exact, rel=1e-9, abs=1e-9)
    if log_exact > -700:
        assert float(jaxgdp.gdp.delta(epsilon=epsilon, mu=mu)) == pytest.approx(
            float(np.exp(log_exact)), rel=1e-8
        )


def test_closed_forms_invert_each_other():
    mu, delta = np.array([0.01, 0.5, 3.0])[:, None], np.array([1e-200, 1e-10, 1e-3])
    epsilon = jaxgdp.gdp.epsilon(delta=delta, mu=mu)
    inside = epsilon > 0.0
    assert np.allclose(
        jaxgdp.gdp.delta(epsilon=epsilon, mu=mu)[inside],
        np.broadcast_to(delta, (3, 3))[inside],
        rtol=1e-6,
    )
    back = jaxgdp.gdp.mu_from_epsilon_delta(epsilon=epsilon, delta=delta)
    assert np.allclose(back[inside], np.broadcast_to(mu, (3, 3))[inside], rtol=1e-6)
    alpha = np.linspace(0.01, 0.99, 9)
    assert np.allclose(jaxgdp.gdp.beta(fpr=jaxgdp.gdp.beta(fpr=alpha, mu=1.3), mu=1.3), alpha)
    assert jaxgdp.gdp.compose(3.0, 4.0) == 5.0
    assert float(jaxgdp.gdp.mu_from_pure_dp(epsilon=1.0)) == pytest.approx(
        float(-2 * _quantile(1 / (1 + np.e)))
    )


def _quantile(p):
    return mpmath.findroot(lambda z: mpmath.erfc(-z / mpmath.sqrt(2)) / 2 - p, -0.6)
