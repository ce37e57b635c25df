"""Every reading of a curve, by name: the quantities of the registry, and readings that only curves
and derivatives use.
"""

from __future__ import annotations

import numpy as np

from ..accounting.certify.curve import Curve, log_rest_at, path
from ..bracket import Bracket
from ..numerics import namespace as xp
from ..numerics.normal import log_error, log_ndtr
from .base import Quantity
from .reading.profile import log_delta as _log_delta
from .reading.rates import error_rates
from .registry import named


def _log_tpr(curve, query, *, symmetric):
    return error_rates(curve, query, symmetric=symmetric)[0]


def _log_beta(curve, query, *, symmetric):
    return error_rates(curve, query, symmetric=symmetric)[1]


def _advantage_fpr(curve, query, *, symmetric):
    attack = path(curve.lower_plus)
    gain = xp.exp(attack.log_tpr) - xp.exp(attack.log_alpha)
    k = xp.argmax(gain)
    # the Gaussian parts alone: a threshold halfway between the means
    alone = xp.exp(log_ndtr(-0.5 * curve.shown_mu))
    fpr = xp.where(1.0 - 2.0 * alone >= gain[k], alone, xp.exp(attack.log_alpha[k]))
    return Bracket(fpr, fpr)


def _log_rest(curve, query, *, symmetric):
    """log(1 − δ(ε)) = log min(β + e^ε·α): of the dominating pair from below, of the attack's tests
    from above.
    """
    lower = log_rest_at(curve.upper_plus, query)
    upper = _achieved(path(curve.lower_plus), query)
    if symmetric:
        lower = xp.minimum(lower, log_rest_at(curve.upper_minus, query))
        upper = xp.minimum(upper, _achieved(path(curve.lower_minus), query))
    return Bracket(lower, upper)


def _achieved(attack, epsilon):
    found = xp.logaddexp(attack.log_beta, epsilon + attack.log_alpha)
    found = found + log_error(found, epsilon, attack.log_alpha)
    return xp.minimum(xp.min(xp.where(attack.used, found, 0.0)), 0.0)


_LOG = (-xp.inf, 0.0)
READINGS = {
    reading.name: reading
    for reading in (
        Quantity(
            "log_delta",
            "log δ",
            _log_delta,
            "log of the privacy profile",
            extent=_LOG,
            rounding=1e-12,
        ),
        Quantity(
            "log_rest",
            "log (1 − δ)",
            _log_rest,
            "log of 1 − δ",
            extent=_LOG,
            rounding=1e-12,
            safe_side="lower",
        ),
        Quantity("log_tpr", "log TPR", _log_tpr, "log of the largest TPR at an FPR", extent=_LOG),
        Quantity(
            "log_beta",
            "log β",
            _log_beta,
            "log of the least FNR at an FPR",
            extent=_LOG,
            safe_side="lower",
        ),
        Quantity(
            "advantage_fpr",
            "α*",
            _advantage_fpr,
            "FPR of the attack that reaches the advantage",
            extent=(0.0, 1.0),
            monotone=False,
        ),
    )
}


def reading(name: str) -> Quantity:
    """A quantity of the registry, or one of ``READINGS``.

    Raises:
        ValueError: the name is unknown.
    """
    return READINGS[name] if name in READINGS else named(name)


def quantity(name: str, curve: Curve, query, *, symmetric: bool) -> Bracket:
    """Both sides of one number of one curve (unbatched), each worked out on its own: see
    ``Quantity.settle``.

    ``query`` is what it is asked at: log FPR floor of "mu" and "regret", log d of "approximate_mu",
    log δ of "epsilon", ε of "delta", "log_delta" and "log_rest", log FPR of "tpr", "beta",
    "log_tpr" and "log_beta", the prior of "bayes_risk"; "advantage" and "advantage_fpr" (where the
    attack reaches it) ignore it.

    Raises:
        ValueError: the name is unknown (while tracing).
    """
    with np.errstate(all="ignore"):
        return reading(name).read(curve, query, symmetric=symmetric)
