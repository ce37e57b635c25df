"""Both sides of the curve of a run with shifts that are far, from that of its near ones."""

from __future__ import annotations

import numpy as np

from ....numerics.shapes import Array, Float
from ..curve import Curve, GaussianParts
from ..finite_laws import padded
from ..jump_sides import best
from ..normal_curve import profile_half
from . import above, below
from .law import Atoms
from .others import Others, nothing
from .split import FarShifts


def both_sides(
    far: FarShifts,
    draws: Atoms,
    near: Curve | None,
    others: Others | None,
    thresholds: tuple[Float[Array, " thresholds"], Float[Array, " thresholds"]],
    at: Float[Array, " places"],
    parts: GaussianParts,
) -> Curve:
    """Both sides of the curve of a run, in the order of removing a record.

    Args:
        far: the mixture, split.
        draws: the law of its far steps.
        near: the curve of as many steps with the near shifts alone and of all that is composed with
            them; None where these shifts are 0 and there is nothing else.
        others: laws of what is composed with the mixture; None where nothing is.
        thresholds: of each order, increasing, the first one 0.
        at: places, increasing, at which the draws of far steps are looked at.
        parts: Gaussian parts of the whole.

    Method: docs/method/limit.md#far-shifts
    Method: docs/method/limit.md#far-beside-others
    """
    plus, minus = thresholds
    end = above.end_of_added(far, near)
    if np.isfinite(end[0]):
        minus = np.append(minus[minus < end[0]], end[0])
    laws = nothing() if others is None else others
    upper = (
        above.removed(far, draws, near, laws, plus, at),
        above.added(far, draws, near, others is None, minus),
    )
    tests = below.tests(far, draws, near, laws, plus, at)
    halves = [profile_half(plus, upper[0]), profile_half(minus, upper[1], *end)]
    shown = [best(list(side), end) for side, end in zip(tests, laws.ends, strict=True)]
    return Curve(*padded([*halves, *shown]), *parts)
