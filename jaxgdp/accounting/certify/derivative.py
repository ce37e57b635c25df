"""How a dominating pair on a fixed lattice changes with mechanisms' parameters and uses.

The functions here return zeros whose derivative is meant: added to a value, they leave it as it is
and give it the right slope.

Connect-the-dots is linear in the masses of a cell (a, b]: of its P-mass x and Q-mass y, (y −
e^a·x)/(e^b − e^a) goes up to b. So is its derivative, as long as the cells' masses change smoothly.
An atom at loss l with Q-mass q that moves by dl changes y by q·dl at fixed Q-mass, which carries
mass up with the chord's slope, S_c = (point mass at b − point mass at a)/(e^b − e^a): right to
first order in the width of a cell if the atom is at an end of it, and different to the left and to
the right of a lattice point, on which an atom often lies. Slopes are therefore taken between the
middles of neighbouring cells, as a parabola has them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from ...numerics.shapes import Array, Bool, Float, Int
from ...pairs.cells import Cells


def _carried(value: Array) -> Array:
    """Zero, with the derivative of ``value``; zero without one where it is not finite."""
    fixed = jax.lax.stop_gradient(value)
    return jnp.where(jnp.isfinite(fixed), value - jnp.where(jnp.isfinite(fixed), fixed, 0.0), 0.0)


def _exp(exponent: Array) -> Array:
    return jnp.exp(jnp.minimum(jax.lax.stop_gradient(exponent), 700.0))


def dominating_change(
    cells: Cells,
    atoms: tuple[Int[Array, " atoms"], Float[Array, " atoms"], Float[Array, " atoms"]] | None,
    ell: Float[Array, " points"],
    end: Float[Array, ""],
    tilt: Float[Array, ""],
    log_scale: Float[Array, ""],
    reverse: Bool[Array, ""] | bool,
) -> Float[Array, " points"]:
    """Change of the dominating pair's tilted masses at ``ell``, as it is or (``reverse``) swapped.

    Args:
        cells: masses between the increasing points ``ell`` of the pair as it is, with derivatives.
        atoms: cells, losses (with derivatives) and log Q-masses of what moves in one piece, or
            None.
        end: the first cell whose lower point is at least ``end`` is open: its P-mass stays at that
            point.
        tilt: P-masses of the pair asked for are multiplied by e^{tilt·ℓ − log_scale}.
        log_scale: see ``tilt``.
        reverse: whether that is the swapped pair, on the lattice −ℓ read backwards.

    Returns:
        Zeros, shape (n,), in the order of the lattice of the pair asked for.
    """
    n = ell.shape[0]
    # by what a P-mass at each point is multiplied; the P-mass of the swapped pair is the Q-mass
    scale = jnp.where(reverse, 1.0 - tilt, tilt) * ell - log_scale
    lower, width = ell[:-1], jnp.diff(ell)
    dx, dy = _carried(cells.log_x), _carried(cells.log_y)
    stays = _exp(cells.log_x[1:-1] + scale[:-1]) * dx[1:-1]
    up = _exp(cells.log_y[1:-1] - lower + scale[:-1]) * dy[1:-1] - stays
    up = jnp.where(lower >= end, 0.0, up)
    if atoms is not None:
        up = up + _between_middles(*atoms, ell, scale)
    up = up / jnp.expm1(width)
    first = _exp(cells.log_y[0] - ell[0] + scale[0]) * dy[0]
    last = _exp(cells.log_x[-1] + scale[-1]) * dx[-1]
    low = jnp.append(stays - up, last)
    change = low + jnp.append(first, up * jnp.exp(jnp.diff(scale)))
    assert change.shape == (n,)
    return jnp.where(reverse, change[::-1], change)


def fixed_but_for_ends(cells: Cells) -> Cells:
    """The cells without derivatives, except those of what goes to the infinities."""
    ends = jnp.arange(cells.log_x.shape[0]) % (cells.log_x.shape[0] - 1) == 0
    fixed = jax.tree.map(jax.lax.stop_gradient, cells)
    log_x, log_y = (
        jnp.where(ends, a, b) for a, b in ((cells.log_x, fixed.log_x), (cells.log_y, fixed.log_y))
    )
    infinity = {"log_p_minus": cells.log_p_minus, "log_q_plus": cells.log_q_plus}
    return fixed._replace(log_x=log_x, log_y=log_y, lost=cells.lost, **infinity)


def _between_middles(
    cell: Int[Array, " atoms"],
    loss: Float[Array, " atoms"],
    log_q: Float[Array, " atoms"],
    ell: Float[Array, " points"],
    scale: Float[Array, " points"],
) -> Float[Array, " cells"]:
    """What moving atoms carry up in cells beyond their chord, times e^b − e^a, over e^a.

    At the share t of its cell an atom's slope is (1 − |t − ½|) of that cell's and |t − ½| of that
    of the nearer neighbour."""
    cell = cell - 1
    count = ell.shape[0] - 1
    moved = _carried(loss)
    known = (cell >= 1) & (cell < count - 1) & (log_q > -jnp.inf)
    cell = jnp.clip(cell, 1, count - 2)
    t = jax.lax.stop_gradient(loss - ell[cell]) / (ell[cell + 1] - ell[cell])
    off = jnp.where(known, jnp.clip(t, 0.0, 1.0) - 0.5, 0.0)
    near = cell + jnp.where(off > 0.0, 1, -1)

    def carried(at):
        return jnp.where(
            known,
            _exp(jnp.where(known, log_q, -jnp.inf) - ell[at] + scale[at]) * jnp.abs(off) * moved,
            0.0,
        )

    return jnp.zeros(count).at[near].add(carried(near)).at[cell].add(-carried(cell))


def uses_change(
    count: Float[Array, " components"],
    log_total: Float[Array, " components"],
    log_abs: Float[Array, "components frequencies"],
    arg: Float[Array, "components frequencies"],
    centre: Float[Array, " components"],
    size: int,
) -> tuple[Float[Array, " frequencies"], Float[Array, " frequencies"]]:
    """Change of the log modulus of Π (M·φ)^T and of its angle with T, at frequencies 2πk/size.

    The derivative in T is taken as half the difference between one more use and one less, which is
    (Mφ)^T·sinh(log Mφ). For many uses that is (Mφ)^T·log Mφ wherever φ^T counts. Where losses are
    whole multiples of a unit, φ comes back to |φ| = 1 at high frequencies: there log φ has no
    branch that would mean anything, and fractions of a use no law.

    Args:
        count: T of each component, with derivatives, shape (components,).
        log_total: log M, what the masses of each component were divided by.
        log_abs, arg: log|φ| and arg φ relative to the centres, shape (components, frequencies).
        centre: centres of the components in lattice points.
        size: points of the circular lattice.

    Returns:
        Two arrays of zeros, shape (frequencies,).
    """
    more = _carried(count)
    k = np.arange(log_abs.shape[-1], dtype=float)
    turns = k * jnp.mod(centre, size)[:, None] / size
    angle = arg - 2.0 * jnp.pi * (turns - jnp.floor(turns))
    # (where |φ| is as small as that, φ^T is nothing)
    exponent = jnp.maximum(log_abs, -30.0) + log_total[:, None]
    changes = jnp.sinh(exponent) * jnp.cos(angle), jnp.cosh(exponent) * jnp.sin(angle)
    power, turned = (more @ jax.lax.stop_gradient(change) for change in changes)
    return power, turned
