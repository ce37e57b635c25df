"""Normal quantiles and Gaussian curves in many digits."""

import mpmath
from mpmath import mpf
from scipy.special import ndtri_exp


def cdf(z):
    """Φ(z)."""
    return mpmath.erfc(-z / mpmath.sqrt(2)) / 2


def quantile(rate):
    """Φ⁻¹ of a rate in [0, 1], by Newton's method on log Φ from what doubles know."""
    if rate <= 0:
        return -mpmath.inf
    if rate >= 1:
        return mpmath.inf
    if rate > mpf("0.5"):
        return -quantile(1 - rate)
    if rate > mpf("0.3"):
        return mpmath.sqrt(2) * mpmath.erfinv(2 * rate - 1)
    target = mpmath.log(rate)
    z = mpf(float(ndtri_exp(float(target))))
    for _ in range(60):
        value = cdf(z)
        step = (mpmath.log(value) - target) * value / mpmath.npdf(z)
        z -= step
        if abs(step) < mpf(10) ** -30 * (1 + abs(z)):
            break
    return z


def delta(mu, epsilon):
    """δ_μ(ε) for any real ε."""
    if mu == 0:
        return max(-mpmath.expm1(epsilon), mpf(0))
    return cdf(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * cdf(-mu / 2 - epsilon / mu)
