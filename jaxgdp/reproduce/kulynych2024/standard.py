"""Standard calibration of Kulynych 2024: from error rates to the ε needed, and back."""

from __future__ import annotations

import numpy as np

from ...conversions import beta_from_approximate_dp
from ...numerics.shapes import Array, ArrayLike
from ...numerics.validation import broadcast, open_unit


def epsilon_for_rates(fpr: ArrayLike, fnr: ArrayLike, delta: ArrayLike) -> Array:
    """Largest ε at which (ε, δ)-DP keeps attacks of this FPR at this FNR or above (Eq. 5).

    ε = max(log((1 − δ − β)/α), log((1 − δ − α)/β)), the larger of what the two lines of the curve
    allow.

    Args:
        fpr, fnr, delta: α, β and δ in (0, 1), any shapes that broadcast.

    Returns:
        ε in nats, float64.

    Raises:
        ValueError: an argument is out of range, or α + β > 1 − δ, which not even ε = 0 promises.

    Example:
        >>> round(float(epsilon_for_rates(0.1, 0.5, 1e-5)), 6)
        1.609418
    """
    alpha, beta, d = open_unit("fpr", fpr), open_unit("fnr", fnr), open_unit("delta", delta)
    broadcast(fpr=alpha, fnr=beta, delta=d)
    if np.any(bad := alpha + beta > 1.0 - d):
        worst = np.broadcast_to(alpha + beta, bad.shape)[bad].flat[0]
        raise ValueError(f"fpr + fnr must be at most 1 - delta, got {worst:g}")
    return np.maximum(np.log((1.0 - d - beta) / alpha), np.log((1.0 - d - alpha) / beta))


def tpr_allowed(fpr: ArrayLike, epsilon: ArrayLike, delta: ArrayLike) -> Array:
    """Largest TPR that some (ε, δ)-DP mechanism allows at an FPR: 1 − f(α), f of Eq. 5.

    Args:
        fpr: α in [0, 1].
        epsilon: ε ≥ 0 in nats.
        delta: δ in [0, 1]; any shapes that broadcast.

    Returns:
        TPR, float64.

    Example:
        >>> round(float(tpr_allowed(0.1, 1.609418, 1e-5)), 6)
        0.5
    """
    return 1.0 - beta_from_approximate_dp(fpr=fpr, epsilon=epsilon, delta=delta)
