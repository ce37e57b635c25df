"""Shuffled reports: tables of a pair that dominates, and of pairs that attacks achieve.

A report of the user in question is a or b or neither, and so are those of the others.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ..numerics.errors import LONG_BINOMIAL, UNIT
from ..numerics.shapes import Array
from ..pairs.binomial import Law, binomial, sum_of_steps
from ..pairs.table import NOTHING, Table, dominating, merged

_ONE_BY_ONE = 2000  # clones up to which each number of them is treated on its own
_GROUPS, _VALUES = 240, 1500  # of larger numbers of clones at most, and of the reports among them
_WIDTH = 1e-4  # of a group, relative
_LOSSES, _FAR_LOSSES = 1500, 300  # of a table in one half: evenly up to _NEAR deviations, beyond
_NEAR = 12.0
# edges of groups of covering reports, in standard deviations
_COVER = np.array([-38.0, -9.0, -6.5, -5.0, -4.0, -3.0, -2.0, -1.0, -0.3, 0.4, 1.2, 2.5])
_MOST = 6000  # atoms of an attack
_FEWER, _FAINT = 400, 1e-30  # values where there is cover; groups that are treated roughly
_LARGEST_GROUP = 1.25  # last over first number of clones of a group
_LEAST = 1e-300  # mass of an output of an attack
_NOTHING_LESS = 1e-299  # more than all masses that windows leave out


class Clones(NamedTuple):
    """What the user and the others report, at least.

    Attributes:
        ratio: e^{ε₀}.
        each: r, the probability that another user's report is one of a, and one of b.
        cover: g, that it is one of the rest of what the user may report.
        rest: γ, that the user reports this rest; a and b have e^{ε₀}r and r, or r and e^{ε₀}r.
    """

    ratio: float
    each: float
    cover: float = 0.0
    rest: float = 0.0


def _losses(scale: float, largest: float) -> Array:
    near = min(_NEAR * scale, largest)
    half = np.linspace(0.0, near, _LOSSES)
    if near < largest:
        half = np.append(half, np.geomspace(near, largest, _FAR_LOSSES + 1)[1:])
    half[-1] = largest * (1.0 + 8.0 * UNIT)
    return np.append(-half[:0:-1], half)


def _groups(law: Law) -> Iterator[tuple[float, float, float]]:
    """First and last value and probability of each group of values."""
    number, alone = len(law.mass), max(0, min(len(law.mass), _ONE_BY_ONE - law.first))
    edges = np.arange(number + 1)
    if number > _ONE_BY_ONE:
        # evenly next to the mean, where nearly all of the mass is
        middle = np.sum(law.mass * np.arange(number))
        spread = np.sqrt(np.sum(law.mass * (np.arange(number) - middle) ** 2))
        narrow = int(18.0 * spread / (_WIDTH * (law.first + middle)))
        inner = middle + 9.0 * spread * np.linspace(-1.0, 1.0, min(_GROUPS, 24 + narrow))
        outer = 9.0 * spread * np.linspace(1.0, 5.0, 13)[1:]
        places = np.concatenate([[alone], middle - outer, inner, middle + outer, [number]])
        edges = np.append(np.arange(alone), np.clip(places, alone, number).astype(np.int64))
        edges = np.unique(edges)
    sums = np.add.reduceat(law.mass, edges[:-1])
    for first, last, mass in zip(edges[:-1], edges[1:] - 1, sums, strict=True):
        if mass > 0.0:
            yield float(law.first + first), float(law.first + last), float(mass)


def _centred(number: int, most: int) -> tuple[Array, Array]:
    """Bin(n, ½) less its mean, on few points: each value to its neighbours, with the same mean."""
    law = binomial(number, 0.5)
    d = law.values - 0.5 * number
    if len(d) <= most:
        return d, law.mass
    grid = np.linspace(d[0], d[-1], most)
    cell = np.clip(np.searchsorted(grid, d, "right") - 1, 0, most - 2)
    up = (d - grid[cell]) / (grid[cell + 1] - grid[cell])
    mass = np.bincount(cell, law.mass * (1.0 - up), most)
    mass += np.bincount(cell + 1, law.mass * up, most)
    return grid, 0.5 * (mass + mass[::-1])


@functools.lru_cache(maxsize=256)
def _covering(number: int, share: float, one: bool) -> tuple[Array, Array]:
    """The least value of each of a few groups of a binomial law, or of one, and probabilities."""
    if number == 0 or share == 0.0:
        return np.zeros(1), np.ones(1)
    law = binomial(number, min(share, 1.0))
    if one:
        return np.full(1, float(law.first)), np.ones(1)
    deviation = np.sqrt(number * share * max(1.0 - share, 0.0))
    starts = np.ceil(number * share + deviation * _COVER)
    if len(law.mass) <= 2 * len(_COVER):
        starts = law.values
    starts = np.unique(np.clip(np.append(law.first, starts), law.first, law.values[-1]))
    at = (starts - law.first).astype(np.int64)
    return starts, np.add.reduceat(law.mass, at)


def _number_law(number: int, clones: Clones) -> Law:
    """Reports of a or b by anybody: of n − 1 others, and of the user unless it is the rest."""
    others = binomial(number - 1, 2.0 * clones.each, 1.0 - 2.0 * clones.each)
    mass = np.append(others.mass, 0.0) * clones.rest
    mass[1:] += others.mass * (1.0 - clones.rest)
    return others._replace(mass=mass)


def dominating_table(number: int, clones: Clones) -> Table:
    """A pair that dominates the shuffled reports of n users.

    Given the number C of reports of a or b and that of covering ones c, a user's a is told from b
    by the number of a alone, Bin(C, ½) times 1 ± κ(a − C/2), κ = (e^{ε₀} − 1)/(wc + (e^{ε₀} +
    1)C/2), w = γ/g. This grows in the convex order with κ and with C.

    Method: docs/method/shuffled-reports.md#table
    """
    ratio, law = clones.ratio, _number_law(number, clones)
    weight = clones.rest / clones.cover if clones.rest > 0.0 else 0.0
    share = clones.cover / (1.0 - 2.0 * clones.each) if clones.rest > 0.0 else 0.0
    most = float(np.sum(law.mass * law.values))
    typical = (ratio - 1.0) / (weight * clones.cover * number + 0.5 * (ratio + 1.0) * most)
    points = _losses(typical * np.sqrt(most), float(np.log(ratio)))
    parts: list[tuple[Array, Array]] = []
    exposed, found, unit = law.outside + _NOTHING_LESS, None, max(1.0, np.floor(5e-4 * number))
    for first, last, chance in _groups(law):
        if last == 0.0:  # (no report of a or b)
            parts.append((np.array([chance]), np.zeros(1)))
            continue
        if last > _LARGEST_GROUP * first:  # (whoever sees the user's own report sees more)
            exposed += chance
            continue
        covers = np.zeros(1), np.ones(1)
        if weight:
            fewest = max(np.floor((number - 1.0 - last) / unit) * unit, 0.0)
            covers = _covering(int(fewest), share, chance < _FAINT)
        d, base = _centred(int(last if weight else first), _FEWER if weight else _VALUES)
        for cover, part in zip(*covers, strict=True):
            parts.append(_tilted(chance * part * base, d, weight * cover, first, ratio))
        if sum(len(part[0]) for part in parts) > 500_000:
            found, parts = _joined(found, parts, points), []
    both = np.array([ratio, 1.0]) / (ratio + 1.0)
    parts.append((exposed * both, np.log(ratio) * np.array([-1.0, 1.0])))
    found = _joined(found, parts, points)
    error = 3.0 * (LONG_BINOMIAL[0] + LONG_BINOMIAL[1] * 40.0 * np.sqrt(number + 200.0))
    return found._replace(error=found.error + error)


def _tilted(
    mass: Array, d: Array, covering: float, number: float, ratio: float
) -> tuple[Array, Array]:
    """P-masses, and losses log((1 + κd)/(1 − κd)), with 1 ± κd as sums of what is positive."""
    # (where a number is below 0 its mass is far below all numbers)
    more, less = 0.5 * number + np.abs(d), np.maximum(0.5 * number - np.abs(d), 0.0)
    whole = covering + 0.5 * (ratio + 1.0) * number
    small = (covering + ratio * less + more) / whole
    large = (covering + ratio * more + less) / whole
    tilt = (ratio - 1.0) / whole * np.abs(d)
    near = tilt < 0.5
    size = np.where(near, 2.0 * np.arctanh(np.where(near, tilt, 0.0)), np.log(large / small))
    return mass * np.where(d > 0.0, small, large), np.sign(d) * size


def _joined(found: Table | None, parts: list[tuple[Array, Array]], points: Array) -> Table:
    p, loss = (np.concatenate([part[k] for part in parts]) for k in (0, 1))
    some = p > 0.0
    table = Table(loss[some], p[some], p[some], 0.0, 0.0, 0.0)
    if found is not None:
        table = table._replace(
            loss=np.append(found.loss, table.loss), p=np.append(found.p, table.p), error=found.error
        )
    return dominating(table, np.asarray(points))


class Event(NamedTuple):
    """Probability of an event, and of its opposite to its own digits."""

    yes: float
    no: float


def counts_table(number: int, first: Event, second: Event) -> Table:
    """The number of events among n reports; all others have the user's first value.

    Args:
        number: n.
        first, second: the event, for the user's first value and for its second one; the latter is
            more likely.

    Method: docs/method/shuffled-reports.md#attack
    """
    law = binomial(number - 1, first.yes, first.no)
    before, after = np.append(0.0, law.mass), np.append(law.mass, 0.0)
    k = law.first + np.arange(float(len(before)))
    p = first.no * after + first.yes * before
    # s(k − 1)/s(k), to all digits; ∞ at n
    with np.errstate(divide="ignore"):
        step = k * first.no / (np.maximum(number - k, 0.0) * first.yes)
    far = step > 1.0
    inverse = 1.0 / np.where(far, step, 1.0)
    near = np.where(far, 1.0, step)
    gap = second.yes - first.yes
    change = np.where(
        far,
        gap * (1.0 - inverse) / (first.yes + first.no * inverse),
        gap * (near - 1.0) / (first.no + first.yes * near),
    )
    ratio = np.where(
        far,
        (second.yes + second.no * inverse) / (first.yes + first.no * inverse),
        (second.no + second.yes * near) / (first.no + first.yes * near),
    )
    return _attack(p, _loss(change, ratio), law.error)


def _loss(change: Array, ratio: Array) -> Array:
    """log of a ratio that is 1 + ``change``, from whichever keeps its digits."""
    small = np.abs(change) < 0.5
    return np.where(small, np.log1p(np.where(small, change, 0.0)), np.log(ratio))


class Added(NamedTuple):
    """Probabilities of what the user in question adds to a sum."""

    one: float
    nothing: float
    minus_one: float


def sums_table(number: int, each: float, first: Added, second: Added) -> Table:
    """The sum of steps of −1, 0 and 1 of others, and of what the user adds.

    Args:
        number: of the others' steps.
        each: r, the probability of 1 and of −1.
        first, second: what the user adds, for its first and for its second value.

    Method: docs/method/shuffled-reports.md#attack
    """
    steps = sum_of_steps(number, each)
    last = len(steps.mass)
    size = np.abs(np.arange(-last, last + 1))
    mass: Any = np.append(steps.mass, 0.0)
    ratio: Any = np.append(steps.ratio, [0.0, 0.0])
    # s(|z|) and its neighbours over the one nearer to 0; over s(0) at 0
    closer = np.maximum(size, 1) - 1
    inner = np.where(size > 0, 1.0, ratio[0])
    own = np.where(size > 0, ratio[closer], 1.0)
    outer = own * np.where(size > 0, ratio[closer + 1], ratio[0])
    positive = np.arange(-last, last + 1) > 0
    down, up = np.where(positive, inner, outer), np.where(positive, outer, inner)
    closer = closer * (size > 0)
    p, q = (v.nothing * own + v.one * down + v.minus_one * up for v in (first, second))
    some = (mass[closer] > _LEAST) & (p > 0.0)
    closer, own, down, up, p, q = (a[some] for a in (closer, own, down, up, p, q))
    plus, minus = second.one - first.one, second.minus_one - first.minus_one
    # (the three changes add up to nothing)
    change = (plus * (down - own) + minus * (up - own)) / p
    return _attack(mass[closer] * p, _loss(change, q / p), steps.error[0])


def _attack(p: Array, loss: Array, error: float) -> Table:
    """Masses under both laws, fewer if there are many."""
    some = (p > _LEAST) & (loss > -600.0)  # (what is left out only weakens an attack)
    order = np.argsort(loss[some], kind="stable")
    p, loss = np.asarray(p)[some][order], np.asarray(loss)[some][order]
    apart = 64.0 * UNIT
    table = Table(loss, p, p * np.exp(loss), 0.0, 0.0, error + apart, 4.0 * LONG_BINOMIAL[0])
    if len(loss) <= _MOST:
        return table
    spread = np.sqrt(np.sum(p * loss**2))
    return merged(table, np.asarray(_losses(float(spread), float(np.max(np.abs(loss))))))


def swapped(table: Table) -> Table:
    """The same under exchanged laws."""
    return table._replace(loss=-table.loss[::-1], p=table.q[::-1], q=table.p[::-1])


__all__ = [
    "NOTHING",
    "Added",
    "Clones",
    "Event",
    "counts_table",
    "dominating_table",
    "sums_table",
    "swapped",
]
