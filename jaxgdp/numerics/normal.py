"""Normal probabilities in the log domain: tails, intervals, quantiles below every double."""

from __future__ import annotations

import numpy as np
import scipy.special

from . import namespace as xp
from .errors import LOG, LOGS, PRECISION, SQUARED_QUANTILE, UNIT
from .shapes import Array

LOG_SQRT_2PI = 0.5 * np.log(2.0 * np.pi)

# Polynomial in t = (z - 3)/(z + 3) for (1 + 2z)·erfcx(z), z >= 0: a Chebyshev fit computed with 50
# digits, rewritten in powers of t.
_ERFCX = (
    1.25300805826972955,
    -0.135621106124581159,
    -0.0475622943534203791,
    0.129645158702759392,
    -0.119273663416760023,
    0.0683080273440099038,
    -0.0237705148915300752,
    0.00252939181569396954,
    0.00188869009774414947,
    -0.000779832269654330746,
    -0.000105158312978131147,
    0.000125099342458373315,
    4.94412434222324061e-6,
    -0.0000201005422685267376,
    -7.18788383439595206e-7,
    3.47237094497921249e-6,
    3.36697908063019991e-7,
    -6.16601146042284179e-7,
    -1.20541422864063391e-7,
    1.01836206040209123e-7,
    2.78438812651341282e-8,
    -1.33129196617873429e-8,
    -3.18135414342662964e-9,
    9.86253351171044623e-10,
)


# Φ⁻¹(½ + x)/y in powers of y², y = x·√(2π), highest first; the next term is below 2e-17 for y < 0.1
_QUANTILE = (20036983 / 6227020800, 34807 / 5702400, 4369 / 362880, 127 / 5040, 7 / 120, 1 / 6, 1.0)
_SERIES = 0.1  # y up to which the series serves
_TAIL = 0.3  # x from which on the quantile is that of the tail
_LEAST = 1e-307  # a square below this is no normal double
_DENSITY = float(np.exp(-LOG_SQRT_2PI))
_FAR = -100.0  # z below which a slope of Mills ratios is that of its series
_SMALL_MU = 1e-4  # μ below which the advantage is linear in it, to a billionth


def erfcx(z: Array):
    """Scaled complementary error function e^{z²}·erfc(z) for z ≥ 0, to ``errors.ERFCX`` relative.

    NumPy arrays get SciPy's. For the compiler a single polynomial in (z − 3)/(z + 3) multiplies
    1/(1 + 2z), so there is no regime switch and it runs in vectors. Infinite z gives 0."""
    if not xp.is_jax(z):
        return scipy.special.erfcx(z)
    finite = xp.minimum(z, 1e300)
    t = 1.0 - 6.0 / (finite + 3.0)
    value = xp.full_like(t, _ERFCX[-1])
    for coefficient in _ERFCX[-2::-1]:
        value = value * t + coefficient
    return xp.where(xp.isinf(z), 0.0, value / (1.0 + 2.0 * finite))


def half_mills(z: Array | float):
    """Φ(−|z|)·e^{z²/2}, the tail probability without its exponential factor."""
    return 0.5 * erfcx(xp.abs(z) * np.sqrt(0.5))


def log_sub(a: Array, b: Array | float):
    """log(e^a − e^b) for a ≥ b; −inf where they meet (or where b > a by rounding)."""
    gap = xp.where(a > b, b - a, -1.0)
    return xp.where(a > b, a + xp.log(-xp.expm1(gap)), -xp.inf)


def log_error(*logs: Array):
    """Absolute error of the log of what a few operations make of numbers with these logs.

    Method: docs/method/rounding.md#constants
    """
    return LOGS + LOG * UNIT * sum(xp.where(xp.isfinite(log), xp.abs(log), 0.0) for log in logs)


def log1mexp(a: Array | float):
    """log(1 − e^a) for a ≤ 0.

    Method: docs/method/rounding.md#constants
    """
    a = xp.minimum(a, 0.0)
    # (below e^a = 0.29, so that the compiler's log1p is not used where it is worst, see
    # ``errors.LOG1P``)
    near = a > -1.25
    return xp.where(near, xp.log(-xp.expm1(a)), xp.log1p(-xp.exp(xp.where(near, -1.0, a))))


def ndtri_exp(log_p: Array):
    """Φ⁻¹(e^{log_p}) for log_p in [−inf, 0], accurate at either end.

    Above log_p = −600 the quantile of the double is used, or minus that of 1 − e^{log_p} where that
    is the smaller one. Below, w = z² solves w + log(2πw) + 2/w − 5/w² + 74/(3w³) − 353/(2w⁴) =
    −2·log_p, from the logarithm of Mills' ratio; one Newton step from a − log(2πa), a = −2·log_p,
    leaves 1e-14 relative.

    Method: docs/method/rounding.md#constants
    """
    deep = log_p < -600.0
    high = log_p > -0.6931471805599453
    # (one of both is exponentiated: the rest next to 1 has all its digits only as a difference)
    tail = xp.where(
        high, -xp.expm1(xp.where(high, log_p, -1.0)), xp.exp(xp.where(deep | high, -1.0, log_p))
    )
    central = xp.where(high, -1.0, 1.0) * xp.ndtri(tail)
    a = xp.where(deep, -2.0 * xp.maximum(log_p, -5e299), 1200.0)
    shift = xp.log(a) + np.log(2.0 * np.pi)
    w = a - shift
    x = shift / a
    log_ratio = -x * (
        1.0 + x * (1 / 2 + x * (1 / 3 + x * (1 / 4 + x * (1 / 5 + x * (1 / 6 + x / 7)))))
    )
    v = 1.0 / w
    series = v * (2.0 - v * (5.0 - v * (74.0 / 3.0 - v * 353.0 / 2.0)))
    w = w - (log_ratio + series) / (1.0 + v * (1.0 - v * (2.0 - 10.0 * v)))
    # (so deep that nothing but −2·log_p is left, which may be no double)
    root = xp.where(log_p < -1e299, np.sqrt(2.0) * xp.sqrt(-xp.minimum(log_p, 0.0)), xp.sqrt(w))
    return xp.where(deep, -root, central)


def ndtri_half_plus(x: Array, log_rest: Array):
    """Φ⁻¹(½ + x) for 0 ≤ x ≤ ½ with relative accuracy (1e-14) however small x or ½ − x is.

    A series in x, Φ⁻¹ of the double ½ + x, or minus that of the tail e^{log_rest}, whichever has
    all digits.

    Args:
        x: of any shape.
        log_rest: log(½ − x).
    """
    y = np.sqrt(2.0 * np.pi) * x
    few = xp.minimum(y, _SERIES)
    series = few * xp.polyval(xp.asarray(np.array(_QUANTILE)), few * few)
    middle = xp.ndtri(0.5 + xp.clip(x, 0.03, _TAIL))
    tail = -ndtri_exp(xp.minimum(log_rest, np.log(0.5)))
    return xp.where(y < _SERIES, series, xp.where(x < _TAIL, middle, tail))


def pure_dp_mu(epsilon: Array):
    """μ = 2Φ⁻¹(e^ε/(1 + e^ε)) of any ε-DP mechanism (Gomez 2025, Prop. 6.1), to 1e-14 relative."""
    falls = xp.exp(-epsilon)
    return 2.0 * ndtri_half_plus(
        -0.5 * xp.expm1(-epsilon) / (1.0 + falls), -epsilon - xp.log1p(falls)
    )


def square_above(mu: Array):
    """μ² rounded up: above it by no more than 1e-13 relative, and never 0 for μ > 0."""
    return xp.where(mu > 0.0, xp.maximum(mu * mu * (1.0 + 2.0 * SQUARED_QUANTILE), _LEAST), 0.0)


def inverse_square(sigma: Array | float):
    """1/σ², ∞ where that is no double."""
    with np.errstate(over="ignore", under="ignore"):
        return sigma**-2.0


def precision_above(sigma: Array | float, size: Array | float = 1.0):
    """k/σ², rounded up, and never 0."""
    return xp.maximum(size * inverse_square(sigma) * (1.0 + PRECISION), _LEAST)


def log_ndtr(z: Array | float):
    """log Φ(z) to 3e-14 relative at any depth, where library routines are off by 4e-9.

    Method: docs/method/rounding.md#constants
    """
    tail = half_mills(z)
    above = xp.log1p(-xp.exp(-0.5 * z * z) * tail)
    return xp.where(z > 0.0, above, xp.log(tail) - 0.5 * z * z)


def gaussian_delta(epsilon: Array | float, mu: Array):
    """δ_μ(ε) = Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ) to about 1e-16 absolute (Balle & Wang 2018).

    Both normal densities times their weights are equal, so the second term is e^{−a²/2} times a
    Mills ratio and nothing overflows."""
    a, b = mu / 2.0 - epsilon / mu, -mu / 2.0 - epsilon / mu
    return xp.maximum(0.5 * xp.erfc(-a * np.sqrt(0.5)) - xp.exp(-0.5 * a * a) * half_mills(b), 0.0)


def log_gaussian_delta(epsilon: Array, mu: Array):
    """log δ_μ(ε) for ε ≥ 0, μ > 0, with relative accuracy at any depth.

    Below the mean (a < 0) both terms share the factor e^{−a²/2}; what is left is a difference of
    Mills ratios. Where μ is so small that this is all rounding, it lies between μ times the slopes
    at both ends, as m(z) = Φ(z)·e^{z²/2} is convex.

    Method: docs/method/notation.md#pairs
    """
    a, b = mu / 2.0 - epsilon / mu, -mu / 2.0 - epsilon / mu
    deep = a < 0.0
    inner = xp.where(deep, a, -1.0)
    mills = half_mills(inner) - half_mills(b)
    mills = xp.clip(mills, mu * _mills_slope(b, -1.0), mu * _mills_slope(inner, 1.0))
    tail = -0.5 * a * a + xp.log(xp.where(deep & (mills > 0.0), mills, 1.0))
    tail = xp.where(mills > 0.0, tail, -xp.inf)
    # (a loss of up to μ²/2 changes δ by up to half of it)
    most, small = mu * _DENSITY, mu < _SMALL_MU
    least = most * (1.0 - mu * mu / 24.0) - 0.5 * epsilon
    body = gaussian_delta(epsilon, mu)
    body = xp.where(small, xp.clip(body, least, most), body)
    return xp.where(deep, tail, xp.log(xp.where(deep, 1.0, body)))


def _mills_slope(z: Array, side: float):
    """d/dz of Φ(z)·e^{z²/2} for z < 0, (1/√(2π))·(1 − |z|·Mills ratio), rounded to a side."""
    far = z < _FAR
    near = _DENSITY + xp.where(far, 0.0, z * half_mills(z)) + side * 2e-15
    r = 1.0 / xp.where(far, z, _FAR) ** 2
    series = 1.0 - 3.0 * r + 15.0 * r * r - xp.where(side > 0.0, 0.0, 105.0) * r**3
    return xp.where(far, _DENSITY * r * series * (1.0 + side * 1e-15), near)


def safe_log(value: Array):
    """log of a number that may be zero or, by rounding, below it: then −inf."""
    return xp.where(value > 0.0, xp.log(xp.where(value > 0.0, value, 1.0)), -xp.inf)


def argmax(values: Array):
    """Index of the first largest entry of a row without NaN, by operations on vectors."""
    last = values.shape[-1] - 1
    return xp.min(xp.where(values == xp.max(values), xp.arange(values.shape[-1]), last))
