"""Conversions between privacy definitions, each on its safe side: what one guarantee implies in the
terms of another. They take keywords only.
"""

from .approximate_dp import (
    advantage_from_approximate_dp,
    beta_from_approximate_dp,
    mu_from_approximate_dp,
)
from .pure_dp import zcdp_from_exponential_mechanism, zcdp_from_pure_dp
from .rdp import advantage_from_rdp, beta_from_rdp, delta_from_rdp, epsilon_from_rdp
from .table3 import TABLE3_DELTAS, TABLE3_EPSILONS, TABLE3_PRINTED, table3
from .zcdp import (
    advantage_from_zcdp,
    beta_from_zcdp,
    delta_from_zcdp,
    epsilon_from_zcdp,
    simple_delta_from_zcdp,
    simple_epsilon_from_zcdp,
)

__all__ = [
    "TABLE3_DELTAS",
    "TABLE3_EPSILONS",
    "TABLE3_PRINTED",
    "advantage_from_approximate_dp",
    "advantage_from_rdp",
    "advantage_from_zcdp",
    "beta_from_approximate_dp",
    "beta_from_rdp",
    "beta_from_zcdp",
    "delta_from_rdp",
    "delta_from_zcdp",
    "epsilon_from_rdp",
    "epsilon_from_zcdp",
    "mu_from_approximate_dp",
    "simple_delta_from_zcdp",
    "simple_epsilon_from_zcdp",
    "table3",
    "zcdp_from_exponential_mechanism",
    "zcdp_from_pure_dp",
]
