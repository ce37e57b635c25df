"""Noise of adaptive clipping: one step releases a clipped sum and how many gradients were small."""

from __future__ import annotations

import numpy as np

from ..numerics.errors import UNIT
from ..numerics.shapes import Array, ArrayLike
from ..numerics.validation import broadcast, positive


def adaptive_clipping_noise(sum_noise: ArrayLike, count_noise: ArrayLike) -> Array:
    """The noise multiplier σ that a step of adaptive clipping is accounted for.

    1/σ² = 1/σ_Δ² + 1/(2σ_b)² (Andrew, Thakkar, McMahan & Ramaswamy 2021, Theorem 1). A record adds
    a vector of norm ≤ 1 (over the clipping norm) to the sum, and ±½ to the count of norms below the
    clipping norm, less a half of all. Both together, in units of their noise, are one vector of
    squared norm ≤ 1/σ_Δ² + (½/σ_b)², released with normal noise 1; the same sample serves both, so
    a sampled step is ``SubsampledGaussian(σ, p)``. That the clipping norm follows from earlier
    releases is adaptive composition.

    Args:
        sum_noise: σ_Δ > 0, noise of the sum over the clipping norm; any shape.
        count_noise: σ_b > 0, standard deviation of the noise of the count. They broadcast.

    Returns:
        σ, rounded down.

    Raises:
        ValueError: an argument is not a number > 0.

    Example:
        >>> round(float(adaptive_clipping_noise(sum_noise=1.25, count_noise=5 / 6)), 12)
        1.0
    """
    total = positive("sum_noise", sum_noise)
    count = positive("count_noise", count_noise)
    broadcast(sum_noise=total, count_noise=count)
    smaller, larger = np.minimum(total, 2.0 * count), np.maximum(total, 2.0 * count)
    return np.asarray(smaller / np.sqrt(1.0 + (smaller / larger) ** 2) * (1.0 - 8.0 * UNIT))


def adaptive_clipping_sum_noise(noise_multiplier: ArrayLike, count_noise: ArrayLike) -> Array:
    """The noise of the clipped sum that leaves σ for both: the inverse of
    :func:`adaptive_clipping_noise`.

    Args:
        noise_multiplier: σ > 0 that the steps are accounted for; any shape.
        count_noise: σ_b > σ/2, standard deviation of the noise of the count. They broadcast.

    Returns:
        σ_Δ = 1/√(1/σ² − 1/(2σ_b)²), rounded up.

    Raises:
        ValueError: an argument is out of range.

    Example:
        >>> round(float(adaptive_clipping_sum_noise(1.0, count_noise=5 / 6)), 12)
        1.25
    """
    sigma = positive("noise_multiplier", noise_multiplier)
    count = positive("count_noise", count_noise)
    broadcast(noise_multiplier=sigma, count_noise=count)
    ratio = np.asarray(sigma / (2.0 * count))
    if np.any(ratio >= 1.0):
        raise ValueError(
            "count_noise must be above noise_multiplier/2, as the count alone shows that much, got"
            f" {np.min(count):g} with a noise_multiplier of {np.max(sigma):g}"
        )
    room = 1.0 + 16.0 * UNIT / (1.0 - ratio)
    return np.asarray(sigma / np.sqrt((1.0 - ratio) * (1.0 + ratio)) * room)


__all__ = ["adaptive_clipping_noise", "adaptive_clipping_sum_noise"]
