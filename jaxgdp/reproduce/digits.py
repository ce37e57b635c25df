"""DP-SGD on scikit-learn's handwritten digits: a linear classifier, Poisson batches."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from ..numerics.optional import missing
from ..numerics.shapes import ArrayLike
from ..numerics.validation import broadcast, positive, probability, whole
from ..training import clipped_sum, noisy_mean, per_example_gradients, poisson_sampler

CLASSES = 10
_TEST_SHARE = 5  # one record in five is kept for testing
_SPLIT_SEED = 0
CLIP, RATE, LEARNING_RATE, MOMENTUM = 1.0, 64 / 1438, 0.3, 0.9


class Digits(NamedTuple):
    """Images as rows of unit length with a one appended, and labels from 0 to 9."""

    train_images: np.ndarray
    train_labels: np.ndarray
    test_images: np.ndarray
    test_labels: np.ndarray

    @property
    def records(self) -> int:
        """Number of training records."""
        return len(self.train_labels)


@functools.cache
def load() -> Digits:
    """1,797 images of 8 × 8 pixels, split into 1,438 for training and 359 for testing.

    Every image is scaled to unit length by itself, so that no statistic of the data set goes
    unaccounted.

    Raises:
        ImportError: scikit-learn is missing (the ``data`` extra).
    """
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise missing("the digits data set needs scikit-learn", "data") from None
    images, labels = (np.asarray(a) for a in load_digits(return_X_y=True))
    images = images / np.linalg.norm(images, axis=1, keepdims=True)
    images = np.concatenate([images, np.ones((len(images), 1))], axis=1).astype(np.float32)
    order = np.random.default_rng(_SPLIT_SEED).permutation(len(labels))
    test, kept = np.split(order, [len(order) // _TEST_SHARE])
    return Digits(
        images[kept], labels[kept].astype(np.int32), images[test], labels[test].astype(np.int32)
    )


def _loss(weights: jax.Array, image: jax.Array, label: jax.Array) -> jax.Array:
    return optax.softmax_cross_entropy_with_integer_labels(image @ weights, label)


_gradients = per_example_gradients(_loss)


@functools.partial(jax.jit, static_argnames="space")
def _run(
    key: jax.Array,
    noise: jax.Array,
    clip: jax.Array,
    threshold: jax.Array,
    size: jax.Array,
    rate: jax.Array,
    data: Digits,
    space: int,
) -> jax.Array:
    """Test accuracy of one run, from one number a step: ``threshold`` is 2³²·p, ``size`` n·p."""
    records = data.train_images.shape[0]
    optimizer = optax.sgd(1.0, momentum=MOMENTUM)
    weights = jnp.zeros((data.train_images.shape[1], CLASSES))

    def step(state: Any, schedule: Any) -> tuple[Any, None]:
        weights, moments, key = state
        sigma, bound, limit, expected, learning = schedule
        key, draw, perturb = jax.random.split(key, 3)
        chosen = jax.random.bits(draw, (records,), jnp.uint32) < limit
        (rows,) = jnp.nonzero(chosen, size=space, fill_value=records)
        # a batch that does not fit is emptied, as in training.PoissonSampler
        mask = (rows < records) & (jnp.sum(chosen) <= space)
        rows = jnp.where(mask, rows, 0)
        _, gradients = _gradients(weights, data.train_images[rows], data.train_labels[rows])
        mean = noisy_mean(clipped_sum(gradients, bound, mask), perturb, bound, sigma, expected)
        # divided by the clipping norm, so that this does not act as a learning rate
        updates, moments = optimizer.update(learning * mean / bound, moments, weights)
        return (optax.apply_updates(weights, updates), moments, key), None

    (weights, _, _), _ = jax.lax.scan(
        step, (weights, optimizer.init(weights), key), (noise, clip, threshold, size, rate)
    )
    return jnp.mean(jnp.argmax(data.test_images @ weights, axis=1) == data.test_labels)


def train(
    noise_multiplier: ArrayLike,
    clip: ArrayLike = CLIP,
    sampling_prob: ArrayLike = RATE,
    num_steps: int | None = None,
    seeds: Iterable[int] = range(5),
    learning_rate: ArrayLike = LEARNING_RATE,
) -> np.ndarray:
    """Test accuracies of DP-SGD on the digits, for schedules of noise, clipping and sampling.

    Each step draws a Poisson batch, clips every record's gradient to norm C_t, adds N(0, σ_t²C_t²)
    to the sum and divides by the expected batch size (Abadi et al. 2016). Initial weights are zero;
    a seed decides batches and noise. Padded batches overflow in at most one run in 10²⁰.

    Args:
        noise_multiplier: σ_t > 0, scalar or one number a step.
        clip: C_t > 0, likewise.
        sampling_prob: p_t in (0, 1], likewise.
        num_steps: T; needed if all the others are scalars.
        seeds: whole numbers, one run each.
        learning_rate: of gradient descent with momentum 0.9, > 0, scalar or one number a step.

    Returns:
        Accuracies in [0, 1], one for each seed.

    Raises:
        ValueError: an argument is out of range or lengths differ (before tracing).
        ImportError: scikit-learn is missing.
    """
    sigma, bound = positive("noise_multiplier", noise_multiplier), positive("clip", clip)
    rate = probability("sampling_prob", sampling_prob)
    learning = positive("learning_rate", learning_rate)
    schedules = {"noise_multiplier": sigma, "clip": bound, "sampling_prob": rate}
    shape = broadcast(**schedules, learning_rate=learning) or (num_steps,)
    if len(shape) != 1 or shape[0] is None or num_steps not in (None, shape[0]):
        raise ValueError(
            f"schedules must be scalars or rows of num_steps = {num_steps} numbers, got shape"
            f" {shape}"
        )
    steps, seeds = int(whole("num_steps", shape[0])), [int(seed) for seed in seeds]
    if not seeds:
        raise ValueError("seeds must hold at least one whole number, got none")
    data = load()
    space = poisson_sampler(data.records, float(np.max(rate)), steps).padded_size
    threshold = np.minimum(np.floor(rate * 2.0**32), 2.0**32 - 1.0).astype(np.uint32)
    schedule = sigma, bound, threshold, rate * data.records, learning
    columns = [
        jnp.broadcast_to(jnp.asarray(a, jnp.uint32 if a is threshold else jnp.float32), (steps,))
        for a in schedule
    ]
    runs = jax.vmap(functools.partial(_run, space=space), (0, None, None, None, None, None, None))
    keys = jnp.stack([jax.random.key(seed) for seed in seeds])
    return np.asarray(runs(keys, *columns, data), np.float64)
