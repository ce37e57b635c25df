"""The privacy profile: δ(ε), ε(δ) and the advantage η = δ(0)."""

from __future__ import annotations

import numpy as np

from ..accounting.curve import Curve, Points, log_delta_at, path, points, safe_log1m
from ..bracket import Bracket
from ..numerics import namespace as xp
from . import unsampled

_ROUNDOFF = 1e-12
_EPS = 1e-15  # of exp, with room


def probability(log_bracket: Bracket) -> Bracket:
    """A bracket of a probability from that of its log, rounded outward; what is below every double is still not 0."""
    lower, upper = xp.exp(log_bracket.lower), xp.exp(log_bracket.upper)
    tiny = xp.where(log_bracket.upper > -xp.inf, np.finfo(float).tiny, 0.0)
    return Bracket(lower * (1.0 - _EPS), xp.minimum(xp.maximum(upper * (1.0 + _EPS), tiny), 1.0))


def _delta_achieved(p: Points, epsilon):
    """log of the best TPR − e^ε·α over the attack's tests."""
    ratio = epsilon + p.log_alpha - p.log_tpr
    value = p.log_tpr + safe_log1m(xp.where(p.log_tpr > -xp.inf, ratio, 0.0))
    return xp.max(xp.where(p.used & (p.log_tpr > -xp.inf), value, -xp.inf))


def log_delta(curve: Curve, epsilon, *, symmetric: bool) -> Bracket:
    """log δ(ε), ε ≥ 0, with δ(ε) = Pr[Y > ε] − e^ε·Pr[X > ε] (the larger direction for the symmetrised curve).

    Never more than the δ of the mechanism without subsampling, never less than that of its Gaussian parts.
    """
    upper = log_delta_at(curve.upper_plus, epsilon)
    lower = _delta_achieved(path(curve.lower_plus), epsilon)
    if symmetric:
        upper = xp.maximum(upper, log_delta_at(curve.upper_minus, epsilon))
        lower = xp.maximum(lower, _delta_achieved(path(curve.lower_minus), epsilon))
    upper = xp.minimum(xp.minimum(upper, unsampled.log_delta(epsilon, curve.tail_mu, 1.0)), 0.0)
    lower = xp.maximum(lower, unsampled.log_delta(epsilon, curve.shown_mu, -1.0))
    return Bracket(xp.minimum(lower, upper), upper)


def _epsilon_certified(p: Points, log_d):
    """Largest ε with δ(ε) ≥ δ on a dominating half-curve: (TPR_k − δ)/α_k, kept inside each vertex's slope range.

    Mass at +∞ that equals δ but for its own rounding counts as δ.
    """
    log_d = xp.where(p.log_alpha == -xp.inf, log_d + _ROUNDOFF, log_d)
    excess = p.log_tpr + safe_log1m(xp.where(p.log_tpr > log_d, log_d - p.log_tpr, 0.0))
    value = xp.minimum(excess - p.log_alpha, p.high)
    counts = p.used & (p.log_tpr > log_d) & (value >= p.low)
    epsilon = xp.max(xp.where(counts, value, 0.0))
    reached = xp.any(p.used & (p.log_tpr <= log_d))
    return xp.where(reached, xp.maximum(epsilon, 0.0), xp.inf)


def _epsilon_achieved(p: Points, log_d):
    excess = p.log_tpr + safe_log1m(xp.where(p.log_tpr > log_d, log_d - p.log_tpr, 0.0))
    value = xp.where(p.used & (p.log_tpr > log_d), excess - p.log_alpha, 0.0)
    return xp.maximum(xp.max(value), 0.0)


def epsilon(curve: Curve, log_d, *, symmetric: bool) -> Bracket:
    """ε(δ): the smallest ε ≥ 0 with δ(ε) ≤ δ, in nats."""
    upper = _epsilon_certified(points(curve.upper_plus), log_d)
    lower = _epsilon_achieved(path(curve.lower_plus), log_d)
    if symmetric:
        upper = xp.maximum(upper, _epsilon_certified(points(curve.upper_minus), log_d))
        lower = xp.maximum(lower, _epsilon_achieved(path(curve.lower_minus), log_d))
    upper = xp.minimum(upper, unsampled.epsilon(log_d, curve.tail_mu, 1.0))
    lower = xp.maximum(lower, unsampled.epsilon(log_d, curve.shown_mu, -1.0))
    return Bracket(xp.minimum(lower, upper), upper)


def advantage(curve: Curve) -> Bracket:
    """η = max over α of 1 − α − f(α) = δ(0), which both directions share (Kaissis 2024; Kulynych 2024)."""
    zero = xp.zeros(())
    sides = [log_delta_at(side, zero) for side in (curve.upper_plus, curve.upper_minus)]
    upper = xp.minimum(xp.minimum(*sides), unsampled.log_delta(zero, curve.tail_mu, 1.0))
    lower = xp.maximum(*(_delta_achieved(path(side), zero) for side in (curve.lower_plus, curve.lower_minus)))
    lower = xp.maximum(lower, unsampled.log_delta(zero, curve.shown_mu, -1.0))
    upper = xp.minimum(upper, 0.0)
    return probability(Bracket(xp.minimum(lower, upper), upper))
