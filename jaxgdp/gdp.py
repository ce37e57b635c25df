"""Closed forms of Gaussian DP: one number μ describes the whole trade-off curve (Dong et al. 2022).

From a μ: trade-off curve, TPR, (ε, δ), advantage, Bayes risk, Rényi divergence and zCDP; and back
from what determines μ.

Host-side functions of scalars and arrays with NumPy broadcasting, float64. Results that are normal
doubles have 1e-12 relative accuracy over the whole range of the arguments; results below 2.3e-308
may be 0, and above 1.8e308 they are ∞. (See :func:`epsilon` for where it depends on the last digits
of δ.)

All but :func:`compose` take keywords only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import erf, erfinv, ndtr, ndtri

from .deprecation import renamed_arguments
from .numerics import gaussian_profile as profile
from .numerics.shapes import Array, ArrayLike
from .numerics.validation import broadcast, checked, closed_unit, finite, open_unit, positive
from .vocabulary import keywords_only

_SQRT_2PI = np.sqrt(2.0 * np.pi)


def _find_root(function: Callable[..., Any], bracket: tuple[Any, Any], args: tuple[Any, ...]):
    """Elementwise roots, by scipy.optimize: it takes half a second to import, so only here."""
    from scipy.optimize import elementwise

    return elementwise.find_root(function, bracket, args=args)


def _nonnegative(name: str, value: Any):
    return checked(name, value, "a finite number >= 0", lambda a: a >= 0.0)


@renamed_arguments(alpha="fpr")
@keywords_only
def beta(*, fpr: ArrayLike, mu: ArrayLike) -> Array:
    """Trade-off curve f_μ(α) = Φ(Φ⁻¹(1 − α) − μ): the least FNR at FPR α (Dong et al. 2022, Eq. 6).

    Args:
        fpr: FPR in [0, 1].
        mu: μ ≥ 0. Any shapes that broadcast.

    Returns:
        FNR, float64.

    Raises:
        ValueError: an argument is out of range, or shapes do not broadcast.

    Example:
        >>> round(float(beta(fpr=0.05, mu=1.0)), 6)
        0.740489

    Method: docs/method/notation.md#pairs
    """
    fpr, mu = closed_unit("fpr", fpr), _nonnegative("mu", mu)
    broadcast(fpr=fpr, mu=mu)
    return ndtr(-ndtri(fpr) - mu)


@keywords_only
def tpr(*, fpr: ArrayLike, mu: ArrayLike) -> Array:
    """Largest TPR of any attack at an FPR: 1 − f_μ(α) = Φ(Φ⁻¹(α) + μ).

    Args:
        fpr: α in [0, 1].
        mu: μ ≥ 0. Any shapes that broadcast.

    Returns:
        TPR, float64, accurate however small.

    Raises:
        ValueError: an argument is out of range, or shapes do not broadcast.

    Example:
        >>> round(float(tpr(fpr=0.05, mu=1.0)), 6)
        0.259511
    """
    fpr, mu = closed_unit("fpr", fpr), _nonnegative("mu", mu)
    broadcast(fpr=fpr, mu=mu)
    return ndtr(ndtri(fpr) + mu)


@keywords_only
def advantage(*, mu: ArrayLike) -> Array:
    """Membership advantage η = max TPR − FPR = 2Φ(μ/2) − 1, the δ at ε = 0 (Kulynych 2024).

    Args:
        mu: μ ≥ 0, any shape.

    Returns:
        η, float64.

    Raises:
        ValueError: μ is negative or not finite.

    Example:
        >>> round(float(advantage(mu=1.0)), 6)
        0.382925
    """
    return erf(_nonnegative("mu", mu) / np.sqrt(8.0))


@keywords_only
def bayes_risk(*, prior: ArrayLike, mu: ArrayLike) -> Array:
    """Least error probability of an attacker, min over α of π·α + (1 − π)·f_μ(α) = π·Φ(−μ/2 − ℓ/μ)
    + (1 − π)·Φ(−μ/2 + ℓ/μ).

    The best test rejects above the privacy loss ℓ = log(π/(1 − π)).

    Args:
        prior: π in [0, 1], the prior probability that the record is absent.
        mu: μ ≥ 0. Any shapes that broadcast.

    Returns:
        Error probability, float64; min(π, 1 − π) at μ = 0.

    Raises:
        ValueError: an argument is out of range, or shapes do not broadcast.

    Example:
        >>> round(float(bayes_risk(prior=0.5, mu=1.0)), 6)
        0.308538
    """
    absent, mu = closed_unit("prior", prior), _nonnegative("mu", mu)
    broadcast(prior=absent, mu=mu)
    # min(π, 1 − π)·(1 − δ(|ℓ|)); the smaller prior is exact, and so is what the larger has more
    rare = np.minimum(absent, 1.0 - absent)
    certain = (rare == 0.0) | (mu == 0.0)
    safe = np.where(rare > 0.0, rare, 0.5)
    threshold = np.where(
        safe > 0.25, np.log1p((1.0 - 2.0 * safe) / safe), np.log1p(-safe) - np.log(safe)
    )
    threshold, positive_mu = np.broadcast_arrays(threshold, np.where(mu > 0.0, mu, 1.0))
    return np.where(certain, rare, rare * profile.rest(threshold, positive_mu))[()]


@keywords_only
def zcdp(*, mu: ArrayLike) -> Array:
    """ρ of zero-concentrated DP: μ-GDP of a Gaussian mechanism is (μ²/2)-zCDP (Bun & Steinke 2016).

    Args:
        mu: μ ≥ 0, any shape.

    Returns:
        ρ, float64; exact for the Gaussian mechanism.

    Raises:
        ValueError: μ is negative or not finite.

    Example:
        >>> float(zcdp(mu=1.0))
        0.5
    """
    mu = _nonnegative("mu", mu)
    with np.errstate(over="ignore", under="ignore"):
        return 0.5 * mu * mu


@keywords_only
def rdp(*, order: ArrayLike, mu: ArrayLike) -> Array:
    """Rényi divergence D_t of μ-GDP: t·μ²/2 (Mironov 2017).

    By post-processing of the Gaussian pair this bounds D_t of every μ-GDP mechanism.

    Args:
        order: t > 0.
        mu: μ ≥ 0. Any shapes that broadcast.

    Returns:
        D_t in nats, float64.

    Raises:
        ValueError: an argument is out of range, or shapes do not broadcast.

    Example:
        >>> float(rdp(order=4.0, mu=1.0))
        2.0
    """
    t, m = positive("order", order), _nonnegative("mu", mu)
    broadcast(order=t, mu=m)
    with np.errstate(over="ignore", under="ignore"):
        return (t * m) * (0.5 * m)


@keywords_only
def mu_from_zcdp_of_gaussian(*, rho: ArrayLike) -> Array:
    """μ = √(2ρ) of a Gaussian mechanism whose zCDP is ρ; of Gaussian mechanisms only.

    ρ-zCDP alone implies a weaker curve: :func:`jaxgdp.conversions.beta_from_zcdp`.

    Args:
        rho: ρ ≥ 0, any shape.

    Returns:
        μ, float64.

    Raises:
        ValueError: ρ is negative or not finite.

    Example:
        >>> round(float(mu_from_zcdp_of_gaussian(rho=3.65)), 6)
        2.701851
    """
    return np.sqrt(2.0) * np.sqrt(_nonnegative("rho", rho))


def _mu_of_advantage(eta: Any):
    """2Φ⁻¹((1 + η)/2), from 1 − η where that is small."""
    return np.where(
        eta < 0.5, np.sqrt(8.0) * erfinv(np.minimum(eta, 0.5)), -2.0 * ndtri(0.5 * (1.0 - eta))
    )[()]


@keywords_only
def mu_from_advantage(*, advantage: ArrayLike) -> Array:
    """μ = 2Φ⁻¹((1 + η)/2): the Gaussian curve with advantage η.

    Args:
        advantage: η in [0, 1), any shape.

    Returns:
        μ, float64.

    Raises:
        ValueError: η is out of range.

    Example:
        >>> round(float(mu_from_advantage(advantage=0.382925)), 6)
        1.0
    """
    eta = checked("advantage", advantage, "in [0, 1)", lambda a: (a >= 0.0) & (a < 1.0))
    return _mu_of_advantage(eta)


@keywords_only
def mu_from_rates(*, fpr: ArrayLike, tpr: ArrayLike) -> Array:
    """μ = Φ⁻¹(TPR) − Φ⁻¹(FPR): the Gaussian curve through one point, 0 where TPR ≤ FPR.

    Args:
        fpr: in (0, 1).
        tpr: in (0, 1). Any shapes that broadcast.

    Returns:
        μ, float64.

    Raises:
        ValueError: an argument is out of range, or shapes do not broadcast.

    Example:
        >>> round(float(mu_from_rates(fpr=0.05, tpr=0.259511)), 5)
        1.0
    """
    fpr, tpr = open_unit("fpr", fpr), open_unit("tpr", tpr)
    broadcast(fpr=fpr, tpr=tpr)
    fpr, tpr = np.broadcast_arrays(fpr, tpr)
    # from the side where both rates keep their digits
    fpr, tpr = np.where(fpr > 0.5, 1.0 - tpr, fpr), np.where(fpr > 0.5, 1.0 - fpr, tpr)
    z = ndtri(fpr)
    mu = np.maximum(ndtri(tpr) - z, 0.0)
    near = mu < 0.1
    # Φ(z + μ) − Φ(z) = φ(z)·∫₀^μ e^{−zs − s²/2} ds
    with np.errstate(under="ignore"):
        area = np.where(near, (tpr - fpr) / np.exp(-0.5 * z * z) * _SQRT_2PI, 0.0)
    x = np.where(near, mu, 0.0)
    for _ in range(4):
        s = 0.5 * x[..., None] * (1.0 + profile.NODES)
        found = 0.5 * x * np.sum(profile.WEIGHTS * np.exp(-s * (z[..., None] + 0.5 * s)), axis=-1)
        x = np.maximum(x - (found - area) * np.exp(x * (z + 0.5 * x)), 0.0)
    return np.where(near, np.where(tpr > fpr, x, 0.0), mu)[()]


@keywords_only
def delta(*, epsilon: ArrayLike, mu: ArrayLike) -> Array:
    """Privacy profile δ_μ(ε) = Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ) (Balle & Wang 2018, Theorem 8).

    Args:
        epsilon: ε in nats, any finite number.
        mu: μ ≥ 0.

    Returns:
        δ, float64; 0 at μ = 0 for ε ≥ 0, and 1 − e^ε for ε < 0.

    Raises:
        ValueError: an argument is out of range, or shapes do not broadcast.

    Example:
        >>> round(float(delta(epsilon=1.0, mu=1.0)), 6)
        0.126937

    Method: docs/method/notation.md#pairs
    """
    e, mu = finite("epsilon", epsilon), _nonnegative("mu", mu)
    broadcast(epsilon=e, mu=mu)
    perfect = np.maximum(-np.expm1(np.minimum(e, 0.0)), 0.0)
    size, safe = np.broadcast_arrays(np.abs(e), np.where(mu > 0.0, mu, 1.0))
    above = profile.delta(size, safe)
    # δ(−ε) = 1 − e^{−ε}·(1 − δ(ε))
    with np.errstate(under="ignore"):
        value = np.where(e < 0.0, perfect + np.exp(-size) * above, above)
    return np.where(mu > 0.0, value, perfect)[()]


@keywords_only
def epsilon(*, delta: ArrayLike, mu: ArrayLike) -> Array:
    """Smallest ε ≥ 0 with δ_μ(ε) ≤ δ, in nats.

    Args:
        delta: δ in (0, 1).
        mu: μ ≥ 0.

    Returns:
        ε, float64: of a δ that differs by at most 1e-14·min(δ, 1 − δ), to 1e-12 relative; ∞ above
        1.8e308. (Where δ all but equals the advantage, ε answers to its last digits.)

    Raises:
        ValueError: an argument is out of range, or shapes do not broadcast.

    Example:
        >>> round(float(epsilon(delta=1e-5, mu=1.0)), 6)
        4.377178
    """
    target, mu = open_unit("delta", delta), _nonnegative("mu", mu)
    broadcast(delta=target, mu=mu)
    target, mu = np.broadcast_arrays(target, mu)
    scale = np.where(mu > 0.0, mu, 1.0)
    free = (mu == 0.0) | (erf(mu / np.sqrt(8.0)) <= target)
    goal, sign = _logs(target)

    def gap(x: Any, m: Any, t: Any, s: Any, skip: Any):
        return np.where(skip, x - 0.5, s * (t - _log_of(x, m, s)))

    # at the second end a = μ/2 − ε/μ is where Φ(a) ≤ e^{−a²/2}/2 is below δ already
    with np.errstate(over="ignore"):
        high = scale * (scale / 2.0 + np.sqrt(-2.0 * np.log(target)) + 1.0) * (1.0 + 1e-15)
    endless = ~free & np.isinf(high)
    skip = free | endless
    root = _find_root(
        gap, (np.zeros_like(scale), np.where(skip, 1.0, high)), args=(scale, goal, sign, skip)
    )
    return np.where(free, 0.0, np.where(endless, np.inf, root.x))[()]


def _logs(delta: Any):
    """log δ, or where δ is above one half log(1 − δ), and a sign that tells which (1 or −1)."""
    sign = np.where(delta > 0.5, -1.0, 1.0)
    return np.where(delta > 0.5, np.log1p(-np.maximum(delta, 0.5)), np.log(delta)), sign


def _log_of(epsilon: Any, mu: Any, sign: Any):
    """log δ_μ(ε), or log(1 − δ_μ(ε)) where the sign is −1."""
    value = np.where(
        sign > 0.0, profile.log_delta(epsilon, mu), profile.log_one_minus_delta(epsilon, mu)
    )
    return np.maximum(value, -1e300)  # (a root search cannot go by −∞)


@keywords_only
def mu_from_epsilon_delta(*, epsilon: ArrayLike, delta: ArrayLike) -> Array:
    """The μ whose Gaussian curve passes through (ε, δ): the largest that is (ε, δ)-DP.

    This is how much Gaussian noise an (ε, δ) target allows. It is not what an (ε, δ)-DP guarantee
    implies: with δ > 0 that guarantee alone implies no finite μ (Gomez 2025, Proposition 6.2).

    Args:
        epsilon: ε ≥ 0 in nats.
        delta: δ in (0, 1).

    Returns:
        μ, float64.

    Raises:
        ValueError: an argument is out of range, or shapes do not broadcast.

    Example:
        >>> round(float(mu_from_epsilon_delta(epsilon=4.377178, delta=1e-5)), 5)
        1.0
    """
    eps, d = _nonnegative("epsilon", epsilon), open_unit("delta", delta)
    broadcast(epsilon=eps, delta=d)
    eps, d = np.broadcast_arrays(eps, d)
    goal, sign = _logs(d)
    at_zero = _mu_of_advantage(d)
    # δ_μ(ε) is at most δ_μ(0), and at most Φ(μ/2 − ε/μ); either gives a μ that is not too large
    z = ndtri(d)
    size = np.sqrt(2.0) * np.sqrt(eps)
    root = np.hypot(z, size)
    by_tail = np.where(z > 0.0, z + root, size * (size / np.maximum(root + np.abs(z), 1e-300)))
    low = np.log(np.maximum(np.maximum(at_zero, by_tail), 1e-308)) - 1e-12

    def gap(x: Any, e: Any, t: Any, s: Any, skip: Any):
        return np.where(skip, x - 0.5, s * (_log_of(e, np.exp(x), s) - t))

    skip = eps == 0.0
    step, high = 0.1, low + 0.1
    while np.any(short := ~skip & (gap(high, eps, goal, sign, skip) < 0.0)):
        step *= 2.0
        high = np.where(short, high + step, high)
    root = _find_root(
        gap, (np.where(skip, 0.0, low), np.where(skip, 1.0, high)), args=(eps, goal, sign, skip)
    )
    return np.where(skip, at_zero, np.exp(root.x))[()]


@keywords_only
def mu_from_pure_dp(*, epsilon: ArrayLike) -> Array:
    """The tight μ implied by pure ε-DP: μ = −2Φ⁻¹(1/(e^ε + 1)) (Gomez 2025, Proposition 6.1).

    Args:
        epsilon: ε ≥ 0 in nats.

    Returns:
        μ, float64.

    Raises:
        ValueError: ε is negative or not finite.

    Example:
        >>> round(float(mu_from_pure_dp(epsilon=1.0)), 6)
        1.232035
    """
    eps = _nonnegative("epsilon", epsilon)
    # Φ(μ/2) − Φ(−μ/2) = tanh(ε/2); for large ε Φ(−μ/2) = 1/(1 + e^ε) in the log domain, where
    # nothing underflows
    from scipy.special import ndtri_exp

    near = eps < 1.0
    small = _mu_of_advantage(np.tanh(0.5 * np.where(near, eps, 0.0)))
    return np.where(near, small, -2.0 * ndtri_exp(-np.logaddexp(0.0, np.where(near, 1.0, eps))))[()]


def compose(*mus: ArrayLike) -> Array:
    """μ of a composition: √(Σ μ²) (Dong et al. 2022, Corollary 3.3).

    Args:
        *mus: μ values ≥ 0, any shapes that broadcast.

    Returns:
        μ, float64.

    Raises:
        ValueError: nothing to compose, a value out of range, or shapes that do not broadcast.

    Example:
        >>> float(compose(3.0, 4.0))
        5.0
    """
    if not mus:
        raise ValueError("compose needs at least one mu, got none")
    values = [_nonnegative(f"mu {i}", m) for i, m in enumerate(mus)]
    broadcast(**{f"mu {i}": m for i, m in enumerate(values)})
    # in units of the largest, so that no square overflows or vanishes
    largest = np.max(np.stack(np.broadcast_arrays(*values)), axis=0)
    unit = np.where(largest > 0.0, largest, 1.0)
    with np.errstate(over="ignore", under="ignore"):
        return (unit * np.sqrt(sum((m / unit) * (m / unit) for m in values)))[()]
