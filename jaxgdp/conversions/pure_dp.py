"""Pure ε-DP and the exponential mechanism as zero-concentrated DP."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..numerics.shapes import Array, ArrayLike
from ..numerics.validation import checked
from ..vocabulary import keywords_only
from .outward import up


def _epsilon(value: Any):
    return checked("epsilon", value, "a finite number >= 0", lambda a: a >= 0.0)


@keywords_only
def zcdp_from_pure_dp(*, epsilon: ArrayLike) -> Array:
    """Smallest ρ with which pure ε-DP implies ρ-zCDP: ρ = ε·tanh(ε/2).

    Among all ε-DP pairs, randomized response has the largest Rényi divergence at every order, D_t/t
    is largest as t → 1, and there it is the Kullback-Leibler divergence ε·(e^ε − 1)/(e^ε + 1)
    (never more than the ε²/2 of Bun & Steinke 2016, Proposition 3.3).

    Args:
        epsilon: ε ≥ 0 in nats, any shape.

    Returns:
        ρ, float64; the safe side to report, as it is an upper bound.

    Raises:
        ValueError: ε is negative or not finite.

    Example:
        >>> round(float(zcdp_from_pure_dp(epsilon=1.0)), 6)
        0.462117
    """
    eps = _epsilon(epsilon)
    with np.errstate(under="ignore"):
        product = eps * np.tanh(0.5 * eps)
    # (a product that vanishes is not 0)
    return np.where(eps > 0.0, up(np.maximum(product, np.finfo(float).tiny)), 0.0)[()]


@keywords_only
def zcdp_from_exponential_mechanism(*, epsilon: ArrayLike) -> Array:
    """zCDP of the exponential mechanism, or any mechanism of ε-bounded range: ρ = ε²/8 (Cesar &
    Rogers 2021; Gomez 2025, Section 6).

    Args:
        epsilon: ε ≥ 0 in nats, any shape.

    Returns:
        ρ, float64; the safe side to report, as it is an upper bound.

    Raises:
        ValueError: ε is negative or not finite.

    Example:
        >>> round(float(zcdp_from_exponential_mechanism(epsilon=2.0)), 12)
        0.5
    """
    eps = _epsilon(epsilon)
    with np.errstate(over="ignore", under="ignore"):
        product = 0.125 * eps * eps
    return np.where(eps > 0.0, up(np.maximum(product, np.finfo(float).tiny)), 0.0)[()]
