"""How many steps a record takes part in under b-min-sep sampling, and what that bounds.

A record that took part waits for b − 1 steps and then enters every step with probability p. The law
of the number of its steps follows by a recursion. It only grows with an earlier start: of two
records with the same coins, the one that may enter first is never behind by a step."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...numerics.errors import UNIT
from ...numerics.shapes import Array, Float
from .separation import squared_sensitivity

MOST_COUNTS = 40  # numbers of steps that are told apart; others are taken for a neighbour


def law_of_counts(steps: int, separation: int, prob: float) -> Float[Array, " counts"]:
    """Probabilities of 0, 1, … steps out of so many, for a record that may enter the first.

    Sums of positive terms: each to some 4·steps roundings.

    Example:
        >>> law_of_counts(3, 2, 0.5).tolist()
        [0.125, 0.625, 0.25]
    """
    most = -(-steps // separation)
    # (laws of the numbers from step i + 1, i + 2, …, i + b on)
    ahead = np.zeros((separation, most + 1))
    ahead[:, 0] = 1.0
    for i in range(steps):
        now = (1.0 - prob) * ahead[(i - 1) % separation]
        now[1:] += prob * ahead[i % separation, :-1]
        ahead[i % separation] = now
    return ahead[(steps - 1) % separation]


class Shifts(NamedTuple):
    """A law of shifts: what they are, and their probabilities, with the sum 1."""

    shifts: Float[Array, " shifts"]
    weights: Float[Array, " shifts"]


def _with_tails(
    shifts: Float[Array, " counts"], law: Float[Array, " counts"], error: float, up: bool
) -> Shifts:
    """Of shifts that grow with the number, at most MOST_COUNTS of them: numbers are taken for the
    largest, or smallest, of their group, and all tails for so much more, or less."""
    room = 1.0 + (error if up else -error)
    tail = np.minimum(np.cumsum(law[::-1])[::-1] * room, 1.0)
    tail[0] = 1.0
    kept = np.unique(np.rint(np.linspace(0, len(law) - 1, MOST_COUNTS)).astype(int))
    first = np.append(0, kept[:-1] + 1) if up else kept  # the least number of each group
    weights = tail[first] - np.append(tail[first[1:]], 0.0)
    return Shifts(shifts[kept], np.maximum(weights, 0.0))


def _rounding(steps: int) -> float:
    return 8.0 * steps * UNIT


def shifts_above(
    c: Float[Array, "steps steps"], separation: int, prob: float, toeplitz: bool
) -> Shifts:
    """Shifts (of noise 1) of one mixture that dominates: the largest norm of so many columns.

    Method: docs/method/kahane.md#numbers
    """
    law = law_of_counts(len(c), separation, prob)
    kept = np.unique(np.rint(np.linspace(0, len(law) - 1, MOST_COUNTS)).astype(int))
    size = np.full(len(law), np.nan)
    size[0] = 0.0
    for k in kept[1:]:
        size[k] = np.sqrt(squared_sensitivity(c, separation, int(k), toeplitz).upper)
    size[kept] = np.maximum.accumulate(size[kept]) * (1.0 + 8.0 * UNIT)
    return _with_tails(size, law, _rounding(len(c)), up=True)


def shifts_below(c: Float[Array, "steps steps"], separation: int, prob: float) -> Shifts:
    """Shifts (of noise 1) of one mixture that an attack achieves: the output along the sum of all
    columns, and steps between the first and last that move it by about as much as most do.

    Method: docs/method/kahane.md#numbers
    """
    direction = c.sum(axis=1)
    along = (direction @ c) / np.sqrt(direction @ direction)
    # (of a step alone: the rate where the process has run before)
    rate = prob / (1.0 + (separation - 1.0) * prob)
    found = [Shifts(np.array([0.0, float(c[0, 0])]), np.array([1.0 - rate, rate]))]
    for share in (0.5, 0.9, 0.99, 0.999):
        typical = np.flatnonzero(along >= share * np.median(along))
        first, last = int(typical[0]), int(typical[-1])
        # (whoever took part just before may not enter the first b − 1 of them)
        free = last - first + 1 - (separation - 1)
        if free > 0:
            law = law_of_counts(free, separation, prob)
            size = float(along[first : last + 1].min()) * (1.0 - 4.0 * len(c) * UNIT)
            sizes = size * np.arange(len(law))
            found.append(_with_tails(sizes, law, _rounding(len(c)), up=False))
    return max(found, key=lambda each: float(each.shifts @ each.weights))
