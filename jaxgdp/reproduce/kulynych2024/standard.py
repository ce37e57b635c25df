"""Standard calibration as Kulynych 2024 describes it: from a risk to the ε that every (ε, δ)-DP mechanism needs, and back."""

from __future__ import annotations

import numpy as np

from ...conversions import beta_from_approximate_dp
from ...validation import broadcast, checked, open_unit


def _feasible(name: str, bad, text: str) -> None:
    if np.any(bad):
        raise ValueError(f"{name} {text}")


def epsilon_for_advantage(advantage, delta):
    """Largest ε at which every (ε, δ)-DP mechanism has at most this advantage: log((1 + η − 2δ)/(1 − η)) (Eq. 30, from Eq. 8).

    Args:
        advantage: η in (δ, 1). delta: δ in (0, 1). Any shapes that broadcast.

    Returns:
        ε in nats, float64.

    Raises:
        ValueError: an argument is out of range, or η ≤ δ, which no ε reaches.

    Example:
        >>> round(float(epsilon_for_advantage(0.5, 1e-5)), 6)
        1.098599
    """
    eta, d = open_unit("advantage", advantage), open_unit("delta", delta)
    broadcast(advantage=eta, delta=d)
    _feasible("advantage", eta <= d, f"must be above delta, got {eta} at delta {d}")
    return np.log((1.0 + eta - 2.0 * d) / (1.0 - eta))


def epsilon_for_rates(fpr, fnr, delta):
    """Largest ε at which every (ε, δ)-DP mechanism keeps attacks of this FPR at this FNR or above: Eq. 5 solved for ε.

    ε = max(log((1 − δ − β)/α), log((1 − δ − α)/β)), the larger of what the two lines of the curve allow.

    Args:
        fpr: α in (0, 1). fnr: β in (0, 1). delta: δ in (0, 1). Any shapes that broadcast.

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
    _feasible("fpr + fnr", alpha + beta > 1.0 - d, f"must be at most 1 - delta, got {alpha + beta}")
    return np.maximum(np.log((1.0 - d - beta) / alpha), np.log((1.0 - d - alpha) / beta))


def tpr_allowed(fpr, epsilon, delta):
    """Largest TPR that some (ε, δ)-DP mechanism allows at an FPR: 1 − f(α), f of Eq. 5.

    Args:
        fpr: α in [0, 1]. epsilon: ε ≥ 0 in nats. delta: δ in [0, 1]. Any shapes that broadcast.

    Returns:
        TPR, float64.

    Example:
        >>> round(float(tpr_allowed(0.1, 1.609418, 1e-5)), 6)
        0.5
    """
    return 1.0 - beta_from_approximate_dp(fpr, epsilon, delta)


def cost_of_advantage(fpr, advantage, delta):
    """FNR lost at an FPR by calibrating the generic mechanism to an advantage directly: (η − δ)(1 − 2α/(1 − η)) (Prop. 3.6).

    Args:
        fpr: α in (0, (1 − η)/2]. advantage: η in (δ, 1). delta: δ in (0, 1). Any shapes that broadcast.

    Returns:
        f_standard(α) − f_adv(α), float64.

    Raises:
        ValueError: an argument is out of range; the formula needs α ≤ (1 − η)/2.

    Example:
        >>> round(float(cost_of_advantage(0.1, 0.5, 1e-5)), 6)
        0.299994
    """
    eta, d = open_unit("advantage", advantage), open_unit("delta", delta)
    alpha = checked("fpr", fpr, "in (0, (1 - advantage)/2]", lambda a: (a > 0.0) & (a <= np.max((1.0 - eta) / 2.0)))
    broadcast(fpr=alpha, advantage=eta, delta=d)
    _feasible("fpr", alpha > (1.0 - eta) / 2.0, f"must be at most (1 - advantage)/2, got {alpha}")
    return (eta - d) * (1.0 - 2.0 * alpha / (1.0 - eta))
