"""How many steps have a shift that is far, and of which kinds: the law of the sum of squares."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ....numerics.errors import UNIT
from ....numerics.shapes import Array, Float
from ..counted_jumps import counts
from .split import FarShifts

_MOST, _MANY = 4096, 64  # atoms that are kept, and numbers of far steps that are many
_FEWER = 1024  # atoms that are kept at each number of many
_SAME = 1e-9  # relative distance of two sums that are taken for one
_SUMMED = 2048.0 * UNIT  # share of a sum of up to a thousand terms, or of sizes, that is rounding


class Atoms(NamedTuple):
    """Draws with at least one far shift.

    Attributes:
        log_mass: log of the probability of each.
        low, high: bounds on the sum of the squares of all far shifts.
        own, shown: logs of the weights of all steps together, from below with each kind by itself,
            from above with all that are not told apart.
        log_rest: log of a bound on the probability of all draws that are not looked at.
    """

    log_mass: Float[Array, " atoms"]
    low: Float[Array, " atoms"]
    high: Float[Array, " atoms"]
    own: Float[Array, " atoms"]
    shown: Float[Array, " atoms"]
    log_rest: float


def atoms(far: FarShifts) -> Atoms:
    """The law of a split mixture, merged where there are many.

    Args:
        far: of at most ``MOST_JUMPS`` far steps expected.

    Method: docs/method/limit.md#far-shifts
    """
    number = counts(far.steps, far.log_far, far.log_near)
    share = far.log_own - far.log_far
    squares = far.low * far.low, far.high * far.high
    one = Atoms(np.zeros(1), *np.zeros((4, 1)), -np.inf)
    most = _FEWER if len(number.log_mass) > _MANY else _MOST
    found = []
    for j, log_mass in enumerate(number.log_mass[1:], 1):
        log, low, high = (_outer(a, b) for a, b in zip(one[:3], (share, *squares), strict=True))
        own, shown = _outer(one.own, far.log_own), _outer(one.shown, far.log_shown)
        one = _merged(Atoms(log, low, high, own, shown, -np.inf), most)
        near = (far.steps - j) * far.log_near
        found.append(
            one._replace(
                log_mass=one.log_mass + log_mass, own=one.own + near, shown=one.shown + near
            )
        )
    columns = (np.concatenate(column) for column in zip(*(a[:5] for a in found), strict=True))
    every = _merged(Atoms(*columns, number.log_rest), _MOST)
    # (own and shown are sums of logs of one sign)
    return every._replace(
        low=every.low * (1.0 - _SUMMED),
        high=every.high * (1.0 + _SUMMED),
        own=every.own * (1.0 + _SUMMED),
        shown=every.shown * (1.0 - _SUMMED),
    )


def _outer(a: Array, b: Array) -> Array:
    return (a[:, None] + b[None, :]).reshape(-1)


def _merged(given: Atoms, most: int) -> Atoms:
    """Atoms of the same sum as one, and neighbours, where there are more than so many."""
    order = np.argsort(given.high, kind="stable")
    log, low, high, own, shown = (a[order] for a in given[:5])
    new = np.diff(high) > _SAME * high[1:]
    place = np.concatenate([[0], np.cumsum(new)])
    if place[-1] >= most:
        logs = np.log(high)
        place = np.floor((logs - logs[0]) / max(logs[-1] - logs[0], 1e-300) * (most - 1.0))
    start = np.flatnonzero(np.concatenate([[True], np.diff(place) > 0]))
    return Atoms(
        np.logaddexp.reduceat(log, start),
        np.minimum.reduceat(low, start),
        np.maximum.reduceat(high, start),
        np.minimum.reduceat(own, start),
        np.maximum.reduceat(shown, start),
        given.log_rest,
    )
