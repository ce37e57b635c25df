"""Poisson sampling by Rényi DP, at the orders that the paper's accountant uses: where some of its
printed numbers come from.
"""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp

# those of the accountant by default
ORDERS = np.concatenate(
    [1.0 + np.arange(1, 100) / 10.0, np.arange(11, 64), [128.0, 256.0, 512.0, 1024.0]]
)
_NODES, _TAIL = 4001, 12.0


def divergences(noise_multiplier: float, sampling_prob: float, num_steps: int) -> np.ndarray:
    """Rényi divergences of T steps at ``ORDERS``: T·log E(1 − p + p·e^ℓ)^t/(t − 1), by quadrature
    over the normal law of ℓ.

    Args:
        noise_multiplier, sampling_prob, num_steps: σ, p and T.
    """
    sigma = float(noise_multiplier)
    t = ORDERS[:, None]
    low, high = -_TAIL, t / sigma + _TAIL
    z = low + (high - low) * np.linspace(0.0, 1.0, _NODES)
    step = (high - low)[:, 0] / (_NODES - 1)
    loss = np.logaddexp(
        np.log1p(-sampling_prob), np.log(sampling_prob) + z / sigma - 0.5 / sigma**2
    )
    moment = (
        np.asarray(logsumexp(t * loss - 0.5 * z * z, axis=1))
        + np.log(step)
        - 0.5 * np.log(2.0 * np.pi)
    )
    return num_steps * np.maximum(moment, 0.0) / (ORDERS - 1.0)


def epsilon(divergence: np.ndarray, delta: float) -> float:
    """ε at δ: the best over orders t of D_t + log(1 − 1/t) − (log δ + log t)/(t − 1) (Canonne,
    Kamath, Steinke 2020, Proposition 12).

    Args:
        divergence: from :func:`divergences`.
        delta: δ.
    """
    bounds = (
        divergence + np.log1p(-1.0 / ORDERS) - (np.log(delta) + np.log(ORDERS)) / (ORDERS - 1.0)
    )
    return float(max(np.min(bounds), 0.0))


def delta(divergence: np.ndarray, epsilon: float) -> float:
    """δ at ε: the best over orders t of e^{(t − 1)(D_t − ε)}·(1 − 1/t)^t/(t − 1), likewise.

    Args:
        divergence: from :func:`divergences`.
        epsilon: ε.
    """
    bounds = (
        (ORDERS - 1.0) * (divergence - epsilon)
        + ORDERS * np.log1p(-1.0 / ORDERS)
        - np.log(ORDERS - 1.0)
    )
    return float(np.exp(min(np.min(bounds), 0.0)))
