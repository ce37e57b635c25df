"""Exact masses of the cells of a loss lattice: a mechanism gives them to the discretisation."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..numerics import namespace as xp
from ..numerics.errors import CELL, UNIT
from ..numerics.shapes import Array

_MOST = 100.0  # log of the largest relative error that is told from an infinite one


class Cells(NamedTuple):
    """The privacy loss distribution as masses of the n + 1 cells between n lattice points.

    Cell 0 is everything up to the first point, cell n everything beyond the last one; cell c lies
    between points c − 1 and c.

    Attributes:
        log_x: log P-mass of each cell, shape (n + 1,); −inf where empty.
        log_y: log Q-mass of each cell, shape (n + 1,).
        up: share of the P-mass of each interior cell that connect-the-dots moves to the cell's
            upper end, (y/x − e^{lower})/(e^{upper} − e^{lower}), shape (n − 1,), in [0, 1].
        lost: Q-mass that connect-the-dots sends to +∞ because the lattice stops resolving the tail
            (truncation; scalar).
        lost_error: bound on the error of ``lost``, absolute (scalar). It has no default: a mass at
            +∞ is read as it is, and no other bound covers it.
        roundoff: bound on the relative rounding error of the masses in units of the machine
            epsilon, shape (n + 1,).
        jitter: the same for errors that neighbouring cells share with opposite signs (the position
            of a cell's edge).
        log_p_minus: log of the P-mass at loss −∞, impossible under Q (infinity mass); part of
            ``log_x[0]``. −inf where there is none.
        log_q_plus: log of the Q-mass at loss +∞, impossible under P; part of ``log_y[n]``.
        dropped: share of the P-mass of each interior cell that connect-the-dots sends to −∞, shape
            (n − 1,) or a number.
        uncertain: bound on the relative error of every mass, a number, on top of ``roundoff``. It
            is not taken for noise of single masses: the composition of masses within 1 ± e of the
            true ones is within (1 ± e)^T of the true composition.
        share_error: bound on the error of ``up`` in units of the machine epsilon, shape (n − 1,) or
            a number, where the exact P-masses add up to 1, and so do the exact Q-masses; ∞ where
            that is not known.
        minus_error, plus_error: bounds on what the masses at −∞ and at +∞ are rounded up by,
            absolute numbers: the lower side counts on that much less.

    Method: docs/method/rounding.md#shared
    """

    log_x: Array
    log_y: Array
    up: Array
    lost: Array
    lost_error: Array
    roundoff: Array
    jitter: Array
    log_p_minus: Array | float = -np.inf
    log_q_plus: Array | float = -np.inf
    dropped: Array | float = 0.0
    uncertain: Array | float = 0.0
    share_error: Array | float = np.inf
    minus_error: Array | float = 0.0
    plus_error: Array | float = 0.0


class LeftOver(NamedTuple):
    """Q-mass that an open cell sends to +∞, and a bound on its error (scalars or one each)."""

    lost: Array
    error: Array


def left_over(log_x: Array, log_y: Array, point: Array, roundoff: Array) -> LeftOver:
    """The Q-mass y − e^{point}·x that is left of an open cell whose P-mass stays at its lower end.

    The difference is one of two masses that each have a rounding error of their own size, so it is
    known to that and not to its own size. An error in the place of the cell's edge does not count:
    no other edge leaves more Q-mass over, so the difference changes by the square of it.

    Args:
        log_x, log_y: log P-mass and log Q-mass of the open cell, −inf where it is empty.
        point: its lower end.
        roundoff: bound on the relative error of both masses, in units.

    Method: docs/method/rounding.md#at-infinity
    """
    y, at_point = xp.exp(log_y), xp.exp(xp.minimum(log_x + point, 700.0))
    # (the sum of both logs is rounded, too)
    size = xp.where(log_x > -xp.inf, xp.abs(xp.where(log_x > -xp.inf, log_x, 0.0) + point), 0.0)
    each = UNIT * exp_error(CELL + roundoff + size)
    return LeftOver(xp.maximum(y - at_point, 0.0), each * (y + at_point))


def at_ends(roundoff: Array, minus: Array | float, plus: Array | float) -> Array:
    """Rounding of the masses, in units, with that of what both ends hold at an infinity: a log is
    rounded by units of its own size, and so is its mass.

    Args:
        roundoff: of the masses without it, shape (n + 1,).
        minus, plus: log P-mass at −∞ and log Q-mass at +∞, −∞ where there is none.
    """
    cell = xp.arange(roundoff.shape[0])
    first, last = (xp.where(log > -xp.inf, xp.abs(log), 0.0) for log in (minus, plus))
    size = xp.where(cell == 0, first, 0.0) + xp.where(cell == cell[-1], last, 0.0)
    return roundoff + exp_error(2.0 * size)


def exp_error(units: Array) -> Array:
    """Relative error, in units, of e to the power of a number that is off by so many units.

    It is as much, unless that is no longer small: then e^{error} − 1.
    """
    return xp.expm1(xp.minimum(UNIT * units, _MOST)) / UNIT


def reverse(cells: Cells, ell: Array, end: Array | float = np.inf) -> Cells:
    """The cells of the swapped pair (Q against P), on the lattice −ℓ read backwards.

    P and Q change places and so do the ends of each cell. The share moved up in the mirrored cell
    is the share of Q-mass that the original split left at the lower end: 1 − up' =
    up·x·e^{upper}/y, so up' = (1 − up)·e^{lower}·x/y. The cell that is open beyond ``end`` keeps at
    its near end the P-mass that belongs to its Q-mass there; the rest, lost to +∞ before, is now
    P-mass that is nearly impossible under Q, and goes to −∞: left at the far end it would bring
    Q-mass along that there is not.

    Method: docs/method/dominating.md#reverse
    """
    log_x, log_y = cells.log_x[1:-1], cells.log_y[1:-1]
    some = log_y > -xp.inf
    log_ratio = xp.where(some, ell[:-1] + log_x - xp.where(some, log_y, 0.0), xp.inf)
    moderate = log_ratio < 700.0
    ratio = xp.exp(xp.where(moderate, log_ratio, 0.0))
    up = xp.where(moderate, xp.clip((1.0 - cells.up) * ratio, 0.0, 1.0), 1.0)
    return Cells(
        cells.log_y[::-1],
        cells.log_x[::-1],
        up[::-1],
        xp.zeros(()),
        xp.zeros(()),
        cells.roundoff[::-1],
        cells.jitter[::-1],
        cells.log_q_plus,
        cells.log_p_minus,
        xp.where((ell[:-1] >= end) & (cells.up == 0.0), 1.0 - up, 0.0)[::-1],
        cells.uncertain,
        # (up' is a product of 1 − up and of a ratio next to 1)
        (cells.share_error + 2.0 * cells.roundoff[1:-1] + 8.0)[::-1],
        cells.plus_error,
        cells.minus_error,
    )
