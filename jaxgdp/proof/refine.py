"""Sides of a number, finer and finer, until a claim about it is decided."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple

from . import smooth
from .balls import Ball, Sides, exact, precision
from .closed import GaussianHalf, OneUse
from .compose import Effort, Part, clock, compose
from .gaussian_bounds import NotDecidable, approximate_mu, mu, regret
from .points import Half, of_atoms, polygon, tests
from .readings import Curve, advantage, bayes_risk, beta, delta, epsilon, tpr
from .uses import Atom, Finite, Masses, SampledGaussian

_MOST_ATOMS = 4096  # of a product of finite laws that is listed
_FALLBACK = 1e-3  # of the variance, where a closed form cannot be read
_WORKING = 128  # bits of balls beyond those of the integers
_STEERING = 128  # bits where only the effort is decided on


@dataclass(frozen=True)
class Question:
    """What is asked.

    Attributes:
        quantity: its name.
        argument: what it is asked at, or None.
        adjacency: "remove", "add" or "add_remove".
        smallest: a probability that still matters; for steering.
    """

    quantity: str
    argument: float | None
    adjacency: str
    smallest: float


@dataclass
class Look:
    """Sides that hold, and how they were found.

    Attributes:
        sides: of the number, exact.
        bits: masses were multiples of 2^−bits; 0 where nothing was composed.
        spacing: of the widest lattice, or 0.
        points: of the longest law.
        variance: that discretisation may have added.
    """

    sides: Sides
    bits: int = 0
    spacing: float = 0.0
    points: int = 0
    variance: float = 0.0
    seconds: float = field(default=0.0, compare=False)


class Composed(NamedTuple):
    """Rows of one order, with spacing and number of points of the law."""

    half: Half
    spacing: float
    points: int


_READINGS: dict[str, Callable[..., Sides]] = {
    "delta": delta,
    "epsilon": epsilon,
    "tpr": tpr,
    "beta": beta,
    "advantage": advantage,
    "bayes_risk": bayes_risk,
    "mu": mu,
    "approximate_mu": approximate_mu,
    "regret": regret,
}
_OF_DELTA = ("delta", "epsilon", "advantage", "bayes_risk")  # all that they need is δ(ε)


def read(curve: Curve, question: Question) -> Sides:
    """A quantity off a curve."""
    arguments = [] if question.argument is None else [exact(question.argument)]
    return _READINGS[question.quantity](curve, *arguments)


def variance_of(parts: Sequence[Part]) -> float:
    """About the variance of the composed loss, at least as large as one use's; for steering."""
    return sum(part.count * _variance(part) for part in parts)


def _variance(part: Part) -> float:
    """About the variance of one use's loss under its numerator."""
    use = part.use
    if not use.continuous:
        atoms = use.atoms("remove", 64)
        masses = [float(a.masses.numerator) for a in atoms]
        losses = [float(a.loss) for a in atoms]
    else:
        span = use.span("remove", 64)
        edges = [span.low + (span.high - span.low) * (i / 400.0) ** 2 for i in range(401)]
        tails = [float(use.tails("remove", exact(e)).numerator) for e in edges]
        masses = [a - b for a, b in itertools.pairwise(tails)]
        losses = [0.5 * (a + b) for a, b in itertools.pairwise(edges)]
        atoms = use.atoms("remove", 64)
        masses += [float(a.masses.numerator) for a in atoms]
        losses += [float(a.loss) for a in atoms]
    total = sum(masses) or 1.0
    mean = sum(m * x for m, x in zip(masses, losses, strict=True)) / total
    return max(sum(m * (x - mean) ** 2 for m, x in zip(masses, losses, strict=True)) / total, 1e-30)


def _listed(parts: Sequence[Part]) -> int:
    """Number of atoms of a product of finite laws, by numbers of uses of each output."""
    number = 1
    for part in parts:
        if not isinstance(part.use, Finite):
            return _MOST_ATOMS + 1
        outputs = len(part.use.atoms("remove", 0))
        number *= math.comb(part.count + outputs - 1, outputs - 1) if outputs else 1
    return number


def _powers(part: Part, order: str) -> Iterator[Atom]:
    """All ways to distribute a part's uses over its outputs."""
    atoms = list(part.use.atoms(order, 0))
    for cuts in itertools.combinations(range(part.count + len(atoms) - 1), len(atoms) - 1):
        ends = (-1, *cuts, part.count + len(atoms) - 1)
        numbers = [b - a - 1 for a, b in itertools.pairwise(ends)]
        ways, left = 1, part.count
        loss, masses = exact(0), [exact(1), exact(1)]
        for number, atom in zip(numbers, atoms, strict=True):
            ways *= math.comb(left, number)
            left -= number
            loss += number * atom.loss
            masses = [m * each**number for m, each in zip(masses, atom.masses, strict=True)]
        yield Atom(loss, Masses(ways * masses[0], ways * masses[1]))


def list_atoms(parts: Sequence[Part], order: str) -> Half:
    """A product of finite laws, atom by atom."""
    found = [Atom(exact(0), Masses(exact(1), exact(1)))]
    finite = exact(1)
    for part in parts:
        powers = list(_powers(part, order))
        found = [
            Atom(
                a.loss + b.loss,
                Masses(
                    a.masses.numerator * b.masses.numerator,
                    a.masses.denominator * b.masses.denominator,
                ),
            )
            for a in found
            for b in powers
        ]
        finite *= (1 - part.use.infinite(order)) ** part.count
    return of_atoms(found, 1 - finite)


class Finder:
    """Sides of one number of one composition, at any effort.

    Attributes:
        exact: whether more effort cannot help, but for more bits.
    """

    def __init__(
        self, parts: Sequence[Part], question: Question, halves: dict[tuple, Composed] | None = None
    ):
        self.parts, self.question = list(parts), question
        self.halves = {} if halves is None else halves  # of several questions about one mechanism
        self.enough: dict[str, Composed] = {}  # orders that need no finer look
        self.symmetric = all(part.use.symmetric for part in parts)
        self.uses = sum(part.count for part in parts)
        only = parts[0].use if len(parts) == 1 else None
        gaussian = isinstance(only, SampledGaussian) and only.plain
        of_delta = question.quantity in _OF_DELTA
        no_atoms = isinstance(only, SampledGaussian)
        self.one_use = self.uses == 1 and only is not None and only.continuous
        self.one_use = self.one_use and (of_delta or no_atoms)
        self.gaussian = gaussian
        self.listed = not gaussian and _listed(parts) <= _MOST_ATOMS
        lattice = only is not None and only.lattice is not None and not only.continuous
        self.exact = not parts or self.one_use or self.gaussian or self.listed or lattice
        with precision(_STEERING):
            self.variance = variance_of(parts) if parts else 0.0

    def bits(self, finer: int) -> int:
        """Bits of the integers: what matters, times the number of roundings, and some more."""
        matters = -math.log2(max(self.question.smallest, 1e-300))
        return int(matters + math.log2(max(self.uses, 1)) + 60 + 2 * finer) // 8 * 8 + 8

    def look(self, variance: float, finer: int, deadline: float) -> Look:
        """Sides at one effort.

        Raises:
            OutOfTime: the deadline has passed.
            NotDecidable: the quantity cannot be read off; says why.
        """
        bits = self.bits(finer)
        started = clock()
        with precision(bits + _WORKING):
            if not self.parts:
                found = Look(self._nothing())
            elif self.exact and (self.one_use or self.gaussian or self.listed):
                try:
                    found = Look(self._closed(bits))
                except NotDecidable:
                    if self.listed:
                        raise
                    self.exact, variance = False, variance or _FALLBACK * self.variance
                    found = self._composed(bits, variance, deadline, finer)
            else:
                found = self._composed(bits, variance, deadline, finer)
        found.seconds = clock() - started
        return found

    def _nothing(self) -> Sides:
        row = of_atoms([Atom(exact(0), Masses(exact(1), exact(1)))], exact(0))
        return read(Curve(row, row, self.question.adjacency), self.question)

    def _orders(self) -> list[str]:
        """The orders that a quantity needs: of a symmetric pair, one."""
        if self.symmetric:
            return ["remove"]
        at_zero = self.question.quantity in ("epsilon", "advantage") or (
            self.question.quantity == "delta" and (self.question.argument or 0.0) >= 0.0
        )
        if at_zero and self.question.quantity == "advantage":
            return ["remove"]
        if at_zero and self.question.adjacency != "add_remove":
            return [self.question.adjacency]
        return ["remove", "add"]

    def _curve(self, halves: dict) -> Curve:
        first = next(iter(halves.values()))
        remove, add = halves.get("remove", first), halves.get("add", first)
        return Curve(remove, add, self.question.adjacency)

    def _closed(self, bits: int) -> Sides:
        if self.gaussian:
            level = (1 / self.parts[0].use.variance).sqrt()  # type: ignore[attr-defined]
            return _of_gaussian(level, self.question)
        if self.listed:
            halves = {order: list_atoms(self.parts, order) for order in self._orders()}
        else:
            use = self.parts[0].use
            halves = {order: OneUse(use, order, bits) for order in self._orders()}
        if self.one_use and self.question.quantity in smooth.READINGS:
            curve = self._curve(halves)
            return smooth.READINGS[self.question.quantity](curve, exact(self.question.argument))
        return read(self._curve(halves), self.question)

    def _half(self, order: str, effort: Effort) -> Composed:
        """Rows of one order, with spacing and number of points of the law; composed once."""
        key = order, effort.bits, effort.variance, effort.grain, effort.longest
        if key not in self.halves:
            laws = compose(self.parts, order, effort)
            half = Half(polygon(laws.upper), tests(laws.lower), self._largest(order))
            spacing, points = float(laws.upper.grid.spacing), len(laws.upper.masses)
            self.halves[key] = Composed(half, spacing, points)
        return self.halves[key]

    def _largest(self, order: str) -> Ball | None:
        """A loss that all uses together never exceed."""
        total = exact(0)
        for part in self.parts:
            largest = part.use.largest_loss(order)
            if largest is None:
                return None
            total += part.count * largest
        return total

    def _composed(self, bits: int, variance: float, deadline: float, finer: int) -> Look:
        grain = Fraction(self.question.smallest) / 10**6 / 4 ** max(0, bits - self.bits(0))
        effort = Effort(variance, bits, grain, deadline, finer)
        halves, spacing, points = {}, 0.0, 0
        kept: dict[str, Composed] = {}
        for order in self._orders():
            found = self.enough.get(order) or self._half(order, effort)
            halves[order], kept[order] = found.half, found
            spacing, points = max(spacing, found.spacing), max(points, found.points)
        if self.question.quantity == "advantage" and self.question.adjacency != "remove":
            halves["add"] = halves["remove"]
        sides = read(self._curve(halves), self.question)
        self._note_smaller(kept)
        return Look(sides, bits, spacing, points, variance)

    def _note_smaller(self, kept: dict[str, Composed]) -> None:
        """An order whose δ(ε) or ε(δ) is certainly smaller need not be looked at more finely: those
        of both orders together are the larger ones."""
        question = self.question
        if len(kept) < 2 or self.enough or question.quantity not in ("delta", "epsilon"):
            return
        remove, add = (kept[order].half for order in ("remove", "add"))
        sides = {order: read(Curve(remove, add, order), question) for order in kept}
        for order, other in (("remove", "add"), ("add", "remove")):
            if sides[order].upper < sides[other].lower:
                self.enough[order] = kept[order]


def _of_gaussian(level: Ball, question: Question) -> Sides:
    """Closed forms of Gaussian noise alone."""
    half = GaussianHalf(level)
    if question.quantity == "mu":
        return Sides(level.lower(), level.upper())
    if question.quantity == "regret":
        return Sides(exact(0), exact(0))
    curve = Curve(half, half, question.adjacency)
    if question.quantity in smooth.READINGS:
        low, high = smooth.READINGS[question.quantity](curve, exact(question.argument))
        if question.quantity == "approximate_mu":  # the curve itself is one that holds
            high = high.min(level.upper()).upper()
        return Sides(low, high)
    return read(curve, question)
