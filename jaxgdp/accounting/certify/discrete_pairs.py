"""Two finite pairs of one use of a mechanism, from its exact cells: one that dominates it, and one
that is left of it when only the cell of an output is shown.

Losses need not lie on a lattice: whoever composes these pairs needs their moments only."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...numerics.errors import AT_INFINITY, EXP, UNIT
from ...numerics.normal import log_sub
from ...numerics.shapes import Array, Float
from ...pairs.cells import Cells


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
    """
    log_x, log_y = np.asarray(cells.log_x, float), np.asarray(cells.log_y, float)
    up = np.asarray(cells.up, float)
    with np.errstate(divide="ignore"):
        moved = np.concatenate([[0.0], np.log(up), [-np.inf]])
        stays = np.concatenate([np.log1p(-up), [0.0]])
    at_first = min(log_y[0] - ell[0], log_x[0])
    below = np.concatenate([[at_first], log_x[1:-1]]) + moved[:-1]
    log_p = np.logaddexp(below, log_x[1:] + stays)
    roundoff, jitter = (_larger_neighbour(a) for a in (cells.roundoff, cells.jitter))
    error = UNIT * (roundoff + jitter + 4.0) + float(cells.uncertain)
    q_plus = float(np.exp(log_sub(log_y[-1], log_x[-1] + ell[-1])))
    p_minus = float(np.exp(log_sub(log_x[0], at_first)))
    units = np.broadcast_to(np.asarray(cells.roundoff, float), log_x.shape)
    first, last = (UNIT * (units[end] + 8.0) + float(cells.uncertain) for end in (0, -1))
    q_counted = q_plus + 2.0 * last * float(np.exp(log_y[-1])) + float(cells.lost)
    p_counted = p_minus + 2.0 * first * float(np.exp(log_x[0]))
    columns, some = (ell, log_p, error, np.zeros_like(ell)), log_p > -np.inf
    beyond = p_minus, q_plus, p_counted, q_counted
    return DiscretePair(*(c[some] for c in columns), *beyond)


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
    inside = ell[:-1] + np.log1p(np.asarray(cells.up, float) * np.expm1(step))
    with np.errstate(invalid="ignore"):
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
