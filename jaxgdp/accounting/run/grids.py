"""The lattice of a half-curve, and its pieces, as stages take them."""

from __future__ import annotations

from typing import Any

import jax

from ..certify.inverse_transform import BY_FFT
from ..certify.lattice import Sparse
from ..experimental.matrix_transform import BY_MATRICES


def grid_of(shape: Any, tables: Any, product: bool = False) -> Any:
    """A ``Dense`` lattice as it is, or a ``Sparse`` one of so many vertices with its tables."""
    transform = BY_MATRICES if product else BY_FFT
    return shape if tables is None else Sparse(tables, shape, transform)


def in_pieces(halves: Any, pieces: int) -> Any:
    """Halves with an axis of pieces of their own."""
    return jax.tree.map(lambda a: a.reshape((-1, pieces) + a.shape[1:]), halves)
