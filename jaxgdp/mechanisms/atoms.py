"""Privacy losses on atoms: exact cells and quadrature nodes for every mechanism with discrete losses."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from .cells import Cells

_NODES = 128  # most nodes kept for steering
_PLACE = 2e-15  # relative error of an atom's loss or of a lattice point, with room


def _log_sums(log_mass, index, number):
    """log Σ e^{log_mass} of the atoms by cell (−inf where none), and each cell's largest exponent (finite)."""
    top = jnp.full((number,), -jnp.inf).at[index].max(log_mass)
    top = jnp.where(top > -jnp.inf, top, 0.0)
    total = jnp.zeros((number,)).at[index].add(jnp.exp(log_mass - top[index]))
    inside = total > 0.0
    return jnp.where(inside, top + jnp.log(jnp.where(inside, total, 1.0)), -jnp.inf), top


def atom_cells(loss, log_p, log_q, ell, end, *, log_p_minus: Any = -np.inf, log_q_plus: Any = -np.inf) -> Cells:
    """Cells of a pair whose finite privacy losses are atoms (unbatched).

    An atom at loss l between points a < b has the connect-the-dots share (e^l − e^a)/(e^b − e^a) =
    e^{l − b}·(1 − e^{a − l})/(1 − e^{a − b}), and a cell the mean of its atoms' shares, so nothing cancels.

    Args:
        loss: losses of the atoms in any order, shape (atoms,). Atoms without mass on one side, or with a loss that
            is not finite, are left out: their mass belongs into ``log_p_minus`` or ``log_q_plus``.
        log_p, log_q: log masses under P and Q, log_q = log_p + loss up to rounding.
        ell: increasing lattice points, shape (n,).
        end: the first cell whose lower point is at least ``end`` holds everything beyond.
        log_p_minus: log P-mass at loss −∞. log_q_plus: log Q-mass at loss +∞.

    Returns:
        :class:`Cells`.
    """
    number = ell.shape[0]
    real = jnp.isfinite(loss) & (log_p > -jnp.inf) & (log_q > -jnp.inf)
    loss = jnp.where(real, loss, 0.0)
    log_p, log_q = jnp.where(real, log_p, -jnp.inf), jnp.where(real, log_q, -jnp.inf)
    opened = jnp.searchsorted(ell, end) + 1
    # an atom on a lattice point up to rounding belongs below it
    cell = jnp.minimum(jnp.searchsorted(ell, loss - _PLACE * jnp.abs(loss)), opened)
    interior = (cell > 0) & (cell < number)
    lower = jnp.where(interior, ell[jnp.clip(cell - 1, 0, number - 1)], loss - 1.0)
    upper = jnp.where(interior & (cell < opened), ell[jnp.clip(cell, 0, number - 1)], jnp.maximum(loss, lower + 1.0))
    share = jnp.exp(loss - upper) * jnp.expm1(jnp.minimum(lower - loss, 0.0)) / jnp.expm1(lower - upper)
    beyond = interior & (cell >= opened)
    share = jnp.where(beyond, 0.0, jnp.clip(share, 0.0, 1.0))

    log_x, top = _log_sums(log_p, cell, number + 1)
    log_y, _ = _log_sums(log_q, cell, number + 1)
    part = jnp.exp(log_p - top[cell])
    whole = jnp.zeros((number + 1,)).at[cell].add(part)
    moved = jnp.zeros((number + 1,)).at[cell].add(part * share)
    up = jnp.where(whole > 0.0, moved / jnp.where(whole > 0.0, whole, 1.0), 1.0)[1:-1]
    # the open cell's P-mass stays at its lower point; the Q-mass that this leaves over is lost to +∞
    lost = jnp.sum(jnp.where(beyond, -jnp.exp(log_q) * jnp.expm1(jnp.minimum(lower - loss, 0.0)), 0.0))
    lost = lost + 1e-13 * jnp.sum(jnp.where(beyond, jnp.exp(log_q), 0.0))

    atoms = jnp.zeros((number + 1,)).at[cell].add(1.0)
    depth = (
        jnp.zeros((number + 1,))
        .at[cell]
        .max(jnp.where(real, jnp.abs(log_p) + jnp.abs(log_q) + 20.0 * jnp.abs(loss), 0.0))
    )
    # an atom's place between two points is known to the rounding of either
    place = jnp.where(interior, (jnp.abs(loss) + jnp.abs(lower)) / (upper - lower), 0.0)
    jitter = jnp.zeros((number + 1,)).at[cell].max(jnp.where(real, place, 0.0))
    log_x = log_x.at[0].set(jnp.logaddexp(log_x[0], log_p_minus))
    log_y = log_y.at[-1].set(jnp.logaddexp(log_y[-1], log_q_plus))
    minus, plus = jnp.asarray(log_p_minus, dtype=log_x.dtype), jnp.asarray(log_q_plus, dtype=log_x.dtype)
    return Cells(log_x, log_y, up, lost, 8.0 + atoms + jnp.minimum(depth, 1e6), jitter, minus, plus)


def atom_nodes(loss, log_p, nodes=_NODES):
    """Quadrature nodes for planning from atoms in any order: increasing losses and log weights under P (unbatched).

    At most ``nodes`` of them: more atoms are gathered in equal bins of the loss, at their mean under the density √(p·q). Atoms
    without mass or with a loss that is not finite do not count.
    """
    real = jnp.isfinite(loss) & (log_p > -jnp.inf)
    low = jnp.min(jnp.where(real, loss, jnp.inf))
    high = jnp.max(jnp.where(real, loss, -jnp.inf))
    loss, log_p = jnp.where(real, loss, high), jnp.where(real, log_p, -jnp.inf)
    if loss.shape[0] <= nodes:
        order = jnp.argsort(loss)
        return loss[order], log_p[order]
    width = jnp.maximum(high - low, 1e-300) / nodes
    index = jnp.clip(jnp.floor((loss - low) / width), 0, nodes - 1).astype(int)
    log_weight, _ = _log_sums(log_p, index, nodes)
    middle = low + width * (jnp.arange(nodes) + 0.5)
    tilted = log_p + 0.5 * loss
    _, top = _log_sums(tilted, index, nodes)
    part = jnp.exp(tilted - top[index])
    total = jnp.zeros((nodes,)).at[index].add(part)
    offset = jnp.zeros((nodes,)).at[index].add(part * (loss - middle[index]))
    mean = middle + jnp.where(total > 0.0, offset / jnp.where(total > 0.0, total, 1.0), 0.0)
    return mean.at[0].set(low).at[-1].set(high), log_weight
