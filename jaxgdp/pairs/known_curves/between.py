"""A pair that is known only to lie between two others, each with a curve in closed form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...bracket import Bracket
from ...numerics.shapes import Array
from .base import KnownCurve, Rates, Tests


@dataclass(frozen=True)
class BetweenCurve(KnownCurve):
    """What dominates it, and what it dominates: upper sides of one, lower sides of the other.

    Attributes:
        above, below: both curves.

    Method: docs/method/known.md#between
    """

    above: KnownCurve
    below: KnownCurve

    @property
    def size(self) -> int:
        """Of both."""
        return self.above.size + self.below.size

    def log_delta(self, order: int, epsilon: Array) -> Bracket:
        """Of the one below, and of the one above."""
        return _sides(self.below.log_delta(order, epsilon), self.above.log_delta(order, epsilon))

    def log_one_minus_delta(self, order: int, epsilon: Array) -> Bracket:
        """The other way round."""
        return _sides(
            self.above.log_one_minus_delta(order, epsilon),
            self.below.log_one_minus_delta(order, epsilon),
        )

    def rates(self, orders: Sequence[int], log_fpr: Array) -> Rates | None:
        """The TPR from below and from above, the FNR the other way round."""
        above, below = (each.rates(orders, log_fpr) for each in (self.above, self.below))
        if above is None or below is None:
            return None
        return Rates(_sides(below.log_tpr, above.log_tpr), _sides(above.log_beta, below.log_beta))

    def mu(self, log_floor: Array) -> Bracket | None:
        """Of both."""
        above, below = self.above.mu(log_floor), self.below.mu(log_floor)
        return None if above is None or below is None else _sides(below, above)

    def tests(self, order: int, number: int) -> Tests:
        """Those of the one below, which this one passes too, at thresholds of the one above."""
        achieved = self.below.tests(order, number)
        return achieved._replace(threshold=self.above.tests(order, number).threshold)

    def largest_loss(self, order: int) -> Array:
        """Of the one above."""
        return self.above.largest_loss(order)

    def log_infinity_mass(self, order: int) -> Array | float:
        """Of the one above."""
        return self.above.log_infinity_mass(order)


def _sides(low: Bracket, high: Bracket) -> Bracket:
    return Bracket(low.lower, high.upper)
