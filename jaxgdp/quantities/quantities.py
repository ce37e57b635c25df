"""Every number that can be read off a certified curve, by name."""

from __future__ import annotations

from ..accounting.curve import Curve, path
from ..bracket import Bracket
from ..numerics import namespace as xp
from ..numerics.normal import log_ndtr
from .error_rates import bayes_risk, error_rates
from .mu import approximate_mu, mu
from .profile import advantage, epsilon, log_delta, probability
from .regret import regret


def quantity(name: str, curve: Curve, query, *, symmetric: bool) -> Bracket:
    """One number of one curve (unbatched).

    ``query`` is what it is asked at: log FPR floor of "mu" and "regret", log d of "approximate_mu", log δ of "epsilon", ε of
    "delta", log FPR of "tpr", "beta", "log_tpr" and "log_beta", the prior of "bayes_risk"; "advantage" and "advantage_fpr"
    (where the attack reaches it) ignore it.

    Raises:
        ValueError: the name is unknown (while tracing).
    """
    if name == "mu":
        return mu(curve, query)
    if name == "approximate_mu":
        return approximate_mu(curve, query)
    if name == "regret":
        return regret(curve, mu(curve, query), symmetric=symmetric)
    if name == "advantage":
        return advantage(curve)
    if name == "epsilon":
        return epsilon(curve, query, symmetric=symmetric)
    if name == "delta":
        return probability(log_delta(curve, query, symmetric=symmetric))
    if name in ("log_tpr", "tpr"):
        found = error_rates(curve, query, symmetric=symmetric)[0]
        return found if name == "log_tpr" else probability(found)
    if name in ("log_beta", "beta"):
        found = error_rates(curve, query, symmetric=symmetric)[1]
        return found if name == "log_beta" else probability(found)
    if name == "bayes_risk":
        return bayes_risk(curve, query, symmetric=symmetric)
    if name == "advantage_fpr":
        attack = path(curve.lower_plus)
        gain = xp.exp(attack.log_tpr) - xp.exp(attack.log_alpha)
        k = xp.argmax(gain)
        # the Gaussian parts alone: a threshold halfway between the means
        alone = xp.exp(log_ndtr(-0.5 * curve.shown_mu))
        fpr = xp.where(1.0 - 2.0 * alone >= gain[k], alone, xp.exp(attack.log_alpha[k]))
        return Bracket(fpr, fpr)
    raise ValueError(f"unknown quantity {name!r}")
