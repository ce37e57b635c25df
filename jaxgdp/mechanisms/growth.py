"""From a bound on how fast the probability of an event can grow to a pair that dominates.

The scores that a mechanism works on move from those of one data set to those of the other along a
straight path. If, at every place of any such path, the probability u of every event grows at most
at the rate ψ(u), then it grows from α to at most y(r), y' = ψ(y), y(0) = α, and so 1 − y(r) is at
most its trade-off curve. Here ψ is symmetric, ψ(u) = ψ(1 − u), and on [0, ½] it is the least of
straight lines: then y is known in closed form, and concave in α.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
from scipy.special import log_ndtr, ndtri, ndtri_exp

from ..numerics.errors import GROWTH
from ..numerics.shapes import Array
from ..pairs.table import NOTHING, Table
from .profile_table import Profile, table_of

FAINTEST = 1e-300  # probability from which growth is followed
_STEP = 0.02  # between lines, in the scale of a normal law
_POINTS = 1500  # of a profile
_CELLS = 4000  # of the law of the largest score
_LOG_ROOT = 0.5 * np.log(2.0 * np.pi)


class Lines(NamedTuple):
    """ψ(u) ≤ slope·u + rest for 0 ≤ u ≤ ½, for every line.

    Attributes:
        slope, rest: ν ≥ 0 and L ≥ 0.
    """

    slope: Array
    rest: Array

    def scaled(self, rate: float) -> Lines:
        """Those of ``rate``·ψ."""
        return Lines(rate * self.slope, rate * self.rest)


def joined(*parts: Lines) -> Lines:
    """Lines of several bounds, all of which hold."""
    return Lines(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def normal_lines(events: float = 1.0) -> Lines:
    """Tangents of N·I(u/N), I = φ∘Φ⁻¹: N events that each grow as under a Gaussian of μ = 1.

    I has the slope −Φ⁻¹ and is concave.

    Args:
        events: N ≥ 1.
    """
    first, last = (float(ndtri_exp(np.log(u) - np.log(events))) for u in (FAINTEST, 0.5))
    v = np.linspace(first, min(last, 0.0), int((last - first) / _STEP) + 2)
    # φ(v) + v·Φ(v), which hardly cancels: there are 1/v² left of φ(v)
    rest = np.exp(np.log(events) - 0.5 * v * v - _LOG_ROOT) * (1.0 + v * _mills(v))
    return Lines(-v, np.maximum(rest, 0.0) * (1.0 + GROWTH))


def _mills(v: Array) -> Array:
    """Φ(v)/φ(v)."""
    return np.exp(log_ndtr(v) + 0.5 * v * v + _LOG_ROOT)


def _of_cumulative(y: Array) -> tuple[Array, Array]:
    """z with log Φ(z) = −y, and ρ(y) = φ(z)/Φ(z)."""
    small = y < 0.5
    z = np.where(
        small, -ndtri(-np.expm1(-np.where(small, y, 0.1))), ndtri_exp(-np.where(small, 1.0, y))
    )
    return z, np.exp(y - 0.5 * z * z - _LOG_ROOT)


def pure_lines() -> Lines:
    """ψ(u) = u: events of mechanisms that are tε-DP at a distance t, with ε = 1."""
    return Lines(np.ones(1), np.zeros(1))


def laplace_lines() -> Lines:
    """Lines for the index of the largest of any scores with Laplace noise of scale 1.

    ψ is at most u, and u(1 − u)/log 2: ρ(y) = min(e^y − 1, 1) is at most y/log 2.
    """
    u, scale = np.linspace(0.25, 0.5, 400), 1.0 / np.log(2.0)
    tangents = Lines((1.0 - 2.0 * u) * scale, u * u * scale * (1.0 + GROWTH))
    return joined(pure_lines(), tangents)


@functools.lru_cache(maxsize=64)
def maximum_lines(candidates: int) -> Lines:
    """Lines for the index of the largest of K ≥ 2 scores with normal noise of σ = 1, of which some
    rise at the rate 1 against the others.

    Method: docs/method/noisy-maximum.md#gaussian
    """
    half = candidates // 2
    together = np.sqrt(half * (candidates - half) / candidates)
    alone = np.sqrt((candidates - 1.0) / candidates)
    return joined(
        normal_lines().scaled(together),
        normal_lines(candidates - 1.0).scaled(alone),
        _mean_lines(candidates),
        _share_lines(candidates),
    )


def _mean_lines(candidates: int) -> Lines:
    """ψ(u) ≤ νu + E(Λ − ν)₊²/(4Λ) with Λ = K·ρ(E/K), E exponential, for every ν ≥ 0.

    Within a cell of E the mean of Λ, which is concave, is below a tangent, and that of 1/Λ, which
    is convex, below a chord.
    """
    k = float(candidates)
    high = -float(ndtri_exp(np.log(1e-18) - np.log(k)))
    z = np.linspace(high, float(ndtri_exp(-700.0 / k)), _CELLS)
    e, rise = -k * log_ndtr(z), k * np.exp(-0.5 * z * z - _LOG_ROOT - log_ndtr(z))
    middle = 0.5 * (z[1:] + z[:-1])
    hazard = np.exp(-0.5 * middle * middle - _LOG_ROOT - log_ndtr(middle))
    width = np.diff(e)
    mean = np.where(width < 1e-4, 0.5 * width - width**2 / 12.0, 1.0 - width / np.expm1(width))
    tangent = k * hazard + (hazard + middle) * (e[:-1] + mean - -k * log_ndtr(middle))
    share = mean / width
    chord = (1.0 - share) / rise[:-1] + share / rise[1:]
    mass = np.append(np.exp(-e[:-1]) * -np.expm1(-width), np.exp(-e[-1]))
    last = rise[-1] + (rise[-1] / k + z[-1])  # (one unit of E further on, by the tangent there)
    tangent, chord = np.append(tangent, last), np.append(chord, 1.0 / rise[-1])
    beyond = lambda a: np.cumsum(a[::-1])[::-1]
    first, none, inverse = (beyond(mass * a) for a in (tangent, np.ones(_CELLS), chord))
    # a difference of numbers of the size of its first term
    rest = 0.25 * (first - 2.0 * rise * none + rise**2 * inverse)
    rest = np.maximum(rest, 0.0) + GROWTH * first * 0.25
    # (below the first cell Λ is at most what it is at its end)
    whole = 0.25 * first[:1] * (1.0 + GROWTH) + rise[:1] * e[:1]
    return Lines(np.append(0.0, rise), np.append(whole, rest))


def _share_lines(candidates: int) -> Lines:
    """Tangents of the largest ab/(a + b), a = m·ρ(u/m), b = (K − m)·ρ((1 − u)/(K − m)), over
    1 ≤ m ≤ K − 1: it is concave in u and m together, so that a tangent plane bounds it.
    """
    k = float(candidates)
    first = float(ndtri_exp(np.log(FAINTEST)))
    u = np.exp(log_ndtr(np.linspace(first, 0.0, int(-first / _STEP) + 2)))

    def value(m: Array) -> Array:
        a, b = m * _of_cumulative(u / m)[1], (k - m) * _of_cumulative((1.0 - u) / (k - m))[1]
        return a * b / (a + b)

    low, high = np.zeros_like(u), np.full_like(u, np.log(k - 1.0))
    for _ in range(60):
        third = (high - low) / 3.0
        falls = value(np.exp(low + third)) > value(np.exp(high - third))
        low, high = np.where(falls, low, low + third), np.where(falls, high - third, high)
    m = np.clip(np.exp(0.5 * (low + high)), 1.0, k - 1.0)
    ya, yb = u / m, (1.0 - u) / (k - m)
    (za, ra), (zb, rb) = _of_cumulative(ya), _of_cumulative(yb)
    a, b = m * ra, (k - m) * rb
    by_a, by_b = (b / (a + b)) ** 2, (a / (a + b)) ** 2
    slope = np.maximum(by_a * (ra + za) - by_b * (rb + zb), 0.0)
    # the best m is not met exactly: what the plane has more elsewhere
    tilt = by_a * (ra - ya * (ra + za)) - by_b * (rb - yb * (rb + zb))
    more = np.maximum(np.maximum(tilt * (1.0 - m), tilt * (k - 1.0 - m)), 0.0)
    there = a * b / (a + b)
    # (rounding counts by the terms of the differences, and by what they are multiplied with)
    room = GROWTH * (there + by_a * a + by_b * b)
    return Lines(slope, np.maximum(there - slope * u, 0.0) + more + room)


def _least(lines: Lines) -> tuple[Array, Array, Array]:
    """The lines that are the least somewhere on [0, ½], and where each begins."""
    order = np.lexsort((lines.rest, -lines.slope))
    slope, rest = lines.slope[order].tolist(), lines.rest[order].tolist()
    kept: list[int] = []
    starts: list[float] = []
    for i in range(len(slope)):
        if kept and slope[kept[-1]] == slope[i]:
            continue
        start = 0.0
        while kept:
            j = kept[-1]
            start = (rest[i] - rest[j]) / (slope[j] - slope[i])
            if start > starts[-1]:
                break
            kept.pop()
            starts.pop()
            start = 0.0
        if start < 0.5:
            kept.append(i)
            starts.append(max(start, 0.0))
    return np.array(slope)[kept], np.array(rest)[kept], np.array(starts)


class _Flow:
    """y' = ψ(y), measured by the time that y takes to ½."""

    def __init__(self, lines: Lines) -> None:
        self.slope, self.rest, self.start = _least(lines)
        end = np.append(self.start[1:], 0.5)
        spans = self._span(np.arange(len(end)), self.start, end)
        self.time = np.cumsum(spans[::-1])[::-1]  # from the start of each line on
        self.end, self.left = end, np.append(self.time[1:], 0.0)

    def _span(self, line: Array, start: Array, end: Array) -> Array:
        slope, rest = self.slope[line], self.rest[line]
        with np.errstate(divide="ignore"):  # (it takes forever from 0 where ψ(0) = 0)
            gain = (end - start) / (slope * start + rest)
        steep = slope * gain > 1e-8
        return np.where(steep, np.log1p(slope * gain) / np.where(steep, slope, 1.0), gain)

    def rate(self, u: Array) -> Array:
        """ψ(u), u ≤ ½."""
        line = np.searchsorted(self.start, u, "right") - 1
        return self.slope[line] * u + self.rest[line]

    def time_left(self, u: Array) -> Array:
        """The time from u to ½."""
        line = np.searchsorted(self.start, u, "right") - 1
        return self._span(line, u, self.end[line]) + self.left[line]

    def place(self, time: Array) -> Array:
        """The u that takes so long to ½; 0 where there is none."""
        line = np.clip(np.searchsorted(-self.time, -time, "right") - 1, 0, len(self.time) - 1)
        slope, rest, end = self.slope[line], self.rest[line], self.end[line]
        more = time - self.left[line]
        steep = slope * more > 1e-8
        back = np.where(steep, -np.expm1(-slope * more) / np.where(steep, slope, 1.0), more)
        return np.maximum(end * np.exp(-slope * more) - rest * back, 0.0)


def table(lines: Lines, reach: float, largest: float = np.inf) -> Table:
    """A pair that dominates every mechanism whose probabilities grow along lines for so long.

    δ(ε) is the largest y(r) − e^ε·α, where e^ε = ψ(y)/ψ(α).

    Args:
        lines: of ψ.
        reach: r ≥ 0.
        largest: ε from which on δ(ε) is known to be 0.

    Method: docs/method/noisy-maximum.md#growth
    """
    if reach == 0.0:
        return NOTHING
    flow = _Flow(lines)
    last = float(flow.place(np.array(0.5 * reach)))
    if last < 1e-250:  # (every event may go from next to nothing to next to all)
        return _EVERYTHING
    v = np.linspace(float(ndtri_exp(np.log(FAINTEST))), float(ndtri(last)), _POINTS)
    alpha = np.append(np.exp(log_ndtr(v[:-1])), last)
    time = flow.time_left(alpha) - reach
    y = flow.place(np.abs(time))
    factor = flow.rate(y) / flow.rate(alpha)
    grown = np.where(time >= 0.0, y, 1.0 - y)
    # (places are known to some units of their own, of the time and of what is gone through)
    room = GROWTH * 1e-3 * grown * (1.0 + np.abs(v))
    delta = np.minimum(grown - factor * alpha + room, 1.0)[::-1]
    epsilon = np.maximum.accumulate(np.log(factor)[::-1])
    epsilon[0], delta[0] = 0.0, min(1.0 - 2.0 * last + room[-1], 1.0)
    apart = np.append(True, np.diff(epsilon) > 1e-9 * epsilon[1:] + 1e-12)
    apart &= epsilon < largest * (1.0 - 1e-9)
    epsilon, delta = epsilon[apart], np.minimum.accumulate(delta)[apart]
    if largest < np.inf:
        epsilon, delta = np.append(epsilon, largest), np.append(delta, 0.0)
    return table_of(Profile(epsilon, np.stack([delta, delta])))


# (all but nothing is at infinity)
_EVERYTHING = Table(np.zeros(1), np.full(1, 1e-250), np.full(1, 1e-250), 1.0, 1.0, 1e-9)
