"""The numbers of an attack alone: for one side of a bracket whose other side has another law.

Lattices are planned for the dominating pair. Where an attack's law lies elsewhere, they resolve
little of it; here it gets lattices of its own, or none at all where it is used once."""

from __future__ import annotations

import dataclasses

import numpy as np

from ...adjacency import Adjacency
from ...bracket import Bracket
from ...mechanisms.shuffled_attack import Slices
from ...numerics.shapes import Array, Bool, Int
from ..certify import closed_forms, finite_laws
from ..certify.curve import Curve
from ..question import NO_EXECUTOR, Question
from . import routes
from .executors import Executor
from .nested import Nested
from .rows import take
from .running_brackets import unknown

# of several uses: what an attack could achieve beyond that is little beside what is not known
_RTOL = 0.02


def answer(groups: tuple, question: Question, executor: Executor | None = None) -> Nested:
    """Certified numbers of a composition of attacks; arguments as for ``nested.answer``.

    Method: docs/method/attack.md#family
    """
    alone = _used_once(groups)
    number = len(alone)
    found = Nested(
        results={q.name: unknown(number) for q, _ in question.asked},
        excess={q.name: np.zeros(number) for q, _ in question.asked},
        sizes=np.zeros(number, np.int64),
        curves=[()] * number if question.keep else [],
        executors=np.full(number, NO_EXECUTOR, object),
    )
    rows = np.flatnonzero(alone)
    if len(rows):
        curves = _finite_curves(groups[0][0], rows, question.adjacency)
        _put(found, rows, closed_forms.read(curves, question.take(rows, number)), curves)
    rows = np.flatnonzero(~alone)
    if len(rows):
        coarse = dataclasses.replace(question.take(rows, number), rtol=max(question.rtol, _RTOL))
        others = routes.answer(take(groups, rows), coarse, executor=executor)
        _put(found, rows, others.results, others.curves)
        found.sizes[rows], found.executors[rows] = others.sizes, others.executors
    return found


def _used_once(groups: tuple) -> Bool[Array, " settings"]:
    """Settings that are a single use of an attack whose law is finite."""
    mechanism, count = groups[0]
    if len(groups) == 1 and isinstance(mechanism, Slices) and count.shape[1] == 1:
        return count[:, 0] == 1.0
    return np.zeros(count.shape[0], bool)


def _finite_curves(
    mechanism: Slices, rows: Int[Array, " rows"], adjacency: Adjacency
) -> list[Curve]:
    columns = (mechanism.loss, mechanism.log_p, mechanism.error)
    loss, log_p, error = (np.asarray(column)[rows, 0] for column in columns)
    curves = (
        finite_laws.attack_curve(x, p, x + p, float(e))
        for x, p, e in zip(loss, log_p, error, strict=True)
    )
    return [closed_forms.oriented(curve, adjacency) for curve in curves]


def _put(
    found: Nested, rows: Int[Array, " rows"], results: dict[str, Bracket], curves: list[Curve]
) -> None:
    for name, bracket in results.items():
        found.results[name].lower[rows], found.results[name].upper[rows] = bracket
    for row, curve in zip(rows, curves, strict=False) if found.curves else ():
        found.curves[row] = (curve,)
