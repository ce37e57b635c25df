"""A number that a kept curve leaves wider than promised, computed for itself: a curve serves every
rate down to 1e-300, and where that takes all the work that a setting may have, single numbers are
narrower alone."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from .. import options
from ..accounting.question import Question
from ..accounting.run import lower_bound_member as attacks_on
from ..accounting.run import nested
from ..bracket import Bracket
from ..mechanisms import Composition
from ..mechanisms.dominating import dominating
from ..numerics.shapes import Array
from ..quantities.base import Quantity

FEW = 4  # numbers asked at once, at most, that are worth so much


def narrowed(
    curve: Any, quantity: Quantity, argument: Any, found: Bracket, kept: dict[tuple, Bracket]
) -> Bracket:
    """Sides read off the curve of a single mechanism, narrowed where they are few and wide.

    Args:
        curve: whose ``mechanism``, ``adjacency``, ``rtol`` and ``fpr_floor`` count.
        quantity: what was read.
        argument: what it was read at, or the FPR floor; None for quantities without any.
        found: both sides, not yet compared.
        kept: what was computed before, by name and argument; added to.

    Method: docs/method/reading.md#alone
    """
    wide = np.asarray(quantity.excess(found, curve.rtol) > 1.0)
    if quantity.argument == "fpr_floor":
        # (what holds at floor 0 the curve alone knows)
        wide = wide & (np.asarray(argument, float) >= options.DEEPEST)
    if curve.mechanism.shape or wide.size > FEW or not np.any(wide):
        return found
    at = np.broadcast_to(0.0 if argument is None else np.asarray(argument, float), wide.shape)
    sides = [np.array(side, float) for side in found]
    for place in zip(*np.nonzero(wide), strict=True) if wide.ndim else ((),):
        key = quantity.name, float(at[place])
        if key not in kept:
            kept[key] = _alone(curve, quantity, None if argument is None else key[1])
        own = kept[key]
        sides[0][place] = np.fmax(sides[0][place], own.lower)
        sides[1][place] = np.fmin(sides[1][place], own.upper)
    return Bracket(*(side[()] for side in sides))


def _alone(curve: Any, quantity: Quantity, argument: float | None) -> Bracket:
    """One number, as a batch of one setting that is asked for nothing else has it."""
    paired, order = dominating(curve.mechanism, curve.adjacency)
    floor = curve.fpr_floor
    if quantity.argument == "fpr_floor" and argument is not None:
        floor, argument = argument, None
    deepest = None if quantity.rate is None else quantity.rate(argument)
    question = Question(curve.rtol, floor, order, ((quantity, argument),), deepest)
    found = nested.answer(_flat(paired), question).results[quantity.name]
    for member in paired.lower_bound_mechanisms() if quantity.monotone else ():
        own = attacks_on.answer(_flat(member), question).results[quantity.name]
        found = nested.narrowed(quantity, found, own)
    return Bracket(*(float(np.reshape(side, ())) for side in found))


def _flat(composition: Composition) -> Any:
    return jax.tree.map(lambda a: _first(np.asarray(a)), composition.stacked())


def _first(leaf: Array) -> Array:
    return leaf[None]
