"""A cheap guess of one point of a trade-off curve by the saddle-point approximation, to steer.

With K(s) = Σ T·log E_P e^{sℓ} the tilted law at s has mean t = K'(s) and variance K''(s). Lugannani
and Rice (1980) give both tails of the threshold test at t from it: FPR = Pr[X > t] with w = ±√(2(st
− K)), u = s·√K'', and TPR = Pr[Y > t] with s − 1 in place of s, because Y is X tilted by one. So
one number s stands for one point of the curve.

Where ε is large, its FPR, e^{−ε} and less, is no double any more. There the same s gives
δ(ε) ≈ e^{K(s) − K(1) − rε}/(r·(1 + r)·√(2πK''(s))) with r = s − 1 at ε = K'(s), the first term of
the saddle-point expansion of E[(1 − e^{ε − Y})₊]."""

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
_HALVINGS = 28
_STEEPEST = 40.0  # s up to sinh of this, and r up to its exponential
_GENTLEST = 40.0  # −log of the smallest r
_TWO_PI = 2.0 * np.pi
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
    """Φ⁻¹ of Pr[· > t] for the law with saddle s at t and cumulant k, by Barndorff-Nielsen."""
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


def _mu_at_rate(groups: tuple[tuple[Any, Array], ...], z: Any):
    """Φ⁻¹(TPR) − Φ⁻¹(FPR) at a Φ⁻¹(FPR)."""
    return _solve(groups, z, by_threshold=False)


def _mu_at_threshold(groups: tuple[tuple[Any, Array], ...], threshold: Any):
    """Φ⁻¹(TPR) − Φ⁻¹(FPR) at a threshold."""
    return _solve(groups, threshold, by_threshold=True)


def _epsilon_at_delta(groups: tuple[tuple[Any, Array], ...], log_delta: Any):
    """ε with δ(ε) = δ, 0 where δ(0) is less."""
    nodes = _nodes(groups)
    at_one = _cumulants(nodes, 1.0)[0]

    def log_profile(r: Any):
        k, epsilon, variance = _cumulants(nodes, 1.0 + r)
        sizes = xp.log(r) + xp.log1p(r) + 0.5 * xp.log(xp.maximum(variance, 1e-300) * _TWO_PI)
        return k - at_one - r * epsilon - xp.maximum(sizes, 0.0)

    def halve(_: int, ends: tuple[Array, Array]):
        low, high = ends
        middle = 0.5 * (low + high)
        small = log_profile(xp.exp(middle)) < log_delta
        return xp.where(small, low, middle), xp.where(small, middle, high)

    low, high = xp.fori_loop(
        0, _HALVINGS, halve, (0.0 * log_delta - _GENTLEST, 0.0 * log_delta + _STEEPEST)
    )
    return xp.maximum(_cumulants(nodes, 1.0 + xp.exp(0.5 * (low + high)))[1], 0.0)


_KINDS = {
    "mu at rate": _mu_at_rate,
    "mu at threshold": _mu_at_threshold,
    "epsilon at delta": _epsilon_at_delta,
}


@functools.partial(Program, static_argnames=("kind",))
def _program(groups: tuple[tuple[Any, Array], ...], goal: Any, *, kind: str):
    return jax.vmap(_KINDS[kind])(groups, goal)


def approximate_mu(groups: tuple[tuple[Any, Array], ...], goal: Any, by_threshold: bool):
    """μ of the Gaussian curve through a point of each curve, approximately; NaN if it fails.

    Args:
        groups: ``Composition.stacked()`` with leaves of shape (settings, components).
        goal: the point's privacy-loss threshold in nats, or its Φ⁻¹(FPR), one for each setting.
        by_threshold: which of the two it is.
    """
    return _of_batch(groups, goal, "mu at threshold" if by_threshold else "mu at rate")


def approximate_epsilon(groups: tuple[tuple[Any, Array], ...], log_delta: Any):
    """ε(δ) of each of a batch of curves, approximately; NaN where it fails.

    Args:
        groups: ``Composition.stacked()`` with leaves of shape (settings, components).
        log_delta: log δ, one for each setting.
    """
    return _of_batch(groups, log_delta, "epsilon at delta")


@with_float64
def _of_batch(groups: tuple[tuple[Any, Array], ...], goal: Any, kind: str):
    """One number of each setting, by NumPy if they are few."""
    number = len(goal)
    executor = by_name(None)
    if (number <= _FEW) if executor is None else executor is not COMPILED:
        groups = jax.tree.map(np.asarray, groups)
        with np.errstate(all="ignore"):
            points = [jax.tree.map(lambda a: a[i], groups) for i in range(number)]  # noqa: B023
            pairs = zip(points, goal, strict=True)
            return np.array([_KINDS[kind](point, np.float64(z)) for point, z in pairs])
    size = next((size for size in (8, 64) if size >= number), _AT_ONCE)
    found = np.empty(number)
    for start in range(0, number, size):
        rows = np.minimum(np.arange(start, start + size), number - 1)
        part = jax.tree.map(lambda a: np.asarray(a)[rows], groups)  # noqa: B023
        answer = np.asarray(_program(part, np.asarray(goal)[rows], kind=kind))
        found[start : start + size] = answer[: number - start]
    return found


__all__ = ["approximate_epsilon", "approximate_mu"]
