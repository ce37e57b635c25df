"""What roundings of sums of very many terms make of the law of all of them: where a law is known to
add up to 1, most of what its masses are off by cancels, and √n of them count instead of n."""

from __future__ import annotations

import math
from typing import NamedTuple

from ....numerics.errors import UNIT

_LEAST = 700.0  # −log of the smallest mass that is known to a share of itself
_ROOM = 1.01  # times a bound, for what is not of first order
_SQUARES = 4.1  # times n·ε²
_OFF_AT_MOST = 1e-3  # error beyond which nothing is claimed here


class _Level(NamedTuple):
    """Laws of one level of doublings.

    Attributes:
        copies: how many of them are added up.
        off: bound on the relative error that comes with this level to each mass.
    """

    copies: int
    off: float


class Roundings:
    """Roundings of a sum of independent terms, which is made of sums of 1, 2, 4, … of them.

    Args:
        terms: T, their number.
        rate: p, such that masses with a record are a share of at most pn of those of n terms.
        log_total: log of the mass that all sums have in all.
        first: bound on the relative error of each mass of one term.

    Method: docs/method/seldom.md#seldom-cancel
    """

    def __init__(self, terms: int, rate: float, log_total: float, first: float):
        self.terms, self.rate, self.log_total = terms, rate, log_total
        self.levels = [_Level(terms, first)]
        self.joined = 0.0  # errors of sums of which there is one

    def add(self, terms: int, before: tuple[float, float], after: float, same: bool) -> None:
        """A sum of two laws with the errors ``before``, which has so many terms and the error
        ``after``; ``same``: of a law with itself, one of the doublings.
        """
        own = _ROOM * max(after - before[0] - before[1], 0.0) + UNIT * after
        if same:
            self.levels.append(_Level(self.terms // terms, own))
        else:
            self.joined += own

    def error(self, log_sum: float, lost: float, worst: float) -> float:
        """Bound on the relative error of every mass from e^−700 on, and of every sum of these.

        Args:
            log_sum: log of the sum of all masses as they were computed.
            lost: bound on what all sums lack of it, relative to it, and on how far ``log_total``
                may be off.
            worst: the bound where nothing cancels.
        """
        depth = _LEAST + abs(self.log_total)
        scale = abs(log_sum - self.log_total) + _SQUARES * lost + 2.0 * self.joined
        scale += 8.0 * UNIT * (1.0 + abs(self.log_total))
        off = sum(
            level.off * math.sqrt(2.0 * depth * level.copies)
            + _SQUARES * level.copies * level.off**2
            + 2.0 * self.rate * self.terms * level.off
            for level in self.levels
        )
        found = _ROOM * (off + scale)
        return min(found, worst) if worst <= 0.1 and found <= _OFF_AT_MOST else worst
