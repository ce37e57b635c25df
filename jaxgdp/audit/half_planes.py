"""A claim as half-planes: TPR ≤ s·FPR + c for every slope s, which is its privacy profile.

Every event A has Q(A) ≤ e^ε·P(A) + δ(ε) under a claim with the profile δ, at every real ε. A claim
that covers both orders of the data sets also has P(Aᶜ) ≤ e^ε·Q(Aᶜ) + δ(ε), which is the half-plane
of slope s = e^−ε with c = 1 − e^−ε·(1 − δ(ε)).

Slopes and intercepts are 32-bit numbers, intercepts rounded up: the half-planes are the same in
every precision, and each holds all pairs of rates that the claim allows."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..numerics.shapes import Array, ArrayLike

_TAIL = 1e-7  # of the profile, beyond which there are no half-planes
_LINES = 64  # half-planes with slopes above 1
_ROUGH = np.geomspace(0.02, 200.0, 28)
_WIDEST = 12.0  # largest |ε| of the half-planes of a curve
_ROUNDING = 1e-13  # of intercepts worked out in doubles


class HalfPlanes(NamedTuple):
    """Half-planes that hold all rates a claim allows, by decreasing slope.

    Attributes:
        slope: s > 0, float64 with 32-bit values, shape (n,).
        intercept: c, likewise.
        corner: where neighbours meet, (FPR, TPR), shape (n − 1, 2): for orientation only.
    """

    slope: Array
    intercept: Array
    corner: Array


def _up(value: np.ndarray) -> np.ndarray:
    """The next 32-bit number above, as float64."""
    return np.nextafter(np.asarray(value, np.float32), np.float32(np.inf)).astype(float)


def of_profile(profile: Callable[[np.ndarray], np.ndarray], points: ArrayLike = ()) -> HalfPlanes:
    """Half-planes of a profile of both orders.

    Args:
        profile: function of ε ≥ 0 → an upper bound on δ(ε), arrays of one shape.
        points: values of ε that are wanted besides, such as the claimed one.

    Returns:
        :class:`HalfPlanes` that hold every pair of rates the claim allows.

    Example:
        >>> found = of_profile(lambda epsilon: np.where(epsilon < 1.0, 1.0, 0.0), [1.0])
        >>> bool(np.any(np.abs(found.slope - np.e) < 1e-6))
        True

    Method: docs/method/sequential.md#pair
    """
    rough = np.asarray(profile(_ROUGH), float)
    small = np.flatnonzero(rough <= _TAIL)
    most = _ROUGH[small[0]] if small.size else _ROUGH[-1]
    wanted = np.concatenate(
        [most * np.linspace(0.0, 1.0, _LINES) ** 1.5, np.asarray(points, float)]
    )
    # slopes are 32-bit numbers, and a profile is asked at their logarithms
    steep = _up(np.exp(np.minimum(wanted, 80.0)))
    flat = _up(np.exp(-np.minimum(wanted, 80.0)))
    flat = np.where(flat > 1.0, 1.0, flat)
    delta = np.asarray(profile(np.concatenate([np.log(steep), -np.log(flat)])), float)
    above, below = np.split(np.clip(delta, 0.0, 1.0), 2)
    slope = np.concatenate([steep, flat])
    intercept = np.concatenate([above, 1.0 - flat * (1.0 - below)])
    return _pruned(slope, _up(intercept + _ROUNDING))


def of_curve(fnr: Callable[[np.ndarray], np.ndarray], points: int = 4000) -> HalfPlanes:
    """Half-planes of a trade-off curve, from lower bounds on it alone.

    Between two FPRs the curve is at least its value at the larger one, so that c = max over cells
    of 1 − f(right end) − s·(left end).

    Args:
        fnr: function of FPRs → a lower bound on the FNR allowed, non-increasing.
        points: FPRs at which it is asked.
    """
    half = np.geomspace(1e-9, 0.5, points // 2)
    grid = np.concatenate([[0.0], half, 1.0 - half[-2::-1], [1.0]])
    # in the cell from ``left`` on, the TPR is at most this
    left, most = grid[:-1], 1.0 - np.asarray(fnr(grid), float)[1:]
    reach = _WIDEST * np.linspace(0.0, 1.0, _LINES) ** 1.5
    slope = _up(np.exp(np.concatenate([reach, -reach[1:]])))
    intercept = np.max(most - slope[:, None] * left, axis=1)
    return _pruned(slope, _up(intercept + _ROUNDING))


def _pruned(slope: np.ndarray, intercept: np.ndarray) -> HalfPlanes:
    """Those that bound some pair of rates, by decreasing slope: the envelope of the lines."""
    order = np.lexsort((intercept, -slope))
    kept: list[int] = []
    for i in order:
        if kept and slope[i] == slope[kept[-1]]:
            continue
        while len(kept) > 1 and _meet(slope, intercept, kept[-2], i) <= _meet(
            slope, intercept, kept[-2], kept[-1]
        ):
            kept.pop()
        kept.append(int(i))
    found = [_meet(slope, intercept, i, j) for i, j in zip(kept[:-1], kept[1:], strict=True)]
    # lines that are the lowest only outside of [0, 1]
    first = sum(x <= 0.0 for x in found)
    last = len(kept) - sum(x >= 1.0 for x in found)
    kept, fpr = kept[first:last], np.array(found[first : last - 1])
    s, c = slope[kept], intercept[kept]
    return HalfPlanes(s, c, np.stack([fpr, s[:-1] * fpr + c[:-1]], axis=-1))


def _meet(slope: np.ndarray, intercept: np.ndarray, i: int, j: int) -> float:
    """The FPR at which two lines cross, the steeper one first."""
    return float((intercept[j] - intercept[i]) / (slope[i] - slope[j]))
