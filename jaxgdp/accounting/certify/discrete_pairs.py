"""Two finite pairs of one use of a mechanism, from its exact cells: one that dominates it, and one
that is left of it when only the cell of an output is shown.

Losses need not lie on a lattice: whoever composes these pairs needs their moments only."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...numerics.errors import AT_INFINITY, EXP, UNIT
from ...numerics.normal import log1mexp, log_sub
from ...numerics.shapes import Array, Float
from ...pairs.cells import Cells
from .discretisation import WIDEST


class DiscretePair(NamedTuple):
    """Finitely many outcomes of one use, on the host.

    Attributes:
        loss: log Q/P of each, shape (outcomes,).
        log_p: log P of each; log Q is log P + loss.
        error: bound on the relative error of each mass.
        loss_error: bound on the absolute error of each loss.
        p_minus, q_plus: P-mass and Q-mass of what is not among them.
        p_counted, q_counted: the part of these that counts as certainly told from Q, and from P:
            rounded up in a pair that dominates, down in one that is dominated.
    """

    loss: Float[Array, " outcomes"]
    log_p: Float[Array, " outcomes"]
    error: Float[Array, " outcomes"]
    loss_error: Float[Array, " outcomes"]
    p_minus: float
    q_plus: float
    p_counted: float
    q_counted: float

    def swapped(self) -> DiscretePair:
        """Q against P."""
        back = slice(None, None, -1)
        log_q = self.log_p + self.loss
        error = self.error + self.loss_error + UNIT * np.abs(log_q)
        columns = (-self.loss, log_q, error, self.loss_error)
        beyond = (self.q_plus, self.p_minus, self.q_counted, self.p_counted)
        return DiscretePair(*(c[back] for c in columns), *beyond)


def dominating_pair(cells: Cells, ell: Float[Array, " points"]) -> DiscretePair:
    """Connect the dots (Doroshenko et al. 2022), as ``discretisation.dominating_weights`` does it,
    in logs and without a tilt.

    Args:
        cells: between the points, none of them open, of a pair that is not swapped.
        ell: increasing points.

    Method: docs/method/limit.md#finite-pairs
    Method: docs/method/limit.md#wide-cells
    """
    log_x, log_y = np.asarray(cells.log_x, float), np.asarray(cells.log_y, float)
    at_first = min(log_y[0] - ell[0], log_x[0])
    split = _split(cells, ell)
    log_p = np.logaddexp(np.append(at_first, split.up), np.append(split.stays, log_x[-1]))
    roundoff, jitter = (_larger_neighbour(a) for a in (cells.roundoff, cells.jitter))
    error = UNIT * (roundoff + jitter + 4.0) + float(cells.uncertain) + np.append(0.0, split.error)
    q_plus = float(np.exp(log_sub(log_y[-1], log_x[-1] + ell[-1])))
    p_minus = float(np.exp(log_sub(log_x[0], at_first)))
    units = np.broadcast_to(np.asarray(cells.roundoff, float), log_x.shape)
    first, last = (UNIT * (units[end] + 8.0) + float(cells.uncertain) for end in (0, -1))
    q_counted = q_plus + 2.0 * last * float(np.exp(log_y[-1])) + float(cells.lost)
    p_counted = p_minus + 2.0 * first * float(np.exp(log_x[0]))
    columns, some = (ell, log_p, error, np.zeros_like(ell)), log_p > -np.inf
    beyond = p_minus, q_plus, p_counted, q_counted
    return DiscretePair(*(c[some] for c in columns), *beyond)


class _Split(NamedTuple):
    """Of each cell between two points, the logs of the P-mass that moves up and of what stays, and
    a bound on the relative error of the first beside those of the cell's masses."""

    up: Float[Array, " cells"]
    stays: Float[Array, " cells"]
    error: Float[Array, " cells"]


def _split(cells: Cells, ell: Float[Array, " points"]) -> _Split:
    """By the shares of the cells; in a cell from a to b so wide that its share may be no double, by
    the logs of its masses: e^{−b}·(y − e^a·x) moves up.
    """
    log_x, log_y = (np.asarray(a, float)[1:-1] for a in (cells.log_x, cells.log_y))
    share, wide = np.asarray(cells.up, float), np.diff(ell) > WIDEST
    with np.errstate(divide="ignore", invalid="ignore"):
        up, stays = log_x + np.log(share), log_x + np.log1p(-share)
        if not np.any(wide):
            return _Split(up, stays, np.zeros_like(up))
        low, high = ell[:-1], ell[1:]
        units = np.asarray(cells.roundoff + cells.jitter, float) + np.zeros(len(ell) + 1)
        off = 2.0 * UNIT * (units[1:-1] + 4.0 + np.abs(log_y) + np.abs(log_x) + np.abs(low))
        off = off + 2.0 * float(cells.uncertain)
        # (y/x is at least e^a: what rounding leaves below is no more than it may be above)
        above = np.maximum(np.where(log_x > -np.inf, log_y - log_x - low, np.inf), off)
        none = log_y == -np.inf
        of_wide = np.where(none, -np.inf, log_y + log1mexp(np.where(none, -1.0, -above)) - high)
        error = np.where(np.isfinite(above) & wide, off / above, 0.0)
    return _Split(np.where(wide, of_wide, up), np.where(wide, log_x, stays), error)


def _larger_neighbour(a: Array) -> Float[np.ndarray, " points"]:
    a = np.asarray(a, float) + np.zeros(1)
    return np.maximum(a[:-1], a[1:])


def coarsened_pair(cells: Cells, ell: Float[Array, " points"]) -> DiscretePair:
    """What is left of a mechanism that shows the cell of its output only: its masses are those of
    the cells, and its losses the logs of their quotients.

    A function of the output is never more revealing than the output. The loss of an interior cell
    follows from the share that connect-the-dots moves up, y/x = e^a + up·(e^b − e^a), which keeps
    the digits of a loss that is next to 0.

    Method: docs/method/limit.md#finite-pairs
    """
    log_x, log_y = np.asarray(cells.log_x, float).copy(), np.asarray(cells.log_y, float).copy()
    p_minus, q_plus = float(np.exp(cells.log_p_minus)), float(np.exp(cells.log_q_plus))
    if p_minus > 0.0:
        log_x[0] = log_sub(log_x[0], cells.log_p_minus)
    if q_plus > 0.0:
        log_y[-1] = log_sub(log_y[-1], cells.log_q_plus)
    some = (log_x > -np.inf) & (log_y > -np.inf)
    step = np.diff(ell)
    with np.errstate(invalid="ignore"):
        narrow = np.log1p(np.asarray(cells.up, float) * np.expm1(np.minimum(step, WIDEST)))
        inside = np.where(step > WIDEST, log_y[1:-1] - log_x[1:-1], ell[:-1] + narrow)
        loss = np.concatenate([log_y[:1] - log_x[:1], inside, log_y[-1:] - log_x[-1:]])
    units = np.asarray(cells.roundoff, float) + np.asarray(cells.jitter, float)
    error = UNIT * (units + 4.0) + float(cells.uncertain)
    size = np.concatenate([[1.0], step + np.abs(ell[:-1]) + np.abs(ell[1:]), [1.0]])
    loss_error = 4.0 * error * size + EXP * np.abs(np.where(some, loss, 0.0))
    columns = (loss, log_x, error, loss_error)
    # (what only one of both has, by rounding, is of no use to whoever attacks)
    p_left, q_left = (float(np.sum(np.exp(a[~some]))) for a in (log_x, log_y))
    counted = (p_minus * (1.0 - AT_INFINITY), q_plus * (1.0 - AT_INFINITY))
    return DiscretePair(*(c[some] for c in columns), p_minus + p_left, q_plus + q_left, *counted)
