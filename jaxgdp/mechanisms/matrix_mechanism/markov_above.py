"""From above: random positions by a Gaussian chain whose covariances are no smaller.

The likelihood ratio of a random position is L = Σ_j e^{X_j − a/2}/b for Gaussian X. By Kahane's
inequality every E(L − c)₊ grows with every covariance, so a chain whose covariances are at least
the Gram matrix everywhere bounds it. Given the last value (and the first one, if the chain
remembers it) the rest does not depend on what was before, so the law of (running sum, last value,
first value) follows step by step. Values are moved apart to a grid, with means kept: E(L − c)₊ is
convex and increasing in each of them."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import scipy.sparse
from scipy.special import ndtr

from ...numerics.errors import TENTS, UNIT
from ...numerics.shapes import Array, Float
from .chains import Chain

CALL, PUT = "call", "put"
_REACH = 8.5  # standard deviations of a value, without and with the record: beyond, all counts
_FINE = (
    0.07,
    0.1,
    0.15,
    0.2,
    0.3,
    0.4,
)  # spacings of the values' grid in the middle that are tried, finest first
_WIDE = 8.0  # times as much at its ends
_BODY = 40.0  # points of the sum's grid per standard deviation of the sum, at least
_SPAN = 9.0  # standard deviations of the sum with that spacing
_OCTAVE = 48  # points per octave further out
_SPLIT = 100.0  # products that the split of a sum is worth
_MOST_WORK = 2.5e10  # products that a law may take, some three seconds


def _values(fine: float, deviation: float) -> Float[Array, " values"]:
    """Grid of a value in standard deviations: fine from where it is without the record, 0, to where
    it is with it at that position, ``deviation``.
    """
    points = []
    for end, sign in ((0.0, -1.0), (deviation, 1.0)):
        z, away = [], 0.0
        while away < _REACH:
            away = min(away + fine * min(math.exp(away * away / 8.0), _WIDE), _REACH)
            z.append(end + sign * away)
        points.append(np.array(z))
    middle = np.linspace(0.0, deviation, math.ceil(deviation / fine) + 1)
    return np.concatenate([points[0][::-1], middle, points[1]])


def tents(mean: Array, deviation: float, grid: Float[Array, " values"], side: str) -> Array:
    """Masses at a grid of X ~ N(mean, deviation²), moved apart.

    For ``CALL`` the mean of X is kept, what is below the grid is moved up to it, and what is above
    is put at its last point. For ``PUT`` the mean of e^X is kept, what is below the grid is left
    out, and what is above is moved down to it. They are second differences of the integrated law,
    each from the side with less mass.
    """
    deviation = max(deviation, 1e-12)
    z = (grid - np.asarray(mean)[..., None]) / deviation
    ones = np.ones((*z.shape[:-1], 1))
    if side == CALL:
        density = np.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
        low, high = density + z * ndtr(z), density - z * ndtr(-z)
        gap, first = np.diff(z, axis=-1), 0.0
    else:
        # E(y − Y)₊ and E(Y − y)₊ over y, of Y = e^X
        whole = np.exp(0.5 * deviation**2 - deviation * z)
        low = ndtr(z) - whole * ndtr(z - deviation)
        high = whole * ndtr(deviation - z) - ndtr(-z)
        scale = np.exp(grid - grid[-1])
        low, high, gap = low * scale, high * scale, np.diff(scale)
        first = low[..., :1] / scale[0]
    found = []
    for integral, ends in ((low, (first, 1.0)), (high, (first - 1.0, 0.0))):
        slope = np.diff(np.maximum(integral, 0.0), axis=-1) / gap
        slope = np.concatenate([ends[0] * ones, slope, ends[1] * ones], axis=-1)
        found.append(np.maximum(np.diff(slope, axis=-1), 0.0))
    return np.where(z < 0.0, *found)


class Law(NamedTuple):
    """A law of ratios that bounds E(L − c)₊ or E(c − L)₊, and what counts in full.

    Attributes:
        x, p: ratios, increasing, and masses.
        rest: Q-mass (``CALL``) or P-mass (``PUT``) that counts in full.
        error: bound on the relative error of every mass.
    """

    x: Float[Array, " ratios"]
    p: Float[Array, " ratios"]
    rest: float
    error: float

    def call(self, c: Float[Array, " levels"]) -> Float[Array, " levels"]:
        """A bound on E(L − c)₊, of a law made for that."""
        x, p = self.x, self.p
        tail = np.cumsum(p[::-1])[::-1]
        above = np.append(np.cumsum((np.diff(x) * tail[1:])[::-1])[::-1], 0.0)
        at = np.searchsorted(x, c, "left")  # first ratio ≥ c
        i = np.minimum(at, len(x) - 1)
        value = np.where(at < len(x), above[i] + np.maximum(x[i] - c, 0.0) * tail[i], 0.0)
        return value * (1.0 + self.error) + self.rest

    def put(self, c: Float[Array, " levels"]) -> Float[Array, " levels"]:
        """A bound on E(c − L)₊, of a law made for that."""
        x, p = self.x, self.p
        head = np.cumsum(p)
        below = np.append(0.0, np.cumsum(np.diff(x) * head[:-1]))
        at = np.searchsorted(x, c, "right") - 1  # last ratio ≤ c
        i = np.maximum(at, 0)
        value = np.where(at >= 0, below[i] + np.maximum(c - x[i], 0.0) * head[i], 0.0)
        return value * (1.0 + self.error) + self.rest * c


def _sums(chain: Chain, terms: int, largest: float) -> Float[Array, " sums"]:
    """Grid of the sum of so many terms, up to the largest that there can be."""
    n = chain.number
    gain = np.expm1(np.minimum(chain.covariance, 40.0))
    spread = lambda m: math.sqrt(float(gain[:m, :m].sum()))
    whole = min(spread(n), 2.0 * n)
    step = whole / max(_BODY, 8.0 * math.sqrt(n))
    width = _SPAN * min(spread(terms), whole) + 2.0 * step
    low, high = max(terms - width, 0.0), terms + width
    body = np.arange(math.floor(low / step), math.ceil(high / step) + 1) * step
    below = np.zeros(0)
    if body[0] > 0.0:
        below = np.append(0.0, body[0] * 2.0 ** -np.arange(12.0, 0.0, -1.0 / 4.0))
    further, gap = [], step
    x, top = body[-1], largest * terms * (1.0 + 1e-12)
    while x < top:
        gap = max(gap, (x - terms) / _OCTAVE)
        x = min(x + gap, top)
        further.append(x)
    found = np.unique(np.concatenate([below, body, further]))
    # (no sum is beyond its largest value)
    return found if found[-1] <= top else np.append(found[found < top], top)


def _work(chain: Chain, fine: float) -> float:
    """About how many products :func:`law` takes."""
    values = float(len(_values(fine, math.sqrt(chain.variance))))
    points = 3.0 * _SPAN * max(_BODY, 8.0 * math.sqrt(chain.number)) + 200.0
    states = values * points * (values if chain.remembers else 1.0)
    # (each state goes to every value, and its sum is split once)
    return states * chain.number * (values + _SPLIT)


def spacing(chain: Chain) -> float | None:
    """The finest spacing of values that does not take too long; None where none does."""
    return next((fine for fine in _FINE if _work(chain, fine) <= _MOST_WORK), None)


def law(chain: Chain, fine: float, side: str) -> Law:
    """A law that bounds E(L − c)₊ (``CALL``) or E(c − L)₊ (``PUT``) for every c.

    Method: docs/method/kahane.md#chains
    """
    deviation, n = math.sqrt(chain.variance), chain.number
    grid = _values(fine, deviation)
    x = grid * deviation
    value = np.exp(x - 0.5 * chain.variance)
    start = tents(np.zeros(()), deviation, x, side)
    first = len(grid) if chain.remembers else 1
    sums = _sums(chain, 1, value[-1])
    mass = np.zeros((first, len(grid), len(sums)))  # by first value, last value, sum
    low, up = _split(sums, value)
    for k in range(len(grid)):
        row = k if chain.remembers else 0
        mass[row, k, low[k]] += start[k] * (1.0 - up[k])
        mass[row, k, low[k] + 1] += start[k] * up[k]
    for j in range(1, n):
        after = _sums(chain, j + 1, value[-1])
        mass = _step(mass, _transition(chain, j, x, side), sums, after, value)
        sums = after
    p = mass.sum(axis=(0, 1))
    some = p > 0.0
    error = n * (TENTS + (8 * len(grid) + 16) * UNIT) + len(sums) * UNIT
    rest = _beyond(chain) if side == CALL else n * float(ndtr(-_REACH)) * (1.0 + 1e-6)
    return Law(sums[some] / n, p[some], rest, error)


def _split(points: Float[Array, " sums"], value: Array):
    """The point at or below a value, and the share that goes to the next one."""
    low = np.clip(np.searchsorted(points, value, "right") - 1, 0, len(points) - 2)
    gap = points[low + 1] - points[low]
    return low, np.clip((value - points[low]) / gap, 0.0, 1.0)


def _transition(chain: Chain, j: int, x: Float[Array, " values"], side: str) -> Array:
    """Masses of position j at the grid, given the one before and the first: (first, before, to)."""
    k, a = chain.covariance, chain.variance
    if not chain.remembers or j == 1:
        share = k[j, j - 1] / a
        noise = math.sqrt(max(a - share * k[j, j - 1], 0.0))
        same = tents(share * x, noise, x, side)
        # (at the second position the value before is the first one)
        return np.broadcast_to(same[None], (len(x), *same.shape)) if chain.remembers else same[None]
    between = k[np.ix_([j - 1, 0], [j - 1, 0])]
    both = k[[j - 1, 0], j]
    share = np.linalg.solve(between, both)
    noise = math.sqrt(max(a - float(share @ both), 0.0))
    mean = share[0] * x[None, :] + share[1] * x[:, None]
    return tents(mean, noise, x, side)


def _step(
    mass: Array,
    weights: Array,
    sums: Float[Array, " sums"],
    after: Float[Array, " sums"],
    value: Float[Array, " values"],
) -> Array:
    """One more position: the new value is drawn, then added to the sum."""
    weights = np.broadcast_to(weights, (len(mass), *weights.shape[1:]))
    moved = np.einsum("fks,fkt->fts", mass, weights, optimize=True)
    out = np.zeros((mass.shape[0], mass.shape[1], len(after)))
    for t in range(len(value)):
        low, up = _split(after, sums + value[t])
        n = np.arange(len(sums))
        shape = (len(sums), len(after))
        place = scipy.sparse.csr_matrix(
            (
                np.concatenate([1.0 - up, up]),
                (np.concatenate([n, n]), np.concatenate([low, low + 1])),
            ),
            shape=shape,
        )
        out[:, t] = moved[:, t] @ place
    return out


def _beyond(chain: Chain) -> float:
    """Q-mass where some value is beyond the grid: with the record at one position, the others move
    by their covariance with it.
    """
    deviation = math.sqrt(chain.variance)
    each = ndtr(chain.covariance / deviation - deviation - _REACH)
    return float(each.sum()) / chain.number * (1.0 + 1e-6)
