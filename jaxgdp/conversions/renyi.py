"""Rényi divergence between two coin flips, from below, and error rates that a bound on it leaves.

A test turns both output distributions into coin flips, heads with probability α under P and 1 − β
under Q, and cannot raise the divergence. So a bound ρ on D_t leaves (α, β) with D_t ≤ ρ in both
directions; two such coins are themselves a mechanism, which makes the bound tight. Everything here
errs on the side of the attacker: a point is ruled out only if its divergence exceeds ρ by more than
rounding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..numerics.errors import RENYI, SPACING

_STEEP = 600.0
HIGHEST = 745.0
LOWEST_FNR = -745.0
LOWEST_ADVANTAGE = -np.log(745.0)
_HALVINGS = 62


def _growth(s: Any, v: Any):
    """(e^{sv} − 1)/s, which is v at s = 0."""
    flat = s == 0.0
    return np.where(flat, v, np.expm1(s * v) / np.where(flat, 1.0, s))


def divergence_from_below(s: Any, weights: Any, others: Any, losses: Any):
    """Lower bound of D_t = log(Σ w_i·e^{s·v_i})/s, t = 1 + s, over outcomes of probability w_i, or
    w_i·e^{−v_i} under the other.

    As both sum to one, the sum is 1 + s·K with K = Σ w_i·((e^{s·v_i} − 1)/s + e^{−v_i} − 1): no
    term is negative and nothing cancels between terms, at any order, t = 1 (Kullback-Leibler) and t
    < 1 included. Cancellation within a term enters the guard. The logarithm of the sum itself is a
    second bound, sharper for large divergences; the larger of the two counts.

    Args:
        s: t − 1 ≥ −1/2.
        weights, others, losses: pairs of arrays, probabilities under both and v_i; all broadcast
            together.

    Returns:
        A number ≥ 0 that D_t is not below.
    """
    with np.errstate(all="ignore"):
        steep = np.maximum(s * losses[0], s * losses[1]) > _STEEP
        total, guard = 0.0, 0.0
        for w, other, v in zip(weights, others, losses, strict=True):
            near = np.abs(v) < 1.0
            up = w * _growth(s, np.where(steep, 0.0, v))
            down = np.where(near, w * np.expm1(-np.where(near, v, 0.0)), other - w)
            total = total + (up + down)
            guard = (
                guard
                + np.abs(up) * (2.0 + np.abs(s * v))
                + np.where(near, np.abs(down), other + w) * (2.0 + np.abs(v))
            )
        inner = np.maximum(total - RENYI * guard, 0.0)
        gentle = np.where(s == 0.0, inner, np.log1p(s * inner) / np.where(s == 0.0, 1.0, s))
        terms = [np.log(w) + s * v for w, v in zip(weights, losses, strict=True)]
        size = sum(
            np.where(w > 0.0, np.abs(np.log(w)) + np.abs(s * v), 0.0)
            for w, v in zip(weights, losses, strict=True)
        )
        logs = np.logaddexp(*terms) / s - RENYI * (2.0 + size) / np.abs(s)
    gentle = np.where(steep | np.isnan(gentle), 0.0, gentle)
    return np.maximum(
        np.maximum(gentle, np.where(np.isfinite(logs), logs, 0.0)) * (1.0 - 4.0 * SPACING), 0.0
    )


def fnr_margin(alpha: Any, y: Any, s: Any, rho: Any, *, reverse: bool):
    """How far D_{1+s} exceeds ρ at α and β = (1 − α)/(1 + e^{−y}): positive if ruled out.

    In y both β and the advantage 1 − α − β are accurate however small. The order of the two is Q‖P
    or (``reverse``) P‖Q; s may be ∞."""
    finite = np.isfinite(s)
    accept, rest = -np.logaddexp(0.0, -y), -np.logaddexp(0.0, y)
    reject = np.logaddexp(0.0, np.log1p(-alpha) + rest - np.log(alpha))
    null = alpha, 1.0 - alpha
    alternative = alpha + (1.0 - alpha) * np.exp(rest), (1.0 - alpha) * np.exp(accept)
    losses = (-reject, -accept) if reverse else (reject, accept)
    own, other = (null, alternative) if reverse else (alternative, null)
    bound = divergence_from_below(np.where(finite, s, 0.0), own, other, losses)
    worst = np.maximum(*losses) * (1.0 - RENYI)
    return np.where(finite, bound, worst) - rho * (1.0 + 4.0 * SPACING)


def advantage_margin(y: Any, s: Any, rho: Any):
    """The same at α = β with advantage tanh(L/2), L = log((1 − α)/α) = e^{−y}.

    The region that ρ allows is convex and symmetric in (α, β), so the advantage is largest at α =
    β.
    """
    finite = np.isfinite(s)
    loss = np.exp(-y)
    heads, tails = 1.0 / (1.0 + np.exp(-loss)), np.exp(-np.logaddexp(0.0, loss))
    bound = divergence_from_below(
        np.where(finite, s, 0.0), (heads, tails), (tails, heads), (loss, -loss)
    )
    return np.where(finite, bound, loss) - rho * (1.0 + 4.0 * SPACING)


def last_ruled_out(margin: Callable[..., Any], lowest: float, shape: tuple[int, ...]):
    """The largest y, by bisection, that ``margin`` rules out; −∞ if not ``lowest``."""
    low, high = np.full(shape, lowest), np.full(shape, HIGHEST)
    never = ~(margin(low) > 0.0)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        out = margin(middle) > 0.0
        low, high = np.where(out, middle, low), np.where(out, high, middle)
    return np.where(never, -np.inf, low)


def fnr(alpha: Any, y: Any):
    """β at y, rounded down."""
    log_share = -np.logaddexp(0.0, -y)
    with np.errstate(invalid="ignore", under="ignore"):
        guard = 1.0 - (6.0 - np.where(np.isfinite(log_share), log_share, 0.0)) * SPACING
        value = (1.0 - alpha) * np.exp(log_share) * guard
    return np.where(value < np.finfo(np.float64).tiny, 0.0, value)


def advantage(y: Any):
    """Advantage at y, rounded up."""
    with np.errstate(over="ignore"):
        return np.minimum(np.tanh(0.5 * np.exp(-y)) * (1.0 + 4.0 * SPACING), 1.0)
