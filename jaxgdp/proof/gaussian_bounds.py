"""The smallest Gaussian curve below a curve (μ, d-approximate μ), and what it loses (regret)."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

from .balls import Ball, Sides, exact, flint, gaussian_delta, quantile
from .points import Half, Order, Point, Row
from .readings import Curve, chord

_SPLITS = 20_000  # of a range of vertices, at most
_NORMAL = NormalDist()


class NotDecidable(Exception):
    """A quantity has no finite answer, or none that this method can give; says why."""


@dataclass(frozen=True)
class Level:
    """μ of a point, with probability ``apart`` for everything to be shown: Φ⁻¹((TPR − d)/(1 − d)) −
    Φ⁻¹(FPR/(1 − d)).
    """

    apart: Ball

    def sides(self, point: Point) -> Sides:
        """Both sides of it."""
        rest = 1 - self.apart
        rates = ((point.tpr - self.apart) / rest, point.fpr / rest)
        high, low = (quantile(rate.max(exact(0)).min(exact(1))) for rate in rates)
        # (where both are infinite: nothing is known from below, and from above only that a test
        # which is right by chance alone has no level)
        lower, upper = (high.lower - low.upper).lower(), (high.upper - low.lower).upper()
        if lower.is_nan():
            lower = flint.arb.neg_inf()
        if upper.is_nan():
            nothing = point.fpr >= 1 or point.tpr <= self.apart
            upper = flint.arb.neg_inf() if nothing else flint.arb.pos_inf()
        return Sides(lower, upper)

    def estimate(self, row: Row, i: int) -> float:
        """A double near it; −∞ where there is none."""
        d = float(self.apart)
        fpr, tpr = row.fpr[i] / (1.0 - d), (row.tpr[i] - d) / (1.0 - d)
        fnr = float(1 - row.points[i].tpr) / (1.0 - d)
        if not (0.0 < fpr < 1.0 and tpr > 0.0 and 0.0 < fnr):
            return -math.inf
        z = _NORMAL.inv_cdf(tpr) if tpr < 0.5 else -_NORMAL.inv_cdf(min(fnr, 0.5))
        return z - _NORMAL.inv_cdf(fpr)


def line(row: Row, i: int, fpr: Ball) -> Ball:
    """TPR on the line through vertices i and i + 1, which the whole polygon is below."""
    return row.points[i].tpr + row.losses[i + 1].exp() * (fpr - row.points[i].fpr)


def at(row: Row, fpr: Ball) -> Point:
    """The polygon's point of an FPR, or one above it."""
    near = row.around(fpr)
    some = [i for i in (near - 1, near, near + 1) if 0 <= i < len(row.points) - 1]
    values = [exact(1), *(line(row, i, fpr).upper() for i in some)]
    return Point(fpr, min(values, key=Order))


def _corner(row: Row, i: int, j: int) -> Point | None:
    """Where the lines beyond i and before j meet: all of the polygon in between is below them."""
    first, last = row.losses[i + 1].exp(), row.losses[j].exp()
    a, b = row.points[i], row.points[j]
    if not first > last:
        return None
    fpr = (b.tpr - a.tpr + first * a.fpr - last * b.fpr) / (first - last)
    return Point(fpr.max(a.fpr).min(b.fpr), (a.tpr + first * (fpr - a.fpr)).max(a.tpr))


def ceiling(row: Row, first: int, last: int, level: Level) -> Ball:
    """The largest level of vertices ``first`` to ``last``, from above.

    Where a straight piece has both ends on or above a Gaussian curve, it is above it altogether: so
    only vertices matter (docs/method/mu.md#floor), and of a range of them the corner over it.

    Method: docs/method/proof.md#balls
    """
    best = flint.arb.neg_inf()
    if last < first:
        return best
    for i in (first, last):
        best = max((best, level.sides(row.points[i]).upper), key=Order)

    def entry(i: int, j: int) -> tuple[float, int, int, Ball]:
        corner = _corner(row, i, j)
        bound = flint.arb.pos_inf() if corner is None else level.sides(corner).upper
        return -float(bound), i, j, bound

    heap = [entry(first, last)] if last - first > 1 else []
    for _ in range(_SPLITS):
        if not heap or heap[0][3] <= best:
            return best
        _, i, j, _ = heapq.heappop(heap)
        middle = (i + j) // 2
        best = max((best, level.sides(row.points[middle]).upper), key=Order)
        for low, high in ((i, middle), (middle, j)):
            if high - low > 1:
                heapq.heappush(heap, entry(low, high))
    return max((best, *(item[3] for item in heap)), key=Order)


def _halves(curve: Curve) -> list[tuple[Half, Ball]]:
    """Each order with the FPR up to which it has to hold.

    A test of the order "remove" with rates a and b leaves, of the curve's points (α, β), those with
    α ≤ a to that order and those with β ≤ b to the other.
    """
    rows = curve.rows()
    tests = rows[0].tests
    point = tests.points[tests.best(exact(1))]
    fpr, fnr = point.fpr.upper(), (1 - point.tpr).upper()
    if len(rows) == 1:
        return [(rows[0], max((fpr, fnr), key=Order))]
    return [(rows[0], fpr), (rows[1], fnr)]


def _between(row: Row, start: Ball, end: Ball) -> tuple[int, int]:
    """Vertices that may be beyond ``start`` and before ``end``."""
    first, last = row.around(start), row.around(end)
    while first > 0 and not row.points[first].fpr < start:
        first -= 1
    # (the last vertex may be before it, too: there the TPR is 1)
    while last < len(row.points) and not row.points[last].fpr > end:
        last += 1
    return first + 1, last - 1


def _highest(row: Row, start: Ball, end: Ball, level: Level) -> Ball:
    """The largest level of a polygon over a range of FPRs, from above."""
    if start > end:
        return flint.arb.neg_inf()
    first, last = _between(row, start, end)
    ends = [level.sides(at(row, fpr)).upper for fpr in (start, end)]
    return max((*ends, ceiling(row, first, last, level)), key=Order)


def _highest_below(row: Row, start: Ball, end: Ball, floor: Ball) -> Ball:
    """The same of μ where the FNR, too, is at least ``floor``: of a TPR of at most 1 − floor.

    The polygon cut off there is one more polygon, with a vertex where it reaches that; beyond it μ
    falls. Up to there its own vertices count.
    """
    level, cap = Level(exact(0)), 1 - floor
    if start > end:
        return flint.arb.neg_inf()
    if at(row, end).tpr <= cap:
        return _highest(row, start, end, level)
    j = _first_above(row, cap) or 0
    if j == 0 or not row.points[j].fpr > start:
        return level.sides(Point(start, at(row, start).tpr.min(cap))).upper
    before = row.points[j - 1]
    corner = before.fpr + (cap - before.tpr) / row.losses[j].exp()
    point = Point(corner.lower().max(start), cap)
    first, _ = _between(row, start, end)
    ends = (Point(start, at(row, start).tpr.min(cap)), point)
    found = (level.sides(each).upper for each in ends)
    return max((*found, ceiling(row, first, j - 1, level)), key=Order)


class _Floor:
    """μ over the rates that are both at least a floor (or both at most, where there are none)."""

    def __init__(self, curve: Curve, floor: Ball):
        if not curve.rows():
            raise NotDecidable("there are no points to read μ off")
        if not floor > 0:
            raise NotDecidable("μ at fpr_floor = 0 is a limit, which no finite lattice decides")
        self.curve, self.floor, self.level = curve, floor, Level(exact(0))
        halves = curve.rows()
        fnr = [1 - at(half.polygon, floor).tpr for half in halves]
        best = [1 - chord([(half.tests, False)], floor) for half in halves]
        self.some = bool(fnr[0] >= floor)
        if not self.some and not best[0] < floor:
            raise NotDecidable("it is not decided whether two error rates can both be the floor")
        self.least = [fnr[-1], fnr[0]]  # of the FPRs of each order where both are at most the floor

    def upper(self) -> Ball:
        """From the polygons of both orders."""
        found = []
        for (half, end), least in zip(_halves(self.curve), self.least, strict=False):
            if self.some:
                found.append(_highest_below(half.polygon, self.floor, end, self.floor))
            else:
                start = least.lower().max(exact(0))
                found.append(_highest(half.polygon, start, end.min(self.floor), self.level))
        return max((exact(0), *found), key=Order)

    def _usable(self, row: Row, i: int) -> bool:
        fpr, fnr, floor = row.fpr[i], float(1 - row.points[i].tpr), float(self.floor)
        return (fpr >= floor and fnr >= floor) if self.some else (fpr <= floor and fnr <= floor)

    def _counts(self, half: Half, point: Point) -> bool:
        """Whether the curve's point of this FPR is certainly within the range."""
        fpr = point.fpr.upper()
        if self.some:
            return bool(fpr >= self.floor) and bool(1 - at(half.polygon, fpr).tpr >= self.floor)
        return bool(fpr <= self.floor) and bool(1 - point.tpr <= self.floor)

    def lower(self) -> Ball:
        """From the tests of both orders."""
        found = [exact(0)]
        for half in self.curve.rows():
            row = half.tests
            usable = [i for i in range(len(row.points)) if self._usable(row, i)]
            some = sorted(usable, key=lambda i: -self.level.estimate(row, i))[:3]
            points = [row.points[i] for i in some]
            points.append(Point(self.floor, chord([(row, False)], self.floor)))
            found += [
                self.level.sides(Point(point.fpr.upper(), point.tpr.lower())).lower
                for point in points
                if self._counts(half, point)
            ]
        return max(found, key=Order)


def mu(curve: Curve, floor: Ball) -> Sides:
    """max Φ⁻¹(1 − α) − Φ⁻¹(f(α)) over rates that are both at least the floor.

    Raises:
        NotDecidable: the floor is 0, or whether such rates exist is not known.

    Method: docs/method/proof.md#balls
    """
    of_floor = _Floor(curve, floor)
    return Sides(of_floor.lower(), of_floor.upper())


def approximate_mu(curve: Curve, apart: Ball) -> Sides:
    """The smallest μ with δ(ε) ≤ d + (1 − d)·δ_μ(ε) for all ε.

    Method: docs/method/proof.md#balls
    """
    level = Level(apart)
    above, below = [exact(0)], [exact(0)]
    if any(half.tests.points[0].tpr > apart for half in curve.rows()):
        return Sides(flint.arb.pos_inf(), flint.arb.pos_inf())
    for half, end in _halves(curve):
        row = half.polygon
        first = _first_above(row, apart)
        if first is None:
            above.append(flint.arb.pos_inf())
        else:
            _, last = _between(row, row.points[first].fpr, end)
            above.append(level.sides(at(row, end)).upper)
            above.append(ceiling(row, first, last, level))
        tests = half.tests
        some = sorted(range(len(tests.points)), key=lambda i: -level.estimate(tests, i))[:3]
        for i in some:
            point = tests.points[i]
            if point.tpr > apart and point.fpr > 0:
                exacted = Point(point.fpr.upper(), point.tpr.lower())
                below.append(level.sides(exacted).lower)
    return Sides(max(below, key=Order), max(above, key=Order))


def _first_above(row: Row, apart: Ball) -> int | None:
    """The first vertex that may have TPR > d, if the one before certainly has not."""
    low, high = 0, len(row.points)
    while low < high:
        middle = (low + high) // 2
        if row.points[middle].tpr <= apart:
            low = middle + 1
        else:
            high = middle
    return low if low > 0 else None


class Gap(NamedTuple):
    """A bound on the regret and the slope that it was found at."""

    bound: Ball
    slope: Ball


def gap(mu_upper: Ball, a: Point, b: Point) -> Gap:
    """The gap along both axes between a chord of tests and the Gaussian curve, from above.

    For any slope e^ε > 0 the points of the chord have TPR − e^ε·FPR of at least the smaller one of
    both ends, and a line of that slope touches the Gaussian curve (docs/method/regret.md#sides).
    """
    width = b.fpr - a.fpr
    if not width > 0:
        return Gap(flint.arb.neg_inf(), exact(1))
    slope = ((b.tpr - a.tpr) / width).mid().max(exact(2.0**-900))
    least = min(((p.tpr - slope * p.fpr).lower() for p in (a, b)), key=Order)
    return Gap(((gaussian_delta(slope.log(), mu_upper) - least) / (1 + slope)).upper(), slope)


def _largest_gap(points: list[Point], mu_upper: Ball) -> Gap:
    """The largest gap of the chords between neighbouring tests: of all in a range, that of the
    chord over the range, from above."""

    def entry(i: int, j: int) -> tuple[float, int, int, Gap]:
        found = gap(mu_upper, points[i], points[j])
        return -float(found.bound), i, j, found

    heap = [entry(0, len(points) - 1)]
    for _ in range(_SPLITS):
        _, i, j, found = heap[0]
        if j - i == 1:
            return found
        heapq.heappop(heap)
        middle = (i + j) // 2
        heapq.heappush(heap, entry(i, middle))
        heapq.heappush(heap, entry(middle, j))
    return heap[0][3]


def _hull(points: list[Point]) -> list[Point]:
    """Those on the upper hull, to the digits of doubles: any tests will do."""
    some = sorted((float(p.fpr), float(p.tpr), i) for i, p in enumerate(points))
    kept: list[tuple[float, float, int]] = []
    for item in some:
        while len(kept) > 1 and (kept[-1][1] - kept[-2][1]) * (item[0] - kept[-2][0]) <= (
            item[1] - kept[-2][1]
        ) * (kept[-1][0] - kept[-2][0]):
            kept.pop()
        if not kept or item[1] > kept[-1][1]:
            kept.append(item)
    return [points[i] for _, _, i in kept]


def _above_chance(row: Row) -> list[Point]:
    """The tests with slopes of at least 1."""
    return row.points[: row.best(exact(1)) + 1]


def regret(curve: Curve, floor: Ball) -> Sides:
    """max over ε of (δ_μ(ε) − δ(ε))/(1 + e^ε), for the μ of that floor.

    Method: docs/method/proof.md#balls
    """
    found = mu(curve, floor)
    if not found.upper.is_finite():
        raise NotDecidable("μ has no finite upper side, so that the regret has none")
    rows = [half.tests for half in curve.rows()]
    if curve.adjacency == "add_remove":
        sets = [_hull([p for row in rows for p in _above_chance(row)])]
        deltas: list[Callable[[Ball], Ball]] = [lambda e: curve.delta(e).upper]
    else:
        sets = [_hull(_above_chance(row)) for row in rows]
        deltas = [lambda e, half=half: half.delta(e).upper for half in curve.rows()]
    uppers, lowers = [exact(0)], [exact(0)]
    for points, delta in zip(sets, deltas, strict=True):
        start = Point(exact(0), exact(0))
        points = [start, *points] if points[0].fpr > 0 else points
        widest = _largest_gap(points, found.upper) if len(points) > 1 else None
        last = points[-1]
        middle = (gaussian_delta(exact(0), found.upper) - (last.tpr - last.fpr)) / 2
        uppers.append(middle.upper())
        slopes = [exact(1)]
        if widest is not None:
            uppers.append(widest.bound)
            slopes += [
                widest.slope * (1.0 + 2.0**-k * s) for k in range(3, 12, 2) for s in (-1, 0, 1)
            ]
        if found.lower > 0:
            for slope in slopes:
                if slope >= 1:
                    e = slope.log()
                    value = (gaussian_delta(e, found.lower) - delta(e)) / (1 + slope)
                    lowers.append(value.lower())
    return Sides(max(lowers, key=Order), max(uppers, key=Order))
