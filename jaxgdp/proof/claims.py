"""What can be claimed: a quantity, what it is asked at, and a bracket."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, NamedTuple

from .. import options
from ..vocabulary import did_you_mean

_NORMAL = NormalDist()
ADJACENCIES = ("add_remove", "add", "remove")


class Asked(NamedTuple):
    """The argument of a quantity: its name, its default and its range."""

    name: str
    default: float
    words: str
    holds: Callable[[float], bool]


def _rate(name: str, default: float) -> Asked:
    return Asked(name, default, "in (0, 1)", lambda value: 0.0 < value < 1.0)


_FLOOR = Asked(
    "fpr_floor", options.FPR_FLOOR, "in [1e-300, 0.5)", lambda value: 1e-300 <= value < 0.5
)
ARGUMENTS: Mapping[str, Asked | None] = {
    "delta": Asked("epsilon", options.EPSILON, "a finite number >= 0", lambda value: value >= 0.0),
    "epsilon": _rate("delta", options.DELTA),
    "tpr": _rate("fpr", options.FPR),
    "beta": _rate("fpr", options.FPR),
    "advantage": None,
    "bayes_risk": _rate("prior", options.PRIOR),
    "mu": _FLOOR,
    "approximate_mu": _rate("approximation", options.APPROXIMATION),
    "regret": _FLOOR,
}
_PROBABILITIES = ("delta", "tpr", "beta", "advantage", "bayes_risk")


@dataclass(frozen=True)
class Claim:
    """lower ≤ quantity ≤ upper.

    Attributes:
        quantity: its name.
        argument: the δ, ε, FPR, prior, approximation or floor that it is asked at; None where it is
            asked at nothing.
        adjacency: "add_remove", "add" or "remove".
        lower, upper: doubles; ∓∞ where a side claims nothing.
    """

    quantity: str
    argument: float | None
    adjacency: str
    lower: float
    upper: float

    @property
    def asked(self) -> str | None:
        """Name of the argument."""
        known = ARGUMENTS[self.quantity]
        return None if known is None else known.name

    @property
    def extent(self) -> tuple[float, float]:
        """What the quantity can be at all."""
        return (0.0, 1.0) if self.quantity in _PROBABILITIES else (0.0, math.inf)

    @property
    def smallest(self) -> float:
        """A probability that still matters to it; for steering."""
        rates = [1e-6]
        if self.quantity in ("epsilon", "tpr", "beta", "mu", "regret", "approximate_mu"):
            rates.append(self.argument or 1.0)
        if self.quantity in _PROBABILITIES:
            rates += [side for side in (self.lower, self.upper) if 0.0 < side < 1.0]
        if self.quantity == "regret":
            rates.append(1e-3 * self.upper if 0.0 < self.upper < 1.0 else 1.0)
        if self.quantity == "mu" and math.isfinite(self.upper):
            # (the FNR next to the floor, which may be far smaller)
            rates.append(_NORMAL.cdf(-_NORMAL.inv_cdf(self.argument or 0.5) - self.upper))
        return max(min(rates), 1e-300)

    def __str__(self) -> str:
        at = "" if self.argument is None else f" at {self.asked} = {self.argument:g}"
        return f"{self.quantity}{at} in [{self.lower!r}, {self.upper!r}] ({self.adjacency})"


def claim(quantity: str, bracket: Any, adjacency: str, asked: Mapping[str, Any]) -> Claim:
    """A claim from what users give.

    Raises:
        ValueError: an unknown quantity, adjacency or argument, or a value out of range; names it.
    """
    if quantity not in ARGUMENTS:
        raise ValueError(
            f"quantity must be one of {', '.join(ARGUMENTS)}, got {quantity!r}"
            f"{did_you_mean(str(quantity), ARGUMENTS)}"
        )
    if adjacency not in ADJACENCIES:
        raise ValueError(
            f"adjacency must be one of {', '.join(map(repr, ADJACENCIES))} for a proof, got"
            f" {adjacency!r}"
        )
    known, given = ARGUMENTS[quantity], dict(asked)
    argument = None
    if known is not None:
        argument = _checked(known, given.pop(known.name, None))
    if given:
        takes = "nothing" if known is None else known.name
        raise ValueError(f"{quantity} is asked at {takes}, got {', '.join(sorted(given))}")
    return Claim(str(quantity), argument, str(adjacency), *_sides(bracket))


def _checked(known: Asked, value: Any) -> float:
    if value is None:
        return known.default
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{known.name} must be {known.words}, got {value!r}") from None
    if not (math.isfinite(number) and known.holds(number)):
        raise ValueError(f"{known.name} must be {known.words}, got {number:g}")
    return number


def _sides(bracket: Any) -> tuple[float, float]:
    try:
        lower, upper = (float(side) for side in bracket)
    except (TypeError, ValueError):
        raise ValueError(
            f"bracket must be two numbers, lower and upper, got {bracket!r}; prove one setting at a"
            " time"
        ) from None
    if not lower <= upper:
        raise ValueError(f"bracket must have lower <= upper, got {lower!r} and {upper!r}")
    return lower, upper
