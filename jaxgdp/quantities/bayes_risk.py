"""R: the Bayes risk, the least error probability of an attacker with a prior."""

from __future__ import annotations

import numpy as np

from .. import gdp, options
from ..accounting.certify.curve import Curve, Points, log_delta_at, log_one_minus_delta_at, path
from ..bracket import Bracket
from ..numerics import namespace as xp
from ..numerics.errors import CLOSED_RISK, RISK
from ..numerics.shapes import Array
from ..numerics.validation import open_unit
from . import overflow
from .base import SHALLOW, Quantity
from .reading import known, unsampled
from .tangency import HalfCurves, Tangency, single_point

LEAST_RISK = 1e-6  # smallest rate that the curve has to resolve


def odds(prior: Array) -> Array:
    """|log(π/(1 − π))|: the slope of the curve's tangent that decides."""
    return xp.abs(xp.log(prior) - xp.log1p(-prior))


def _achieved(p: Points, weight_alpha: Array, weight_beta: Array) -> Array:
    """The least risk of an attack's tests."""
    risk = weight_alpha * xp.exp(p.log_alpha) + weight_beta * xp.exp(p.log_beta)
    return xp.min(xp.where(p.used, risk, xp.inf))


def read(curve: Curve, query: Array, *, symmetric: bool) -> Bracket:
    """R(π) = min over α of π·α + (1 − π)·f(α) = min(π, 1 − π)·(1 − δ(|log(π/(1 − π))|)), π the
    prior probability that the record is absent.

    The profile is that of removing the record where π ≥ ½, of adding it else, and the larger of
    both for the symmetrised curve. Every test of an attack bounds the minimum from above.

    Method: docs/method/attack.md#lower
    Method: docs/method/reading.md#lines
    """
    inside = xp.where((query > 0.0) & (query < 1.0), query, 0.5)
    guess, slope = xp.minimum(query, 1.0 - query), odds(inside)
    plus, minus = (
        log_one_minus_delta_at(side, slope) for side in (curve.upper_plus, curve.upper_minus)
    )
    log_rest = xp.minimum(plus, minus) if symmetric else xp.where(query >= 0.5, plus, minus)
    # (a log of that size is known to as many units)
    lower = guess * xp.exp(log_rest) * (1.0 - RISK * (1.0 - xp.maximum(log_rest, -800.0)))

    attacks = path(curve.lower_plus), path(curve.lower_minus)
    weights = (query, 1.0 - query), (1.0 - query, query)
    orders = [attacks, attacks[::-1]] if symmetric else [attacks]
    risks = [_achieved(p, *w) for order in orders for p, w in zip(order, weights, strict=True)]
    upper = xp.min(xp.stack([guess, *risks])) * (1.0 + RISK)
    lower = xp.maximum(lower, unsampled.bayes_risk(query, curve.tail_mu) - CLOSED_RISK)
    upper = xp.minimum(upper, unsampled.bayes_risk(query, curve.gaussian_part_mu) + CLOSED_RISK)
    # (a risk below every double is still not 0)
    return Bracket(lower, xp.maximum(upper, xp.where(guess > 0.0, np.finfo(float).tiny, 0.0)))


def tangency(
    halves: HalfCurves, query: Array, found: Bracket, given: Bracket | None = None
) -> Tangency:
    """π·α + (1 − π)·β is (1 − π)·(1 − δ(ε)) at e^ε = π/(1 − π), and the mirror image below one
    half; its derivative in π is α − β.
    """
    rare = xp.minimum(query, 1.0 - query)
    epsilon = xp.abs(xp.log(query) - xp.log1p(-query))
    below = query < 0.5
    side, log_delta = halves.larger(epsilon)
    if not halves.symmetric:
        side = below.astype(int)
        log_delta = xp.where(below, log_delta_at(halves.vertices[1], epsilon), log_delta)
    alpha = xp.exp(halves.log_fpr(side, epsilon))
    slope = alpha * (1.0 + xp.exp(epsilon)) - 1.0 + xp.exp(log_delta)
    return single_point(side, epsilon, xp.log(rare), xp.where(below, -slope, slope), -1.0)


QUANTITY = Quantity(
    name="bayes_risk",
    symbol="R",
    read=read,
    read_known=known.bayes_risk,
    long_name="least error probability of an attacker with the given prior",
    description=(
        "The smallest probability that an attacker with a prior errs: min over α of π·α + (1 −"
        " π)·f(α)."
    ),
    argument="prior",
    default=options.PRIOR,
    check=open_unit,
    closed=True,
    rate=lambda prior: LEAST_RISK,
    threshold=odds,
    safe_side="lower",
    unit="probability",
    extent=(0.0, 1.0),
    reach=lambda prior: (SHALLOW, None),
    tangency=tangency,
    overflow=overflow.Overflow(shift=overflow.risk_lowered),
    reported=(),
    idle=lambda prior: np.minimum(prior, 1.0 - prior),
    of_gaussian=lambda mu, prior: gdp.bayes_risk(prior=prior, mu=mu),
    order=80,
)
