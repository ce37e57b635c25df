"""Zero-concentrated DP: the trade-off curve, advantage and (ε, δ) that ρ-zCDP implies, optimised
over every Rényi order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..deprecation import renamed_arguments
from ..numerics.shapes import Array, ArrayLike
from ..numerics.validation import broadcast, checked, closed_unit
from ..vocabulary import keywords_only
from .orders import best_order, last_ruled_out_by_any
from .outward import UNIT, exp_up, one_minus, up
from .rdp import epsilon_at_order, log_delta_at_order
from .renyi import LOWEST_ADVANTAGE, LOWEST_FNR, advantage, advantage_margin, fnr, fnr_margin

_TINY = 1e-300


def _rho(value: Any):
    return checked("rho", value, "a finite number >= 0", lambda a: a >= 0.0)


def _at_end(delta: Any):
    """ε of a mechanism whose loss is not bounded, at δ = 0 and δ = 1."""
    return np.where(delta > 0.0, 0.0, np.inf)


def _range(rho: Any, depth: Any):
    """log(t − 1) between which the best order lies: about √(depth/ρ), depth the logarithm of the
    smallest rate considered.
    """
    middle = 0.5 * (np.log1p(depth) - np.log(rho))
    return np.minimum(middle, 0.0) - 16.0, np.maximum(middle, 0.0) + 8.0


@renamed_arguments(alpha="fpr")
@keywords_only
def beta_from_zcdp(*, fpr: ArrayLike, rho: ArrayLike) -> Array:
    """Trade-off curve implied by ρ-zCDP: the largest over orders t ≥ 1 of the curve of (t,
    tρ)-Rényi DP (Gomez 2025, Section A.6).

    The best curve that ρ-zCDP implies. Every order gives a valid bound, so the search over orders
    costs no validity.

    Args:
        fpr: FPR in [0, 1].
        rho: ρ ≥ 0. Any shapes that broadcast.

    Returns:
        FNR, float64: a lower bound, the safe side to report.

    Raises:
        ValueError: an argument is out of range, or shapes do not broadcast.

    Example:
        >>> round(float(beta_from_zcdp(fpr=0.1, rho=0.5)), 6)
        0.516272
    """
    a, r = closed_unit("fpr", fpr), _rho(rho)
    broadcast(fpr=a, rho=r)
    a, r = np.broadcast_arrays(a, r)
    trivial = (r == 0.0) | (a == 0.0) | (a == 1.0)
    inside = np.where(trivial, 0.5, np.maximum(a, _TINY))
    used = np.where(trivial, 1.0, r)
    low, high = _range(used, -np.log(inside) - np.log1p(-inside))
    best = np.zeros(a.shape)
    for reverse in (False, True):

        def margin(y: Any, s: Any, reverse: bool = reverse):
            rate, budget = (v[..., None] if y.ndim > v.ndim else v for v in (inside, used))
            return fnr_margin(rate, y, s, (1.0 + s) * budget, reverse=reverse)

        best = np.maximum(best, fnr(inside, last_ruled_out_by_any(margin, low, high, LOWEST_FNR)))
    return np.where(trivial, one_minus(a), np.where(a < _TINY, 0.0, best))[()]


@keywords_only
def advantage_from_zcdp(*, rho: ArrayLike) -> Array:
    """Largest advantage of an attacker under ρ-zCDP: the symmetric point of :func:`beta_from_zcdp`.

    Args:
        rho: ρ ≥ 0, any shape.

    Returns:
        η, float64: an upper bound, the safe side to report.

    Raises:
        ValueError: ρ is negative or not finite.

    Example:
        >>> round(float(advantage_from_zcdp(rho=0.5)), 6)
        0.479098
    """
    r = _rho(rho)
    used = np.where(r > 0.0, r, 1.0)

    def margin(y: Any, s: Any):
        return advantage_margin(y, s, (1.0 + s) * (used[..., None] if y.ndim > used.ndim else used))

    best = advantage(
        last_ruled_out_by_any(margin, *_range(used, np.zeros(r.shape)), LOWEST_ADVANTAGE)
    )
    return np.where(r > 0.0, best, 0.0)[()]


@keywords_only
def epsilon_from_zcdp(*, delta: ArrayLike, rho: ArrayLike) -> Array:
    """ε(δ) from ρ-zCDP: the least over t > 1 of tρ + log(1 − 1/t) − (log δ + log t)/(t − 1)
    (Canonne, Kamath & Steinke 2020, Corollary 13).

    Args:
        delta: δ in [0, 1]; at 0 only the largest loss counts, which ρ-zCDP leaves unbounded unless
            ρ = 0, and at 1 nothing is asked.
        rho: ρ ≥ 0. Any shapes that broadcast.

    Returns:
        ε ≥ 0 in nats, float64: an upper bound, the safe side to report.

    Raises:
        ValueError: an argument is out of range, or shapes do not broadcast.

    Example:
        >>> round(float(epsilon_from_zcdp(delta=1e-10, rho=2.56)), 2)
        17.16
    """
    d, r = closed_unit("delta", delta), _rho(rho)
    broadcast(delta=d, rho=r)
    d, r = np.broadcast_arrays(d, r)
    inside = (d > 0.0) & (d < 1.0)
    log_d = np.log(np.where(inside, d, 0.5))
    used = np.where(r > 0.0, r, 1.0)

    def value(log_s):
        s = np.exp(log_s)
        return -epsilon_at_order(log_d[..., None], s, (1.0 + s) * used[..., None])

    s = np.exp(best_order(value, *_range(used, -log_d)))
    found = np.maximum(epsilon_at_order(log_d, s, (1.0 + s) * used), 0.0)
    return np.where(r > 0.0, np.where(inside, found, _at_end(d)), 0.0)[()]


@keywords_only
def delta_from_zcdp(*, epsilon: ArrayLike, rho: ArrayLike) -> Array:
    """δ(ε) from ρ-zCDP: the least over t > 1 of e^{(t−1)(tρ−ε)}/(t − 1)·(1 − 1/t)^t (Canonne,
    Kamath & Steinke 2020, Corollary 13).

    Args:
        epsilon: ε ≥ 0 in nats.
        rho: ρ ≥ 0. Any shapes that broadcast.

    Returns:
        δ ≤ 1, float64: an upper bound, the safe side to report.

    Raises:
        ValueError: an argument is out of range, or shapes do not broadcast.

    Example:
        >>> round(float(delta_from_zcdp(epsilon=3.0, rho=0.5)), 6)
        0.005143
    """
    eps, r = checked("epsilon", epsilon, "a finite number >= 0", lambda a: a >= 0.0), _rho(rho)
    broadcast(epsilon=eps, rho=r)
    eps, r = np.broadcast_arrays(eps, r)
    used = np.where(r > 0.0, r, 1.0)

    def value(log_s):
        s = np.exp(log_s)
        return -log_delta_at_order(eps[..., None], s, (1.0 + s) * used[..., None])

    with np.errstate(over="ignore"):
        depth = np.minimum(eps * eps / used, 1e300)
    s = np.exp(best_order(value, *_range(used, depth)))
    log_delta = log_delta_at_order(eps, s, (1.0 + s) * used)
    return np.where(r > 0.0, exp_up(log_delta), 0.0)[()]


@keywords_only
def simple_epsilon_from_zcdp(*, delta: ArrayLike, rho: ArrayLike) -> Array:
    """ε = ρ + 2·√(ρ·log(1/δ)) (Bun & Steinke 2016, Proposition 1.3): simple, and never better than
    :func:`epsilon_from_zcdp`.

    Args:
        delta: δ in [0, 1]; at 0 only the largest loss counts, which ρ-zCDP leaves unbounded unless
            ρ = 0, and at 1 nothing is asked.
        rho: ρ ≥ 0. Any shapes that broadcast.

    Returns:
        ε in nats, float64: an upper bound, the safe side to report.

    Raises:
        ValueError: an argument is out of range, or shapes do not broadcast.

    Example:
        >>> round(float(simple_epsilon_from_zcdp(delta=1e-10, rho=3.65)), 4)
        21.9851
    """
    d, r = closed_unit("delta", delta), _rho(rho)
    broadcast(delta=d, rho=r)
    inside = (d > 0.0) & (d < 1.0)
    found = up(r + 2.0 * np.sqrt(r) * np.sqrt(-np.log(np.where(inside, d, 0.5))), 8.0)
    return np.where(inside, found, np.where(r > 0.0, _at_end(d), 0.0))[()]


@keywords_only
def simple_delta_from_zcdp(*, epsilon: ArrayLike, rho: ArrayLike) -> Array:
    """δ = e^{−(ε−ρ)²/(4ρ)} for ε ≥ ρ, else 1: inverts :func:`simple_epsilon_from_zcdp`.

    Args:
        epsilon: ε ≥ 0 in nats.
        rho: ρ ≥ 0. Any shapes that broadcast.

    Returns:
        δ ≤ 1, float64: an upper bound, the safe side to report.

    Raises:
        ValueError: an argument is out of range, or shapes do not broadcast.

    Example:
        >>> round(float(simple_delta_from_zcdp(epsilon=3.0, rho=0.5)), 6)
        0.043937
    """
    eps, r = checked("epsilon", epsilon, "a finite number >= 0", lambda a: a >= 0.0), _rho(rho)
    broadcast(epsilon=eps, rho=r)
    used = np.where(r > 0.0, r, 1.0)
    gap = np.maximum(eps - r, 0.0)
    with np.errstate(over="ignore", under="ignore"):
        exponent = np.minimum(0.5 * gap * (0.5 * gap / used) * (1.0 - 8.0 * UNIT), 1e4)
    return np.where(r > 0.0, exp_up(-exponent), 0.0)[()]
