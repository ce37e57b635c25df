"""What is computed for one setting before numbers are read off its curve
(``certify.reading``): plan its passes, compose half a curve.

Unbatched functions of arrays, of whichever library the arrays are (``namespace``); an executor runs
them over many settings."""

from __future__ import annotations

import jax

from ...numerics import namespace as xp
from ..certify.half_curve import half_curve
from ..certify.steps import step, uses
from ..steer import windows


def plan_whole(groups, depths, rtol, max_neg_log_density, known_reach, anchor, pieces):
    """Plans of both half-curves (leading axes: sides, pieces), and the number of steps."""
    count = uses(groups)
    return windows.plan_whole(
        groups, count, *depths, rtol, max_neg_log_density, known_reach, anchor, pieces
    ), xp.sum(count)


def plan_threshold(groups, threshold, rtol, share):
    """Plans of both half-curves (leading axes: sides, one piece) about one threshold, and the
    number of steps.
    """
    count = uses(groups)
    plan = windows.plan_threshold(groups, count, threshold, rtol, share)
    return jax.tree.map(lambda a: a[:, None], plan), xp.sum(count)


def half(groups, plan, grid, reverse, known=None):
    """Vertices of one planned piece of a half-curve, from above and from below; ``known`` as for
    ``half_curve``.
    """
    return half_curve(groups, uses(groups), plan, grid, reverse, known=known)


def steps(groups, plan, grid, reverse):
    """One step of every component of a planned piece, on its lattice."""
    return step(groups, plan, grid, reverse)
