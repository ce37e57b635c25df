"""Closed forms for Gaussian differential privacy: one number μ says everything (Dong et al. 2022).

Of a μ: trade-off curve, TPR, (ε, δ), advantage, Bayes risk, Rényi divergence and zCDP; and back from what determines μ.

Host-side functions of scalars and arrays with NumPy broadcasting, float64, accurate in the log domain.
"""

from __future__ import annotations

import numpy as np
from scipy.special import erf, erfcx, erfinv, log_ndtr, ndtr, ndtri

from .numerics.validation import broadcast, checked, closed_unit, finite, open_unit, positive


def _find_root(function, bracket, args):
    """Elementwise roots; scipy.optimize takes half a second to import, so not before it is needed."""
    from scipy.optimize import elementwise

    return elementwise.find_root(function, bracket, args=args)


def _nonnegative(name, value):
    return checked(name, value, "a finite number >= 0", lambda a: a >= 0.0)


def beta(alpha, mu):
    """Trade-off curve f_μ(α) = Φ(Φ⁻¹(1 − α) − μ): the least FNR at FPR α (Dong et al. 2022, Eq. 6).

    Args:
        alpha: FPR in [0, 1]. mu: μ ≥ 0. Any shapes that broadcast.

    Returns:
        FNR, float64.

    Raises:
        ValueError: an argument is out of range, or shapes do not broadcast.

    Example:
        >>> round(float(beta(0.05, 1.0)), 6)
        0.740489
    """
    alpha, mu = closed_unit("alpha", alpha), _nonnegative("mu", mu)
    broadcast(alpha=alpha, mu=mu)
    return ndtr(-ndtri(alpha) - mu)


def tpr(fpr, mu):
    """Largest TPR of any attack at an FPR: 1 − f_μ(α) = Φ(Φ⁻¹(α) + μ).

    Args:
        fpr: α in [0, 1]. mu: μ ≥ 0. Any shapes that broadcast.

    Returns:
        TPR, float64, accurate however small.

    Raises:
        ValueError: an argument is out of range, or shapes do not broadcast.

    Example:
        >>> round(float(tpr(0.05, 1.0)), 6)
        0.259511
    """
    fpr, mu = closed_unit("fpr", fpr), _nonnegative("mu", mu)
    broadcast(fpr=fpr, mu=mu)
    return ndtr(ndtri(fpr) + mu)


def advantage(mu):
    """Membership advantage η = max TPR − FPR = 2Φ(μ/2) − 1, the δ at ε = 0 (Kulynych 2024).

    Args:
        mu: μ ≥ 0, any shape.

    Returns:
        η, float64.

    Raises:
        ValueError: μ is negative or not finite.

    Example:
        >>> round(float(advantage(1.0)), 6)
        0.382925
    """
    return erf(_nonnegative("mu", mu) / np.sqrt(8.0))


def bayes_risk(prior, mu):
    """Least error probability of an attacker, min over α of π·α + (1 − π)·f_μ(α) = π·Φ(−μ/2 − ℓ/μ) + (1 − π)·Φ(−μ/2 + ℓ/μ).

    The best test rejects above the privacy loss ℓ = log(π/(1 − π)).

    Args:
        prior: π in [0, 1], the prior probability that the record is absent. mu: μ ≥ 0. Any shapes that broadcast.

    Returns:
        Error probability, float64; min(π, 1 − π) at μ = 0.

    Raises:
        ValueError: an argument is out of range, or shapes do not broadcast.

    Example:
        >>> round(float(bayes_risk(0.5, 1.0)), 6)
        0.308538
    """
    prior, mu = closed_unit("prior", prior), _nonnegative("mu", mu)
    broadcast(prior=prior, mu=mu)
    guess = np.minimum(prior, 1.0 - prior)
    with np.errstate(divide="ignore"):
        threshold = np.log(prior) - np.log1p(-prior)
    safe = np.where(mu > 0.0, mu, 1.0)
    error = prior * ndtr(-safe / 2.0 - threshold / safe) + (1.0 - prior) * ndtr(-safe / 2.0 + threshold / safe)
    return np.where(mu > 0.0, np.minimum(error, guess), guess)[()]


def zcdp(mu):
    """ρ of zero-concentrated DP: μ-GDP of a Gaussian mechanism is (μ²/2)-zCDP (Bun & Steinke 2016).

    Args:
        mu: μ ≥ 0, any shape.

    Returns:
        ρ, float64; exact for the Gaussian mechanism.

    Raises:
        ValueError: μ is negative or not finite.

    Example:
        >>> float(zcdp(1.0))
        0.5
    """
    mu = _nonnegative("mu", mu)
    return 0.5 * mu * mu


def rdp(order, mu):
    """Rényi divergence D_t of μ-GDP: t·μ²/2 (Mironov 2017).

    By post-processing of the Gaussian pair this bounds D_t of every μ-GDP mechanism.

    Args:
        order: t > 0. mu: μ ≥ 0. Any shapes that broadcast.

    Returns:
        D_t in nats, float64.

    Raises:
        ValueError: an argument is out of range, or shapes do not broadcast.

    Example:
        >>> float(rdp(4.0, 1.0))
        2.0
    """
    order, mu = positive("order", order), _nonnegative("mu", mu)
    broadcast(order=order, mu=mu)
    return 0.5 * order * mu * mu


def mu_from_zcdp_of_gaussian(rho):
    """μ = √(2ρ) of a Gaussian mechanism whose zCDP is ρ; of Gaussian mechanisms only.

    ρ-zCDP alone implies a weaker curve: :func:`jaxgdp.conversions.beta_from_zcdp`.

    Args:
        rho: ρ ≥ 0, any shape.

    Returns:
        μ, float64.

    Raises:
        ValueError: ρ is negative or not finite.

    Example:
        >>> round(float(mu_from_zcdp_of_gaussian(3.65)), 6)
        2.701851
    """
    return np.sqrt(2.0 * _nonnegative("rho", rho))


def mu_from_advantage(advantage):
    """μ = 2Φ⁻¹((1 + η)/2): the Gaussian curve with advantage η.

    Args:
        advantage: η in [0, 1), any shape.

    Returns:
        μ, float64.

    Raises:
        ValueError: η is out of range.

    Example:
        >>> round(float(mu_from_advantage(0.382925)), 6)
        1.0
    """
    eta = checked("advantage", advantage, "in [0, 1)", lambda a: (a >= 0.0) & (a < 1.0))
    return np.sqrt(8.0) * erfinv(eta)


def mu_from_rates(fpr, tpr):
    """μ = Φ⁻¹(TPR) − Φ⁻¹(FPR): the Gaussian curve through one point, 0 where the TPR is not above the FPR.

    Args:
        fpr: in (0, 1). tpr: in (0, 1). Any shapes that broadcast.

    Returns:
        μ, float64.

    Raises:
        ValueError: an argument is out of range, or shapes do not broadcast.

    Example:
        >>> round(float(mu_from_rates(0.05, 0.259511)), 5)
        1.0
    """
    fpr, tpr = open_unit("fpr", fpr), open_unit("tpr", tpr)
    broadcast(fpr=fpr, tpr=tpr)
    return np.maximum(ndtri(tpr) - ndtri(fpr), 0.0)


def _log_delta(epsilon, mu):
    """log δ_μ(ε): a difference of Mills ratios below the mean, of probabilities above."""
    a, b = mu / 2.0 - epsilon / mu, -mu / 2.0 - epsilon / mu
    with np.errstate(all="ignore"):
        # both terms share the factor e^{−a²/2}
        mills = 0.5 * (erfcx(-a / np.sqrt(2.0)) - erfcx(-b / np.sqrt(2.0)))
        deep = np.log(mills) - 0.5 * a * a
        gap = epsilon + log_ndtr(b) - log_ndtr(a)
        body = log_ndtr(a) + np.log(-np.expm1(np.minimum(gap, 0.0)))
    return np.where(a < 0.0, deep, body)


def delta(epsilon, mu):
    """Privacy profile δ_μ(ε) = Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ) (Balle & Wang 2018, Theorem 8).

    Args:
        epsilon: ε in nats, any finite number. mu: μ ≥ 0.

    Returns:
        δ, float64; 0 at μ = 0 for ε ≥ 0, and 1 − e^ε for ε < 0.

    Raises:
        ValueError: an argument is out of range, or shapes do not broadcast.

    Example:
        >>> round(float(delta(1.0, 1.0)), 6)
        0.126937
    """
    epsilon, mu = finite("epsilon", epsilon), _nonnegative("mu", mu)
    broadcast(epsilon=epsilon, mu=mu)
    perfect = np.maximum(-np.expm1(np.minimum(epsilon, 0.0)), 0.0)
    return np.where(mu > 0.0, np.exp(_log_delta(epsilon, np.where(mu > 0.0, mu, 1.0))), perfect)


def epsilon(delta, mu):
    """Smallest ε ≥ 0 with δ_μ(ε) ≤ δ, in nats.

    Args:
        delta: δ in (0, 1). mu: μ ≥ 0.

    Returns:
        ε, float64, to about 1e-14 relative.

    Raises:
        ValueError: an argument is out of range, or shapes do not broadcast.

    Example:
        >>> round(float(epsilon(1e-5, 1.0)), 6)
        4.377178
    """
    target, mu = open_unit("delta", delta), _nonnegative("mu", mu)
    broadcast(delta=target, mu=mu)
    target, mu = np.broadcast_arrays(np.log(target), mu)
    scale = np.where(mu > 0.0, mu, 1.0)
    free = (mu == 0.0) | (_log_delta(np.zeros_like(scale), scale) <= target)
    high = scale * (scale / 2.0 + np.sqrt(-2.0 * target) + 1.0)
    easy = np.where(free, -1e3, target)
    low = np.where(free, 0.0, 0.0)

    def gap(x, m, t, skip):
        return np.where(skip, x - 0.5, t - _log_delta(x, m))

    top = np.where(free, 1.0, high)
    root = _find_root(gap, (low, top), args=(scale, easy, free))
    return np.where(free, 0.0, root.x)[()]


def mu_from_epsilon_delta(epsilon, delta):
    """The μ whose Gaussian curve passes through (ε, δ): the largest μ that is (ε, δ)-DP, δ_μ(ε) = δ.

    This is how much Gaussian noise an (ε, δ) target allows. It is not what an (ε, δ)-DP guarantee implies: with
    δ > 0 that guarantee alone implies no finite μ (Gomez 2025, Proposition 6.2).

    Args:
        epsilon: ε ≥ 0 in nats. delta: δ in (0, 1).

    Returns:
        μ, float64.

    Raises:
        ValueError: an argument is out of range, or shapes do not broadcast.

    Example:
        >>> round(float(mu_from_epsilon_delta(4.377178, 1e-5)), 5)
        1.0
    """
    eps, d = _nonnegative("epsilon", epsilon), open_unit("delta", delta)
    broadcast(epsilon=eps, delta=d)
    eps, log_d = np.broadcast_arrays(eps, np.log(d))
    # δ_μ(ε) ≤ Φ(μ/2 − ε/μ), which is below δ at the first end; at the second Φ(μ/2 − ε/μ) is above it with room
    z = ndtri(d)
    low = np.full(eps.shape, 1e-300)
    high = 2.0 * (np.abs(z) + np.sqrt(2.0 * eps) + eps / (np.sqrt(2.0 * eps) + 1.0) + 10.0)

    def gap(m, e, t):
        value = _log_delta(e, m)
        return np.where(np.isfinite(value), value, -1e9) - t

    return _find_root(gap, (np.maximum(low, 1e-12), high), args=(eps, log_d)).x[()]


def mu_from_pure_dp(epsilon):
    """The tight μ implied by pure ε-DP: μ = −2Φ⁻¹(1/(e^ε + 1)) (Gomez 2025, Proposition 6.1).

    Args:
        epsilon: ε ≥ 0 in nats.

    Returns:
        μ, float64.

    Raises:
        ValueError: ε is negative or not finite.

    Example:
        >>> round(float(mu_from_pure_dp(1.0)), 6)
        1.232035
    """
    eps = _nonnegative("epsilon", epsilon)
    # Φ(−μ/2) = 1/(1 + e^ε), taken in the log domain so that large ε does not underflow
    from scipy.special import ndtri_exp

    return -2.0 * ndtri_exp(-np.logaddexp(0.0, eps))


def compose(*mus):
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
    return np.sqrt(sum(m * m for m in values))
