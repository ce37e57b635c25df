"""Rows of trees of arrays: some of them, several trees in one, chunks of one size."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import numpy as np

from ...numerics.shapes import Array, Int


def take(tree: Any, rows: Any) -> Any:
    """Some rows of every leaf."""
    return jax.tree.map(lambda a: np.asarray(a)[rows], tree)


def joined(parts: list) -> Any:
    """Trees of one structure in one, row after row."""
    return jax.tree.map(lambda *a: np.concatenate(a), *parts)


class Chunk(NamedTuple):
    """Some rows that are computed at once.

    Attributes:
        rows: their positions, of which the first ``real`` are wanted; the others fill the chunk.
        real: how many rows are wanted.
    """

    rows: Int[Array, " rows"]
    real: int


def chunks(number: int, largest: int, padded: bool) -> Iterator[Chunk]:
    """Cut rows into chunks, each of the largest size if ``padded`` by repeated rows."""
    rows = np.arange(number)
    for start in range(0, number, largest):
        part = rows[start : start + largest]
        padding = largest - len(part) if padded else 0
        yield Chunk(np.concatenate([part, np.full(padding, part[0], part.dtype)]), len(part))
