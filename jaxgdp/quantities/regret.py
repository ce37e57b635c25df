"""Δ: what is lost by reporting one Gaussian curve in place of the true one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .. import options
from ..accounting.certify.curve import Curve, Points, log_delta_at, path, points
from ..accounting.certify.vertices import Vertices
from ..bracket import Bracket
from ..numerics import namespace as xp
from ..numerics.errors import GAP
from ..numerics.normal import argmax, gaussian_delta, log1mexp, log_error, log_sub, safe_log
from ..numerics.shapes import Array, Float
from ..numerics.validation import floor_rate
from . import overflow
from .base import Quantity, log_rate
from .mu import mu, mu_tangency
from .reading import known
from .tangency import HalfCurves, Tangency, lines_of, log_density, peak, pick, single_point

_DEEPEST = float(np.log(options.DEEPEST))
_STEEPEST = 600.0  # log of the largest slope
_SAME = 1e-6  # relative difference of FPRs that rounding may cause


def _intercept(log_alpha: Array, log_tpr: Array, epsilon: Array, side: float) -> Array:
    """TPR − e^ε·α from above (``side`` 1.0) or below (−1.0): each term is known to the rounding of
    its log, however small the difference is.

    Method: docs/method/rounding.md#constants
    """
    tpr, line = xp.exp(log_tpr), xp.exp(log_alpha + epsilon)
    room = tpr * log_error(log_tpr) + line * log_error(log_alpha, epsilon)
    return tpr - line + side * room


def _upper(p: Points, mu: Array) -> Array:
    """Largest possible gap, from rates the attack achieves (a polygon above the true curve).

    With u = α − β and v = α + β, a gap of κ along both axes is 2κ in v at equal u. Between two
    neighbouring tests the polygon is straight and the Gaussian curve convex, so for any slope e^ε
    the larger of the two end values of (δ_μ(ε) − (TPR − e^ε·α))/(1 + e^ε) bounds the gap there; the
    segment's own slope or its threshold makes that sharp.

    Method: docs/method/regret.md#sides
    """
    log_alpha = xp.append(p.log_alpha, -xp.inf)
    log_tpr = xp.append(p.log_tpr, -xp.inf)
    gain = _gain(p)
    start = argmax(gain)
    certain = _intercept(log_alpha[start], log_tpr[start], xp.zeros(()), -1.0)
    middle = 0.5 * (gaussian_delta(0.0, mu) - xp.where(gain[start] > 0.0, certain, 0.0))

    rise = log_sub(log_tpr[:-1], log_tpr[1:]) - log_sub(log_alpha[:-1], log_alpha[1:])

    def bound(epsilon: Array) -> Array:
        growth = xp.exp(epsilon)
        here, there = (
            _intercept(log_alpha[some], log_tpr[some], epsilon, -1.0)
            for some in (slice(None, -1), slice(1, None))
        )
        return (gaussian_delta(epsilon, mu) - xp.minimum(here, there)) / (1.0 + growth)

    # two tests that differ by rounding only have any slope; that of their threshold is then the
    # better one (two that never err without the record have an infinite one, which leaves no gap)
    threshold = xp.clip(p.low, 0.0, _STEEPEST)
    own = xp.where(xp.isnan(rise), threshold, xp.clip(rise, 0.0, _STEEPEST))
    gap = xp.minimum(bound(own), bound(threshold))
    after = (xp.arange(gap.shape[0]) >= start) & (
        (log_alpha[:-1] > log_alpha[1:]) | (log_tpr[:-1] > log_tpr[1:])
    )
    return xp.maximum(xp.max(xp.where(after, gap, -xp.inf)), middle) + GAP


def _apart(p: Points) -> Points:
    """The tests without those that differ from the one before only by rounding.

    Any test may be left out of an achievable polygon; the segment between two such tests would have
    an arbitrary slope."""
    drop = p.log_alpha[:-1] - p.log_alpha[1:]
    kept = xp.append(True, ~(drop < _SAME) | (p.log_alpha[1:] == -xp.inf))
    k = xp.cummax(xp.where(kept, xp.arange(kept.shape[0]), 0))
    return Points(*(a[k] for a in p))


def _gain(p: Points) -> Array:
    """TPR − FPR of each test, −1 of none."""
    return xp.where(p.used, xp.exp(p.log_tpr) - xp.exp(p.log_alpha), -1.0)


def _from_best(p: Points, other: Points) -> Points:
    """The tests of a half-curve from the best one for slope 1 on, and before them that of the other
    half, mirrored, if it gains more.

    Method: docs/method/regret.md#sides
    """
    gain, mirrored = _gain(p), _gain(other)
    own, k = argmax(gain), argmax(mirrored)
    test = Points(
        xp.zeros(()),
        xp.zeros(()),
        other.log_beta[k],
        log1mexp(other.log_alpha[k]) - log_error(),
        other.log_alpha[k],
        other.used[k] & (mirrored[k] > gain[own] + GAP),
    )
    rows = Points(*(xp.concatenate([a[None], b]) for a, b in zip(test, p, strict=True)))
    first = xp.arange(len(gain) + 1) <= own
    return Points(*(xp.where(first & test.used, a, b) for a, b in zip(test, rows, strict=True)))


class _Merged(NamedTuple):
    """Two polygons of tests between all slopes of both.

    Attributes:
        epsilon: logs of the slopes, not decreasing, shape (slopes,).
        log_alpha, log_tpr: of the test of each polygon that is the best one from a slope to the
            next, shape (2, slopes).
    """

    epsilon: Float[Array, " slopes"]
    log_alpha: Float[Array, "polygons slopes"]
    log_tpr: Float[Array, "polygons slopes"]

    def gains(self, epsilon: Float[Array, " slopes"]) -> Float[Array, "polygons slopes"]:
        """TPR − e^ε·α of both tests."""
        return xp.exp(self.log_tpr) - xp.exp(self.log_alpha + epsilon)

    def ends(self) -> Float[Array, " slopes"]:
        """Logs of the slopes up to which the tests of each are the best ones."""
        return xp.append(self.epsilon[1:], _STEEPEST)

    def crossings(self) -> Float[Array, " slopes"]:
        """Logs of the slopes between each and the next one at which both tests are as good, where
        there is one, else each itself.
        """
        alpha, tpr = xp.exp(self.log_alpha), xp.exp(self.log_tpr)
        rise, run = tpr[0] - tpr[1], alpha[0] - alpha[1]
        some = rise * run > 0.0
        found = safe_log(xp.where(some, rise / xp.where(some, run, 1.0), 0.0))
        between = (found > self.epsilon) & (found < self.ends())
        return xp.where(between, found, self.epsilon)


def _slopes(p: Points) -> Float[Array, " points"]:
    """Logs of the slopes between each test and the next one, the last of which never says yes; not
    decreasing, as noise may have them.
    """
    log_alpha, log_tpr = xp.append(p.log_alpha, -xp.inf), xp.append(p.log_tpr, -xp.inf)
    rise = log_sub(log_tpr[:-1], log_tpr[1:]) - log_sub(log_alpha[:-1], log_alpha[1:])
    return xp.cummax(xp.clip(xp.where(xp.isnan(rise), 0.0, rise), 0.0, _STEEPEST))


def _merged(polygons: list[Points]) -> _Merged:
    """Both polygons of tests, as :func:`path` gives them."""
    slopes = [_slopes(p) for p in polygons]
    epsilon = xp.concatenate([xp.zeros((1,)), *slopes])
    epsilon = epsilon[xp.argsort(epsilon)]
    best = []
    for p, own in zip(polygons, slopes, strict=True):
        k = xp.searchsorted(own, epsilon, side="right")
        best.append([xp.append(a, -xp.inf)[k] for a in (p.log_alpha, p.log_tpr)])
    return _Merged(epsilon, *(xp.stack(list(both)) for both in zip(*best, strict=True)))


def _hull(polygons: list[Points]) -> Points:
    """A path along the tests of both polygons that are best at some slope, from slope 1 on.

    Every test is achieved by one order of the record or the other, and so is every segment between
    two of them, whichever they are.

    Method: docs/method/regret.md#worse-order
    """
    both = _merged(polygons)
    ends = []
    for epsilon in (both.epsilon, both.ends()):
        plus, minus = both.gains(epsilon)
        first = plus >= minus
        ends.append(
            (epsilon, *(xp.where(first, a[0], a[1]) for a in (both.log_alpha, both.log_tpr)))
        )
    low, log_alpha, log_tpr = (
        xp.stack(list(sides), axis=-1).reshape(-1) for sides in zip(*ends, strict=True)
    )
    return Points(low, low, log_alpha, log_tpr, log1mexp(log_tpr), log_tpr > -xp.inf)


def _lower(
    p: Points, sides: tuple[Vertices, ...], mu: Array, others: list[Points] | None = None
) -> Array:
    """A gap that is certainly there: (δ_μ(ε) − δ(ε))/(1 + e^ε) at the best threshold, of one half
    or, where they are given, of both.

    Method: docs/method/regret.md#sides
    """
    epsilon = xp.clip(p.low, 0.0, 600.0)
    growth = xp.exp(epsilon)
    delta = _intercept(p.log_alpha, p.log_tpr, epsilon, 1.0)
    gap = (gaussian_delta(epsilon, mu) - delta) / (1.0 + growth)
    usable = p.used & (p.low >= -1e-12)
    best = epsilon[argmax(xp.where(usable, gap, -xp.inf))]

    def at(e: Array) -> Array:
        delta = xp.exp(xp.max(xp.stack([log_delta_at(v, e) for v in sides])))
        return (gaussian_delta(e, mu) - delta) / (1.0 + xp.exp(e))

    if others is not None:
        both = _merged(others)
        places = xp.concatenate([both.epsilon, both.crossings()])
        rates = _Merged(places, *(xp.concatenate([a, a], axis=-1) for a in both[1:]))
        gap = gaussian_delta(places, mu) - xp.max(rates.gains(places), axis=0)
        place = places[argmax(gap / (1.0 + xp.exp(places)))]
        found = xp.maximum(at(best), at(place))
    else:
        found = at(best)
    # both directions have the same δ(0), so the smaller bound holds for both
    at_zero = xp.exp(xp.min(xp.stack([log_delta_at(v, xp.zeros(())) for v in sides])))
    return xp.maximum(found, 0.5 * (gaussian_delta(0.0, mu) - at_zero)) - GAP


def regret(curve: Curve, reported: Bracket, *, symmetric: bool) -> Bracket:
    """Δ(f, f_μ) = max over ε of (δ_μ(ε) − δ(ε))/(1 + e^ε): the shift from f to below f_μ.

    Gomez 2025, Eq. 13 checks breakpoints only, which gives 0 for randomized response; this is the
    rotated form, with the maximum taken over every slope. Δ grows with μ, so the upper side is that
    of the upper μ and the lower side that of the lower: the bracket holds for the true μ* and for
    the reported upper side of it. For the symmetrised curve the better of the two directions
    counts; for one direction, the worse half. The exactly Gaussian parts alone bound it, too.

    Method: docs/method/regret.md#sides
    """
    plus, minus = points(curve.upper_plus), points(curve.upper_minus)
    attacks = [path(side) for side in (curve.lower_plus, curve.lower_minus)]
    if curve.upper_plus.top is not None:
        attacks = [_apart(side) for side in attacks]
    high, low = xp.maximum(reported.upper, 1e-300), xp.maximum(reported.lower, 1e-300)
    both = (curve.upper_plus, curve.upper_minus)
    if symmetric and curve.upper_plus.top is not None:
        # (of laws with atoms each order may be the worse one between two slopes)
        upper = _upper(_hull(attacks), high)
        lower = _lower(plus, both, low, [path(side) for side in both])
    elif symmetric:
        upper = _upper(attacks[0], high)
        lower = _lower(plus, both, low)
    else:
        halves = [_from_best(*attacks), _from_best(*attacks[::-1])]
        upper = xp.maximum(_upper(halves[0], high), _upper(halves[1], high))
        lower = xp.maximum(_lower(plus, both[:1], low), _lower(minus, both[1:], low))
    # δ_μ(ε) grows with μ by at most 1/√(2π)
    alone = (high - curve.gaussian_part_mu) * np.sqrt(1.0 / (8.0 * np.pi)) + GAP
    return Bracket(lower, xp.minimum(upper, alone))


def read(curve: Curve, query: Array, *, symmetric: bool, given: Bracket | None = None) -> Bracket:
    """:func:`regret` of reporting μ (``given``, if it is known) at the log of a floor, or of the
    smallest one where that is 0.
    """
    reported = mu(curve, xp.maximum(query, _DEEPEST)) if given is None else given
    return regret(curve, reported, symmetric=symmetric)


def tangency(
    halves: HalfCurves, query: Array, found: Bracket, given: Bracket | None = None
) -> Tangency:
    """Where (δ_μ(ε) − δ(ε))/(1 + e^ε) is largest, and the tangency of the reported μ (``given``).

    ∂Δ = (φ(ε*/μ − μ/2)·∂μ − ∂δ(ε*))/(1 + e^{ε*}).
    """
    assert given is not None  # that of ``after``
    mu = given.upper
    sides = []
    for side in (0, 1):
        others = (halves.vertices[1 - side],) if halves.symmetric else ()
        lines = lines_of(halves.points[side], others)
        growth = 1.0 + xp.exp(xp.minimum(lines.epsilon, 600.0))
        gap = (
            gaussian_delta(xp.minimum(lines.epsilon, 600.0), mu) - xp.exp(lines.log_delta)
        ) / growth
        gap = xp.where(lines.usable, gap, -xp.inf)
        k = argmax(gap)
        shift, single = peak(gap, lines.usable, k)
        epsilon = lines.epsilon[k] + shift * lines.step[k]
        sides.append((gap[k], xp.maximum(epsilon, 0.0), xp.asarray(side), single))
    which = argmax(xp.stack([f[0] for f in sides]))
    epsilon, side, single = (pick([f[i] for f in sides], which) for i in (1, 2, 3))
    if halves.symmetric:
        side = halves.larger(epsilon)[0]
    growth = 1.0 + xp.exp(xp.minimum(epsilon, 600.0))
    by_mu = xp.exp(log_density(epsilon / mu - 0.5 * mu)) / growth
    here, of_mu = (
        single_point(side, epsilon, -xp.log(growth), xp.zeros(()), -1.0, single),
        mu_tangency(halves, query),
    )
    of_mu = of_mu._replace(log_weight=of_mu.log_weight + safe_log(by_mu))
    points = (
        xp.concatenate([getattr(t, name) for t in (here, of_mu)])
        for name in ("epsilon", "spread", "sign")
    )
    return Tangency(
        *points, xp.concatenate([here.log_weight, of_mu.log_weight], axis=1), by_mu * of_mu.slope
    )


def share_of_mu(spread: Array) -> Array:
    """Of the width promised, that a bracket of μ may have: one of the regret is wider by up to
    φ(μ/2)/2, and by as much again for its own curve.
    """
    growth = np.minimum(np.square(spread) / 8.0, 30.0)
    return np.minimum(np.exp(growth) / np.maximum(3.6 * spread, 1e-300), 1.0)


QUANTITY = Quantity(
    name="regret",
    symbol="Δ",
    read=read,
    read_known=known.regret,
    after="mu",
    long_name="regret of reporting the upper mu",
    description=(
        "How far the Gaussian curve of the reported μ lies below the true trade-off curve, along"
        " the diagonal."
    ),
    argument="fpr_floor",
    default=options.FPR_FLOOR,
    check=floor_rate,
    query=log_rate,
    absolute=0.1,
    extent=(0.0, 0.5),
    monotone=False,
    rounding=1e-13,
    tangency=tangency,
    overflow=overflow.Overflow(shift=overflow.regret),
    of_gaussian=lambda mu, floor: 0.0 * mu,
    share_of_mu=share_of_mu,
    order=20,
)
