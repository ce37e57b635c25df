"""d-approximate μ: a Gaussian curve that holds at every error rate, but for probability d."""

from __future__ import annotations

from .. import options
from ..accounting.certify.curve import Curve, Points, both_sides, path, points
from ..bracket import Bracket
from ..numerics import namespace as xp
from ..numerics.errors import COMPOSED_MU
from ..numerics.normal import log1mexp
from ..numerics.validation import open_unit
from .base import Quantity, identity, log_rate
from .reading.quantiles import difference, from_the_middle, gaps, quantiles


def approximate_mu(curve: Curve, log_d) -> Bracket:
    """d-approximate μ: the smallest μ with f(α) ≥ (1 − d)·f_μ(α/(1 − d)) for all α, that is δ(ε) ≤
    d + (1 − d)·δ_μ(ε).

    The maximum of Φ⁻¹((TPR − d)/(1 − d)) − Φ⁻¹(α/(1 − d)) over the vertices where TPR > d. It
    composes as √Σμ² with 1 − Π(1 − d_i).

    Method: docs/method/mu.md#approximate
    """
    log_rest = log1mexp(log_d)

    def best(p: Points, sign):
        excess = xp.where(
            p.log_tpr > log_d, p.log_tpr + log1mexp(xp.minimum(log_d - p.log_tpr, 0.0)), -xp.inf
        )
        tpr, beta = xp.minimum(excess - log_rest, 0.0), xp.minimum(p.log_beta - log_rest, 0.0)
        value = difference(*quantiles(p.log_alpha - log_rest, tpr, beta), sign)
        return xp.max(xp.where(p.used & (p.log_tpr > log_d), value, -xp.inf))

    def upper(p: Points):
        known = from_the_middle(p) & xp.any(p.used & (p.log_tpr <= log_d))
        return xp.where(known, best(p, 1.0), xp.inf)

    above, below = (
        both_sides(*sides)
        for sides in ((curve.upper_plus, curve.upper_minus), (curve.lower_plus, curve.lower_minus))
    )
    high = xp.max(xp.vmap(lambda side: upper(points(side)))(above))

    def matters(log_alpha, log_tpr, log_beta):
        return log_tpr > log_d

    # (nothing need be above d: the curve of μ = 0 holds then)
    high = xp.maximum(high, 0.0) + xp.max(
        xp.vmap(lambda side: gaps(side, matters, log_rest))(above)
    )
    low = xp.max(xp.vmap(lambda side: best(path(side), -1.0))(below))
    return Bracket(low, xp.minimum(high, curve.tail_mu * (1.0 + COMPOSED_MU)))


def read(curve: Curve, query, *, symmetric: bool) -> Bracket:
    """:func:`approximate_mu`, which all orders of the pair share."""
    return approximate_mu(curve, query)


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
    order=90,
)
