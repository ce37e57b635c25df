"""The likelihood ratio of a record that is used in k of t noisy steps, from above and from below.

U is the mean of V_{i1}·…·V_{ik} over all sets of k steps. With its law P without the record, δ(ε) =
E(U − e^ε)₊ in one direction and E(1 − e^ε·U)₊ in the other. From below: an attack that observes the
sum S of the steps' labels (``label_attack``). From above E(U − c)₊ and E(c − U)₊ are bounded one by
one, for many c, by the smallest of what is known: from a partition of the steps into k blocks
(:class:`_Blocks`), and from moments of U given S (:func:`_moment_bounds`). Both expectations are
convex in c and differ by 1 − c, so they lie below all chords between bounds: the lower convex hull
(:func:`hull`) belongs to a pair that dominates in both directions, and under composition."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, ndtr

from ...numerics.errors import ALLOCATION, UNIT
from ...pairs import table
from ...pairs.hull import hull
from ...pairs.table import NOTHING, Table
from . import label_attack, lattice_sum, one_of_many
from .lattice_sum import FINE, WIDTH, LatticeLaws, Sums

_WEIGHTS = (1.0, 0.8, 0.6, 0.5)  # of labels that are tried
_AT = 1e-6  # δ at which attacks are compared
_FEW = 64  # k up to which moments are used: blocks lose a share of 1/k
_KEPT = 160.0  # losses at which bounds are made per standard deviation
_COARSEST = 1.0 / 96.0  # most between them
_CHUNK = 2**19  # entries of a matrix


class Bounds(NamedTuple):
    """Bounds on E(U − c)₊ and on E(c − U)₊ at increasing c."""

    call: np.ndarray
    put: np.ndarray


def tables(sigma: float, number: int, selected: int) -> tuple[Table, Table]:
    """A pair that dominates that of a record in ``selected`` of ``number`` steps, in both
    directions, and one that an attack achieves.

    Method: docs/method/dominating.md#several
    """
    blocks = _Blocks.of(sigma, number, selected)
    losses = blocks.losses()
    bounds, attacks = [blocks.bounds(np.exp(losses))], [NOTHING]
    mixtures = _mixtures(sigma, number, selected)
    together = [(0, 1), (0, 1, 2)][: len(mixtures) - 1]
    for weight in _WEIGHTS:
        labels = label_attack.labels(sigma, number, selected, weight)
        law, *known = lattice_sum.sums(labels.lattice, number, mixtures, together)
        attacks.append(label_attack.merged_table(law, number) if law else NOTHING)
        bounds += [
            _moment_bounds(sigma, number, selected, labels, found, losses)
            for found in known
            if found
        ]
    call, put = (
        np.minimum.reduce([getattr(each, side) for each in bounds]) for side in Bounds._fields
    )
    return hull(losses, call, put), max(attacks, key=_epsilon)


def _epsilon(pair: Table):
    """The largest ε at which δ(ε) of removing a record is at least some δ; to choose by."""
    tail_p, tail_q = (np.cumsum(mass[::-1])[::-1] for mass in (pair.p, pair.q))
    return float(np.max(np.log(np.maximum(tail_q - _AT, 1e-300) / tail_p)))


class _Blocks(NamedTuple):
    """Losses of a record in 1 of ⌊t/k⌋ and of ⌈t/k⌉ steps, as often as t mod k says, added up.

    Attributes:
        loss: the points of the sum.
        p: upper bounds on their P-masses; those at the ends are of all beyond.
        minus, plus: the same of the P-mass at −∞, and of the Q-mass at +∞ and from the last point
            on.
    """

    loss: np.ndarray
    p: np.ndarray
    minus: float
    plus: float

    @classmethod
    def of(cls, sigma: float, number: int, selected: int) -> _Blocks:
        longer = number % selected
        counts = (selected - longer, longer)
        pairs = [
            one_of_many.dominating_table(sigma, number // selected + i)
            for i in range(2 if longer else 1)
        ]
        used = list(zip(counts, pairs, strict=False))
        means, squares = (
            [[m @ a.loss**power / m.sum() for m in (a.p, a.q)] for _, a in used] for power in (1, 2)
        )
        spreads = [
            [max(s - m * m, 0.0) for s, m in zip(*rows, strict=True)]
            for rows in zip(squares, means, strict=True)
        ]
        total = lambda rows, side: sum(
            count * row[side] for (count, _), row in zip(used, rows, strict=True)
        )
        low = total(means, 0) - WIDTH * math.sqrt(total(spreads, 0))
        top = max(a.loss[-1] for a in pairs)
        high = total(means, 1) + WIDTH * math.sqrt(total(spreads, 1)) + top
        first, size, step = lattice_sum.window(FINE * math.sqrt(spreads[0][0]), low, high)
        index = np.arange(
            math.floor(min(a.loss[0] for a in pairs) / step) - 1, math.ceil(top / step) + 2
        )
        placed = [table.dominating(a, step * index) for a in pairs]
        masses = [np.zeros((len(pairs), len(index))) for _ in range(2)]
        for row, a in enumerate(placed):
            at = np.rint(a.loss / step).astype(np.int64) - index[0]
            masses[0][row, at], masses[1][row, at] = a.p, a.q
        own = sum(count * a.error for count, a in zip(counts, placed, strict=False)) + 16.0 * UNIT
        minus, plus = (
            sum(count * getattr(a, name) for count, a in used) * (1.0 + own)
            for name in ("p_minus", "q_plus")
        )
        none = (0,) * len(pairs)
        mixtures = [[(0.0, counts[: len(pairs)] + none)], [(0.0, none + counts[: len(pairs)])]]
        lattice = LatticeLaws(
            index, step, (*masses[0], *masses[1]), first, size, math.sqrt(total(spreads, 0))
        )
        (found,) = lattice_sum.sums(lattice, selected, mixtures, [(0, 1)])
        if found is None:
            raise ArithmeticError("the losses of blocks could not be added up")
        p, q = found.masses * (1.0 + found.errors + own)
        return cls(found.value, p, minus, plus + q[-1])

    def losses(self):
        """Losses at which bounds are made, with 0 among them."""
        p = self.p / self.p.sum()
        deviation = math.sqrt(max(p @ self.loss**2 - (p @ self.loss) ** 2, 1e-300))
        finest = deviation / _KEPT
        found = table.grid(self.loss, p, finest, max(finest, _COARSEST), 1.0 / _KEPT)
        return np.union1d(found, 0.0)

    def bounds(self, c: np.ndarray) -> Bounds:
        """The bounds of this pair."""
        # all at or below the first point is at 0; what is beyond the last one counts in full
        x, p = np.exp(self.loss), self.p[:-1]
        x[0] = 0.0
        gap = np.diff(x)
        tail = np.append(np.cumsum(p[::-1])[::-1], 0.0)  # from each point on
        above = np.append(np.cumsum((gap * tail[1:])[::-1])[::-1], 0.0)
        head = np.cumsum(self.p)
        below = np.append(0.0, np.cumsum(gap * head[:-1]))
        at = np.searchsorted(x, c, "right") - 1  # x[at] ≤ c
        after = np.minimum(at + 1, len(x) - 1)
        call = above[after] + np.maximum(x[after] - c, 0.0) * tail[after] + self.plus
        return Bounds(call, below[at] + (c - x[at]) * head[at] + self.minus * c)


def _mixtures(sigma: float, number: int, selected: int):
    """For P, U·P and U²·P: (log weight, terms without the record, with it, and weighted by
    V²).
    """
    found = [[(0.0, (number, 0, 0))], [(0.0, (number - selected, selected, 0))]]
    if selected > _FEW:
        return found
    # hypergeometric probabilities of j common steps
    first = max(0, 2 * selected - number)
    j = np.arange(first, selected)
    steps = 2.0 * np.log(selected - j) - np.log(j + 1.0) - np.log(number - 2.0 * selected + j + 1.0)
    logs = np.append(0.0, np.cumsum(steps))
    logs -= np.logaddexp.reduce(logs)
    squares = [
        (float(log_share) + i / sigma**2, (number - 2 * selected + i, 2 * (selected - i), i))
        for i, log_share in enumerate(logs, first)
    ]
    return [*found, squares]


def _moment_bounds(
    sigma: float,
    number: int,
    selected: int,
    labels: label_attack.Labels,
    found: Sums,
    losses: np.ndarray,
) -> Bounds:
    """Bounds from what is known of U given the sum S: mean, mean square, largest value."""
    lattice, share = labels.lattice, labels.share
    error = found.errors + 4.0 * number * ALLOCATION + 1e-12
    # U ≤ e^S/Pr[Binomial(t, wq) = k], and a label may be half a spacing too small
    rest = (number - selected) * math.log1p(-share) if share < 1.0 else 0.0
    choose = gammaln(number + 1.0) - gammaln(selected + 1.0) - gammaln(number - selected + 1.0)
    top = found.value + 0.5 * lattice.step * number - (choose + selected * math.log(share) + rest)
    top += 1e-6 + 1e-11 * number  # (more than is rounded there)
    top[-1] = np.inf
    # what lies between two losses is one group, but for what is merged at the ends
    mean = np.maximum.accumulate(np.log(found.masses[1]) - np.log(found.masses[0]))
    cell = np.searchsorted(losses, mean, "right")
    start = np.unique(np.concatenate([[0, 1, len(mean) - 1], np.flatnonzero(np.diff(cell)) + 1]))
    group = lambda a: np.add.reduceat(a, start, axis=-1)
    low, high = group(found.masses * (1.0 - error)), group(found.masses * (1.0 + error))
    top = np.exp(np.minimum(np.maximum.reduceat(top, start), 700.0))
    top[-1] = np.inf
    mean = low[1] / high[0], high[1] / low[0]
    square = high[2] / low[0] * (1.0 + 8.0 * UNIT)
    # (whatever else happens where a single step is beyond the last label is counted in full)
    tau = 1.0 / sigma
    beyond = float(
        selected * ndtr(tau - labels.last) + (number - selected) * ndtr(-labels.last)
    ) * (1.0 + 1e-9)
    call, put = np.full((2, len(losses)), np.inf)
    rows = max(1, _CHUNK // len(start))
    for first in range(0, len(losses), rows):
        # (E(U − c)₊ for c ≥ 1 and E(c − U)₊ for c ≤ 1 are all there is to know)
        part = first + np.arange(min(rows, len(losses) - first))
        up, down = part[losses[part] >= 0.0], part[losses[part] <= 0.0]
        c = np.exp(losses[up])[:, None]
        some = slice(int(np.argmax(top > c.min(initial=np.inf))), None)
        found = largest_call(*(a[some] for a in (*mean, square, top)), c)
        call[up] = np.minimum(found, mean[1][some]) @ high[0, some]
        c = np.exp(losses[down])[:, None]
        put[down] = np.minimum(largest_call(-mean[1], -mean[0], square, 0.0, -c), c) @ high[0]
    return Bounds(call + beyond, put)


def largest_call(
    lowest: np.ndarray, mean: np.ndarray, square: np.ndarray, top: np.ndarray | float, c: np.ndarray
):
    """An upper bound on E(X − c)₊ of a variable X ≤ top with a mean in [lowest, mean] and a mean
    square of at most ``square``.

    Among parabolas above (x − c)₊, the parabola that touches it on both sides of c, (x − c +
    h)²/(4h), h² = (mean − c)² + variance (Scarf 1958); or, where that would touch it beyond b =
    top, the one through (b, b − c) that touches 0 at mean − variance/(b − mean) (Lo 1987).

    Method: docs/method/dominating.md#several
    """
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        variance = square - np.minimum(lowest**2, mean**2)
        away = mean - c
        root = np.sqrt(away**2 + variance)
        # (a sum of two terms of one sign)
        scarf = 0.5 * np.where(away > 0.0, away + root, variance / (root - np.minimum(away, 0.0)))
        room = np.where(np.isfinite(top) & (top > mean), top - mean, np.nan)
        foot = variance / room  # mean − where the parabola is 0
        spread = variance + np.maximum(foot, np.abs(foot - (mean - lowest))) ** 2
        bounded = (top - c) * spread / (room + foot) ** 2
        found = np.where(2.0 * c >= top + mean - foot, np.fmin(scarf, bounded), scarf)
        found = np.where(np.isnan(found), np.inf, found)
    return np.where(c >= top, 0.0, np.maximum(found, 0.0))
