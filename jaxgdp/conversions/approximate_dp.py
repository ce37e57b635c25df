"""Implications of one (ε, δ)-DP guarantee: a curve, an advantage, no finite μ unless δ = 0."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import gdp
from ..deprecation import renamed_arguments
from ..numerics.errors import PURE_MU
from ..numerics.shapes import Array, ArrayLike
from ..numerics.validation import broadcast, checked, closed_unit
from ..vocabulary import keywords_only
from .outward import SMALLEST, UNIT, one_minus, up


def _guarantee(epsilon: Any, delta: Any):
    eps = checked("epsilon", epsilon, "a finite number >= 0", lambda a: a >= 0.0)
    d = closed_unit("delta", delta)
    return eps, d


@renamed_arguments(alpha="fpr")
@keywords_only
def beta_from_approximate_dp(*, fpr: ArrayLike, epsilon: ArrayLike, delta: ArrayLike) -> Array:
    """Trade-off curve of (ε, δ)-DP: f(α) = max(0, 1 − δ − e^ε·α, e^{−ε}·(1 − δ − α)) (Dong et al.
    2022; Gomez 2025, Section A.6).

    Args:
        fpr: FPR in [0, 1].
        epsilon: ε ≥ 0 in nats.
        delta: δ in [0, 1]. Any shapes that broadcast.

    Returns:
        FNR, float64: a lower bound for every (ε, δ)-DP mechanism, reached by one of them but for
            rounding.

    Raises:
        ValueError: an argument is out of range, or shapes do not broadcast.

    Example:
        >>> round(float(beta_from_approximate_dp(fpr=0.1, epsilon=1.0, delta=1e-5)), 6)
        0.728162
    """
    a = closed_unit("fpr", fpr)
    eps, d = _guarantee(epsilon, delta)
    broadcast(fpr=a, epsilon=eps, delta=d)
    with np.errstate(over="ignore", invalid="ignore"):
        rest = one_minus(d)
        fall = np.exp(eps) * a * (1.0 + 4.0 * UNIT)
        steep = np.where(a > 0.0, rest - fall - UNIT, rest)
        # (what is left of 1 − δ − α is exact where it is small, but for the rounding of 1 − δ)
        flat = np.where(a > 0.0, np.maximum(rest - a, 0.0) * (1.0 - UNIT), rest)
        flat = np.exp(-eps) * flat * (1.0 - 4.0 * UNIT)
    return np.maximum(np.maximum(steep, np.where(flat < SMALLEST, 0.0, flat)), 0.0)


@keywords_only
def advantage_from_approximate_dp(*, epsilon: ArrayLike, delta: ArrayLike) -> Array:
    """Largest advantage of an attacker under (ε, δ)-DP: η = (e^ε − 1 + 2δ)/(e^ε + 1).

    The two slopes of f meet where α = f(α) = (1 − δ)/(1 + e^ε); there 1 − α − f(α) is largest
    (Kulynych 2024).

    Args:
        epsilon: ε ≥ 0 in nats.
        delta: δ in [0, 1]. Any shapes that broadcast.

    Returns:
        η, float64: an upper bound for every (ε, δ)-DP mechanism, reached by one of them but for
        rounding.

    Raises:
        ValueError: an argument is out of range, or shapes do not broadcast.

    Example:
        >>> round(float(advantage_from_approximate_dp(epsilon=1.0, delta=0.0)), 6)
        0.462117
    """
    eps, d = _guarantee(epsilon, delta)
    broadcast(epsilon=eps, delta=d)
    # tanh(ε/2) + 2δ/(e^ε + 1), which neither cancels nor overflows
    with np.errstate(under="ignore"):
        return np.minimum(
            up(np.tanh(0.5 * eps)) + up(2.0 * d * np.exp(-eps) / (1.0 + np.exp(-eps)), 8.0), 1.0
        )


@keywords_only
def mu_from_approximate_dp(*, epsilon: ArrayLike, delta: ArrayLike) -> Array:
    """μ that (ε, δ)-DP implies: −2Φ⁻¹(1/(e^ε + 1)) for δ = 0, else ∞ (Gomez 2025, Prop. 6.1, 6.2).

    With δ > 0 some (ε, δ)-DP mechanism reveals a record for certain with probability δ, which no
    finite μ allows. The μ of a Gaussian mechanism calibrated to (ε, δ) is another question:
    :func:`jaxgdp.gdp.mu_from_epsilon_delta`.

    Args:
        epsilon: ε ≥ 0 in nats.
        delta: δ in [0, 1]. Any shapes that broadcast.

    Returns:
        μ, float64, tight but for 2e-12 relative: an upper bound.

    Raises:
        ValueError: an argument is out of range, or shapes do not broadcast.

    Example:
        >>> [round(float(mu), 6) for mu in mu_from_approximate_dp(epsilon=1.0, delta=[0.0, 1e-9])]
        [1.232035, inf]
    """
    eps, d = _guarantee(epsilon, delta)
    broadcast(epsilon=eps, delta=d)
    return np.where(d > 0.0, np.inf, gdp.mu_from_pure_dp(epsilon=eps) * (1.0 + PURE_MU))
