"""Certified numbers of settings whose curve is known in closed form."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from ....adjacency import Adjacency
from ....bracket import Bracket
from ....numerics.precision import with_float64
from ....numerics.shapes import Array
from ....pairs.known_curves import KnownCurve, OrientedCurve
from ....pairs.known_curves.base import stacked
from ...question import NO_EXECUTOR, Answer, Kind, Question, Rates
from ..curve import Curve
from ..finite_laws import pair_curve
from ..reading import numbers
from .find import Found
from .vertices import known_vertices

_MOST_NUMBERS = 2**15  # of curves that are read at once, at some hundred places each


def oriented(curve: Curve, adjacency: Adjacency) -> Curve:
    """The curve in the order that an adjacency takes the pair in."""
    if not adjacency.swapped:
        return curve
    return curve.swapped()._replace(known=curve.known)


@with_float64
def answer(found: Sequence[Found], question: Question) -> Answer:
    """Certified numbers of settings whose curve is known.

    Args:
        found: what is known of each setting.
        question: about these.

    Method: docs/method/known.md#readings
    """
    number = len(found)
    results = _read_known(found, question)
    missing = tuple(
        (quantity, at)
        for quantity, at in question.asked
        if quantity.name not in results or _open(results[quantity.name])
    )
    curves: list[Curve] = []
    if missing or question.keep:
        curves = [_curve(each, question) for each in found]
        rest = dataclasses.replace(question, asked=missing)
        for turned in _orders(curves, question.adjacency) if missing else ():
            for name, bracket in read(turned, rest).items():
                _narrow(results, name, bracket)
    none = np.zeros(number, np.int64)
    executors = np.full(number, NO_EXECUTOR, object)
    return Answer(results, none, [None] * number, curves if question.keep else [], executors)


def _orders(curves: list[Curve], adjacency: Adjacency) -> list[list[Curve]]:
    """The curves, and where both orders count alike those of the swapped pairs, too: lines of a
    reading are those of one order's losses.
    """
    if not adjacency.symmetric:
        return [curves]
    return [curves, [oriented(curve, Adjacency.ADD) for curve in curves]]


def _narrow(results: dict[str, Bracket], name: str, found: Bracket) -> None:
    """Take the narrower side of what is known and of what was found."""
    known = results.get(name, Bracket(np.array(-np.inf), np.array(np.inf)))
    results[name] = Bracket(np.fmax(known.lower, found.lower), np.fmin(known.upper, found.upper))


def _open(bracket: Bracket) -> bool:
    """Whether some setting has no closed form of a number."""
    return bool(np.any(np.isneginf(bracket.lower) | np.isnan(bracket.lower)))


def _curve(found: Found, question: Question) -> Curve:
    if found.tables is not None:
        return oriented(pair_curve(found.tables), question.adjacency)
    assert found.known is not None  # one of both is
    curve = known_vertices(found.known, found.parts, question.rtol)
    known = OrientedCurve(found.known, question.adjacency.swapped)
    return oriented(curve, question.adjacency)._replace(known=known)


def _read_known(found: Sequence[Found], question: Question) -> dict[str, Bracket]:
    """Brackets of what has a closed form; −∞ and ∞ where it has none."""
    rates, number = question.rates(len(found)), len(found)
    results = {}
    batches = _batches(found, question.adjacency.swapped)
    symmetric = question.adjacency.symmetric
    for (quantity, _), query in zip(question.asked, rates.queries, strict=True):
        if quantity.read_known is None:
            continue
        sides = Bracket(np.full(number, -np.inf), np.full(number, np.inf))
        for rows, known in batches:
            with np.errstate(all="ignore"):
                bracket = quantity.read_known(known, query[rows], symmetric=symmetric)
            if bracket is not None:
                sides.lower[rows], sides.upper[rows] = bracket
        results[quantity.name] = sides
    return results


def _batches(found: Sequence[Found], swapped: bool) -> list[tuple[Array, OrientedCurve]]:
    """Settings whose curves are of one class, as one curve of a batch; others one by one."""
    alike: dict[object, list[int]] = {}
    for row, each in enumerate(found):
        if each.known is not None:
            key = _kind(each.known) if each.known.batched else row
            alike.setdefault(key, []).append(row)
    batches = []
    for together in alike.values():
        curves: list[Any] = [found[row].known for row in together]
        most = max(_MOST_NUMBERS // curves[0].size, 1)
        for first in range(0, len(curves), most):
            some = curves[first : first + most]
            one = stacked(some) if some[0].batched else some[0]
            rows = np.array(together[first : first + most])
            batches.append((rows, OrientedCurve(one, swapped)))
    return batches


def _kind(known: KnownCurve) -> tuple[object, ...]:
    """What curves have in common that fit into one batch: classes and shapes of their fields."""
    values = vars(known).values()
    inner = (_kind(v) if isinstance(v, KnownCurve) else np.shape(v) for v in values)
    return (type(known), *inner)


@with_float64
def read(curves: Sequence[Curve], question: Question) -> dict[str, Bracket]:
    """Both sides of every quantity of a question, of one curve for each setting.

    Args:
        curves: in the order of the question's adjacency.
        question: as for the engine, with one row for each curve, or single numbers.

    Returns:
        name → Bracket of arrays of shape (curves,).
    """
    kind, rates = question.kind, question.rates(len(curves))
    found = [_numbers(curve, rates, i, kind) for i, curve in enumerate(curves)]
    columns = {quantity.name: [row[quantity.name] for row in found] for quantity in kind.quantities}
    return {
        name: Bracket(
            *(np.array([getattr(both, side) for both in column], float) for side in Bracket._fields)
        )
        for name, column in columns.items()
    }


def _numbers(curve: Curve, rates: Rates, row: int, kind: Kind) -> dict[str, Bracket]:
    with np.errstate(all="ignore"):
        return numbers(curve._replace(known=None), jax.tree.map(lambda a: a[row], rates), kind)
