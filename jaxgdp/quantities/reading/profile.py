"""The privacy profile of both sides of a curve: log δ(ε)."""

from __future__ import annotations

import numpy as np

from ...accounting.certify.curve import Curve, Points, log_delta_at, log_intercept, path
from ...accounting.certify.vertices import Vertices
from ...bracket import Bracket
from ...numerics import namespace as xp
from ...numerics.errors import EXP
from ...numerics.shapes import Array
from . import unsampled


def probability(log_bracket: Bracket) -> Bracket:
    """A bracket of a probability from that of its log, rounded outward, never to 0."""
    lower, upper = xp.exp(log_bracket.lower), xp.exp(log_bracket.upper)
    tiny = xp.where(log_bracket.upper > -xp.inf, np.finfo(float).tiny, 0.0)
    return Bracket(lower * (1.0 - EXP), xp.minimum(xp.maximum(upper * (1.0 + EXP), tiny), 1.0))


def delta_achieved(p: Points, epsilon: Array) -> Array:
    """log of the best TPR − e^ε·α over the attack's tests.

    Method: docs/method/attack.md#lower
    """
    return xp.max(xp.where(p.used, log_intercept(epsilon, p.log_alpha, p.log_tpr, -1.0), -xp.inf))


def _log_delta_from_above(half: Vertices, largest: Array | float, epsilon: Array) -> Array:
    """log δ(ε) of a dominating half-curve; nothing is left beyond the largest loss."""
    return xp.where(epsilon >= largest, -xp.inf, log_delta_at(half, epsilon))


def log_delta(curve: Curve, epsilon: Array, *, symmetric: bool) -> Bracket:
    """log δ(ε) = log(Pr[Y > ε] − e^ε·Pr[X > ε]), ε ≥ 0 (the larger direction if symmetrised).

    Never more than the δ of the mechanism without subsampling, never less than that of its Gaussian
    parts.

    Method: docs/method/adjacency.md#symmetrisation
    Method: docs/method/reading.md#lines
    Method: docs/method/reading.md#largest
    """
    upper = _log_delta_from_above(curve.upper_plus, curve.largest_plus, epsilon)
    lower = delta_achieved(path(curve.lower_plus), epsilon)
    if symmetric:
        other = _log_delta_from_above(curve.upper_minus, curve.largest_minus, epsilon)
        upper = xp.maximum(upper, other)
        lower = xp.maximum(lower, delta_achieved(path(curve.lower_minus), epsilon))
    upper = xp.minimum(upper, unsampled.log_delta(epsilon, curve.tail_mu, 1.0))
    return Bracket(
        xp.maximum(lower, unsampled.log_delta(epsilon, curve.gaussian_part_mu, -1.0)), upper
    )
