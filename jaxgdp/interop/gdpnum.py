"""gdpnum's entry points with the same arguments: the safe side of certified brackets.

    from jaxgdp.interop import gdpnum # in place of: import gdpnum
    gdpnum.get_mu_and_regret_for_dpsgd(noise_multiplier=9.4, sample_rate=16384 / 50_000,
    num_steps=2000)

``grid_step`` and ``use_connect_dots`` are accepted and not needed: lattices are chosen by the width
of the bracket. ``err`` is the FPR floor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import ndtr

from .. import gdp
from ..mechanisms import dpsgd
from ..numerics.errors import SHORT
from ..numerics.shapes import ArrayLike
from ..numerics.validation import closed_unit, nonnegative, positive
from .opacus import CertifiedAccountant
from .safe_sides import MuAndRegret, default_fprs, mu_and_regret, on_closed_unit, safe_side


def get_mu_and_regret_for_dpsgd(
    noise_multiplier: float,
    sample_rate: float,
    num_steps: int,
    grid_step: float = 1e-4,
    err: float = 1e-10,
) -> MuAndRegret:
    """μ of DP-SGD with Poisson sampling down to FPR ``err``, and its regret (Gomez 2025, Sec. 3).

    Args:
        noise_multiplier: σ > 0.
        sample_rate: in (0, 1].
        num_steps: a whole number ≥ 1.
        grid_step: > 0, not needed.
        err: FPR floor, in [1e-300, 0.5).

    Returns:
        μ and regret, both upper bounds.

    Raises:
        ValueError: an argument is out of range (before tracing).

    Example:
        >>> mu, regret = get_mu_and_regret_for_dpsgd(2.0, sample_rate=1.0, num_steps=4)
        >>> 1.0 <= mu < 1.001
        True
    """
    positive("grid_step", grid_step)
    return mu_and_regret(dpsgd(noise_multiplier, sample_rate, num_steps), err)


def get_worst_case_regret(
    alphas: ArrayLike, betas: ArrayLike, mu: float, tol: float = 1e-10
) -> float:
    """Regret of reporting μ for the curve through (alphas, betas): least Δ, f(α + Δ) − Δ ≤ f_μ(α).

    With u = α − β and v = α + β it is ½·max over u of v_f(u) − v_μ(u), and on a segment of slope
    −e^ℓ the maximum is at an end or where f_μ has that slope (Gomez 2025, Eq. 13, rotated): no
    search over Δ, and no grid.

    Args:
        alphas, betas: points of the curve in order of increasing α, in [0, 1].
        mu: μ > 0.
        tol: > 0, not needed.

    Returns:
        Δ, an upper bound but for rounding.

    Raises:
        ValueError: an argument is out of range, or the points are not in order.

    Example:
        >>> p = 1 / (1 + np.e)                       # randomized response at ε = 1
        >>> mu = float(gdp.mu_from_pure_dp(epsilon=1.0))
        >>> round(get_worst_case_regret([0.0, p, 1.0], [1.0, p, 0.0], mu), 7)
        0.0575464
    """
    positive("tol", tol)
    mu = float(positive("mu", mu))
    a, b = closed_unit("alphas", alphas), closed_unit("betas", betas)
    if a.ndim != 1 or a.shape != b.shape or a.size < 2:
        raise ValueError(
            f"alphas and betas must be equally many, at least 2, got shapes {a.shape} and {b.shape}"
        )
    if np.any(np.diff(a) < 0.0) or np.any(np.diff(b) > 0.0):
        raise ValueError(
            "alphas must increase and betas fall along the curve, got points out of order"
        )
    u, v = a - b, a + b
    with np.errstate(divide="ignore", invalid="ignore"):
        loss = np.log(-np.diff(b)) - np.log(np.diff(a))
    loss = loss[np.isfinite(loss)]
    tangent = ndtr(-mu / 2.0 - loss / mu) - ndtr(-mu / 2.0 + loss / mu)
    at = np.unique(np.concatenate([u, np.clip(tangent, u[0], u[-1])]))
    # v of f_μ at u: α = Φ(z), β = Φ(−z − μ), and u grows with z
    low, high = np.full(at.shape, -40.0 - mu), np.full(at.shape, 40.0)
    for _ in range(80):
        z = 0.5 * (low + high)
        short = ndtr(z) - ndtr(-z - mu) < at
        low, high = np.where(short, z, low), np.where(short, high, z)
    gap = np.interp(at, u, v) - (ndtr(low) + ndtr(-low - mu))
    return max(0.5 * float(np.max(gap)), 0.0)


class CTDAccountant(CertifiedAccountant):
    """gdpnum's and riskcal's accountant for Opacus.

    It is :class:`jaxgdp.interop.opacus.CertifiedAccountant` under another name of its states.

    Example:
        >>> accountant = CTDAccountant()
        >>> accountant.history = [(2.0, 1.0, 4)]
        >>> round(accountant.get_epsilon(delta=1e-5), 4)
        4.3772
    """

    @classmethod
    def mechanism(cls) -> str:
        """Name under which a state is saved."""
        return "ctd"

    def get_pld(self, grid_step: float = 1e-4, use_connect_dots: bool = True) -> Any:
        """A ``PrivacyLossDistribution`` that dominates the steps so far (needs dp_accounting)."""
        from .dp_accounting import to_pld

        del use_connect_dots
        return to_pld(self.composition(), grid_step)

    def get_beta(self, fpr: ArrayLike | None = None, **kwargs: Any) -> Any:
        """Least FNR at FPRs (also ``alpha``), a lower bound; see :func:`default_fprs`."""
        fpr = kwargs.get("alpha", fpr)
        return super().get_beta(default_fprs(self.get_advantage()) if fpr is None else fpr)

    def get_mu_and_regret(self, fpr_floor: float | None = None, **kwargs: Any) -> MuAndRegret:
        """μ down to the FPR floor (also ``err``) and its regret, both upper bounds."""
        return super().get_mu_and_regret(kwargs.get("err", fpr_floor))


class PLDConverter:
    """Trade-off curve, μ and regret of a ``PrivacyLossDistribution``, mass at infinity included.

    Args:
        pld: a pessimistic ``PrivacyLossDistribution``.

    Raises:
        ValueError: an optimistic one, or masses that do not sum to one.
    """

    def __init__(self, pld: Any):
        from .dp_accounting import from_pld

        self.pld = pld
        self._mechanism = from_pld(pld)

    def get_advantage(self) -> float:
        """Membership advantage, an upper bound."""
        return safe_side(self._mechanism, "advantage")

    def get_beta(self, input_alphas: ArrayLike | None = None) -> Any:
        """Least FNR at FPRs in [0, 1], a lower bound; see :func:`default_fprs`."""
        if input_alphas is None:
            input_alphas = default_fprs(self.get_advantage())
        fprs = closed_unit("input_alphas", input_alphas)
        pair = self._mechanism.mechanisms[0]
        # at FPR 0 only mass at infinity gives a record away
        certain = float(np.exp(np.maximum(pair.log_q_plus, pair.log_p_minus)))
        return on_closed_unit(self._mechanism, "beta", "fpr", fprs, 1.0 - certain - SHORT, 0.0)

    def get_mu(self, err: float = 1e-10) -> float:
        """μ at FPRs down to ``err``, an upper bound."""
        return self.get_mu_and_regret(err)[0]

    def get_mu_and_regret(self, err: float = 1e-10) -> MuAndRegret:
        """μ at FPRs down to ``err`` and its regret, both upper bounds."""
        return mu_and_regret(self._mechanism, err)


def gaussian_fdp(mu: float) -> Callable[[ArrayLike], Any]:
    """The trade-off curve of μ-GDP as a function of α.

    Example:
        >>> round(float(gaussian_fdp(1.0)(0.05)), 6)
        0.740489
    """
    mu = float(nonnegative("mu", mu))
    return lambda alpha: gdp.beta(fpr=closed_unit("alpha", alpha), mu=mu)
