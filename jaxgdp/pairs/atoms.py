"""Privacy losses on atoms: exact cells and quadrature nodes for discrete losses."""

from __future__ import annotations

import numpy as np

from ..numerics import namespace as xp
from ..numerics.errors import CELL, LEFT_OVER, PLACE, UNIT
from ..numerics.shapes import Array
from .cells import Cells, at_ends, exp_error

_NODES = 128  # most nodes kept for steering


def _log_sums(log_mass: Array, index: Array, number: int):
    """log Σ e^{log_mass} of the atoms by cell (−inf where none), and largest exponents."""
    top = xp.at_max(xp.full((number,), -xp.inf), index, log_mass)
    top = xp.where(top > -xp.inf, top, 0.0)
    total = xp.at_add(xp.zeros((number,)), index, xp.exp(log_mass - top[index]))
    inside = total > 0.0
    return xp.where(inside, top + xp.log(xp.where(inside, total, 1.0)), -xp.inf), top


def atom_cell(loss: Array, ell: Array):
    """The cell (of n + 1) of an atom: on a lattice point, up to rounding, the one below."""
    return xp.searchsorted(ell, loss - PLACE * xp.abs(loss))


def atom_cells(
    loss: Array,
    log_p: Array,
    log_q: Array,
    ell: Array,
    end: Array | float,
    *,
    log_p_minus: Array | float = -np.inf,
    log_q_plus: Array | float = -np.inf,
    roundoff: Array | float = 0.0,
) -> Cells:
    """Cells of a pair whose finite privacy losses are atoms (unbatched).

    An atom at loss l between points a < b has the connect-the-dots share (e^l − e^a)/(e^b − e^a) =
    e^{l − b}·(1 − e^{a − l})/(1 − e^{a − b}), and a cell the mean of its atoms' shares, so nothing
    cancels.

    Args:
        loss: losses of the atoms in any order, shape (atoms,). Atoms without mass on one side, or
            with a loss that is not finite, are left out: their mass belongs into ``log_p_minus`` or
            ``log_q_plus``.
        log_p, log_q: log masses under P and Q, log_q = log_p + loss up to rounding.
        ell: increasing lattice points, shape (n,).
        end: the first cell whose lower point is at least ``end`` holds everything beyond.
        log_p_minus: log P-mass at loss −∞.
        log_q_plus: log Q-mass at loss +∞.
        roundoff: rounding of masses and losses in units, beyond what their size makes unavoidable.

    Returns:
        :class:`Cells`.

    Method: docs/method/dominating.md#split
    """
    number = ell.shape[0]
    real = xp.isfinite(loss) & (log_p > -xp.inf) & (log_q > -xp.inf)
    loss = xp.where(real, loss, 0.0)
    log_p, log_q = xp.where(real, log_p, -xp.inf), xp.where(real, log_q, -xp.inf)
    opened = xp.searchsorted(ell, end) + 1
    cell = xp.minimum(atom_cell(loss, ell), opened)
    interior = (cell > 0) & (cell < number)
    lower = xp.where(interior, ell[xp.clip(cell - 1, 0, number - 1)], loss - 1.0)
    upper = xp.where(
        interior & (cell < opened), ell[xp.clip(cell, 0, number - 1)], xp.maximum(loss, lower + 1.0)
    )
    share = xp.exp(loss - upper) * xp.expm1(xp.minimum(lower - loss, 0.0)) / xp.expm1(lower - upper)
    beyond = interior & (cell >= opened)
    share = xp.where(beyond, 0.0, xp.clip(share, 0.0, 1.0))

    log_x, top = _log_sums(log_p, cell, number + 1)
    log_y, _ = _log_sums(log_q, cell, number + 1)
    part = xp.exp(log_p - top[cell])
    whole = xp.at_add(xp.zeros((number + 1,)), cell, part)
    moved = xp.at_add(xp.zeros((number + 1,)), cell, part * share)
    up = xp.where(whole > 0.0, moved / xp.where(whole > 0.0, whole, 1.0), 1.0)[1:-1]
    # the open cell's P-mass stays at its lower point; the Q-mass that this leaves over is lost to
    # +∞
    lost = xp.sum(xp.where(beyond, -xp.exp(log_q) * xp.expm1(xp.minimum(lower - loss, 0.0)), 0.0))
    # (each term is known to the rounding of its log and of the loss)
    known = LEFT_OVER + UNIT * exp_error(
        CELL + roundoff + xp.abs(xp.where(beyond, log_q, 0.0)) + 2.0 * xp.abs(loss) + xp.abs(lower)
    )
    lost_error = xp.sum(xp.where(beyond, xp.exp(log_q) * known, 0.0))

    atoms = xp.at_add(xp.zeros((number + 1,)), cell, 1.0)
    size = xp.where(real, xp.abs(log_p) + xp.abs(log_q) + 20.0 * xp.abs(loss), 0.0)
    depth = xp.at_max(xp.zeros((number + 1,)), cell, size)
    # an atom's place between two points is known to the rounding of either
    place = xp.where(interior, (xp.abs(loss) + xp.abs(lower)) / (upper - lower), 0.0)
    jitter = xp.at_max(xp.zeros((number + 1,)), cell, xp.where(real, place, 0.0))
    log_x = xp.at_set(log_x, 0, xp.logaddexp(log_x[0], log_p_minus))
    log_y = xp.at_set(log_y, -1, xp.logaddexp(log_y[-1], log_q_plus))
    minus, plus = (
        xp.asarray(log_p_minus, dtype=log_x.dtype),
        xp.asarray(log_q_plus, dtype=log_x.dtype),
    )
    rounded = xp.asarray(CELL + roundoff + atoms + exp_error(depth))
    rounded = at_ends(rounded, minus, plus)
    return Cells(log_x, log_y, up, lost, lost_error, rounded, jitter, minus, plus)


def atom_nodes(loss: Array, log_p: Array, nodes: int = _NODES):
    """Quadrature nodes for planning from atoms: increasing losses and log weights under P.

    At most ``nodes`` of them: more atoms are gathered in equal bins of the loss, at their mean
    under the density √(p·q). Atoms without mass or with a loss that is not finite do not count."""
    real = xp.isfinite(loss) & (log_p > -xp.inf)
    low = xp.min(xp.where(real, loss, xp.inf))
    high = xp.max(xp.where(real, loss, -xp.inf))
    loss, log_p = xp.where(real, loss, high), xp.where(real, log_p, -xp.inf)
    if loss.shape[0] <= nodes:
        order = xp.argsort(loss)
        return loss[order], log_p[order]
    width = xp.maximum(high - low, 1e-300) / nodes
    index = xp.clip(xp.floor((loss - low) / width), 0, nodes - 1).astype(int)
    log_weight, _ = _log_sums(log_p, index, nodes)
    middle = low + width * (xp.arange(nodes) + 0.5)
    tilted = log_p + 0.5 * loss
    _, top = _log_sums(tilted, index, nodes)
    part = xp.exp(tilted - top[index])
    total = xp.at_add(xp.zeros((nodes,)), index, part)
    offset = xp.at_add(xp.zeros((nodes,)), index, part * (loss - middle[index]))
    mean = middle + xp.where(total > 0.0, offset / xp.where(total > 0.0, total, 1.0), 0.0)
    return xp.at_set(xp.at_set(mean, 0, low), -1, high), log_weight
