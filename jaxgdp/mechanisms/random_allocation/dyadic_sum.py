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
import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, localcontext
from typing import TypeVar

import numpy as np

from ...numerics.batching.products import in_one_thread
from ...numerics.errors import SHARE_OF_LOGS, UNIT

_Sum = TypeVar("_Sum")
# longest sum of products that is added up in whatever order: of many points, and of up to so many
# on either side of the centre, for which calls would take longer than products
_BLOCK, _FEW_BLOCK, _FEW = 32, 129, 512
_MOST = 2**12  # points, of which sums are kept beside each other
_FARTHEST = 500.0  # spacing, of logs, beyond which no level has mass
_DIGITS = 40  # of what is rounded once
# units of what is moved to the points of the next level: of its share, the product with that, what
# is added before, and two neighbours' shares
_MOVED = 5


@dataclass(frozen=True)
class Layout:
    """The positions of the points of a law.

    Attributes:
        centre: value of the middle point.
        finest: e, the finest spacing is 2^e.
        octave: M, points per octave of the distance from the centre, on either side; a power of
            two.
        core: K, points of the finest level, on either side; a power of two, at least 2M.
        of_logs: whether the mean of e^−value is kept where mass is moved, and not that of the
            value.
    """

    centre: float
    finest: int
    octave: int
    core: int
    of_logs: bool = False

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
        """The shares for what lies in the middle, of points 2^level apart, rounded once.

        Method: docs/method/seldom.md#seldom-sums
        """
        return _halves(math.ldexp(1.0, level)) if self.of_logs else (0.5, 0.5)

    def locate(self, values: np.ndarray):
        """Level, index of the point at or below, and distance to it in spacings of that level."""
        distance = values - self.centre
        _, exponent = np.frexp(np.abs(distance))
        # 2M points of a level reach to 2^{level}·2M, and K of the finest one to 2^{finest}·K
        level = exponent - int(math.log2(2 * self.octave))
        near = (exponent <= self.finest + int(math.log2(self.core))) | (distance == 0.0)
        level = np.where(near, self.finest, level)
        scaled = np.ldexp(distance, -level)
        index = np.floor(scaled)
        return level - self.finest, index.astype(np.int64), scaled - index

    def values(self, levels: int):
        """Values of all points of the lowest ``levels`` levels, shape (levels, 2K + 1)."""
        index = np.arange(-self.core, self.core + 1)
        return self.centre + np.ldexp(
            index[None, :].astype(float), self.finest + np.arange(levels)[:, None]
        )

    def first_above_zero(self) -> float:
        """The smallest of its points that is larger than 0."""
        level, index, _ = self.locate(np.zeros(1))
        return self.centre + math.ldexp(float(index[0]) + 1.0, int(level[0]) + self.finest)

    def between(self, low: float, high: float):
        """Values of its points in [low, high], increasing."""
        level, _, _ = self.locate(np.array([low, high]))
        found = self.values(int(level.max()) + 1)
        index, rank = (
            np.abs(np.arange(-self.core, self.core + 1))[None, :],
            np.arange(len(found))[:, None],
        )
        outer = (
            (index > self.octave)
            & (index <= 2 * self.octave)
            & (index > np.ldexp(float(self.core), -rank))
        )
        return np.sort(found[np.where(rank > 0, outer, True) & (found >= low) & (found <= high)])


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
        masses: one or more sets of masses, shape (sets, levels, 2K + 1): set 0 is the law, the
            others are carried along by :func:`add`.
        error: bound on the relative error of every mass.
        apart: bound on that of the ratio of a mass in a further set to that of set 0, beyond what
            the errors of set 0 make of the weights in this mean: it does not grow with the number
            of terms.

    Method: docs/method/reading.md#together
    """

    layout: Layout
    masses: np.ndarray
    error: float
    apart: float

    def flat(self):
        """Values and masses (sets, points) of the points with mass, by increasing value."""
        levels = self.masses.shape[1]
        values = self.layout.values(levels).reshape(-1)
        masses = self.masses.reshape(len(self.masses), -1)
        some = np.flatnonzero(np.any(masses > 0.0, axis=0))
        order = some[np.argsort(values[some], kind="stable")]
        return values[order], masses[:, order]


def spread(
    layout: Layout, values: np.ndarray, masses: np.ndarray, error: float, apart: float
) -> Law:
    """Masses (sets, points) at ``values`` on a layout: to two neighbours, with means kept."""
    level, index, part = layout.locate(values)
    width = 2 * layout.core + 1
    levels = int(level.max()) + 1
    place = level * width + index + layout.core
    between = part > 0.0
    # (the upper neighbour of the last point of a level is the first of the next one, or stays if it
    # is the level's own last)
    joined = np.concatenate([place, place[between] + 1])
    # (a sum, and where mass is moved a product with a share)
    most = int(np.bincount(joined).max()) - 1
    if np.any(between):
        most += 1 + (SHARE_OF_LOGS if layout.of_logs else 3)
    down, up = layout.shares(part, np.ldexp(1.0, level + layout.finest))
    placed = []
    for mass in masses:
        both = np.concatenate([mass * down, (mass * up)[between]])
        placed.append(np.bincount(joined, both, minlength=levels * width).reshape(levels, width))
    return Law(layout, np.stack(placed), error + most * UNIT, apart + 2 * most * UNIT)


def _inner(masses: np.ndarray, layout: Layout, finest: int):
    """For every level the masses of all finer ones, on its points: those of the level before, with
    the shares of those that lie between two of them.
    """
    out = np.zeros_like(masses)
    levels, width = masses.shape[-2:]
    first = int(np.argmax(np.any(masses > 0.0, axis=(0, -1)))) + 1  # (finer ones have no mass)
    half = (width - 1) // 4
    for level in range(first, levels):
        down, up = layout.halves(finest + level)
        before = out[:, level - 1] + masses[:, level - 1]
        odd, inner = before[:, 1::2], out[:, level, half : width - half]
        inner += before[:, ::2]
        inner[:, :-1] += down * odd
        inner[:, 1:] += up * odd
    return out


def _spans(masses: np.ndarray):
    """For every level its stretches with mass, (first, one beyond the last): two where the middle
    of a coarser level is hollow.
    """
    levels, width = masses.shape
    at = np.flatnonzero(masses > 0.0)
    row = width * np.arange(levels + 1)
    ends, middle = at.searchsorted(row), at.searchsorted(row[:-1] + width // 2 + 1)
    places = zip(ends[:-1].tolist(), middle.tolist(), ends[1:].tolist(), strict=True)
    return [_stretches(at, width, level, *place) for level, place in enumerate(places)]


def _stretches(at: np.ndarray, width: int, level: int, first: int, again: int, end: int):
    """The stretches of one level, of which the masses from ``first`` to ``end`` are, from ``again``
    on in its upper half.
    """
    if first == end:
        return ()
    start = level * width
    low, high = int(at[first]) - start, int(at[end - 1]) + 1 - start
    if first < again < end and at[again] - at[again - 1] > width // 8 + 1:
        return (low, int(at[again - 1]) + 1 - start), (int(at[again]) - start, high)
    return ((low, high),)


def _convolve(one: np.ndarray, other: np.ndarray, block: int) -> np.ndarray:
    """Their convolution, in sums of at most ``block`` products that are added up in pairs.

    Method: docs/method/seldom.md#seldom-sums
    """
    short, long = (one, other) if len(one) <= len(other) else (other, one)
    if len(short) <= block:
        return np.correlate(long, short[::-1], "full")
    if block == _BLOCK and len(short) <= _MOST:
        return _all_at_once(short, long)
    half = len(short) // 2
    first, second = (_convolve(part, long, block) for part in (short[:half], short[half:]))
    found = np.zeros(len(short) + len(long) - 1)
    found[: len(first)] = first
    found[half:] += second
    return found


def _all_at_once(short: np.ndarray, long: np.ndarray) -> np.ndarray:
    """The same, with all sums of _BLOCK products by BLAS."""
    blocks = np.zeros(-len(short) % _BLOCK + len(short))
    blocks[: len(short)] = short
    backward = np.ascontiguousarray(blocks.reshape(-1, _BLOCK)[:, ::-1])
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(long, _BLOCK - 1), _BLOCK)
    sums = in_one_thread(backward, np.ascontiguousarray(windows).T)
    return _in_pairs(sums, _BLOCK)[: len(short) + len(long) - 1]


def _in_pairs(rows: np.ndarray, apart: int) -> np.ndarray:
    """The sum of rows each of which begins so many places after the one before it."""
    while len(rows) > 1:
        width = rows.shape[1]
        found = np.zeros((-(-len(rows) // 2), width + apart))
        found[:, :width] = rows[::2]
        found[: len(rows) // 2, apart:] += rows[1::2]
        rows, apart = found, 2 * apart
    return rows[0]


def _block(width: int) -> int:
    """Longest sum of products in any order, of laws with levels of so many points."""
    return _FEW_BLOCK if width <= 2 * _FEW + 1 else _BLOCK


def _units(width: int) -> int:
    """Roundings of a sum of at most so many products by :func:`_convolve`."""
    block = _block(width)
    return block + math.ceil(math.log2(max(width / block, 1.0))) + 1


def _products(mine: np.ndarray, spans: list, other: np.ndarray, out: np.ndarray) -> int:
    """Add to ``out`` (levels, 4K + 1) all sums of points of one and other of a level; how many
    arrays are added up in one place at most.
    """
    most, block = 0, _block(mine.shape[-1])
    for a, b, stretches, others, target in zip(mine, other, spans, _spans(other), out, strict=True):
        most = max(most, len(stretches) * len(others))
        for first, last in stretches:
            for start, end in others:
                found = _convolve(a[first:last], b[start:end], block)
                target[first + start : last + end - 1] += found
    return most


def add(first: Law, second: Law, *, joint: bool = False):
    """Values, masses (sets, points), errors of the sum of two laws (layouts of equal M and K).

    For masses in further sets, m_1 … , the sum has first.m_i·second.p + first.p·second.m_i: what is
    added up over the terms of a sum. With ``joint`` it has first.m_i·second.m_i as well: what any
    number of terms, but not none, have of m_i and the others of p; ``apart`` is for each of them.

    Method: docs/method/seldom.md#seldom-ratio
    """
    core = first.layout.core
    finest = min(first.layout.finest, second.layout.finest)
    tops = [law.layout.finest + law.masses.shape[1] for law in (first, second)]
    levels, width = max(tops) - finest, 2 * core + 1

    def aligned(law: Law):
        full = np.zeros((len(law.masses), levels, width))
        at = law.layout.finest - finest
        full[:, at : at + law.masses.shape[1]] = law.masses
        return full, _inner(full, law.layout, finest)

    same = first is second
    a, inner_a = aligned(first)
    b, inner_b = (a, inner_a) if same else aligned(second)
    out = np.zeros((len(a), levels, 2 * width - 1))
    spans = [_spans(mass) for mass in a]
    inner = _spans(inner_a[0])
    if same:
        added = [_products(a[0], spans[0], a[0] + 2.0 * inner_a[0], out[0])]
    else:
        added = [
            _products(a[0], spans[0], b[0] + inner_b[0], out[0])
            + _products(inner_a[0], inner, b[0], out[0])
        ]
    for i in range(1, len(a)):
        other, inner_other = b[0], inner_b[0]
        if joint:
            times = 2.0 if same else 1.0
            other, inner_other = times * other + b[i], times * inner_other + inner_b[i]
        mine = _products(a[i], spans[i], other + inner_other, out[i])
        mine += _products(inner_a[i], _spans(inner_a[i]), other, out[i])
        if same:
            out[i] *= 1.0 if joint else 2.0
        else:
            mine += _products(a[0], spans[0], b[i] + inner_b[i], out[i])
            mine += _products(inner_a[0], inner, b[i], out[i])
        added.append(mine)
    index = np.arange(-2 * core, 2 * core + 1).astype(float)
    values = np.ldexp(index[None, :], finest + np.arange(levels)[:, None])
    some = np.flatnonzero(np.any(out > 0.0, axis=0))
    # sums of products, of up to two stretches of each law, of what two sums and one more made, of
    # one level into the next
    moved = _MOVED if first.layout.of_logs else _MOVED - 2
    sums = _units(width) + max(added) + 4 + moved * levels
    errors = (
        first.error + second.error + sums * UNIT,
        max(first.apart, second.apart) + 2 * sums * UNIT,
    )
    values = first.layout.centre + second.layout.centre + values.ravel()[some]
    return values, out.reshape(len(out), -1)[:, some], *errors


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
