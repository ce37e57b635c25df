"""Composition: powers and products of laws, on lattices that widen as laws do.

A lattice as fine as one use needs it would be far too long for what many uses add up to. So laws
are moved to lattices of twice the spacing as they grow (``coarsen_upper``, ``coarsen_lower``):
every move keeps the side, and adds some variance. All moves and cells together may add ``variance``
to that of the whole loss, which decides how wide the bracket gets and nothing else."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple, cast

from .balls import Ball, Integer, exact, flint
from .cells import Laws, Range, laws_of
from .gaussian_bounds import NotDecidable
from .laws import (
    Grid,
    coarsen_lower,
    coarsen_upper,
    multiply_lower,
    multiply_upper,
    refine_lower,
    refine_upper,
    trim_lower,
    trim_upper,
)
from .uses import Lattice, Use

# points of a law that stays on a lattice of its own: of a first look, and of the finest one
_LONG, _LONGEST = 1 << 16, 1 << 20
_SHORTEST = 64  # points below which a law is not moved to a wider lattice
MOST_POINTS, _MOST_AT_FIRST = 4e6, 4e5  # of one use with a continuous loss


clock = time.thread_time  # what else the machine does must not decide how finely it is looked


class OutOfTime(Exception):
    """The time limit was reached."""


class TooLong(NotDecidable):
    """A law would have too many points.

    Attributes:
        points: about how many.
    """

    def __init__(self, points: float, most: float):
        super().__init__(
            f"a lattice of about {points:.0e} points would be needed, more than {most:.0e}"
        )
        self.points = points


class Part(NamedTuple):
    """A mechanism's use and how often it is used."""

    use: Use
    count: int  # pyright: ignore[reportIncompatibleMethodOverride]


@dataclass(frozen=True)
class Effort:
    """How finely to look.

    Attributes:
        variance: what discretisation may add to the variance of the loss.
        bits: masses are multiples of 2^−bits.
        grain: a probability that matters to nobody.
        deadline: when to give up, by ``clock``.
        finer: number of looks before.
    """

    variance: float
    bits: int
    grain: Fraction
    deadline: float
    finer: int = 0

    @property
    def longest(self) -> int:
        """Points of a law that stays on a lattice of its own."""
        return min(_LONG << 2 * min(self.finer, 8), _LONGEST)

    def check_time(self) -> None:
        """Raises OutOfTime after the deadline."""
        if clock() > self.deadline:
            raise OutOfTime

    def least(self, copies: float) -> Integer:
        """Units below which the tail of a law of which there are ``copies`` is cut off."""
        share = self.grain / Fraction(max(copies, 1.0)) / 64
        return flint.fmpz(max(1, int(share * (1 << self.bits))))

    def tail_bits(self, copies: float) -> int:
        """−log₂ of the tail of one use that is left out where there are ``copies``."""
        return self.bits + 1 - int(self.least(copies).bit_length())


def _doublings(count: int) -> int:
    return max(count.bit_length() - 1, 0)


def _spacing(part: Part, variance: float) -> float:
    """Spacing at which a part's cells add a quarter of its share of the variance."""
    share = variance / (_doublings(part.count) + 2)
    return math.sqrt(1.5 * share / part.count)


class Base(NamedTuple):
    """The finest lattice of a composition.

    Attributes:
        spacing: of its points.
        owner: number of the part whose own lattice it refines, or −1.
        factor: spacings in the unit of that lattice, or 0.
    """

    spacing: Ball
    owner: int
    factor: int


def base_of(parts: Sequence[Part], variance: float) -> Base:
    """The lattice to begin with: as fine as the finest part needs it, and a refinement of the first
    lattice that losses of a part are on by themselves, if there is one."""
    lattices = [part.use.lattice for part in parts]
    owner = next((i for i, lattice in enumerate(lattices) if lattice is not None), -1)
    free = (part for i, part in enumerate(parts) if i != owner or part.use.continuous)
    wanted = min((_spacing(part, variance) for part in free), default=math.inf)
    if owner < 0:
        return Base(exact(2.0 ** math.floor(math.log2(wanted))), owner, 0)
    unit, factor = cast(Lattice, lattices[owner]).unit, 1
    while float(unit) / factor > wanted:
        factor *= 2
    return Base(unit / factor, owner, factor)


def _ratio(a: Laws, b: Laws) -> float:
    return float(a.upper.grid.spacing) / float(b.upper.grid.spacing)


def _largest(parts: Sequence[Part], order: str) -> float:
    """A loss that all uses together never exceed, ∞ where there is none; for steering."""
    each = [(part.count, part.use.largest_loss(order)) for part in parts]
    return sum(math.inf if most is None else count * abs(float(most)) for count, most in each)


class _Composing:
    """One order of a composition at one effort."""

    def __init__(self, parts: Sequence[Part], order: str, effort: Effort):
        self.parts, self.order, self.effort = parts, order, effort
        self.share = effort.variance / len(parts)
        self.base = base_of(parts, self.share)
        self.lowest = -2.0 * _largest(parts, order)
        # (losses that are on the lattice by themselves need no variance)
        self.exact = len(parts) == 1 and self.base.owner == 0 and not parts[0].use.continuous

    def run(self) -> Laws:
        """All parts, the shortest laws first."""
        laws = [self._power(number) for number in range(len(self.parts))]
        while len(laws) > 1:
            laws.sort(key=lambda pair: (float(pair.upper.grid.spacing), len(pair.upper.masses)))
            first, second = laws[:2]
            laws = [self._multiply(first, second, 1.0), *laws[2:]]
        return laws[0]

    def _one_use(self, number: int) -> Laws:
        """One use of a part, on the widest lattice that its share of the variance allows."""
        part = self.parts[number]
        use, allowed = part.use, _spacing(part, self.share)
        spacing, factor, shift = self.base.spacing, 0, exact(0)
        if number == self.base.owner:
            factor, shift = self.base.factor, cast(Lattice, use.lattice).shift
        while factor != 1 and (2.0 * float(spacing) <= allowed or (factor and not use.continuous)):
            spacing, factor = 2 * spacing, factor // 2
        step = self.share / (_doublings(part.count) + 2) / part.count / 2
        grid = Grid(spacing, shift, self.effort.bits)
        range_of = Range(self.effort.tail_bits(part.count), self.lowest)
        self._check_length(use, grid, range_of)
        widest, check = math.sqrt(self.share), self.effort.check_time
        return laws_of(use, self.order, grid, factor, step, widest, range_of, check)

    def _check_length(self, use: Use, grid: Grid, range_of: Range) -> None:
        """Refuse lattices that are too long to be looked at: a loss that is nearly always next to
        nothing, and rarely much, has a small variance and a long range.
        """
        span = use.span(self.order, range_of.tail_bits)
        points = (span.high - max(span.low, range_of.lowest)) / float(grid.spacing)
        most = MOST_POINTS if self.effort.finer > 0 else _MOST_AT_FIRST
        if points > most:
            raise TooLong(points, most)

    def _trim(self, pair: Laws, copies: float) -> Laws:
        least, grid = self.effort.least(copies), pair.upper.grid
        lowest = (max(self.lowest, -1e100) - float(grid.shift)) / float(grid.spacing)
        first = math.floor(lowest)
        return Laws(trim_upper(pair.upper, least, first), trim_lower(pair.lower, least, first))

    def _coarsen(self, pair: Laws) -> Laws:
        self.effort.check_time()
        return Laws(coarsen_upper(pair.upper), coarsen_lower(pair.lower))

    def _may_meet(self, pair: Laws) -> bool:
        """Whether a law may be moved to twice the spacing to be multiplied with another one, which
        is otherwise moved to half its own."""
        spacing = 2.0 * float(pair.upper.grid.spacing)
        return self.exact or spacing**2 <= self.share / (2 * len(self.parts))

    def _multiply(self, a: Laws, b: Laws, copies: float) -> Laws:
        self.effort.check_time()
        while abs(1.0 - _ratio(a, b)) > 0.25:
            fine, wide = (a, b) if _ratio(a, b) < 1.0 else (b, a)
            if self._may_meet(fine):
                fine = self._coarsen(fine)
            else:
                wide = Laws(refine_upper(wide.upper), refine_lower(wide.lower))
            a, b = fine, wide
        product = Laws(multiply_upper(a.upper, b.upper), multiply_lower(a.lower, b.lower))
        return self._trim(product, copies)

    def _may_widen(self, part: Part, pair: Laws, copies: float) -> bool:
        """Whether a lattice of twice the spacing adds no more than a move may."""
        number = len(pair.upper.masses)
        if self.exact:
            return number > self.effort.longest
        spacing = 2.0 * float(pair.upper.grid.spacing)
        share = self.share / (_doublings(part.count) + 2)
        return number > _SHORTEST and copies * spacing**2 / 8.0 <= share

    def _power(self, number: int) -> Laws:
        """All uses of a part, by squaring."""
        part = self.parts[number]
        result: Laws | None = None
        count, copies = part.count, float(part.count)
        current = self._trim(self._one_use(number), copies)
        while True:
            while self._may_widen(part, current, copies):
                current = self._coarsen(current)
            if count & 1:
                result = current if result is None else self._multiply(result, current, 1.0)
            count >>= 1
            if not count and result is not None:
                return result
            copies /= 2.0
            current = self._multiply(current, current, copies)


def compose(parts: Sequence[Part], order: str, effort: Effort) -> Laws:
    """Both laws of a composition in one order.

    Raises:
        OutOfTime: the deadline has passed.

    Method: docs/method/proof.md#wider
    """
    return _Composing(parts, order, effort).run()
