"""Quantities, read in balls off what dominates (from above) and off what is achieved (from below).

Searches for the best threshold, slope or chord are steered by doubles. What they find is evaluated
in balls, and any threshold, slope or chord gives a valid side: only the width depends on it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from .balls import Ball, Sides, exact, flint
from .points import Half, Order, Point, Row

_STEPS = 90  # of a search by thirds
_LARGEST = 1e5  # a loss beyond which nothing is searched


class HasDelta(Protocol):
    """One order of a pair of which δ(ε) is known from both sides."""

    def delta(self, epsilon: Ball) -> Sides: ...


@dataclass(frozen=True)
class Curve:
    """Both orders of a pair, and how an adjacency takes them.

    Attributes:
        remove, add: Q against P, and P against Q.
        adjacency: "remove", "add" or "add_remove".
    """

    remove: HasDelta
    add: HasDelta
    adjacency: str

    def orders(self) -> list[tuple[HasDelta, HasDelta]]:
        """Each order that the adversary may have to tell apart, and its swapped one."""
        both = [(self.remove, self.add), (self.add, self.remove)]
        return {"remove": both[:1], "add": both[1:], "add_remove": both}[self.adjacency]

    def rows(self) -> list[Half]:
        """Both halves where they are rows of points."""
        halves = [self.remove] if self.remove is self.add else [self.remove, self.add]
        return [half for half in halves if isinstance(half, Half)]

    def delta(self, epsilon: Ball) -> Sides:
        """Sides of δ(ε) for any real ε; below 0 those of the swapped pair, mirrored."""
        found = []
        for half, swapped in self.orders():
            if epsilon >= 0:
                found.append(half.delta(epsilon))
            else:
                low, high = swapped.delta(-epsilon)
                fall = epsilon.exp()
                found.append(Sides((1 - fall * (1 - low)).lower(), (1 - fall * (1 - high)).upper()))
        return Sides(
            max((each.lower for each in found), key=Order),
            max((each.upper for each in found), key=Order),
        )


def smallest(function: Callable[[float], Any], low: float, high: float) -> float:
    """About where a function that falls and then rises is smallest; its values have an order."""
    for _ in range(_STEPS):
        a, b = low + (high - low) / 3.0, high - (high - low) / 3.0
        if function(a) <= function(b):
            high = b
        else:
            low = a
    return 0.5 * (low + high)


def _largest_loss(curve: Curve, rate: float) -> float:
    """A loss beyond which δ(ε) is below ``rate``, or stays where it is."""
    rows = curve.rows()
    if rows:
        losses = [loss for half in rows for loss in half.polygon.losses[1:2]]
        return 1.0 + max((abs(float(loss)) for loss in losses), default=0.0)
    end = 1.0
    while end < _LARGEST and float(curve.delta(exact(end)).upper) > rate:
        end *= 2.0
    return end


def infinite(curve: Curve) -> Ball:
    """What is certainly shown with an FPR of 0: δ(ε) is at least that for every ε."""
    rows = [half.tests for half, _ in curve.orders() if isinstance(half, Half)]
    return max((row.points[0].tpr.lower() for row in rows), key=Order, default=exact(0))


def delta(curve: Curve, epsilon: Ball) -> Sides:
    """δ(ε)."""
    return curve.delta(epsilon)


def advantage(curve: Curve) -> Sides:
    """δ(0), the same in both orders."""
    return curve.delta(exact(0))


def bayes_risk(curve: Curve, prior: Ball) -> Sides:
    """(1 − π)·(1 − δ(log(π/(1 − π)))), π being the probability that the record is absent.

    It is at most π and at most 1 − π, whatever is shown: one may always guess the same.
    """
    low, high = curve.delta((prior / (1 - prior)).log())
    upper = min(((1 - prior) * (1 - low), prior, 1 - prior), key=lambda ball: Order(ball.upper()))
    return Sides(((1 - prior) * (1 - high)).lower(), upper.upper())


def epsilon(curve: Curve, rate: Ball) -> Sides:
    """The smallest ε ≥ 0 with δ(ε) ≤ δ, between neighbouring doubles of the searches.

    Method: docs/method/proof.md#balls
    """
    if curve.delta(exact(0)).upper <= rate:
        return Sides(exact(0), exact(0))
    if infinite(curve) > rate:
        return Sides(flint.arb.pos_inf(), flint.arb.pos_inf())
    end = _largest_loss(curve, float(rate))
    if not curve.delta(exact(end)).upper <= rate:
        upper = flint.arb.pos_inf()
    else:
        upper = _last(lambda e: not bool(curve.delta(e).upper <= rate), end).upper
    lower = _last(lambda e: bool(curve.delta(e).lower > rate), end).lower
    return Sides(lower, upper)


def _last(holds: Callable[[Ball], bool], end: float) -> Sides:
    """Where something ceases to hold: an ε at which it does (or 0), and one at which it does not
    (or the end), close to each other."""
    low, high = exact(0), exact(end)
    for _ in range(110):
        middle = ((low + high) / 2).mid()
        if holds(middle):
            low = middle
        else:
            high = middle
    return Sides(low, high)


def _line(curve: Curve, epsilon: Ball, fpr: Ball) -> Ball:
    """TPR ≤ δ(ε) + e^ε·FPR, for any ε."""
    return curve.delta(epsilon).upper + epsilon.exp() * fpr


def tpr(curve: Curve, fpr: Ball) -> Sides:
    """The largest TPR of a test of that FPR: from above by lines, from below by chords of tests.

    Method: docs/method/proof.md#balls
    """
    upper = tpr_line(curve, fpr, _largest_loss(curve, float(fpr) * 1e-3))
    return Sides(chord(achieved(curve), fpr).lower(), upper)


def _digits(rate: Ball) -> tuple[bool, float]:
    """A rate in its order, with all digits of doubles next to 0 and next to 1."""
    above = bool(2 * rate > 1)
    return above, float(rate - 1 if above else rate)


def tpr_line(curve: Curve, fpr: Ball, end: float) -> Ball:
    """The best line over an FPR, of slopes up to e^end."""
    slope = smallest(lambda e: _digits(_line(curve, exact(e), fpr)), -end, end)
    return _line(curve, exact(slope), fpr).upper().min(exact(1)).upper()


def beta(curve: Curve, fpr: Ball) -> Sides:
    """1 − TPR."""
    low, high = tpr(curve, fpr)
    return Sides((1 - high).lower().max(exact(0)), (1 - low).upper())


def mirrored(point: Point) -> Point:
    """The test that accuses the other data set where this one does not, in the swapped order."""
    return Point(1 - point.tpr, 1 - point.fpr)


def achieved(curve: Curve) -> list[tuple[Row, bool]]:
    """Rows of tests that an adjacency's adversary has, and whether they are to be mirrored."""
    found: list[tuple[Row, bool]] = []
    for half, swapped in curve.orders():
        for each, mirror in ((half, False), (swapped, True)):
            if isinstance(each, Half) and (each.tests, mirror) not in found:
                found.append((each.tests, mirror))
    return found


def chord(rows: Iterable[tuple[Row, bool]], fpr: Ball) -> Ball:
    """The best mixture of two tests, or better than one alone, of an FPR of ``fpr``.

    A mixture of tests is a test; mixing with the one that never accuses is allowed.
    """
    left, right = [Point(exact(0), exact(0))], [Point(exact(1), exact(1))]
    for row, mirror in rows:
        if mirror:
            index = _around_mirrored(row, fpr)
        else:
            index = row.around(fpr)
        middle = row.best(exact(1))
        for i in {*range(index - 2, index + 4), middle}:
            if 0 <= i < len(row.points):
                point = mirrored(row.points[i]) if mirror else row.points[i]
                if point.fpr <= fpr:
                    left.append(point)
                if point.fpr >= fpr:
                    right.append(point)
    best = exact(0)
    for a in left:
        best = max((best, a.tpr.lower()), key=Order)
        for b in right:
            width = b.fpr - a.fpr
            if width > 0:
                share = (fpr - a.fpr) / width
                value = (a.tpr + share * (b.tpr - a.tpr)).lower()
                best = max((best, value), key=Order)
    return best


def _around_mirrored(row: Row, fpr: Ball) -> int:
    """The first point whose TPR is at least 1 − fpr, to the digits of doubles."""
    target, low, high = 1.0 - float(fpr), 0, len(row.points) - 1
    while low < high:
        middle = (low + high) // 2
        if row.tpr[middle] < target:
            low = middle + 1
        else:
            high = middle
    return low
