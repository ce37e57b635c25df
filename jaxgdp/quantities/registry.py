"""Every quantity, by name."""

from __future__ import annotations

import numpy as np

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


def same(value):
    return value


REGISTRY: dict[str, Quantity] = {
    q.name: q
    for q in (
        Quantity("mu", "μ", _mu, "fpr_floor", 1e-10, np.log),
        Quantity("regret", "Δ", _regret, "fpr_floor", 1e-10, np.log, absolute=0.1),
        Quantity("advantage", "η", _advantage),
        Quantity("epsilon", "ε", epsilon, "delta", 1e-5, np.log, rate=same, unit="nats"),
        Quantity("delta", "δ", _delta, "epsilon", 1.0),
        Quantity("tpr", "TPR", _tpr, "fpr", 1e-3, np.log, rate=same),
        Quantity("beta", "β", _beta, "fpr", 1e-3, np.log, rate=same, safe_side="lower"),
        Quantity("bayes_risk", "R", bayes_risk, "prior", 0.5, rate=lambda prior: LEAST_RISK, safe_side="lower"),
        Quantity("approximate_mu", "μ_d", _approximate_mu, "d", 1e-10, np.log, rate=same),
    )
}
