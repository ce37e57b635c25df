"""Laws of positive numbers on a lattice that gets coarser by octaves away from a centre, and their sums.

A sum of many heavy-tailed numbers has a narrow body and a tail that is longer by many orders. A :class:`Law` has its finest points
around its centre and, further out, M points to each octave of the distance, so that a few thousand points hold it all. Spacings
are powers of two: points of one level are points of all finer ones, and their sums are exact.

Two laws are added level by level, the part of one that lies further in than a level seen on the spacing of that level. Every such
step, and the way back onto a lattice (:func:`spread`), moves mass to the two neighbouring points with its mean kept. All of it
is sums of products of positive numbers, so masses have relative accuracy, however small they are: ``Law.error`` bounds it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..numerics.errors import UNIT

_CHUNK = 128  # longest sum of products that is added up in whatever order


@dataclass(frozen=True)
class Layout:
    """Where the points of a law are.

    Attributes:
        centre: value of the middle point.
        finest: e, the finest spacing is 2^e.
        octave: M, points per octave of the distance from the centre, on either side; a power of two.
    """

    centre: float
    finest: int
    octave: int

    def locate(self, values):
        """Level, index of the point at or below, and distance to it in spacings of that level."""
        distance = values - self.centre
        _, exponent = np.frexp(np.abs(distance))
        # 2M points of a level reach to 2^{level}·2M
        level = np.maximum(exponent - int(math.log2(2 * self.octave)), self.finest)
        level = np.where(distance == 0.0, self.finest, level)
        scaled = np.ldexp(distance, -level)
        index = np.floor(scaled)
        return level - self.finest, index.astype(np.int64), scaled - index

    def values(self, levels):
        """Values of all points of the lowest ``levels`` levels, shape (levels, 4M + 1)."""
        index = np.arange(-2 * self.octave, 2 * self.octave + 1)
        return self.centre + np.ldexp(index[None, :].astype(float), self.finest + np.arange(levels)[:, None])

    def between(self, low, high):
        """Values of its points in [low, high], increasing."""
        level, _, _ = self.locate(np.array([low, high]))
        found = self.values(int(level.max()) + 1)
        index = np.arange(-2 * self.octave, 2 * self.octave + 1)
        real = np.abs(index)[None, :] > self.octave * (np.arange(len(found))[:, None] > 0)
        found = np.sort(found[real & (found >= low) & (found <= high)])
        return found


@dataclass(frozen=True)
class Law:
    """Masses at the points of a layout.

    Attributes:
        layout: where the points are.
        masses: one or more sets of masses, shape (sets, levels, 4M + 1): set 0 is the law, the others are carried along by :func:`add`.
        error: bound on the relative error of every mass.
    """

    layout: Layout
    masses: np.ndarray
    error: float

    def flat(self):
        """Values and masses (sets, points) of the points with mass, in increasing order of the value."""
        levels = self.masses.shape[1]
        values = self.layout.values(levels).reshape(-1)
        masses = self.masses.reshape(len(self.masses), -1)
        some = np.flatnonzero(masses[0] > 0.0)
        order = some[np.argsort(values[some], kind="stable")]
        return values[order], masses[:, order]


def spread(layout: Layout, values, masses, error) -> Law:
    """Masses (sets, points) at ``values`` on the points of a layout: each goes to its two neighbours, with its mean kept."""
    level, index, part = layout.locate(values)
    width = 4 * layout.octave + 1
    levels = int(level.max()) + 1
    place = level * width + index + 2 * layout.octave
    between = part > 0.0
    # (the upper neighbour of the last point of a level is the first of the next one, or stays if it is the level's own last)
    joined = np.concatenate([place, place[between] + 1])
    most = int(np.bincount(joined).max())
    placed = []
    for mass in masses:
        both = np.concatenate([mass * (1.0 - part), (mass * part)[between]])
        placed.append(np.bincount(joined, both, minlength=levels * width).reshape(levels, width))
    return Law(layout, np.stack(placed), error + (most + 3) * UNIT)


def _halved(masses):
    """One level's masses (…, 4M + 1) on the points of the next one."""
    width = masses.shape[-1]
    half = (width - 1) // 4
    even, odd = masses[..., ::2], 0.5 * masses[..., 1::2]
    out = np.zeros_like(masses)
    inner = out[..., half : width - half]
    inner += even
    inner[..., :-1] += odd
    inner[..., 1:] += odd
    return out


def _inner(masses):
    """For every level the masses of all finer ones, on its points."""
    out = np.zeros_like(masses)
    for level in range(1, masses.shape[-2]):
        out[..., level, :] = _halved(out[..., level - 1, :] + masses[..., level - 1, :])
    return out


def _runs(mass):
    """Stretches of a level with mass: (start, masses), without the hollow middle of coarser levels."""
    some = np.flatnonzero(mass)
    if not len(some):
        return []
    cut = np.flatnonzero(np.diff(some) > len(mass) // 8)
    first, last = np.append(some[0], some[cut + 1]), np.append(some[cut], some[-1])
    return [(a, mass[a : b + 1]) for a, b in zip(first, last, strict=True)]


def _convolve(short, long):
    """Their convolution by sums of at most 128 products, added in pairs."""
    if len(short) > len(long):
        short, long = long, short
    parts = [np.convolve(short[i : i + _CHUNK], long) for i in range(0, len(short), _CHUNK)]
    parts = [(i * _CHUNK, part) for i, part in enumerate(parts)]
    while len(parts) > 1:
        joined = []
        for (i, a), (j, b) in zip(parts[::2], parts[1::2], strict=False):
            total = np.zeros(max(len(a), j - i + len(b)))
            total[: len(a)] = a
            total[j - i : j - i + len(b)] += b
            joined.append((i, total))
        parts = joined + ([parts[-1]] if len(parts) % 2 else [])
    return parts[0][1]


def _products(a, b, inner_a, inner_b, out):
    """Add to ``out`` (levels, 8M + 1) all sums of a point of one and a point of the other, by the coarser of their levels."""
    for level in range(len(out)):
        terms = [(a[level], b[level] + inner_b[level]), (b[level], inner_a[level])]
        if a is b:
            terms = [(a[level], a[level] + 2.0 * inner_a[level])]
        for mine, other in terms:
            stretches = _runs(other)
            for start, run in _runs(mine):
                for at, stretch in stretches:
                    found = _convolve(run, stretch)
                    out[level, start + at : start + at + len(found)] += found


def add(first: Law, second: Law):
    """Values, masses (sets, points) and relative error of the sum of two independent laws (of layouts with equal M).

    Of masses in further sets, m_1 … , the sum has first.m_i·second.p + first.p·second.m_i: what is added up over the terms of a sum.
    """
    octave = first.layout.octave
    finest = min(first.layout.finest, second.layout.finest)
    tops = [law.layout.finest + law.masses.shape[1] for law in (first, second)]
    levels, width = max(tops) - finest, 4 * octave + 1

    def aligned(law):
        full = np.zeros((len(law.masses), levels, width))
        at = law.layout.finest - finest
        full[:, at : at + law.masses.shape[1]] = law.masses
        return full, _inner(full)

    same = first is second
    a, inner_a = aligned(first)
    b, inner_b = (a, inner_a) if same else aligned(second)
    out = np.zeros((len(a), levels, 2 * width - 1))
    law, inner_law = a[0], inner_a[0]
    _products(law, law if same else b[0], inner_law, inner_b[0], out[0])
    for i in range(1, len(a)):
        _products(a[i], b[0], inner_a[i], inner_b[0], out[i])
        if same:
            out[i] *= 2.0
        else:
            _products(law, b[i], inner_law, inner_b[i], out[i])
    index = np.arange(-4 * octave, 4 * octave + 1).astype(float)
    values = np.ldexp(index[None, :], finest + np.arange(levels)[:, None])
    values = first.layout.centre + second.layout.centre + values
    some = out[0] > 0.0
    # sums of _CHUNK products in any order, of their parts in pairs, of runs and sets, and of one level into the next
    sums = _CHUNK + 2 + math.log2(4 * octave) + 8 + 2 * levels
    error = first.error + second.error + sums * UNIT
    return values[some], out[:, some], error
