"""δ(ε) of the dominating pair as a function of the masses of one step, and those as a function of
the mechanisms' parameters: for derivatives.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...mechanisms.composition import Groups
from ...numerics import namespace as xp
from ...numerics.normal import safe_log
from ...numerics.shapes import Array, Bool, Float
from ..plan import Plan
from .composed import Window
from .discretisation import Weights
from .lattice import Grid, placement
from .steps import step

ACROSS = (np.arange(9.0) - 4.0) / 4.5  # equal steps, as parts of a spread to both sides


class Law(NamedTuple):
    """One step of every component of the dominating pair, with derivatives in the parameters.

    Attributes:
        weight: tilted masses that sum to one, shape (components, n).
        log_total: log of what they were divided by, shape (components,).
        log_not_at_infinity: log(1 − mass at +∞) of the composition.
    """

    weight: Float[Array, "components points"]
    log_total: Float[Array, " components"]
    log_not_at_infinity: Float[Array, ""]


def dominating_law(groups: Groups, plan: Plan, grid: Grid, reverse: Bool[Array, ""] | bool) -> Law:
    """The dominating pair's steps (unbatched); arguments as in ``half_curve.half_curve``. The
    lattice stays where it is: no derivative of ``plan`` is meant."""
    steps = step(groups, plan, grid, reverse, moving=True)
    law = steps.laws.dominating
    return Law(law.weight, law.log_total, steps.log_not_at_infinity)


def log_delta(
    law: Law,
    count: Float[Array, " components"],
    plan: Plan,
    grid: Grid,
    epsilon: Float[Array, ""],
    spread: Float[Array, ""],
) -> Float[Array, ""]:
    """log δ(ε) of the dominating pair of ``law`` without allowance for rounding, for derivatives.

    Between two vertices δ is a straight line in e^ε, as everywhere on a half-curve. Its derivative
    in a parameter jumps where an atom moves past ε, so a mean is taken over the ε within
    ``spread``."""
    place = placement(plan, grid)
    width = place.width
    centre = xp.round(grid.centre(plan) / place.h)
    # (with a real number of uses the sum of centres moves and the window does not)
    start = xp.round(place.first * grid.block) + 1.0 - xp.sum(count * centre)
    window = Window(start, plan.tilt, place.h, plan.miss_low, plan.miss_high)
    none = xp.zeros_like(law.log_total)
    weights = Weights(
        law.weight, law.log_total, none, none, none, none, none, xp.zeros_like(law.weight), none
    )
    c = grid.compose(weights, count, window, plan, centre, 0.0, real_uses=True)
    block = xp.arange(c.plain.shape[-1])
    epsilon = xp.maximum(epsilon + spread * ACROSS, 0.0)[:, None]
    k = xp.clip(xp.floor(epsilon / width) - place.first, 0.0, block[-1] - 1.0)
    base = width * (place.first + k)
    # P-masses of the thinned pair at the lower ends of the blocks, those above ε
    before = xp.where(block == 0, 0.0, xp.concatenate([c.split[-1:], c.split[:-1]]))
    mass = c.plain - c.split + xp.exp(plan.tilt * width) * before
    distance = width * (block - k)
    gain = xp.exp(xp.minimum((1.0 - plan.tilt) * distance, 700.0)) - xp.exp(
        epsilon - base - plan.tilt * distance
    )
    total = xp.sum(xp.where(block > k, mass * gain, 0.0), axis=1)
    finite = c.log_total + (1.0 - plan.tilt) * base[:, 0] + safe_log(total)
    at_infinity = safe_log(-xp.expm1(law.log_not_at_infinity))
    return xp.sum(xp.logaddexp(finite, at_infinity)) / len(ACROSS)
