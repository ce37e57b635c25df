"""Both sides of the curve of a run with shifts that are far, from that of its near ones."""

from __future__ import annotations

from ....numerics.shapes import Array, Float
from ..curve import Curve, GaussianParts
from ..finite_laws import padded
from ..jump_sides import best
from ..normal_curve import profile_half
from . import above, below
from .law import Atoms
from .split import FarShifts


def both_sides(
    far: FarShifts,
    draws: Atoms,
    near: Curve | None,
    thresholds: tuple[Float[Array, " thresholds"], Float[Array, " thresholds"]],
    parts: GaussianParts,
) -> Curve:
    """Both sides of the curve of a run, in the order of removing a record.

    Args:
        far: the mixture, split.
        draws: the law of its far steps.
        near: the curve of as many steps with the near shifts alone; None where these are 0.
        thresholds: of each order, increasing, the first one 0.
        parts: Gaussian parts of the whole.

    Method: docs/method/limit.md#far-shifts
    """
    plus, minus = thresholds
    upper = above.removed(far, draws, near, plus), above.added(far, draws, near, minus)
    tests = below.tests(far, draws, near, plus)
    halves = [profile_half(t, found) for t, found in zip(thresholds, upper, strict=True)]
    return Curve(*padded([*halves, *(best(list(side)) for side in tests)]), *parts)
