"""The largest squared sensitivity over the participations of a record with a minimum separation.

It is max Σ_{i, j in π} G_ij over sets π of at most k steps that are at least b apart. A maximum of
linear sums over such sets is a recursion over steps. The quadratic one is bounded by two of them,
and attained where these agree."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...numerics.shapes import Array, Float
from .strategy import squared_norms


class Sensitivity(NamedTuple):
    """Bounds on a squared sensitivity: no participation exceeds ``upper``, one has ``lower``."""

    lower: float
    upper: float


def heaviest(value: Float[Array, " steps"], separation: int, most: int) -> list[int]:
    """The set of at most ``most`` steps, at least ``separation`` apart, with the largest sum."""
    number = len(value)
    best = np.zeros((most + 1, number + separation))
    taken = np.zeros((most + 1, number), bool)
    for i in range(number - 1, -1, -1):
        take = value[i] + best[:-1, i + separation]
        skip = best[1:, i + 1]
        taken[1:, i] = take > skip
        best[1:, i] = np.maximum(take, skip)
    found, i, left = [], 0, most
    while i < number and left:
        if taken[left, i]:
            found.append(i)
            i, left = i + separation, left - 1
        else:
            i += 1
    return found


def heaviest_sums(
    value: Float[Array, "rows steps"], separation: int, most: int
) -> Float[Array, "counts rows"]:
    """For every row and every number of steps up to ``most``, the largest sum of so many entries or
    fewer that are at least ``separation`` apart; no entry is negative."""
    rows, number = value.shape
    ahead = np.zeros((separation, most + 1, rows))  # best sums from step i + 1, i + 2, … on
    for i in range(number - 1, -1, -1):
        now = ahead[0].copy()
        np.maximum(now[1:], value[:, i] + ahead[-1, :-1], out=now[1:])
        ahead = np.concatenate([now[None], ahead[:-1]])
    return ahead[0]


def squared_sensitivity(
    c: Float[Array, "steps steps"], separation: int, most: int, toeplitz: bool
) -> Sensitivity:
    """Bounds for a strategy matrix C, G = CᵀC.

    A set π has Σ_{i in π} Σ_{j in π} |G_ij| ≤ Σ_{i in π} h_i with h_i the largest row sum over the
    sets that hold i: from above a recursion over steps for every row, and one over rows. From below
    the set of the second one, evenly spaced sets, and the signs that belong to them.

    Method: docs/method/kahane.md#fixed-steps
    """
    number = len(c)
    even = list(range(0, number, separation))[:most]
    if toeplitz and np.all(c[:, 0] >= 0.0) and np.all(np.diff(c[:, 0]) <= 0.0):
        return _exact(c[:, even].sum(axis=1))
    gram = c.T @ c
    size = np.abs(gram)
    apart = np.subtract.outer(np.arange(number), np.arange(number))
    if not np.any(size[np.abs(apart) >= separation]):
        norms = squared_norms(c)
        total = float(np.sum(norms[heaviest(norms, separation, most)].astype(np.longdouble)))
        return Sensitivity(total, total)
    before, after = (
        heaviest_sums(np.where(side >= separation, size, 0.0), separation, most - 1)
        for side in (apart, -apart)
    )
    pairs = [before[k] + after[most - 1 - k] for k in range(most)]
    row = np.diag(size) + np.maximum.reduce(pairs)
    chosen = heaviest(row, separation, most)
    upper = float(row[chosen].sum()) * (1.0 + 4.0 * number * 2.0**-53)
    sets = [chosen] + [
        list(range(j, number, separation))[:most] for j in range(min(separation, number))
    ]
    lower = max(_signed(gram[np.ix_(p, p)]) for p in sets) * (1.0 - 4.0 * number * 2.0**-53)
    return Sensitivity(lower, upper)


def _exact(total: Float[Array, " steps"]) -> Sensitivity:
    """The squared norm of a sum of columns that no other exceeds."""
    found = float(squared_norms(total[:, None])[0])
    return Sensitivity(found, found)


def _signed(gram: Float[Array, "steps steps"]) -> float:
    """The largest Σ s_i·s_j·G_ij over signs that a local search finds; all alike to begin with."""
    best = 0.0
    for start in (np.ones(len(gram)), np.where(np.linalg.eigh(gram)[1][:, -1] < 0.0, -1.0, 1.0)):
        s = start.copy()
        for _ in range(4 * len(s)):
            gain = np.diag(gram) - s * (gram @ s)
            worst = int(np.argmax(gain))
            if gain[worst] <= 0.0:
                break
            s[worst] = -s[worst]
        best = max(best, float(s @ gram @ s))
    return best
