"""Cells of a loss that is spread along the axis: each stretch acts as an atom at log of its mass ratio."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .cells import Cells


def position(loss, lower, upper):
    """(e^loss − e^lower)/(e^upper − e^lower), cut to [0, 1]: the connect-the-dots share of an atom."""
    top = jnp.exp(jnp.minimum(loss - upper, 0.0)) * jnp.expm1(jnp.minimum(lower - loss, 0.0))
    return jnp.clip(top / jnp.expm1(lower - upper), 0.0, 1.0)


def stretch_cells(
    log_x, loss, ell, end, *, share=None, roundoff: Any = 16.0, jitter=None, minus: Any = -np.inf, plus: Any = -np.inf
) -> Cells:
    """Cells from the P-mass and log(Q-mass/P-mass) of each (unbatched).

    Args:
        log_x: log P-masses of the cells between the points ``ell``, shape (n + 1,), without mass at −∞; −inf where empty.
        loss: log of Q-mass over P-mass of each cell, shape (n + 1,); any number where empty.
        end: the first cell whose lower point is at least ``end`` is opened: it holds everything beyond.
        share: connect-the-dots shares of the interior cells, where the losses are not accurate enough for them.
        roundoff, jitter: rounding of the masses and of the losses in units of the machine epsilon, beyond what their
            size makes unavoidable; scalars or shape (n + 1,).
        minus, plus: log P-mass at −∞, log Q-mass at +∞.

    Returns:
        :class:`Cells`.
    """
    n = ell.shape[0]
    some = log_x > -jnp.inf
    loss = jnp.where(some, loss, 0.0)
    log_y = log_x + loss
    up = position(loss[1:-1], ell[:-1], ell[1:]) if share is None else share
    up = jnp.where(some[1:-1], up, 1.0)

    # the open cell: P-mass beyond stays at its lower end, and the Q-mass that this leaves over is lost to +∞
    first = jnp.minimum(jnp.searchsorted(ell, end), n)  # its lower point
    cell = jnp.arange(n + 1)
    beyond = (cell > first) & (first < n - 1)
    gather = lambda a: jax.nn.logsumexp(jnp.where(beyond, a, -jnp.inf))  # noqa: E731
    all_x, all_y = gather(log_x), gather(log_y)
    at = jnp.minimum(first + 1, n)
    log_x = jnp.where(beyond, jnp.where(cell == at, all_x, -jnp.inf), log_x)
    log_y = jnp.where(beyond, jnp.where(cell == at, all_y, -jnp.inf), log_y)
    up = jnp.where(beyond[1:-1], 0.0, up)
    base = ell[jnp.minimum(first, n - 1)]
    some_beyond = all_y > -jnp.inf
    left_over = jnp.exp(all_y) * (1.0 + 1e-13) - jnp.exp(jnp.where(some_beyond, all_x + base, -jnp.inf))
    lost = jnp.where(some_beyond, jnp.maximum(left_over, 0.0), 0.0)

    depth = jnp.where(some, jnp.abs(log_x) + jnp.abs(loss), 0.0)
    gap = jnp.concatenate([jnp.full((1,), jnp.inf), jnp.diff(ell), jnp.full((1,), jnp.inf)])
    place = 16.0 + (0.0 if jitter is None else jitter)
    near = jnp.concatenate([jnp.zeros((1,)), jnp.abs(ell)])
    jitter = jnp.where(some, place + (place + 2.0 * (jnp.abs(loss) + near)) / gap, 0.0)
    log_x = log_x.at[0].set(jnp.logaddexp(log_x[0], minus))
    log_y = log_y.at[-1].set(jnp.logaddexp(log_y[-1], plus))
    minus, plus = jnp.asarray(minus, dtype=log_x.dtype), jnp.asarray(plus, dtype=log_x.dtype)
    roundoff = roundoff + 2.0 * jnp.where(jnp.isfinite(depth), jnp.minimum(depth, 1e6), 0.0)
    return Cells(log_x, log_y, up, lost, roundoff + jnp.zeros((n + 1,)), jitter, minus, plus)
