"""A cheap guess of one point of a trade-off curve, by the saddle-point approximation; it steers the
solver, never an answer.

With K(s) = Σ T·log E_P e^{sℓ} the tilted law at s has mean t = K'(s) and variance K''(s). Lugannani
and Rice (1980) give both tails of the threshold test at t from it: FPR = Pr[X > t] with w = ±√(2(st
− K)), u = s·√K'', and TPR = Pr[Y > t] with s − 1 in place of s, because Y is X tilted by one. So
one number s stands for one point of the curve."""

from __future__ import annotations

import functools
from typing import Any

import jax
import numpy as np

from ..accounting.run.executors import COMPILED, by_name
from ..numerics import namespace as xp
from ..numerics.compiling import Program
from ..numerics.precision import with_float64
from ..numerics.shapes import Array

_DEPTH = 60.0  # −log of the tails of one step that count
_HALVINGS = 24
_STEEPEST = 9.0  # s up to sinh of this
_AT_ONCE = 512
_FEW = 64  # so many points cost less by NumPy than compiling does


def _sinh(y: Any):
    return 0.5 * (xp.expm1(y) - xp.expm1(-y))


def _nodes(groups: tuple[tuple[Any, Array], ...]):
    """(loss, log weight, count) of single-step quadratures of each group; weights sum to one."""

    def one(mechanism: Any, count: Any):
        loss, log_weight = mechanism.loss_nodes(_DEPTH)
        return loss, log_weight - xp.logsumexp(log_weight), count

    return [xp.vmap(one)(mechanism, counts) for mechanism, counts in groups]


def _cumulants(nodes: list[tuple[Array, Array, Array]], s: Any):
    """K, K' and K'' of the composed loss under P at s (unbatched)."""
    total = xp.zeros(3)
    for loss, log_weight, counts in nodes:
        tilted = s * loss + log_weight
        log_mgf = xp.logsumexp(tilted, axis=-1)
        tilted = xp.exp(tilted - log_mgf[:, None])
        mean = xp.sum(tilted * loss, axis=-1)
        variance = xp.sum(tilted * (loss - mean[:, None]) ** 2, axis=-1)
        total = total + xp.stack([xp.sum(counts * part) for part in (log_mgf, mean, variance)])
    return total


def _tail(s: Any, t: Any, k: Any, variance: Any):
    """Φ⁻¹ of Pr[· > t] for the law whose saddle at t is s and whose cumulant there is k, in
    Barndorff-Nielsen's form.
    """
    u = s * xp.sqrt(variance)
    small = xp.abs(s) < 1e-4
    w = xp.where(small, 1.0, xp.sign(s) * xp.sqrt(xp.maximum(2.0 * (s * t - k), 1e-300)))
    # (at the far end the tilted law sits on one node: no variance)
    return -xp.where(small, u, w + xp.log(xp.clip(u / w, 1e-6, 1e6)) / w)


def _point(nodes: list[tuple[Array, Array, Array]], s: Any):
    """Threshold, Φ⁻¹(FPR) and Φ⁻¹(TPR) of the test that belongs to s."""
    k, t, variance = _cumulants(nodes, s)
    return t, _tail(s, t, k, variance), _tail(s - 1.0, t, k - _cumulants(nodes, 1.0)[0], variance)


def _solve(groups: tuple[tuple[Any, Array], ...], goal: Any, by_threshold: bool):
    """Φ⁻¹(TPR) − Φ⁻¹(FPR) at a threshold, or at a Φ⁻¹(FPR)."""
    nodes = _nodes(groups)

    def too_far(s: Any):
        k, t, variance = _cumulants(nodes, s)
        return t > goal if by_threshold else _tail(s, t, k, variance) < goal

    def halve(_: int, ends: tuple[Array, Array]):
        low, high = ends
        middle = 0.5 * (low + high)
        far = too_far(_sinh(middle))
        return xp.where(far, low, middle), xp.where(far, middle, high)

    # (ends of the goal's own library, so that the loop is, too)
    low, high = xp.fori_loop(0, _HALVINGS, halve, (0.0 * goal - _STEEPEST, 0.0 * goal + _STEEPEST))
    _, z_alpha, z_tpr = _point(nodes, _sinh(0.5 * (low + high)))
    return z_tpr - z_alpha


@functools.partial(Program, static_argnames=("by_threshold",))
def _program(groups: tuple[tuple[Any, Array], ...], goal: Any, *, by_threshold: bool):
    return jax.vmap(functools.partial(_solve, by_threshold=by_threshold))(groups, goal)


@with_float64
def approximate_mu(groups: tuple[tuple[Any, Array], ...], goal: Any, by_threshold: bool):
    """μ of the Gaussian curve through a point of each curve, approximately; NaN if it fails.

    Args:
        groups: ``Composition.stacked()`` with leaves of shape (settings, components).
        goal: the point's privacy-loss threshold in nats, or its Φ⁻¹(FPR), one for each setting.
        by_threshold: which of the two it is.
    """
    number = len(goal)
    executor = by_name(None)
    if (number <= _FEW) if executor is None else executor is not COMPILED:
        groups = jax.tree.map(np.asarray, groups)
        with np.errstate(all="ignore"):
            points = [jax.tree.map(lambda a: a[i], groups) for i in range(number)]  # noqa: B023
            return np.array(
                [
                    _solve(point, np.float64(z), by_threshold)
                    for point, z in zip(points, goal, strict=True)
                ]
            )
    size = next((size for size in (8, 64) if size >= number), _AT_ONCE)
    found = np.empty(number)
    for start in range(0, number, size):
        rows = np.minimum(np.arange(start, start + size), number - 1)
        part = jax.tree.map(lambda a: np.asarray(a)[rows], groups)  # noqa: B023
        answer = np.asarray(_program(part, np.asarray(goal)[rows], by_threshold=by_threshold))
        found[start : start + size] = answer[: number - start]
    return found


__all__ = ["approximate_mu"]
