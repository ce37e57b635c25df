"""What a quantity is: its name, what it is asked at, how it is read off a certified curve and what accuracy it promises."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..bracket import Bracket

LEAST = 1e-300  # a value below this counts as accurate once its upper side is below it


def identity(value):
    """The argument itself."""
    return value


@dataclass(frozen=True)
class Quantity:
    """One number that can be read off a certified curve; equal by name, so that compiled programs are found again.

    Attributes:
        name: as users ask for it.
        symbol: as reports print it.
        read: ``read(curve, query, symmetric=…)`` → :class:`Bracket` (unbatched, arrays of either library). It must hold on a curve of
            which only some vertices are known.
        argument: name of what it is asked at ("delta", "epsilon", "fpr", "prior", "d"), or None. "fpr_floor" is that of the whole question.
        default: of the argument.
        query: the argument as ``read`` takes it (its log, where it is a rate).
        rate: smallest error rate, or δ, that the curve has to resolve for an argument; None for nothing beyond the FPR floor.
        threshold: privacy loss |ℓ| at which an argument is read off, where that is known beforehand.
        locate: ``locate(curve, query, symmetric=…)`` → |ℓ|, where it is known from a first look only.
        absolute: the accuracy promised is ``absolute``·rtol instead of rtol relative to the upper side.
        safe_side: "upper" or "lower", the one to report.
        unit: "nats", "probability" or "".
        order: place in tables.
    """

    name: str
    symbol: str
    read: Callable[..., Bracket]
    argument: str | None = None
    default: Any = None
    query: Callable[[Any], Any] = identity
    rate: Callable[[Any], Any] | None = None
    threshold: Callable[[Any], Any] | None = None
    locate: Callable[..., Any] | None = None
    absolute: float | None = None
    safe_side: str = "upper"
    unit: str = ""
    order: int = 100

    def __hash__(self):
        return hash(self.name)

    def __eq__(self, other):
        return isinstance(other, Quantity) and self.name == other.name and self.read == other.read

    def excess(self, bracket: Bracket, rtol: float):
        """How many times wider a bracket is than promised (host arrays): met where it is at most 1."""
        lower, upper = np.asarray(bracket.lower, float), np.asarray(bracket.upper, float)
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            width = np.where(upper == lower, 0.0, upper - lower)
            scale = self.absolute if self.absolute is not None else np.maximum(np.abs(upper), LEAST)
            excess = width / (scale * rtol)
        small = (np.abs(upper) <= LEAST) & (self.absolute is None)
        return np.where(small, 0.0, np.where(np.isnan(excess), np.inf, excess))
