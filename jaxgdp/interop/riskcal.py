"""riskcal's entry points with the same arguments, answered by certified brackets: the safe side of
each.

    from jaxgdp.interop import riskcal # in place of: from riskcal import analysis, calibration
    riskcal.get_beta_for_dpsgd(noise_multiplier=1.0, sample_rate=0.002, num_steps=10_000,
    alpha=0.01)

β and Bayes risk are lower bounds, advantage and ε upper bounds, and a calibrated noise multiplier
provably meets its target. ``grid_step`` is accepted and not needed; tolerances are relative to the
noise."""

from __future__ import annotations

import numpy as np

from .. import conversions, gdp
from ..calibration import calibrate
from ..measure import measure
from ..mechanisms import dpsgd
from ..numerics.validation import closed_unit, open_unit, positive
from ..targets import FNR, Advantage
from .gdpnum import CTDAccountant, PLDConverter

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


def _plain(value):
    """A number for a number."""
    return float(value) if np.ndim(value) == 0 else np.asarray(value)


def get_advantage_for_dpsgd(
    noise_multiplier: float, sample_rate: float, num_steps: int, grid_step: float = 1e-4
):
    """Membership advantage of DP-SGD with Poisson sampling, an upper bound.

    Args:
        noise_multiplier: σ > 0. sample_rate: in (0, 1]. num_steps: a whole number ≥ 1. Any shapes
            that broadcast.
        grid_step: > 0, not needed.

    Raises:
        ValueError: an argument is out of range (before tracing).

    Example:
        >>> round(get_advantage_for_dpsgd(noise_multiplier=2.0, sample_rate=1.0, num_steps=4), 3)
        0.383
    """
    positive("grid_step", grid_step)
    return _plain(
        measure(dpsgd(noise_multiplier, sample_rate, num_steps), "advantage")
        .brackets["advantage"]
        .upper
    )


def get_beta_for_dpsgd(
    noise_multiplier: float, sample_rate: float, num_steps: int, alpha, grid_step: float = 1e-4
):
    """FNR of the best attack on DP-SGD with Poisson sampling at FPR α, a lower bound.

    Args:
        noise_multiplier: σ > 0. sample_rate: in (0, 1]. num_steps: a whole number ≥ 1.
        alpha: FPR in [0, 1]. Any shapes that broadcast.
        grid_step: > 0, not needed.

    Raises:
        ValueError: an argument is out of range (before tracing).

    Example:
        >>> 0.7404 < get_beta_for_dpsgd(2.0, 1.0, 4, alpha=0.05) < 0.7405
        True
    """
    positive("grid_step", grid_step)
    alpha = closed_unit("alpha", alpha)
    inner = (alpha > 0.0) & (alpha < 1.0)
    mechanism = dpsgd(noise_multiplier, sample_rate, num_steps)
    found = measure(mechanism, "beta", fpr=np.where(inner, alpha, 0.5)).brackets["beta"].lower
    return _plain(np.where(inner, found, 1.0 - alpha))


def _in_range(found, noise_min, noise_max):
    """The calibrated noise, at least ``noise_min``."""
    low, high = float(positive("noise_min", noise_min)), float(positive("noise_max", noise_max))
    if low >= high:
        raise ValueError(f"noise_max must be larger than noise_min = {low:g}, got {high:g}")
    value = np.maximum(found.value, low)
    if np.any(value > high):
        raise ValueError(
            f"noise_max must be at least {np.max(value):g}, which the target needs, got {high:g}"
        )
    return _plain(value)


def find_noise_multiplier_for_advantage(
    advantage: float,
    sample_rate: float,
    num_steps: int,
    grid_step: float = 1e-4,
    advantage_tol: float = 1e-3,
    noise_min: float = 0.1,
    noise_max: float = 50.0,
):
    """Smallest noise multiplier that provably keeps the advantage of an attack on DP-SGD at or
    below a target (Kulynych 2024).

    Args:
        advantage: η in (0, 1). sample_rate: in (0, 1]. num_steps: a whole number ≥ 1.
        grid_step: > 0, not needed. advantage_tol: relative tolerance of the noise, in (0, 1).
        noise_min, noise_max: range of the noise multiplier.

    Raises:
        ValueError: an argument is out of range, or the target needs more noise than ``noise_max``.
    """
    positive("grid_step", grid_step)
    tolerance = float(open_unit("advantage_tol", advantage_tol))
    found = calibrate(
        Advantage(advantage), sampling_prob=sample_rate, num_steps=num_steps, rtol=tolerance
    )
    return _in_range(found, noise_min, noise_max)


def find_noise_multiplier_for_err_rates(
    alpha: float,
    beta: float,
    sample_rate: float,
    num_steps: int,
    grid_step: float = 1e-4,
    beta_tol: float = 1e-3,
    noise_min: float = 0.1,
    noise_max: float = 50.0,
):
    """Smallest noise multiplier that provably keeps the FNR of an attack on DP-SGD at FPR α at or
    above β (Kulynych 2024).

    Args:
        alpha: FPR in (0, 1). beta: FNR in (0, 1), with α + β < 1. sample_rate: in (0, 1].
            num_steps: a whole number ≥ 1.
        grid_step: > 0, not needed. beta_tol: relative tolerance of the noise, in (0, 1).
        noise_min, noise_max: range of the noise multiplier.

    Raises:
        ValueError: an argument is out of range, or the target needs more noise than ``noise_max``.
    """
    positive("grid_step", grid_step)
    tolerance = float(open_unit("beta_tol", beta_tol))
    target = FNR(fnr=beta, fpr=alpha)
    found = calibrate(target, sampling_prob=sample_rate, num_steps=num_steps, rtol=tolerance)
    return _in_range(found, noise_min, noise_max)


def get_beta_from_pld(pld, alpha):
    """FNR of the best attack at FPR α in [0, 1] from a ``PrivacyLossDistribution``, a lower
    bound.
    """
    return PLDConverter(pld).get_beta(alpha)


def get_advantage_from_pld(pld) -> float:
    """Membership advantage from a ``PrivacyLossDistribution``, an upper bound."""
    return PLDConverter(pld).get_advantage()


def get_bayes_risk_from_pld(pld, prior):
    """Least error probability of an attacker from a ``PrivacyLossDistribution``, a lower bound.

    Args:
        prior: probability of the null hypothesis, in [0, 1]; 0 at either end.
    """
    from .dp_accounting import from_pld

    prior = closed_unit("prior", prior)
    inner = (prior > 0.0) & (prior < 1.0)
    found = (
        measure(from_pld(pld), "bayes_risk", prior=np.where(inner, prior, 0.5))
        .brackets["bayes_risk"]
        .lower
    )
    return _plain(np.where(inner, found, 0.0))


def get_beta_from_gdp(mu, alpha):
    """FNR of μ-GDP at FPR α.

    Example:
        >>> round(get_beta_from_gdp(1.0, 0.05), 6)
        0.740489
    """
    return _plain(gdp.beta(fpr=alpha, mu=mu))


def get_advantage_from_gdp(mu):
    """Advantage of μ-GDP."""
    return _plain(gdp.advantage(mu=mu))


def get_bayes_risk_from_gdp(mu, prior):
    """Bayes risk of μ-GDP at a prior, μ = 0 and priors 0 and 1 included.

    Example:
        >>> get_bayes_risk_from_gdp(0.0, 0.3), get_bayes_risk_from_gdp(1.0, 0.0)
        (0.3, 0.0)
    """
    return _plain(gdp.bayes_risk(prior=prior, mu=mu))


def get_beta_from_adp(epsilon, delta, alpha):
    """FNR that (ε, δ)-DP implies at FPR α, a lower bound."""
    return _plain(conversions.beta_from_approximate_dp(fpr=alpha, epsilon=epsilon, delta=delta))


def get_advantage_from_adp(epsilon, delta):
    """Advantage that (ε, δ)-DP implies, an upper bound."""
    return _plain(conversions.advantage_from_approximate_dp(epsilon=epsilon, delta=delta))


def get_beta_from_rdp(epsilon, alpha, order):
    """FNR that one Rényi guarantee (order, ε) implies at FPR α, a lower bound."""
    return _plain(conversions.beta_from_rdp(fpr=alpha, orders=[order], rho=[epsilon]))


def get_beta_from_zcdp(rho, alpha):
    """FNR that ρ-zCDP implies at FPR α, a lower bound."""
    return _plain(conversions.beta_from_zcdp(fpr=alpha, rho=rho))


def get_advantage_from_zcdp(rho):
    """Advantage that ρ-zCDP implies, an upper bound."""
    return _plain(conversions.advantage_from_zcdp(rho=rho))


def get_epsilon_from_err_rates(delta, alpha, beta):
    """Smallest ε with which (ε, δ)-DP allows an attack with FPR α and FNR β; ∞ where α or β is 0
    and δ too small (Dong et al. 2022, Eq. 5).

    Example:
        >>> round(get_epsilon_from_err_rates(0.001, 0.001, 0.8), 3)
        5.293
    """
    delta, alpha, beta = (
        closed_unit("delta", delta),
        closed_unit("alpha", alpha),
        closed_unit("beta", beta),
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        sides = [
            np.log(np.maximum(1.0 - delta - a, 0.0)) - np.log(b)
            for a, b in ((alpha, beta), (beta, alpha))
        ]
    return _plain(
        np.maximum.reduce(
            [*(np.nan_to_num(s, nan=0.0, posinf=np.inf, neginf=0.0) for s in sides), np.zeros(())]
        )
    )
