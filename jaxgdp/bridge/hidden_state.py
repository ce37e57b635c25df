"""Only the last model is released: closed forms, with their assumptions in their names."""

from __future__ import annotations

import numpy as np

from ..numerics.shapes import Array, ArrayLike
from ..numerics.validation import broadcast, checked, positive, whole


def strongly_convex_full_batch_mu(
    step_mu: ArrayLike,
    num_steps: ArrayLike,
    *,
    learning_rate: ArrayLike,
    strong_convexity: ArrayLike,
    smoothness: ArrayLike,
) -> Array:
    """μ of the last model of noisy gradient descent on m-strongly convex, M-smooth losses.

    μ = μ₁·√((1 − c^t)/(1 + c^t)·(1 + c)/(1 − c)), c = max(|1 − ηm|, |1 − ηM|) < 1 (Bok, Su &
    Altschuler 2024). Full batches, no projection, every loss m-strongly convex and M-smooth, noise
    of every step independent, nothing but the last model released. Quadratic losses of curvature m
    (or M, whichever has the larger c) attain it, so it is exact for the class; it is not a bound
    for any other loss.

    Args:
        step_mu: μ₁ > 0 of one step, sensitivity over noise: L/(n·σ) for per-example gradients of
            norm L, n records and noise σ; any shape.
        num_steps: t, a whole number ≥ 1.
        learning_rate: η > 0.
        strong_convexity: m > 0.
        smoothness: M ≥ m. All broadcast.

    Returns:
        μ, to about 1e-14, in the broadcast shape.

    Raises:
        ValueError: an argument is out of range, m > M, or a step so long that c ≥ 1.

    Example:
        >>> given = dict(learning_rate=0.1, strong_convexity=0.2, smoothness=1.0)
        >>> found = strongly_convex_full_batch_mu(0.1, [10, 100, 1000], **given)
        >>> [round(float(mu), 6) for mu in found]
        [0.315697, 0.870724, 0.994987]

    Method: docs/method/kahane.md#last-model
    """
    given = {
        "step_mu": positive("step_mu", step_mu),
        "num_steps": whole("num_steps", num_steps),
        "learning_rate": positive("learning_rate", learning_rate),
        "strong_convexity": positive("strong_convexity", strong_convexity),
        "smoothness": positive("smoothness", smoothness),
    }
    broadcast(**given)
    mu, steps, eta, m, smooth = (np.asarray(value, float) for value in given.values())
    if np.any(m > smooth):
        raise ValueError(
            f"strong_convexity must be at most smoothness, got {np.max(m):g} and {np.min(smooth):g}"
        )
    c = np.maximum(np.abs(1.0 - eta * m), np.abs(1.0 - eta * smooth))
    checked("learning_rate", eta * np.ones_like(c), "below 2/smoothness, so that steps contract",
            lambda _: c < 1.0)  # fmt: skip
    with np.errstate(divide="ignore"):
        power = steps * np.log(c)
    return mu * np.sqrt(-np.expm1(power) / (1.0 + np.exp(power)) * (1.0 + c) / (1.0 - c))
