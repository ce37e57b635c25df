"""Laws of positive numbers on a lattice that coarsens by octaves from a centre, and their sums.

A sum of many heavy-tailed numbers has a narrow body and a tail that is longer by many orders. A
:class:`Law` has K of its finest points on either side of its centre and, further out, M points to
each octave of the distance, so that a few thousand points hold it all. Spacings are powers of two:
points of one level are points of all finer ones, and their sums are exact.

Two laws are added level by level, the part of a law that lies further in than a level on the
spacing of that level. Every such step, and the way back onto a lattice (:func:`spread`), moves mass
to the two neighbouring points with its mean kept. All of it is sums of products of positive
numbers, so masses have relative accuracy, however small they are: ``Law.error`` bounds it.

Where the numbers are logs of likelihood ratios (``Layout.of_logs``) and masses are those of their
numerator, what is kept is the mean of the ratio's inverse: the mass of the denominator."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, localcontext
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ...numerics.errors import SHARE_OF_LOGS, UNIT
from .pairwise_convolution import convolve, units

_Sum = TypeVar("_Sum")
# longest sum of products that is added up in whatever order: where levels have up to so many points
# on either side, and more digits than are asked for, and of more
_FEW, _FEW_BLOCK, _BLOCK = 1024, 513, 129
_FARTHEST = 500.0  # spacing, of logs, beyond which no level has mass
_DIGITS = 40  # of what is rounded once
# units of what is moved to the points of the next level: of its share, the product with that, what
# is added before, and two neighbours' shares
_MOVED = 5
# … of the size of a log that is not a point: rounded as a sum, and twice where it is spread
_PLACED = 3


class Frame(NamedTuple):
    """Levels whose points all laws of one sum lie on, numbered by ranks: of points 2^e apart, with
    as many of them on either side, for every e but those that finer levels stand for.

    Attributes:
        core: K, points of a level on either side.
        fine: exponent of the spacing of the first finer level, and its rank; None if there is none.
        octaves: g, finer levels have 2^g times as many points, and the first one reaches as far as
            the level of points 2^{fine + g} apart would.
        levels: how many of them there are, each of points twice as far apart as the one before.
    """

    core: int
    fine: int | None = None
    octaves: int = 0
    levels: int = 1

    @property
    def block(self) -> int:
        """Longest sum of products in any order."""
        return _FEW_BLOCK if self.core <= _FEW else _BLOCK

    def rank(self, exponent: Any) -> Any:
        """Rank of a level, by the exponent of its spacing."""
        if self.fine is None:
            return exponent
        return exponent - self.octaves * (exponent >= self.fine + self.levels)

    def exponent(self, rank: Any) -> Any:
        """Exponent of the spacing of a level."""
        if self.fine is None:
            return rank
        return rank + self.octaves * (rank >= self.fine + self.levels)

    def of_distance(self, exponent: Any) -> Any:
        """Exponent of the spacing of the level that stands for the one of points 2^e apart."""
        if self.fine is None:
            return exponent
        beyond = exponent - self.fine
        down = (beyond > 0) * (beyond < self.octaves + self.levels)
        return exponent - down * np.minimum(beyond, self.octaves)

    def is_finer(self, rank: Any) -> Any:
        """Whether a level is one of those with more points."""
        if self.fine is None:
            return False
        return (rank >= self.fine) & (rank < self.fine + self.levels)

    def reach(self, rank: Any) -> Any:
        """Points of a level on either side."""
        return self.core + self.core * ((1 << self.octaves) - 1) * self.is_finer(rank)

    def start(self, rank: Any, first: int) -> Any:
        """Where the numbers of a level begin if those of all from ``first`` on are one row."""
        return self._before(rank) - self._before(first)

    def starts(self, ranks: range, times: int = 1) -> list[int]:
        """Where those of each of some levels begin and, at last, end, which have so many times as
        many points on either side.
        """
        return _starts(self, ranks, times)

    def _before(self, rank: Any) -> Any:
        place = (2 * self.core + 1) * rank
        if self.fine is None:
            return place
        finer = np.clip(rank - self.fine, 0, self.levels)
        return place + 2 * self.core * ((1 << self.octaves) - 1) * finer


@functools.lru_cache(maxsize=512)
def _starts(frame: Frame, ranks: range, times: int) -> list[int]:
    widths = (2 * times * frame.reach(rank) + 1 for rank in ranks)
    return list(itertools.accumulate(widths, initial=0))


@dataclass
class Tally:
    """Products of masses that sums have taken.

    Attributes:
        usual, finer: on levels of the usual number of points, and on finer ones.
    """

    usual: float = 0.0
    finer: float = 0.0


@dataclass(frozen=True)
class Layout:
    """The positions of the points of a law.

    Attributes:
        centre: value of the middle point.
        finest: e, the finest spacing is 2^e.
        octave: M, points per octave of the distance from the centre, on either side.
        core: K, points of the finest level, on either side; even, at least 2M.
        of_logs: whether the mean of e^−value is kept where mass is moved, and not that of the
            value.
        fine, octaves, levels: of levels with more points; see :class:`Frame`.
        unit: of distances from the centre: a few binary digits, so that values are exact.
    """

    centre: float
    finest: int
    octave: int
    core: int
    of_logs: bool = False
    fine: int | None = None
    octaves: int = 0
    levels: int = 1
    unit: float = 1.0

    @property
    def frame(self) -> Frame:
        """The levels of its points, and of what is added to it."""
        return Frame(self.core, self.fine, self.octaves, self.levels)

    @property
    def first(self) -> int:
        """Rank of its finest level."""
        return int(self.frame.rank(self.frame.of_distance(self.finest)))

    def shares(self, part: np.ndarray, spacing: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Shares of a mass for the points below and above it, of which it lies so much of their
        spacing above the first.

        Method: docs/method/seldom.md#seldom-above
        """
        if not self.of_logs:
            return 1.0 - part, part
        # (no mass is on levels with spacings like that)
        spacing = np.minimum(spacing, _FARTHEST)
        up = np.expm1(-part * spacing) / np.expm1(-spacing)
        return np.expm1((1.0 - part) * spacing) / np.expm1(spacing), up

    def halves(self, level: int) -> tuple[float, float]:
        """The shares for what lies in the middle, of points 2^level units apart, rounded
        once.

        Method: docs/method/seldom.md#seldom-sums
        """
        return _halves(math.ldexp(self.unit, level)) if self.of_logs else (0.5, 0.5)

    def locate(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Exponent of the spacing, index of the point at or below, and distance to it in spacings
        of that level."""
        return self._located((values - self.centre) / self.unit)

    def _located(self, distance: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        level = level_of(distance, self.octave)
        near = (np.abs(distance) < math.ldexp(self.core, self.finest)) | (distance == 0.0)
        level = self.frame.of_distance(np.where(near, self.finest, level))
        scaled = np.ldexp(distance, -level)
        index = np.floor(scaled)
        return level, index.astype(np.int64), scaled - index

    def first_above_zero(self) -> float:
        """The smallest of its points that is larger than 0."""
        level, index, _ = self.locate(np.zeros(1))
        return self.centre + self.unit * math.ldexp(float(index[0]) + 1.0, int(level[0]))

    def between(self, low: float, high: float) -> np.ndarray:
        """Values of its points in [low, high], increasing."""
        level, _, _ = self.locate(np.array([low, high]))
        frame, found = self.frame, []
        for rank in range(self.first, int(frame.rank(level.max())) + 1):
            reach, exponent = frame.reach(rank), frame.exponent(rank)
            distance = np.ldexp(np.arange(-reach, reach + 1.0), exponent)
            own = self._located(distance)[0] == exponent
            found.append(self.centre + self.unit * distance[own])
        values = np.concatenate(found)
        return np.sort(values[(values >= low) & (values <= high)])


def level_of(distance: Any, octave: int) -> Any:
    """Exponent of the spacing of the level that a distance from the centre is on, of so many points
    to an octave: the least e for which 2M points reach farther.
    """
    part, exponent = np.frexp(np.abs(distance))
    reach, most = math.frexp(2 * octave)
    return exponent - most + (part >= reach)


@functools.cache
def _halves(spacing: float) -> tuple[float, float]:
    """1/(1 + e^{s/2}) and 1/(1 + e^{−s/2}), each the double that is nearest."""
    with localcontext() as context:
        context.prec = _DIGITS
        half = Decimal(min(spacing, _FARTHEST)) / 2
        down, up = (float(1 / (1 + each.exp())) for each in (half, -half))
    return down, up


@dataclass(frozen=True)
class Law:
    """Masses at the points of a layout.

    Attributes:
        layout: where the points are.
        ranks: its levels, from the layout's first one on.
        masses: one or more sets of masses, those of a level behind those of the one before, shape
            (sets, points): set 0 is the law, the others are carried along by :func:`add`.
        error: bound on the relative error of every mass.
        apart: bound on that of the ratio of a mass in a further set to that of set 0, beyond what
            the errors of set 0 make of the weights in this mean: it does not grow with the number
            of terms.

    Method: docs/method/reading.md#together
    """

    layout: Layout
    ranks: range
    masses: np.ndarray
    error: float
    apart: float

    def flat(self):
        """Values and masses (sets, points) of the points with mass, by increasing value."""
        values, masses = _with_mass(self.layout.frame, self.ranks, self.masses, 1)
        values = self.layout.centre + self.layout.unit * values
        order = np.argsort(values, kind="stable")
        return values[order], masses[:, order]


def _with_mass(frame: Frame, ranks: range, masses: np.ndarray, times: int):
    """Distances and masses of the points with mass, of levels that have so many times as many
    points on either side.
    """
    start = np.array(frame.starts(ranks, times))
    some = np.flatnonzero(np.any(masses > 0.0, axis=0))
    level = start.searchsorted(some, "right") - 1
    index = some - ((start[:-1] + start[1:]) // 2)[level]
    exponent = frame.exponent(np.array(ranks))[level]
    return np.ldexp(index.astype(float), exponent), masses[:, some]


def spread(
    layout: Layout, values: np.ndarray, masses: np.ndarray, error: float, apart: float
) -> Law:
    """Masses (sets, points) at ``values`` on a layout: to two neighbours, with means kept."""
    level, index, part = layout.locate(values)
    frame, first = layout.frame, layout.first
    rank = frame.rank(level)
    place = frame.start(rank, first) + index + frame.reach(rank)
    ranks = range(first, int(rank.max()) + 1)
    points = int(frame.start(ranks.stop, first))
    between = part > 0.0
    # (the upper neighbour of the last point of a level is the first of the next one, or stays if it
    # is the level's own last)
    joined = np.concatenate([place, place[between] + 1])
    # (a sum, and where mass is moved a product with a share)
    most = int(np.bincount(joined).max()) - 1
    if np.any(between):
        most += 1 + (SHARE_OF_LOGS if layout.of_logs else 3)
    down, up = layout.shares(part, np.ldexp(layout.unit, level))
    placed = []
    for mass in masses:
        both = np.concatenate([mass * down, (mass * up)[between]])
        placed.append(np.bincount(joined, both, minlength=points))
    return Law(layout, ranks, np.stack(placed), error + most * UNIT, apart + 2 * most * UNIT)


def _inner(masses: np.ndarray, layout: Layout, ranks: range):
    """For every level the masses of all finer ones, on its points: those of the level before, with
    the shares of those that lie between two of them.
    """
    frame, out = layout.frame, np.zeros_like(masses)
    start = frame.starts(ranks)
    some = np.any(masses > 0.0, axis=0)
    first = int(np.searchsorted(start, int(np.argmax(some)), "right"))  # (finer ones have no mass)
    for level in range(first, len(ranks)):
        last = slice(start[level - 1], start[level])
        before = out[:, last] + masses[:, last]
        for exponent in range(frame.exponent(ranks[level - 1]), frame.exponent(ranks[level])):
            down, up = layout.halves(exponent + 1)
            odd, before = before[:, 1::2], before[:, ::2].copy()
            before[:, :-1] += down * odd
            before[:, 1:] += up * odd
        middle, half = (start[level] + start[level + 1]) // 2, before.shape[1] // 2
        out[:, middle - half : middle + half + 1] = before
    return out


def _spans(masses: np.ndarray, starts: list[int]):
    """For every level its stretches with mass, (first, one beyond the last): two where the middle
    of a coarser level is hollow.
    """
    at, start = np.flatnonzero(masses > 0.0), np.array(starts)
    ends, middle = at.searchsorted(start), at.searchsorted((start[:-1] + start[1:]) // 2 + 1)
    places = zip(ends[:-1].tolist(), middle.tolist(), ends[1:].tolist(), strict=True)
    levels = zip(itertools.pairwise(starts), places, strict=True)
    return [_stretches(at, stop - first, first, *place) for (first, stop), place in levels]


def _stretches(at: np.ndarray, width: int, start: int, first: int, again: int, end: int):
    """The stretches of one level of so many points from ``start`` on, of which the masses from
    ``first`` to ``end`` are, from ``again`` on in its upper half.
    """
    if first == end:
        return ()
    low, high = int(at[first]) - start, int(at[end - 1]) + 1 - start
    if first < again < end and at[again] - at[again - 1] > width // 8 + 1:
        return (low, int(at[again - 1]) + 1 - start), (int(at[again]) - start, high)
    return ((low, high),)


def _products(
    frame: Frame, ranks: range, mine: np.ndarray, other: np.ndarray, out: np.ndarray, tally: Tally
) -> int:
    """Add to ``out``, levels of twice as many points on either side, all sums of points of one and
    other of a level; how many arrays are added up in one place at most.
    """
    most, starts = 0, frame.starts(ranks)
    both = zip(_spans(mine, starts), _spans(other, starts), strict=True)
    places = zip(itertools.pairwise(starts), frame.starts(ranks, 2), strict=False)
    block = frame.block
    for rank, (stretches, others), ((place, _), target) in zip(ranks, both, places, strict=True):
        if not stretches or not others:
            continue
        most, taken = max(most, len(stretches) * len(others)), 0
        for first, last in stretches:
            for start, end in others:
                a, b = mine[place + first : place + last], other[place + start : place + end]
                out[target + first + start : target + last + end - 1] += convolve(a, b, block)
                taken += len(a) * len(b)
        if frame.is_finer(rank):
            tally.finer += taken
        else:
            tally.usual += taken
    return most


def add(first: Law, second: Law, *, joint: bool = False, tally: Tally | None = None):
    """Values, masses (sets, points), errors of the sum of two laws of equal M, K and unit.

    For masses in further sets, m_1 … , the sum has first.m_i·second.p + first.p·second.m_i: what is
    added up over the terms of a sum. With ``joint`` it has first.m_i·second.m_i as well: what any
    number of terms, but not none, have of m_i and the others of p; ``apart`` is for each of them.
    Products are counted in ``tally``.

    Method: docs/method/seldom.md#seldom-ratio
    """
    taken = tally or Tally()
    frame = first.layout.frame
    laws = first, second
    ranks = range(min(law.ranks.start for law in laws), max(law.ranks.stop for law in laws))
    starts = frame.starts(ranks)

    def aligned(law: Law):
        full = np.zeros((len(law.masses), starts[-1]))
        at = starts[law.ranks.start - ranks.start]
        full[:, at : at + law.masses.shape[1]] = law.masses
        return full, _inner(full, law.layout, ranks)

    same = first is second
    a, inner_a = aligned(first)
    b, inner_b = (a, inner_a) if same else aligned(second)
    out = np.zeros((len(a), frame.starts(ranks, 2)[-1]))

    def products(mine: np.ndarray, other: np.ndarray, i: int) -> int:
        return _products(frame, ranks, mine, other, out[i], taken)

    if same:
        added = [products(a[0], a[0] + 2.0 * inner_a[0], 0)]
    else:
        added = [products(a[0], b[0] + inner_b[0], 0) + products(inner_a[0], b[0], 0)]
    for i in range(1, len(a)):
        other, inner_other = b[0], inner_b[0]
        if joint:
            times = 2.0 if same else 1.0
            other, inner_other = times * other + b[i], times * inner_other + inner_b[i]
        mine = products(a[i], other + inner_other, i) + products(inner_a[i], other, i)
        if same:
            out[i] *= 1.0 if joint else 2.0
        else:
            mine += products(a[0], b[i] + inner_b[i], i) + products(inner_a[0], b[i], i)
        added.append(mine)
    distance, masses = _with_mass(frame, ranks, out, 2)
    # sums of products, of up to two stretches of each law, of what two sums and one more made, of
    # one level into the next
    moved = _MOVED if first.layout.of_logs else _MOVED - 2
    moves = frame.exponent(ranks[-1]) - frame.exponent(ranks[0]) + 1
    widest = max(map(int, np.diff(starts)))
    sums = units(widest, frame.block) + max(added) + 4 + moved * moves
    centre = first.layout.centre + second.layout.centre
    away = first.layout.unit * distance
    values = centre + away
    if first.layout.of_logs:
        # (far from a centre that is not 0 a point may be no double)
        rounded = difference(away, -centre)[1] != 0.0
        sums += math.ceil(_PLACED * float(np.max(np.abs(values[rounded]), initial=0.0)))
    errors = (
        first.error + second.error + sums * UNIT,
        max(first.apart, second.apart) + 2 * sums * UNIT,
    )
    return values, masses, *errors


def difference(a: Any, b: Any) -> tuple[Any, Any]:
    """a − b as a double and what it is rounded by (Knuth)."""
    total = a - b
    back = total - a
    return total, (a - (total - back)) - (b + back)


def power(start: _Sum, number: int, join: Callable[[_Sum, _Sum, int], _Sum]) -> _Sum:
    """The sum of ``number`` independent terms, by doubling.

    Args:
        start: one term.
        number: of terms, at least 1.
        join: the sum of two sums, which has so many terms.
    """
    total, terms = start, 1
    for bit in bin(number)[3:]:
        terms *= 2
        total = join(total, total, terms)
        if bit == "1":
            terms += 1
            total = join(total, start, terms)
    return total


def by_parts(start: _Sum, number: int, join: Callable[[_Sum, _Sum, int], _Sum]) -> _Sum:
    """The same from sums of 1, 2, 4, … terms, of which those are added up that make up the number,
    short ones first: what it takes to add a short one counts once, and not in every later sum.

    Args:
        start, number, join: as for :func:`power`.
    """
    part, size, total, terms = start, 1, None, 0
    while terms < number:
        if number & size:
            terms += size
            total = part if total is None else join(total, part, terms)
        size *= 2
        part = join(part, part, size) if terms < number else part
    return part if total is None else total
