"""Answers for runs in which a record is hardly ever sampled, from the law given that it is: see
``accounting.certify.seldom_sampled``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...bracket import Bracket
from ...mechanisms import SubsampledGaussian
from ...mechanisms.composition import Groups
from ...numerics.precision import with_float64
from ...numerics.shapes import Bool, Int
from ..certify import closed_forms
from ..certify.curve import Curve, gaussian_parts
from ..question import NO_EXECUTOR, Answer, Question
from .rows import take
from .running_brackets import unknown

if TYPE_CHECKING:
    from ..certify import seldom_sampled

# expected number of times, rate and noise up to which lattices show less or take longer, as a rule
_HARDLY_EVER, _RATE, _NOISE = 0.05, 1e-6, 0.25


def seldom(groups: Groups) -> Bool[np.ndarray, " settings"]:
    """Settings of a batch that are answered so first: others only where lattices leave a number
    wide.

    Method: docs/method/seldom.md#seldom-which
    """
    number = len(groups[0][1])
    components = sum(np.sum(np.asarray(count) > 0.0, axis=-1) for _, count in groups)
    found = np.zeros(number, bool)
    for mechanism, count in groups:
        if not isinstance(mechanism, SubsampledGaussian):
            continue
        p, sigma = np.asarray(mechanism.sampling_prob), np.asarray(mechanism.noise_multiplier)
        rare = (p * count <= _HARDLY_EVER) | (p <= _RATE) | (sigma <= _NOISE)
        found |= np.any((count > 1.0) & rare, axis=-1)
    found &= np.asarray(components) == 1
    for row in np.flatnonzero(found):
        found[row] = _run(groups, int(row)) is not None
    return found


def _run(groups: Groups, row: int) -> seldom_sampled.Run | None:
    """The one sampled Gaussian mechanism that a setting consists of, if its record is seldom
    sampled."""
    # (loaded where it is used: with the mechanism that it shares sums with)
    from ..certify import seldom_sampled

    found: list[seldom_sampled.Run] = []
    for stacked, counts in groups:
        for k in np.flatnonzero(counts[row] > 0.0):
            uses = float(counts[row, k])
            if not isinstance(stacked, SubsampledGaussian) or not uses.is_integer():
                return None
            mechanism = take(stacked, (row, k))
            sigma, p = float(mechanism.noise_multiplier), float(mechanism.sampling_prob)
            found.append(seldom_sampled.Run(sigma, p, int(uses)))
    return found[0] if len(found) == 1 and seldom_sampled.serves(found[0]) else None


def _curve(groups: Groups, row: int, question: Question) -> Curve | None:
    from ..certify import seldom_sampled

    run = _run(groups, row)
    if run is None:
        return None
    parts = gaussian_parts(take(groups, row))
    with np.errstate(all="ignore"):
        curve = seldom_sampled.both_sides(run, parts, question.rtol)
        return closed_forms.oriented(curve, question.adjacency)


@with_float64
def answer(groups: Groups, rows: Int[np.ndarray, " rows"], question: Question) -> Answer:
    """Certified numbers of settings of a batch in which the record is seldom sampled.

    Args:
        groups: as for the engine, uses as they were stated.
        rows: of the settings, of those that are ``seldom``.
        question: about these.

    Method: docs/method/seldom.md#seldom-share
    """
    number = len(rows)
    results = {quantity.name: unknown(number) for quantity, _ in question.asked}
    curves: list[Any] = [None] * number
    for i, row in enumerate(rows):
        curves[i] = _curve(groups, int(row), question)
        _narrow(results, i, curves[i], question.take(np.array([i]), number))
    none, executors = np.zeros(number, np.int64), np.full(number, NO_EXECUTOR, object)
    return Answer(results, none, [None] * number, curves if question.keep else [], executors)


@with_float64
def narrow(groups: Groups, row: int, own: Question, results: dict[str, Bracket]) -> None:
    """Narrow the numbers of a setting in place, where its record is seldom sampled.

    Args:
        groups: of the whole batch.
        row: the setting's.
        own: what is asked of it.
        results: of the whole batch.

    Method: docs/method/seldom.md#seldom-share
    """
    curve = _curve(groups, row, own)
    if curve is not None:
        _narrow(results, row, curve, own)


def _narrow(results: dict[str, Bracket], row: int, curve: Curve, own: Question) -> None:
    with np.errstate(all="ignore"):
        for name, bracket in closed_forms.read([curve], own).items():
            known = results[name]
            known.lower[row] = np.fmax(known.lower[row], bracket.lower[0])
            known.upper[row] = np.fmin(known.upper[row], bracket.upper[0])
