"""Readings of one use whose loss has no atoms: every threshold ε is a test of known rates, at which
the curve has the slope −e^ε, so a curve is known from both sides at as many places as one likes.

In each order the part with slopes of at least 1 counts, which are the thresholds ε ≥ 0; the rest is
that of the swapped order, mirrored."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any, NamedTuple

from . import readings
from .balls import Ball, Sides, exact, gaussian_delta
from .closed import GaussianHalf, OneUse
from .gaussian_bounds import Level, NotDecidable, gap
from .points import Order, Point
from .readings import Curve

Smooth = GaussianHalf | OneUse
_STEPS = 400  # of a bisection, at most
_SPLITS = 300
_CLOSE = 1e-22  # relative distance at which a bound and what is reached are the same
_FAR = 2.0**-300  # a TPR beyond which a chord to the origin will do


def _bisected(holds: Callable[[Ball], bool], low: Ball, high: Ball) -> Sides:
    """A threshold at which something certainly holds, and one at which that is not certain."""
    for _ in range(_STEPS):
        middle = ((low + high) / 2).mid()
        if not (low < middle < high) or high - low < 2.0**-200:
            break
        if holds(middle):
            low = middle
        else:
            high = middle
    return Sides(low, high)


def _end(holds: Callable[[Ball], bool], sign: int = 1) -> Ball:
    """A threshold at which something ceases to be certain."""
    end = exact(sign)
    while holds(end):
        end *= 2
        if abs(float(end)) > 1e7:
            raise NotDecidable("no threshold is far enough out")
    return end


def threshold(half: Smooth, rate: Callable[[Point], Ball], value: Ball) -> Sides:
    """Thresholds beside the one at which a rate is ``value``: at the lower one the rate is
    certainly no smaller, at the upper one certainly no larger."""
    above = lambda e: bool(rate(half.test(e)) >= value)
    below = lambda e: bool(rate(half.test(e)) <= value)
    low = exact(0) if above(exact(0)) else _end(lambda e: not above(e), -1)
    high = _end(lambda e: not below(e))
    inner = _bisected(above, low, high).lower
    return Sides(inner, -_bisected(lambda e: below(-e), -high, -inner).lower)


def tpr(curve: Curve, fpr: Ball) -> Sides:
    """The largest TPR: from above by the best line, from below by the tests of that FPR and by the
    chord of slope 1 between the middle of an order and its mirror image."""
    halves: list[Any] = [half for half, _ in curve.orders()]
    lower, places = [exact(0)], []
    for half in halves:
        place = threshold(half, lambda p: p.fpr, fpr).upper
        lower.append(half.test(place).tpr.lower())
        places.append(place)
    if len(halves) == 1 or curve.remove is curve.add:
        place = places[0]
        return Sides(
            max(lower, key=Order),
            (halves[0].delta(place).upper + place.exp() * fpr).upper().min(exact(1)).upper(),
        )
    for half in halves:
        middle = half.test(exact(0))
        if middle.fpr <= fpr <= 1 - middle.tpr:
            lower.append((middle.tpr + fpr - middle.fpr).lower())
    return Sides(max(lower, key=Order), readings.tpr_line(curve, fpr, _reach(places)))


def _reach(places: list[Ball]) -> float:
    """Beyond the thresholds at which either order has some FPR."""
    return 2.0 * max(abs(float(place)) for place in places) + 1.0


def _both(curve: Curve) -> list[Smooth]:
    return [curve.remove] if curve.remove is curve.add else [curve.remove, curve.add]  # type: ignore[list-item]


class Found(NamedTuple):
    """The largest of something over a range of thresholds: from below, from above, and where."""

    lower: Ball
    upper: Ball
    place: Ball


def _largest(
    low: Ball, high: Ball, reached: Callable[[Ball], Sides], bound: Callable[[Ball, Ball], Ball]
) -> Found:
    """Halve the range where the bound is largest until that is what is reached."""
    ends = [reached(low), reached(high)]
    best = max((each.lower for each in ends), key=Order)
    top = max((each.upper for each in ends), key=Order)
    place = low if ends[0].lower >= ends[1].lower else high
    first = bound(low, high)
    heap = [(-float(first), 0, low, high, first)]
    for number in range(1, _SPLITS):
        _, _, a, b, most = heap[0]
        if most <= top or most - best <= _CLOSE * abs(float(best)):
            break
        heapq.heappop(heap)
        middle = ((a + b) / 2).mid()
        value = reached(middle)
        top = max((top, value.upper), key=Order)
        if value.lower > best:
            best, place = value.lower, middle
        for part, (c, d) in enumerate(((a, middle), (middle, b))):
            limit = bound(c, d)
            heapq.heappush(heap, (-float(limit), 2 * number + part, c, d, limit))
    return Found(best, max((top, heap[0][4]), key=Order), place)


def _corner(half: Smooth, low: Ball, high: Ball) -> Point:
    """Where the lines at two thresholds meet: the curve between them is below both."""
    a, b = half.test(high), half.test(low)
    steep, flat = high.exp(), low.exp()
    fpr = (b.tpr - a.tpr + steep * a.fpr - flat * b.fpr) / (steep - flat)
    fpr = fpr.max(a.fpr).min(b.fpr)
    return Point(fpr, (a.tpr + steep * (fpr - a.fpr)).max(a.tpr).min(b.tpr))


def _level(half: Smooth, low: Ball, high: Ball, level: Level) -> Found:
    """The largest level of a stretch of the curve."""
    return _largest(
        low,
        high,
        lambda e: level.sides(half.test(e)),
        lambda a, b: level.sides(_corner(half, a, b)).upper,
    )


def approximate_mu(curve: Curve, apart: Ball) -> Sides:
    """d-approximate μ: no threshold whose TPR is at most d is asked anything."""
    found = []
    for half in _both(curve):
        if not half.test(exact(0)).tpr > apart:
            continue
        end = threshold(half, lambda p: p.tpr, apart).upper
        found.append(_level(half, exact(0), end, Level(apart)))
    lower = max((each.lower for each in found), key=Order, default=exact(0))
    upper = max((each.upper for each in found), key=Order, default=exact(0))
    return Sides(lower.max(exact(0)), upper.max(exact(0)))


def mu(curve: Curve, floor: Ball) -> Sides:
    """μ over the thresholds whose rates are both at least the floor.

    Raises:
        NotDecidable: the middle of the curve is not certainly above the floor.
    """
    lower, upper = [exact(0)], [exact(0)]
    for half in _both(curve):
        middle = half.test(exact(0))
        if not (middle.fpr >= floor and 1 - middle.tpr >= floor):
            raise NotDecidable("the middle of the curve is not certainly above the floor")
        inner, outer = threshold(half, lambda p: p.fpr, floor)
        upper.append(_level(half, exact(0), outer, Level(exact(0))).upper)
        lower.append(_level(half, exact(0), inner, Level(exact(0))).lower)
    return Sides(max(lower, key=Order), max(upper, key=Order))


def regret(curve: Curve, floor: Ball) -> Sides:
    """max over ε of (δ_μ(ε) − δ(ε))/(1 + e^ε), for the μ of that floor."""
    sides = mu(curve, floor)
    halves = _both(curve)
    together = [halves] if curve.adjacency == "add_remove" else [[half] for half in halves]
    found = [_gap_of(some, sides) for some in together]
    return Sides(
        max((each.lower for each in found), key=Order).max(exact(0)),
        max((each.upper for each in found), key=Order).max(exact(0)),
    )


def _gap_of(halves: list[Smooth], sides: Sides) -> Sides:
    """The largest gap where δ(ε) is the largest of some orders: at most that of each."""
    end = _end(lambda e: any(bool(half.test(e).tpr > _FAR) for half in halves))

    def reached(e: Ball) -> Sides:
        deltas = [half.delta(e) for half in halves]
        low, high = (max(column, key=Order) for column in zip(*deltas, strict=True))
        return Sides(
            ((gaussian_delta(e, sides.lower) - high) / (1 + e.exp())).lower(),
            ((gaussian_delta(e, sides.upper) - low) / (1 + e.exp())).upper(),
        )

    def bound(a: Ball, b: Ball) -> Ball:
        gaps = [gap(sides.upper, half.test(b), half.test(a)).bound for half in halves]
        return min(gaps, key=Order)

    inner = _largest(exact(0), end, reached, bound)
    origin = Point(exact(0), exact(0))
    beyond = min((gap(sides.upper, origin, h.test(end)).bound for h in halves), key=Order)
    return Sides(inner.lower, max((inner.upper, beyond), key=Order))


def beta(curve: Curve, fpr: Ball) -> Sides:
    """1 − TPR."""
    low, high = tpr(curve, fpr)
    return Sides((1 - high).lower().max(exact(0)), (1 - low).upper())


READINGS: dict[str, Callable[..., Sides]] = {
    "mu": mu,
    "approximate_mu": approximate_mu,
    "regret": regret,
    "tpr": tpr,
    "beta": beta,
}
