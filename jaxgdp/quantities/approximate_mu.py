"""d-approximate μ: a Gaussian curve that holds at every error rate, but for probability d."""

from __future__ import annotations

from .. import options
from ..accounting.certify.curve import Curve, Points, both_sides, log_intercept, path, points
from ..bracket import Bracket
from ..numerics import namespace as xp
from ..numerics.errors import COMPOSED_MU
from ..numerics.normal import argmax, log1mexp, log_error, ndtri_exp
from ..numerics.shapes import Array
from ..numerics.validation import open_unit
from . import overflow
from .base import Quantity, identity, log_rate
from .reading.quantiles import (
    close_rates,
    difference,
    from_the_middle,
    mu_in_gaps,
    quantiles,
    without_silent_pieces,
)
from .tangency import (
    HalfCurves,
    Tangency,
    between,
    largest,
    log_density,
    peak,
    single_point,
    touching_slope,
    tpr_quantile,
)


def approximate_mu(curve: Curve, log_d: Array) -> Bracket:
    """d-approximate μ: the smallest with δ(ε) ≤ d + (1 − d)·δ_μ(ε) for all ε.

    The maximum of Φ⁻¹((TPR − d)/(1 − d)) − Φ⁻¹(α/(1 − d)) over the vertices where TPR > d. It
    composes as √Σμ² with 1 − Π(1 − d_i).

    Method: docs/method/mu.md#approximate
    """
    log_rest = log1mexp(log_d)

    def over_rest(log_rate: Array, side: float) -> Array:
        moved = log_rate - log_rest + side * log_error(log_rate, log_rest)
        return xp.minimum(moved, 0.0)

    def rates_over_rest(
        log_alpha: Array, log_tpr: Array, log_beta: Array, sign: float
    ) -> tuple[Array, ...]:
        # (TPR − d may be as small as the rounding of TPR)
        tpr = over_rest(log_intercept(xp.zeros(()), log_d, log_tpr, sign), sign)
        return over_rest(log_alpha, -sign), tpr, over_rest(log_beta, -sign)

    def best(p: Points, sign: float) -> Array:
        rates = rates_over_rest(p.log_alpha, p.log_tpr, p.log_beta, sign)
        z = quantiles(*rates)
        close, value = close_rates(rates, *z), difference(*z, sign)
        value = xp.minimum(value, close.upper) if sign > 0.0 else xp.maximum(value, close.lower)
        # (whether TPR exceeds d is known as well as their logs; from above a vertex is rounded)
        asked = p.log_tpr > log_d + xp.where(sign > 0.0, 0.0, log_error(p.log_tpr, log_d))
        return xp.max(xp.where(p.used & asked, value, -xp.inf))

    def upper(p: Points) -> Array:
        known = from_the_middle(p) & xp.any(p.used & (p.log_tpr <= log_d))
        return xp.where(known, best(p, 1.0), xp.inf)

    above, below = (
        both_sides(*sides)
        for sides in ((curve.upper_plus, curve.upper_minus), (curve.lower_plus, curve.lower_minus))
    )
    above = xp.vmap(without_silent_pieces)(above)
    high = xp.max(xp.vmap(lambda side: upper(points(side)))(above))

    def matters(log_alpha: Array, log_tpr: Array, log_beta: Array) -> Array:
        return log_tpr > log_d

    # (nothing need be above d: the curve of μ = 0 holds then)
    high = xp.maximum(high, 0.0)
    of_gaps = xp.vmap(lambda v: mu_in_gaps(v, matters, lambda *r: rates_over_rest(*r, 1.0)))(above)
    high = xp.maximum(high, xp.max(of_gaps))
    low = xp.max(xp.vmap(lambda side: best(path(side), -1.0))(below))
    return Bracket(low, xp.minimum(high, curve.tail_mu * (1.0 + COMPOSED_MU)))


def read(curve: Curve, query: Array, *, symmetric: bool) -> Bracket:
    """:func:`approximate_mu`, which all orders of the pair share."""
    return approximate_mu(curve, query)


def tangency(
    halves: HalfCurves, query: Array, found: Bracket, given: Bracket | None = None
) -> Tangency:
    """Where Φ⁻¹((TPR − d)/(1 − d)) − Φ⁻¹(α/(1 − d)) is largest."""
    log_d = query
    log_rest, rest = log1mexp(log_d), -xp.expm1(log_d)
    sides = []
    for side in (0, 1):
        p = halves.points[side]
        above = p.used & (p.log_tpr > log_d)
        excess = xp.where(
            above,
            p.log_tpr + log1mexp(xp.minimum(log_d - xp.where(above, p.log_tpr, 0.0), 0.0)),
            -1.0,
        )
        log_tpr, log_beta = (
            xp.minimum(excess - log_rest, 0.0),
            xp.minimum(p.log_beta - log_rest, 0.0),
        )
        z_alpha, z_tpr = (
            ndtri_exp(xp.minimum(p.log_alpha - log_rest, 0.0)),
            tpr_quantile(log_tpr, log_beta),
        )
        usable = above & xp.isfinite(z_alpha) & xp.isfinite(z_tpr)
        z_alpha, z_tpr = xp.where(usable, z_alpha, 0.0), xp.where(usable, z_tpr, 0.0)
        value = xp.where(usable, z_tpr - z_alpha, -xp.inf)
        k = argmax(value)
        shift, single = peak(value, usable, k)
        z1, z0 = between(z_tpr, k, shift), between(z_alpha, k, shift)
        epsilon = touching_slope(z0, z1, p, value, usable, k)
        # ∂/∂d of (TPR − d)/(1 − d) and of α/(1 − d), α and TPR held fixed; the query is log d
        slope = xp.exp(log_d + p.log_alpha[k] - 2.0 * log_rest - log_density(z0))
        slope = -xp.exp(log_d + p.log_beta[k] - 2.0 * log_rest - log_density(z1)) - slope
        sides.append(
            (
                value[k],
                single_point(side, epsilon, -log_density(z1) - xp.log(rest), slope, single=single),
            )
        )
    return largest(sides)


QUANTITY = Quantity(
    name="approximate_mu",
    symbol="μ_d",
    read=read,
    long_name="d-approximate Gaussian-DP parameter",
    description=(
        "But for probability d the Gaussian mechanism of that μ is at least as easy to attack, at"
        " every rate; it composes."
    ),
    argument="approximation",
    default=options.APPROXIMATION,
    check=open_unit,
    query=log_rate,
    rate=identity,
    rounding=1e-14,
    reach=lambda d: (d, d),
    tangency=tangency,
    overflow=overflow.Overflow(reduced=overflow.rate_above),
    of_all_rates=True,
    sharp_beyond=0.0,
    order=90,
)
