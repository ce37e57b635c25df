"""Sums over the blocks between vertices, and over all blocks from a vertex on."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...numerics import namespace as xp
from ...numerics.shapes import Array, Float


class Blocks(NamedTuple):
    """``plain`` and ``split`` of ``composed.Composed``, shape (blocks,) each."""

    plain: Float[Array, " vertices"]
    split: Float[Array, " vertices"]


_EACH = 32.0  # units of a factor of a sum: two or three elementary functions and their quotient
_DEEPEST = 700.0  # log of the smallest factor of a sum, as it is taken


def block_units(number: Array | float, fall: Array) -> Array:
    """Relative error, in units, of a sum over a block of so many terms, its factors falling by
    e^{−fall} in all.

    Additions in any order, and factors that are exponentials of rounded numbers.

    Method: docs/method/rounding.md#sums
    """
    return number + 2.0 * xp.abs(fall) + _EACH


def tail_units(length: int, log_ratio: Array, base: int = 32) -> Array:
    """The same of :func:`tail_sums`: ``base`` additions and a factor on every level, and exponents
    that are rounded in units of their own size.

    Method: docs/method/rounding.md#sums
    """
    levels = np.ceil(np.log(max(length, 2)) / np.log(base))
    exponents = xp.minimum(length * xp.abs(log_ratio), _DEEPEST)
    return levels * (base + _EACH) + 4.0 * exponents


def block_sums(
    spectrum: Array, tilt: Float[Array, ""], h: Float[Array, ""], size: int, block: int
) -> Blocks:
    """Block sums of the law of a spectrum, shape (size/2 + 1,), by short kernels.

    Method: docs/method/blocks.md#thinning
    """
    i = xp.arange(1.0, block + 1.0)
    decay = xp.exp(-tilt * i * h)
    share = xp.expm1(i * h) / xp.expm1(block * h)
    masses = xp.irfft(spectrum, size).reshape(size // block, block)
    return Blocks(xp.matmul(masses, decay), xp.matmul(masses, decay * share))


def joined(
    plain: Float[Array, "vertices several"],
    split: Float[Array, "vertices several"],
    tilt: Float[Array, ""],
    width: Float[Array, ""],
) -> Blocks:
    """Each row of neighbouring blocks of the given width taken as one.

    A point x into the j-th of m blocks is (e^{jw + x} − 1)/(e^{mw} − 1) of the way to the far end:
    the chord of all m blocks, in terms of that of its own."""
    number = plain.shape[-1]
    if number == 1:
        return Blocks(plain[:, 0], split[:, 0])
    before = width * xp.arange(number)
    decay = xp.exp(-tilt * before)
    whole = xp.expm1(number * width)
    along = split @ (decay * xp.exp(before) * (xp.expm1(width) / whole)) + plain @ (
        decay * xp.expm1(before) / whole
    )
    return Blocks(plain @ decay, along)


def tail_sums(
    blocks: Float[Array, " vertices"], log_ratio: Float[Array, ""], base: int = 32
) -> Float[Array, " vertices"]:
    """A_k = Σ_{i ≥ 0} e^{i·log_ratio}·blocks_{k+i} for a ratio of at most 1; shape (blocks,), a
    power of two.

    Rows of ``base`` are summed by one small triangular product; the rows' own totals by the same
    method.

    Method: docs/method/blocks.md#thinning
    """
    length = blocks.shape[-1]
    base = min(base, length)
    lag = np.arange(base)[:, None] - np.arange(base)[None, :]
    decay = xp.exp(xp.maximum(log_ratio * np.maximum(lag, 0), -_DEEPEST))
    decay = xp.where(lag >= 0, decay, 0.0)
    rows = blocks.reshape(length // base, base)
    inner = xp.matmul(rows, decay)
    if length == base:
        return inner[0]
    later = tail_sums(inner[:, 0], base * log_ratio, base)
    later = xp.pad(later[1:], (0, 1))
    remaining = xp.exp(xp.maximum(log_ratio * (base - np.arange(base)), -_DEEPEST))
    return (inner + later[:, None] * remaining).reshape(length)
