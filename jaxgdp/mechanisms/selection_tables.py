"""Private selection: tables of a pair that dominates the best of K runs, and of attacks on it."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from scipy.special import ndtr

from ..numerics.errors import SELECTION
from ..numerics.shapes import Array
from ..pairs.table import Table, from_masses
from .profile_table import Profile, follow, table_of
from .runs import Runs, Step

_LOGITS = np.linspace(-45.0, 45.0, 45001)  # of the distribution functions of one run
_SHIFTS = 400  # of a profile, that a bound is made of
_LEAST_SHIFT = -700.0
_FPRS = 420  # of an attack, in one order
_FAINTEST_FPR = 1e-60
LEVELS = (1e-5, 0.5, 0.02, 1e-9, 1e-15)  # δ for which an order of the outputs is chosen
_LARGE = 0.02  # mass of a cell that is divided, and shares of its parts, with the sum 1
_PARTS = np.concatenate([np.full(48, 1.0 / 64.0), 0.125 * 0.5 ** np.arange(40), [0.25 * 0.5**40]])
_COARSE, _BOUNDARIES = 200, 40  # cells and boundaries that are tried for that


def _largest_tpr(profile: Profile, order: int, logit: Array) -> tuple[Array, Array]:
    """A bound t on the TPR of one run at FPRs w, and 1 − t to its own digits.

    t ≤ δ(x) + e^x·w for every x, and 1 − t ≥ e^{−x}·(1 − w − δ′(x)): the best line is next to where
    neighbouring lines cross.
    """
    x, own, other = profile.epsilon, profile.delta[order], profile.delta[1 - order]
    with np.errstate(over="ignore"):
        w, rest = 1.0 / (1.0 + np.exp(-logit)), 1.0 / (1.0 + np.exp(logit))
    moderate = x < 600.0
    x, own, other = x[moderate], own[moderate], other[moderate]
    growth = np.exp(x)
    t, left = np.ones(len(w)), np.zeros(len(w))
    crossing = np.maximum.accumulate((-np.diff(own) / np.diff(growth))[::-1])
    best = len(crossing) - np.searchsorted(crossing, w)
    # (1 − w − δ′)·e^{−x}: neighbouring lines cross where 1 − w is (δ′₀e^{−x₀} − δ′₁e^{−x₁})/(…)
    shrink = np.exp(-x)
    cross = np.diff(-other * shrink) / np.diff(-shrink)
    cross = np.maximum.accumulate(cross[::-1])
    near = len(cross) - np.searchsorted(cross, rest)
    for k in (-1, 0, 1):
        i, j = (np.clip(a + k, 0, len(x) - 1) for a in (best, near))
        t = np.minimum(t, own[i] + growth[i] * w)
        left = np.maximum(left, (rest - other[j]) * shrink[j])
    left = np.maximum(left, 1.0 - t) * (1.0 - SELECTION)
    return np.minimum(np.minimum(t, 1.0 - left) * (1.0 + SELECTION), 1.0), left


class Shifts(NamedTuple):
    """A bound Σ c_j·δ(ε + κ_j) on the profile of the best of K.

    Attributes:
        weight: c_j.
        shift: κ_j, increasing.
    """

    weight: Array
    shift: Array


def shifts(profile: Profile, order: int, runs: Runs) -> Shifts:
    """Φ(s) = sup over w of (G′(t(w)) − G′(w)·s)₊ as Σ c_j·(1 − e^{κ_j}·s)₊.

    Both G′(t) and G′ increase in w, so that an interval of w is bounded by t at its upper and w at
    its lower end. Φ is that of the concave hull of the points (G′(w), G′(t(w))) and (0, 0); as
    (1 − k·s)₊ is convex in k, k may be split between neighbours of a grid.

    Method: docs/method/selection.md#upper
    """
    t, left = _largest_tpr(profile, order, _LOGITS)
    with np.errstate(over="ignore"):
        w, rest = 1.0 / (1.0 + np.exp(-_LOGITS)), 1.0 / (1.0 + np.exp(_LOGITS))
    one, nothing = np.ones(1), np.zeros(1)
    top = runs.log_slope(np.append(t, one), np.append(left, nothing))
    bottom = runs.log_slope(np.append(nothing, w), np.append(one, rest))
    scale = float(top[-1])
    a, b = np.exp(top - scale), np.exp(np.minimum(bottom - scale, 0.0))
    rise, run = _concave_steps(b, a)
    rise = rise * np.exp(scale) * (1.0 + SELECTION)
    with np.errstate(divide="ignore"):
        kappa = np.log(run) - np.log(rise) + scale
    near = kappa > _LEAST_SHIFT  # (a smaller one counts as −∞, where δ is 1)
    kappa, far, rise = kappa[near], float(np.sum(rise[~near])), rise[near]
    low, high = np.min(kappa, initial=0.0) - 1e-9, np.max(kappa, initial=0.0) + 1e-9
    grid = np.linspace(max(low, -30.0), high, _SHIFTS)
    grid = np.append(np.linspace(low, grid[0], 40)[:-1], grid) if low < -30.0 else grid
    cell = np.clip(np.searchsorted(grid, kappa, "right") - 1, 0, len(grid) - 2)
    low, high = grid[cell], grid[cell + 1]
    share = np.clip(np.exp(kappa - high) * np.expm1(low - kappa) / np.expm1(low - high), 0.0, 1.0)
    weight = np.bincount(cell, rise * (1.0 - share), len(grid))
    weight += np.bincount(cell + 1, rise * share, len(grid))
    weight, grid = np.append(far, weight), np.append(-np.inf, grid)
    some = weight > 0.0
    # (the place of a shift is known to some roundings)
    return Shifts(weight[some], grid[some] - SELECTION)


def _concave_steps(x: Array, y: Array) -> tuple[Array, Array]:
    """Rises and runs of the upper hull of (0, 0) and points, from the left, while it rises."""
    order = np.lexsort((-y, x))
    x, y = x[order], y[order]
    # (only points higher than all before can be vertices)
    highest = np.maximum.accumulate(np.append(0.0, y))
    kept_points = y > highest[:-1]
    hull_x, hull_y = [0.0], [0.0]
    for px, py in zip(x[kept_points].tolist(), y[kept_points].tolist(), strict=True):
        while len(hull_x) > 1 and (hull_y[-1] - hull_y[-2]) * (px - hull_x[-1]) <= (
            py - hull_y[-1]
        ) * (hull_x[-1] - hull_x[-2]):
            hull_x.pop()
            hull_y.pop()
        hull_x.append(px)
        hull_y.append(py)
    return np.diff(hull_y), np.diff(hull_x)


def _of_share(runs: Runs, share: Array) -> Array:
    """1 − G(1 − s)."""
    s = np.minimum(share, 1.0)
    step = Step(s, 1.0 - s, np.ones_like(s), s, np.zeros_like(s))
    return np.minimum(runs.gain(step) * (1.0 + SELECTION), 1.0)


def dominating_table(profile: Profile, runs: Runs, together: Profile | None = None) -> Table:
    """A pair that dominates the best of K runs, whatever the score: the least of three bounds.

    Args:
        profile: of one run.
        runs: the law of K.
        together: the profile of all runs, where K is a fixed number: the best is a part of them.

    Method: docs/method/selection.md#upper
    """
    made = [shifts(profile, order, runs) for order in (0, 1)]
    # all of K runs are the same on both data sets but for this
    whole = float(_of_share(runs, profile.delta[:1, 0])[0])

    def both(epsilon: Array) -> Array:
        found = np.full((2, len(epsilon)), whole)
        for order, (weight, shift) in enumerate(made):
            mixed = profile.at(order, epsilon[:, None] + shift) @ weight
            moved = _of_share(runs, profile.at(order, epsilon + shift[0]))
            found[order] = np.minimum(np.minimum(found[order], mixed), moved)
            if together is not None:
                found[order] = np.minimum(found[order], together.at(order, epsilon))
        return found

    return table_of(follow(both))


class Reached(Protocol):
    """What tells which tests are reached."""

    def tpr(self, order: int, fpr: Array) -> Array:
        """A TPR that is reached at an FPR."""
        ...


class Cells(NamedTuple):
    """Masses of a pair that one run certainly shows, by increasing ratio of ``high`` to ``low``.

    Attributes:
        low, high: masses under both laws, each with the sum 1.
    """

    low: Array
    high: Array


def achieved_cells(curve: Reached) -> Cells:
    """A pair of P and Q whose every test is one that one run is certain to allow, at most as good.

    Its trade-off curve is the hull of tests that are reached, so that it is a post-processing of
    one run; ordered by q/p.

    Method: docs/method/selection.md#score
    """
    deep = np.sqrt(-2.0 * np.log(_FAINTEST_FPR))
    fpr = ndtr(
        -np.append(np.linspace(-8.0, 0.5 * deep, _FPRS), np.linspace(0.5 * deep, deep, 60)[1:])
    )
    room = 1.0 - SELECTION
    tprs = [np.maximum(curve.tpr(order, fpr) * room, 0.0) for order in (0, 1)]
    gains = [t - fpr for t in tprs]
    side = int(np.max(gains[1]) > np.max(gains[0]))
    best = int(np.argmax(gains[side]))
    joint = (float(fpr[best]), float(tprs[side][best]))
    if joint[1] <= joint[0]:
        return Cells(np.ones(1), np.ones(1))
    mirror = (1.0 - joint[1], 1.0 - joint[0])
    ends = (joint, mirror) if side == 0 else (mirror, joint)
    halves = [_hull_steps(fpr, t, end) for t, end in zip(tprs, ends, strict=True)]
    # (from the largest q/p on, and from the largest p/q on)
    (p_up, q_up), (q_down, p_down) = halves
    return _divided(Cells(np.append(p_down, p_up[::-1]), np.append(q_down, q_up[::-1])))


def _divided(cells: Cells) -> Cells:
    """The same with large cells in parts, down to tiny ones: outputs told apart by coins."""
    large = np.maximum(*cells) > _LARGE
    number = np.where(large, len(_PARTS), 1)
    first = np.append(0, np.cumsum(number)[:-1])
    share = _PARTS[
        np.where(np.repeat(large, number), np.arange(number.sum()) - np.repeat(first, number), 0)
    ]
    share = np.where(np.repeat(large, number), share, 1.0)
    return Cells(*(np.repeat(masses, number) * share for masses in cells))


def _hull_steps(fpr: Array, tpr: Array, end: tuple[float, float]) -> tuple[Array, Array]:
    """Steps of the upper hull of tests from (0, 0) to a last one, by falling slope."""
    inside = (fpr < end[0]) & (tpr < end[1]) & (tpr > fpr)
    order = np.argsort(fpr[inside])
    points = [(0.0, 0.0), *zip(fpr[inside][order], tpr[inside][order], strict=True), end]
    kept: list[tuple[float, float]] = []
    for x, y in points:
        while len(kept) > 1:
            (x0, y0), (x1, y1) = kept[-2:]
            if (y1 - y0) * (x - x1) > (y - y1) * (x1 - x0):
                break
            kept.pop()
        if not kept or (x > kept[-1][0] and y > kept[-1][1]):
            kept.append((float(x), float(y)))
    steps = np.diff(np.array(kept), axis=0)
    return steps[:, 0], steps[:, 1]


def _after(steps: Array) -> tuple[Array, Array]:
    """Sums up to the end of each step, and what is then missing to the whole."""
    return np.cumsum(steps), np.append(np.cumsum(steps[::-1])[::-1][1:], 0.0)


def selected_masses(runs: Runs, masses: Array) -> Array:
    """Masses of the best of K, of outputs by increasing score.

    Method: docs/method/selection.md#output
    """
    end, end_rest = _after(masses)
    start, start_rest = np.append(0.0, end[:-1]), np.append(end_rest[0] + masses[0], end_rest[:-1])
    return np.asarray(runs.gain(Step(masses, start, end, start_rest, end_rest)))


def _profile_at(cells: Cells, order: Array, runs: Runs, epsilon: float) -> float:
    low, high = (selected_masses(runs, masses[order]) for masses in cells)
    return float(np.sum(np.maximum(high - np.exp(epsilon) * low, 0.0)))


def _coarse(cells: Cells, number: int) -> Cells:
    """Neighbours of a pair as one, evenly in the place of a cell."""
    group = np.arange(len(cells.low)) * min(number, len(cells.low)) // len(cells.low)
    return Cells(*(np.bincount(group, masses) for masses in cells))


def interleaved(cells: Cells, first: int, runs: Runs, epsilon: float) -> Array:
    """An order of increasing scores: cells from ``first`` on by rising ratio, and the others, by
    falling ratio, each before those whose mass grows by that.

    An output of ratio b before one of ratio s adds s·b·G″(F) to the mass of the latter under one
    law and G″(F) under the other.

    Method: docs/method/selection.md#order
    """
    ratio = np.log(cells.high / cells.low).tolist()
    masses = list(zip(cells.low.tolist(), cells.high.tolist(), strict=True))
    below, above, number = first - 1, first, len(ratio)
    order, low, high = [], 0.0, 0.0
    while below >= 0 or above < number:
        later = below < 0
        if not later and above < number:
            gain = runs.log_curvature(high, max(1.0 - high, 0.0))
            cost = runs.log_curvature(low, max(1.0 - low, 0.0))
            later = ratio[above] + ratio[below] + gain <= epsilon + cost
        at = above if later else below
        above, below = (above + 1, below) if later else (above, below - 1)
        order.append(at)
        low, high = low + masses[at][0], high + masses[at][1]
    return np.array(order)


def _rotated(number: int, first: int) -> Array:
    return np.append(np.arange(first, number), np.arange(first))


def best_order(cells: Cells, runs: Runs, level: float) -> Array:
    """The order of scores that shows most, of those tried, where δ is next to ``level``.

    Method: docs/method/selection.md#order
    """
    rough = _coarse(cells, _COARSE)
    number = len(rough.low)
    blocks = [
        Cells(*(selected_masses(runs, masses[_rotated(number, k)]) for masses in rough))
        for k in range(number)
    ]
    low, high = np.stack([b.low for b in blocks]), np.stack([b.high for b in blocks])
    profile = lambda e: np.max(np.sum(np.maximum(high - np.exp(e) * low, 0.0), axis=1))
    least, most = 0.0, 600.0
    for _ in range(40):
        middle = 0.5 * (least + most)
        least, most = (middle, most) if profile(middle) > level else (least, middle)
    shown = lambda some, order: _profile_at(some, order, runs, least)
    tried = np.unique(np.linspace(0, number - 1, _BOUNDARIES).astype(int))
    rank = max(tried, key=lambda k: shown(rough, interleaved(rough, k, runs, least)))
    near = np.linspace(rank - number / _BOUNDARIES, rank + number / _BOUNDARIES, 13)
    firsts = np.unique(np.clip(near / number * len(cells.low), 0, len(cells.low) - 1).astype(int))
    orders = [interleaved(cells, int(k), runs, least) for k in firsts]
    block = int(np.argmax(np.sum(np.maximum(high - np.exp(least) * low, 0.0), axis=1)))
    orders.append(_rotated(len(cells.low), block * len(cells.low) // number))
    return max(orders, key=lambda order: shown(cells, order))


def attack_table(cells: Cells, runs: Runs, level: float, order: int) -> Table:
    """The laws of the best of K under a score that shows much next to δ = ``level`` in an order.

    Method: docs/method/selection.md#score
    """
    turned = cells if order == 0 else Cells(cells.high[::-1], cells.low[::-1])
    scores = best_order(turned, runs, level)
    low, high = (selected_masses(runs, masses[scores]) for masses in turned)
    p, q = (np.append(a, runs.nothing()) for a in ((low, high) if order == 0 else (high, low)))
    return from_masses(p, q, SELECTION)


__all__ = ["LEVELS", "achieved_cells", "attack_table", "dominating_table", "follow"]
