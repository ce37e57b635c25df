"""Brackets that only ever narrow: whatever is asked at a finer accuracy lies within what was answered at a coarser one.

Two certified brackets of one number overlap, but neither need contain the other. So accuracies are levels (1e-3, 1e-4, …), and the
answer at one level is what all levels down to it have in common.
"""

from __future__ import annotations

import dataclasses

import jax
import numpy as np

from ..bracket import Bracket
from . import engine
from .engine import Answer
from .question import Question

_COARSEST = 3  # decimal places of the first level; a coarser one would hardly be cheaper


def levels(rtol: float) -> list[float]:
    """Accuracies from the coarsest to the first that is as fine as ``rtol``."""
    finest = max(_COARSEST, int(np.ceil(-np.log10(rtol) - 1e-9)))
    return [10.0**-places for places in range(_COARSEST, finest + 1)]


def answer(groups, question: Question, progress=None) -> Answer:
    """``engine.answer`` at every level down to that of ``question.rtol``, and what they have in common.

    A setting takes part in a level if it is not as narrow yet. ``curves`` holds a tuple for every setting, the finest curve
    last; ``status`` tells whether ``question.rtol`` itself was reached.
    """
    number = groups[0][1].shape[0]
    results: dict[str, Bracket] = {}
    sizes, lattices = np.zeros(number, np.int64), [None] * number
    curves: list = [()] * number if question.keep else []
    rows, finished = np.arange(number), progress or (lambda done: None)
    for level in levels(question.rtol):
        last = level <= question.rtol * (1.0 + 1e-9)
        part = question if len(rows) == number else question.take(rows, number)
        mine = groups if len(rows) == number else jax.tree.map(lambda a: np.asarray(a)[rows], groups)  # noqa: B023
        found = engine.answer(mine, dataclasses.replace(part, rtol=level), progress if last else None)
        for name, bracket in found.results.items():
            known = results.setdefault(name, Bracket(np.full(number, -np.inf), np.full(number, np.inf)))
            low, high = np.maximum(known.lower[rows], bracket.lower), np.minimum(known.upper[rows], bracket.upper)
            # (sides that meet may cross by a rounding)
            known.lower[rows], known.upper[rows] = np.minimum(low, high), high
        sizes[rows] = found.sizes
        for i, row in enumerate(rows):
            lattices[row] = found.lattices[i]
            if question.keep:
                curves[row] += (found.curves[i],)
        still = rows[engine.relative_width(results["mu"])[rows] > level / 10.0]
        if not last:
            finished(len(rows) - len(still))
        rows = still
        if not len(rows):
            break
    reached = engine.relative_width(results["mu"]) <= question.rtol
    return Answer(results, np.where(reached, engine.OK, engine.WIDE), sizes, lattices, curves)
