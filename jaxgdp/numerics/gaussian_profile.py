"""The privacy profile δ_μ(ε) of a Gaussian and its complement, without cancellation anywhere.

With a = μ/2 − ε/μ and b = a − μ the normal densities obey φ(a) = e^ε·φ(b), so that

    δ = Φ(a) − e^ε·Φ(b) = φ(a)·(m(a) − m(b)), 1 − δ = Φ(−a) + φ(a)·m(b), m(x) = Φ(x)/φ(x) = ∫₀^∞
    e^{xs − s²/2} ds

(Balle & Wang 2018, Theorem 8). If m(a) and m(b) are near each other, their difference is ∫_b^a
m′(x) dx with m′(x) = 1 + x·m(x) = ∫₀^∞ s·e^{xs − s²/2} ds > 0, whose values are a polynomial fit
and whose integral is Gauss-Legendre's. Host-side, NumPy."""

from __future__ import annotations

import numpy as np
from numpy.polynomial import chebyshev, legendre
from scipy.special import erfcx, ndtr

from .shapes import Array

_SQRT_2PI = np.sqrt(2.0 * np.pi)
_LOG_SQRT_2PI = 0.5 * np.log(2.0 * np.pi)
_SHIFT, _SCALE = 0.3, 5.0
_NEAR = 0.5  # below so many (1 + ε/μ) the difference is an integral
NODES, WEIGHTS = legendre.leggauss(12)
_SPLIT = 2.0**27 + 1.0

# Chebyshev coefficients in (T − 5)/(T + 5), T = t + 0.3 ≥ 0, of (1 + T)²·m′(−t), from a computation
# with 50 digits. What is left out is below 1e-16; the function itself lies between 1 and 2.5.
_SLOPE = (
    1.400213889773729,
    -0.3804964864226972,
    -0.10197926030977587,
    0.12590527566538287,
    -0.05578517332624063,
    0.013020931012752085,
    -1.9057578023030113e-05,
    -0.0013196347105952212,
    0.0005804118848840289,
    -0.00013650076336929335,
    1.4784028368045225e-05,
    1.51682471051782e-06,
    -7.731303068872892e-07,
    6.13407451998899e-08,
    2.035050000780716e-08,
    -4.448982867292178e-09,
    -3.9143508087525443e-10,
    2.0439941063057293e-10,
    4.2374862435125034e-12,
    -8.72898177246685e-12,
    8.808730258601711e-14,
    3.8182721891851615e-13,
    -6.970347813604415e-15,
    -1.758040007982895e-14,
    1.0555601104188466e-16,
    8.458230037295418e-16,
)


def _slope(x: Array):
    """m′(x) = 1 + x·m(x) for x ≤ 0.3, to 1e-15 relative however far below 0."""
    rest = np.maximum(_SHIFT - x, 0.0)
    # (T − 5)/(T + 5) of T up to ∞
    value = chebyshev.chebval(1.0 - 2.0 * _SCALE / (rest + _SCALE), _SLOPE)
    return value / (1.0 + rest) / (1.0 + rest)


def _ratio(x: Array):
    """m(x) = Φ(x)/φ(x) for x ≤ 0."""
    return 0.5 * _SQRT_2PI * erfcx(-x * np.sqrt(0.5))


def _product(x: Array, y: Array):
    """x·y and its rounding error (Dekker 1971)."""

    def halves(v: Array):
        high = _SPLIT * v
        high = high - (high - v)
        return high, v - high

    value = x * y
    (a, b), (c, d) = halves(x), halves(y)
    return value, ((a * c - value) + a * d + b * c) + b * d


def arguments(epsilon: Array, mu: Array):
    """a = μ/2 − ε/μ and b = −μ/2 − ε/μ, a to its last digits also where its terms cancel."""
    with np.errstate(over="ignore", under="ignore"):
        ratio = epsilon / mu
        plain = 0.5 * mu - ratio
        # (for μ < 1 the terms cancel only where a does not matter; for μ > 1e150, ε/μ is nothing)
        exact = (mu > 1.0) & (mu < 1e150)
        safe = np.where(exact, mu, 1.0)
        square, error = _product(safe, safe)
        a = np.where(exact, ((square - 2.0 * epsilon) + error) / safe * 0.5, plain)
    return a, -0.5 * mu - ratio


def _parts(epsilon: Array, mu: Array):
    """a, m(b), and δ/φ(a) where a < 0 or the difference is an integral, with where that is; Φ(a) −
    φ(a)·m(b) elsewhere.
    """
    a, b = arguments(epsilon, mu)
    with np.errstate(over="ignore"):
        middle = epsilon / mu
        near = mu < _NEAR * (1.0 + middle)
    with np.errstate(under="ignore"):
        tail = _ratio(b)
        difference = np.asarray(_ratio(np.minimum(a, 0.0)) - tail)
        if np.any(near):
            width = np.broadcast_to(0.5 * mu, near.shape)[near]
            x = width[:, None] * NODES - np.broadcast_to(middle, near.shape)[near][:, None]
            difference[near] = width * np.sum(WEIGHTS * _slope(x), axis=-1)
    return a, tail, difference, near | (a < 0.0)


def delta(epsilon: Array, mu: Array):
    """δ_μ(ε) for ε ≥ 0, μ > 0 of one shape: 1e-12 relative, below 2.3e-308 to the next double."""
    a, tail, difference, below = _parts(epsilon, mu)
    with np.errstate(under="ignore", over="ignore"):
        density = np.exp(-0.5 * a * a) / _SQRT_2PI
        # (two factors, so that a density below every double does not lose what the difference may
        # still be)
        return np.where(below, density * difference, ndtr(a) - density * tail)


def log_delta(epsilon: Array, mu: Array):
    """log δ_μ(ε), at any depth."""
    a, tail, difference, below = _parts(epsilon, mu)
    with np.errstate(divide="ignore", over="ignore", under="ignore"):
        deep = np.log(difference) - 0.5 * a * a - _LOG_SQRT_2PI
        body = np.log1p(-np.exp(_log_one_minus_delta(a, tail)))
    return np.where(below, deep, body)


def _log_one_minus_delta(a: Array, tail: Array):
    """log(Φ(−a) + φ(a)·m(b)) for a ≥ 0, where both terms share the factor φ(a)."""
    with np.errstate(divide="ignore", over="ignore", under="ignore"):
        return np.log(_ratio(-np.maximum(a, 0.0)) + tail) - 0.5 * a * a - _LOG_SQRT_2PI


def rest(epsilon: Array, mu: Array):
    """1 − δ_μ(ε), with its own relative accuracy of 1e-12."""
    a, tail, _, _ = _parts(epsilon, mu)
    with np.errstate(under="ignore", over="ignore"):
        return ndtr(-a) + np.exp(-0.5 * a * a) / _SQRT_2PI * tail


def log_one_minus_delta(epsilon: Array, mu: Array):
    """log(1 − δ_μ(ε)), at any depth."""
    a, tail, _, _ = _parts(epsilon, mu)
    with np.errstate(under="ignore", over="ignore", divide="ignore"):
        body = np.log(ndtr(-a) + np.exp(-0.5 * a * a) / _SQRT_2PI * tail)
    return np.where(a > 0.0, _log_one_minus_delta(a, tail), body)
