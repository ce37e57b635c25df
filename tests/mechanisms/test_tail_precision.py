"""Caps and floors in closed form: on the safe side of the exact value, and within 1e-12 of it, at
any argument.
"""

import jax
import mpmath
import numpy as np
import pytest

from jaxgdp import (
    ApproximateDP,
    DiscreteGaussian,
    DiscreteLaplace,
    ExponentialMechanism,
    Gaussian,
    Laplace,
    PureDP,
    RandomizedResponse,
)
from jaxgdp.numerics import normal

CLOSE = 1e-12
LEAST = 1e-150  # a μ whose square is no normal double is rounded up to this or less


def quantile_above_half(x, rest):
    """Φ⁻¹(½ + x), with rest = ½ − x to full relative accuracy."""
    if x < mpmath.mpf("0.4"):
        return mpmath.sqrt(2) * mpmath.erfinv(2 * x)
    # Newton's method on log Φ(−z)
    log_rest = mpmath.log(rest)
    z = mpmath.sqrt(max(-2 * log_rest - 1, mpmath.mpf("0.1")))
    if z > 1e10:
        # log Φ(−z) = −z²/2 − log(z√(2π)) − 1/z² + …
        for _ in range(60):
            z = mpmath.sqrt(2 * (-log_rest - mpmath.log(z * mpmath.sqrt(2 * mpmath.pi)) - 1 / z**2))
        return z
    step = z
    while abs(step) > z * mpmath.mpf(10) ** -25:
        tail = mpmath.erfc(z / mpmath.sqrt(2)) / 2
        step = (mpmath.log(tail) - log_rest) * tail / mpmath.npdf(z)
        z += step
    return z


def pure(epsilon):
    e = mpmath.mpf(float(epsilon))
    return 2 * quantile_above_half(mpmath.tanh(e / 2) / 2, 1 / (1 + mpmath.exp(e)))


def laplace(scale):
    half = 1 / (2 * mpmath.mpf(float(scale)))
    return 2 * quantile_above_half(-mpmath.expm1(-half) / 2, mpmath.exp(-half) / 2)


ARGUMENTS = np.concatenate(
    [np.geomspace(1e-300, 1e300, 31), np.geomspace(1e-13, 60.0, 20), [0.16, 0.17, 1.38, 1.4]]
)
CASES = {
    "RandomizedResponse": (RandomizedResponse, pure),
    "RandomizedResponse over 7": (lambda e: RandomizedResponse(e, 7), pure),
    "PureDP": (lambda e: PureDP(e).canonical(), pure),
    "ApproximateDP": (lambda e: ApproximateDP(e, 0.0), pure),
    "ExponentialMechanism": (ExponentialMechanism, lambda e: pure(float(e) / 2)),
    "DiscreteLaplace": (lambda b: DiscreteLaplace(b).canonical(), lambda b: pure(1.0 / b)),
    "Laplace": (Laplace, laplace),
    "Gaussian": (lambda s: Gaussian(s).canonical(), lambda s: 1 / mpmath.mpf(float(s))),
}


@pytest.mark.parametrize("name", CASES)
def test_tails_are_rounded_up_by_little(name):
    build, exact = CASES[name]
    with mpmath.workdps(45):
        for argument in ARGUMENTS:
            wanted = exact(argument)
            with np.errstate(all="ignore"):
                found = np.sqrt(np.asarray(build(argument).tail_precision()))
            assert found >= wanted, argument
            assert found <= max(wanted * (1 + CLOSE), LEAST) or wanted > 1e153, argument


def test_precision_that_an_attacker_has_is_rounded_down():
    for sigma in ARGUMENTS:
        with np.errstate(all="ignore"):
            found = np.sqrt(np.asarray(Gaussian(sigma).canonical().gaussian_part_precision()))
        wanted = 1 / mpmath.mpf(float(sigma))
        assert found <= wanted, sigma
        assert found >= wanted * (1 - CLOSE) or not LEAST < wanted < 1e153, sigma


def largest_of_discrete_gaussian(sigma, s):
    """Largest Φ⁻¹(TPR) − Φ⁻¹(α) over all thresholds, from sums over the integers."""
    sigma = mpmath.mpf(float(sigma))
    reach = int(14 * sigma) + 3 * s + 12
    terms = {
        k: mpmath.exp(-(mpmath.mpf(k) ** 2) / (2 * sigma**2)) for k in range(-reach, reach + 1)
    }
    total = mpmath.fsum(terms.values())

    def quantile(m):
        """Φ⁻¹(Pr[k < m])."""
        if m < 1:
            return -quantile(1 - m)
        excess = (terms[0] / 2 + mpmath.fsum(terms[k] for k in range(1, m))) / total
        rest = mpmath.fsum(terms[k] for k in range(m, reach + 1)) / total
        return quantile_above_half(excess, rest)

    return max(quantile(m) - quantile(m - s) for m in range(1 - s, 2 * s + 2))


@pytest.mark.parametrize("sigma", [0.3, 1.0, 4.0, 13.0, 14.0, 20.0, 60.0])
def test_discrete_gaussian_is_exact_at_every_sensitivity(sigma):
    with mpmath.workdps(50):
        for s in (1, 2, 3, 8, 15, 16):
            wanted = largest_of_discrete_gaussian(sigma, s)
            found = np.sqrt(np.asarray(DiscreteGaussian(sigma, s).tail_precision()))
            assert wanted <= found <= wanted * (1 + CLOSE), s


def test_discrete_gaussian_far_out():
    for sigma in (1e3, 1e7, 1e100, 1e145):
        for s in (1, 16):
            # z_{m+1} − z_m lies between 1/σ and its value at m = 0, (1 + 1/(24σ²))/σ
            found = np.sqrt(np.asarray(DiscreteGaussian(sigma, s).tail_precision())) * sigma / s
            assert 1.0 - 2e-16 <= found <= (1.0 + 20.0 / sigma**2) * (1.0 + CLOSE)


@pytest.mark.parametrize("library", ["numpy", "jax"])
def test_quantile_of_one_half_and_a_little(library):
    x = np.concatenate(
        [np.geomspace(1e-300, 0.5, 100)[:-1], [0.0398, 0.0399, 0.2999, 0.3001, 0.49, 0.4999999]]
    )
    with mpmath.workdps(45), jax.enable_x64(True):
        rest = [mpmath.mpf("0.5") - mpmath.mpf(float(a)) for a in x]
        log_rest = np.array([float(mpmath.log(a)) for a in rest])
        given = (
            (x, log_rest)
            if library == "numpy"
            else tuple(jax.numpy.asarray(a) for a in (x, log_rest))
        )
        found = np.asarray(normal.ndtri_half_plus(*given))
        exact = [quantile_above_half(mpmath.mpf(float(a)), b) for a, b in zip(x, rest, strict=True)]
    assert max(abs(f / e - 1) for f, e in zip(found, exact, strict=True)) < 1e-14
