"""Answers for mixtures of shifts of which some are far: see ``accounting.certify.far_shifts``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from ...adjacency import Adjacency
from ...bracket import Bracket
from ...mechanisms import GaussianMixture
from ...mechanisms.composition import Composition, Groups
from ...numerics.precision import with_float64
from ...numerics.shapes import Array, Bool
from ..certify import closed_forms, far_shifts
from ..certify.curve import Curve, gaussian_parts
from ..certify.far_shifts.law import atoms
from ..question import Answer, Question
from ..steer import far_plan, limit_plan
from .batch import known_threshold
from .rows import take
from .running_brackets import RunningBrackets, worst

Accountant = Callable[[Groups, Question], Answer]
_LOOKS = 3  # each with thresholds nearer to those that are asked for
_HELPS = 0.8  # part of a width that a look has to leave at most, for another one
_MOST_THRESHOLDS = 400


def served(groups: Groups, question: Question) -> Bool[np.ndarray, " settings"]:
    """Settings of a batch that consist of a mixture of which some shifts are far.

    Method: docs/method/limit.md#far-shifts
    """
    found = np.zeros(len(groups[0][1]), bool)
    if question.keep:
        return found
    components = sum(np.sum(np.asarray(count) > 0.0, axis=-1) for _, count in groups)
    for mechanism, count in groups:
        if isinstance(mechanism, GaussianMixture):
            # (of a few shifts, of which the largest may be far from others)
            most = np.max(np.asarray(mechanism.shifts), axis=-1) / mechanism.noise_multiplier
            found |= np.any((count > 1.0) & (most >= far_shifts.GAP), axis=-1)
    found &= np.asarray(components) == 1
    for row in np.flatnonzero(found):
        found[row] = far_plan.serves(_far(groups, int(row)))
    return found


def _mixture(groups: Groups, row: int) -> tuple[GaussianMixture, float] | None:
    """The one mixture that a setting consists of, and its uses, if it does."""
    for stacked, counts in groups:
        for k in np.flatnonzero(counts[row] > 0.0):
            if isinstance(stacked, GaussianMixture):
                return take(stacked, (row, k)), float(counts[row, k])
    return None


def _far(groups: Groups, row: int) -> far_shifts.FarShifts | None:
    one = _mixture(groups, row)
    if one is None:
        return None
    law = np.asarray(one[0].shifts), np.asarray(one[0].weights)
    return far_shifts.split(float(one[0].noise_multiplier), *law, one[1])


def _near(
    groups: Groups, row: int, far: far_shifts.FarShifts, question: Question, accountant: Accountant
) -> Curve | None:
    """The curve of as many uses with the near shifts alone; None where all of them are 0."""
    one = _mixture(groups, row)
    if one is None or far.near[-1] == 0.0:
        return None
    mixture, uses = one
    order = np.argsort(mixture.shifts, kind="stable")
    shifts, weights = np.asarray(mixture.shifts)[order], np.asarray(mixture.weights)[order]
    keep = np.flatnonzero(weights > 0.0)[: len(far.near)]
    weights = weights[keep] / weights[keep].sum()
    near = Composition((GaussianMixture(mixture.noise_multiplier, shifts[keep], weights),), (uses,))
    flat = jax.tree.map(lambda a: a[None], near.stacked())
    floor = float(np.max(np.asarray(question.fpr_floor)))
    asked = Question(question.rtol, floor, Adjacency.ADD_REMOVE, (), None, keep=True)
    return accountant(flat, asked).curves[0]


@with_float64
def narrow(
    groups: Groups, row: int, question: Question, found: RunningBrackets, accountant: Accountant
) -> None:
    """Narrow the numbers of a setting in place, by which steps had a shift that is far.

    Args:
        groups: of the whole batch.
        row: the setting's.
        question: about it.
        found: of the whole batch.
        accountant: answers the question for a curve of its near shifts.

    Method: docs/method/limit.md#far-shifts
    """
    far = _far(groups, row)
    if far is None:
        return
    near = _near(groups, row, far, question, accountant)
    parts = gaussian_parts(take(groups, row))
    with np.errstate(all="ignore"):
        draws = atoms(far)
        at = far_plan.thresholds(far, draws, near)
        for _ in range(_LOOKS):
            before = worst(found.results, question, row)
            if before <= 1.0:
                return
            more = _asked(question, found.results, row)
            at = far_plan.about(at[0], more), far_plan.about(at[1], more)
            curve = far_shifts.both_sides(far, draws, near, at, parts)
            _add(found, row, curve, question)
            if not worst(found.results, question, row) <= _HELPS * before:
                return


def _add(found: RunningBrackets, row: int, curve: Curve, question: Question) -> None:
    rows = np.array([row])
    asked = tuple((q, at) for q, at in question.asked if q.name in found.by_order)
    for side, order in enumerate((Adjacency.REMOVE, Adjacency.ADD) if asked else ()):
        one = Question(question.rtol, question.fpr_floor, order, asked, question.deepest)
        read = closed_forms.read([closed_forms.oriented(curve, order)], one)
        found.add_orders(rows, read, side)
    oriented = closed_forms.oriented(curve, question.adjacency)
    found.add(rows, closed_forms.read([oriented], question))


def _asked(question: Question, results: dict[str, Bracket], row: int) -> Array:
    """Thresholds that are asked for, and more about an ε as far as it is known."""
    more: list[Any] = [np.zeros(1)]
    for quantity, at in question.asked:
        known = known_threshold(quantity, at, 1)
        if known is not None:
            more.append(known)
        elif quantity.unit == "nats":
            sides = results[quantity.name]
            more.append(limit_plan.about_epsilon(sides.lower[row], sides.upper[row]))
    return np.concatenate(more)
