"""In which steps of a run a record takes part: what a matrix mechanism is accounted for.

Each class says how the steps of one record are chosen. ``jaxgdp.MatrixMechanism`` takes one of
them, or its text, such as ``"CyclicPoisson(sampling_prob=0.1, cycle=8)"``, as files have it."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .numerics.pytree import put, pytree
from .numerics.validation import checked, probability

__all__ = [
    "BMinSep",
    "BallsInBins",
    "CyclicPoisson",
    "MinSeparation",
    "Participation",
    "RandomShift",
    "Single",
]


class Participation:
    """How the steps of one record are chosen."""

    def __str__(self) -> str:
        fields = dataclasses.fields(self)  # type: ignore[arg-type]
        own = ", ".join(f"{f.name}={getattr(self, f.name):.17g}" for f in fields)
        return f"{type(self).__name__}({own})"

    def words(self) -> str:
        """How records get into the steps, in words for reports."""
        raise NotImplementedError


def _whole(name: str, value: Any) -> float:
    found = checked(name, value, "one whole number >= 1", lambda a: (a >= 1.0) & (a == np.floor(a)))
    return _one(name, found)


def _rate(name: str, value: Any) -> float:
    return _one(name, probability(name, value))


def _one(name: str, value: Any) -> float:
    if np.ndim(value) != 0:
        raise ValueError(f"{name} must be one number, got shape {np.shape(value)}")
    return float(value)


def _checked(instance: object, **checks: Callable[[str, Any], float]) -> None:
    put(instance, **{name: check(name, getattr(instance, name)) for name, check in checks.items()})


@pytree
@dataclass(frozen=True)
class Single(Participation):
    """A record takes part in one step at most, whichever: a single pass, nothing random.

    Example:
        >>> print(Single())
        Single()
    """

    def words(self) -> str:
        return "none: a record takes part in one step, in a fixed order"


@pytree
@dataclass(frozen=True)
class MinSeparation(Participation):
    """Any steps that are at least so far apart, at most so many of them; nothing random.

    Args:
        separation: b, least distance of two steps of one record; a whole number ≥ 1.
        max_participations: k, most steps of one record; a whole number ≥ 1.

    Example:
        >>> print(MinSeparation(separation=100, max_participations=4))
        MinSeparation(separation=100, max_participations=4)
    """

    separation: Any
    max_participations: Any

    def __post_init__(self) -> None:
        _checked(self, separation=_whole, max_participations=_whole)

    def words(self) -> str:
        return (
            f"none: a record takes part in at most {self.max_participations:g} steps, at least"
            f" {self.separation:g} apart, in a fixed order"
        )


@pytree
@dataclass(frozen=True)
class CyclicPoisson(Participation):
    """The records are split into ``cycle`` fixed groups that take turns; each record of the group
    whose turn it is enters the batch with probability p on its own.

    Args:
        sampling_prob: p in (0, 1], within its group.
        cycle: number of groups, a whole number ≥ 1.

    Example:
        >>> print(CyclicPoisson(sampling_prob=0.125, cycle=8))
        CyclicPoisson(sampling_prob=0.125, cycle=8)
    """

    sampling_prob: Any
    cycle: Any

    def __post_init__(self) -> None:
        _checked(self, sampling_prob=_rate, cycle=_whole)

    def words(self) -> str:
        return (
            f"cyclic Poisson sampling: {self.cycle:g} fixed groups take turns, and each record of a"
            f" group enters its batch with probability {self.sampling_prob:.6g}, independently of"
            " all others"
        )


@pytree
@dataclass(frozen=True)
class BallsInBins(Participation):
    """Every record goes into one of ``cycle`` batches at random, on its own, and the batches are
    used in turn, over and over.

    Args:
        cycle: number of batches, a whole number ≥ 1.

    Example:
        >>> print(BallsInBins(cycle=10))
        BallsInBins(cycle=10)
    """

    cycle: Any

    def __post_init__(self) -> None:
        _checked(self, cycle=_whole)

    def words(self) -> str:
        return (
            f"balls in bins: each record in one of {self.cycle:g} batches, chosen at random once,"
            " independently of all others; the batches are used in turn"
        )


@pytree
@dataclass(frozen=True)
class RandomShift(BallsInBins):
    """Every record takes part in every ``cycle``-th step, from a first one that is drawn at random
    for this record alone.

    For one record that is ``BallsInBins``. One shift that all records share is something else:
    whoever knows the other records reads it off, and nothing random is left.

    Args:
        cycle: number of first steps, a whole number ≥ 1.

    Example:
        >>> print(RandomShift(cycle=10))
        RandomShift(cycle=10)
    """

    def words(self) -> str:
        return (
            f"random shifts: each record in every {self.cycle:g}th step, from a first one drawn at"
            " random for that record alone"
        )


@pytree
@dataclass(frozen=True)
class BMinSep(Participation):
    """In every step each record that was in none of the last b − 1 batches enters with probability
    p on its own (arXiv 2602.09338).

    Args:
        separation: b, a whole number ≥ 1.
        sampling_prob: p in (0, 1].

    Example:
        >>> print(BMinSep(separation=8, sampling_prob=0.1))
        BMinSep(separation=8, sampling_prob=0.10000000000000001)
    """

    separation: Any
    sampling_prob: Any

    def __post_init__(self) -> None:
        _checked(self, separation=_whole, sampling_prob=_rate)

    def words(self) -> str:
        return (
            "b-min-sep sampling: each record that was in none of the last"
            f" {self.separation - 1:g} batches enters with probability {self.sampling_prob:.6g}"
        )


KINDS = {
    kind.__name__: kind
    for kind in (Single, MinSeparation, CyclicPoisson, BallsInBins, RandomShift, BMinSep)
}
_TEXT = re.compile(r"^\s*(\w+)\s*\((.*)\)\s*$")


def parsed(value: Any) -> Participation:
    """A participation, or one from its text.

    Raises:
        ValueError: neither; lists what there is.

    Example:
        >>> parsed("BallsInBins(cycle=10)") == BallsInBins(10)
        True
    """
    if isinstance(value, Participation):
        return value
    found = _TEXT.match(value) if isinstance(value, str) else None
    if found is None or found[1] not in KINDS:
        raise ValueError(
            f"participation must be one of jaxgdp.participation ({', '.join(KINDS)}), got {value!r}"
        )
    given = {}
    for piece in filter(None, map(str.strip, found[2].split(","))):
        name, _, number = piece.partition("=")
        try:
            given[name.strip()] = float(number)
        except ValueError:
            raise ValueError(f"participation {value!r}: {piece!r} is not NAME=NUMBER") from None
    try:
        return KINDS[found[1]](**given)
    except TypeError:
        names = ", ".join(f.name for f in dataclasses.fields(KINDS[found[1]]))  # type: ignore[arg-type]
        raise ValueError(f"participation {value!r} must name {names or 'nothing'}") from None
