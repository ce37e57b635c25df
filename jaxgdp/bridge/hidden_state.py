"""Only the last model is released: closed forms, with their assumptions in their names."""

from __future__ import annotations

import numpy as np

from ..numerics.errors import UNIT
from ..numerics.shapes import Array, ArrayLike
from ..numerics.validation import broadcast, checked, positive, whole

_ROOM = 1.0 + 1e-12  # for the rounding of two dozen operations, differences of doubles near 1 apart


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
        μ, rounded up by about 1e-12 (more where 2 − ηM is a small difference), in the broadcast
        shape.

    Raises:
        ValueError: an argument is out of range, m > M, or a step so long that c ≥ 1.

    Example:
        >>> given = dict(learning_rate=0.1, strong_convexity=0.2, smoothness=1.0)
        >>> found = strongly_convex_full_batch_mu(0.1, [10, 100, 1000], **given)
        >>> [round(float(mu), 6) for mu in found]
        [0.315697, 0.870724, 0.994987]

    Method: docs/method/kahane.md#last-model
    """
    return strongly_convex_cyclic_batches_mu(
        step_mu,
        whole("num_steps", num_steps),
        1.0,
        learning_rate=learning_rate,
        strong_convexity=strong_convexity,
        smoothness=smoothness,
    )


def _contraction(eta: Array, m: Array, smooth: Array) -> Array:
    """c = max(|1 − ηm|, |1 − ηM|) < 1.

    Raises:
        ValueError: m > M, or a step so long that c ≥ 1.
    """
    if np.any(m > smooth):
        raise ValueError(
            f"strong_convexity must be at most smoothness, got {np.max(m):g} and {np.min(smooth):g}"
        )
    c = np.maximum(np.abs(1.0 - eta * m), np.abs(1.0 - eta * smooth))
    checked("learning_rate", eta * np.ones_like(c), "below 2/smoothness, so that steps contract",
            lambda _: c < 1.0)  # fmt: skip
    return c


def strongly_convex_cyclic_batches_mu(
    step_mu: ArrayLike,
    num_epochs: ArrayLike,
    batches_per_epoch: ArrayLike,
    *,
    learning_rate: ArrayLike,
    strong_convexity: ArrayLike,
    smoothness: ArrayLike,
) -> Array:
    """A bound on μ of the last model where fixed batches take turns, for strongly convex losses.

    μ² = μ₁²·(1 + c^{2l−2}·(1 − c²)/(1 − c^l)²·(1 − c^{l(E−1)})/(1 + c^{l(E−1)})) for E epochs of l
    batches, c = max(|1 − ηm|, |1 − ηM|) < 1 (Bok, Su & Altschuler 2024): the last step in full, and
    what the noise of the steps between leaves of the ones before. Batches are fixed beforehand and
    used in the same order, a record is in one of them, every loss is m-strongly convex and
    M-smooth, and nothing but the last model is released. An upper side: with l = 1 that of full
    batches, which is exact.

    Args:
        step_mu: μ₁ > 0 of one step, sensitivity over noise: L/(b·σ) for gradients of norm L, b
            records in a batch and noise σ; any shape.
        num_epochs: E, a whole number ≥ 1.
        batches_per_epoch: l, a whole number ≥ 1.
        learning_rate: η > 0.
        strong_convexity: m > 0.
        smoothness: M ≥ m. All broadcast.

    Returns:
        An upper bound on μ, in the broadcast shape.

    Raises:
        ValueError: an argument is out of range, m > M, or a step so long that c ≥ 1.

    Example:
        >>> given = dict(learning_rate=0.1, strong_convexity=0.2, smoothness=1.0)
        >>> found = strongly_convex_cyclic_batches_mu(0.1, [1, 10, 1000], 5, **given)
        >>> [round(float(mu), 4) for mu in found]
        [0.1, 0.1598, 0.2156]

    Method: docs/method/kahane.md#last-model
    """
    given = {
        "step_mu": positive("step_mu", step_mu),
        "num_epochs": whole("num_epochs", num_epochs),
        "batches_per_epoch": whole("batches_per_epoch", batches_per_epoch),
        "learning_rate": positive("learning_rate", learning_rate),
        "strong_convexity": positive("strong_convexity", strong_convexity),
        "smoothness": positive("smoothness", smoothness),
    }
    broadcast(**given)
    mu, epochs, batches, eta, m, smooth = (np.asarray(value, float) for value in given.values())
    c = _contraction(eta, m, smooth)
    # (1 − c to its own digits, but where 2 − ηM is a difference)
    far = 2.0 - eta * smooth
    gap = np.minimum(eta * m, far)
    room = _ROOM + np.where(far < eta * m, 8.0 * UNIT / gap, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_c = np.log1p(-gap)
        fall = lambda steps: -np.expm1(np.where(steps == 0.0, 0.0, steps * log_c))
        before, cycle, square = fall(batches * (epochs - 1.0)), fall(batches), gap * (1.0 + c)
        last = 1.0 - fall(2.0 * batches - 2.0)
        earlier = last * square / cycle**2 * before / (2.0 - before)
        full = fall(epochs) / (2.0 - fall(epochs)) * (1.0 + c) / gap
    return mu * np.sqrt(np.where(batches == 1.0, full, 1.0 + earlier)) * room


def convex_constrained_mu(
    step_mu: ArrayLike,
    num_steps: ArrayLike,
    *,
    learning_rate: ArrayLike,
    smoothness: ArrayLike,
    diameter: ArrayLike,
    gradient_sensitivity: ArrayLike,
) -> Array:
    """A bound on μ of the last model of projected noisy gradient descent on convex losses.

    μ² = μ₁²·min(t, (r + τ)²/τ) at the better τ ≤ t of ⌊r⌋ and ⌈r⌉, r = D/(η·a): of the last τ
    steps alone, as all states are within D of each other; about 2·√r, however long the run (Bok, Su
    & Altschuler 2024; Altschuler & Talwar 2022). Full batches, x ← Π(x − η·(gradient + noise)), Π
    the projection on a convex set of diameter D, every loss convex and M-smooth with η ≤ 2/M, and
    nothing but the last model released. An upper side.

    Args:
        step_mu: μ₁ > 0 of one step, a/σ; any shape.
        num_steps: t, a whole number ≥ 1.
        learning_rate: η > 0, at most 2/M.
        smoothness: M > 0.
        diameter: D > 0.
        gradient_sensitivity: a > 0, by which a record moves the gradient: L/n. All broadcast.

    Returns:
        An upper bound on μ, in the broadcast shape.

    Raises:
        ValueError: an argument is out of range, or a learning rate above 2/M.

    Example:
        >>> given = dict(learning_rate=0.1, smoothness=1.0, diameter=1.0, gradient_sensitivity=0.1)
        >>> found = convex_constrained_mu(0.1, [10, 1000, 100000], **given)
        >>> [round(float(mu), 4) for mu in found]
        [0.3162, 2.0, 2.0]

    Method: docs/method/kahane.md#last-model
    """
    given = {
        "step_mu": positive("step_mu", step_mu),
        "num_steps": whole("num_steps", num_steps),
        "learning_rate": positive("learning_rate", learning_rate),
        "smoothness": positive("smoothness", smoothness),
        "diameter": positive("diameter", diameter),
        "gradient_sensitivity": positive("gradient_sensitivity", gradient_sensitivity),
    }
    broadcast(**given)
    mu, steps, eta, smooth, size, move = (np.asarray(value, float) for value in given.values())
    checked("learning_rate", eta * np.ones_like(smooth), "at most 2/smoothness",
            lambda _: eta * smooth <= 2.0)  # fmt: skip
    ratio = size / (eta * move)
    squared = steps
    for last in (np.floor(ratio), np.ceil(ratio)):
        last = np.clip(last, 1.0, steps)
        squared = np.minimum(squared, (ratio + last) ** 2 / last)
    return mu * np.sqrt(squared) * _ROOM
