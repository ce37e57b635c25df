"""Rényi accounting of DP-SGD, as papers and common accountants used it before tight accounting."""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp

from ..numerics.shapes import ArrayLike
from ..numerics.validation import open_unit, positive, probability, whole

_TENTHS = 1.0 + np.arange(1, 100) / 10.0
# orders that accountants take by default: of Opacus, and of dp_accounting
OPACUS = np.concatenate([_TENTHS, np.arange(12, 64)])
DP_ACCOUNTING = np.concatenate([_TENTHS, np.arange(11, 64), [128.0, 256.0, 512.0, 1024.0]])
_NODES, _TAIL = 4001, 12.0


class RenyiCurve:
    """ε(δ) and δ(ε) of DP-SGD by Rényi divergences at some orders.

    T·log E(1 − p + p·e^ℓ)^t/(t − 1) by the trapezoidal rule over the normal law of ℓ, whose error
    is far below what is printed. An illustration of older accounting, not a certified bound.

    Args:
        noise_multiplier: σ > 0, scalar.
        sampling_prob: p in (0, 1], scalar.
        num_steps: T ≥ 1.
        orders: t > 1, one-dimensional.

    Example:
        >>> ratio = RenyiCurve(2.0, 0.05, 500).epsilon(1e-5) / renyi_epsilon(2.0, 0.05, 500, 1e-5)
        >>> abs(ratio - 1.0) < 0.02
        True
    """

    def __init__(
        self,
        noise_multiplier: float,
        sampling_prob: float,
        num_steps: int,
        orders: ArrayLike = OPACUS,
    ):
        sigma = float(positive("noise_multiplier", noise_multiplier))
        rate = float(probability("sampling_prob", sampling_prob))
        steps = float(whole("num_steps", num_steps))
        self.orders = np.asarray(orders, float)
        t = self.orders[:, None]
        # the integrand is a mixture of normal laws centred between 0 and t/σ
        width = t / sigma + 2.0 * _TAIL
        z = -_TAIL + width * np.linspace(0.0, 1.0, _NODES)
        with np.errstate(divide="ignore"):
            stay = np.log1p(-rate)
        loss = np.logaddexp(stay, np.log(rate) + z / sigma - 0.5 / sigma**2)
        step = np.log(width[:, 0] / (_NODES - 1) / np.sqrt(2.0 * np.pi))
        moments = np.asarray(logsumexp(t * loss - 0.5 * z * z, axis=1)) + step
        self.divergence = steps * np.maximum(moments, 0.0) / (self.orders - 1.0)

    def epsilon(self, delta: float) -> float:
        """ε at δ: the best over orders t of D_t + log(1 − 1/t) − (log δ + log t)/(t − 1) (Canonne,
        Kamath, Steinke 2020, Proposition 12).
        """
        t = self.orders
        log_delta = np.log(open_unit("delta", delta))
        bounds = self.divergence + np.log1p(-1.0 / t) - (log_delta + np.log(t)) / (t - 1.0)
        return float(max(np.min(bounds), 0.0))

    def delta(self, epsilon: float) -> float:
        """δ at ε: the best over orders t of e^{(t − 1)(D_t − ε)}·(1 − 1/t)^t/(t − 1), likewise."""
        t = self.orders
        bounds = (t - 1.0) * (self.divergence - epsilon) + t * np.log1p(-1.0 / t) - np.log(t - 1.0)
        return float(np.exp(min(np.min(bounds), 0.0)))


def renyi_epsilon(
    noise_multiplier: float, sampling_prob: float, num_steps: int, delta: float
) -> float:
    """ε(δ) of DP-SGD by Rényi divergences of orders 2 to 256, by which De et al. 2022 chose noise.

    Args:
        noise_multiplier, sampling_prob, num_steps: as for :class:`RenyiCurve`.
        delta: δ in (0, 1), scalar.

    Returns:
        ε in nats, larger than the truth.

    Raises:
        ValueError: an argument is out of range.

    Example:
        >>> round(renyi_epsilon(9.4, 16384 / 50_000, 2000, 1e-5), 1)
        8.0
    """
    curve = RenyiCurve(noise_multiplier, sampling_prob, num_steps, np.arange(2, 257))
    return curve.epsilon(delta)
