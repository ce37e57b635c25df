"""Δ: what is lost by reporting one Gaussian curve in place of the true one."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from ..bracket import Bracket
from ..normal import argmax, gaussian_delta, log_sub
from ..vertices import Vertices
from .curve import Curve, Points, log_delta_at, path, points

_ROUNDOFF = 2e-15
_SAME = 1e-6  # relative difference of FPRs that rounding may cause


def _upper(p: Points, mu):
    """Largest possible gap, from rates the attack achieves (a polygon above the true curve).

    With u = α − β and v = α + β, a gap of κ along both axes is 2κ in v at equal u. Between two neighbouring tests the
    polygon is straight and the Gaussian curve convex, so for any slope e^ε the larger of the two end values of
    (δ_μ(ε) − (TPR − e^ε·α))/(1 + e^ε) bounds the gap there; the segment's own slope or its threshold makes that sharp.
    """
    log_alpha = jnp.append(p.log_alpha, -jnp.inf)
    log_tpr = jnp.append(p.log_tpr, -jnp.inf)
    alpha, tpr = jnp.exp(log_alpha), jnp.exp(log_tpr)
    gain = jnp.where(p.used, tpr[:-1] - alpha[:-1], -1.0)
    start = argmax(gain)
    middle = 0.5 * (gaussian_delta(0.0, mu) - jnp.maximum(gain[start], 0.0))

    rise = log_sub(log_tpr[:-1], log_tpr[1:]) - log_sub(log_alpha[:-1], log_alpha[1:])

    def bound(epsilon):
        growth = jnp.exp(epsilon)
        here = tpr[:-1] - growth * alpha[:-1]
        there = tpr[1:] - growth * alpha[1:]
        return (gaussian_delta(epsilon, mu) - jnp.minimum(here, there)) / (1.0 + growth)

    # two tests that differ by rounding only have any slope; that of their threshold is then the better one
    threshold = jnp.clip(p.low, 0.0, 600.0)
    own = jnp.where(jnp.isfinite(rise), jnp.clip(rise, 0.0, 600.0), threshold)
    gap = jnp.minimum(bound(own), bound(threshold))
    after = (jnp.arange(gap.shape[0]) >= start) & ((log_alpha[:-1] > log_alpha[1:]) | (log_tpr[:-1] > log_tpr[1:]))
    return jnp.maximum(jnp.max(jnp.where(after, gap, -jnp.inf)), middle) + _ROUNDOFF


def _apart(p: Points) -> Points:
    """The tests without those that differ from the one before only by rounding, as they do between two atoms of the loss.

    Any test may be left out of an achievable polygon; the segment between two such tests would have an arbitrary slope.
    """
    drop = p.log_alpha[:-1] - p.log_alpha[1:]
    kept = jnp.append(True, ~(drop < _SAME) | (p.log_alpha[1:] == -jnp.inf))
    k = jax.lax.cummax(jnp.where(kept, jnp.arange(kept.shape[0]), 0))
    return Points(*(a[k] for a in p))


def _lower(p: Points, sides: tuple[Vertices, ...], mu):
    """A gap that is certainly there: (δ_μ(ε) − δ(ε))/(1 + e^ε) at the best threshold of the dominating pair."""
    epsilon = jnp.clip(p.low, 0.0, 600.0)
    growth = jnp.exp(epsilon)
    delta = jnp.exp(p.log_tpr) - jnp.exp(p.log_alpha + epsilon)
    gap = (gaussian_delta(epsilon, mu) - delta) / (1.0 + growth)
    usable = p.used & (p.low >= -1e-12)
    best = epsilon[argmax(jnp.where(usable, gap, -jnp.inf))]

    def at(e):
        delta = jnp.exp(jnp.max(jnp.stack([log_delta_at(v, e) for v in sides])))
        return (gaussian_delta(e, mu) - delta) / (1.0 + jnp.exp(e))

    # both directions have the same δ(0), so the smaller bound holds for both
    at_zero = jnp.exp(jnp.min(jnp.stack([log_delta_at(v, jnp.zeros(())) for v in sides])))
    return jnp.maximum(at(best), 0.5 * (gaussian_delta(0.0, mu) - at_zero)) - _ROUNDOFF


def regret(curve: Curve, mu: Bracket, *, symmetric: bool) -> Bracket:
    """Δ(f, f_μ) = max over ε of (δ_μ(ε) − δ(ε))/(1 + e^ε), the smallest shift that brings f below f_μ.

    Gomez 2025, Eq. 13 checks breakpoints only, which gives 0 for randomized response; this is the rotated form, with
    the maximum taken over every slope. Δ grows with μ, so the upper side is that of the upper μ and the lower side that
    of the lower: the bracket holds for the true μ* and for the reported upper side of it. For the symmetrised curve the
    better of the two directions counts; for one direction, the worse half. The exactly Gaussian parts alone bound it, too.
    """
    plus, minus = points(curve.upper_plus), points(curve.upper_minus)
    attacks = [path(side) for side in (curve.lower_plus, curve.lower_minus)]
    if curve.upper_plus.top is not None:
        attacks = [_apart(side) for side in attacks]
    high, low = jnp.maximum(mu.upper, 1e-300), jnp.maximum(mu.lower, 1e-300)
    both = (curve.upper_plus, curve.upper_minus)
    if symmetric:
        upper = _upper(attacks[0], high)
        lower = _lower(plus, both, low)
    else:
        upper = jnp.maximum(_upper(attacks[0], high), _upper(attacks[1], high))
        lower = jnp.maximum(_lower(plus, both[:1], low), _lower(minus, both[1:], low))
    # δ_μ(ε) grows with μ by at most 1/√(2π)
    upper = jnp.minimum(upper, (high - curve.shown_mu) * np.sqrt(1.0 / (8.0 * np.pi)) + _ROUNDOFF)
    lower = jnp.clip(lower, 0.0, 1.0)
    return Bracket(lower, jnp.maximum(jnp.clip(upper, 0.0, 1.0), lower))
