"""Exact pairs of dp_accounting's discrete mechanisms, as (record absent, record present)."""

from __future__ import annotations

import functools

import numpy as np

from ...mechanisms import DiscreteGaussian
from ...numerics.errors import CLOSED_FORM
from ...numerics.precision import with_float64

Table = tuple[float, ...]


def discrete_laplace_pair(a: float, moves: int) -> tuple[Table, Table]:
    """Discrete Laplace noise e^{−a|x|} on a sum that one record moves by ``moves``: the integers up
    to 0, those between, the rest.

    With r = e^{−a} the outputs up to 0 have P-mass 1/(1 + r), k in between (1 − r)·r^k/(1 + r) and
    those from ``moves`` on r^moves/(1 + r); Q is the mirror image."""
    r = np.exp(-a)
    k = np.arange(1, moves)
    p = np.concatenate([[1.0], -np.expm1(-a) * np.exp(-a * k), [np.exp(-a * moves)]]) / (1.0 + r)
    return tuple(p.tolist()), tuple(p[::-1].tolist())


def special_response_pair(p: float, k: int) -> tuple[Table, Table]:
    """Randomized response of a record against that of the special record, whose response is
    uniform: the true answer, and all others.
    """
    return (1.0 / k, (k - 1.0) / k), (1.0 - p * (k - 1.0) / k, p * (k - 1.0) / k)


def approximate_pair(epsilon: float, delta: float = 0.0) -> tuple[Table, Table]:
    """The dominating pair of (ε, δ)-DP (Kairouz et al. 2015)."""
    more, less = (1.0 - delta) / (1.0 + np.exp(-epsilon)), (1.0 - delta) / (1.0 + np.exp(epsilon))
    return (delta, float(more), float(less), 0.0), (0.0, float(less), float(more), delta)


def sampled_pair(absent: Table, present: Table, rate: float) -> tuple[Table, Table]:
    """The pair after Poisson sampling: P and (1 − p)·P + p·Q (Zhu et al. 2022, Theorem 11)."""
    p, q = np.asarray(absent), np.asarray(present)
    return absent, tuple(((1.0 - rate) * p + rate * q).tolist())


@functools.lru_cache(maxsize=256)
def discrete_gaussian_mu(sigma: float) -> float:
    """μ of discrete Gaussian noise on a query that moves by one, which is exactly μ-GDP."""

    @with_float64
    def mu():
        return float(np.sqrt(np.asarray(DiscreteGaussian(sigma).tail_precision())))

    return mu() * (1.0 + CLOSED_FORM)
