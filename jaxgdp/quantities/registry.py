"""Every quantity, by name."""

from __future__ import annotations

import numpy as np

from ..accounting.curve import points
from ..numerics import namespace as xp
from ..numerics.normal import argmax
from .base import Quantity
from .error_rates import bayes_risk, error_rates
from .mu import approximate_mu, mu
from .profile import advantage, epsilon, log_delta, probability
from .regret import regret

LEAST_RISK = 1e-6


def _mu(curve, query, *, symmetric):
    return mu(curve, query)


def _approximate_mu(curve, query, *, symmetric):
    return approximate_mu(curve, query)


def _regret(curve, query, *, symmetric):
    return regret(curve, mu(curve, query), symmetric=symmetric)


def _advantage(curve, query, *, symmetric):
    return advantage(curve)


def _delta(curve, query, *, symmetric):
    return probability(log_delta(curve, query, symmetric=symmetric))


def _tpr(curve, query, *, symmetric):
    return probability(error_rates(curve, query, symmetric=symmetric)[0])


def _beta(curve, query, *, symmetric):
    return probability(error_rates(curve, query, symmetric=symmetric)[1])


def _epsilon_place(curve, query, *, symmetric):
    return epsilon(curve, query, symmetric=symmetric).upper


def _rate_place(curve, query, *, symmetric):
    def at(p, log_rate, up):
        """|ℓ| at which a rate that falls (or grows) along the vertices crosses ``query``."""
        before = p.used & xp.where(up, log_rate < query, log_rate > query)
        k = argmax(xp.where(before, p.low, -xp.inf))
        after = log_rate[xp.minimum(k + 1, log_rate.shape[0] - 1)]
        rise = xp.where(after != log_rate[k], after - log_rate[k], 1.0)
        share = xp.clip((query - log_rate[k]) / rise, 0.0, 1.0)
        return xp.where(before[k], p.low[k] + (p.high[k] - p.low[k]) * share, xp.nan)

    plus, minus = points(curve.upper_plus), points(curve.upper_minus)
    beyond = plus if symmetric else minus
    return xp.where(
        xp.max(xp.where(plus.used, plus.log_alpha, -xp.inf)) >= query,
        at(plus, plus.log_alpha, False),
        at(beyond, beyond.log_beta, True),
    )


def _prior_place(prior):
    return np.abs(np.log(prior) - np.log1p(-prior))


def same(value):
    return value


REGISTRY: dict[str, Quantity] = {
    q.name: q
    for q in (
        Quantity("mu", "μ", _mu, "fpr_floor", 1e-10, np.log),
        Quantity("regret", "Δ", _regret, "fpr_floor", 1e-10, np.log, absolute=0.1),
        Quantity("advantage", "η", _advantage),
        Quantity("epsilon", "ε", epsilon, "delta", 1e-5, np.log, rate=same, locate=_epsilon_place, unit="nats"),
        Quantity("delta", "δ", _delta, "epsilon", 1.0, threshold=same),
        Quantity("tpr", "TPR", _tpr, "fpr", 1e-3, np.log, rate=same, locate=_rate_place),
        Quantity("beta", "β", _beta, "fpr", 1e-3, np.log, rate=same, locate=_rate_place, safe_side="lower"),
        Quantity(
            "bayes_risk",
            "R",
            bayes_risk,
            "prior",
            0.5,
            rate=lambda prior: LEAST_RISK,
            threshold=_prior_place,
            safe_side="lower",
        ),
        Quantity("approximate_mu", "μ_d", _approximate_mu, "d", 1e-10, np.log, rate=same),
    )
}
