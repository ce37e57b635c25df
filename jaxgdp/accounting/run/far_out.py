"""Numbers that are read off at a threshold so far out that nothing is left there: beyond the
largest loss, or where more steps would have to have the record than ever do."""

from __future__ import annotations

import numpy as np

from ...bracket import LEAST
from ...mechanisms import SubsampledGaussian
from ...mechanisms.composition import Groups
from ...numerics.precision import with_float64
from ...numerics.shapes import Array, Bool
from ..certify import closed_forms, counted_jumps, jump_sides
from ..certify.curve import GaussianParts
from ..question import Question
from .batch import known_threshold
from .executors import EAGER
from .rows import take
from .running_brackets import RunningBrackets

_NOTHING = np.log(LEAST)  # log of a δ that counts as nothing


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

    Method: docs/method/limit.md#counted-jumps
    Method: docs/method/reading.md#largest
    """
    number = len(some)
    known = [known_threshold(quantity, at, number) for quantity, at in question.asked]
    near = [threshold for threshold in known if threshold is not None]
    if question.keep or not near or len(near) < len(known):
        return np.zeros(number, bool)
    threshold, parts = np.min(near, axis=0), EAGER.parts(groups)
    log_delta = np.where(
        _beyond_all(parts, question, threshold), 0.0, _log_delta(groups, threshold)
    )
    told = _beyond_all(parts, question, threshold) | (log_delta <= _NOTHING)
    told &= some & (threshold > 0.0)
    for row in map(int, np.flatnonzero(told)):
        own = question.take(np.array([row]), number)
        curve = jump_sides.far_out(
            float(threshold[row]), float(log_delta[row]), GaussianParts(*take(parts, row))
        )
        curve = closed_forms.oriented(curve, question.adjacency)
        found.add(np.array([row]), closed_forms.read([curve], own))
    return told


def _beyond_all(parts: GaussianParts, question: Question, threshold: Array) -> Array:
    """Whether a threshold is beyond the largest loss of the orders that count."""
    order, beyond = question.adjacency, (parts.largest_plus, parts.largest_minus)
    counted = beyond if order.symmetric else beyond[order.swapped :][:1]
    return np.all([threshold >= largest for largest in counted], axis=0)


def _log_delta(groups: Groups, threshold: Array) -> Array:
    """log of a bound on δ at a threshold, of settings of one sampled Gaussian mechanism; else 0."""
    components = sum(np.sum(np.asarray(count) > 0.0, axis=-1) for _, count in groups)
    found = np.zeros(len(threshold))
    for mechanism, count in groups:
        if not isinstance(mechanism, SubsampledGaussian):
            continue
        rows, place = np.nonzero((count > 0.0) & (np.asarray(components) == 1)[:, None])
        sigma, p = (
            np.broadcast_to(a, count.shape)[rows, place]
            for a in (mechanism.noise_multiplier, mechanism.sampling_prob)
        )
        found[rows] = counted_jumps.log_delta_far_out(sigma, p, count[rows, place], threshold[rows])
    return found
