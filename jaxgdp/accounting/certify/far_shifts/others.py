"""What is composed with a mixture of far shifts, as two finite laws of its loss: one that dominates
it, and one that a test of its outputs shows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ....numerics.errors import UNIT
from ....numerics.normal import log1mexp, log_error, log_sub
from ....numerics.shapes import Array, Float
from ..counted_jumps import Test
from ..curve import Curve, log_delta_at, log_one_minus_delta_at, points
from ..normal_curve import Profile, lines
from ..vertices import Vertices

_ROUNDED = 64.0 * UNIT  # share of all that a difference of losses is made of
_MARGIN = 4.0  # times what a rate of a corner may be off, by which masses are moved
_EVEN = float(np.log(0.5))
_ALONE = 500  # tests of others alone, of each order
_ALL = 1e300  # a loss beyond all thresholds
_APART = 1e-9  # nats by which slopes of a hull differ at least, beyond what they may be off


class Others(NamedTuple):
    """Laws of the loss, in the order of removing a record; sums over atoms are bounds.

    Attributes:
        loss: of the atoms of the dominating pair.
        log_mass: logs of their P-masses, of which as much lies at the larger ones as may.
        log_sure: the same, of which as much lies at the smaller ones as does for certain.
        log_infinity: log of a bound on the P-mass at +∞.
        shown: losses of the atoms of the pair that tests show, from below.
        log_shown, log_shown_most: logs of their P-masses, from below and from above.
        plus, minus: tests of each order, by which all else may be left alone.
        ends: logs of what they show at +∞, of each order.
    """

    loss: Float[Array, " atoms"]
    log_mass: Float[Array, " atoms"]
    log_sure: Float[Array, " atoms"]
    log_infinity: float
    shown: Float[Array, " shown"]
    log_shown: Float[Array, " shown"]
    log_shown_most: Float[Array, " shown"]
    plus: Test | None = None
    minus: Test | None = None
    ends: tuple[float, float] = (-np.inf, -np.inf)


def nothing() -> Others:
    """No loss at all."""
    zero = np.zeros(1)
    return Others(zero, zero, zero, -np.inf, zero, zero, zero)


def others(curve: Curve, knots: Float[Array, " knots"], tests: int) -> Others:
    """Both laws of a certified curve.

    Args:
        curve: in the order of removing a record.
        knots: losses of the dominating pair, increasing, of either sign.
        tests: of each order that are looked at.

    Method: docs/method/limit.md#far-beside-others
    """
    rates = [
        (half.log_alpha, half.log_tpr, half.log_beta)
        for half in (_some(side, _ALONE) for side in (curve.lower_plus, curve.lower_minus))
    ]
    sides = zip(rates, (curve.largest_plus, curve.largest_minus), strict=True)
    # (a Gaussian part of which μ² is no double has FPRs below all doubles)
    known = np.isfinite(curve.gaussian_part_mu)
    ends = [_end(side, curve.tail_mu, most) if known else -np.inf for side, most in sides]
    return Others(*_dominating(curve, knots), *_shown(curve, tests), *rates, (ends[0], ends[1]))


def _end(rates: Test, tail_mu: Array | float, largest: Array | float) -> float:
    """log TPR of the tests that never accuse anybody without cause: where there is a largest loss,
    or a Gaussian curve above all, the log of an FPR is only below all doubles.
    """
    if min(float(tail_mu), float(largest)) < np.inf:
        return -np.inf
    return float(np.max(rates[1][rates[0] == -np.inf], initial=-np.inf))


def profile_at(curve: Curve, t: Float[Array, " thresholds"], swapped: bool) -> Profile:
    """Bounds on δ and 1 − δ at thresholds of either sign.

    1 − δ(−ε) of one order is e^{−ε}·(1 − δ(ε)) of the other.
    """
    negative, size = t < 0.0, np.abs(t)
    sides = curve.upper_plus, curve.upper_minus
    own, other = sides[::-1] if swapped else sides
    with np.errstate(all="ignore"):
        log_delta = np.asarray(log_delta_at(own, size))
        log_rest = np.asarray(log_one_minus_delta_at(own, size))
        turned = np.asarray(log_one_minus_delta_at(other, size)) - size * (1.0 + _ROUNDED)
    log_rest = np.where(negative, turned, log_rest)
    of_rest = log1mexp(np.minimum(log_rest, 0.0))
    of_rest = of_rest + log_error(np.where(negative, log_rest, 0.0), of_rest)
    log_delta = np.where(negative, of_rest, log_delta)
    return Profile(np.minimum(log_delta, 0.0), np.minimum(log_rest, 0.0))


def _dominating(curve: Curve, knots: Array) -> tuple[Array, Array, Array, float]:
    """Atoms at the knots of the pair whose δ joins those of the curve there by lines.

    From one line to the next one TPR falls by the P-mass of the atom between them: of the first
    line, from δ = 1 at the slope 0, TPR is 1, of the last one it is what lies at +∞.
    """
    with np.errstate(all="ignore"):
        found = lines(knots, profile_at(curve, knots, False))
        rates = found.log_alpha, found.log_tpr, found.log_beta
        off = _MARGIN * log_error(found.t[:-1], found.t[1:], *rates)
        log_tpr = np.minimum(found.log_tpr + off, 0.0)
        # (an FPR that rounding has taken down leaves the FNR that much larger: a share of all of
        # 1 − δ, of which the FNR may be next to nothing)
        lowered = found.log_rest[:-1] + np.log(np.expm1(off))
        log_beta = log_sub(found.log_beta - off, lowered)
    log_tpr = np.where(np.isnan(log_tpr), 0.0, log_tpr)
    log_beta = np.where(np.isnan(log_beta), -np.inf, log_beta)
    log_tpr = np.minimum.accumulate(np.concatenate([[0.0], log_tpr, [found.log_delta[-1]]]))
    end = min(float(log_tpr[-1]), 0.0)
    log_beta = np.concatenate([[-np.inf], log_beta, [found.log_rest[-1]]])
    log_beta = np.minimum(np.maximum.accumulate(log_beta), 0.0)
    fall, rise = log_sub(log_tpr[:-1], log_tpr[1:]), log_sub(log_beta[1:], log_beta[:-1])
    log_mass = fall + log_error(log_tpr[:-1], fall)
    return found.t, np.minimum(log_mass, 0.0), rise - log_error(log_beta[1:], rise), end


class _Points(NamedTuple):
    """Tests from the least FPR on: logs of both rates, and of what they leave to 1."""

    log_alpha: Array
    log_rest: Array
    log_tpr: Array
    log_beta: Array


def _shown(curve: Curve, tests: int) -> tuple[Array, Array, Array]:
    """Atoms of the pair whose curve joins tests by lines: its loss is the log of their slope.

    Method: docs/method/limit.md#far-beside-others
    """
    found = _tests(curve, tests)
    kept, slopes = _hull(found)
    steps = [slopes[pair] for pair in zip(kept[:-1], kept[1:], strict=True)]
    # (none, where what has no FPR at all has all there is)
    slope, off, gain = np.array(steps).reshape(-1, 3).T
    # (what is never seen without the record, and what no test that is kept has)
    ends = np.array([found.log_tpr[kept[0]], found.log_beta[kept[-1]]])
    loss = np.concatenate([slope - off, [_ALL, -_ALL]])
    mass, off = np.concatenate([gain, ends]), np.append(off, np.zeros(2))
    off = off + log_error(mass)
    sure = mass - off
    sure[-1] = -np.inf
    return loss, sure, np.minimum(mass + off, 0.0)


def _tests(curve: Curve, number: int) -> _Points:
    plus, minus = (_some(half, number) for half in (curve.lower_plus, curve.lower_minus))
    # (accusing where the other order's test does not)
    turned = _Points(minus.log_beta, minus.log_tpr, minus.log_rest, minus.log_alpha)
    none, all_ = np.array([-np.inf, 0.0]), np.array([0.0, -np.inf])
    ends = _Points(none, all_, none, all_)
    joined = [np.concatenate(column) for column in zip(plus, turned, ends, strict=True)]
    order = np.lexsort((-joined[2], -joined[1], joined[0]))
    return _Points(*(a[order] for a in joined))


def _some(half: Vertices, number: int) -> _Points:
    """At most so many tests of a half-curve, each rate by whichever of it and of what it leaves to
    1 is small.
    """
    found = points(half)
    used = np.flatnonzero(np.asarray(found.used))
    if len(used) > number:
        used = used[np.unique(np.rint(np.linspace(0, len(used) - 1, number)).astype(int))]
    rates = (found.log_alpha, found.log_tpr, found.log_beta)
    alpha, tpr, beta = (np.asarray(a)[used] for a in rates)
    small = beta < _EVEN
    tpr = np.where(small, log1mexp(beta), np.maximum(tpr, log1mexp(beta)))
    return _Points(alpha, log1mexp(alpha), tpr, np.where(small, beta, log1mexp(tpr)))


def _hull(found: _Points) -> tuple[list[int], dict[tuple[int, int], tuple[float, float, float]]]:
    """Places of tests whose slopes fall, from the first one of FPR 0 with the largest TPR on, and
    log slope, its error, and log of the gain of TPR between each two.
    """
    last = len(found.log_alpha) - 1
    slopes: dict[tuple[int, int], tuple[float, float, float]] = {}

    def slope(i: int, j: int) -> tuple[float, float, float]:
        if (i, j) not in slopes:
            slopes[i, j] = _slope(found, i, j)
        return slopes[i, j]

    def bends(i: int, j: int, k: int) -> bool:
        first, second = slope(i, j), slope(j, k)
        return first[0] - second[0] > first[1] + second[1] + _APART

    kept = [0]
    for k in range(1, last + 1):
        more = found.log_tpr[k] > found.log_tpr[kept[-1]] or (
            found.log_beta[k] < found.log_beta[kept[-1]]
        )
        if not more or not np.isfinite(slope(kept[-1], k)[0]):
            continue
        while len(kept) > 1 and not bends(kept[-2], kept[-1], k):
            kept.pop()
        slope(kept[-1], k)
        kept.append(k)
    return kept, slopes


def _slope(found: _Points, i: int, j: int) -> tuple[float, float, float]:
    """log of ΔTPR/ΔFPR, its error, and log ΔTPR, each difference by the smaller numbers."""
    tests = np.array([i, j])
    gain, off = _difference(found.log_tpr[tests][::-1], found.log_beta[tests])
    cost, more = _difference(found.log_alpha[tests][::-1], found.log_rest[tests])
    return gain - cost, off + more, gain


def _difference(one: Array, other: Array) -> tuple[float, float]:
    """log of a difference that both pairs of logs have, and what it may be off: a share of the
    larger number, of which the difference may be a small part.
    """
    logs = np.where(one[0] <= other[0], one, other)
    with np.errstate(all="ignore"):
        found = float(log_sub(logs[0], logs[1]))
        share = float(np.exp(min(logs[0] - found, 700.0)))
    return found, 2.0 * float(log_error(logs[0], logs[1])) * (1.0 + 2.0 * share)
