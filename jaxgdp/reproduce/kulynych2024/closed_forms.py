"""Noise of a Gaussian of sensitivity 1 for an attack risk (Kulynych 2024, Appendix B)."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from ...numerics.shapes import Array, ArrayLike
from ...numerics.validation import broadcast, open_unit


def sigma_for_advantage(advantage: ArrayLike) -> Array:
    """σ = 1/(2Φ⁻¹((η + 1)/2)) (Corollary B.3).

    Args:
        advantage: η in (0, 1).

    Returns:
        σ, float64: the advantage is η exactly.

    Raises:
        ValueError: η is out of range.

    Example:
        >>> round(float(sigma_for_advantage(0.5)), 6)
        0.741301
    """
    return 0.5 / ndtri(0.5 * (open_unit("advantage", advantage) + 1.0))


def sigma_for_rates(fpr: ArrayLike, fnr: ArrayLike) -> Array:
    """σ = 1/(Φ⁻¹(1 − α) − Φ⁻¹(β)) (Corollary B.4).

    Args:
        fpr, fnr: α and β in (0, 1), α + β < 1, any shapes that broadcast.

    Returns:
        σ, float64: the FNR at this FPR is β exactly.

    Raises:
        ValueError: an argument is out of range, or α + β ≥ 1, which needs no finite noise to fail.

    Example:
        >>> round(float(sigma_for_rates(0.1, 0.5)), 6)
        0.780304
    """
    alpha, beta = open_unit("fpr", fpr), open_unit("fnr", fnr)
    broadcast(fpr=alpha, fnr=beta)
    if np.any(alpha + beta >= 1.0):
        raise ValueError(f"fpr + fnr must be below 1, got {alpha + beta}")
    return -1.0 / (ndtri(alpha) + ndtri(beta))
