"""Numbers that are read off at a threshold so far out that nothing is left there: beyond the
largest loss, where more steps would have to have the record than ever do, or where a sum of losses
is never as large."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ...adjacency import Adjacency
from ...bracket import LEAST, Bracket
from ...mechanisms import SubsampledGaussian
from ...mechanisms.composition import Groups
from ...numerics.normal import log_ndtr
from ...numerics.precision import with_float64
from ...numerics.shapes import Array, Bool, Int
from ..certify import closed_forms, counted_jumps, jump_sides, truncated_moments
from ..certify.curve import GaussianParts
from ..question import Answer, Question
from .batch import known_threshold
from .executors import EAGER
from .rows import take
from .running_brackets import RunningBrackets

_NOTHING = float(np.log(LEAST))  # log of a δ that counts as nothing


@with_float64
def narrow(
    groups: Groups, question: Question, found: RunningBrackets, some: Bool[np.ndarray, " settings"]
) -> Bool[np.ndarray, " settings"]:
    """Narrow the numbers of ``some`` settings of which nothing is left at the threshold that all of
    them are read off at, in place; which settings these are.

    Args:
        groups, question: of the whole batch.
        found: what is known of it.
        some: the settings that are meant.

    Method: docs/method/limit.md#never-as-large
    Method: docs/method/reading.md#largest
    """
    number = len(some)
    known = [known_threshold(quantity, at, number) for quantity, at in question.asked]
    near = [threshold for threshold in known if threshold is not None]
    if question.keep or not near or len(near) < len(known):
        return np.zeros(number, bool)
    threshold, parts = np.min(near, axis=0), EAGER.parts(groups)
    some = some & (threshold > 0.0)
    bounds = _log_deltas(groups, question, threshold, parts, some)
    order = question.adjacency
    counted = bounds if order.symmetric else bounds[order.swapped :][:1]
    told = some & np.all(counted <= _NOTHING, axis=0)
    for row in map(int, np.flatnonzero(told)):
        own = question.take(np.array([row]), number)
        # (what is beyond the largest loss is known by that: its bound is as good as any)
        above, below = (max(float(bound), 2.0 * _NOTHING) for bound in bounds[:, row])
        at = float(threshold[row])
        curve = jump_sides.far_out(at, (above, below), GaussianParts(*take(parts, row)))
        curve = closed_forms.oriented(curve, order)
        found.add(np.array([row]), closed_forms.read([curve], own))
    return told


class OneOrder(NamedTuple):
    """Settings of which one order shows nothing where both count, so that their numbers are those
    of the other one.
    """

    adding: Bool[np.ndarray, " settings"]
    removing: Bool[np.ndarray, " settings"]


@with_float64
def one_order_left(
    groups: Groups, question: Question, some: Bool[np.ndarray, " settings"]
) -> OneOrder:
    """Those of ``some`` settings of which removing a record shows nothing where both orders count,
    and adding one may, or the other way round, far within the largest loss of adding one.

    Args:
        groups, question: of the whole batch.
        some: the settings that are meant.

    Method: docs/method/adjacency.md#symmetrisation
    """
    number, none = len(some), np.zeros(len(some), bool)
    known = [known_threshold(quantity, at, number) for quantity, at in question.asked]
    worse = all(quantity.worse_of_orders for quantity, _ in question.asked)
    near = [threshold for threshold in known if threshold is not None]
    both = question.adjacency is Adjacency.ADD_REMOVE and not question.keep
    if not (both and worse and near and len(near) == len(known)):
        return OneOrder(none, none)
    threshold, parts = np.min(near, axis=0), EAGER.parts(groups)
    # (where adding shows nothing, removing was looked at by ``narrow``)
    some = some & (threshold > 0.0) & (threshold < parts.largest_minus)
    one = replace(question, adjacency=Adjacency.REMOVE)
    plus, minus = _log_deltas(groups, one, threshold, parts, some)
    adding = some & (plus <= _NOTHING) & (minus > _NOTHING)
    return OneOrder(adding, _removing_left(groups, threshold, some & ~adding))


def _removing_left(
    groups: Groups, threshold: Array, some: Bool[np.ndarray, " settings"]
) -> Bool[np.ndarray, " settings"]:
    """Settings of which adding a record shows nothing: sums of losses are never as small."""
    runs, found = _sampled(groups), np.zeros(len(some), bool)
    _, sigma, p, steps = runs
    with np.errstate(all="ignore"):
        deviation = p * np.sqrt(steps * np.expm1(sigma**-2.0))
        far = threshold[runs.row] >= np.sqrt(-2.0 * _NOTHING) * deviation
    for k in np.flatnonzero(some[runs.row] & far):
        row, sigma, p, steps = int(runs.row[k]), *(float(a[k]) for a in runs[1:])
        at = float(threshold[row])
        found[row] = truncated_moments.log_delta_adding(sigma, p, steps, at, _NOTHING) <= _NOTHING
    return found


def with_nothing(answer: Answer) -> Answer:
    """An answer about one order that is one about both, of which the other one shows nothing: as
    much as counts for that.
    """
    results = {
        name: Bracket(bracket.lower, np.maximum(bracket.upper, LEAST))
        for name, bracket in answer.results.items()
    }
    return answer._replace(results=results)


def _log_deltas(
    groups: Groups,
    question: Question,
    threshold: Array,
    parts: GaussianParts,
    some: Bool[np.ndarray, " settings"],
) -> Array:
    """Logs of bounds on δ at a threshold, of both orders, −∞ beyond the largest loss."""
    runs = _sampled(groups)
    by_jumps = np.zeros(len(threshold))
    by_jumps[runs.row] = counted_jumps.log_delta_far_out(
        runs.sigma, runs.p, runs.steps, threshold[runs.row]
    )
    plus = np.where(threshold >= parts.largest_plus, -np.inf, by_jumps)
    minus = np.where(threshold >= parts.largest_minus, -np.inf, by_jumps)
    order = question.adjacency
    if not order.symmetric and order.swapped:
        return np.stack([plus, minus])
    # (one order is worth looking at where the other one shows nothing)
    open_ = some & (plus > _NOTHING) & ((minus <= _NOTHING) | (not order.symmetric))
    for k in np.flatnonzero(open_[runs.row] & _likely(runs, threshold[runs.row])):
        row, sigma, p, steps = int(runs.row[k]), *(float(a[k]) for a in runs[1:])
        at = float(threshold[row])
        bound = truncated_moments.log_delta(sigma, p, steps, at, _NOTHING)
        plus[row] = min(float(plus[row]), bound)
    return np.stack([plus, minus])


class _Runs(NamedTuple):
    """Settings of one sampled Gaussian mechanism, and their σ, p < 1 and T."""

    row: Int[np.ndarray, " runs"]
    sigma: Array
    p: Array
    steps: Array


def _sampled(groups: Groups) -> _Runs:
    components = np.asarray(sum(np.sum(count > 0.0, axis=-1) for _, count in groups))
    alone = (components == 1)[:, None]
    row, fields = [np.zeros(0, int)], [np.zeros((3, 0))]
    for mechanism, count in groups:
        if isinstance(mechanism, SubsampledGaussian):
            p = np.broadcast_to(mechanism.sampling_prob, count.shape)
            sigma = np.broadcast_to(mechanism.noise_multiplier, count.shape)
            sampled = (count > 0.0) & alone & (p < 1.0)
            row.append(np.nonzero(sampled)[0])
            fields.append(np.stack([sigma[sampled], p[sampled], count[sampled]]))
    sigma, p, steps = np.concatenate(fields, axis=-1)
    return _Runs(np.concatenate(row), sigma, p, steps)


def _likely(runs: _Runs, threshold: Array) -> Bool[np.ndarray, " runs"]:
    """Whether no single step is likely to be as large, so that it is worth looking at all of
    them.
    """
    _, sigma, p, steps = runs
    with np.errstate(all="ignore"):
        z = sigma * (np.log(np.expm1(np.minimum(threshold, 700.0)) + p) - np.log(p)) + 0.5 / sigma
        return np.log(p) + np.log(steps) + log_ndtr(1.0 / sigma - z) <= _NOTHING
