"""The largest μ of one use at any FPR, for mechanisms without a closed form, and nodes for steering."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from ..normal import log_sub, ndtri_exp

_POINTS = 1024  # of the lattice on which a continuous loss is bounded
_NODES = 256
_ROOM = 1e-13  # relative rounding error of a quantile, with room


def _cumulative(log_mass):
    """log of the sums over all entries up to and including each one."""
    return jax.lax.associative_scan(jnp.logaddexp, log_mass)


def largest_mu(log_p, log_q):
    """max of Φ⁻¹(TPR) − Φ⁻¹(α) over all tests that reject above a threshold, rounded up.

    The trade-off curve is straight between those, where a Gaussian curve is convex, so no other point has more.

    Args:
        log_p, log_q: log masses at losses in increasing order, each summing to one; −inf for no mass.
    """
    none = jnp.full((1,), -jnp.inf)
    above = lambda a: jnp.concatenate([_cumulative(a[::-1])[::-1], none])[1:-1]  # noqa: E731
    below = lambda a: _cumulative(a)[:-1]  # noqa: E731
    quantile = lambda up, low: jnp.where(up < low, ndtri_exp(jnp.minimum(up, 0.0)), -ndtri_exp(jnp.minimum(low, 0.0)))  # noqa: E731
    rates = [(above(a), below(a)) for a in (log_p, log_q)]
    inside = jnp.stack([rate > -jnp.inf for pair in rates for rate in pair]).all(axis=0)
    z_alpha, z_tpr = (quantile(jnp.where(inside, up, -1.0), jnp.where(inside, low, -1.0)) for up, low in rates)
    room = _ROOM * (jnp.abs(z_alpha) + jnp.abs(z_tpr)) + 1e-15 * log_p.shape[0]
    return jnp.max(jnp.where(inside, z_tpr - z_alpha + room, 0.0))


def bounded_mu(mechanism):
    """Upper bound on μ of one use of a mechanism of bounded loss at any FPR, from a pair that dominates it.

    Connect-the-dots on a lattice between the smallest and the largest loss. ∞ with mass at an infinity.
    """
    low, high = mechanism.loss_bounds()
    width = jnp.maximum(high - low, 1e-12 * (1.0 + jnp.abs(high) + jnp.abs(low)))
    ell = low - 1e-3 * width + 1.002 * width * jnp.arange(_POINTS) / (_POINTS - 1)
    cells = mechanism.cells(ell, jnp.inf)
    inner = cells.log_x[1:-1]
    log_up = jnp.where(cells.up > 0.0, jnp.log(jnp.where(cells.up > 0.0, cells.up, 1.0)), -jnp.inf)
    log_stay = jnp.where(cells.up < 1.0, jnp.log1p(-jnp.where(cells.up < 1.0, cells.up, 0.0)), -jnp.inf)
    none = jnp.full((1,), -jnp.inf)
    log_p = jnp.logaddexp(jnp.concatenate([inner + log_stay, none]), jnp.concatenate([none, inner + log_up]))
    infinite = (cells.log_p_minus > -jnp.inf) | (cells.log_q_plus > -jnp.inf)
    return jnp.where(infinite, jnp.inf, largest_mu(log_p, log_p + ell))


def bounded_nodes(mechanism):
    """Quadrature nodes of a mechanism of bounded loss: the means of cells that are finest around loss 0."""
    low, high = mechanism.loss_bounds()
    t = 2.0 * jnp.arange(1, _NODES - 1) / (_NODES - 1) - 1.0
    t = 0.1 * t + 0.9 * t**3
    low, high = jnp.minimum(low, -1e-9), jnp.maximum(high, 1e-9)
    ell = jnp.where(t < 0.0, -low * t, high * t)
    cells = mechanism.cells(ell, jnp.inf)
    # without what sits at −∞ and +∞
    log_p = cells.log_x.at[0].set(log_sub(cells.log_x[0], cells.log_p_minus))
    log_q = cells.log_y.at[-1].set(log_sub(cells.log_y[-1], cells.log_q_plus))
    edge = jnp.concatenate([low[None], ell, high[None]])
    some = (log_p > -jnp.inf) & (log_q > -jnp.inf)
    mean = jnp.where(some, log_q - jnp.where(some, log_p, 0.0), 0.0)
    mean = jnp.where(some, jnp.clip(mean, edge[:-1], edge[1:]), 0.5 * (edge[:-1] + edge[1:]))
    return mean.at[0].set(low).at[-1].set(high), jnp.where(some, log_p, -jnp.inf)
