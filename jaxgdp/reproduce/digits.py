"""DP-SGD on a small real data set: scikit-learn's handwritten digits, a linear classifier, Poisson batches, schedules allowed."""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from scipy.stats import binom

from ..validation import broadcast, positive, probability

CLASSES = 10
_OVERFLOW = 1e-9  # chance, over a whole run, that some Poisson batch outgrows the space reserved for it
_TEST_SHARE = 5  # one record in five is kept for testing
_SPLIT_SEED = 0
LEARNING_RATE, MOMENTUM = 1.0, 0.9


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
    """1,797 images of 8 × 8 pixels, split once and for all into 1,438 for training and 359 for testing.

    Every image is scaled to unit length by itself, so that no statistic of the data set goes unaccounted.

    Raises:
        ImportError: scikit-learn is missing (the ``data`` extra).
    """
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise ImportError("the digits data set needs scikit-learn: pip install 'jaxgdp[data]'") from None
    images, labels = load_digits(return_X_y=True)
    images = images / np.linalg.norm(images, axis=1, keepdims=True)
    images = np.concatenate([images, np.ones((len(images), 1))], axis=1).astype(np.float32)
    order = np.random.default_rng(_SPLIT_SEED).permutation(len(labels))
    test, kept = np.split(order, [len(order) // _TEST_SHARE])
    return Digits(images[kept], labels[kept].astype(np.int32), images[test], labels[test].astype(np.int32))


def batch_space(records: int, sampling_prob, num_steps: int) -> int:
    """Rows to reserve for a Poisson batch, so that over a whole run none is larger but with probability 1e-9.

    Args:
        records: number of training records. sampling_prob: largest p of the run. num_steps: T.

    Returns:
        A whole number, at most ``records``.

    Example:
        >>> batch_space(1438, 0.05, 400) < 160
        True
    """
    return int(min(records, binom.isf(_OVERFLOW / num_steps, records, float(np.max(sampling_prob))) + 1))


def _loss(weights, image, label):
    return optax.softmax_cross_entropy_with_integer_labels(image @ weights, label)


def _clipped(gradient, clip):
    """The gradient of one record, scaled down to norm ``clip`` where it is longer."""
    norm = jnp.sqrt(jnp.sum(gradient**2))
    return gradient * jnp.minimum(1.0, clip / jnp.maximum(norm, 1e-12))


@functools.partial(jax.jit, static_argnames="space")
def _run(key, noise, clip, rate, learning_rate, data: Digits, space: int):
    """Test accuracy of one run; ``noise``, ``clip`` and ``rate`` hold one number for each step."""
    records = data.train_images.shape[0]
    optimizer = optax.sgd(learning_rate, momentum=MOMENTUM)
    weights = jnp.zeros((data.train_images.shape[1], CLASSES))

    def step(state, schedule):
        weights, moments, key = state
        sigma, bound, p = schedule
        key, draw, perturb = jax.random.split(key, 3)
        chosen = jax.random.bernoulli(draw, p, (records,))
        (rows,) = jnp.nonzero(chosen, size=space, fill_value=-1)
        gradients = jax.vmap(jax.grad(_loss), (None, 0, 0))(weights, data.train_images[rows], data.train_labels[rows])
        gradients = jax.vmap(_clipped, (0, None))(gradients, bound)
        total = jnp.sum(jnp.where((rows >= 0)[:, None, None], gradients, 0.0), axis=0)
        total = total + sigma * bound * jax.random.normal(perturb, weights.shape)
        # divided by the expected size: the drawn size is private; by the clip too, so that it does not act as a rate
        updates, moments = optimizer.update(total / (p * records * bound), moments, weights)
        return (optax.apply_updates(weights, updates), moments, key), None

    (weights, _, _), _ = jax.lax.scan(step, (weights, optimizer.init(weights), key), (noise, clip, rate))
    return jnp.mean(jnp.argmax(data.test_images @ weights, axis=1) == data.test_labels)


def train(noise_multiplier, clip=1.0, sampling_prob=64 / 1438, num_steps=None, seeds=range(5), learning_rate=LEARNING_RATE):
    """Test accuracies of DP-SGD on the digits, for schedules of noise, clipping norm and sampling rate.

    Each step draws a Poisson batch, clips every record's gradient to norm C_t, adds N(0, σ_t²C_t²) to the sum and divides by
    the expected batch size (Abadi et al. 2016). Initial weights are zero; a seed decides batches and noise.

    Args:
        noise_multiplier: σ_t > 0, scalar or one number a step. clip: C_t > 0, likewise. sampling_prob: p_t in (0, 1], likewise.
        num_steps: T; needed if all three are scalars. seeds: whole numbers, one run each.
        learning_rate: of gradient descent with momentum 0.9.

    Returns:
        Accuracies in [0, 1], one for each seed.

    Raises:
        ValueError: an argument is out of range or lengths differ (before tracing).
        ImportError: scikit-learn is missing.
    """
    schedule = {
        "noise_multiplier": positive("noise_multiplier", noise_multiplier),
        "clip": positive("clip", clip),
        "sampling_prob": probability("sampling_prob", sampling_prob),
    }
    shape = broadcast(**schedule) or (num_steps,)
    if len(shape) != 1 or shape[0] is None or num_steps not in (None, shape[0]):
        raise ValueError(f"schedules must be scalars or rows of num_steps = {num_steps} numbers, got shape {shape}")
    columns = [jnp.asarray(np.broadcast_to(a, shape), jnp.float32) for a in schedule.values()]
    data = load()
    space = batch_space(data.records, schedule["sampling_prob"], shape[0])
    keys = jnp.stack([jax.random.key(int(seed)) for seed in seeds])
    runs = jax.vmap(functools.partial(_run, space=space), (0, None, None, None, None, None))
    return np.asarray(runs(keys, *columns, jnp.float32(positive("learning_rate", learning_rate)), data), np.float64)
