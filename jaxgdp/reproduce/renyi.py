"""ε of DP-SGD by Rényi accounting: the older upper bound by which De et al. 2022 chose their
parameters.
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln, logsumexp

from ..numerics.validation import open_unit, positive, probability, whole

_ORDERS = range(2, 257)


def _divergence(order: int, sigma: float, rate: float) -> float:
    """Rényi divergence of one step at a whole order t ≥ 2: log E (1 − p + p·e^ℓ)^t / (t − 1), a
    binomial sum.
    """
    k = np.arange(order + 1)
    choose = gammaln(order + 1) - gammaln(k + 1) - gammaln(order - k + 1)
    stay = (
        np.where(k == order, 0.0, (order - k) * np.log1p(-rate))
        if rate < 1.0
        else np.where(k == order, 0.0, -np.inf)
    )
    terms = choose + k * np.log(rate) + stay + k * (k - 1) / (2.0 * sigma**2)
    return float(np.asarray(logsumexp(terms))) / (order - 1)


def renyi_epsilon(
    noise_multiplier: float, sampling_prob: float, num_steps: int, delta: float
) -> float:
    """An upper bound on ε(δ) of DP-SGD with Poisson sampling, from Rényi divergences of orders 2 to
    256.

    The best over orders t of T·D_t + log(1 − 1/t) − (log δ + log t)/(t − 1) (Mironov, Talwar, Zhang
    2019; Canonne, Kamath, Steinke 2020, Proposition 12).

    Args:
        noise_multiplier: σ > 0, scalar.
        sampling_prob: p in (0, 1], scalar.
        num_steps: T, a whole number ≥ 1.
        delta: δ in (0, 1), scalar.

    Returns:
        ε in nats; safe to report, but larger than the truth.

    Raises:
        ValueError: an argument is out of range.

    Example:
        >>> round(renyi_epsilon(9.4, 16384 / 50_000, 2000, 1e-5), 1)
        8.0
    """
    sigma = float(positive("noise_multiplier", noise_multiplier))
    rate = float(probability("sampling_prob", sampling_prob))
    steps, log_delta = (
        float(whole("num_steps", num_steps)),
        float(np.log(open_unit("delta", delta))),
    )
    bounds = [
        steps * _divergence(t, sigma, rate) + np.log1p(-1.0 / t) - (log_delta + np.log(t)) / (t - 1)
        for t in _ORDERS
    ]
    return float(max(min(bounds), 0.0))


class RenyiCurve:
    """ε(δ) of DP-SGD by Rényi divergences of fractional orders, as common accountants take them.

    Divergences by the trapezoidal rule, whose error is far below what is printed. An illustration
    of older accounting, not a bound.

    Args:
        noise_multiplier: σ > 0, scalar.
        sampling_prob: p in (0, 1), scalar.
        num_steps: T ≥ 1.

    Example:
        >>> ratio = RenyiCurve(2.0, 0.05, 500).epsilon(1e-5) / renyi_epsilon(2.0, 0.05, 500, 1e-5)
        >>> abs(ratio - 1.0) < 0.02
        True
    """

    orders = np.array([1.0 + k / 10.0 for k in range(1, 100)] + list(range(12, 64)))

    def __init__(self, noise_multiplier: float, sampling_prob: float, num_steps: int):
        sigma = float(positive("noise_multiplier", noise_multiplier))
        rate, steps = (
            float(open_unit("sampling_prob", sampling_prob)),
            float(whole("num_steps", num_steps)),
        )
        # the integrand of order t is a mixture of Gaussians of width σ centred between 0 and t
        x = np.linspace(-12.0 * sigma, 12.0 * sigma + self.orders[-1], 20_001)
        log_null = -0.5 * (x / sigma) ** 2 - np.log(sigma * np.sqrt(2.0 * np.pi))
        loss = np.logaddexp(np.log1p(-rate), np.log(rate) + (2.0 * x - 1.0) / (2.0 * sigma**2))
        moments = logsumexp(log_null + self.orders[:, None] * loss, axis=1) + np.log(x[1] - x[0])
        self.divergence = steps * moments / (self.orders - 1.0)

    def epsilon(self, delta: float) -> float:
        """ε at δ (Canonne, Kamath, Steinke 2020, Proposition 12)."""
        t = self.orders
        bounds = self.divergence + np.log1p(-1.0 / t) - (np.log(delta) + np.log(t)) / (t - 1.0)
        return float(max(np.min(bounds), 0.0))
