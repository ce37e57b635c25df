"""Rényi DP at finitely many orders: trade-off curve, advantage and (ε, δ)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..deprecation import renamed_arguments
from ..numerics.errors import RDP
from ..numerics.shapes import Array, ArrayLike
from ..numerics.validation import broadcast, checked, closed_unit
from ..vocabulary import keywords_only
from .outward import exp_up
from .renyi import (
    LOWEST_ADVANTAGE,
    LOWEST_FNR,
    advantage,
    advantage_margin,
    fnr,
    fnr_margin,
    last_ruled_out,
)


def _curve(orders: ArrayLike, rho: Any):
    """Orders and the divergences at them, checked; both may be infinite."""
    try:
        t, r = np.asarray(orders, dtype=np.float64), np.asarray(rho, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"orders and rho must be numbers, got {orders!r} and {rho!r}") from None
    if t.ndim != 1 or t.size == 0:
        raise ValueError(f"orders must be one-dimensional and not empty, got shape {t.shape}")
    if not np.all(t >= 0.5):
        raise ValueError(f"orders must be >= 0.5, got {t[~(t >= 0.5)][0]:g}")
    if r.ndim == 0 or r.shape[-1] != t.size:
        raise ValueError(
            f"rho must have one value per order ({t.size}) on its last axis, got shape {r.shape}"
        )
    if not np.all(r >= 0.0):
        raise ValueError(f"rho must be >= 0, got {r[~(r >= 0.0)].flat[0]:g}")
    return t, r


def _at_zero(t: Any, rho: Any):
    """f(0): 1 from orders t ≥ 1; below, the two closed forms."""
    with np.errstate(invalid="ignore"):
        share = np.where(t < 1.0, (1.0 - t) / t, 0.0)
        least = np.minimum(rho * share, rho)
        loose = np.exp(-least) * (1.0 - RDP * (1.0 + np.minimum(least, 1e3)))
    return np.where(np.isposinf(rho), 0.0, np.where(t >= 1.0, 1.0, loose))


@renamed_arguments(alpha="fpr")
@keywords_only
def beta_from_rdp(*, fpr: ArrayLike, orders: ArrayLike, rho: ArrayLike) -> Array:
    """Trade-off curve implied by Rényi DP: the least FNR with D_t ≤ ρ(t) at all t, both ways.

    (1 − β)^t·α^{1−t} + β^t·(1 − α)^{1−t} ≤ e^{(t−1)ρ(t)} and the same with α and β exchanged (Gomez
    2025, Section A.6; Balle et al. 2020; Asoodeh et al. 2021); Kullback-Leibler at t = 1; reversed
    inequalities for t < 1, which is again D_t ≤ ρ. The largest of the bounds is the best curve that
    the orders imply, and the lower side of each root is returned.

    Args:
        fpr: FPR in [0, 1], any shape.
        orders: t ≥ 1/2, one-dimensional, ∞ allowed (pure DP).
        rho: ρ(t) ≥ 0 in nats, orders on its last axis, the rest broadcast against α; ∞ allowed.

    Returns:
        FNR, float64: a lower bound, the safe side to report.

    Raises:
        ValueError: an argument is out of range, or shapes do not match.

    Example:
        >>> round(float(beta_from_rdp(fpr=0.1, orders=[2.0, 4.0], rho=[1.0, 2.0])), 6)
        0.50675
    """
    a = closed_unit("fpr", fpr)
    t, r = _curve(orders, rho)
    shape = broadcast(fpr=a, rho=r[..., 0])
    a = np.broadcast_to(a, shape)[..., None]
    inside = np.clip(a, 1e-300, 1.0 - 2.0**-53)
    used = np.broadcast_to(np.where(a > 0.0, inside, 0.5), np.broadcast_shapes(a.shape, r.shape))
    best = np.zeros(shape)
    for reverse in (False, True):
        margin = lambda y, reverse=reverse: fnr_margin(used, y, t - 1.0, r, reverse=reverse)
        best = np.maximum(
            best, np.max(fnr(used, last_ruled_out(margin, LOWEST_FNR, used.shape)), axis=-1)
        )
    at_zero = np.broadcast_to(np.max(_at_zero(t, r), axis=-1), shape)
    a = a[..., 0]
    return np.where(
        a == 0.0, at_zero, np.where(a == 1.0, 0.0, np.where(a < inside[..., 0], 0.0, best))
    )[()]


@keywords_only
def advantage_from_rdp(*, orders: ArrayLike, rho: ArrayLike) -> Array:
    """Largest advantage 1 − α − β of an attacker under Rényi DP: tanh(L/2) with L from cosh((t −
    ½)L)/cosh(L/2) = e^{(t−1)ρ(t)}.

    The symmetric point of :func:`beta_from_rdp`, where the advantage is largest; the smallest over
    the orders.

    Args:
        orders: t ≥ 1/2, one-dimensional, ∞ allowed.
        rho: ρ(t) ≥ 0 in nats, orders on its last axis.

    Returns:
        η, float64, shape of ``rho`` without its last axis: an upper bound, the safe side to report.

    Raises:
        ValueError: an argument is out of range, or shapes do not match.

    Example:
        >>> round(float(advantage_from_rdp(orders=[2.0], rho=[1.0])), 6)
        0.548169
    """
    t, r = _curve(orders, rho)
    y = last_ruled_out(lambda y: advantage_margin(y, t - 1.0, r), LOWEST_ADVANTAGE, r.shape)
    return np.min(advantage(y), axis=-1)[()]


def log_delta_at_order(epsilon: Any, s: Any, rho: Any):
    """log δ from one order t = 1 + s > 1: s·(ρ − ε) + t·log(1 − 1/t) − log s (Canonne et al. 2020,
    Proposition 12), rounded up.
    """
    with np.errstate(all="ignore"):
        # t·log(1 − 1/t) − log s = −log t − s·log(1 + 1/s), in which nothing cancels
        fixed = np.log1p(s) + s * np.log1p(1.0 / s)
        return s * (rho - epsilon) - fixed + RDP * (1.0 + s * (rho + epsilon) + fixed)


def epsilon_at_order(log_delta: Any, s: Any, rho: Any):
    """ε from one order t = 1 + s > 1, the inverse of :func:`log_delta_at_order`, rounded up."""
    with np.errstate(all="ignore"):
        parts = rho, -log_delta / s, np.log1p(s) / s, np.log1p(1.0 / s)
        return (
            parts[0]
            + parts[1]
            - parts[2]
            - parts[3]
            + RDP * (parts[0] + parts[1] + parts[2] + parts[3])
        )


@keywords_only
def delta_from_rdp(*, epsilon: ArrayLike, orders: ArrayLike, rho: ArrayLike) -> Array:
    """δ(ε) from Rényi DP: the least over orders t > 1 of e^{(t−1)(ρ(t)−ε)}/(t − 1)·(1 − 1/t)^t.

    Canonne, Kamath & Steinke 2020, Proposition 12; Balle et al. 2020.

    Args:
        epsilon: ε ≥ 0 in nats, any shape.
        orders: t ≥ 1/2, one-dimensional; those ≤ 1 have no effect here; ∞ allowed.
        rho: ρ(t) ≥ 0 in nats, orders on its last axis, the rest broadcast against ε; ∞ allowed.

    Returns:
        δ ≤ 1, float64: an upper bound, the safe side to report.

    Raises:
        ValueError: an argument is out of range, or shapes do not match.

    Example:
        >>> round(float(delta_from_rdp(epsilon=4.0, orders=[2.0, 4.0], rho=[1.0, 2.0])), 9)
        0.000261431
    """
    eps = checked("epsilon", epsilon, "a finite number >= 0", lambda a: a >= 0.0)
    t, r = _curve(orders, rho)
    broadcast(epsilon=eps, rho=r[..., 0])
    e = eps[..., None]
    useful = (t > 1.0) & np.isfinite(t)
    value = np.where(useful, log_delta_at_order(e, np.where(useful, t - 1.0, 1.0), r), 0.0)
    # pure ρ-DP: (e^ρ − e^ε)/(1 + e^ρ)
    with np.errstate(all="ignore"):
        pure = np.where(
            e < r, np.log(-np.expm1(np.minimum(e - r, 0.0))) - np.log1p(np.exp(-r)), -np.inf
        )
        pure = pure + RDP * (1.0 + np.where(e < r, np.abs(pure), 0.0))
    value = np.where(np.isposinf(t), np.where(np.isposinf(r), 0.0, pure), value)
    value = np.where(np.isnan(value), 0.0, value)
    return exp_up(np.min(value, axis=-1))[()]


@keywords_only
def epsilon_from_rdp(*, delta: ArrayLike, orders: ArrayLike, rho: ArrayLike) -> Array:
    """ε(δ) from Rényi DP: least of ρ(t) + log(1 − 1/t) − (log δ + log t)/(t − 1) over t > 1.

    Canonne, Kamath & Steinke 2020, Proposition 12; Balle et al. 2020.

    Args:
        delta: δ in [0, 1], any shape; at 0 only pure DP (t = ∞) gives a bound, and at 1 ε is 0.
        orders: t ≥ 1/2, one-dimensional; those ≤ 1 have no effect here; ∞ allowed.
        rho: ρ(t) ≥ 0 in nats, orders on its last axis, the rest broadcast against δ; ∞ allowed.

    Returns:
        ε ≥ 0 in nats, float64, ∞ where no order gives a bound: an upper bound, the safe side to
        report.

    Raises:
        ValueError: an argument is out of range, or shapes do not match.

    Example:
        >>> round(float(epsilon_from_rdp(delta=1e-5, orders=[2.0, 4.0], rho=[1.0, 2.0])), 6)
        5.087862
    """
    d = closed_unit("delta", delta)
    t, r = _curve(orders, rho)
    broadcast(delta=d, rho=r[..., 0])
    inside = (d > 0.0) & (d < 1.0)
    log_d = np.log(np.where(inside, d, 0.5))[..., None]
    useful = (t > 1.0) & np.isfinite(t)
    value = np.where(useful, epsilon_at_order(log_d, np.where(useful, t - 1.0, 1.0), r), np.inf)
    # pure ρ-DP: e^ε = e^ρ − δ·(1 + e^ρ)
    with np.errstate(all="ignore"):
        share = d[..., None] * (1.0 + np.exp(-r)) * (1.0 - RDP)
        saved = np.log1p(-np.minimum(share, 1.0))
        pure = np.where(share < 1.0, r + saved + RDP * (r - saved), 0.0)
    # at δ = 0 a finite order bounds nothing
    value = np.where(d[..., None] > 0.0, value, np.inf)
    value = np.where(np.isposinf(t), np.where(np.isposinf(r), np.inf, pure), value)
    value = np.where(np.isnan(value), np.inf, value)
    value = np.where(d[..., None] < 1.0, value, 0.0)
    return np.maximum(np.min(value, axis=-1), 0.0)[()]
