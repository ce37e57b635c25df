"""Brackets that only ever narrow: whatever is asked at a finer accuracy lies within what was
answered at a coarser one.

Two certified brackets of one number overlap, but neither need contain the other. So accuracies are
levels (1e-3, 1e-4, …), and the answer at one level is what all levels down to it have in common.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np

from ...bracket import Bracket
from ..question import Question
from . import engine
from .executors import Executor

_COARSEST = 3  # decimal places of the first level; a coarser one would hardly be cheaper


def levels(rtol: float) -> list[float]:
    """Accuracies from the coarsest to the first that is as fine as ``rtol``."""
    finest = max(_COARSEST, int(np.ceil(-np.log10(rtol) - 1e-9)))
    return [10.0**-places for places in range(_COARSEST, finest + 1)]


class Nested(NamedTuple):
    """Results of one batch.

    Attributes:
        results: name → Bracket of arrays of shape (settings,): both sides as found, not compared
            with each other.
        excess: name → width over the width promised, shape (settings,).
        sizes: lattice points used per setting.
        curves: for every setting a tuple of curves, the finest last, when curves were kept.
    """

    results: dict
    excess: dict
    sizes: Any
    curves: list


def unknown(number: int) -> Bracket:
    """Brackets of which nothing is known yet."""
    return Bracket(np.full(number, -np.inf), np.full(number, np.inf))


def narrowed(record, bracket: Bracket, achieved: Bracket) -> Bracket:
    """A bracket of a mechanism, narrowed by that of one which can be made of its outputs: one side
    of it, for what is monotone.
    """
    if not record.monotone:
        return bracket
    if record.grows:
        return Bracket(np.maximum(bracket.lower, achieved.lower), bracket.upper)
    return Bracket(bracket.lower, np.minimum(bracket.upper, achieved.upper))


def answer(groups, question: Question, progress=None, executor: Executor | None = None) -> Nested:
    """``engine.answer`` at every level down to that of ``question.rtol``, and what they have in
    common.

    A setting takes part in a level if some quantity is not as narrow yet.

    Method: docs/method/index.md#steering
    """
    number = groups[0][1].shape[0]
    results = {q.name: unknown(number) for q, _ in question.asked}
    sizes = np.zeros(number, np.int64)
    curves: list = [()] * number if question.keep else []
    steps, finished, told = levels(question.rtol), progress or (lambda done: None), 0

    def wider(level):
        """Which settings have some quantity that is not as narrow as that."""
        return np.max([q.excess(results[q.name], level) for q, _ in question.asked], axis=0) > 1.0

    for level in steps:
        rows, last = np.flatnonzero(wider(level)), level == steps[-1]
        if len(rows):
            part = question if len(rows) == number else question.take(rows, number)
            mine = groups if len(rows) == number else engine.take(groups, rows)
            part = dataclasses.replace(part, rtol=level)
            found = engine.answer(mine, part, progress if last else None, executor=executor)
            for name, bracket in found.results.items():
                known = results[name]
                known.lower[rows] = np.maximum(known.lower[rows], bracket.lower)
                known.upper[rows] = np.minimum(known.upper[rows], bracket.upper)
            sizes[rows] = found.sizes
            for i, row in enumerate(rows):
                if question.keep:
                    curves[row] += (found.curves[i],)
        if not last:
            # (those that need no look at the last level)
            done = number - int(np.count_nonzero(wider(steps[-1])))
            finished(done - told)
            told = done
    return Nested(
        results,
        {q.name: q.excess(results[q.name], question.rtol) for q, _ in question.asked},
        sizes,
        curves,
    )
