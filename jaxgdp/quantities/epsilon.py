"""ε(δ): the smallest ε of (ε, δ)-differential privacy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .. import gdp, options
from ..accounting.certify.curve import Curve, Points, path, points, safe_log1m
from ..accounting.certify.vertices import Vertices
from ..bracket import Bracket
from ..numerics import namespace as xp
from ..numerics.normal import log_error
from ..numerics.shapes import Array, ArrayLike
from ..numerics.validation import open_unit
from . import overflow
from .base import SHALLOW, Quantity, identity, log_rate
from .reading import known, unsampled
from .tangency import HalfCurves, Tangency, single_point


def _root(p: Points, log_d: Array, side: float) -> Array:
    """ε with TPR_k − e^ε·α_k = δ at every vertex, moved towards ``side``; −∞ if TPR_k ≤ δ."""
    some = p.log_tpr > log_d
    log_tpr = xp.where(some, p.log_tpr, 0.0)
    ratio = xp.where(some, log_d - log_tpr - side * log_error(log_d), -1.0)
    excess = log_tpr + safe_log1m(ratio)
    return xp.where(some, excess - p.log_alpha + side * log_error(excess, p.log_alpha), -xp.inf)


def _certified(v: Vertices, log_d: Array) -> Array:
    """The first ε at which a dominating half-curve is known to have δ(ε) ≤ δ.

    On the slopes [low_k, high_k] of a vertex δ(ε) is TPR_k − e^ε·α_k, which falls to δ at its root:
    from there on, or from low_k where it is below δ already, δ(ε) ≤ δ. Each vertex proves this by
    itself, whatever is known of the others.

    Method: docs/method/reading.md#lines
    """
    p = points(v)
    from_here, end = xp.maximum(_root(p, log_d, 1.0), p.low), p.high
    if v.top is not None:
        # beyond the largest loss δ(ε) is the mass at +∞, whatever the vertex before says
        top = xp.reshape(v.top, (-1,))[0]
        end = xp.where(p.low < top, xp.minimum(end, top), end)
    return xp.maximum(xp.min(xp.where(p.used & (from_here <= end), from_here, xp.inf)), 0.0)


def _achieved(p: Points, log_d: Array) -> Array:
    value = xp.where(p.used & (p.log_tpr > log_d), _root(p, log_d, -1.0), 0.0)
    return xp.maximum(xp.max(value), 0.0)


def epsilon(curve: Curve, log_d: Array, *, symmetric: bool) -> Bracket:
    """ε(δ): the smallest ε ≥ 0 with δ(ε) ≤ δ, in nats.

    Method: docs/method/attack.md#lower
    Method: docs/method/reading.md#largest
    """
    upper = xp.minimum(_certified(curve.upper_plus, log_d), curve.largest_plus)
    lower = _achieved(path(curve.lower_plus), log_d)
    if symmetric:
        other = xp.minimum(_certified(curve.upper_minus, log_d), curve.largest_minus)
        upper = xp.maximum(upper, other)
        lower = xp.maximum(lower, _achieved(path(curve.lower_minus), log_d))
    upper = xp.minimum(upper, unsampled.epsilon(log_d, curve.tail_mu, 1.0, upper))
    return Bracket(xp.maximum(lower, unsampled.epsilon(log_d, curve.gaussian_part_mu, -1.0)), upper)


def locate(curve: Curve, query: Array, found: Bracket | None = None, *, symmetric: bool) -> Array:
    """ε itself, from above."""
    return (epsilon(curve, query, symmetric=symmetric) if found is None else found).upper


def tangency(
    halves: HalfCurves, query: Array, found: Bracket, given: Bracket | None = None
) -> Tangency:
    """Where δ(ε) is δ: ∂ε = ∂δ/(e^ε·α) at fixed δ, with α the FPR of the threshold ε."""
    epsilon = xp.where(xp.isfinite(found.upper), 0.5 * (found.lower + found.upper), xp.inf)
    known = xp.isfinite(epsilon) & (epsilon > 0.0)
    epsilon = xp.where(known, epsilon, 0.0)
    side, _ = halves.larger(epsilon)
    log_alpha = halves.log_fpr(side, epsilon)
    log_weight = xp.where(known, -epsilon - log_alpha, -xp.inf)
    return single_point(
        side, epsilon, log_weight, xp.where(known, -xp.exp(query - epsilon - log_alpha), 0.0)
    )


def epsilon_at_less(
    upper: Array, delta: float, less: float, rough: Callable[[float], Array]
) -> Array:
    """A bound on ε at a rate slightly below δ from the bound at δ: no second evaluation.

    The profile is convex in γ = e^ε, being the largest of Q(A) − γ·P(A) over all events A. It is at
    most δ at γ₁ = e^upper and, by another bound, at most δ/2 at some γ₂. With s = 2·(δ − less)/δ it
    is hence at most (1 − s)·δ + s·δ/2 = less at (1 − s)·γ₁ + s·γ₂.

    Args:
        upper: ε at ``delta``, an upper bound.
        delta: δ in (0, 1).
        less: smaller rate, in (0, δ].
        rough: another upper bound on ε at a rate, of the same shape, which need not be sharp; ∞
            where there is none.

    Returns:
        ε at ``less``, an upper bound; ∞ where nothing is known.
    """
    # (at s = 1 there is no room to be made: there the bound is ε at δ/2 itself)
    share = min(2.0 * (delta - less) / delta * overflow.ROOM, 1.0)
    if less < 0.5 * delta:
        return np.full(np.shape(upper), np.inf)
    with np.errstate(over="ignore", invalid="ignore"):
        far = rough(0.5 * delta)
        more = upper + np.log1p(share * np.expm1(np.maximum(far - upper, 0.0)))
        return np.where(np.isnan(more), np.inf, more * overflow.ROOM)


def of_gaussian(mu: ArrayLike, delta: ArrayLike) -> Array:
    """ε of the Gaussian mechanism."""
    return gdp.epsilon(delta=delta, mu=mu)


QUANTITY = Quantity(
    name="epsilon",
    symbol="ε",
    read=epsilon,
    read_known=known.epsilon,
    long_name="epsilon at the given delta",
    description=(
        "The smallest ε ≥ 0, in nats, for which the mechanism is (ε, δ)-differentially private."
    ),
    argument="delta",
    default=options.DELTA,
    check=open_unit,
    query=log_rate,
    rate=identity,
    locate=locate,
    worse_of_orders=True,
    unit="nats",
    rounding=1e-14,
    reach=lambda delta: (SHALLOW, delta),
    tangency=tangency,
    overflow=overflow.Overflow(reduced=overflow.rate_above, near=epsilon_at_less),
    reported=options.REPORT_DELTAS,
    of_gaussian=of_gaussian,
    sharp_beyond=0.0,
    order=40,
)
