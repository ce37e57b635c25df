"""Neighbouring relations of data sets, and the orders in which each takes a mechanism's pair."""

from __future__ import annotations

from enum import StrEnum

from .vocabulary import did_you_mean


class Adjacency(StrEnum):
    """A neighbouring relation; equal to its name, which is what users pass.

    Method: docs/method/adjacency.md#symmetrisation

    Example:
        >>> Adjacency.checked("add").swapped, Adjacency.checked("add").symmetric
        (True, False)
        >>> Adjacency.checked("none")
        Traceback (most recent call last):
        ValueError: adjacency must be one of 'add_remove', 'add', ..., got 'none'
    """

    ADD_REMOVE = "add_remove"
    ADD = "add"
    REMOVE = "remove"
    REPLACE_ONE = "replace_one"

    __repr__ = str.__repr__  # shown as what users pass

    @classmethod
    def checked(cls, value: str, name: str = "adjacency") -> Adjacency:
        """The relation of that name.

        Args:
            value: name of a relation, or a relation.
            name: of the argument, for the error.

        Raises:
            ValueError: there is no such relation.
        """
        if value not in tuple(cls):
            known = ", ".join(repr(each.value) for each in cls)
            close = did_you_mean(str(value), map(str, cls))
            raise ValueError(f"{name} must be one of {known}, got {value!r}{close}")
        return cls(value)

    @property
    def symmetric(self) -> bool:
        """Whether the relation covers both orders of the pair."""
        return self in (Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE)

    @property
    def swapped(self) -> bool:
        """Whether the relation takes the pair only in the order Q against P."""
        return self is Adjacency.ADD

    @property
    def replaces(self) -> bool:
        """Whether the mechanism's pair of replacing a record is meant."""
        return self is Adjacency.REPLACE_ONE

    @property
    def order(self) -> Adjacency:
        """The relation that takes a known pair in the same order or orders."""
        return Adjacency.ADD_REMOVE if self.replaces else self

    @property
    def meaning(self) -> str:
        """The relation of data sets that differ by a record, in words for reports."""
        return _MEANINGS[self]

    @property
    def order_meaning(self) -> str:
        """The relation of a pair whose neighbours are described elsewhere, in words for reports."""
        if self.symmetric:
            return (
                "both orders: neither of the two neighbouring data sets, as described, may be told"
                " from the other"
            )
        doubted = "first" if self.swapped else "second"
        return (
            f"one order only: the attacker doubts the {doubted} of the two neighbouring data sets"
        )


_MEANINGS = {
    Adjacency.ADD_REMOVE: (
        "one record added or removed: neither of “it is there” and “it is not” may be told from the"
        " other"
    ),
    Adjacency.ADD: "one record added: the attacker doubts a data set without it",
    Adjacency.REMOVE: "one record removed: the attacker doubts a data set with it",
    Adjacency.REPLACE_ONE: (
        "one record replaced by another: the number of records stays the same and may be known"
    ),
}
