"""The points of one step, and sines of their angles at each frequency, for lattices of all lengths.

Points are spaced 1 next to the centre and 2, 4, … further out. An octave of them on N lattice
points has the angles of the octave before it on N/2, so lattices whose lengths are powers of two
share all their sines but those of a few octaves."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from ...numerics.aligned import aligned
from ...numerics.recent import Shared
from ...numerics.shapes import Array, Float, Int

# a table of all distances, octave after octave: arrays (slabs, rows, row, K/slabs), on a device
# as rows apart where there is one slab
Octaves: TypeAlias = tuple[Array | tuple[Array, ...], ...]

LONGEST = 64  # numbers in a row of a sum, which bounds its rounding
_SLAB = 1024  # frequencies summed at once, so that they stay in cache
_SHARED = Shared()


def points(base: int, octaves: int) -> Int[np.ndarray, " distances"]:
    """Distances 1 … 2·base, then ``base`` more in each octave at spacing 2, 4, …"""
    parts = [np.arange(1, 2 * base + 1)]
    for octave in range(1, octaves + 1):
        parts.append(parts[-1][-1] + 2**octave * np.arange(1, base + 1))
    return np.concatenate(parts)


def reach(base: int, octaves: int) -> int:
    """Largest distance of ``points``."""
    return base * 2 ** (octaves + 1)


def row(base: int) -> int:
    """Points of an octave in a row of a sum: ``base``, halved until it is short enough."""
    while base > LONGEST and base % 2 == 0:
        base //= 2
    return base


def at_points(size: int, frequencies: int, base: int, octaves: int) -> tuple[Octaves, Octaves]:
    """sin θ and 1 − cos θ of θ = 2π·distance·k/N for k < K at ``points(base, octaves)``.

    Returns:
        Two tuples of arrays (slabs, rows, row, K/slabs), one for each ``base`` of the distances.

    Method: docs/method/frequencies.md#sparse
    """
    near, far = np.arange(1, base + 1), np.arange(base + 1, 2 * base + 1)
    # (next to the centre there is no octave before the first one)
    parts = [(near, size), *((far, max(size >> octave, 1)) for octave in range(octaves + 1))]
    found = [_octave(distance, turn, frequencies) for distance, turn in parts]
    sine, versine = zip(*found, strict=True)
    return sine, versine


def flat(octaves: Octaves) -> Float[np.ndarray, "distances frequencies"]:
    """One of the tuples of :func:`at_points` as one table of all distances and frequencies."""
    return np.concatenate(
        [
            np.moveaxis(a, 0, 2).reshape(-1, a.shape[0] * a.shape[-1])
            for a in map(np.asarray, octaves)
        ]
    )


def _octave(
    distance: Int[np.ndarray, " distances"], size: int, frequencies: int
) -> tuple[np.ndarray, np.ndarray]:
    key = (int(distance[0]), len(distance), size, frequencies)
    return _SHARED.pair(key, lambda: _table(distance, size, frequencies))


def _table(
    distance: Int[np.ndarray, " distances"], size: int, frequencies: int
) -> tuple[np.ndarray, np.ndarray]:
    """sin θ and 1 − cos θ of θ = 2π·distance·k/N, k < K; whole turns are taken off exactly."""
    turn = np.multiply.outer(distance.astype(int), np.arange(frequencies)) & (size - 1)
    known = size <= turn.size  # fewer angles than entries: each is worked out once
    angle = np.arange(size) if known else turn
    half = np.where(angle > size // 2, angle - size, angle) * (np.pi / size)
    sine = np.sin(half)
    shape = (-1, row(len(distance)), max(1, frequencies // _SLAB), min(frequencies, _SLAB))

    def in_slabs(a: np.ndarray) -> np.ndarray:
        a = a[turn] if known else a
        return aligned(np.moveaxis(a.reshape(shape), 2, 0))

    return in_slabs(2.0 * sine * np.cos(half)), in_slabs(2.0 * sine * sine)


def at_nodes(
    size: int, frequencies: int, node: Float[Array, " nodes"]
) -> tuple[Float[np.ndarray, "nodes frequencies"], Float[np.ndarray, "nodes frequencies"]]:
    """cos and sin of 2π·k·node/N, shape (nodes, K): the same arrays for the same nodes."""

    def both():
        angle = 2.0 * np.pi / size * node[:, None] * np.arange(frequencies)
        return aligned(np.cos(angle)), aligned(np.sin(angle))

    return _SHARED.pair(("nodes", size, frequencies, node.tobytes()), both)
