"""Moments of very many uses of very little, against many digits."""

import numpy as np
import pytest
from mpmath import mp, mpf

import jaxgdp
from jaxgdp.accounting.certify.discrete_pairs import coarsened_pair, dominating_pair
from jaxgdp.accounting.certify.tilted_moments import Parts, growth_of, tilted_sum
from jaxgdp.accounting.steer.limit_plan import loss_points


def _log_moment(sigma, p, s):
    """log E_P e^{sℓ} of one step, by quadrature of what has the order ℓ²."""
    sigma, p, s = mpf(sigma), mpf(p), mpf(s)

    def term(z):
        more = p * mp.expm1(z / sigma - 1 / (2 * sigma**2))
        return mp.npdf(z) * ((1 + more) ** s - 1 - s * more)

    ends = [-20, -8, -4, -2, 0, 2, 4, 8, 20 + 2 / sigma]
    return mp.log1p(mp.quad(term, ends))


@pytest.mark.parametrize(
    "sigma, p, s",
    [(1.0, 1e-12, 0.5), (1.0, 1e-12, 7.0), (1.0, 1e-6, 5.0), (0.3, 0.1, 2.0), (5.0, 1e-3, 30.0)],
)
def test_log_moments_hold_those_of_many_digits(sigma, p, s):
    mechanism = jaxgdp.SubsampledGaussian(sigma, p)
    ell = loss_points(mechanism, 70.0, 2048)
    with np.errstate(all="ignore"):
        cells = mechanism.cells(ell, np.inf)
        low, high = (
            tilted_sum(Parts(((pair(cells, ell), 1e15),)), np.array([s]))
            for pair in (coarsened_pair, dominating_pair)
        )
    with mp.workdps(45):
        exact = 1e15 * float(_log_moment(sigma, p, s))
    found = np.array([low.log_moment[0], high.log_moment[0]]) * np.sign(s - 1.0)
    size, error = abs(exact), max(low.log_error[0], high.log_error[0])
    assert found[0] - error <= exact * np.sign(s - 1.0) <= found[1] + error
    assert found[1] - found[0] <= 2e-4 * size + 2.0 * error
    assert error <= 1e-5 * (1.0 + size)


@pytest.mark.parametrize("s", [0.3, 0.9, 0.99])
def test_moments_far_below_1_keep_their_digits(s):
    """Nearly every loss is log(1 − p) under P; the others, N(0, σ²) next to 1, add e^{(s² −
    s)/(2σ²)} < e^{−4000} to the moment."""
    sigma, p = 1e-3, 1.0 - 2.0**-40
    mechanism = jaxgdp.SubsampledGaussian(sigma, p)
    ell = loss_points(mechanism, 70.0, 512)
    with np.errstate(all="ignore"):
        cells = mechanism.cells(ell, np.inf)
        for pair in (coarsened_pair(cells, ell), dominating_pair(cells, ell)):
            found = tilted_sum(Parts(((pair, 1e9),)), np.array([s]))
            exact = -1e9 * s * 40.0 * np.log(2.0)
            assert abs(found.log_moment[0] - exact) <= found.log_error[0] <= 1e-9 * abs(exact)


def test_many_steps_of_hardly_any_noise_are_told_apart():
    for p in (0.7, 1.0 - 1e-12):
        found = jaxgdp.measure(jaxgdp.dpsgd(2e-5, p, 10**7), "advantage")
        assert found.advantage.lower > 1.0 - 1e-9 and found.status["advantage"] == 0


@pytest.mark.parametrize("least", [-50.0, -599.0, -740.0])
@pytest.mark.parametrize("size", [1e-9, 1.0, 200.0, 700.0])
def test_growth_has_all_its_digits(least, size):
    """Masses next to the least doubles, none at all, and exponents that overflow alone."""
    rng = np.random.default_rng(0)
    log_p = np.append(rng.uniform(least, 0.0, 60), -np.inf)
    exponent = np.minimum(rng.uniform(-size, size, (4, 61)), 600.0 - log_p)
    with np.errstate(all="ignore"):
        p = np.exp(log_p)
        found = growth_of(log_p, p, exponent)
    for (_, j), value, x in zip(np.ndindex(found.shape), found.flat, exponent.flat, strict=True):
        mass = mp.exp(mpf(float(log_p[j]))) if p[j] > 0.0 or log_p[j] > -np.inf else mpf(0)
        exact, units = mass * mp.expm1(mpf(float(x))), 8.0 + abs(log_p[j]) + abs(x)
        if log_p[j] == -np.inf:
            assert value == 0.0
        else:
            assert abs(value - float(exact)) <= 2.3e-16 * units * abs(float(exact)) + 1e-307
