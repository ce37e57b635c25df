"""Lattices about a threshold alone: an ε that other means have found, where a first pass over a
whole curve shows next to nothing and does not find the place either; and one that is known, where a
whole curve by lattices would not pay."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...bracket import Bracket
from ...mechanisms.composition import Groups
from ...numerics.precision import with_float64
from ...numerics.shapes import Array, Bool
from ..question import Question
from .batch import known_threshold
from .engine import Engine
from .executors import Executor
from .rows import take
from .running_brackets import RunningBrackets

# lower over upper side from which on a place is known, and the part of what lattices left open that
# other means have to leave at most, for a place that is new to lattices
_KNOWN, _NEW = 0.7, 0.5


def _places(
    question: Question,
    results: Mapping[str, Bracket],
    some: Bool[np.ndarray, " settings"],
    found_only: bool,
) -> dict[str, Array]:
    """Where numbers of some settings that are wider than asked are read off: middles of brackets on
    an ε, and thresholds that are known; 0 for whole curves, NaN elsewhere.
    """
    found = {}
    for quantity, at in question.asked:
        sides, known = results[quantity.name], known_threshold(quantity, at, len(some))
        wide = some & (quantity.excess(sides, question.rtol) > 1.0)
        if known is not None and not found_only:
            found[quantity.name] = np.where(wide, known, np.nan)
        elif quantity.unit == "nats" and quantity.locate is not None:
            near = (sides.lower > 0.0) & (sides.lower > _KNOWN * sides.upper)
            middle = 0.5 * (sides.lower + sides.upper)
            found[quantity.name] = np.where(wide & near, middle, np.nan)
        elif not found_only:
            found[quantity.name] = np.where(wide, 0.0, np.nan)
    return found


def served(question: Question) -> bool:
    """Whether every number asked for is read off at one threshold that may be known."""
    return all(
        quantity.threshold is not None or (quantity.unit == "nats" and quantity.locate is not None)
        for quantity, _ in question.asked
    )


def new_places(
    question: Question, results: Mapping[str, Bracket], before: Mapping[str, Bracket], number: int
) -> Bool[np.ndarray, " settings"]:
    """Settings, of so many, with a bracket on an ε that is much narrower than it was before."""
    found = np.zeros(number, bool)
    with np.errstate(invalid="ignore"):
        for quantity, _ in question.asked:
            if quantity.unit == "nats":
                now, then = results[quantity.name], before[quantity.name]
                found |= now.upper - now.lower <= _NEW * (then.upper - then.lower)
    return found


@with_float64
def narrow(
    groups: Groups,
    question: Question,
    results: dict[str, Bracket],
    some: Bool[np.ndarray, " settings"],
    max_size: int,
    executor: Executor | None,
    *,
    found_only: bool = False,
) -> None:
    """Narrow numbers of some settings that are read off at one threshold by lattices about it, in
    place.

    Args:
        groups, question: of the whole batch.
        results: what is known of it.
        some: the settings for which such a place is new to lattices.
        max_size: largest dense lattice.
        executor: who computes, or None.
        found_only: not about thresholds that were known beforehand.

    Method: docs/method/limit.md#long-runs
    """
    with np.errstate(invalid="ignore", over="ignore"):
        places = _places(question, results, some, found_only)
    if not places:
        return
    rows = np.flatnonzero(np.any(np.isfinite(list(places.values())), axis=0))
    if not len(rows) or question.keep or not all(m.tight for m, _ in groups):
        return
    part = question.take(rows, len(some))
    known = RunningBrackets(len(rows), part)
    known.add(np.arange(len(rows)), take(results, rows))
    places = {name: at[rows] for name, at in places.items()}
    one = Engine(
        take(groups, rows), part, lambda done: None, max_size, executor, known, places=places
    )
    for name, sides in one.answer().results.items():
        known_sides = results[name]
        known_sides.lower[rows] = np.fmax(known_sides.lower[rows], sides.lower)
        known_sides.upper[rows] = np.fmin(known_sides.upper[rows], sides.upper)
