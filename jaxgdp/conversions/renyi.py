"""Rényi divergence between two coin flips, from below, and the error rates a bound on it leaves an attacker.

A test turns both output distributions into coin flips, heads with probability α under P and 1 − β under Q, and cannot raise the
divergence. So a bound ρ on D_t leaves (α, β) with D_t ≤ ρ in both directions; two such coins are themselves a mechanism, which
makes the bound tight. Everything here errs on the side of the attacker: a point is ruled out only if its divergence exceeds ρ by
more than rounding.
"""

from __future__ import annotations

import numpy as np

_UNIT = np.finfo(np.float64).eps
_GUARD = 16.0 * _UNIT
_STEEP = 600.0
_FAR = 745.0
_HALVINGS = 64


def _growth(s, v):
    """(e^{sv} − 1)/s, which is v at s = 0."""
    flat = s == 0.0
    return np.where(flat, v, np.expm1(s * v) / np.where(flat, 1.0, s))


def divergence_from_below(s, weights, others, losses):
    """Lower bound of D_t = log(Σ w_i·e^{s·v_i})/s, t = 1 + s, over outcomes of probability w_i, or w_i·e^{−v_i} under the other.

    As both sum to one, the sum is 1 + s·K with K = Σ w_i·((e^{s·v_i} − 1)/s + e^{−v_i} − 1): no term is negative and nothing cancels
    between terms, at any order, t = 1 (Kullback-Leibler) and t < 1 included. What cancels within a term enters the guard. The
    logarithm of the sum itself is a second bound, sharper for large divergences; the larger of the two counts.

    Args:
        s: t − 1 ≥ −1/2. weights, others, losses: pairs of arrays, probabilities under both and v_i; all broadcast together.

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
                guard + np.abs(up) * (2.0 + np.abs(s * v)) + np.where(near, np.abs(down), other + w) * (2.0 + np.abs(v))
            )
        inner = np.maximum(total - _GUARD * guard, 0.0)
        gentle = np.where(s == 0.0, inner, np.log1p(s * inner) / np.where(s == 0.0, 1.0, s))
        terms = [np.log(w) + s * v for w, v in zip(weights, losses, strict=True)]
        size = sum(
            np.where(w > 0.0, np.abs(np.log(w)) + np.abs(s * v), 0.0) for w, v in zip(weights, losses, strict=True)
        )
        logs = np.logaddexp(*terms) / s - _GUARD * (2.0 + size) / np.abs(s)
    gentle = np.where(steep | np.isnan(gentle), 0.0, gentle)
    return np.maximum(np.maximum(gentle, np.where(np.isfinite(logs), logs, 0.0)) * (1.0 - 4.0 * _UNIT), 0.0)


def _first_allowed(ruled_out, lowest, shape, halvings):
    """The largest y, to within bisection, at which ``ruled_out`` still holds; −∞ if it holds nowhere."""
    low, high = np.full(shape, lowest), np.full(shape, _FAR)
    never = ~ruled_out(low)
    for _ in range(halvings):
        middle = 0.5 * (low + high)
        out = ruled_out(middle)
        low, high = np.where(out, middle, low), np.where(out, high, middle)
    return np.where(never, -np.inf, low)


def least_fnr(alpha, s, rho, *, reverse, halvings=_HALVINGS):
    """A lower bound on β at FPR α under D_{1+s} ≤ ρ, for the order Q‖P or (``reverse``) P‖Q.

    The unknown is y with β = (1 − α)/(1 + e^{−y}), so that β and the advantage 1 − α − β are both accurate however small.

    Args:
        alpha: in (0, 1). s: order minus one, ≥ −1/2, may be ∞. rho: ≥ 0, may be ∞. All broadcast.

    Returns:
        A number that β is not below.
    """
    alpha, s, rho = np.broadcast_arrays(alpha, s, rho)
    finite = np.isfinite(s)
    s_used = np.where(finite, s, 0.0)
    log_alpha, log_rest = np.log(alpha), np.log1p(-alpha)

    def ruled_out(y):
        share, rest = np.exp(-np.logaddexp(0.0, -y)), np.exp(-np.logaddexp(0.0, y))
        accept = -np.logaddexp(0.0, -y)
        reject = np.logaddexp(0.0, log_rest - np.logaddexp(0.0, y) - log_alpha)
        advantage = (1.0 - alpha) * rest
        null, alternative = (alpha, 1.0 - alpha), (alpha + advantage, (1.0 - alpha) * share)
        if reverse:
            losses = -reject, -accept
            bound = divergence_from_below(s_used, null, alternative, losses)
        else:
            losses = reject, accept
            bound = divergence_from_below(s_used, alternative, null, losses)
        worst = np.maximum(*losses) * (1.0 - _GUARD)
        return np.where(finite, bound, worst) > rho * (1.0 + 4.0 * _UNIT)

    y = _first_allowed(ruled_out, -_FAR, alpha.shape, halvings)
    return (1.0 - alpha) * np.exp(-np.logaddexp(0.0, -y)) * (1.0 - 4.0 * _UNIT)


def largest_advantage(s, rho, halvings=_HALVINGS):
    """An upper bound on 1 − α − β under D_{1+s} ≤ ρ in both directions.

    What ρ allows is convex and symmetric in (α, β), so α = β is best; with L = log((1 − α)/α) the advantage is tanh(L/2).

    Args:
        s: order minus one, ≥ −1/2, may be ∞. rho: ≥ 0, may be ∞. Both broadcast.

    Returns:
        A number that the advantage does not exceed.
    """
    s, rho = np.broadcast_arrays(s, rho)
    finite = np.isfinite(s)
    s_used = np.where(finite, s, 0.0)

    def ruled_out(y):
        loss = np.exp(-y)
        heads, tails = 1.0 / (1.0 + np.exp(-loss)), np.exp(-np.logaddexp(0.0, loss))
        bound = divergence_from_below(s_used, (heads, tails), (tails, heads), (loss, -loss))
        return np.where(finite, bound, loss) > rho * (1.0 + 4.0 * _UNIT)

    y = _first_allowed(ruled_out, -np.log(_FAR), s.shape, halvings)
    with np.errstate(over="ignore"):
        return np.minimum(np.tanh(0.5 * np.exp(-y)) * (1.0 + 4.0 * _UNIT), 1.0)
