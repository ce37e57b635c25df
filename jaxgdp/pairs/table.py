"""A pair of laws as a table of its privacy losses, before it becomes a mechanism."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..numerics.errors import UNIT


class Table(NamedTuple):
    """A pair of laws on finitely many losses, without padding.

    Attributes:
        loss: increasing losses.
        p, q: masses, q = p·e^{loss}.
        p_minus: P-mass at loss −∞.
        q_plus: Q-mass at loss +∞.
        error: bound on the relative error of every mass.
        apart: bound on that of q/p, where all outcomes that are one in the table have their own:
            that of their mean weighted by p as it is here. It is 0 for losses that are known.

    Method: docs/method/reading.md#together
    """

    loss: np.ndarray
    p: np.ndarray
    q: np.ndarray
    p_minus: float
    q_plus: float
    error: float
    apart: float = 0.0


NOTHING = Table(
    np.zeros(1), np.ones(1), np.ones(1), 0.0, 0.0, 0.0
)  # of a mechanism that shows nothing


def grid(loss: np.ndarray, p: np.ndarray, finest: float, coarsest: float, share: float):
    """Losses at which a table of many more may be kept: ``finest`` apart around its mean, and a
    ``share`` of the distance from there.
    """
    middle = float(np.sum(p * loss) / np.sum(p))
    reach = max(middle - loss[0], loss[-1] - middle, finest)
    finest, distance = min(finest, coarsest), 0.0
    steps = [np.zeros(1)]
    # evenly, in equal ratios, and evenly again
    for end, ratio in ((finest / share, 1.0), (coarsest / share, 1.0 + share), (math.inf, 1.0)):
        if distance < min(end, reach):
            gap = finest if distance == 0.0 else coarsest
            number = (
                (min(end, reach) - distance) / gap
                if ratio == 1.0
                else math.log(min(end, reach) / distance) / math.log(ratio)
            )
            k = np.arange(1.0, math.ceil(number) + 1.0)
            steps.append(distance + gap * k if ratio == 1.0 else distance * ratio**k)
            distance = float(steps[-1][-1])
    ahead = np.concatenate(steps)
    points = middle + np.concatenate([-ahead[:0:-1], ahead])
    first, last = np.searchsorted(points, loss[0], "right") - 1, np.searchsorted(points, loss[-1])
    return points[max(first, 0) : last + 1]


def dominating(table: Table, points: np.ndarray) -> Table:
    """The table on fewer losses: each atom to its two neighbours (connect the dots)."""
    cell = np.clip(np.searchsorted(points, table.loss, "right") - 1, 0, len(points) - 2)
    low, high = points[cell], points[cell + 1]
    up = np.clip(
        np.exp(table.loss - high) * np.expm1(low - table.loss) / np.expm1(low - high), 0.0, 1.0
    )
    p = np.bincount(cell, table.p * (1.0 - up), len(points)) + np.bincount(
        cell + 1, table.p * up, len(points)
    )
    some = p > 0.0
    # (a share is that of a loss which is a rounding away)
    rounding = np.bincount(cell).max() * 2 + 8 + 4.0 * np.max(np.abs(points))
    p, points = p[some], points[some]
    return table._replace(
        loss=points, p=p, q=p * np.exp(points), error=table.error + rounding * UNIT
    )


def merged(table: Table, points: np.ndarray) -> Table:
    """The table with all atoms between two neighbouring points merged: the observation of an
    attacker who cannot distinguish them.
    """
    cell = np.searchsorted(points, table.loss, "right")
    error = table.error + (np.bincount(cell).max() + 8) * UNIT
    apart = table.apart + 2.0 * (error - table.error)
    return from_masses(np.bincount(cell, table.p), np.bincount(cell, table.q), error, apart)


def from_masses(p: np.ndarray, q: np.ndarray, error: float, apart: float | None = None) -> Table:
    """A table of two laws on one set of outputs, by increasing loss, without one-sided outputs."""
    some = (p > 0.0) & (q > 0.0)
    p, q = p[some], q[some]
    loss = np.log(q) - np.log(p)
    near = np.abs(q - p) < 0.5 * p
    loss[near] = np.log1p((q[near] - p[near]) / p[near])
    order = np.argsort(loss, kind="stable")
    return Table(
        loss[order], p[order], q[order], 0.0, 0.0, error, 2.0 * error if apart is None else apart
    )
