"""Closed forms of Gaussian differential privacy over the whole range of their arguments, against 50
digits and more.
"""

import mpmath as mp
import numpy as np
import pytest
from exact_profiles import phi, quantile

from jaxgdp import gdp

RELATIVE = mp.mpf("1e-12")
RNG = np.random.default_rng(20261122)
NUMBER = 60


@pytest.fixture(autouse=True)
def digits():
    with mp.workdps(50):
        yield


def log_uniform(low, high, number=NUMBER):
    return 10.0 ** RNG.uniform(low, high, number)


def mills(t):
    """Φ(−t)/φ(t)."""
    if t > 1e8:
        return 1 / t - 1 / t**3 + 3 / t**5
    return mp.sqrt(mp.pi / 2) * mp.exp(t * t / 2) * mp.erfc(t / mp.sqrt(2))


def profile(epsilon, mu):
    """δ_μ(ε) and 1 − δ_μ(ε), with as many digits as cancel."""
    e, m = mp.mpf(float(epsilon)), mp.mpf(float(mu))
    lost = 4 * max(0, mp.log10(max(e / m, m))) + 2 * max(0, -mp.log10(m))
    with mp.workdps(int(min(60 + lost, 700))):
        a, b = m / 2 - e / m, -m / 2 - e / m
        if abs(a) > 1e6:
            return mp.mpf(a > 0), mp.mpf(a < 0)
        second = mp.exp(-a * a / 2) / mp.sqrt(2 * mp.pi) * mills(-b)
        return +(phi(a) - second), +(phi(-a) + second)


def agrees(found, exact):
    found = float(found)
    if exact > mp.mpf("1.79e308"):
        return found >= 1.79e308
    if exact < mp.mpf("2.3e-308"):
        return 0.0 <= found <= 2.3e-308
    return abs(found / exact - 1) <= RELATIVE


def _places():
    """(ε, μ) wherever the profile is neither 0 nor 1, and beyond."""
    mu = np.concatenate([log_uniform(-300, 150), log_uniform(-12, 2), log_uniform(-3, 1.7)])
    a = np.concatenate(
        [RNG.uniform(-38, 38, NUMBER), RNG.uniform(-38, 10, NUMBER), RNG.normal(0, 5, NUMBER)]
    )
    epsilon = np.maximum(mu * (mu / 2 - a), 0.0)
    return np.append(epsilon, [1e300, 4.656e-9, 0.0, 1e-300]), np.append(
        mu, [1.0, 2.1415e-9, 1e-300, 1e300]
    )


def test_delta():
    epsilon, mu = _places()
    for e, m, found in zip(epsilon, mu, gdp.delta(epsilon=epsilon, mu=mu), strict=True):
        assert agrees(found, profile(e, m)[0]), (e, m, found)
    epsilon = np.minimum(epsilon, 1e3)
    for e, m, found in zip(epsilon, mu, gdp.delta(epsilon=-epsilon, mu=mu), strict=True):
        exact = mp.exp(-mp.mpf(e)) * profile(e, m)[0] - mp.expm1(-mp.mpf(e))
        assert agrees(found, exact), (-e, m, found)


def test_bayes_risk():
    middle = 0.5 + log_uniform(-16, -1) * RNG.choice([-1, 1], NUMBER)
    prior = np.concatenate([log_uniform(-300, -0.3), RNG.random(NUMBER), middle])
    mu = np.concatenate([log_uniform(-300, 150), log_uniform(-5, 1.9, 2 * NUMBER)])
    for p, m, found in zip(prior, mu, gdp.bayes_risk(prior=prior, mu=mu), strict=True):
        rare = min(mp.mpf(p), 1 - mp.mpf(p))
        threshold = mp.log((1 - rare) / rare)
        assert agrees(found, rare * _rest(threshold, m)), (p, m, found)


def _rest(epsilon, mu):
    m = mp.mpf(float(mu))
    with mp.workdps(700 if m < 1e-20 or m > 1e20 else 100):
        a = m / 2 - epsilon / m
        if abs(a) > 1e6:
            return mp.mpf(a < 0)
        return phi(-a) + mp.exp(-a * a / 2) / mp.sqrt(2 * mp.pi) * mills(m / 2 + epsilon / m)


def test_mu_from_epsilon_delta():
    """δ_μ(ε) at μ·(1 ∓ 1e-12) lies on either side of δ."""
    epsilon = np.concatenate([log_uniform(-300, 300), log_uniform(-12, 3, 2 * NUMBER), [0.0] * 8])
    delta = np.concatenate([log_uniform(-300, -0.001, 2 * NUMBER), 1 - log_uniform(-15, -0.5)])
    delta = np.append(delta, [3e-13, 1e-12, 1e-300, 1e-16, 0.3, 0.5, 0.9, 1 - 1e-16])
    for e, d, mu in zip(
        epsilon, delta, gdp.mu_from_epsilon_delta(epsilon=epsilon, delta=delta), strict=True
    ):
        below, above = (profile(e, mp.mpf(mu) * (1 + side * RELATIVE))[0] for side in (-1, 1))
        assert below <= mp.mpf(d) <= above, (e, d, mu)


def test_epsilon():
    """ε·(1 ± 1e-12) lies on either side of what a δ that differs in its last digits allows."""
    mu = np.concatenate([log_uniform(-300, 150), log_uniform(-6, 1.7, 2 * NUMBER)])
    delta = np.concatenate([log_uniform(-300, -0.001, 2 * NUMBER), 1 - log_uniform(-15, -0.5)])
    for m, d, epsilon in zip(mu, delta, gdp.epsilon(delta=delta, mu=mu), strict=True):
        d = mp.mpf(d)
        slack = mp.mpf("1e-14") * min(d, 1 - d)
        assert _exactly(epsilon, m, 1 + RELATIVE) <= d + slack, (d, m, epsilon)
        assert epsilon == 0.0 or _exactly(epsilon, m, 1 - RELATIVE) >= d - slack, (d, m, epsilon)


def _exactly(epsilon, mu, factor):
    e, m = mp.mpf(float(epsilon)) * factor, mp.mpf(float(mu))
    lost = 4 * max(0, mp.log10(max(e / m, m))) + 2 * max(0, -mp.log10(m))
    with mp.workdps(int(min(60 + lost, 700))):
        a, b = m / 2 - e / m, -m / 2 - e / m
        if abs(a) > 1e6:
            return mp.mpf(a > 0)
        return phi(a) - mp.exp(-a * a / 2) / mp.sqrt(2 * mp.pi) * mills(-b)


def test_rates():
    alpha = np.concatenate([log_uniform(-307, 0), RNG.random(NUMBER), 1 - log_uniform(-16, -1)])
    mu = np.concatenate([log_uniform(-300, 2), log_uniform(-4, 1.9, 2 * NUMBER)])
    for a, m, fnr, tpr in zip(
        alpha, mu, gdp.beta(fpr=alpha, mu=mu), gdp.tpr(fpr=alpha, mu=mu), strict=True
    ):
        z = quantile(mp.mpf(a))
        assert agrees(fnr, phi(-z - mp.mpf(m))) and agrees(tpr, phi(z + mp.mpf(m))), (
            a,
            m,
            fnr,
            tpr,
        )


def test_mu_from_rates_that_are_near_each_other():
    fpr = np.concatenate([log_uniform(-300, -0.01), RNG.random(NUMBER)])
    further = np.where(
        RNG.random(2 * NUMBER) < 0.5,
        fpr * log_uniform(-13, 3, 2 * NUMBER),
        (1 - fpr) * RNG.random(2 * NUMBER),
    )
    tpr = np.clip(np.minimum(fpr + further, 0.999), np.nextafter(fpr, 1.0), 1.0 - 1e-16)
    for a, t, found in zip(fpr, tpr, gdp.mu_from_rates(fpr=fpr, tpr=tpr), strict=True):
        assert agrees(found, quantile(mp.mpf(t)) - quantile(mp.mpf(a))), (a, t, found)
    assert gdp.mu_from_rates(fpr=0.3, tpr=0.3) == gdp.mu_from_rates(fpr=0.3, tpr=0.2) == 0.0


def test_advantage_and_back():
    mu = np.append(log_uniform(-307, 3), log_uniform(-3, 1.7))
    for m, found in zip(mu, gdp.advantage(mu=mu), strict=True):
        assert agrees(found, mp.erf(mp.mpf(m) / mp.sqrt(8)))
    eta = np.append(log_uniform(-307, -0.001), 1 - log_uniform(-16, -0.5))
    for x, found in zip(eta, gdp.mu_from_advantage(advantage=eta), strict=True):
        exact = -2 * quantile((1 - mp.mpf(x)) / 2) if x > 1e-20 else mp.mpf(x) * mp.sqrt(2 * mp.pi)
        assert agrees(found, exact), (x, found)


def test_mu_from_pure_dp():
    epsilon = np.concatenate([log_uniform(-307, 300), log_uniform(-3, 3), [1.5e-16, 0.999999, 1.0]])
    for e, found in zip(epsilon, gdp.mu_from_pure_dp(epsilon=epsilon), strict=True):
        e = mp.mpf(e)
        if e < mp.mpf("1e-20"):
            exact = e * mp.sqrt(mp.pi / 2)
        elif e < 20:
            exact = -2 * quantile(1 / (1 + mp.exp(e)))
        else:
            exact, log_p = mp.sqrt(2 * e), -e - mp.log1p(mp.exp(-e))
            for _ in range(60):
                ratio = mills(exact)
                exact += (mp.log(ratio) - exact * exact / 2 - mp.log(2 * mp.pi) / 2 - log_p) * ratio
            exact *= 2
        assert agrees(found, exact), (e, found)
    assert gdp.mu_from_pure_dp(epsilon=0.0) == 0.0


def test_powers_and_sums():
    one, other = log_uniform(-300, 300, 2 * NUMBER), log_uniform(-300, 300, 2 * NUMBER)
    columns = zip(
        one,
        other,
        gdp.rdp(order=one, mu=other),
        gdp.compose(one, other, one),
        gdp.zcdp(mu=one),
        gdp.mu_from_zcdp_of_gaussian(rho=one),
        strict=True,
    )
    for x, y, rdp, both, rho, back in columns:
        x, y = mp.mpf(x), mp.mpf(y)
        assert agrees(rdp, x * y * y / 2) and agrees(both, mp.sqrt(2 * x * x + y * y)), (x, y)
        assert agrees(rho, x * x / 2) and agrees(back, mp.sqrt(2 * x)), x
    assert gdp.compose(0.0, 0.0) == 0.0 and gdp.compose([3.0, 0.0], [[4.0], [0.0]]).tolist() == [
        [5.0, 4.0],
        [3.0, 0.0],
    ]


@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
def test_shapes_are_those_of_the_arguments(shape):
    mu = np.full(shape, 1.3)
    calls = (
        gdp.delta(epsilon=0.5, mu=mu),
        gdp.epsilon(delta=1e-3, mu=mu),
        gdp.bayes_risk(prior=0.3, mu=mu),
        gdp.mu_from_epsilon_delta(epsilon=mu, delta=0.1),
        gdp.mu_from_pure_dp(epsilon=mu),
        gdp.mu_from_rates(fpr=0.1, tpr=np.full(shape, 0.2)),
        gdp.mu_from_advantage(advantage=np.full(shape, 0.2)),
        gdp.compose(mu, 2.0),
        gdp.zcdp(mu=mu),
    )
    for found in calls:
        assert np.shape(found) == shape and np.asarray(found).dtype == np.float64
