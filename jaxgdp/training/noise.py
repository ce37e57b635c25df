"""Gaussian noise whose tails reach as far as the accounting does.

``jax.random.normal`` in float32 turns 23 random bits into one of 8.4 million numbers between −5.42
and 5.22. An output that lies further out than the noise can reach gives a record away: at σ = 1, p
= 0.01 and 1000 steps this happens with probability 1000·0.01·Pr[z > 5.22 − 1] = 1e-4, whatever the
accountant computes for δ = 1e-5, and a grid that coarse is visible in single outputs (Mironov
2012). Here each pair of numbers takes at least 128 random bits (Box and Muller 1958): a radius r =
√(−2 log u) with u as fine near 0 as near 1, so that r reaches 11.6 and misses only Pr[r > 11.6] =
1e-29, and an angle that is fine near every axis.

The remaining error is the rounding of float32 itself, in the noise and in its sum with the
gradients.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike

from ..numerics.shapes import Array

_EIGHTH = np.pi / 4.0


def pairs_from_words(words: Array, dtype: DTypeLike) -> tuple[Array, Array]:
    """Two independent standard normal numbers from each row of random words.

    Args:
        words: uint32, shape (number, 4), or (number, 5) for the finer angle that float64 wants.
        dtype: float32 or float64.

    Returns:
        Two arrays of shape (number,).
    """
    real = lambda word: word.astype(dtype)
    # w in (0, 1): 96 bits, so that small values are as exact as large ones
    w = (
        real(words[:, 0]) * 2.0**-32
        + real(words[:, 1]) * 2.0**-64
        + (real(words[:, 2]) + 0.5) * 2.0**-96
    )
    w = jnp.minimum(w, 1.0 - jnp.finfo(dtype).epsneg)
    low = (words[:, 3] & 1) == 1
    # u = w/2 or 1 − w/2
    radius = jnp.sqrt(-2.0 * jnp.where(low, jnp.log(0.5 * w), jnp.log1p(-0.5 * w)))
    # the angle within an eighth of the circle, and which eighth
    part = real(words[:, 3] >> 4) * 2.0**-28
    part = part + ((real(words[:, 4]) + 0.5) * 2.0**-60 if words.shape[1] > 4 else 2.0**-29)
    first, second = jnp.cos(_EIGHTH * part), jnp.sin(_EIGHTH * part)
    swapped, left, down = (((words[:, 3] >> bit) & 1) == 1 for bit in (1, 2, 3))
    x, y = jnp.where(swapped, second, first), jnp.where(swapped, first, second)
    return radius * jnp.where(left, -x, x), radius * jnp.where(down, -y, y)


def standard_normal(key: Array, shape: tuple[int, ...], dtype: DTypeLike = jnp.float32) -> Array:
    """Independent standard normal numbers with tails to 11.6 standard deviations.

    Args:
        key: a JAX PRNG key, used for nothing else.
        shape: of the result.
        dtype: float32, or float64 where it is enabled.

    Returns:
        Array of that shape and type.

    Example:
        >>> import jax
        >>> standard_normal(jax.random.key(0), (3, 5)).shape
        (3, 5)
    """
    size = int(np.prod(shape, dtype=np.int64))
    half = -(-size // 2)
    words = jax.random.bits(key, (half, 5 if dtype == jnp.float64 else 4), jnp.uint32)
    return jnp.concatenate(pairs_from_words(words, dtype))[:size].reshape(shape)
