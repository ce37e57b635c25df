"""What is computed for one setting before numbers are read off its curve
(``certify.reading``): plan its passes, compose half a curve.

Unbatched functions of arrays, of whichever library the arrays are (``namespace``); an executor runs
them over many settings."""

from __future__ import annotations

import jax

from ...mechanisms.composition import Groups
from ...numerics import namespace as xp
from ...numerics.shapes import Array, Bool, Float
from ..certify.half_curve import BareHalf, Half, half_curve
from ..certify.lattice import Grid
from ..certify.low_frequencies import Sums
from ..certify.steps import Steps, step, uses
from ..plan import Plan
from ..steer.plan_threshold import plan_threshold as plan_about
from ..steer.plan_whole import plan_whole as plan_curve


def plan_whole(
    groups: Groups,
    depths: tuple,
    rtol: float,
    max_neg_log_density: Float[Array, ""],
    known_reach: tuple,
    anchor: Float[Array, ""],
    pieces: int,
) -> tuple[Plan, Array]:
    """Plans of both half-curves (leading axes: sides, pieces), and the number of steps."""
    count = uses(groups)
    return plan_curve(
        groups, count, *depths, rtol, max_neg_log_density, known_reach, anchor, pieces
    ), xp.sum(count)


def plan_threshold(
    groups: Groups,
    threshold: Float[Array, ""],
    rtol: float,
    share: Float[Array, ""],
    reverse: Bool[Array, " sides"],
) -> tuple[Plan, Array]:
    """Plans of some half-curves (axes: sides, one piece) about one threshold, and steps."""
    count = uses(groups)
    plan = plan_about(groups, count, threshold, rtol, share, reverse)
    return jax.tree.map(lambda a: a[:, None], plan), xp.sum(count)


def half(
    groups: Groups,
    plan: Plan,
    grid: Grid,
    reverse: Array | bool,
    known: tuple[Steps, Sums] | None = None,
) -> Half | BareHalf:
    """Vertices of one planned piece, from above and below; ``known`` as for ``half_curve``."""
    return half_curve(groups, uses(groups), plan, grid, reverse, known=known)


def steps(groups: Groups, plan: Plan, grid: Grid, reverse: Array | bool) -> Steps:
    """One step of every component of a planned piece, on its lattice."""
    return step(groups, plan, grid, reverse)
