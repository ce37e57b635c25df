"""The largest μ of one use at any FPR, for lack of a closed form, and nodes for steering."""

from __future__ import annotations

from typing import Protocol

from ..numerics import namespace as xp
from ..numerics.errors import PEAK
from ..numerics.normal import log_sub, ndtri_exp
from ..numerics.shapes import Array
from .cells import Cells

_POINTS = 1024  # of the lattice on which a continuous loss is bounded
_NODES = 256


class Bounded(Protocol):
    """A mechanism of bounded loss."""

    def loss_bounds(self) -> tuple[Array, Array]:
        """Smallest and largest finite privacy loss."""
        ...

    def cells(self, ell: Array, end: Array | float) -> Cells:
        """Masses of the cells between points."""
        ...


def _cumulative(log_mass: Array):
    """log of the sums over all entries up to and including each one."""
    return xp.cumulative_logaddexp(log_mass)


def largest_mu(log_p: Array, log_q: Array):
    """max of Φ⁻¹(TPR) − Φ⁻¹(α) over all tests that reject above a threshold, rounded up.

    The trade-off curve is straight between those, where a Gaussian curve is convex, so no other
    point has more.

    Args:
        log_p, log_q: log masses at losses in increasing order, each summing to one; −inf for no
            mass.
    """
    none = xp.full((1,), -xp.inf)
    above = lambda a: xp.concatenate([_cumulative(a[::-1])[::-1], none])[1:-1]
    below = lambda a: _cumulative(a)[:-1]
    quantile = lambda up, low: xp.where(
        up < low, ndtri_exp(xp.minimum(up, 0.0)), -ndtri_exp(xp.minimum(low, 0.0))
    )
    rates = [(above(a), below(a)) for a in (log_p, log_q)]
    inside = xp.stack([rate > -xp.inf for pair in rates for rate in pair]).all(axis=0)
    z_alpha, z_tpr = (
        quantile(xp.where(inside, up, -1.0), xp.where(inside, low, -1.0)) for up, low in rates
    )
    quantile, each = PEAK
    room = quantile * (xp.abs(z_alpha) + xp.abs(z_tpr)) + each * log_p.shape[0]
    return xp.max(xp.where(inside, z_tpr - z_alpha + room, 0.0))


def bounded_mu(mechanism: Bounded):
    """Upper bound on μ of one use of bounded loss at any FPR, from a dominating pair.

    Connect-the-dots on a lattice between the smallest and the largest loss. ∞ with mass at an
    infinity."""
    low, high = mechanism.loss_bounds()
    width = xp.maximum(high - low, 1e-12 * (1.0 + xp.abs(high) + xp.abs(low)))
    ell = low - 1e-3 * width + 1.002 * width * xp.arange(_POINTS) / (_POINTS - 1)
    cells = mechanism.cells(ell, xp.inf)
    inner = cells.log_x[1:-1]
    log_up = xp.where(cells.up > 0.0, xp.log(xp.where(cells.up > 0.0, cells.up, 1.0)), -xp.inf)
    log_stay = xp.where(cells.up < 1.0, xp.log1p(-xp.where(cells.up < 1.0, cells.up, 0.0)), -xp.inf)
    none = xp.full((1,), -xp.inf)
    log_p = xp.logaddexp(
        xp.concatenate([inner + log_stay, none]), xp.concatenate([none, inner + log_up])
    )
    infinite = (cells.log_p_minus > -xp.inf) | (cells.log_q_plus > -xp.inf)
    return xp.where(infinite, xp.inf, largest_mu(log_p, log_p + ell))


def bounded_nodes(mechanism: Bounded):
    """Quadrature nodes of a bounded loss: the means of cells, finest around loss 0."""
    low, high = mechanism.loss_bounds()
    t = 2.0 * xp.arange(1, _NODES - 1) / (_NODES - 1) - 1.0
    t = 0.1 * t + 0.9 * t**3
    low, high = xp.minimum(low, -1e-9), xp.maximum(high, 1e-9)
    ell = xp.where(t < 0.0, -low * t, high * t)
    cells = mechanism.cells(ell, xp.inf)
    # without what sits at −∞ and +∞
    log_p = xp.at_set(cells.log_x, 0, log_sub(cells.log_x[0], cells.log_p_minus))
    log_q = xp.at_set(cells.log_y, -1, log_sub(cells.log_y[-1], cells.log_q_plus))
    edge = xp.concatenate([low[None], ell, high[None]])
    some = (log_p > -xp.inf) & (log_q > -xp.inf)
    mean = xp.where(some, log_q - xp.where(some, log_p, 0.0), 0.0)
    mean = xp.where(some, xp.clip(mean, edge[:-1], edge[1:]), 0.5 * (edge[:-1] + edge[1:]))
    return xp.at_set(xp.at_set(mean, 0, low), -1, high), xp.where(some, log_p, -xp.inf)
