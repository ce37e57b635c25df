"""riskcal's entry points with the same arguments: the safe side of certified brackets.

    from jaxgdp.interop import riskcal # in place of: from riskcal import analysis, calibration
    riskcal.get_beta_for_dpsgd(noise_multiplier=1.0, sample_rate=0.002, num_steps=10_000,
    alpha=0.01)

β and Bayes risk are lower bounds, advantage and ε upper bounds, and a calibrated noise multiplier
provably meets its target. A noise multiplier is σ > 0, a sample rate in (0, 1], a number of steps a
whole number ≥ 1; ``grid_step`` > 0 is accepted and not needed, and ``…_tol`` in (0, 1) is relative
to the noise. What is out of range is a ``ValueError`` (before tracing).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import conversions, gdp
from ..calibration import calibrate
from ..mechanisms import dpsgd
from ..numerics.shapes import ArrayLike
from ..numerics.validation import closed_unit, open_unit, positive
from ..targets import FNR, Advantage, Target
from .gdpnum import CTDAccountant, PLDConverter
from .safe_sides import on_closed_unit, plain, safe_side

__all__ = [
    "CTDAccountant",
    "find_noise_multiplier_for_advantage",
    "find_noise_multiplier_for_err_rates",
    "get_advantage_for_dpsgd",
    "get_advantage_from_adp",
    "get_advantage_from_gdp",
    "get_advantage_from_pld",
    "get_advantage_from_zcdp",
    "get_bayes_risk_from_gdp",
    "get_bayes_risk_from_pld",
    "get_beta_for_dpsgd",
    "get_beta_from_adp",
    "get_beta_from_gdp",
    "get_beta_from_pld",
    "get_beta_from_rdp",
    "get_beta_from_zcdp",
    "get_epsilon_from_err_rates",
]


def get_advantage_for_dpsgd(
    noise_multiplier: float, sample_rate: float, num_steps: int, grid_step: float = 1e-4
) -> Any:
    """Membership advantage of DP-SGD with Poisson sampling, an upper bound; arguments broadcast.

    Example:
        >>> round(get_advantage_for_dpsgd(noise_multiplier=2.0, sample_rate=1.0, num_steps=4), 3)
        0.383
    """
    positive("grid_step", grid_step)
    return safe_side(dpsgd(noise_multiplier, sample_rate, num_steps), "advantage")


def get_beta_for_dpsgd(
    noise_multiplier: float,
    sample_rate: float,
    num_steps: int,
    alpha: ArrayLike,
    grid_step: float = 1e-4,
) -> Any:
    """FNR of the best attack on DP-SGD at FPR α in [0, 1], a lower bound; arguments broadcast.

    Example:
        >>> 0.7404 < get_beta_for_dpsgd(2.0, 1.0, 4, alpha=0.05) < 0.7405
        True
    """
    positive("grid_step", grid_step)
    mechanism = dpsgd(noise_multiplier, sample_rate, num_steps)
    return on_closed_unit(mechanism, "beta", "fpr", closed_unit("alpha", alpha), 1.0, 0.0)


def _calibrated(
    target: Target,
    sample_rate: float,
    num_steps: int,
    rtol: float,
    noise_min: float,
    noise_max: float,
) -> Any:
    """The noise multiplier that provably meets a target, at least ``noise_min``."""
    found = calibrate(target, sampling_prob=sample_rate, num_steps=num_steps, rtol=rtol)
    low, high = float(positive("noise_min", noise_min)), float(positive("noise_max", noise_max))
    if low >= high:
        raise ValueError(f"noise_max must be larger than noise_min = {low:g}, got {high:g}")
    value = np.maximum(found.value, low)
    if np.any(value > high):
        raise ValueError(
            f"noise_max must be at least {np.max(value):g}, which the target needs, got {high:g}"
        )
    return plain(value)


def find_noise_multiplier_for_advantage(
    advantage: float,
    sample_rate: float,
    num_steps: int,
    grid_step: float = 1e-4,
    advantage_tol: float = 1e-3,
    noise_min: float = 0.1,
    noise_max: float = 50.0,
) -> Any:
    """Smallest noise that provably keeps the advantage at or below a target (Kulynych 2024).

    Args:
        advantage: η in (0, 1).
        noise_min, noise_max: range of the noise multiplier; others as for the whole module.

    Raises:
        ValueError: the target needs more noise than ``noise_max``.
    """
    positive("grid_step", grid_step)
    rtol = float(open_unit("advantage_tol", advantage_tol))
    return _calibrated(Advantage(advantage), sample_rate, num_steps, rtol, noise_min, noise_max)


def find_noise_multiplier_for_err_rates(
    alpha: float,
    beta: float,
    sample_rate: float,
    num_steps: int,
    grid_step: float = 1e-4,
    beta_tol: float = 1e-3,
    noise_min: float = 0.1,
    noise_max: float = 50.0,
) -> Any:
    """Smallest noise that provably keeps the FNR at FPR α at or above β (Kulynych 2024).

    Args:
        alpha: FPR in (0, 1).
        beta: FNR in (0, 1), with α + β < 1.
        noise_min, noise_max: range of the noise multiplier; others as for the whole module.

    Raises:
        ValueError: the target needs more noise than ``noise_max``.
    """
    positive("grid_step", grid_step)
    rtol = float(open_unit("beta_tol", beta_tol))
    target = FNR(fnr=beta, fpr=alpha)
    return _calibrated(target, sample_rate, num_steps, rtol, noise_min, noise_max)


def get_beta_from_pld(pld: Any, alpha: ArrayLike) -> Any:
    """FNR of the best attack at an FPR from a ``PrivacyLossDistribution``, a lower bound."""
    return PLDConverter(pld).get_beta(alpha)


def get_advantage_from_pld(pld: Any) -> float:
    """Membership advantage from a ``PrivacyLossDistribution``, an upper bound."""
    return PLDConverter(pld).get_advantage()


def get_bayes_risk_from_pld(pld: Any, prior: ArrayLike) -> Any:
    """Least error probability of an attacker from a ``PrivacyLossDistribution``, a lower bound.

    Args:
        prior: probability of the null hypothesis, in [0, 1]; 0 at either end.
    """
    from .dp_accounting import from_pld

    priors = closed_unit("prior", prior)
    return on_closed_unit(from_pld(pld), "bayes_risk", "prior", priors, 0.0, 0.0)


def get_beta_from_gdp(mu: ArrayLike, alpha: ArrayLike) -> Any:
    """FNR of μ-GDP at FPR α.

    Example:
        >>> round(get_beta_from_gdp(1.0, 0.05), 6)
        0.740489
    """
    return plain(gdp.beta(fpr=alpha, mu=mu))


def get_advantage_from_gdp(mu: ArrayLike) -> Any:
    """Advantage of μ-GDP."""
    return plain(gdp.advantage(mu=mu))


def get_bayes_risk_from_gdp(mu: ArrayLike, prior: ArrayLike) -> Any:
    """Bayes risk of μ-GDP at a prior, μ = 0 and priors 0 and 1 included.

    Example:
        >>> get_bayes_risk_from_gdp(0.0, 0.3), get_bayes_risk_from_gdp(1.0, 0.0)
        (0.3, 0.0)
    """
    return plain(gdp.bayes_risk(prior=prior, mu=mu))


def get_beta_from_adp(epsilon: ArrayLike, delta: ArrayLike, alpha: ArrayLike) -> Any:
    """FNR that (ε, δ)-DP implies at FPR α, a lower bound."""
    return plain(conversions.beta_from_approximate_dp(fpr=alpha, epsilon=epsilon, delta=delta))


def get_advantage_from_adp(epsilon: ArrayLike, delta: ArrayLike) -> Any:
    """Advantage that (ε, δ)-DP implies, an upper bound."""
    return plain(conversions.advantage_from_approximate_dp(epsilon=epsilon, delta=delta))


def get_beta_from_rdp(epsilon: ArrayLike, alpha: ArrayLike, order: ArrayLike) -> Any:
    """FNR that one Rényi guarantee (order, ε) implies at FPR α, a lower bound."""
    return plain(conversions.beta_from_rdp(fpr=alpha, orders=[order], rho=[epsilon]))


def get_beta_from_zcdp(rho: ArrayLike, alpha: ArrayLike) -> Any:
    """FNR that ρ-zCDP implies at FPR α, a lower bound."""
    return plain(conversions.beta_from_zcdp(fpr=alpha, rho=rho))


def get_advantage_from_zcdp(rho: ArrayLike) -> Any:
    """Advantage that ρ-zCDP implies, an upper bound."""
    return plain(conversions.advantage_from_zcdp(rho=rho))


def get_epsilon_from_err_rates(delta: ArrayLike, alpha: ArrayLike, beta: ArrayLike) -> Any:
    """Smallest ε with which (ε, δ)-DP allows an attack with FPR α and FNR β; ∞ where α or β is 0
    and δ too small (Dong et al. 2022, Eq. 5).

    Example:
        >>> round(get_epsilon_from_err_rates(0.001, 0.001, 0.8), 3)
        5.293
    """
    d, fpr = closed_unit("delta", delta), closed_unit("alpha", alpha)
    fnr = closed_unit("beta", beta)
    with np.errstate(divide="ignore", invalid="ignore"):
        sides = [
            np.log(np.maximum(1.0 - d - a, 0.0)) - np.log(b) for a, b in ((fpr, fnr), (fnr, fpr))
        ]
    return plain(
        np.maximum.reduce(
            [*(np.nan_to_num(s, nan=0.0, posinf=np.inf, neginf=0.0) for s in sides), np.zeros(())]
        )
    )
