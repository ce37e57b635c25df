"""Closed-form conversions err on the safe side, to the last digit and over the whole range of their
arguments.
"""

import mpmath as mp
import numpy as np
import pytest

from jaxgdp import conversions

RNG = np.random.default_rng(7)
NUMBER = 120
TIGHT = mp.mpf("1e-11")  # how far above or below they may be, relative


@pytest.fixture(autouse=True)
def digits():
    with mp.workdps(60):
        yield


def log_uniform(low, high, number=NUMBER):
    return 10.0 ** RNG.uniform(low, high, number)


def epsilons():
    return np.concatenate([log_uniform(-300, 300), log_uniform(-16, 3), [0.0] * 4])


def above(found, exact, tight=TIGHT):
    found = float(found)
    if not found >= exact:
        return False
    return exact > mp.mpf("1e308") or found <= exact * (1 + tight) + mp.mpf("2.3e-308")


def test_approximate_dp():
    epsilon = epsilons()
    number = len(epsilon)
    delta = np.where(RNG.random(number) < 0.5, log_uniform(-300, 0, number), RNG.random(number))
    delta[RNG.random(number) < 0.1] = 0.0
    alpha = np.where(
        RNG.random(number) < 0.5,
        log_uniform(-300, 0, number),
        (1 - delta) * (1 - log_uniform(-15, -1, number)),
    )
    curve = conversions.beta_from_approximate_dp(fpr=alpha, epsilon=epsilon, delta=delta)
    advantage = conversions.advantage_from_approximate_dp(epsilon=epsilon, delta=delta)
    for e, d, a, beta, eta in zip(epsilon, delta, alpha, curve, advantage, strict=True):
        e, d, a = mp.mpf(e), mp.mpf(d), mp.mpf(a)
        ratio = mp.exp(min(e, mp.mpf(10) ** 5))
        exact = max(1 - d - ratio * a, (1 - d - a) / ratio, 0)
        assert 0.0 <= beta <= exact <= beta + mp.mpf("1e-15"), (a, e, d)
        assert above(eta, mp.tanh(e / 2) + 2 * d / (1 + ratio)), (e, d)


def test_pure_dp_and_exponential_mechanism():
    epsilon = epsilons()
    pure, ranged = (
        conversions.zcdp_from_pure_dp(epsilon=epsilon),
        conversions.zcdp_from_exponential_mechanism(epsilon=epsilon),
    )
    for e, rho, other in zip(epsilon, pure, ranged, strict=True):
        e = mp.mpf(e)
        assert above(rho, e * mp.tanh(e / 2)) and above(other, e * e / 8), e
    assert conversions.zcdp_from_pure_dp(epsilon=0.0) == 0.0
    for e, mu in zip(
        epsilon, conversions.mu_from_approximate_dp(epsilon=epsilon, delta=0.0), strict=True
    ):
        if 1e-20 < e < 30.0:
            exact = mp.sqrt(8) * mp.erfinv(mp.tanh(mp.mpf(e) / 2))
            assert above(mu, exact), e


def test_simple_zcdp():
    rho = epsilons()
    delta = np.where(
        RNG.random(len(rho)) < 0.7,
        log_uniform(-300, -0.001, len(rho)),
        1 - log_uniform(-15, -0.1, len(rho)),
    )
    found = conversions.simple_epsilon_from_zcdp(delta=delta, rho=rho)
    for d, r, epsilon in zip(delta, rho, found, strict=True):
        r = mp.mpf(r)
        assert above(epsilon, r + 2 * mp.sqrt(-r * mp.log(mp.mpf(d)))), (d, r)
    # just where it gives δ back, and far from there
    epsilon = np.where(
        RNG.random(len(rho)) < 0.5,
        np.minimum(found, 1e308),
        np.minimum(rho * log_uniform(0, 3, len(rho)), 1e308),
    )
    for e, r, d in zip(
        epsilon, rho, conversions.simple_delta_from_zcdp(epsilon=epsilon, rho=rho), strict=True
    ):
        e, r = mp.mpf(e), mp.mpf(r)
        gap = max(e - r, 0)
        assert above(d, mp.exp(-gap * gap / (4 * r)) if r > 0 else mp.mpf(0)), (e, r)


def test_delta_below_every_double_is_not_zero():
    assert 0.0 < conversions.delta_from_zcdp(epsilon=100.0, rho=0.01) <= 2.3e-308
    assert 0.0 < conversions.simple_delta_from_zcdp(epsilon=100.0, rho=0.01) <= 2.3e-308
    assert 0.0 < conversions.delta_from_rdp(epsilon=2000.0, orders=[2.0], rho=[1.0]) <= 2.3e-308
    assert (
        conversions.delta_from_zcdp(epsilon=1.0, rho=0.0) == 0.0
        and conversions.delta_from_rdp(epsilon=1.0, orders=[np.inf], rho=[0.5]) == 0.0
    )


def test_infinite_order_is_randomized_response():
    rho = np.concatenate([log_uniform(-300, 2), log_uniform(-8, 2)])
    epsilon = rho * (1 - log_uniform(-15, 0, len(rho)))
    delta = np.where(
        RNG.random(len(rho)) < 0.5,
        log_uniform(-300, -0.1, len(rho)),
        np.clip(0.5 * rho * RNG.random(len(rho)), 1e-300, 0.9),
    )
    for r, e, d in zip(rho, epsilon, delta, strict=True):
        found = (
            conversions.delta_from_rdp(epsilon=e, orders=[np.inf], rho=[r]),
            conversions.epsilon_from_rdp(delta=d, orders=[np.inf], rho=[r]),
        )
        r, e, d = mp.mpf(r), mp.mpf(e), mp.mpf(d)
        assert above(found[0], -mp.expm1(e - r) / (1 + mp.exp(-r))), (e, r)
        share = d * (1 + mp.exp(-r))
        exact = max(r + mp.log1p(-share), 0) if share < 1 else mp.mpf(0)
        assert exact <= found[1] <= exact + (r + share) * mp.mpf("1e-12"), (d, r)
