"""A number that a kept curve leaves wider than promised, computed for itself: a curve serves every
rate down to 1e-300, and where that takes all the work that a setting may have, single numbers are
narrower alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from .. import options
from ..accounting.question import Question
from ..accounting.run import lower_bound_member as attacks_on
from ..accounting.run import nested
from ..accounting.run.executors import EAGER
from ..bracket import Bracket
from ..mechanisms import Composition
from ..mechanisms.dominating import dominating
from ..numerics.shapes import Array
from ..quantities.base import Quantity

if TYPE_CHECKING:
    from .queries import Queries

FEW = 4  # numbers asked at once, at most, that are worth so much


def narrowed(
    curve: Queries,
    quantity: Quantity,
    argument: Any,
    found: Bracket,
    of_level: Callable[[float], Bracket],
) -> Bracket:
    """Sides read off the curve of a single mechanism, narrowed where they are few and wide.

    Args:
        curve: that was read.
        quantity: what was read.
        argument: what it was read at, or the FPR floor; None for quantities without any.
        found: both sides, not yet compared.
        of_level: what a curve of a coarser accuracy has at most.

    Method: docs/method/reading.md#alone
    """
    if curve.mechanism.shape or np.size(found.lower) > FEW:
        return found
    levels = _levels(curve, quantity, argument, found, of_level)
    if not np.any(np.isfinite(levels)):
        return found
    at = np.broadcast_to(0.0 if argument is None else np.asarray(argument, float), levels.shape)
    low, high = (np.array(side, float) for side in found)
    for place in np.ndindex(levels.shape):
        if np.isfinite(levels[place]):
            own = _kept(
                curve, quantity, argument is not None, float(at[place]), float(levels[place])
            )
            low[place], high[place] = (
                np.fmax(low[place], own.lower),
                np.fmin(high[place], own.upper),
            )
    return Bracket(low[()], high[()])


def _levels(
    curve: Queries,
    quantity: Quantity,
    argument: Any,
    found: Bracket,
    of_level: Callable[[float], Bracket],
) -> Array:
    """The accuracy that each number is asked for alone: the curve's, where the curve leaves it
    wide; else the finest one whose curve does, so that a finer curve stays within a coarser one;
    NaN where none does.
    """
    wide = lambda sides, rtol: np.asarray(quantity.excess(sides, rtol) > 1.0)
    levels = np.where(wide(found, curve.rtol), curve.rtol, np.nan)
    for coarser in reversed(nested.levels(curve.rtol)[:-1]):
        if np.any(np.isnan(levels)):
            levels = np.where(np.isnan(levels) & wide(of_level(coarser), coarser), coarser, levels)
    if quantity.argument == "fpr_floor":
        # (what holds at floor 0 the curve alone knows)
        levels = np.where(np.asarray(argument, float) >= options.DEEPEST, levels, np.nan)
    return levels


def _kept(
    curve: Queries, quantity: Quantity, takes_one: bool, argument: float, rtol: float
) -> Bracket:
    """One number of a curve alone, computed once."""
    key = quantity.name, argument, float(rtol)
    if key not in curve._alone:
        curve._alone[key] = _alone(curve, quantity, argument if takes_one else None, float(rtol))
    return curve._alone[key]


def _alone(curve: Queries, quantity: Quantity, argument: float | None, rtol: float) -> Bracket:
    """One number, as a batch of one setting that is asked for nothing else has it.

    By NumPy, whose bits do not depend on what else the process did.
    """
    paired, order = dominating(curve.mechanism, curve.adjacency)
    floor = curve.fpr_floor
    if quantity.argument == "fpr_floor" and argument is not None:
        floor, argument = argument, None
    deepest = None if quantity.rate is None else quantity.rate(argument)
    question = Question(rtol, floor, order, ((quantity, argument),), deepest)
    found = nested.answer(_one(paired), question, executor=EAGER).results[quantity.name]
    for member in paired.lower_bound_mechanisms() if quantity.monotone else ():
        own = attacks_on.answer(_one(member), question, executor=EAGER).results[quantity.name]
        found = nested.narrowed(quantity, found, own)
    return Bracket(*(float(np.reshape(side, ())) for side in found))


def _one(composition: Composition) -> Any:
    """A batch of one setting."""
    return jax.tree.map(lambda a: np.asarray(a)[None], composition.stacked())
