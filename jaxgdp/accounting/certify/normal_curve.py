"""Both sides of a curve from bounds on profile and error rates at some thresholds; see
``normal_bounds``."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...numerics.errors import UNIT
from ...numerics.normal import log1mexp, log_error, log_sub
from ...numerics.shapes import Array, Float
from . import normal_bounds
from .normal_bounds import place
from .tilted_moments import Parts, TiltedSum, tilted_sum
from .vertices import Vertices

_EVEN = float(np.log(0.5))
_SHIFTED = 8.0  # units, of a difference with a threshold and a sum with it again
_LEAST = 1e-300  # of δ, that its log(1 − δ) tells
_INFINITY = 1e-12  # absolute, of the log of a mass at +∞: a sum of T·log1p and its expm1


class Thresholds(NamedTuple):
    """Thresholds of a half-curve, the first one 0, and the tilt for each."""

    loss: Float[Array, " thresholds"]
    tilt: Float[Array, " thresholds"]


class Profile(NamedTuple):
    """log δ and log(1 − δ) at thresholds, each on the same side: δ from above is 1 − δ from
    below."""

    log_delta: Array
    log_rest: Array


class Lines(NamedTuple):
    """Thresholds, log δ and log(1 − δ) there, and logs of the rates of the line from each of them
    to the next one, one less.
    """

    t: Array
    log_delta: Array
    log_rest: Array
    log_alpha: Array
    log_tpr: Array
    log_beta: Array


class _Sums(NamedTuple):
    """A composition under tilts of at least 1 and below, each for the thresholds it is meant for,
    and under the tilt 1, which is Q itself.

    Attributes:
        steep, gentle: the tilted sums.
        of_q: under the tilt 1.
        is_steep: which thresholds have a tilt of at least 1.
        loss: the thresholds.
    """

    steep: TiltedSum
    gentle: TiltedSum
    of_q: TiltedSum
    is_steep: Array
    loss: Array


def _sums(parts: Parts, at: Thresholds) -> _Sums:
    steep = at.tilt >= 1.0
    above, below = tilted_sum(parts, at.tilt[steep]), tilted_sum(parts, at.tilt[~steep])
    return _Sums(above, below, tilted_sum(parts, np.ones(1)), steep, at.loss)


def _placed(sums: _Sums) -> tuple[Array, ...]:
    """Steep and gentle thresholds."""
    return sums.loss[sums.is_steep], sums.loss[~sums.is_steep]


def _profile_of(sums: _Sums, log_infinity: float, side: int) -> Profile:
    """Bounds from below (side 0) or above (side 1) on δ, and those that follow on 1 − δ."""
    high, low = _placed(sums)
    log_delta = np.empty_like(sums.loss)
    log_delta[sums.is_steep] = normal_bounds.profile(place(sums.steep, high), high)[side]
    log_delta[~sums.is_steep] = normal_bounds.profile(place(sums.of_q, low), low)[side]
    log_delta = np.minimum(np.logaddexp(log_delta, log_infinity), 0.0)
    log_rest = log1mexp(log_delta)
    rest = np.minimum(normal_bounds.rest(place(sums.gentle, low), low)[1 - side], 0.0)
    tighter = np.maximum if side else np.minimum
    log_rest[~sums.is_steep] = tighter(rest, log_rest[~sums.is_steep])
    tighter = np.minimum if side else np.maximum
    return Profile(tighter(log_delta, log1mexp(log_rest)), log_rest)


def dominating_half(parts: Parts, at: Thresholds) -> Vertices:
    """Vertices from above: the lower convex hull, in e^ε, of upper bounds on δ at the thresholds.

    δ(ε) is convex in e^ε, so chords of bounds are bounds.

    Args:
        parts: pairs that dominate the components.
        at: thresholds.

    Method: docs/method/limit.md#limit-curve
    """
    last = min(parts.log_infinity() + _INFINITY, 0.0)
    found = _profile_of(_sums(parts, at), last, 1)
    # (beyond the largest loss of all only what lies at +∞ is left)
    top = parts.largest()
    if at.loss[-1] < top < np.inf:
        end = np.array([last])
        found = Profile(
            *(np.append(*both) for both in zip(found, (end, log1mexp(end)), strict=True))
        )
        at = Thresholds(np.append(at.loss, top), np.append(at.tilt, np.nan))
    return profile_half(at.loss, found, top, last)


def profile_half(
    t: Array, found: Profile, top: float = np.inf, log_infinity: float = -np.inf
) -> Vertices:
    """Vertices from above, of upper bounds on δ at increasing thresholds, the first one 0.

    Args:
        t: thresholds.
        found: upper bounds on δ at each, and lower ones on 1 − δ.
        top: threshold beyond which nothing but what lies at +∞ is left.
        log_infinity: log of that.

    Method: docs/method/limit.md#limit-curve
    """
    of = lines(t, found)
    rates = of.log_alpha, of.log_tpr, of.log_beta
    return row(of.t, rates, of.log_alpha > -np.inf, top, log_infinity)


def lines(t: Array, found: Profile) -> Lines:
    """The lower convex hull of upper bounds on δ, as lines between those thresholds that it has.

    Args:
        t: increasing thresholds, of either sign.
        found: upper bounds on δ at each, and lower ones on 1 − δ.

    Method: docs/method/limit.md#limit-curve
    """
    log_delta, log_rest = _plausible(t, found)
    keep = _hull(t, log_delta, log_rest)
    t, log_delta, log_rest = t[keep], log_delta[keep], log_rest[keep]
    return Lines(t, log_delta, log_rest, *_corners(t, Profile(log_delta, log_rest)))


def _corners(t: Array, found: Profile) -> tuple[Array, Array, Array]:
    """log FPR, log TPR and log FNR where the lines of each two thresholds that follow each other
    meet, or where the steeper one meets TPR 1, if that comes first: a corner that lies above 1 and
    were only lowered to it would have lines below those of its thresholds.
    """
    log_delta, log_rest = found
    log_alpha = _log_slope(t, log_delta, log_rest, slice(None, -1), slice(1, None))
    # (TPR ≤ δ + e^t·α, so that it is 1 where α is (1 − δ)·e^{−t})
    log_alpha = np.minimum(log_alpha, log_rest[1:] - t[1:])
    own = log_error(t[:-1], t[1:], log_delta[:-1], log_rest[1:], log_alpha)
    log_alpha = np.minimum.accumulate(log_alpha - own)
    log_tpr = np.minimum(np.logaddexp(log_delta[:-1], t[:-1] + log_alpha) + own, 0.0)
    small = log_rest[:-1] < _EVEN
    log_beta = np.where(small, log_sub(log_rest[:-1], t[:-1] + log_alpha), log1mexp(log_tpr))
    log_beta = log_beta - log_error(t[:-1], log_beta)
    log_tpr = np.where(small, np.minimum(log1mexp(log_beta) + log_error(), 0.0), log_tpr)
    # (the line before is right where this one begins: far out one may be rounded by more than the
    # other)
    return log_alpha, np.minimum.accumulate(log_tpr), np.maximum.accumulate(log_beta)


def _plausible(t: Array, found: Profile) -> Profile:
    """Upper bounds on δ, and lower ones on 1 − δ, that are those of one curve, with FPRs and TPRs
    of at most 1.

    δ falls, by no more than e^t grows; and 1 − δ(t) = E_Q min(1, e^{t − ℓ}) grows by no more than a
    factor of e^t does.
    """
    log_delta = np.minimum.accumulate(found.log_delta)
    growth = log_sub(t[1:], t[:-1]) + log_error(t[1:])
    # (elsewhere it grows by more than all of it is)
    for k in np.flatnonzero(growth < log_delta[:-1])[::-1]:
        carried = np.logaddexp(log_delta[k + 1], growth[k])
        log_delta[k] = min(log_delta[k], carried + log_error(carried))
    rest_of_delta = log1mexp(log_delta)
    rest_of_delta = rest_of_delta - log_error(log_delta, rest_of_delta)
    log_rest = np.maximum(np.maximum.accumulate(found.log_rest), rest_of_delta)
    # (t is rounded when it is taken off and added: far more than all of a δ of 1e-15)
    carried = np.maximum.accumulate((log_rest - t)[::-1])[::-1] + t
    carried = carried - _SHIFTED * UNIT * (1.0 + np.abs(t) + np.abs(log_rest))
    log_rest = np.minimum(np.maximum(log_rest, carried), 0.0)
    delta_of_rest = log1mexp(log_rest)
    delta_of_rest = delta_of_rest + log_error(log_rest, delta_of_rest)
    # (a δ below all doubles leaves 1 − δ of 1, which does not say that it is 0)
    delta_of_rest = np.where(log_rest < -_LEAST, delta_of_rest, 0.0)
    return Profile(np.minimum(log_delta, delta_of_rest), log_rest)


def _log_slope(t: Array, log_delta: Array, log_rest: Array, i, j) -> Array:
    """log of (δ_i − δ_j)/(e^{t_j} − e^{t_i})."""
    fall = np.where(
        log_delta[i] < _EVEN, log_sub(log_delta[i], log_delta[j]), log_sub(log_rest[j], log_rest[i])
    )
    return fall - log_sub(t[j], t[i])


def _hull(t: Array, log_delta: Array, log_rest: Array) -> list[int]:
    """Places of the lower convex hull of (e^t, δ), δ not increasing."""
    slopes = _log_slope(t, log_delta, log_rest, slice(None, -1), slice(1, None)).tolist()
    delta, rest = log_delta.tolist(), log_rest.tolist()
    kept: list[int] = []
    lines: list[float] = []  # slope from each place that is kept to the next one

    def line(i: int, j: int) -> float:
        own = j == i + 1
        return slopes[i] if own else float(_log_slope(t, log_delta, log_rest, i, j))

    for k in range(len(t)):
        if kept and not delta[k] < delta[kept[-1]] and not rest[k] > rest[kept[-1]]:
            continue
        while len(kept) > 1 and not line(kept[-1], k) < lines[-1]:
            kept.pop()
            lines.pop()
        lines += [line(kept[-1], k)] if kept else []
        kept.append(k)
    return kept


def achieved_half(parts: Parts, at: Thresholds) -> Vertices:
    """Rates that thresholds of the likelihood ratio achieve, from below.

    A test of which the FPR is only bracketed, and its δ = TPR − e^t·α known better than that: it is
    obeyed so often that its FPR is the lower end, α', and has TPR e^t·α' + δ·α'/α.

    Args:
        parts: pairs that the components dominate.
        at: thresholds.

    Method: docs/method/limit.md#limit-curve
    """
    sums, t = _sums(parts, at), at.loss
    found = _profile_of(sums, parts.log_infinity() - _INFINITY, 0)
    alpha, missed = _rates(sums)
    with np.errstate(invalid="ignore"):
        obeyed = np.where(alpha.upper > -np.inf, alpha.lower - alpha.upper, 0.0)
    line = t + alpha.lower
    sure = found.log_delta > line
    log_alpha = np.where(sure, alpha.upper, alpha.lower)
    share = np.where(sure, 0.0, np.minimum(obeyed, 0.0))
    log_tpr = np.logaddexp(line, found.log_delta + share)
    log_tpr = np.minimum(log_tpr - log_error(t, log_alpha), 0.0)
    # (where the test misses little, both rates are known each by itself)
    plain = ~sums.is_steep & (found.log_delta > _EVEN)
    log_alpha = np.minimum(np.where(plain, alpha.upper, log_alpha), 0.0)
    log_beta = np.where(plain, np.minimum(missed, 0.0), log1mexp(log_tpr))
    log_tpr = np.where(plain, log1mexp(log_beta), log_tpr)
    used = (log_tpr > log_alpha) & (log_alpha > -np.inf) & (log_alpha < 0.0)
    return row(np.append(t, t[-1]), (log_alpha, log_tpr, log_beta), used, -np.inf, -np.inf)


def _rates(sums: _Sums) -> tuple[normal_bounds.LogBounds, Array]:
    """log FPR from both sides, and log FNR from above (0 where the tilt is steep)."""
    high, low = _placed(sums)
    steep, gentle = place(sums.steep, high), place(sums.gentle, low)
    lower, upper, missed = np.zeros((3, len(sums.loss)))
    lower[sums.is_steep], upper[sums.is_steep] = normal_bounds.false_positives(steep)
    lower[~sums.is_steep], upper[~sums.is_steep] = normal_bounds.false_positives(gentle)
    missed[~sums.is_steep] = normal_bounds.false_negatives(gentle, low).upper
    return normal_bounds.LogBounds(lower, upper), missed


def row(
    at: Array, log_rates: tuple[Array, ...], used: Array, top: float, log_infinity: float
) -> Vertices:
    """One piece, with the ends of its slopes and of the curve."""
    rows = (a[None] for a in (*log_rates, used, used))
    ends = np.full(1, top), np.full(1, log_infinity)
    return Vertices(np.zeros(1), np.ones(1), *rows, *ends, at[None])
