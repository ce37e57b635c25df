"""ε(δ): the smallest ε of (ε, δ)-differential privacy."""

from __future__ import annotations

from .. import gdp, options
from ..accounting.certify.curve import Curve, Points, path, points, safe_log1m
from ..accounting.certify.vertices import Vertices
from ..bracket import Bracket
from ..numerics import namespace as xp
from ..numerics.normal import log_error
from ..numerics.validation import open_unit
from .base import Quantity, identity, log_rate
from .reading import unsampled


def _root(p: Points, log_d, side):
    """ε with TPR_k − e^ε·α_k = δ at every vertex, moved by its rounding towards ``side``; −∞ where
    TPR_k ≤ δ.
    """
    some = p.log_tpr > log_d
    ratio = xp.where(some, log_d - p.log_tpr, 0.0) - side * log_error(log_d)
    excess = p.log_tpr + safe_log1m(ratio)
    return xp.where(some, excess - p.log_alpha + side * log_error(excess, p.log_alpha), -xp.inf)


def _certified(v: Vertices, log_d):
    """The first ε at which a dominating half-curve is known to have δ(ε) ≤ δ.

    On the slopes [low_k, high_k] of a vertex δ(ε) is TPR_k − e^ε·α_k, which falls to δ at its root:
    from there on, or from low_k where it is below δ already, δ(ε) ≤ δ. Each vertex says so by
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


def _achieved(p: Points, log_d):
    value = xp.where(p.used & (p.log_tpr > log_d), _root(p, log_d, -1.0), 0.0)
    return xp.maximum(xp.max(value), 0.0)


def epsilon(curve: Curve, log_d, *, symmetric: bool) -> Bracket:
    """ε(δ): the smallest ε ≥ 0 with δ(ε) ≤ δ, in nats.

    Method: docs/method/attack.md#lower
    """
    upper = _certified(curve.upper_plus, log_d)
    lower = _achieved(path(curve.lower_plus), log_d)
    if symmetric:
        upper = xp.maximum(upper, _certified(curve.upper_minus, log_d))
        lower = xp.maximum(lower, _achieved(path(curve.lower_minus), log_d))
    upper = xp.minimum(upper, unsampled.epsilon(log_d, curve.tail_mu, 1.0))
    return Bracket(xp.maximum(lower, unsampled.epsilon(log_d, curve.shown_mu, -1.0)), upper)


def locate(curve: Curve, query, found: Bracket | None = None, *, symmetric: bool):
    """ε itself, from above."""
    return (epsilon(curve, query, symmetric=symmetric) if found is None else found).upper


def of_gaussian(mu, delta):
    """ε of the Gaussian mechanism."""
    return gdp.epsilon(delta=delta, mu=mu)


QUANTITY = Quantity(
    name="epsilon",
    symbol="ε",
    read=epsilon,
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
    unit="nats",
    rounding=1e-14,
    reported=options.REPORT_DELTAS,
    of_gaussian=of_gaussian,
    order=40,
)
