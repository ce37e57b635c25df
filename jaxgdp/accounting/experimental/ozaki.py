"""Sums of products in 32-bit arithmetic without any rounding: slices of seven bits.

A number of at most 1 is a₀/2⁶ + a₁/2¹³ + … with whole numbers |aᵢ| ≤ 64, exactly but for 2⁻⁷ˢ after
s of them. Products of two slices are at most 2¹², and so are sums of 4096 of them whole numbers
below 2²⁴: floats of 32 bits hold each, and every partial sum of them, in whatever order they are
added (Ozaki, Ogita, Oishi and Rump 2012). Seven bits are exact in bfloat16 and TF32, too, to which
accelerators round what they multiply. What is left out is known on the host, where slices are cut
and sums put together, in doubles."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ...numerics.compiling import Program
from ...numerics.shapes import Array, Float, Int

BITS, SLICES = 7, 7
LOST = 2.0 ** (-BITS * SLICES)  # of a number of at most 1, at most
_LONGEST = 2 ** (24 - 2 * (BITS - 1))  # products that are added up without rounding


class Sliced(NamedTuple):
    """Numbers in slices, scaled by powers of two.

    Attributes:
        whole: whole numbers up to 64, float32, shape (SLICES, …).
        exponent: of what each row was divided by.
        lost: bound, in units of the divisor times ``LOST``, on what a row takes part in: Σ of all
            its |aᵢ|/64.
        total: Σ of its absolute values, in units of the divisor.
    """

    whole: Float[Array, "slices rows length"]
    exponent: Int[Array, " rows"]
    lost: Float[Array, " rows"]
    total: Float[Array, " rows"]


def sliced(numbers: Float[np.ndarray, "rows length"]) -> Sliced:
    """Slices of rows of doubles (last axis), each row divided by a power of two beyond its largest.

    Method: docs/method/narrow.md#slices
    """
    exponent = np.frexp(np.max(np.abs(numbers), axis=-1, keepdims=True))[1]
    rest = np.ldexp(numbers, (BITS - 1) - exponent)
    total = np.ldexp(np.sum(np.abs(rest), axis=-1), 1 - BITS)
    whole = np.empty((SLICES, *rest.shape), np.float32)
    for place in range(SLICES):
        digit = np.rint(rest)
        whole[place] = digit
        rest = np.ldexp(rest - digit, BITS)
    lost = np.sum(np.abs(whole), axis=(0, -1), dtype=float) / 2 ** (BITS - 1)
    return Sliced(whole, exponent[..., 0], lost, total)


def longest() -> int:
    """Numbers of a row that are added up without rounding."""
    return _LONGEST


def _pairs(length: int) -> list[list[tuple[int, int]]]:
    """Which slices of two factors are multiplied and added at once, as many as are exact."""
    together = _LONGEST // length
    found = []
    for power in range(SLICES):
        pairs = [(i, power - i) for i in range(power + 1)]
        found += [pairs[start : start + together] for start in range(0, len(pairs), together)]
    return found


def exact_sums(
    row: Float[Array, "slices length"], columns: Float[Array, "slices columns length"]
) -> Float[Array, "sums columns"]:
    """Whole numbers Σ_j a_j·b_jk of slices of equal power, in float32: the device's part.

    Args:
        row: slices of the row, shape (SLICES, length).
        columns: of every column, shape (SLICES, columns, length).

    Returns:
        Shape (sums, columns), in the order of the powers.
    """
    sums = []
    for pairs in _pairs(columns.shape[-1]):
        left = jnp.concatenate([row[i] for i, _ in pairs])
        right = jnp.concatenate([columns[j] for _, j in pairs], axis=-1)
        sums.append(right @ left)
    return jnp.stack(sums)


@Program
def by_one_device(
    rows: Float[Array, "rows slices length"], columns: Float[Array, "slices columns length"]
) -> Float[Array, "rows sums columns"]:
    """:func:`exact_sums` of every row."""
    return jax.vmap(lambda row: exact_sums(row, columns))(rows)


class Products(NamedTuple):
    """Σ_j a_j·b_j of every row and column, and a bound on what was left out of it."""

    value: Float[np.ndarray, "rows columns"]
    left_out: Float[np.ndarray, "rows columns"]


def products(
    rows: Sliced,
    columns: Sliced,
    on_device: Array | None = None,
    compute: Callable[[Array, Array], Array] = by_one_device,
) -> Products:
    """Products of all rows and columns.

    The bound is that of slices beyond the last and of products of slices whose powers are beyond
    it.

    Args:
        rows, columns: their slices.
        on_device: the slices of the columns where they are on a device already.
        compute: :func:`exact_sums` of every row, on whichever devices.

    Raises:
        ValueError: rows too long to be added up without rounding.

    Method: docs/method/narrow.md#slices
    """
    length = columns.whole.shape[-1]
    if length > _LONGEST:
        raise ValueError(
            f"rows of up to {_LONGEST} numbers are added up without rounding, got {length}"
        )
    number = rows.whole.shape[1]
    # (few shapes: each is compiled)
    whole = np.zeros((2 ** int(np.ceil(np.log2(number))), SLICES, length), np.float32)
    whole[:number] = np.moveaxis(np.asarray(rows.whole), 0, 1)
    found = np.asarray(compute(whole, columns.whole if on_device is None else on_device))
    found = found[:number].astype(float)
    powers = np.array([pairs[0][0] + pairs[0][1] for pairs in _pairs(length)])
    value = np.einsum("g,rgk->rk", np.ldexp(1.0, -2 * (BITS - 1) - BITS * powers), found)
    scale = np.ldexp(1.0, rows.exponent[:, None] + columns.exponent)
    return Products(scale * value, scale * (LOST * (rows.lost[:, None] + columns.total)))
