"""The privacy profile of both sides of a curve, and what it leaves over: log δ(ε) and log(1 − δ(ε))."""

from __future__ import annotations

import numpy as np

from ...accounting.curve import Curve, Points, log_delta_at, path, safe_log1m
from ...accounting.vertices import Vertices
from ...bracket import Bracket
from ...numerics import namespace as xp
from ...numerics.errors import EXP
from ...numerics.normal import log1mexp
from . import unsampled


def probability(log_bracket: Bracket) -> Bracket:
    """A bracket of a probability from that of its log, rounded outward; what is below every double is still not 0."""
    lower, upper = xp.exp(log_bracket.lower), xp.exp(log_bracket.upper)
    tiny = xp.where(log_bracket.upper > -xp.inf, np.finfo(float).tiny, 0.0)
    return Bracket(lower * (1.0 - EXP), xp.minimum(xp.maximum(upper * (1.0 + EXP), tiny), 1.0))


def delta_achieved(p: Points, epsilon):
    """log of the best TPR − e^ε·α over the attack's tests."""
    ratio = epsilon + p.log_alpha - p.log_tpr
    value = p.log_tpr + safe_log1m(xp.where(p.log_tpr > -xp.inf, ratio, 0.0))
    return xp.max(xp.where(p.used & (p.log_tpr > -xp.inf), value, -xp.inf))


def log_delta(curve: Curve, epsilon, *, symmetric: bool) -> Bracket:
    """log δ(ε), ε ≥ 0, with δ(ε) = Pr[Y > ε] − e^ε·Pr[X > ε] (the larger direction for the symmetrised curve).

    Never more than the δ of the mechanism without subsampling, never less than that of its Gaussian parts.
    """
    upper = log_delta_at(curve.upper_plus, epsilon)
    lower = delta_achieved(path(curve.lower_plus), epsilon)
    if symmetric:
        upper = xp.maximum(upper, log_delta_at(curve.upper_minus, epsilon))
        lower = xp.maximum(lower, delta_achieved(path(curve.lower_minus), epsilon))
    upper = xp.minimum(upper, unsampled.log_delta(epsilon, curve.tail_mu, 1.0))
    return Bracket(xp.maximum(lower, unsampled.log_delta(epsilon, curve.shown_mu, -1.0)), upper)


def log_rest_at(v: Vertices, epsilon):
    """A lower bound on log(1 − δ(ε)) of a dominating half-curve, ε ≥ 0 a scalar: accurate where δ(ε) is next to 1.

    The vertex whose slope range holds e^ε has 1 − δ(ε) = β_k + e^ε·α_k; of pieces that overlap the larger bound counts, and where no
    vertex reaches, what δ(ε) itself says.
    """
    t = v.threshold()
    here = v.used & (t <= epsilon) & (epsilon <= t + v.step[..., None])
    rest = xp.max(xp.where(here, xp.logaddexp(v.log_beta, epsilon + v.log_alpha), -xp.inf))
    rest = xp.maximum(rest, log1mexp(log_delta_at(v, epsilon)))
    if v.log_infinite is None:
        return xp.minimum(rest, 0.0)
    # beyond the largest loss δ(ε) is the mass at +∞, whatever the vertex before says
    return xp.minimum(rest, log1mexp(xp.reshape(v.log_infinite, (-1,))[0]))
