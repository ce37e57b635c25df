"""Implications of a claim: brackets of the most revealing mechanism that it allows."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from ... import gdp
from ...bracket import Bracket
from ...conversions import advantage_from_approximate_dp, advantage_from_zcdp, beta_from_zcdp
from ...numerics.normal import ndtri_half_plus
from .claims import StatedGuarantee

_ROUNDING = 1e-9  # relative: far more than the closed forms lose
_APART = 1e-13  # absolute, of the difference of two quantiles
_MOST = 1000  # intervals looked at again at once
# of the search for μ, which ends where no interval may hold more
_POINTS, _PIECES, _ROUNDS, _CLOSE = 150, 8, 5, 1e-3


def _around(value) -> Bracket:
    value = np.float64(value)
    return Bracket(value * (1.0 - _ROUNDING), value * (1.0 + _ROUNDING))


def _share(value) -> Bracket:
    low, high = _around(value)
    return Bracket(low, np.minimum(high, 1.0))


def from_epsilon_delta(
    epsilon: float, delta: float, fpr: float, fpr_floor: float
) -> dict[str, Bracket]:
    """μ above a floor, μ but for probability δ, advantage, TPR of the most revealing (ε, δ)-DP.

    Its curve is max(0, 1 − δ − e^ε·α, e^{−ε}·(1 − δ − α)) (Kairouz et al. 2015; Dong et al. 2022).
    A Gaussian curve is convex, so it lies below straight lines where it does so at their ends: μ
    over rates from the floor on is the larger of the one at the floor and the one at the corner, α
    = β = (1 − δ)/(1 + e^ε). If the corner lies below the floor, no two rates are both above it,
    and μ is that of the corner. But for probability δ the mechanism is ε-DP, so μ = −2Φ⁻¹(1/(1 +
    e^ε)) at every rate (Gomez 2025, Proposition 6.1).

    Args:
        epsilon: ε ≥ 0 in nats.
        delta: δ in [0, 1).
        fpr: of the TPR.
        fpr_floor: of μ.

    Example:
        >>> round(float(from_epsilon_delta(1.0, 0.0, 1e-3, 1e-10)["mu"].upper), 6)
        1.232035
    """
    shrink = np.exp(-epsilon)
    corner = (1.0 - delta) * shrink / (1.0 + shrink)
    # (½ less the corner, of which small ε and δ leave every digit)
    middle = (-np.expm1(-epsilon) + 2.0 * delta * shrink) / (2.0 * (1.0 + shrink))
    found: dict[str, Any] = {"mu": 2.0 * float(ndtri_half_plus(middle, np.log(corner)))}
    tpr_at_floor = delta + np.exp(min(epsilon, 700.0)) * fpr_floor
    at_floor = -np.inf
    if delta > 0.0 and fpr_floor < corner:
        at_floor = ndtri(tpr_at_floor) - ndtri(fpr_floor)
    if delta > 0.0:
        found["approximate_mu"] = gdp.mu_from_pure_dp(epsilon=epsilon)
    steep = delta + np.exp(min(epsilon, 700.0)) * fpr
    flat = 1.0 - shrink * np.maximum(1.0 - delta - fpr, 0.0)
    shares = {
        "advantage": advantage_from_approximate_dp(epsilon=epsilon, delta=delta),
        "tpr": np.minimum(steep, flat),
    }
    sides = {name: _around(value) for name, value in found.items()}
    # (a difference of quantiles is known to its absolute rounding)
    low, high = sides["mu"]
    sides["mu"] = Bracket(
        np.maximum(low, at_floor * (1.0 - _ROUNDING) - _APART),
        np.maximum(high, at_floor * (1.0 + _ROUNDING) + _APART),
    )
    return sides | {k: _share(v) for k, v in shares.items()}


def _largest_mu(rho: float, fpr_floor: float, middle: float) -> float:
    """An upper side of μ over FPRs from the floor to where f meets the diagonal, ``middle``.

    Within an interval of FPRs, −Φ⁻¹(α) is largest at its beginning and −Φ⁻¹(f(α)) at its end:
    together they bound every μ in it."""
    best = -2.0 * ndtri(middle)
    if fpr_floor >= middle:
        return float(best)
    edges = np.linspace(ndtri(fpr_floor), ndtri(middle), _POINTS)[None]
    bound = np.array([np.inf])
    for _ in range(_ROUNDS):
        missed = -ndtri(beta_from_zcdp(fpr=ndtr(edges), rho=rho))
        best = max(best, np.max(missed - edges))
        bound = missed[:, 1:] - edges[:, :-1]
        row, column = np.nonzero(bound > best * (1.0 + _CLOSE))
        if not len(row) or len(row) > _MOST:  # (what is left out stays in the bound)
            break
        edges = np.linspace(edges[row, column], edges[row, column + 1], _PIECES + 1, axis=1)
    return float(max(best * (1.0 + _CLOSE), np.max(bound)))


def from_rho(rho: float, fpr: float, fpr_floor: float) -> dict[str, Bracket]:
    """μ above a floor, advantage and TPR of the most revealing ρ-zCDP mechanism.

    Lower sides: the Gaussian mechanism of μ = √(2ρ) is ρ-zCDP (Bun & Steinke 2016). Upper sides:
    the curve that the Rényi divergences imply (Gomez 2025, Section A.6), its μ to a thousandth, or,
    of ρ so small that this would take minutes, to what the search has found.

    Args:
        rho: ρ > 0.
        fpr: of the TPR.
        fpr_floor: of μ.

    Example:
        >>> bracket = from_rho(0.5, 1e-3, 1e-10)["advantage"]
        >>> bool(bracket.lower < bracket.upper < 0.48)
        True
    """
    gaussian = float(np.sqrt(2.0 * rho))
    highest = float(advantage_from_zcdp(rho=rho))
    mu = _largest_mu(rho, fpr_floor, 0.5 * (1.0 - highest))
    low = {
        "mu": gaussian,
        "advantage": float(gdp.advantage(mu=gaussian)),
        "tpr": float(gdp.tpr(fpr=fpr, mu=gaussian)),
    }
    high = {"mu": mu, "advantage": highest, "tpr": 1.0 - float(beta_from_zcdp(fpr=fpr, rho=rho))}
    lower = {name: np.float64(value) * (1.0 - _ROUNDING) for name, value in low.items()}
    upper = {name: np.float64(value) * (1.0 + _ROUNDING) for name, value in high.items()}
    shares = {name: np.minimum(upper[name], 1.0) for name in ("advantage", "tpr")}
    return {name: Bracket(lower[name], side) for name, side in (upper | shares).items()}


def brackets(claim: StatedGuarantee, fpr: float, fpr_floor: float) -> dict[str, Bracket]:
    """The implications of a claim: of ρ where stated, else of ε with δ or 0, else of μ."""
    if claim.rho is not None and claim.rho.value > 0.0:
        return from_rho(claim.rho.value, fpr, fpr_floor)
    if claim.epsilon is not None:
        delta = 0.0 if claim.delta is None else claim.delta.value
        return from_epsilon_delta(claim.epsilon.value, delta, fpr, fpr_floor)
    if claim.mu is not None:
        mu = claim.mu.value
        shares = {"advantage": gdp.advantage(mu=mu), "tpr": gdp.tpr(fpr=fpr, mu=mu)}
        return {"mu": _around(mu)} | {name: _share(value) for name, value in shares.items()}
    return {}
