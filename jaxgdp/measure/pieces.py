"""Who computes: this process, or the workers of a client, piece by piece."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple, cast

import numpy as np

from ..accounting.question import Question
from ..accounting.run import routes
from ..accounting.run.blocks import in_blocks
from ..accounting.run.executors import Executor, by_name
from ..accounting.run.lower_bound_member import answer as lower_bound_answer
from ..accounting.run.nested import answer as nested_answer
from ..accounting.run.rows import take
from ..bracket import Bracket
from ..numerics.optional import Client
from ..numerics.shapes import Array
from ..quantities import registry

# pieces that a batch is cut into for the workers of a client, unless they would be too small
_PIECES = 64
_SMALLEST = 16  # settings of a piece

PLAIN, NESTED, LOWER_BOUND = "plain", "nested", "lower bound"


class Found(NamedTuple):
    """Sides of every quantity of a flat batch, the lattice points used and who computed."""

    results: dict[str, Bracket]
    sizes: Array
    executors: Array


class Piece(NamedTuple):
    """Settings that are computed together, wherever that is; in pieces that travel, the question
    holds names in place of quantities.
    """

    how: str  # PLAIN, NESTED or LOWER_BOUND
    groups: tuple[tuple[Any, Any], ...]
    question: Question
    executor: str | None


Count = Callable[[int], None]


def answer(
    piece: Piece, client: Client | str | None = None, progress: Count | None = None
) -> Found:
    """Numbers of a flat batch, computed here or by the workers of a client."""
    if client is None:
        return _here(piece, progress)
    from ..scale.cluster import each

    number, asked = piece.groups[0][1].shape[0], piece.question.asked
    results = {quantity.name: Bracket(np.empty(number), np.empty(number)) for quantity, _ in asked}
    sizes, executors = np.empty(number, np.int64), np.empty(number, object)
    for start, found in each(client, _there, _cut(piece, number)):
        rows = slice(start, start + len(found.sizes))
        sizes[rows], executors[rows] = found.sizes, found.executors
        for name, bracket in found.results.items():
            results[name].lower[rows], results[name].upper[rows] = bracket
        if progress is not None:
            progress(len(found.sizes))
    return Found(results, sizes, executors)


def _cut(piece: Piece, number: int) -> list[tuple[int, Piece]]:
    """Pieces for workers, each with the number of its first setting."""
    from ..scale.layout import SETTINGS

    size = int(np.clip(-(-number // _PIECES), _SMALLEST, SETTINGS))
    pieces = []
    for start in range(0, number, size):
        rows = np.arange(start, min(start + size, number))
        part = piece.question.take(rows, number)
        # quantities travel by name: what is pickled by value would be a new program for every piece
        asked = tuple((quantity.name, value) for quantity, value in part.asked)
        question = dataclasses.replace(part, asked=asked)
        taken = piece._replace(groups=take(piece.groups, rows), question=question)
        pieces.append((start, taken))
    return pieces


def _there(numbered: tuple[int, Piece]) -> tuple[int, Found]:
    """The task of a worker."""
    start, piece = numbered
    asked = tuple((registry.named(cast(str, name)), value) for name, value in piece.question.asked)
    question = dataclasses.replace(piece.question, asked=asked)
    return start, _here(piece._replace(question=question))


def _here(piece: Piece, progress: Count | None = None) -> Found:
    executor, number = by_name(piece.executor), piece.groups[0][1].shape[0]
    found = []
    for rows in in_blocks(piece.groups, executor):
        part = piece._replace(
            groups=take(piece.groups, rows), question=piece.question.take(rows, number)
        )
        found.append(_block(part if len(rows) < number else piece, executor, progress))
    return found[0] if len(found) == 1 else _joined(found)


def _block(piece: Piece, executor: Executor | None, progress: Count | None) -> Found:
    if piece.how == LOWER_BOUND:
        found = lower_bound_answer(piece.groups, piece.question, executor=executor)
    else:
        compute = nested_answer if piece.how == NESTED else routes.answer
        found = compute(piece.groups, piece.question, progress=progress, executor=executor)
    return Found(found.results, found.sizes, found.executors)


def _joined(found: list[Found]) -> Found:
    """What was found for the blocks of a batch, in one."""
    results = {
        name: Bracket(*map(np.concatenate, zip(*(f.results[name] for f in found), strict=True)))
        for name in found[0].results
    }
    sizes, executors = (np.concatenate(x) for x in zip(*(f[1:] for f in found), strict=True))
    return Found(results, sizes, executors)
