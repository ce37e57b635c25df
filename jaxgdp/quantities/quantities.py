"""Every reading of a curve, by name: quantities, and what only curves and derivatives use."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..accounting.certify.curve import Curve, Points, log_one_minus_delta_at, path
from ..bracket import Bracket
from ..numerics import namespace as xp
from ..numerics.normal import log_error, log_ndtr
from ..numerics.shapes import Array
from ..numerics.validation import open_unit
from .base import Quantity, identity, log_rate
from .reading.profile import log_delta as _log_delta
from .reading.rates import error_rates
from .registry import named
from .tangency import HalfCurves, Tangency, at_fpr


def _log_tpr(curve: Curve, query: Array, *, symmetric: bool) -> Any:
    return error_rates(curve, query, symmetric=symmetric)[0]


def _log_beta(curve: Curve, query: Array, *, symmetric: bool) -> Any:
    return error_rates(curve, query, symmetric=symmetric)[1]


def _advantage_fpr(curve: Curve, query: Array, *, symmetric: bool) -> Bracket:
    attack = path(curve.lower_plus)
    gain = xp.exp(attack.log_tpr) - xp.exp(attack.log_alpha)
    k = xp.argmax(gain)
    # the Gaussian parts alone: a threshold halfway between the means
    alone = xp.exp(log_ndtr(-0.5 * curve.gaussian_part_mu))
    fpr = xp.where(1.0 - 2.0 * alone >= gain[k], alone, xp.exp(attack.log_alpha[k]))
    return Bracket(fpr, fpr)


def _log_one_minus_delta(curve: Curve, query: Array, *, symmetric: bool) -> Bracket:
    """log(1 − δ(ε)) = log min(β + e^ε·α): dominating pair from below, tests from above."""
    lower = log_one_minus_delta_at(curve.upper_plus, query)
    upper = _achieved(path(curve.lower_plus), query)
    if symmetric:
        lower = xp.minimum(lower, log_one_minus_delta_at(curve.upper_minus, query))
        upper = xp.minimum(upper, _achieved(path(curve.lower_minus), query))
    return Bracket(lower, upper)


def _achieved(attack: Points, epsilon: Array) -> Array:
    found = xp.logaddexp(attack.log_beta, epsilon + attack.log_alpha)
    found = found + log_error(found, epsilon, attack.log_alpha)
    return xp.minimum(xp.min(xp.where(attack.used, found, 0.0)), 0.0)


def _log_tpr_tangency(
    halves: HalfCurves, query: Array, found: Bracket, given: Bracket | None = None
) -> Tangency:
    """∂ log TPR = ∂TPR/TPR."""
    at = at_fpr(halves, query)
    log_tpr = at.touch.log_tpr
    return at.tangency(-log_tpr, at.slope / xp.exp(log_tpr))


def _log_beta_tangency(
    halves: HalfCurves, query: Array, found: Bracket, given: Bracket | None = None
) -> Tangency:
    """∂ log β = −∂TPR/β."""
    at = at_fpr(halves, query)
    log_beta = at.touch.log_beta
    return at.tangency(-log_beta, -at.slope / xp.exp(log_beta), -1.0)


_LOG = (-np.inf, 0.0)
_AT_FPR: dict[str, Any] = {
    "argument": "fpr", "check": open_unit, "query": log_rate, "rate": identity,
}  # fmt: skip
READINGS = {
    reading.name: reading
    for reading in (
        Quantity(
            name="log_delta",
            symbol="log δ",
            read=_log_delta,
            long_name="log of the privacy profile",
            extent=_LOG,
            rounding=1e-12,
        ),
        Quantity(
            name="log_one_minus_delta",
            symbol="log (1 − δ)",
            read=_log_one_minus_delta,
            long_name="log of 1 − δ",
            extent=_LOG,
            rounding=1e-12,
            safe_side="lower",
        ),
        Quantity(
            name="log_tpr",
            symbol="log TPR",
            read=_log_tpr,
            long_name="log of the largest TPR at an FPR",
            extent=_LOG,
            tangency=_log_tpr_tangency,
            **_AT_FPR,
        ),
        Quantity(
            name="log_beta",
            symbol="log β",
            read=_log_beta,
            long_name="log of the least FNR at an FPR",
            extent=_LOG,
            safe_side="lower",
            tangency=_log_beta_tangency,
            **_AT_FPR,
        ),
        Quantity(
            name="advantage_fpr",
            symbol="α*",
            read=_advantage_fpr,
            long_name="FPR of the attack that reaches the advantage",
            extent=(0.0, 1.0),
            monotone=False,
            of_one_curve=True,
        ),
    )
}


def reading(name: str) -> Quantity:
    """A quantity of the registry, or one of ``READINGS``.

    Raises:
        ValueError: the name is unknown.
    """
    return READINGS[name] if name in READINGS else named(name)


def quantity(name: str, curve: Curve, query: Array, *, symmetric: bool) -> Bracket:
    """Both sides of one number of one curve, each on its own: see ``Quantity.settle``.

    ``query`` is the argument of the quantity, as ``Quantity.query`` makes it; a quantity without an
    argument ignores it.

    Raises:
        ValueError: the name is unknown (while tracing).
    """
    with np.errstate(all="ignore"):
        return reading(name).read(curve, query, symmetric=symmetric)
