"""The cost of calibrating for advantage at small FPRs (Kulynych 2024, Proposition 3.6)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..bracket import Bracket
from ..numerics.shapes import Array, ArrayLike
from ..numerics.validation import broadcast, closed_unit, open_unit

FPRS = (0.01, 0.05, 0.1)
DELTA = 1e-5


@dataclass(frozen=True)
class AdvantageCost:
    """The cost of calibrating for advantage, one row for each FPR of the last axis.

    Attributes:
        fpr: the FPRs.
        delta: δ* of the standard calibration that is compared with.
        standard_epsilon: ε* of it: the (ε*, δ*)-DP that bounds the advantage by the target.
        worst_case: by how much the TPR of some mechanism with that advantage exceeds what (ε*,
            δ*)-DP allows (Proposition 3.6).
        tpr: certified TPR of the mechanism calibrated here; its upper side is the relevant one.
        standard_tpr: the largest TPR that (ε*, δ*)-DP allows.
    """

    fpr: Array
    delta: float
    standard_epsilon: Array
    worst_case: Array
    tpr: Bracket
    standard_tpr: Array


def standard_epsilon(advantage: ArrayLike, delta: Any = DELTA):
    """ε* with which (ε*, δ*)-DP bounds the advantage by η: e^ε* = (1 + η − 2δ*)/(1 − η).

    From η = (e^ε − 1 + 2δ)/(e^ε + 1) (Eq. 8, Kairouz et al. 2015).

    Args:
        advantage: η in (δ*, 1).
        delta: δ* in (0, 1). Any shapes that broadcast.

    Returns:
        ε* in nats.

    Raises:
        ValueError: an argument is out of range, η ≤ δ*, or shapes do not broadcast.

    Example:
        >>> round(float(standard_epsilon(0.5, 1e-5)), 5)
        1.0986
    """
    eta, rare = _checked(advantage, delta)
    return np.log1p(eta - 2.0 * rare) - np.log1p(-eta)


def worst_case_gap(advantage: ArrayLike, fpr: ArrayLike, delta: ArrayLike = DELTA):
    """How much higher the TPR can be after calibrating for advantage (Kulynych 2024, Prop. 3.6).

    The generic (ε*, δ*)-DP mechanism has f(α) = max(0, 1 − δ* − e^ε*·α, e^{−ε*}(1 − δ* − α)) (Eq.
    5), the generic one of advantage η has max(0, 1 − η − α). Their difference, for α ≤ (1 − η)/2,
    is

        (η − δ*)·(1 − 2α/(1 − η)),

    which is what the proposition states; it is attained, not only a bound, and vanishes at α = (1 −
    η)/2, where both have their largest advantage. For larger α, which the proposition leaves out,
    the difference of the two curves is taken as it is.

    Args:
        advantage: η in (δ*, 1).
        fpr: α in [0, 1].
        delta: δ* in (0, 1). Any shapes that broadcast.

    Returns:
        The gap in TPR, in [0, 1].

    Raises:
        ValueError: an argument is out of range, η ≤ δ*, or shapes do not broadcast.

    Example:
        >>> round(float(worst_case_gap(0.5, 0.1, 1e-5)), 4)
        0.3
    """
    alpha = closed_unit("fpr", fpr)
    eta, rare = _checked(advantage, delta)
    broadcast(advantage=eta, fpr=alpha)
    small = (eta - rare) * (1.0 - 2.0 * alpha / (1.0 - eta))
    large = generic_beta(alpha, standard_epsilon(eta, rare), rare) - np.maximum(
        1.0 - eta - alpha, 0.0
    )
    return np.maximum(np.where(alpha <= 0.5 * (1.0 - eta), small, large), 0.0)


def advantage_cost(
    advantage: ArrayLike, tpr: Bracket, fpr: ArrayLike = FPRS, delta: float = DELTA
) -> AdvantageCost:
    """A table of the TPR from the proposition and the certified TPR of the calibrated mechanism.

    Args:
        advantage: η, any shape; NaN in the answer where it is not above δ*.
        tpr: bracket of that shape with the FPRs along one more axis.
    """
    eta, rates = np.asarray(advantage)[..., None], np.asarray(fpr)
    some = eta > delta
    safe = np.where(some, eta, 0.5)
    epsilon = standard_epsilon(safe, delta)
    blank = lambda a: np.where(some, a, np.nan)
    worst = blank(worst_case_gap(safe, rates, delta))
    standard = blank(1.0 - generic_beta(rates, epsilon, delta))
    return AdvantageCost(rates, delta, blank(epsilon)[..., 0], worst, tpr, standard)


def generic_beta(alpha: Any, epsilon: Any, delta: Any):
    """f of the generic (ε, δ)-DP mechanism (Kulynych 2024, Eq. 5)."""
    steep, flat = 1.0 - delta - np.exp(epsilon) * alpha, np.exp(-epsilon) * (1.0 - delta - alpha)
    return np.maximum(np.maximum(steep, flat), 0.0)


def _checked(advantage: ArrayLike, delta: ArrayLike):
    eta, rare = open_unit("advantage", advantage), open_unit("delta", delta)
    broadcast(advantage=eta, delta=rare)
    if np.any(bad := eta <= rare):
        first = np.broadcast_to(eta, bad.shape)[bad].flat[0]
        raise ValueError(
            f"advantage must be above delta for standard calibration to exist, got {first:g}"
        )
    return eta, rare
