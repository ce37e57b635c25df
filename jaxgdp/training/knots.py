"""A table over numbers of steps with fewer entries: sides that are lines from knot to knot.

Between two computed numbers of steps nothing is known but that privacy never improves with a step,
so a certified side is a stair. Stairs that are within half a per cent of a smooth function have
hundreds of steps. A line from knot to knot on the safe side of every stair has some tens of knots
and is about as close. Compiled functions and devices get those.

A knot is an entry or the number of steps behind one, where the stair rises. The safe side, as a
growing function, is needed up to the next entry, so a line is right if it is at no corner below the
stair that begins there. The other side has to stay below the stair of the entry before, so its
corners are where a stair ends. Both are checked in float64, with room for the rounding of the line
in float32 (:data:`ROUNDING`); lines between equal numbers have none. No line is drawn between tiny
or infinite numbers, nor from one to less than half of it, where rounding is large beside the line:
there the stair of the knots stands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..bracket import Bracket
from ..numerics.shapes import Array, Float, Int
from ..quantities.registry import named
from .between import CLOSE
from .float32 import above, below

ROUNDING = 1e-6  # of a line in float32, relative: sixteen units in the last place
SMALLEST = np.float32(
    1e-30
)  # lines are drawn between larger numbers only: their rounding is relative
_SHARES = (1.0, 0.5, 0.0)  # of the range of slopes that are possible; each is tried


def thinned(
    steps: Int[Array, " computed"], brackets: Mapping[str, Bracket], stops: tuple[int, ...] = ()
) -> tuple[np.ndarray, dict[str, Bracket]] | None:
    """Knots of lines that hold at every number of steps; None where they are no fewer than entries.

    Args:
        steps: computed numbers of steps, from 0 on, increasing.
        brackets: quantity → float32 bracket over ``steps``, monotone in them.
        stops: computed numbers of steps up to which the safe side must not be above that of them.

    Returns:
        Numbers of steps and float32 brackets over them, for :func:`looked_up` with ``lines``.

    Example:
        >>> steps = np.unique(np.geomspace(1, 10_000, 2_000).astype(int))
        >>> root = np.sqrt(steps).astype(np.float32)
        >>> knots, _ = thinned(steps, {"mu": Bracket(root, root)})
        >>> len(steps) > 1_000, len(knots) < 50
        (True, True)
    """
    steps = np.asarray(steps, np.int64)
    places = np.unique(np.concatenate([steps, steps[:-1] + 1]))
    sides = [_growing(name, bracket) for name, bracket in brackets.items()]
    needed = np.array([safe[np.searchsorted(steps, places)] for _, safe in sides])
    most = np.array([_most(steps, safe, places, stops) for _, safe in sides])
    entry = np.isin(places, steps)
    fits = [_fitted(places, needed, most, entry, share, len(steps)) for share in _SHARES]
    found = [fit for fit in fits if fit is not None]
    if not found:
        return None
    chosen, heights = min(found, key=lambda fit: len(fit[0]))
    if not all(
        _above_stairs(places, own, entry, chosen, height)
        for own, height in zip(needed, heights, strict=True)
    ):
        return None
    lines = {}
    for name, (other, _), height in zip(brackets, sides, heights, strict=True):
        low, high = _below_stairs(steps, other, places[chosen]), height.astype(np.float32)
        lines[name] = Bracket(low, high) if named(name).grows else Bracket(-high, -low)
    return places[chosen].astype(np.int32), lines


def drawn(height: Array, height_after: Array, share: Array, stair: Array, xp: Any) -> Array:
    """A line at a share of its way from one knot to the next, or the stair where there is none.

    Args:
        height, height_after: float32 at the knots.
        share: float32, in [0, 1].
        stair: float32, what stands where no line is drawn.
        xp: NumPy, or JAX's.
    """
    small = (xp.abs(height) < SMALLEST) | (xp.abs(height_after) < SMALLEST)
    small = small | (2 * xp.abs(height_after) < xp.abs(height))
    none = small | ~(xp.isfinite(height) & xp.isfinite(height_after))
    first, last = xp.where(none, 0, height), xp.where(none, 0, height_after)
    return xp.where(none, stair, first + (last - first) * share)


def _growing(name: str, bracket: Bracket) -> tuple[np.ndarray, np.ndarray]:
    """The other and the safe side in float64, as functions that grow with the steps."""
    lower, upper = (np.asarray(side, np.float64) for side in bracket)
    return (lower, upper) if named(name).grows else (-upper, -lower)


def _most(
    steps: Int[np.ndarray, " computed"],
    safe: Float[np.ndarray, " computed"],
    places: Int[np.ndarray, " places"],
    stops: tuple[int, ...],
) -> np.ndarray:
    """What a line should stay below: about half a per cent above ``measure``, and each stop."""
    finite = np.where(np.isfinite(safe), safe, 0.0)
    between = np.interp(places, steps, finite)
    after, before = np.searchsorted(steps, places), np.searchsorted(steps, places, "right") - 1
    between = np.where(np.isfinite(safe[after]) & np.isfinite(safe[before]), between, safe[after])
    most = np.maximum(between * np.exp(np.sign(between) * CLOSE), safe[after])
    for stop in stops:
        most = np.where(places <= stop, np.minimum(most, safe[np.searchsorted(steps, stop)]), most)
    return most


def _straight(first: Array, last: Array) -> np.ndarray:
    """Whether :func:`drawn` draws a line between two heights."""
    small = (np.abs(first) < SMALLEST) | (np.abs(last) < SMALLEST)
    small = small | (2 * np.abs(last) < np.abs(first))
    return np.asarray(~small & np.isfinite(first) & np.isfinite(last))


def _fitted(
    places: Int[np.ndarray, " places"],
    needed: Float[np.ndarray, "quantities places"],
    most: Float[np.ndarray, "quantities places"],
    entry: np.ndarray,
    share: float,
    most_knots: int,
) -> tuple[np.ndarray, np.ndarray] | None:
    """Places of knots, each as far from the one before as some line allows, and their heights.

    None where they are not fewer than ``most_knots``.
    """
    chosen, heights = [0], [needed[:, 0]]
    while chosen[-1] + 1 < len(places):
        if len(chosen) + 1 >= most_knots:
            return None
        start, height, window = chosen[-1], heights[-1], 32
        while True:
            inside = slice(start, start + window + 1)
            part = places[inside], needed[:, inside], most[:, inside], bool(entry[start])
            low, high = _heights(*part, height)
            reached = np.flatnonzero(np.all(low <= high, axis=0))
            if len(reached) == 0 or reached[-1] + 1 < low.shape[1] or inside.stop >= len(places):
                break
            window *= 2
        # (the next place is always possible)
        last = int(reached[-1]) if len(reached) else 0
        low, high = (np.asarray(side[:, last], np.float64) for side in (low, high))
        stop = start + 1 + last
        with np.errstate(invalid="ignore"):
            line = np.where(np.isfinite(high - low), low + share * (high - low), low)
        nearest = np.asarray(above(line), np.float64)
        chosen.append(stop)
        heights.append(np.where(low < high, np.minimum(nearest, high), low))
    return np.array(chosen), np.array(heights).T


def _heights(
    places: Int[np.ndarray, " places"],
    needed: Float[np.ndarray, "quantities places"],
    most: Float[np.ndarray, "quantities places"],
    entry: bool,
    height: Float[np.ndarray, " quantities"],
) -> tuple[np.ndarray, np.ndarray]:
    """The range of heights at each later place that a line from the first place can end at.

    Empty (above its own upper end) where there is none.
    """
    run = (places[1:] - places[0]).astype(np.float64)
    height = height[:, None]
    padded = needed + ROUNDING * np.abs(needed)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        steepest, flattest = (most[:, 1:] - height) / run, (padded[:, 1:] - height) / run
        # corners between the first place and each later one
        least = np.maximum.accumulate(np.insert(flattest, 0, 0.0, axis=1), axis=1)[:, :-1]
        greatest = np.minimum.accumulate(np.insert(steepest, 0, np.inf, axis=1), axis=1)[:, :-1]
        low = np.maximum(height + least * run, needed[:, 1:])
        high = np.minimum(height + greatest * run, most[:, 1:])
        sloped = _straight(height, low) & _straight(height, high)
        if not entry:  # the stair that begins there is as high at the next number of steps
            sloped = sloped & (height >= padded[:, :1])
        low, high = np.where(sloped, above(low), np.inf), np.where(sloped, below(high), -np.inf)
        # level lines, which have no rounding, and stairs of the knots
        level = (needed[:, 1:] <= height) & (~sloped | (low > high))
        low, high = np.where(level, height, low), np.where(level, height, high)
        lowest = np.minimum.accumulate(most[:, 1:], axis=1)[:, :1]
        stair = ~_straight(height, needed[:, 1:]) & (needed[:, 1:] <= lowest) & (low > high)
        low, high = np.where(stair, needed[:, 1:], low), np.where(stair, needed[:, 1:], high)
    if run[0] == 1:  # nothing lies between
        low[:, 0], high[:, 0] = needed[:, 1], np.maximum(needed[:, 1], most[:, 1])
    return low, high


def _above_stairs(
    places: Int[np.ndarray, " places"],
    needed: Float[np.ndarray, " places"],
    entry: np.ndarray,
    chosen: Int[np.ndarray, " knots"],
    height: Float[np.ndarray, " knots"],
) -> bool:
    """Whether the safe side, drawn in float32, is nowhere below its stairs."""
    height = height.astype(np.float32).astype(np.float64)
    if np.any(height < needed[chosen]) or np.any(np.diff(height) < 0):
        return False
    knot = np.searchsorted(chosen, np.arange(len(places)), "right") - 1
    # at a knot that is no entry, the stair that begins there goes on to the next number of steps
    place = np.flatnonzero(~np.isin(np.arange(len(places)), chosen) | ~entry)
    place = place[knot[place] + 1 < len(chosen)]
    first = knot[place]
    start, end = places[chosen[first]], places[chosen[first + 1]]
    before, after = height[first], height[first + 1]
    with np.errstate(invalid="ignore"):
        line = before + (after - before) * (places[place] - start) / (end - start)
        sure = needed[place] * (1 + ROUNDING * np.sign(needed[place]) / 2)
    straight = _straight(before, after)
    holds = np.where(straight, line >= sure, after >= needed[place])
    level = (before == after) & (after >= needed[place])
    return bool(np.all(holds | level | (end - start == 1)))


def _below_stairs(
    steps: Int[np.ndarray, " computed"],
    other: Float[np.ndarray, " computed"],
    knots: Int[np.ndarray, " knots"],
) -> np.ndarray:
    """The other side at knots as float32, lowered until lines are nowhere above its stairs."""
    height = other[np.searchsorted(steps, knots, "right") - 1]
    # a stair ends where the next entry begins
    ends = np.append(steps[1:] - 1, steps[-1])
    first = np.searchsorted(knots, ends, "right") - 1
    between = (ends > knots[first]) & (first + 1 < len(knots))
    ends, own, first = ends[between], other[between], first[between]
    start, end = knots[first], knots[first + 1]
    before, after = height[first], height[first + 1]
    with np.errstate(invalid="ignore", divide="ignore"):
        line = before + (after - before) * (ends - start) / (end - start)
        # positive numbers shrink and negative ones grow, all of a line by the same factor
        excess = np.where(line > 0, 1 - own / line, own / line - 1)
    finite = np.isfinite(before) & np.isfinite(after) & (line != 0)
    excess = np.where(finite & (excess > 0), excess, 0.0)
    factor = np.zeros(len(knots))
    np.maximum.at(factor, first, excess)
    np.maximum.at(factor, first + 1, excess)
    size = np.where(np.isfinite(height), np.abs(height), 0.0)
    return below(height - size * (factor + ROUNDING))
