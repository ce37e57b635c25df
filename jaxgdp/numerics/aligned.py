"""Arrays on the host that XLA takes as they are: it copies those at other addresses with each call
of a program on a CPU.
"""

from __future__ import annotations

import numpy as np

from .shapes import Array

_ALIGNED = 64  # bytes


def zeros(shape: tuple[int, ...]) -> np.ndarray:
    """Zeros of a shape, at an address that XLA does not copy from."""
    number, each = int(np.prod(shape, dtype=np.int64)), np.dtype(float).itemsize
    room = np.zeros(number + _ALIGNED // each)
    first = -room.ctypes.data % _ALIGNED // each
    return room[first : first + number].reshape(shape)


def aligned(a: Array) -> np.ndarray:
    """A copy of an array, row after row, at such an address."""
    found = zeros(a.shape)
    found[...] = a
    return found
