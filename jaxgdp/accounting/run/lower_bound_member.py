"""What an attack achieves, looked at on its own: for one side of a bracket whose other side is of
another law.

Lattices are planned for the dominating pair. Where an attack's law lies elsewhere, they see little
of it; here it gets lattices of its own, or none at all where it is used once (``single``)."""

from __future__ import annotations

import dataclasses

import numpy as np

from ...mechanisms.shuffled_attack import Slices
from ..certify import finite_laws
from ..question import Question
from . import engine, nested
from .executors import Executor
from .nested import Nested

# of several uses: what an attack could achieve beyond that is little beside what is not known
_RTOL = 0.02


def answer(groups, question: Question, executor: Executor | None = None) -> Nested:
    """Certified numbers of a composition of attacks; arguments as for ``nested.answer``.

    Method: docs/method/attack.md#family
    """
    number = groups[0][1].shape[0]
    alone = np.zeros(number, bool)
    mechanism, count = groups[0]
    if len(groups) == 1 and isinstance(mechanism, Slices) and count.shape[1] == 1:
        alone = count[:, 0] == 1.0
    results = {q.name: nested.unknown(number) for q, _ in question.asked}
    sizes, curves = np.zeros(number, np.int64), [()] * number if question.keep else []
    rows = np.flatnonzero(alone)
    if len(rows):
        loss, log_p, error = (
            np.asarray(a)[rows, 0] for a in (mechanism.loss, mechanism.log_p, mechanism.error)
        )
        found = [
            finite_laws.attack_curve(x, p, x + p, float(e))
            for x, p, e in zip(loss, log_p, error, strict=True)
        ]
        found = [finite_laws.oriented(curve, question.adjacency) for curve in found]
        _put(results, rows, finite_laws.read(found, question.take(rows, number)))
        for row, curve in zip(rows, found, strict=True) if question.keep else ():
            curves[row] = (curve,)
    rows = np.flatnonzero(~alone)
    if len(rows):
        coarse = dataclasses.replace(question.take(rows, number), rtol=max(question.rtol, _RTOL))
        found = engine.answer(engine.take(groups, rows), coarse, executor=executor)
        _put(results, rows, found.results)
        sizes[rows] = found.sizes
        for i, row in enumerate(rows) if question.keep else ():
            curves[row] = (found.curves[i],)
    return Nested(results, {name: np.zeros(number) for name in results}, sizes, curves)


def _put(results, rows, found) -> None:
    for name, bracket in found.items():
        results[name].lower[rows], results[name].upper[rows] = bracket
