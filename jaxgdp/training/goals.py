"""Limits on a number of steps: bounds on a plan's own quantities, and targets."""

from __future__ import annotations

import numpy as np

from ..bracket import Bracket
from ..numerics.shapes import Array
from ..numerics.validation import nonnegative, one_of
from ..quantities.registry import named
from ..targets import Target
from .overflow import single


class Limit:
    """A bound on the safe side of one quantity of a plan; reads like a target."""

    def __init__(self, name: str, value: float, quantities: tuple[str, ...]) -> None:
        self.quantity = one_of("limit", name, quantities)
        self.safe = named(name).safe_side
        self.goal = single(name, value, nonnegative)

    def read(self, bracket: Bracket) -> Bracket:
        return bracket

    def meets(self, own: Bracket) -> Array:
        return own.lower >= self.goal if self.safe == "lower" else own.upper <= self.goal


def score(goal: Limit | Target, own: Bracket) -> Array:
    """Quantity over goal, at most 1 where it is met, NaN where none is; it only steers."""
    accepted = getattr(goal, "goal", None)
    if accepted is None:
        return np.full(np.shape(own.upper), np.nan)
    with np.errstate(all="ignore"):
        rising = getattr(goal, "safe", "upper") == "upper"
        return np.asarray(own.upper / accepted if rising else accepted / own.lower, np.float64)


def checked_target(target: Target) -> Target:
    """A target of ``jaxgdp.targets`` that a number of steps can be found for."""
    if (
        not all(
            hasattr(target, name) for name in ("quantity", "parameters", "read", "meets", "shape")
        )
        or target.shape != ()
    ):
        raise ValueError(f"target must be a scalar target of jaxgdp.targets, got {target!r}")
    if not named(target.quantity).monotone:
        raise ValueError(
            f"target must be of a quantity that only grows with the steps, got {target!r}"
        )
    return target
