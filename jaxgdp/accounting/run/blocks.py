"""A large batch in blocks, one after the other: the first settings are answered, and counted, long
before the last ones, and what has been compiled meanwhile computes the next block.

The settings of a block depend on their number and the executor that was named, if one was, so that
a named executor gives a batch the same bits whatever its process did before."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...numerics.shapes import Array
from . import devices
from .background import expecting
from .batch import halves_compiled
from .executors import COMPILED, EAGER, Executor
from .rows import take

# settings of NumPy's first block, which take some tenths of a second
_SMALL = 128
# … and of any other one: what many settings have in common is then done for more of them at once,
# and both compiled programs and the few tasks of a second pass lose a little with each block
_LARGE = 2048


def in_blocks(groups: tuple, executor: Executor | None) -> Iterator[Array]:
    """The rows of each block of a flat batch; those after it are expected while it is computed.

    Args:
        groups: ``Composition.stacked()`` with leaves of shape (settings, components).
        executor: the one that was named, or None.
    """
    number, first, blocks = groups[0][1].shape[0], 0, 0
    while first < number:
        size = min(_size(groups, executor, blocks), number - first)
        if number - first - size < size // 2:
            size = number - first  # (no small rest)
        with expecting(number - first - size):
            yield np.arange(first, first + size)
        first, blocks = first + size, blocks + 1


def _size(groups: tuple, executor: Executor | None, before: int) -> int:
    """Settings of a block after so many others."""
    small = executor is EAGER
    if executor is None:
        small = not halves_compiled(take(groups, slice(0, 1)))
    if small and before == 0:
        return _SMALL
    return _LARGE * (devices.chunks_of_each() if executor is COMPILED else 1)
