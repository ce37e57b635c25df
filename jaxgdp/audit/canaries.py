"""Canaries: put in or left out by fair coins, scored in JAX, and guessed with abstention.

included = jaxgdp.audit.coins(key, len(canaries))
data = jaxgdp.audit.insert(data, canaries, included)
parameters = train(data)
scores = jaxgdp.audit.loss_scores(loss, parameters, canaries)
right = jaxgdp.audit.count_right(jaxgdp.audit.guess(scores, 100), included)
jaxgdp.audit.one_run_mu(len(canaries), 100, right)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..numerics.shapes import Array, ArrayLike
from ..numerics.validation import positive, whole
from .scores import score_rows


def coins(key: Array, num_canaries: int):
    """Which canaries are put in: independent fair coins, as audits in one run assume.

    Args:
        key: a JAX PRNG key, used for nothing else.
        num_canaries: m ≥ 1.

    Returns:
        Booleans, shape (m,).

    Example:
        >>> import jax
        >>> coins(jax.random.key(0), 8).shape
        (8,)
    """
    return jax.random.bits(key, (int(whole("num_canaries", num_canaries)),), jnp.uint32) >> 31 == 1


def insert(records: Any, canaries: Any, included: ArrayLike):
    """Records with the chosen canaries behind them.

    Args:
        records: pytrees of the same structure, arrays with a leading axis for records.
        canaries: likewise.
        included: from :func:`coins`.

    Returns:
        Pytree of NumPy arrays; its length reveals how many were included, so keep it secret or
        train with a mask instead.

    Raises:
        ValueError: structures or numbers of canaries differ.

    Example:
        >>> canaries, included = np.array([[1.0], [2.0], [3.0]]), np.array([True, False, True])
        >>> insert(np.zeros((2, 1)), canaries, included).ravel().tolist()
        [0.0, 0.0, 1.0, 3.0]
    """
    chosen = np.asarray(included, bool)
    if jax.tree.structure(records) != jax.tree.structure(canaries):
        raise ValueError("records and canaries must be pytrees of the same structure")
    for leaf in jax.tree.leaves(canaries):
        if np.shape(leaf)[:1] != chosen.shape:
            raise ValueError(
                f"included must have one entry per canary, got {chosen.shape} for"
                f" {np.shape(leaf)[:1]}"
            )
    return jax.tree.map(
        lambda old, new: np.concatenate([np.asarray(old), np.asarray(new)[chosen]]),
        records,
        canaries,
    )


def directions(key: Array, num_canaries: int, size: int, norm: float = 1.0):
    """Gradient canaries: random directions, nearly orthogonal where ``size`` is large.

    Args:
        key: a JAX PRNG key, used for nothing else.
        num_canaries: m ≥ 1.
        size: number of parameters.
        norm: of each, > 0; the clipping norm is the largest that survives clipping.

    Returns:
        float32, shape (m, size).

    Example:
        >>> import jax
        >>> found = directions(jax.random.key(0), 3, 50, norm=2.0)
        >>> bool(jnp.allclose(jnp.linalg.norm(found, axis=1), 2.0))
        True
    """
    shape = int(whole("num_canaries", num_canaries)), int(whole("size", size))
    drawn = jax.random.normal(key, shape)
    return float(positive("norm", norm)) * drawn / jnp.linalg.norm(drawn, axis=1, keepdims=True)


def loss_scores(loss: Callable, parameters: Any, canaries: Any):
    """−loss of each canary: larger, the more likely it was trained on.

    Args:
        loss: function (parameters, *record) → scalar loss of one record.
        parameters: of the trained model; a leading axis for models is up to the caller's own
            ``vmap``.
        canaries: tuple of arrays with a leading axis, one entry per canary.

    Returns:
        Scores, shape (m,).

    Example:
        >>> loss_scores(lambda w, x: (w - x) ** 2, 1.0, (jnp.array([1.0, 3.0]),)).tolist()
        [-0.0, -4.0]
    """
    return -jax.vmap(loss, in_axes=(None,) + (0,) * len(canaries))(parameters, *canaries)


def likelihood_ratio_scores(
    loss: Callable, parameters: Any, references: Any, included: ArrayLike, canaries: Any
):
    """Likelihood-ratio scores with reference models (Carlini et al. 2022), one normal law a canary.

    Every canary's losses under reference models trained with it and without it are fitted by two
    normal laws of one variance; the score is the log ratio of their densities at the loss of the
    audited model.

    Args:
        loss: function (parameters, *record) → scalar loss of one record.
        parameters: of the audited model.
        references: of the reference models, stacked along a leading axis of every leaf.
        included: which canaries each reference model was trained on, shape (models, m); each canary
            is in two models at least, and out of two.
        canaries: tuple of arrays with a leading axis, one entry per canary.

    Returns:
        Scores, shape (m,), larger the more likely in.

    Raises:
        ValueError: a shape that does not fit, or a canary with too few models.

    Example:
        >>> loss, record = lambda w, x: (w - x) ** 2, (jnp.array([1.0]),)
        >>> models, included = jnp.array([0.9, 1.1, 3.0, 3.2]), [[True], [True], [False], [False]]
        >>> bool(likelihood_ratio_scores(loss, 1.0, models, included, record)[0] > 0)
        True
    """
    inside = np.asarray(included, bool)
    others = jax.vmap(lambda each: loss_scores(loss, each, canaries))(references)
    own = loss_scores(loss, parameters, canaries)
    if inside.shape != others.shape or np.any((inside.sum(0) < 2) | ((~inside).sum(0) < 2)):
        raise ValueError(
            f"included must have shape {others.shape}, with two models at least with and two"
            f" without every canary, got shape {inside.shape}"
        )
    count = lambda mask: jnp.sum(mask, axis=0)
    mean = lambda mask: jnp.sum(jnp.where(mask, others, 0.0), axis=0) / count(mask)
    with_it, without = mean(inside), mean(~inside)
    left = others - jnp.where(inside, with_it, without)
    variance = jnp.sum(left**2, axis=0) / (len(inside) - 2)
    variance = variance + 1e-6 * jnp.mean(variance) + 1e-30
    return ((own - without) ** 2 - (own - with_it) ** 2) / (2.0 * variance)


def gradient_scores(gradients: Callable, update: Any, parameters: Any, canaries: Any):
    """Dot product of each canary's gradient with an update, downhill (Nasr et al. 2023).

    Args:
        gradients: function (parameters, *batch) → (losses, per-example gradients), as from
            :func:`jaxgdp.training.per_example_gradients`.
        update: pytree like them: new minus old, of a step or of the whole run.
        parameters: at which gradients are taken.
        canaries: tuple of arrays with a leading axis, one entry per canary.

    Returns:
        −⟨gradient, update⟩ of each canary, shape (m,).

    Example:
        >>> from jaxgdp.training import per_example_gradients
        >>> gradients = per_example_gradients(lambda w, x: jnp.dot(w, x))
        >>> gradient_scores(gradients, jnp.array([-1.0, 0.0]), jnp.zeros(2), (jnp.eye(2),)).tolist()
        [1.0, -0.0]
    """
    _, found = gradients(parameters, *canaries)
    found = getattr(found, "gradients", found)
    dot = lambda g, u: jnp.tensordot(g.reshape(g.shape[0], -1), jnp.ravel(u), axes=1)
    products = jax.tree.map(dot, found, update)
    return -sum(jax.tree.leaves(products))


def guess(scores: ArrayLike, num_guesses: int):
    """The surest guesses, as many as were decided on beforehand: "in" for the largest scores, "out"
    for the smallest, else abstention.

    Args:
        scores: of every canary, shape (m,), larger the more likely in.
        num_guesses: r ≤ m; half of them, rounded up, guess "in".

    Returns:
        1 for in, −1 for out, 0 for abstention, shape (m,). Equal scores are taken in the order they
        come.

    Raises:
        ValueError: more guesses than scores, or a NaN.

    Example:
        >>> guess([0.1, 3.0, -2.0, 0.4], 2).tolist()
        [0, 1, -1, 0]
    """
    scores = score_rows("scores", scores)
    r = int(whole("num_guesses", num_guesses))
    if scores.ndim > 1 or r > len(scores):
        raise ValueError(
            f"num_guesses must be at most the number of scores, {scores.shape}, got {r}"
        )
    order = np.argsort(scores, kind="stable")
    found = np.zeros(len(scores), np.int64)
    found[order[: r // 2]] = -1
    found[order[len(scores) - (r - r // 2) :]] = 1
    return found


def count_right(guesses: ArrayLike, included: ArrayLike) -> int:
    """How many guesses are right.

    Args:
        guesses: from :func:`guess`.
        included: from :func:`coins`, shape (m,).

    Returns:
        A whole number.

    Raises:
        ValueError: shapes differ.

    Example:
        >>> count_right([0, 1, -1, 0], [True, True, True, False])
        1
    """
    guesses, included = np.asarray(guesses), np.asarray(included, bool)
    if guesses.shape != included.shape:
        raise ValueError(
            f"guesses and included must have one shape, got {guesses.shape} and {included.shape}"
        )
    return int(np.sum(((guesses > 0) & included) | ((guesses < 0) & ~included)))
