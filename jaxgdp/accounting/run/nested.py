"""Brackets that only narrow: a finer accuracy's answer lies within that of a coarser one.

Two certified brackets of one number overlap, but neither need contain the other. So accuracies are
levels (1e-3, 1e-4, …), and the answer at one level is what all levels down to it have in common.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...bracket import Bracket
from ...numerics.shapes import Array, Bool, Float, Int
from ..certify.curve import Curve
from ..question import NO_EXECUTOR, Answer, Question
from . import routes
from .executors import Executor
from .rows import take
from .running_brackets import unknown

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
        excess: name → width over the width promised.
        sizes: lattice points used per setting.
        curves: for every setting a tuple of curves, the finest last, when curves were kept.
        executors: as in ``Answer``, of the finest level that each setting took part in.
        of_levels: the level that each of ``curves`` was composed for.
    """

    results: dict[str, Bracket]
    excess: dict[str, Float[Array, " settings"]]
    sizes: Int[Array, " settings"]
    curves: list[tuple[Curve, ...]]
    executors: Array
    of_levels: Sequence[tuple[float, ...]] = ()


def narrowed(quantity: Any, bracket: Bracket, member: Bracket) -> Bracket:
    """A bracket of a mechanism, narrowed by that of one which can be made of its outputs: one side
    of it, for what is monotone.
    """
    if not quantity.monotone:
        return bracket
    if quantity.grows:
        return Bracket(np.maximum(bracket.lower, member.lower), bracket.upper)
    return Bracket(bracket.lower, np.minimum(bracket.upper, member.upper))


class _Levels:
    """What all levels so far have in common."""

    def __init__(self, number: int, question: Question):
        self.question = question
        self.results = {q.name: unknown(number) for q, _ in question.asked}
        self.sizes = np.zeros(number, np.int64)
        self.curves: list[tuple[Curve, ...]] = [()] * number if question.keep else []
        self.executors = np.full(number, NO_EXECUTOR, object)
        self.of_levels: list[tuple[float, ...]] = [()] * len(self.curves)

    def excess(self, rtol: float) -> dict[str, Float[Array, " settings"]]:
        """Width over the width promised at an accuracy, by quantity."""
        return {q.name: q.excess(self.results[q.name], rtol) for q, _ in self.question.asked}

    def wider(self, rtol: float) -> Bool[Array, " settings"]:
        """Which settings have some quantity that is not as narrow as that."""
        return np.max(list(self.excess(rtol).values()), axis=0) > 1.0

    def add(self, rows: Int[Array, " rows"], level: float, found: Answer) -> None:
        """Narrow some settings by the answer of a level."""
        for name, bracket in found.results.items():
            known = self.results[name]
            known.lower[rows] = np.maximum(known.lower[rows], bracket.lower)
            known.upper[rows] = np.minimum(known.upper[rows], bracket.upper)
        self.sizes[rows] = found.sizes
        self.executors[rows] = found.executors
        for row, curve in zip(rows, found.curves, strict=False):
            self.curves[row] += (curve,)
            self.of_levels[row] += (level,)


def answer(
    groups: tuple,
    question: Question,
    progress: Callable[[int], Any] | None = None,
    executor: Executor | None = None,
) -> Nested:
    """``routes.answer`` at every level down to ``question.rtol``, and what all have in common.

    A setting takes part in a level if some quantity is not as narrow yet.

    Method: docs/method/index.md#steering
    """
    number = groups[0][1].shape[0]
    found, steps = _Levels(number, question), levels(question.rtol)
    report, reported = progress or (lambda done: None), 0
    for level in steps:
        rows, last = np.flatnonzero(found.wider(level)), level == steps[-1]
        if len(rows):
            part = question if len(rows) == number else question.take(rows, number)
            mine = groups if len(rows) == number else take(groups, rows)
            part = dataclasses.replace(part, rtol=level)
            told = progress if last else None
            found.add(rows, level, routes.answer(mine, part, told, executor=executor))
        if not last:
            # (those that need no pass at the last level)
            done = number - int(np.count_nonzero(found.wider(steps[-1])))
            report(done - reported)
            reported = done
    return Nested(
        found.results,
        found.excess(question.rtol),
        found.sizes,
        found.curves,
        found.executors,
        found.of_levels,
    )
