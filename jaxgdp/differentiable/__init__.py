"""Certified numbers that can be traced: inside ``jit``, ``vmap`` and ``grad``, in σ, p, T and in what they are asked at."""

from .calibrated import noise_multiplier
from .quantities import (
    advantage,
    approximate_mu,
    bayes_risk,
    beta,
    delta,
    epsilon,
    lattice,
    log_beta,
    log_tpr,
    mu,
    regret,
    tpr,
)

__all__ = [
    "advantage",
    "approximate_mu",
    "bayes_risk",
    "beta",
    "delta",
    "epsilon",
    "lattice",
    "log_beta",
    "log_tpr",
    "mu",
    "noise_multiplier",
    "regret",
    "tpr",
]
