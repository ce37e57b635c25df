"""Error rates and profile of a sum of independent losses at thresholds, from its exact moments
under a tilt and the Berry–Esseen theorem: no lattice, and every bound holds for any number of uses.

Under the tilt the standardised sum Z has a distribution function within Δ = 0.56·L of that of a
normal law, and an L¹ distance of at most L from it, L being the Lyapunov ratio (Shevtsova 2010;
Goldstein 2010). So an expectation of g(Z) differs from that of a normal variable by at most Δ times
the total variation of g, and by at most L times its Lipschitz constant."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import erfcx, ndtr

from ...numerics.errors import BERRY_ESSEEN, MEAN_CENTRAL_LIMIT
from ...numerics.normal import LOG_SQRT_2PI
from ...numerics.shapes import Array, Float
from .tilted_moments import TiltedSum

_ROUNDING = 1e-13  # relative, of a Mills ratio and of what a few operations make of it
# widths of the stretch above a threshold, in units of Δ, within which some of the mass is counted
_STRETCHES = tuple(2.0 ** np.arange(1.5, 11.0, 0.5))


class LogBounds(NamedTuple):
    """Logs of a lower and of an upper bound, arrays over thresholds."""

    lower: Float[Array, " thresholds"]
    upper: Float[Array, " thresholds"]


class _Place(NamedTuple):
    """Thresholds in a tilted sum.

    Attributes:
        z: distances from the mean, in deviations.
        above, below: decay per deviation of P-mass weights above, and of Q-mass weights: s·σ and
            (s − 1)·σ.
        off: Δ, and what the rounding of mean and deviation adds.
        near: L, and the same.
        log_scale: of P-masses: Λ − s·t; that of Q-masses is more by t.
        slack: bound on the error of these logs.
    """

    z: Array
    above: Array
    below: Array
    off: Array
    near: Array
    log_scale: Array
    slack: Array


def place(total: TiltedSum, threshold: Float[Array, " thresholds"]) -> _Place:
    """Where thresholds lie in a sum under tilts, one for each."""
    s, sigma = total.tilt, total.deviation
    z = (threshold - total.mean) / sigma
    rounded = total.mean_error * (1.0 + np.abs(z)) + 1e-15
    off = BERRY_ESSEEN * total.lyapunov + rounded
    near = MEAN_CENTRAL_LIMIT * total.lyapunov + 2.0 * rounded
    log_scale = total.log_moment - s * threshold
    size = np.abs(total.log_moment) + (1.0 + s) * np.abs(threshold) + 1.0
    slack = total.log_error + 1e-15 * size
    return _Place(z, s * sigma, (s - 1.0) * sigma, off, near, log_scale, slack)


def _mills(x: Array) -> Array:
    """(1 − Φ(x))/φ(x)."""
    return np.sqrt(0.5 * np.pi) * erfcx(x * np.sqrt(0.5))


def _density(z: Array) -> Array:
    return np.exp(-0.5 * z * z - LOG_SQRT_2PI)


def _logs(at: _Place, lower: Array, upper: Array, log_scale: Array) -> LogBounds:
    """Logs of the bounds of an expectation, which is at most 1, with the factor that belongs to
    them. (What is not a number bounds nothing: so far from the mean another tilt has to serve.)"""
    lower, upper = np.where(lower > 0.0, lower, 0.0), np.where(upper < 1.0, upper, 1.0)
    with np.errstate(divide="ignore"):
        low, high = np.log(lower), np.log(np.maximum(upper, 0.0))
    return LogBounds(low + log_scale - at.slack, high + log_scale + at.slack)


def _between(at: _Place, low: Array | float, high: Array) -> Array:
    """A lower bound on the mass within so many deviations from the threshold."""
    mass = ndtr(at.z + high) - ndtr(at.z + low) - 2.0 * at.off
    return np.maximum(mass * (1.0 - _ROUNDING) - 1e-15, 0.0)


def _larger(one: Array, other: Array) -> Array:
    """The larger of two lower bounds, of which the first may be no number."""
    return np.where(one > other, one, other)


def _decayed(at: _Place, rate: Array) -> Array:
    """A lower bound on E e^{−rate·(Z − z)} over Z > z: the mass of a stretch above z, times the
    least weight in it."""
    found = np.zeros_like(at.z)
    for times in _STRETCHES:
        x = times * at.off
        found = np.maximum(found, np.exp(-rate * x) * _between(at, 0.0, x))
    return found


def false_positives(at: _Place) -> LogBounds:
    """log Pr_P[sum > t], for s > 0.

    Method: docs/method/limit.md#limit-rates
    """
    middle = _density(at.z) * _mills(at.z + at.above)
    lower = _larger(middle * (1.0 - _ROUNDING) - 2.0 * at.off, _decayed(at, at.above))
    upper = np.minimum(middle * (1.0 + _ROUNDING) + 2.0 * at.off, 1.0)
    return _logs(at, lower, upper, at.log_scale)


def false_negatives(at: _Place, threshold: Array) -> LogBounds:
    """log Pr_Q[sum ≤ t], for s < 1.

    Method: docs/method/limit.md#limit-rates
    """
    rate = -at.below
    mirrored = at._replace(z=-at.z)
    middle = _density(at.z) * _mills(rate - at.z)
    lower = _larger(middle * (1.0 - _ROUNDING) - 2.0 * at.off, _decayed(mirrored, rate))
    upper = np.minimum(middle * (1.0 + _ROUNDING) + 2.0 * at.off, 1.0)
    return _logs(at, lower, upper, at.log_scale + threshold)


def profile(at: _Place, threshold: Array) -> LogBounds:
    """log δ(t) of the sum, without what lies at +∞, for s ≥ 1: the expectation of
    e^{−(s − 1)σx} − e^{−sσx}, x = Z − z > 0, which rises once and falls once.

    Method: docs/method/limit.md#limit-rates
    """
    sigma = at.above - at.below
    s = at.above / sigma
    gap = _mills(at.z + at.below) - _mills(at.z + at.above)
    middle, rounding = _density(at.z) * gap, _density(at.z) * _mills(at.z + at.below) * _ROUNDING
    share = np.where(s > 1.0, 1.0 - 1.0 / s, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        # (the largest value, at e^{−σx} = 1 − 1/s; it is one variation up and one down)
        largest = np.where(s > 1.0, np.exp((s - 1.0) * np.log(share)) / s, 1.0)
    varied = np.where(s > 1.0, 2.0, 1.0) * largest
    error = np.minimum(varied * at.off, sigma * at.near) + rounding
    weight = lambda x: np.exp(-at.below * x) * -np.expm1(-sigma * x)
    found = np.zeros_like(at.z)
    for times in _STRETCHES:
        x = times * at.off
        least = np.minimum(weight(x / 8.0), weight(x))
        found = np.maximum(found, least * _between(at, x / 8.0, x))
    most = np.minimum(largest * (1.0 + _ROUNDING), 1.0)
    upper = np.where(middle + error < most, middle + error, most)
    return _logs(at, _larger(middle - error, found), upper, at.log_scale + threshold)


def rest(at: _Place, threshold: Array) -> LogBounds:
    """log(1 − δ(t)) of the sum, what lies at +∞ left out, for 0 < s ≤ 1: Pr_Q[sum ≤ t] +
    e^t·Pr_P[sum > t], the expectation of a weight that rises to 1 at the threshold and falls.

    Method: docs/method/limit.md#limit-rates
    """
    rate = -at.below
    middle = _density(at.z) * (_mills(rate - at.z) + _mills(at.above + at.z))
    steepest = np.maximum(rate, at.above)
    error = np.minimum(2.0 * at.off, steepest * at.near)
    one_side = np.maximum(_decayed(at._replace(z=-at.z), rate), _decayed(at, at.above))
    lower = _larger(middle * (1.0 - _ROUNDING) - error, one_side)
    upper = np.minimum(middle * (1.0 + _ROUNDING) + error, 1.0)
    return _logs(at, lower, upper, at.log_scale + threshold)
