"""Answers where single steps with the record are told from others: see
``accounting.certify.far_shifts``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from ...adjacency import Adjacency
from ...bracket import Bracket
from ...mechanisms import GaussianMixture, SubsampledGaussian
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
_LEAST_NOISE = 1e-150
_RATES = {"fpr", "delta", "approximation"}  # arguments that are rates


class _Split(NamedTuple):
    """A setting, of which one mechanism has far shifts.

    Attributes:
        far: its far shifts.
        near: the mechanism of its near ones alone; None where these are 0.
        others: all other mechanisms of the setting and their uses.
    """

    far: far_shifts.FarShifts
    near: GaussianMixture | None
    others: list[tuple[Any, float]]


def served(groups: Groups, question: Question) -> Bool[np.ndarray, " settings"]:
    """Settings of a batch with a mechanism of which some shifts are far: a mixture alone, or
    anything beside others.

    Method: docs/method/limit.md#far-shifts
    Method: docs/method/limit.md#far-beside-others
    """
    number = len(groups[0][1])
    components = np.asarray(sum(np.sum(np.asarray(count) > 0.0, -1) for _, count in groups))
    found, alone = np.zeros(number, bool), np.zeros(number, bool)
    for mechanism, count in groups:
        far = (count > 0.0) & (_ratios(mechanism) >= far_shifts.GAP)
        found |= np.any(far, axis=-1)
        if isinstance(mechanism, GaussianMixture):
            alone |= np.any(far & (count > 1.0), axis=-1)
    found &= (components > 1) | alone | question.keep
    # (of less noise an FPR that is 0 as a double need not be 0)
    for mechanism, count in groups:
        for name in ("noise_multiplier", "scale", "sigma"):
            noise = getattr(mechanism, name, None)
            if noise is not None:
                found &= ~np.any((count > 0.0) & (np.asarray(noise) < _LEAST_NOISE), axis=-1)
    for row in np.flatnonzero(found):
        split = _split(groups, int(row))
        # (whole curves by lattices are not known to be wide)
        found[row] = (
            split is not None
            and far_plan.serves(split.far, len(split.others) > 0)
            and (not question.keep or far_plan.alone_tells(split.far))
        )
    return found


def hopeless(groups: Groups, row: int) -> bool:
    """Whether lattices say less of a setting that is served, whatever else is composed."""
    split = _split(groups, row)
    return split is not None and bool(split.others) and far_plan.alone_tells(split.far)


def _ratios(mechanism: Any) -> Array:
    """The largest shift of each in deviations of the noise; 0 where there are no shifts."""
    if isinstance(mechanism, GaussianMixture):
        return np.max(np.asarray(mechanism.shifts), axis=-1) / mechanism.noise_multiplier
    if isinstance(mechanism, SubsampledGaussian):
        p, sigma = mechanism.sampling_prob, np.asarray(mechanism.noise_multiplier)
        return np.where((p > 0.0) & (p < 1.0), 1.0 / sigma, 0.0)
    return np.zeros(1)


def _split(groups: Groups, row: int) -> _Split | None:
    """The setting, split at the mechanism with the farthest shift; None where it has none."""
    each = [
        (take(stacked, (row, k)), float(counts[row, k]))
        for stacked, counts in groups
        for k in np.flatnonzero(counts[row] > 0.0)
    ]
    ratios = [float(np.max(_ratios(mechanism))) for mechanism, _ in each]
    place = int(np.argmax(ratios))
    if not ratios[place] >= far_shifts.GAP:
        return None
    mechanism, uses = each.pop(place)
    sigma = float(mechanism.noise_multiplier)
    if isinstance(mechanism, SubsampledGaussian):
        p = float(mechanism.sampling_prob)
        shifts, weights = np.array([0.0, 1.0]), np.array([1.0 - p, p])
    else:
        shifts, weights = np.asarray(mechanism.shifts), np.asarray(mechanism.weights)
    far = far_shifts.split(sigma, shifts, weights, uses)
    if far is None:
        return None
    if far.near[-1] == 0.0:
        return _Split(far, None, each)
    order = np.argsort(shifts, kind="stable")
    shifts, weights = shifts[order], weights[order]
    keep = np.flatnonzero(weights > 0.0)[: len(far.near)]
    weights = weights[keep] / weights[keep].sum()
    return _Split(far, GaussianMixture(sigma, shifts[keep], weights), each)


def _curve(runs: list[tuple[Any, float]], question: Question, accountant: Accountant) -> Any:
    """The curve of some mechanisms and their uses; None of nothing."""
    if not runs:
        return None
    flat = jax.tree.map(lambda a: a[None], Composition(*zip(*runs, strict=True)).stacked())
    floor = float(np.min(np.asarray(question.fpr_floor)))
    deepest = None if question.deepest is None else float(np.min(np.asarray(question.deepest)))
    asked = Question(question.rtol, floor, Adjacency.ADD_REMOVE, (), deepest, keep=True)
    return accountant(flat, asked).curves[0]


@with_float64
def narrow(
    groups: Groups, row: int, question: Question, found: RunningBrackets, accountant: Accountant
) -> None:
    """Narrow the numbers of a setting in place, or find its curve, by which steps had a shift that
    is far.

    Args:
        groups: of the whole batch.
        row: the setting's.
        question: about it.
        found: of the whole batch.
        accountant: answers the question for a curve of its near shifts, and of what is composed
            with them.

    Method: docs/method/limit.md#far-shifts
    Method: docs/method/limit.md#far-beside-others
    """
    split = _split(groups, row)
    if split is None:
        return
    far, parts = split.far, gaussian_parts(take(groups, row))
    of_others = _curve(split.others, question, accountant)
    beside = [] if split.near is None else [(split.near, far.steps)]
    near = _curve(beside + split.others, question, accountant) if beside else of_others
    with np.errstate(all="ignore"):
        draws = atoms(far)
        at = far_plan.thresholds(far, draws, near, _rates(question))
        laws = None
        if of_others is not None:
            laws = far_shifts.others(of_others, *far_plan.of_others(of_others))
        if question.keep:
            places = far_plan.places(draws, at[0], np.zeros(0), laws)
            curve = far_shifts.both_sides(far, draws, near, laws, at, places, parts)
            found.curves[row] = closed_forms.oriented(curve, question.adjacency)
            return
        for _ in range(_LOOKS):
            before = worst(found.results, question, row)
            if before <= 1.0:
                return
            more = _asked(question, found.results, row)
            at = far_plan.about(at[0], more), far_plan.about(at[1], more)
            places = far_plan.places(draws, at[0], more, laws)
            curve = far_shifts.both_sides(far, draws, near, laws, at, places, parts)
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


def _rates(question: Question) -> tuple[float, ...]:
    """The rates that quantities are asked at."""
    asked = [(q.argument, at) for q, at in question.asked]
    rates = [at for argument, at in asked if argument in _RATES and at is not None]
    return tuple(float(np.ravel(at)[0]) for at in rates)


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
