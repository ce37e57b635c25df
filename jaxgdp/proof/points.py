"""What laws allow and what attacks achieve, as rows of points (FPR, TPR) in balls."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

from .balls import Ball, Sides, exact
from .laws import LowerLaw, UpperLaw
from .uses import Atom


class Point(NamedTuple):
    """A pair of rates."""

    fpr: Ball
    tpr: Ball


@dataclass(frozen=True)
class Row:
    """Points in the order of falling thresholds, from the one that accuses only what is certain.

    Attributes:
        points: the first has an FPR of 0; the i-th accuses the i largest losses (or labels).
        losses: what the i-th point accuses beyond the one before; the first entry is unused.
    """

    points: list[Point]
    losses: list[Ball] = field(default_factory=list)

    @cached_property
    def fpr(self) -> list[float]:
        """FPRs as doubles, for searches."""
        return [float(point.fpr) for point in self.points]

    @cached_property
    def tpr(self) -> list[float]:
        """TPRs as doubles, for searches."""
        return [float(point.tpr) for point in self.points]

    def intercept(self, i: int, growth: Ball) -> Ball:
        """TPR − e^ε·FPR of a point."""
        return self.points[i].tpr - growth * self.points[i].fpr

    def accused(self, epsilon: Ball) -> tuple[int, int]:
        """Numbers of losses that are certainly, and that may be, above ``epsilon``."""
        low, high = 1, len(self.losses)
        while low < high:
            middle = (low + high) // 2
            if self.losses[middle] > epsilon:
                low = middle + 1
            else:
                high = middle
        may = low
        while may < len(self.losses) and not self.losses[may] < epsilon:
            may += 1
        return low - 1, may - 1

    def best(self, growth: Ball) -> int:
        """About where TPR − e^ε·FPR is largest (any point is a test, so nothing depends on it)."""
        low, high = 0, len(self.points) - 1
        while high - low > 8:
            third = (high - low) // 3
            a, b = low + third, high - third
            if self.intercept(a, growth).mid() < self.intercept(b, growth).mid():
                low = a
            else:
                high = b
        margin = range(max(0, low - 4), min(len(self.points), high + 5))
        return max(margin, key=lambda i: float(self.intercept(i, growth)))

    def around(self, fpr: Ball) -> int:
        """The last point whose FPR is below ``fpr``, to the digits of doubles."""
        return max(bisect.bisect_left(self.fpr, float(fpr)) - 1, 0)


class Half(NamedTuple):
    """One order of a pair: the polygon of a pair that dominates, and tests of an attack.

    Method: docs/method/proof.md#balls
    """

    polygon: Row
    tests: Row
    largest: Ball | None = None  # a loss that is never exceeded

    def delta(self, epsilon: Ball) -> Sides:
        """Sides of δ(ε) for ε ≥ 0."""
        if self.largest is not None and epsilon >= self.largest:
            return Sides(exact(0), exact(0))
        growth = epsilon.exp()
        first, last = self.polygon.accused(epsilon)
        above = [self.polygon.intercept(i, growth) for i in range(first, last + 1)]
        upper = max((ball.upper() for ball in above), key=Order)
        tests = self.tests
        lower = tests.intercept(tests.best(growth), growth).lower()
        return Sides(lower.max(exact(0)), upper.min(exact(1)).max(exact(0)).upper())


class Order:
    """Exact numbers in their order, for ``max`` and ``sorted``."""

    def __init__(self, ball: Ball):
        self.ball = ball

    def __lt__(self, other: Order) -> bool:
        return bool(self.ball < other.ball)


def polygon(law: UpperLaw) -> Row:
    """All thresholds of a lattice law."""
    grid, unit = law.grid, exact(1) / (1 << law.grid.bits)
    top = law.first + len(law.masses) - 1
    growth, density = grid.spacing.exp(), (-grid.at(top)).exp() * unit
    total, fpr = law.infinite(), exact(0)
    points, losses = [Point(fpr, total * unit)], [exact(0)]
    for i, mass in enumerate(reversed(law.masses)):
        if mass:
            total += mass
            fpr += mass * density
            points.append(Point(fpr, total * unit))
            losses.append(grid.at(top - i))
        density *= growth
    return Row(points, losses)


def tests(law: LowerLaw) -> Row:
    """All thresholds of an attack's sum of labels."""
    grid, unit = law.grid, exact(1) / (1 << law.grid.bits)
    top = law.first + len(law.numerator) - 1
    growth, density = grid.spacing.exp(), (-grid.at(top)).exp() * unit
    total, fpr = law.infinite, exact(0)
    points = [Point(fpr, total * unit)]
    pairs = zip(reversed(law.numerator), reversed(law.tilted), strict=True)
    for numerator, tilted in pairs:
        if numerator or tilted:
            total += numerator
            fpr += tilted * density
            points.append(Point(fpr, total * unit))
        density *= growth
    return Row(points)


def _slack(atoms: Sequence[Atom]) -> Ball:
    """What another order of atoms whose losses cannot be told apart might allow more.

    Beside ε, within a distance d, an atom has |numerator − e^ε·denominator| of at most its
    numerator's mass times e^d − 1.
    """
    lowest = list(accumulate((a.loss.lower() for a in atoms), lambda x, y: x.min(y)))
    highest = list(accumulate((a.loss.upper() for a in reversed(atoms)), lambda x, y: x.max(y)))
    highest.reverse()
    slack, start = exact(0), 0
    for i in range(len(atoms)):
        if i + 1 < len(atoms) and not lowest[i] > highest[i + 1]:
            continue
        if i > start:
            mass = sum((atom.masses.numerator for atom in atoms[start : i + 1]), exact(0))
            lows, highs = [a.loss.lower() for a in atoms[start : i + 1]], highest[start]
            slack += mass * (highs - min(lows, key=Order)).abs_upper().expm1()
        start = i + 1
    return slack


def of_atoms(atoms: Sequence[Atom], infinite: Ball) -> Half:
    """Both rows of finitely many atoms of any losses."""
    ordered = sorted(atoms, key=lambda atom: Order(-atom.loss.mid()))
    slack = _slack(ordered)
    total, fpr = infinite, exact(0)
    points, losses = [Point(fpr, total)], [exact(0)]
    for atom in ordered:
        total, fpr = total + atom.masses.numerator, fpr + atom.masses.denominator
        points.append(Point(fpr, total))
        losses.append(atom.loss)
    raised = [Point(point.fpr, point.tpr + slack) for point in points]
    return Half(Row(raised, losses), Row(points))
