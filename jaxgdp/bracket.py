"""The answer of this library: two numbers with the truth between them, and their status."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

SAME = 1e-11  # relative distance up to which rounding may make two sides cross
LEAST = 1e-300  # a distance, and a value, that counts as nothing


class Status(IntEnum):
    """The status of a bracket; whatever it is, the truth lies in the bracket."""

    OK = 0
    WIDE = 1
    CONTRADICTION = 2


STATUS: dict[int, str] = {
    Status.OK: "ok",
    Status.WIDE: "wider than rtol at the largest lattice",
    Status.CONTRADICTION: (
        "CONTRADICTION: the two sides exclude each other, so the value is withheld"
    ),
}


class Bracket(NamedTuple):
    """A certified pair ``lower ≤ true ≤ upper``.

    Arrays of equal shape, float64, or two plain floats. Each quantity's docstring names the safe
    side to report: the upper side for everything that grows with privacy loss (μ, ε, δ, advantage,
    TPR), the lower side for the error rates of an attacker (β, Bayes risk).

    Example:
        >>> b = Bracket(1.0, 1.5)
        >>> b.width, b.midpoint
        (0.5, 1.25)
    """

    lower: Any
    upper: Any

    @property
    def width(self) -> Any:
        """upper − lower."""
        return self.upper - self.lower

    @property
    def midpoint(self) -> Any:
        """The middle of the bracket: an estimate, not a certified number.

        Method: docs/method/limits.md#estimates
        """
        return self.lower + 0.5 * (self.upper - self.lower)

    def contains(self, value: ArrayLike) -> Any:
        """Whether ``value`` lies in the bracket, elementwise."""
        return (self.lower <= value) & (value <= self.upper)

    @classmethod
    def from_sides(
        cls,
        lower: ArrayLike,
        upper: ArrayLike,
        extent: tuple[float, float] = (-np.inf, np.inf),
        rounding: float = LEAST,
    ) -> tuple[Bracket, Any]:
        """Two sides worked out on their own, compared before anything is done to them.

        Sides that cross by no more than ``SAME`` relative plus ``rounding`` change places, which
        widens. Sides that cross by more, or that lie outside what the number can be, or that are no
        numbers, contradict what is certified: they vouch for nothing, and the bracket is all of
        ``extent``.

        Args:
            lower: an array.
            upper: an array that broadcasts with it.
            extent: (least, largest) value the number can have, whatever the mechanism.
            rounding: absolute distance that rounding may make two sides cross by.

        Returns:
            (bracket, whether its sides contradicted each other), host arrays of the broadcast
            shape; plain floats where there is one number.

        Example:
            >>> sides = [0.1, 0.3], [0.2, 0.2]
            >>> bracket, contradicted = Bracket.from_sides(*sides, extent=(0.0, 1.0))
            >>> bracket.lower.tolist(), bracket.upper.tolist(), contradicted.tolist()
            ([0.1, 0.0], [0.2, 1.0], [False, True])

        Method: docs/method/index.md#contradiction
        """
        lower, upper = np.broadcast_arrays(np.asarray(lower, float), np.asarray(upper, float))
        low, high = np.maximum(lower, extent[0]), np.minimum(upper, extent[1])
        with np.errstate(invalid="ignore"):
            # (equal infinities meet)
            slack = SAME * np.minimum(np.abs(low), np.abs(high)) + rounding
            sound = (low == high) | (low - high <= np.where(np.isfinite(slack), slack, 0.0))
        swapped = np.clip(np.minimum(low, high), *extent), np.clip(np.maximum(low, high), *extent)
        sides = (np.where(sound, side, end) for side, end in zip(swapped, extent, strict=True))
        return plain(cls(*sides)), ~sound


def plain(bracket: Bracket) -> Bracket:
    """The same, of two plain floats where each side is one number.

    Example:
        >>> plain(Bracket(np.array(1.0), np.float64(1.5)))
        Bracket(lower=1.0, upper=1.5)
    """
    return Bracket(*(float(side) if np.ndim(side) == 0 else side for side in bracket))
