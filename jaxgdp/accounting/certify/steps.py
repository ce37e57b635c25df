"""One step of every component of a composition on a lattice: what is self-composed."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax

from ...mechanisms.base import Mechanism
from ...mechanisms.composition import Groups
from ...numerics import namespace as xp
from ...numerics.shapes import Array, Bool, Float
from ...pairs.cells import Cells
from ...pairs.cells import reverse as reverse_cells
from ..plan import Plan
from .blur import Blur, blur, blurred
from .curve_end import infinity_mass
from .derivative import dominating_change, fixed_but_for_ends
from .discretisation import Weights, attack_weights, dominating_weights
from .lattice import Grid, spacing


class Laws(NamedTuple):
    """Tilted lattice masses of one step: of the pair that dominates, P-masses; of the attack,
    P-masses and Q-masses. Components are stacked.
    """

    dominating: Weights
    attack_p: Weights
    attack_q: Weights


class Steps(NamedTuple):
    """One step of every component on the lattice of a piece.

    Attributes:
        laws: their masses, components stacked.
        log_not_at_infinity: log(1 − mass at +∞) of the composed dominating pair on the lattice.
        log_infinity_mass: log of the mass at +∞ of the composed mechanism, rounded up.
        log_not_certain: log(1 − mass at +∞) of the composition that is attacked.
        centre: where the components are centred, in lattice points, shape (components,).
        more: uses of what stands behind the components and blurs them, or None (static).
    """

    laws: Laws
    log_not_at_infinity: Float[Array, ""]
    log_infinity_mass: Float[Array, ""]
    log_not_certain: Float[Array, ""]
    centre: Float[Array, " components"]
    more: Float[Array, ""] | None = None


class _Infinity(NamedTuple):
    """Masses at +∞ of one use.

    Attributes:
        on_lattice: of the dominating pair on the lattice.
        log_own: log of that of the mechanism.
        attacked: that of the mechanism that is attacked.
    """

    on_lattice: Float[Array, ""]
    log_own: Float[Array, ""] | float
    attacked: Float[Array, ""]


class _Points(NamedTuple):
    """Lattice points of a step, and for which pair.

    Attributes:
        offset: of the points from the centre of a component.
        gap: lattice points between neighbours, the larger one of both sides.
        h: spacing.
        tilt: of the piece.
        reverse: whether the pair is swapped.
    """

    offset: Float[Array, " points"]
    gap: Float[Array, " points"]
    h: Float[Array, ""]
    tilt: Float[Array, ""]
    reverse: Bool[Array, ""] | bool


def uses(groups: Groups) -> Float[Array, " components"]:
    """Numbers of uses of all components of one setting in a row."""
    return xp.concatenate([count for _, count in groups])


def step(
    groups: Groups, plan: Plan, grid: Grid, reverse: Bool[Array, ""] | bool, *, moving: bool = False
) -> Steps:
    """One step of every component on the lattice: what :func:`half_curve.half_curve` composes.

    ``moving``: the dominating pair has derivatives in the parameters.
    """
    h = spacing(plan, grid)
    offset = xp.asarray(grid.offset)
    centre = xp.round(grid.centre(plan) / h)
    between = xp.diff(offset)
    gap = xp.maximum(xp.append(between, 1.0), xp.append(1.0, between))
    points = _Points(offset, gap, h, plan.tilt, reverse)
    laws, masses, at = [], [], 0
    on_lattice: Any = 0.0
    own: Any = 0.0
    attacked: Any = 0.0
    for mechanism, count in groups:
        here = slice(at, at + count.shape[0])
        at += count.shape[0]
        mine, infinity = xp.vmap(lambda *of: _component(*of, points, moving))(
            mechanism, centre[here], plan.scale[here], plan.end[here]
        )
        on_lattice = on_lattice + xp.sum(
            count * xp.log1p(-xp.minimum(infinity.on_lattice, 1.0 - 1e-16))
        )
        own = own + xp.sum(count * xp.log1p(-xp.exp(infinity.log_own)))
        masses.append(infinity.log_own)
        attacked = attacked + xp.sum(count * xp.log1p(-infinity.attacked))
        laws.append(mine)
    log_infinity_mass = infinity_mass(own, xp.concatenate(masses), uses(groups))
    stacked = laws[0] if len(laws) == 1 else jax.tree.map(lambda *x: xp.concatenate(x), *laws)
    found = Steps(stacked, on_lattice, log_infinity_mass, attacked, centre)
    return found if moving or not blurred(grid) else _with_blur(found, blur(plan, offset, gap, h))


def _with_blur(steps: Steps, found: Blur) -> Steps:
    """The steps, and what blurs them behind them."""
    behind = Laws(found.dominating, found.attack_p, found.attack_q)
    laws = jax.tree.map(lambda a, b: xp.concatenate([a, xp.stack([b])]), steps.laws, behind)
    return steps._replace(laws=laws, centre=xp.append(steps.centre, 0.0), more=found.uses)


def _component(
    mechanism: Mechanism,
    centre: Float[Array, ""],
    log_scale: Float[Array, ""],
    end: Float[Array, ""],
    points: _Points,
    moving: bool,
) -> tuple[Laws, _Infinity]:
    """One step of one component (unbatched)."""
    _, gap, h, tilt, reverse = points
    ell = h * (centre + points.offset)
    read = xp.where(reverse, -ell[::-1], ell)
    cells, change = mechanism.cells(read, end), None
    if moving and xp.tree_is_jax(mechanism):
        atoms = mechanism.atoms(read)
        change = dominating_change(cells, atoms, read, end, tilt, log_scale, reverse)
        cells = fixed_but_for_ends(cells)
    cells = _oriented(cells, read, end, reverse)
    upper, lost = dominating_weights(
        cells, ell, gap, tilt, log_scale, change, mechanism.sums_to_one
    )
    # (labels take nothing of how cells are split: long lattices have no room for what is not used)
    cells = cells._replace(up=xp.zeros(()), dropped=0.0, share_error=0.0)
    member = mechanism.lower_bound_member()
    attacked = (
        cells if member is mechanism else _oriented(member.cells(read, end), read, end, reverse)
    )
    laws = Laws(upper, *attack_weights(attacked, ell, gap, tilt, member.sums_to_one))
    certain = xp.maximum(xp.exp(attacked.log_q_plus) - attacked.plus_error, 0.0)
    return laws, _Infinity(lost, cells.log_q_plus, certain)


def _oriented(
    cells: Cells,
    read: Float[Array, " points"],
    end: Float[Array, ""],
    reverse: Bool[Array, ""] | bool,
) -> Cells:
    """The cells, or those of the swapped pair."""
    # (a conditional, so that the cells are worked out once and not again in whatever reads them)
    none = xp.zeros_like(cells.up)
    cells = cells._replace(dropped=none, share_error=cells.share_error + none)
    return xp.cond(
        reverse, lambda cells: reverse_cells(cells, read, end), lambda cells: cells, cells
    )
