"""How an overflow of padded batches shifts a quantity.

A run of padded batches has a trade-off curve g with (1 − d)·f(α/(1 − d)) ≤ g(α) in place of the
curve f of exact Poisson sampling, d the probability of an overflow, and g ≤ f, as small data sets
never overflow (see ``jaxgdp.training.poisson``). As f is convex with f(0) ≤ 1, the left side is at
least f(α) − d. Hence, on the safe side: δ(ε) + d, advantage + d, TPR + d, β − d, (1 − d)·Bayes
risk, ε at (δ − d)/(1 − d), d'-approximate μ at (d' − d)/(1 − d), and, as |dΦ⁻¹(x)/dx| ≤
√(π/2)/min(x, 1 − x), μ + √(π/2)·d/floor. The regret of reporting that μ moves by at most φ(0)
times as much.

Each quantity's own file declares which of these holds for it (``Quantity.overflow``)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..bracket import Bracket
from ..numerics.errors import CLOSED_FORM, SHORT
from ..numerics.shapes import Array

ROOM = 1.0 + CLOSED_FORM  # for the rounding of what is added
_MU_SLOPE = np.sqrt(np.pi / 2.0) * ROOM
_DENSITY = 1.0 / np.sqrt(2.0 * np.pi)


def unshifted(bracket: Bracket, d: float, argument: float | None) -> Bracket:
    """The bracket as it is."""
    return bracket


@dataclass(frozen=True)
class Overflow:
    """The effect of an overflow of probability d on the bracket of a quantity.

    Attributes:
        shift: ``shift(bracket, d, argument)`` → the bracket with an overflow, its safe side moved.
        reduced: ``reduced(argument, d)`` → argument at which the safe side is that of a run without
            overflow; None where it is the argument itself.
        near: ``near(upper, argument, reduced, rough)`` → upper bound at the reduced argument from
            the one at the argument, without a second evaluation; ``rough(δ)`` is an upper bound on
            ε at δ that need not be sharp. None where no such bound is known.
    """

    shift: Callable[[Bracket, float, float | None], Bracket] = unshifted
    reduced: Callable[[float, float], float] | None = None
    near: Callable[[Array, float, float, Callable[[float], Array]], Array] | None = None


def rate_above(rate: float, d: float) -> float:
    """(rate − d)/(1 − d), rounded down: the rate that an overflow leaves."""
    return float(np.nextafter((rate - d) / (1.0 - d) * (1.0 - SHORT), 0.0))


def mu(bracket: Bracket, d: float, argument: float | None) -> Bracket:
    """μ + √(π/2)·d/floor from above."""
    lower, upper = bracket
    return Bracket(lower, upper + _MU_SLOPE * d / argument)


def regret(bracket: Bracket, d: float, argument: float | None) -> Bracket:
    """Δ + φ(0)·√(π/2)·d/floor from above, Δ − d from below."""
    lower, upper = bracket
    return Bracket(np.maximum(lower - d, 0.0), upper + _DENSITY * _MU_SLOPE * d / argument)


def probability_raised(bracket: Bracket, d: float, argument: float | None) -> Bracket:
    """A probability that grows with privacy loss: it grows by at most d."""
    lower, upper = bracket
    return Bracket(lower, np.minimum(upper + d * ROOM, 1.0))


def probability_lowered(bracket: Bracket, d: float, argument: float | None) -> Bracket:
    """A probability that falls with privacy loss: it falls by at most d."""
    lower, upper = bracket
    return Bracket(np.maximum(lower - d * ROOM, 0.0), upper)


def risk_lowered(bracket: Bracket, d: float, argument: float | None) -> Bracket:
    """(1 − d)·risk from below."""
    lower, upper = bracket
    return Bracket(lower * (1.0 - d * ROOM), upper)
