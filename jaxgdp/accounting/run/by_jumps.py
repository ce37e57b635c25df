"""Numbers of steps of hardly any noise: by how many of them had the record, or by which."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from ...adjacency import Adjacency
from ...bracket import Bracket
from ...mechanisms import GaussianMixture, SubsampledGaussian
from ...mechanisms.composition import Groups
from ...numerics.precision import with_float64
from ...numerics.shapes import Bool
from ..certify import closed_forms, counted_jumps, jump_sides, located_jumps
from ..certify.counted_jumps import Jumps, SampledRun
from ..certify.curve import Curve, gaussian_parts
from ..question import Question
from ..steer import limit_plan
from . import largest
from .batch import known_threshold
from .rows import take
from .running_brackets import RunningBrackets, narrow_one, worst

_MOST_COUNTED = 160  # outputs that a test wants to be large, at most
# times thresholds of tests are looked for about the best one, each a tenth as far apart
_CLOSER = 3
_JUMP_LOOKS = 3  # at curves by jumps, each with thresholds nearer to those that are asked for
_HELPS = 0.8  # part of a width that a curve has to leave at most, for another one


def jumps_tell(groups: Groups, question: Question) -> Bool[np.ndarray, " settings"]:
    """Settings for which the number of jumps most likely says all that is asked."""
    return _some_jumps(groups, question, limit_plan.jumps_tell)


def jumps_help(groups: Groups, question: Question) -> Bool[np.ndarray, " settings"]:
    """Settings for which the number of jumps says much that costs lattices many passes."""
    return _some_jumps(groups, question, limit_plan.may_have_jumps)


def _some_jumps(
    groups: Groups, question: Question, rule: Callable[[Jumps], bool]
) -> Bool[np.ndarray, " settings"]:
    """Settings of hardly any noise for which a rule holds."""
    number = len(groups[0][1])
    found = np.zeros(number, bool)
    if question.keep:
        return found
    little = np.zeros(number, bool)
    for m, count in groups:
        if isinstance(m, (SubsampledGaussian, GaussianMixture)):
            # (of a mixture the largest shift: smaller ones are looked at below)
            most = np.max(m.shifts, axis=-1) if isinstance(m, GaussianMixture) else 1.0
            noise = np.where(count > 0.0, m.noise_multiplier, np.inf)
            little |= np.any(noise <= limit_plan.HARDLY_ANY_NOISE * most, axis=-1)
    for row in np.flatnonzero(little):
        jumps = jumps_of(groups, int(row))
        found[row] = jumps is not None and rule(jumps)
    return found


@with_float64
def narrow(
    groups: Groups,
    row: int,
    own: Question,
    results: dict[str, Bracket],
    orders: RunningBrackets | None = None,
) -> Curve | None:
    """Narrow the numbers of a setting by the number of its steps with the record, where these are
    few and tell much, in place; the curve of most thresholds, in the order of removing a record.

    Args:
        groups: of the whole batch.
        row: the setting's.
        own: what is asked of it.
        results: of the whole batch.
        orders: of the whole batch, whose brackets of each order are narrowed, too.

    Method: docs/method/limit.md#counted-jumps
    """
    jumps, found = jumps_of(groups, row), None
    if jumps is None or not limit_plan.may_have_jumps(jumps):
        return None
    parts, many = gaussian_parts(take(groups, row)), largest.asked(own)
    with np.errstate(all="ignore"):
        thresholds = _closer(jumps, own, limit_plan.jump_thresholds(jumps))
        for _ in range(_JUMP_LOOKS):
            before, at = worst(results, own, row), _about(thresholds, own, results, row)
            curve = jump_sides.both_sides(jumps, at, _MOST_COUNTED, parts, limit_plan.jump_places)
            found = curve if found is None or many else found
            if orders is not None:
                _narrow_orders(orders, row, curve, own)
            curve = closed_forms.oriented(curve, own.adjacency)
            for name, bracket in closed_forms.read([curve], own).items():
                narrow_one(results[name], row, bracket)
            left = worst(results, own, row)
            if left <= 1.0 or not left <= _HELPS * before:
                break
            if many:
                thresholds = np.concatenate([at, largest.about_largest(own, found)])
            else:
                # (what the others say is known by now)
                thresholds = thresholds[:: _JUMP_LOOKS * 2]
    return found


def narrow_by_located(groups: Groups, row: int, own: Question, results: dict[str, Bracket]) -> None:
    """Narrow the numbers of a setting from below, by tests by which of its steps had the record, of
    which there may be thousands; in place.

    Args:
        groups: of the whole batch.
        row: the setting's.
        own: what is asked of it.
        results: of the whole batch.

    Method: docs/method/limit.md#located-jumps
    """
    jumps = jumps_of(groups, row)
    if jumps is None or not limit_plan.may_be_located(jumps):
        return
    with np.errstate(all="ignore"):
        thresholds = _closer(jumps, own, limit_plan.located_thresholds(jumps))
        curve = jump_sides.located_tests(jumps, thresholds, gaussian_parts(take(groups, row)))
    curve = closed_forms.oriented(curve, own.adjacency)
    for name, bracket in closed_forms.read([curve], own).items():
        narrow_one(results[name], row, bracket)


def _closer(jumps: Jumps, own: Question, thresholds: Any) -> Any:
    """Thresholds, with more of them about where the largest μ is by tests by which steps of the
    nearest run had the record, if that is what is asked.
    """
    found = [thresholds]
    terms = located_jumps.located(jumps.nearest) if largest.asked(own) else None
    for _ in range(_CLOSER):
        if terms is None:
            break
        tests = located_jumps.achieved_tests(terms, found[-1])[0]
        found.append(largest.about(found[-1], largest.values(own, *tests[0])))
        if not len(found[-1]):
            break
    return np.unique(np.concatenate(found))


def _narrow_orders(orders: RunningBrackets, row: int, curve: Curve, own: Question) -> None:
    asked = tuple((q, at) for q, at in own.asked if q.name in orders.by_order)
    for side, order in enumerate((Adjacency.REMOVE, Adjacency.ADD) if asked else ()):
        one = dataclasses.replace(own, asked=asked, adjacency=order)
        read = closed_forms.read([closed_forms.oriented(curve, order)], one)
        orders.add_orders(np.array([row]), read, side)


def _about(thresholds: Any, own: Question, results: dict[str, Bracket], row: int) -> Any:
    """Thresholds, with those that are asked for, and more about an ε as far as it is known."""
    more: list[Any] = [np.zeros(1)]
    for quantity, at in own.asked:
        known = known_threshold(quantity, at, 1)
        if known is not None:
            more.append(known)
        elif quantity.unit == "nats":  # (what is read is a threshold itself)
            more.append(
                limit_plan.about_epsilon(
                    results[quantity.name].lower[row], results[quantity.name].upper[row]
                )
            )
    found = np.concatenate([thresholds, *more])
    return np.unique(found[(found >= 0.0) & np.isfinite(found)])


def jumps_of(groups: Groups, row: int) -> Jumps | None:
    """Bounds by jumps of the one sampled mechanism that a setting consists of, if it does."""
    found: list[Jumps | None] = []
    for stacked, counts in groups:
        for k in np.flatnonzero(counts[row] > 0.0):
            mechanism, uses = take(stacked, (row, k)), float(counts[row, k])
            if isinstance(mechanism, SubsampledGaussian):
                sigma, p = float(mechanism.noise_multiplier), float(mechanism.sampling_prob)
                own = SampledRun(sigma, p, uses)
                found.append(Jumps(own, (own,)) if p > 0.0 else None)
            elif isinstance(mechanism, GaussianMixture):
                sigma = float(mechanism.noise_multiplier)
                law = mechanism.shifts, mechanism.weights
                found.append(counted_jumps.jumps_of_shifts(sigma, *law, uses))
            else:
                return None
    return found[0] if len(found) == 1 else None
