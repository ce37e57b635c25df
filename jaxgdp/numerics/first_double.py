"""The first double at which a statement holds, among all doubles between two ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .shapes import Array, Bool, Float, Int

_SECTIONS = 63  # points that are tried at once: eleven rounds reach neighbouring doubles
_SIGN = np.int64(-(2**63))


class Step(NamedTuple):
    """Two doubles, ``before`` < ``after``, next to each other unless an end was reached.

    Attributes:
        before: where the statement was not seen to hold, or the lower end.
        after: where it was seen to hold, or the upper end.
    """

    before: Float[Array, " settings"]
    after: Float[Array, " settings"]


def first_double(
    holds: Callable[[Float[Array, "settings sections"]], Bool[Array, "settings sections"]],
    low: Float[Array, " settings"],
    high: Float[Array, " settings"],
    sections: int = _SECTIONS,
) -> Step:
    """The place at which a statement begins to hold, by halving in the order of the doubles.

    The statement needs no proof of being monotone: it was tried at both ends of the step that is
    returned, but for those that are still ``low`` or ``high``.

    Args:
        holds: the statement at points of shape (settings, sections).
        low: lower ends, shape (settings,).
        high: upper ends, shape (settings,).
        sections: points that are tried at once, an odd number.

    Example:
        >>> step = first_double(lambda x: x * x >= 2.0, np.zeros(1), np.ones(1) * 2.0)
        >>> round(float(step.after[0]), 6), bool(np.nextafter(step.before[0], 9.0) == step.after[0])
        (1.414214, True)
    """
    first, last = _place(np.asarray(low, float)), _place(np.asarray(high, float))
    share = np.arange(1, sections + 1)
    while np.any(first + 1 < last):
        # (a difference of places may be no 64-bit integer, but half of it is one)
        part = np.maximum((last // 2 - first // 2) // ((sections + 1) // 2), 1)
        at = np.minimum(first[:, None] + part[:, None] * share, last[:, None])
        inside = at < last[:, None]
        true = np.where(inside, holds(_double(at)), True)
        k = np.argmax(np.concatenate([true, np.ones((len(at), 1), bool)], axis=1), axis=1)
        ends = np.concatenate([first[:, None], at, last[:, None]], axis=1)
        rows = np.arange(len(at))
        first, last = ends[rows, k], ends[rows, k + 1]
    return Step(_double(first), _double(last))


def _place(value: Float[Array, "*shape"]) -> Int[Array, "*shape"]:
    """The place of a double in the order of all doubles."""
    bits = np.ascontiguousarray(value + 0.0).view(np.int64)
    return np.where(bits >= 0, bits, _SIGN - bits)


def _double(place: Int[Array, "*shape"]) -> Float[Array, "*shape"]:
    """The double at a place."""
    return np.ascontiguousarray(np.where(place >= 0, place, _SIGN - place)).view(np.float64)
