"""The answer of this library: two numbers with the truth between them."""

from __future__ import annotations

from typing import Any, NamedTuple


class Bracket(NamedTuple):
    """A certified pair ``lower ≤ true ≤ upper``.

    Arrays of equal shape, float64. Each quantity's docstring says which side is the safe one to report:
    the upper side for everything that grows with privacy loss (μ, ε, δ, advantage, TPR), the lower side
    for the error rates of an attacker (β, Bayes risk).

    Example:
        >>> b = Bracket(1.0, 1.5)
        >>> b.width, b.midpoint
        (0.5, 1.25)
    """

    lower: Any
    upper: Any

    @property
    def width(self):
        """upper − lower."""
        return self.upper - self.lower

    @property
    def midpoint(self):
        """The middle of the bracket: an estimate, not a certified number."""
        return self.lower + 0.5 * (self.upper - self.lower)

    def contains(self, value):
        """Whether ``value`` lies in the bracket, elementwise."""
        return (self.lower <= value) & (value <= self.upper)
