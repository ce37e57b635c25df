"""A cheap guess of one point of a trade-off curve, by the saddle-point approximation; it steers the solver, never an answer.

With K(s) = Σ T·log E_P e^{sℓ} the tilted law at s has mean t = K'(s) and variance K''(s). Lugannani and Rice (1980) give both tails of the
threshold test at t from it: FPR = Pr[X > t] with w = ±√(2(st − K)), u = s·√K'', and TPR = Pr[Y > t] with s − 1 in place of s, because Y
is X tilted by one. So one number s stands for one point of the curve.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np

from ..numerics.precision import with_float64

_DEPTH = 60.0  # −log of the tails of one step that count
_HALVINGS = 24
_STEEPEST = 9.0  # s up to sinh of this
_AT_ONCE = 512


def _cumulants(groups, s):
    """K, K' and K'' of the composed loss under P at s (unbatched)."""
    total = jnp.zeros(3)
    for mechanism, counts in groups:

        def one(m, count):
            loss, log_weight = m.loss_nodes(_DEPTH)
            log_weight = log_weight - jax.scipy.special.logsumexp(log_weight)
            log_mgf = jax.scipy.special.logsumexp(s * loss + log_weight)
            tilted = jnp.exp(s * loss + log_weight - log_mgf)
            mean = jnp.sum(tilted * loss)
            return count * jnp.stack([log_mgf, mean, jnp.sum(tilted * (loss - mean) ** 2)])

        total = total + jnp.sum(jax.vmap(one)(mechanism, counts), axis=0)
    return total


def _tail(s, t, k, variance):
    """Φ⁻¹ of Pr[· > t] for the law whose saddle at t is s and whose cumulant there is k, in Barndorff-Nielsen's form."""
    u = s * jnp.sqrt(variance)
    small = jnp.abs(s) < 1e-4
    w = jnp.where(small, 1.0, jnp.sign(s) * jnp.sqrt(jnp.maximum(2.0 * (s * t - k), 1e-300)))
    # (at the far end the tilted law sits on one node: no variance)
    return -jnp.where(small, u, w + jnp.log(jnp.clip(u / w, 1e-6, 1e6)) / w)


def _point(groups, s):
    """Threshold, Φ⁻¹(FPR) and Φ⁻¹(TPR) of the test that belongs to s."""
    k, t, variance = _cumulants(groups, s)
    return t, _tail(s, t, k, variance), _tail(s - 1.0, t, k - _cumulants(groups, 1.0)[0], variance)


def _solve(groups, goal, by_threshold):
    """Φ⁻¹(TPR) − Φ⁻¹(FPR) at a threshold, or at a Φ⁻¹(FPR)."""

    def too_far(y):
        t, z_alpha, _ = _point(groups, jnp.sinh(y))
        return jnp.where(by_threshold, t > goal, z_alpha < goal)

    def halve(_, ends):
        low, high = ends
        middle = 0.5 * (low + high)
        far = too_far(middle)
        return jnp.where(far, low, middle), jnp.where(far, middle, high)

    low, high = jax.lax.fori_loop(0, _HALVINGS, halve, (jnp.asarray(-_STEEPEST), jnp.asarray(_STEEPEST)))
    _, z_alpha, z_tpr = _point(groups, jnp.sinh(0.5 * (low + high)))
    return z_tpr - z_alpha


@functools.partial(jax.jit, static_argnames=("by_threshold",))
def _program(groups, goal, *, by_threshold):
    return jax.vmap(functools.partial(_solve, by_threshold=by_threshold))(groups, goal)


@with_float64
def approximate_mu(groups, goal, by_threshold: bool):
    """μ of the Gaussian curve through one point of each of a batch of curves, approximately; NaN where it fails.

    Args:
        groups: ``Composition.stacked()`` with leaves of shape (settings, components).
        goal: the point's privacy-loss threshold in nats, or its Φ⁻¹(FPR), one for each setting.
        by_threshold: which of the two it is.
    """
    number = len(goal)
    size = next((size for size in (8, 64) if size >= number), _AT_ONCE)
    found = np.empty(number)
    for start in range(0, number, size):
        rows = np.minimum(np.arange(start, start + size), number - 1)
        part = jax.tree.map(lambda a: np.asarray(a)[rows], groups)  # noqa: B023
        answer = np.asarray(_program(part, np.asarray(goal)[rows], by_threshold=by_threshold))
        found[start : start + size] = answer[: number - start]
    return found


__all__ = ["approximate_mu"]
