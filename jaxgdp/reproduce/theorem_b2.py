"""Regret as Theorem B.2 of Gomez 2025 computes it: at breakpoints only, so at times too small."""

from __future__ import annotations

import numpy as np

from .. import gdp
from ..numerics.shapes import ArrayLike

_HALVINGS = 60


def breakpoint_regret(alpha: ArrayLike, beta: ArrayLike, mu: float) -> float:
    """inf{κ ≥ 0: f(α_i + κ) − κ ≤ f_μ(α_i) at every α_i} (Gomez 2025, Eq. 30, Algorithm 2).

    Not a bound on the regret Δ: a shift has to be enough at every α, not only at breakpoints.
    Between them f is straight and f_μ convex, so the largest gap of a curve with few breakpoints
    lies where this does not look. Kept to show that; :meth:`jaxgdp.TradeoffCurve.regret` is the
    regret.

    Args:
        alpha: FPRs of the breakpoints of a piecewise linear trade-off curve, increasing from 0 to
            1.
        beta: its FNRs there.
        mu: μ > 0 of the Gaussian curve.

    Returns:
        κ from below (the left end of the bisection, as in Algorithm 2).

    Raises:
        ValueError: the breakpoints do not increase from 0 to 1, or shapes differ.

    Example:
        >>> x = 1 / (1 + np.e)
        >>> mu = float(gdp.mu_from_pure_dp(epsilon=1.0))
        >>> breakpoint_regret([0.0, x, 1.0], [1.0, x, 0.0], mu) < 1e-15
        True
    """
    alpha, beta = np.asarray(alpha, np.float64), np.asarray(beta, np.float64)
    if alpha.shape != beta.shape or alpha.ndim != 1:
        raise ValueError(
            f"alpha and beta must be rows of equal length, got shapes {alpha.shape} and"
            f" {beta.shape}"
        )
    if not (alpha[0] == 0.0 and alpha[-1] == 1.0 and np.all(np.diff(alpha) > 0.0)):
        raise ValueError(f"alpha must increase from 0 to 1, got {alpha}")
    gaussian = gdp.beta(fpr=alpha, mu=mu)
    left, right = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = 0.5 * (left + right)
        shifted = np.interp(np.minimum(alpha + middle, 1.0), alpha, beta) - middle
        if np.all(shifted <= gaussian):
            right = middle
        else:
            left = middle
    return left
