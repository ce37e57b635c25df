"""What a grid costs, estimated before anything is computed."""

from __future__ import annotations

import math
from typing import NamedTuple

from ..progress import duration

A_SECOND = 150.0  # settings, of two cores: what large sweeps of DP-SGD were measured at
_LONG = 86_400.0  # seconds; longer work needs a yes
_MOST = 8 * 2**30  # bytes of numbers that are kept in memory


class Cost(NamedTuple):
    """The cost of a grid.

    Attributes:
        settings: number of them.
        seconds: about, on two cores.
        bytes: of all its numbers, on disk or in memory.
    """

    settings: int
    seconds: float
    bytes: float

    @classmethod
    def of(cls, shape: tuple[int, ...], quantities: int) -> Cost:
        """The cost of a grid of that shape, with so many quantities.

        Example:
            >>> print(Cost.of((12, 100, 5), quantities=2))
            6,000 settings: about 40 s on two cores, 0.5 MB
        """
        settings = math.prod(shape)
        return cls(settings, settings / A_SECOND, 8.0 * settings * (4 * quantities + 2))

    def __str__(self) -> str:
        return (
            f"{self.settings:,} settings: about {duration(self.seconds)} on two cores, {self.size}"
        )

    @property
    def size(self) -> str:
        """Bytes in words."""
        for unit, power in (("TB", 12), ("GB", 9), ("MB", 6)):
            if self.bytes >= 10.0**power or unit == "MB":
                return f"{self.bytes / 10.0**power:.1f} {unit}"
        return ""

    def check(self, *, stored: bool, yes: bool) -> None:
        """Refuse what does not fit into memory, or takes more than a day and nobody said yes.

        Raises:
            ValueError: says what it would cost and what to do.
        """
        if not stored and self.bytes > _MOST:
            raise ValueError(
                f"the grid has {self}, which does not fit into memory: give store=, a folder to"
                " write to"
            )
        if self.seconds > _LONG and not yes:
            raise ValueError(
                f"the grid has {self}: give yes=True (--yes) to begin all the same, or fewer values"
            )
