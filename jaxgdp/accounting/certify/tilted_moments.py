"""Exact moments of a sum of independent losses under exponential tilts, for pairs of finitely many
outcomes, with bounds on their rounding.

The masses of P and of Q are known to add up to one less what lies at the infinities. So

    E_P e^{sℓ} − 1 = Σ p·((e^{sℓ} − 1) − s·(e^ℓ − 1)) − p₋ + s·(p₋ − q₊),

in which no mass stands alone: the log of this moment is known to a few units of the size of a loss
and not of 1, and 10¹⁵ uses of a tiny loss are nearly as accurate as one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...numerics import namespace as xp
from ...numerics.errors import EXP, UNIT
from ...numerics.shapes import Array, Float
from .discrete_pairs import DiscretePair

_OVERFLOW = 600.0  # log of a moment beyond which it is so large that nothing cancels in it
_SMALL = -0.7  # log of a moment below which 1 less what it lacks would cancel
_AT_ONCE = 2**19  # numbers in an array
_LEAST = -600.0  # log of a mass down to which, and minus an exponent to which, products are doubles


class Parts(NamedTuple):
    """A composition that shows only finitely many outcomes, but for its Gaussian parts.

    Attributes:
        pairs: of each component, with its number of uses.
        precision: Σ T/σ² of what is exactly Gaussian.
    """

    pairs: tuple[tuple[DiscretePair, float], ...]
    precision: float = 0.0

    def swapped(self) -> Parts:
        """Q against P."""
        return Parts(tuple((pair.swapped(), uses) for pair, uses in self.pairs), self.precision)

    def log_infinity(self) -> float:
        """log of the Q-mass that is certainly told from P."""
        left = sum(uses * np.log1p(-min(one.q_counted, 1.0 - 1e-16)) for one, uses in self.pairs)
        with np.errstate(divide="ignore"):
            return float(np.log(-np.expm1(left)))

    def largest(self) -> float:
        """The largest loss of all, rounded up."""
        if self.precision > 0.0:
            return np.inf
        ends = [
            uses * float(np.max(one.loss[one.log_p > -np.inf] + 2.0 * np.max(one.loss_error)))
            for one, uses in self.pairs
        ]
        return float(sum(ends) + 1e-13 * sum(map(abs, ends)))


class TiltedSum(NamedTuple):
    """A sum of losses under the tilts e^{sℓ}, arrays over tilts.

    Attributes:
        tilt: s.
        log_moment: Λ(s) = Σ T·log E_P e^{sℓ}.
        mean, deviation: of the sum under the tilt.
        lyapunov: Σ T·E|ℓ − E ℓ|³ over the third power of the deviation.
        log_error: bound on the absolute error of the log moment.
        mean_error: bound on the error of the mean, in deviations, and on the relative error of the
            deviation.
    """

    tilt: Float[Array, " tilts"]
    log_moment: Float[Array, " tilts"]
    mean: Float[Array, " tilts"]
    deviation: Float[Array, " tilts"]
    lyapunov: Float[Array, " tilts"]
    log_error: Float[Array, " tilts"]
    mean_error: Float[Array, " tilts"]


class _Single(NamedTuple):
    """The same of one use of one pair: log moment, mean, variance and third absolute central
    moment; errors of the first two, and the relative error of the variance."""

    log_moment: Array
    mean: Array
    variance: Array
    third: Array
    log_error: Array
    mean_error: Array
    relative: Array


def tilted_sum(parts: Parts, tilt: Float[Array, " tilts"]) -> TiltedSum:
    """Moments of a composition at tilts s > 0.

    What is Gaussian is a sum of as many parts as one likes, and has no share in the Lyapunov ratio.

    Method: docs/method/limit.md#log-moments
    """
    tilt = np.atleast_1d(np.asarray(tilt, float))
    total, relative = np.zeros((6, len(tilt))), np.zeros(len(tilt))
    for pair, uses in parts.pairs:
        rows = max(1, _AT_ONCE // len(pair.loss))
        found = [_single(pair, tilt[i : i + rows]) for i in range(0, max(len(tilt), 1), rows)]
        one = _Single(*(np.concatenate(column) for column in zip(*found, strict=True)))
        total += uses * np.stack(one[:6])
        relative = np.maximum(relative, one.relative)
    log_moment, mean, variance, third, log_error, mean_error = total
    log_moment = log_moment + 0.5 * tilt * (tilt - 1.0) * parts.precision
    mean, variance = mean + (tilt - 0.5) * parts.precision, variance + parts.precision
    deviation = np.sqrt(variance)
    lyapunov = third / (variance * deviation) * (1.0 + 8.0 * relative + 1e-12)
    size = np.abs(log_moment) + tilt * (1.0 + tilt) * parts.precision
    log_error = log_error + 8.0 * UNIT * size
    size = np.abs(mean) + (1.0 + tilt) * parts.precision
    off = (mean_error + 8.0 * UNIT * size) / deviation + relative
    return TiltedSum(tilt, log_moment, mean, deviation, lyapunov, log_error, off)


def _single(pair: DiscretePair, tilt: Float[Array, " tilts"]) -> _Single:
    """Moments of one use at some tilts."""
    top = np.max(pair.log_p + tilt[:, None] * pair.loss, axis=-1)
    far = top > _OVERFLOW
    found = [np.empty(len(tilt)) for _ in _Single._fields]

    def put(some: Array, moments: _Single) -> None:
        for column, part in zip(found, moments, strict=True):
            column[some] = part

    if not np.all(far):
        put(~far, _near(pair, tilt[~far]))
        far |= ~far & ~(found[0] > _SMALL)
    if np.any(far):
        put(far, _far(pair, tilt[far]))
    return _Single(*found)


class _Outcomes(NamedTuple):
    """Masses of a pair, and bounds on relative errors that do not depend on the tilt."""

    p: Array
    growth: Array
    error: Array


def _outcomes(pair: DiscretePair) -> _Outcomes:
    error = pair.error + EXP * (4.0 + np.abs(pair.log_p) + np.abs(pair.loss))
    small = np.abs(pair.loss) < 1.0
    p = np.exp(pair.log_p)
    growth = np.where(
        small, p * np.expm1(np.where(small, pair.loss, 0.0)), np.exp(pair.log_p + pair.loss) - p
    )
    return _Outcomes(p, growth, error)


def growth_of(
    log_p: Float[Array, " outcomes"],
    p: Float[Array, " outcomes"],
    exponent: Float[Array, "tilts outcomes"],
) -> Float[Array, "tilts outcomes"]:
    """p·(e^x − 1) at exponents x: a product where no factor leaves the range of doubles, else a
    difference where that has all its digits.
    """
    faint = (log_p < _LEAST) & (log_p > -np.inf)
    if not np.any(faint) and np.max(exponent, initial=0.0) < -_LEAST:
        return p * np.expm1(exponent)
    small = np.abs(exponent) < 1.0
    return np.where(
        small, p * np.expm1(np.where(small, exponent, 0.0)), np.exp(log_p + exponent) - p
    )


def _near(pair: DiscretePair, tilt: Float[Array, " tilts"]) -> _Single:
    """Where no weight overflows: all sums are of p·(e^{sℓ} − 1)."""
    loss, s = pair.loss, tilt[:, None]
    p, growth, error = _outcomes(pair)
    more = growth_of(pair.log_p, p, s * loss)
    beyond = pair.p_minus - pair.q_plus
    less_one = np.sum(more, axis=-1) - tilt * np.sum(growth) - pair.p_minus + tilt * beyond
    moment = np.maximum(1.0 + less_one, 1e-300)
    shape = np.sign(loss) * error
    size = (
        xp.matmul(more, shape) + tilt * EXP * xp.matmul(more, loss) + tilt * np.sum(growth * shape)
    )
    slope = xp.matmul(more, pair.loss_error) + np.sum((p + np.abs(growth) + p) * pair.loss_error)
    log_error = (size + 2.0 * tilt * slope) / moment
    # (ℓ − (e^ℓ − 1) is known to units of ℓ, which is what errors are counted in)
    mean = (xp.matmul(more, loss) + np.sum(p * loss - growth) + beyond) / moment
    weight = more + p
    centred = np.abs(loss - mean[:, None])
    square = weight * centred * centred
    variance = np.sum(square, axis=-1) / moment
    third = np.sum(square * centred, axis=-1) / moment
    width = np.abs(loss) * error
    by_mass = xp.matmul(weight, width) + tilt * EXP * xp.matmul(weight, loss * loss)
    by_place = xp.matmul(weight, pair.loss_error)
    by_place += tilt * xp.matmul(weight, np.abs(loss) * pair.loss_error)
    mean_error = (by_mass + by_place) / moment + np.abs(mean) * log_error
    relative = xp.matmul(square, error) + tilt * EXP * xp.matmul(square, np.abs(loss))
    relative = relative / (moment * variance) + 2.0 * mean_error / np.sqrt(variance)
    return _Single(np.log1p(less_one), mean, variance, third, log_error, mean_error, relative)


def _far(pair: DiscretePair, tilt: Float[Array, " tilts"]) -> _Single:
    """Where weights would overflow, or add up to much less than 1, their largest is taken out;
    nothing cancels there, as all of them are positive."""
    loss, s = pair.loss, tilt[:, None]
    exponent = pair.log_p + s * loss
    each = pair.error + EXP * (4.0 + np.abs(pair.log_p) + np.abs(s * loss))
    each = each + np.abs(s) * pair.loss_error
    top = np.max(exponent, axis=-1, keepdims=True)
    weight = np.exp(exponent - top)
    total = np.sum(weight, axis=-1)
    weight = weight / total[:, None]
    mean = np.sum(weight * loss, axis=-1)
    centred = np.abs(loss - mean[:, None])
    square = weight * centred * centred
    variance = np.sum(square, axis=-1)
    log_error = np.sum(weight * each, axis=-1)
    mean_error = np.sum(weight * centred * each, axis=-1)
    mean_error += xp.matmul(weight, pair.loss_error)
    relative = np.sum(square * each, axis=-1) / variance + 2.0 * mean_error / np.sqrt(variance)
    third = np.sum(square * centred, axis=-1)
    return _Single(
        top[:, 0] + np.log(total), mean, variance, third, log_error, mean_error, relative
    )
