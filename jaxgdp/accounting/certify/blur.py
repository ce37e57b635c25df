"""Uses of something that shows nothing, or next to nothing, which make the law of a sum smooth
where single steps lie on points that are far apart: few frequencies serve only smooth sums.

Beside an attack they are labels of the same law with and without the record. Beside the pair that
dominates they are a pair of laws with losses of a few points, which dominates nothing at all."""

from __future__ import annotations

from typing import NamedTuple

from ...numerics import namespace as xp
from ...numerics.shapes import Array, Float
from ..plan import Plan
from .discretisation import Weights, weights_of
from .lattice import Grid, Sparse

_FAR = 18  # octaves of steps from which on a lattice has them
# variance that they add, over the farthest threshold, in nats: ε is off by half of it
_PART = 3e-6
_LEAST = 64.0  # uses, at least, where points are fine enough
_UNITS = 32.0  # of a mass: exponentials of products, a geometric sum, and quotients


class Blur(NamedTuple):
    """Such uses.

    Attributes:
        uses: their number, a whole one.
        dominating: masses of the losses.
        attack_p, attack_q: those of the labels, under both tilts.
    """

    uses: Float[Array, ""]
    dominating: Weights
    attack_p: Weights
    attack_q: Weights


def blurred(grid: Grid) -> bool:
    """Whether sums on a lattice have them."""
    if not isinstance(grid, Sparse) or grid.tables.octave_right is None:
        return False
    return grid.tables.octave_right.shape[0] >= _FAR


def blur(
    plan: Plan, offset: Float[Array, " points"], gap: Float[Array, " points"], h: Float[Array, ""]
) -> Blur:
    """Those of a piece.

    Args:
        plan: of the piece.
        offset: of the points, in lattice points.
        gap: lattice points between neighbours, the larger one of both sides.
        h: spacing.

    Method: docs/method/frequencies.md#blur
    """
    variance = _PART * plan.cut_high / h**2
    farthest = xp.max(xp.where(gap == 1.0, offset, 0.0))
    half = xp.clip(xp.floor(xp.sqrt(3.0 * variance / _LEAST)), 1.0, farthest)
    uses = xp.maximum(xp.floor(3.0 * variance / (half * (half + 1.0))), 1.0)
    inside = xp.abs(offset) <= half
    place = xp.where(inside, h * offset, 0.0)

    def weights(tilt: Array, own: float) -> Weights:
        """Of the masses e^{−own·j·h} over their sum, tilted."""
        mass = xp.where(inside, xp.exp((tilt - own) * place), 0.0)
        x, number = own * h, 2.0 * half + 1.0
        geometric = xp.exp(-half * x) * xp.expm1(number * x) / xp.expm1(x) if own else number
        total = geometric + 0.0 * number
        return weights_of(mass / total, _UNITS + (xp.abs(tilt) + own) * xp.abs(place), gap)

    return Blur(
        uses, weights(plan.tilt, 0.5), weights(plan.tilt, 0.0), weights(plan.tilt - 1.0, 0.0)
    )
