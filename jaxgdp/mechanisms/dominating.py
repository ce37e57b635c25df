"""Which pair, and in which order, belongs to an adjacency."""

from __future__ import annotations

from ..numerics.validation import one_of
from ..options import ADJACENCIES
from . import Composition


def dominating(mechanism: Composition, adjacency: str) -> tuple[Composition, str]:
    """The composition whose pair belongs to the adjacency, and the order or orders in which to take
    it.

    Raises:
        ValueError: the adjacency is unknown, or "replace_one" where no sound pair is known; names
            the mechanism.

    Method: docs/method/adjacency.md#symmetrisation
    """
    if one_of("adjacency", adjacency, ADJACENCIES) == "replace_one":
        return mechanism.replace_one(), "add_remove"
    return mechanism, adjacency
