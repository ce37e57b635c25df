"""Cells of a loss spread along the axis: each stretch is an atom at its log mass ratio."""

from __future__ import annotations

import numpy as np

from ..numerics import namespace as xp
from ..numerics.errors import LEFT_OVER, STRETCH, UNIT
from ..numerics.shapes import Array
from .cells import Cells, at_ends, exp_error, left_over


def position(loss: Array, lower: Array, upper: Array):
    """(e^loss − e^lower)/(e^upper − e^lower), cut to [0, 1]: the connect-the-dots share of an atom.

    Method: docs/method/dominating.md#split
    """
    top = xp.exp(xp.minimum(loss - upper, 0.0)) * xp.expm1(xp.minimum(lower - loss, 0.0))
    return xp.clip(top / xp.expm1(lower - upper), 0.0, 1.0)


def stretch_cells(
    log_x: Array,
    loss: Array,
    ell: Array,
    end: Array | float,
    *,
    share: Array | None = None,
    roundoff: Array | float = STRETCH,
    jitter: Array | None = None,
    minus: Array | float = -np.inf,
    plus: Array | float = -np.inf,
) -> Cells:
    """Cells from the P-mass and log(Q-mass/P-mass) of each (unbatched).

    Args:
        log_x: log P-masses of the cells between the points ``ell``, shape (n + 1,), without mass at
            −∞; −inf where empty.
        loss: log of Q-mass over P-mass of each cell, shape (n + 1,); any number where empty.
        end: the first cell whose lower point is at least ``end`` is opened: it holds everything
            beyond.
        share: connect-the-dots shares of the interior cells, where the losses are not accurate
            enough for them.
        roundoff, jitter: rounding of the masses and of the losses in units of the machine epsilon,
            beyond what their size makes unavoidable; scalars or shape (n + 1,).
        minus, plus: log P-mass at −∞, log Q-mass at +∞.

    Returns:
        :class:`Cells`.

    Method: docs/method/dominating.md#split
    """
    n = ell.shape[0]
    some = log_x > -xp.inf
    loss, log_mass = xp.where(some, loss, 0.0), log_x
    log_y = log_x + loss
    up = position(loss[1:-1], ell[:-1], ell[1:]) if share is None else share
    up = xp.where(some[1:-1], up, 1.0)

    # the open cell: P-mass beyond stays at its lower end, and the Q-mass that this leaves over is
    # lost to +∞
    first = xp.minimum(xp.searchsorted(ell, end), n)  # its lower point
    cell = xp.arange(n + 1)
    beyond = (cell > first) & (first < n - 1)
    gather = lambda a: xp.logsumexp(xp.where(beyond, a, -xp.inf))
    all_x, all_y = gather(log_x), gather(log_y)
    at = xp.minimum(first + 1, n)
    log_x = xp.where(beyond, xp.where(cell == at, all_x, -xp.inf), log_x)
    log_y = xp.where(beyond, xp.where(cell == at, all_y, -xp.inf), log_y)
    up = xp.where(beyond[1:-1], 0.0, up)

    depth = xp.where(some, xp.abs(xp.where(some, log_mass, 0.0)) + xp.abs(loss), 0.0)
    roundoff = roundoff + exp_error(2.0 * depth)
    # (the sum of several masses is as well known as their mean)
    part_of = lambda a, whole: xp.exp(xp.where(beyond & some, a - whole, -xp.inf))
    means = [
        xp.sum(part_of(*one) * roundoff)
        for one in (
            (log_mass, xp.maximum(all_x, -1e300)),
            (log_mass + loss, xp.maximum(all_y, -1e300)),
        )
    ]
    worst = xp.maximum(*means)
    of_masses: Array = xp.where(beyond, worst, roundoff)
    lost, lost_error = left_over(
        all_x, all_y, ell[xp.minimum(first, n - 1)], LEFT_OVER / UNIT + worst
    )
    gap = xp.concatenate([xp.full((1,), xp.inf), xp.diff(ell), xp.full((1,), xp.inf)])
    place = STRETCH + (0.0 if jitter is None else jitter)
    near = xp.concatenate([xp.zeros((1,)), xp.abs(ell)])
    rounded = xp.where(some, place + (place + 2.0 * (xp.abs(loss) + near)) / gap, 0.0)
    log_x = xp.at_set(log_x, 0, xp.logaddexp(log_x[0], minus))
    log_y = xp.at_set(log_y, -1, xp.logaddexp(log_y[-1], plus))
    minus, plus = xp.asarray(minus, dtype=log_x.dtype), xp.asarray(plus, dtype=log_x.dtype)
    of_masses = at_ends(of_masses, minus, plus)
    return Cells(log_x, log_y, up, lost, lost_error, of_masses, rounded, minus, plus)
