"""A list of runs as batches: equal structures side by side, answers in the order of the list."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from ..bracket import Bracket
from ..mechanisms import Composition
from ..numerics.shapes import Array
from ..numerics.validation import broadcast
from .result import Measured


class Batch(NamedTuple):
    """Runs of one structure: the same mechanisms, of other parameters.

    Attributes:
        runs: their places in the list.
        composition: all of them, along the first axis; the others broadcast to ``shape``.
        shape: of every run's numbers.
    """

    runs: tuple[int, ...]
    composition: Composition
    shape: tuple[int, ...]


def batches(runs: Sequence[Composition], **arguments: Array) -> list[Batch]:
    """The batches of a list of runs.

    Args:
        runs: compositions of any structure and shape.
        **arguments: arguments of the quantities, which broadcast with every run.

    Raises:
        ValueError: there is no run, or shapes do not broadcast.
    """
    if not runs:
        raise ValueError("mechanism must be a mechanism or a list of at least one, got none")
    named = {f"run {i}": np.empty(run.shape) for i, run in enumerate(runs)}
    shape = broadcast(**named, **arguments)
    alike: dict[Any, list[int]] = {}
    for place, run in enumerate(runs):
        leaves, structure = jax.tree.flatten(run)
        key = structure, run.shape, tuple(np.shape(leaf) for leaf in leaves)
        alike.setdefault(key, []).append(place)
    return [
        Batch(tuple(places), _side_by_side([runs[i] for i in places], len(shape)), shape)
        for places in alike.values()
    ]


def _side_by_side(runs: list[Composition], axes: int) -> Composition:
    """Runs of one structure along a new first axis, behind which there are ``axes`` others."""

    def stacked(inner: int, *leaves: Array) -> Array:
        own = np.shape(leaves[0])
        missing = axes - (len(own) - inner)
        return np.stack([np.reshape(leaf, (1,) * missing + own) for leaf in leaves])

    mechanisms = []
    for part in zip(*(run.mechanisms for run in runs), strict=True):
        own_axes = [len(inner) for _, inner in part[0].parameter_shapes().values()]
        columns = zip(*(jax.tree.leaves(mechanism) for mechanism in part), strict=True)
        leaves = [stacked(n, *column) for n, column in zip(own_axes, columns, strict=True)]
        mechanisms.append(jax.tree.unflatten(jax.tree.structure(part[0]), leaves))
    counts = (stacked(0, *column) for column in zip(*(run.counts for run in runs), strict=True))
    return Composition(tuple(mechanisms), tuple(counts))


def joined(batches: Sequence[Batch], found: Sequence[Measured]) -> Measured:
    """Numbers of all runs along a new first axis, in the order of the list."""
    number = sum(len(batch.runs) for batch in batches)

    def along(parts: list[Any]) -> Array:
        whole = np.empty((number, *batches[0].shape), np.asarray(parts[0]).dtype)
        for batch, part in zip(batches, parts, strict=True):
            whole[list(batch.runs)] = part
        return whole

    first = found[0]
    return dataclasses.replace(
        first,
        brackets={
            name: Bracket(
                *(along(list(side)) for side in zip(*(f[name] for f in found), strict=True))
            )
            for name in first
        },
        status={name: along([f.status[name] for f in found]) for name in first},
        lattice_size=along([f.lattice_size for f in found]),
        executor=along([np.asarray(f.executor, object) for f in found]),
    )
