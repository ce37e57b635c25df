"""The low frequencies of many steps in 32 bits: the part of the work that grows with their number.

Masses and tables are cut into slices on the host (``ozaki``), the device adds up products of whole
numbers, and what the slices leave out is part of the certificate. Everything else is done on the
host in doubles."""

from __future__ import annotations

import functools
from collections.abc import Callable

import jax
import numpy as np

from ...numerics.shapes import Array, Float, Int
from ..certify import frequency_tables, low_frequencies, trig_tables
from ..certify.frequency_tables import Tables
from . import ozaki

LARGEST = 2**21  # entries of a table that is cut into slices; the host does without them in more


class _Table:
    """Constant matrices of one lattice, told from others by being the same object."""

    def __init__(self, tables: Tables):
        self.tables = tables

    def __hash__(self):
        return id(self.tables.offset)

    def __eq__(self, other):
        return self.tables.offset is other.tables.offset


def serves(tables: Tables | None) -> bool:
    """Whether a lattice is left to the device: one of few frequencies, summed without rounding."""
    return (
        tables is not None
        and frequency_tables.entries(tables) <= LARGEST
        and tables.right.size <= ozaki.longest()
    )


@functools.lru_cache(maxsize=8)
def _cut(table: _Table) -> list[tuple[ozaki.Sliced, jax.Array]]:
    """Slices of versine and sine as columns, each divided by the size it has next to the centre:
    distance squared, or distance.
    """
    tables, found = table.tables, []
    distance, number = _distance(tables), tables.node_cos.shape[-1]
    for octaves, power in ((tables.versine, 2), (tables.sine, 1)):
        # (where no point is there is no mass, and the table's sine would only make its column
        # large)
        columns = np.where(
            distance > 0.0,
            np.append(trig_tables.flat(octaves), np.zeros((1, number)), axis=0).T,
            0.0,
        )
        cut = ozaki.sliced(np.ldexp(columns, -power * _exponent(distance)))
        found.append((cut, jax.device_put(cut.whole)))
    return found


def _distance(tables: Tables) -> Float[np.ndarray, " distances"]:
    """From the centre to the points that each row of the tables is for; 0 where there are none."""
    padded = np.append(np.abs(tables.offset), 0.0)
    return np.maximum(padded[tables.right], padded[tables.left])


def _exponent(distance: Float[np.ndarray, " distances"]) -> Int[np.ndarray, " distances"]:
    """Of the power of two next below each distance, 0 for none."""
    return np.frexp(np.maximum(distance, 1.0))[1] - 1


def sums(
    weight: Float[np.ndarray, "... points"],
    tables: Tables,
    compute: Callable[[Array, Array], Array] = ozaki.by_one_device,
) -> low_frequencies.Sums:
    """Σ w·(1 − cos θ) and Σ w·sin θ of every row of masses; ``compute``: ``ozaki.products``.

    Method: docs/method/narrow.md#spectrum
    """
    lead = weight.shape[:-1]
    exponent, found = _exponent(_distance(tables)), []
    for part, (columns, on_device), power in zip(
        low_frequencies.fold(weight.reshape(-1, weight.shape[-1]), tables),
        _cut(_Table(tables)),
        (2, 1),
        strict=True,
    ):
        rows = ozaki.sliced(np.ldexp(part, power * exponent))
        found.append(ozaki.products(rows, columns, on_device, compute))
    (versine, one), (sine, other) = found
    return low_frequencies.Sums(*(a.reshape(*lead, -1) for a in (versine, sine, one + other)))
