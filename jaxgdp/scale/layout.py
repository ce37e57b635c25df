"""How a grid is cut into chunks."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

Region: TypeAlias = tuple[slice, ...]  # a part of a grid

# of a chunk, about: NumPy computes one in two seconds, and little is lost with one
SETTINGS = 512


def chunk_shape(shape: tuple[int, ...], settings: int) -> tuple[int, ...]:
    """The longest chunk along the last axes that has at most so many settings.

    Example:
        >>> chunk_shape((64, 100, 3), 1024)
        (3, 100, 3)
    """
    chunk: list[int] = []
    for length in reversed(shape):
        chunk.append(max(1, min(length, settings // math.prod(chunk))))
    return tuple(reversed(chunk))


class Layout(NamedTuple):
    """A grid and its chunks, which are numbered in C order.

    Attributes:
        shape: of the grid.
        chunk: of one chunk; those at the far ends may hold less.
    """

    shape: tuple[int, ...]
    chunk: tuple[int, ...]

    @property
    def counts(self) -> tuple[int, ...]:
        """Number of chunks along each axis."""
        return tuple(math.ceil(n / c) for n, c in zip(self.shape, self.chunk, strict=True))

    @property
    def number(self) -> int:
        """Number of chunks."""
        return math.prod(self.counts)

    def place(self, chunk: int) -> tuple[int, ...]:
        """Position of a chunk among the chunks.

        Example:
            >>> Layout((5, 4), (2, 4)).place(2)
            (2, 0)
        """
        return tuple(itertools.islice(self._digits(chunk), len(self.shape)))[::-1]

    def _digits(self, chunk: int) -> Iterator[int]:
        for count in reversed(self.counts):
            chunk, digit = divmod(chunk, count)
            yield digit

    def region(self, chunk: int) -> Region:
        """The part of the grid that a chunk covers.

        Example:
            >>> Layout((5, 4), (2, 4)).region(2)
            (slice(4, 5, None), slice(0, 4, None))
        """
        sizes = zip(self.place(chunk), self.chunk, self.shape, strict=True)
        return tuple(slice(i * c, min((i + 1) * c, n)) for i, c, n in sizes)

    def settings(self, chunk: int) -> int:
        """Number of settings of a chunk."""
        return math.prod(part.stop - part.start for part in self.region(chunk))
