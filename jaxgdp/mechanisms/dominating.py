"""Which pair, and in which order, belongs to an adjacency."""

from __future__ import annotations

from ..adjacency import Adjacency
from . import Composition


def dominating(mechanism: Composition, adjacency: str) -> tuple[Composition, Adjacency]:
    """The composition whose pair belongs to the adjacency, and the orders in which to take it.

    Raises:
        ValueError: the adjacency is unknown, or "replace_one" where no sound pair is known; names
            the mechanism.

    Method: docs/method/adjacency.md#symmetrisation
    """
    relation = Adjacency.checked(adjacency)
    return mechanism.replace_one() if relation.replaces else mechanism, relation.order
