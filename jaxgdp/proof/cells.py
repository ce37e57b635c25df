"""From one use to integers: cells of the loss, and what each gives to both laws."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from typing import NamedTuple

from .balls import Ball, Integer, ceil_scaled, exact, flint, floor_scaled
from .laws import Grid, LowerLaw, UpperLaw, recentre
from .uses import Atom, Masses, Use, worth_a_place

_GUARD = 40  # bits of masses left out, beyond those of the integers


class Range(NamedTuple):
    """Where cells end.

    Attributes:
        tail_bits: the mass beyond them, under the numerator, is about 2^−tail_bits.
        lowest: a loss from which on less is as good: what is below goes there.
    """

    tail_bits: int
    lowest: float = -math.inf


class Cell(NamedTuple):
    """Outputs whose loss is above point ``low`` and at most point ``high``."""

    low: int
    high: int
    masses: Masses


class Cells(NamedTuple):
    """A partition of the outputs without atoms.

    Attributes:
        below: masses of what has less loss than the first cell; a faint tail is left out of them.
        cells: from the smallest losses to the largest.
        top: the last point.
        above: masses of what has more loss than that.
    """

    below: Masses
    cells: list[Cell]
    top: int
    above: Masses


class Laws(NamedTuple):
    """Both sides of one use, or of a composition, in one order."""

    upper: UpperLaw
    lower: LowerLaw


class _Splitting:
    """Cells that are halved where mass·width² is largest. Doubles decide where, which is a matter
    of widths and not of validity."""

    def __init__(
        self,
        use: Use,
        order: str,
        grid: Grid,
        widest: float,
        range_of: Range,
        check: Callable[[], None],
    ):
        self.use, self.order, self.grid, self.check = use, order, grid, check
        self.spacing = float(grid.spacing)
        self.known: dict[int, Masses] = {}
        span = use.span(order, range_of.tail_bits)
        step = 1 << max(0, math.floor(math.log2(max(widest / self.spacing, 1.0))))
        before = lambda loss: (math.floor(loss / self.spacing) - 1) // step * step
        self.faint = before(span.low)
        self.first = max(self.faint, before(min(max(range_of.lowest, -1e100), span.high)))
        self.last = -((-math.ceil(span.high / self.spacing) - 1) // step * step)
        starts = range(self.first, self.last, step)
        self.heap = [self._entry(low, low + step) for low in starts]
        heapq.heapify(self.heap)

    def tails(self, k: int) -> Masses:
        """Tails at a point, once."""
        if k not in self.known:
            self.check()
            self.known[k] = self.use.tails(self.order, self.grid.at(k))
        return self.known[k]

    def _entry(self, low: int, high: int) -> tuple[float, int, int]:
        mass = float(self.tails(low).numerator) - float(self.tails(high).numerator)
        return -mass * ((high - low) * self.spacing) ** 2, low, high

    def run(self, variance: float) -> list[tuple[int, int]]:
        """Halve until all cells together add ``variance``, or are as narrow as the lattice."""
        done, total = [], -sum(item[0] for item in self.heap)
        while self.heap and total > 6.0 * variance:
            worth, low, high = heapq.heappop(self.heap)
            if high - low == 1:
                done.append((low, high))
                continue
            middle = (low + high) // 2
            halves = self._entry(low, middle), self._entry(middle, high)
            total += worth - halves[0][0] - halves[1][0]
            for half in halves:
                heapq.heappush(self.heap, half)
        return sorted([*done, *((low, high) for _, low, high in self.heap)])


def partition(
    use: Use,
    order: str,
    grid: Grid,
    variance: float,
    widest: float,
    range_of: Range,
    check: Callable[[], None] = lambda: None,
) -> Cells:
    """Cells that add at most ``variance`` to that of the loss, none wider than ``widest``."""
    none = Masses(exact(0), exact(0))
    if not use.continuous:
        return Cells(none, [], 0, none)
    splitting = _Splitting(use, order, grid, widest, range_of, check)
    below = none
    if splitting.faint < splitting.first:
        ends = splitting.tails(splitting.faint), splitting.tails(splitting.first)
        below = Masses(*((x - y).nonnegative_part() for x, y in zip(*ends, strict=True)))
    cells = []
    for low, high in splitting.run(variance):
        a, b = splitting.tails(low), splitting.tails(high)
        masses = (x - y for x, y in zip(a, b, strict=True))
        cells.append(Cell(low, high, Masses(*(m.nonnegative_part() for m in masses))))
    return Cells(below, cells, splitting.last, splitting.tails(splitting.last))


def _place(atom: Atom, grid: Grid, factor: int) -> tuple[int, int]:
    """Points below and above an atom; the same one twice where it may be on it."""
    if atom.place is not None and factor:
        return atom.place * factor, atom.place * factor
    place = (atom.loss - grid.shift) / grid.spacing
    below, nearest = place.floor(), (place + exact(1) / 2).floor().mid().floor()
    if below.is_integer() and below < place:
        low = int(below.unique_fmpz())
        return low, low + 1
    k = int(nearest.unique_fmpz())
    return k, k


class _UpperMasses:
    """The numerator's mass at each point, in balls."""

    def __init__(self, grid: Grid):
        self.grid = grid
        self.masses: dict[int, Ball] = {}
        self.growth: dict[int, Ball] = {}

    def put(self, k: int, mass: Ball) -> None:
        """More mass at a point."""
        self.masses[k] = self.masses[k] + mass if k in self.masses else mass

    def split(self, low: int, high: int, masses: Masses) -> None:
        """Connect the dots: both masses are kept (docs/method/dominating.md#split)."""
        if high - low not in self.growth:
            self.growth[high - low] = (self.grid.spacing * (high - low)).expm1()
        at_high = masses.denominator * self.grid.at(high).exp()
        at_low = (at_high - masses.numerator) / self.growth[high - low]
        self.put(low, at_low)
        self.put(high, masses.numerator - at_low)

    def raise_to(self, k: int, masses: Masses) -> None:
        """As much at a point as both masses allow: the rest of each goes to an infinity."""
        self.put(k, masses.numerator.min(masses.denominator * self.grid.at(k).exp()))


def _row(values: dict[int, Integer]) -> tuple[int, list[Integer]]:
    first = min(values)
    row = [flint.fmpz(0)] * (max(values) - first + 1)
    for k, value in values.items():
        row[k - first] = value
    return first, row


def _upper(cells: Cells, atoms: list[Atom], grid: Grid, factor: int) -> UpperLaw:
    found = _UpperMasses(grid)
    for cell in cells.cells:
        found.split(*cell)
    if cells.cells:
        found.raise_to(cells.cells[0].low, cells.below)
        found.put(cells.top, cells.above.denominator * grid.at(cells.top).exp())
    for atom in atoms:
        low, high = _place(atom, grid, factor)
        if low < high:
            found.split(low, high, atom.masses)
        elif atom.place is not None and factor:
            ratio = atom.masses.denominator * grid.at(low).exp()
            if not atom.masses.numerator.overlaps(ratio):
                raise ArithmeticError("an atom is not where its masses say that it is")
            found.put(low, atom.masses.numerator)
        else:
            found.raise_to(low, atom.masses)
    zero = flint.fmpz(0)
    whole = {k: max(zero, floor_scaled(mass, grid.bits)) for k, mass in found.masses.items()}
    return UpperLaw(grid, *_row(whole))


def _lower(use: Use, order: str, cells: Cells, atoms: list[Atom], grid: Grid, factor: int):
    """Each label with the masses of what has it."""
    labels: dict[int, list[Masses]] = {}
    for cell in cells.cells:
        labels.setdefault((cell.low + cell.high) // 2, []).append(cell.masses)
    if cells.cells:
        labels.setdefault(cells.top, []).append(cells.above)
    for atom in atoms:
        labels.setdefault(_place(atom, grid, factor)[0], []).append(atom.masses)
    numerator, tilted, zero = {}, {}, flint.fmpz(0)
    for k, masses in labels.items():
        total = Masses(*(sum(column, exact(0)) for column in zip(*masses, strict=True)))
        numerator[k] = max(zero, floor_scaled(total.numerator, grid.bits))
        tilted[k] = ceil_scaled(total.denominator * grid.at(k).exp(), grid.bits)
    infinite = floor_scaled(use.infinite(order), grid.bits)
    first, row = _row(numerator)
    return recentre(LowerLaw(grid, first, row, _row(tilted)[1], infinite))


def laws_of(
    use: Use,
    order: str,
    grid: Grid,
    factor: int,
    variance: float,
    widest: float,
    range_of: Range | None = None,
    check: Callable[[], None] = lambda: None,
) -> Laws:
    """Both laws of one use.

    Args:
        use: the mechanism.
        order: "remove" or "add".
        grid: the lattice; where ``factor`` is not 0, its points hold all losses of the use's own.
        factor: number of spacings in the unit of the use's own lattice, or 0.
        variance, widest: see :func:`partition`.
        range_of: where the cells end; where the integers do, if None.
        check: called often, to end what takes too long.

    Method: docs/method/proof.md#integers
    """
    range_of = range_of or Range(grid.bits + _GUARD)
    cells = partition(use, order, grid, variance, widest, range_of, check)
    # (those left out are at +∞, and never accused, as all that is in no row)
    atoms = list(worth_a_place(use.atoms(order, grid.bits + _GUARD), range_of.tail_bits))
    upper = _upper(cells, atoms, grid, factor)
    return Laws(upper, _lower(use, order, cells, atoms, grid, factor))
