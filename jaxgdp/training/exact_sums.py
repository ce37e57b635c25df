"""Sums of clipped gradients that are exact: whole numbers of a small unit.

A sum in float32 rounds, and its rounding depends on every record in the batch. Among 65,536
gradients that point the same way one record more moves such a sum by up to 1.004 clipping norms,
which the accounting does not pay for. No order of summation and no compensation ends this while the
result is one float32: next to 10⁶ the numbers are 1/16 apart.

Here gradients are divided by the clipping norm C, so that every norm is at most 1, and every
coordinate is cut towards zero to a multiple of 2⁻²⁴. Whole numbers are added without error in any
order, over micro-batches and devices alike, so the sum without a record differs from the sum with
it by exactly that record's cut gradient, whose norm is at most 1. What is cut away is less than
2⁻²⁴·C a coordinate: far below the noise.

A sum S is held in two int32, S = 2¹⁶·high + low with 0 ≤ low < 2¹⁶, which has room for 2²³ − 1
examples in an update. It is read as whole + fraction, two floats that are both exact in float32,
and the noise is added to the fraction first: nothing is rounded before there is noise in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike

from ..numerics.shapes import Array, PyTree

UNIT_BITS = 24  # a unit is 2⁻²⁴ clipping norms
_LOW_BITS = 16
_ROWS = 127  # this many numbers up to 2²⁴ fit an int32
_GROUP = 64
MOST_EXAMPLES = 2**23 - 1  # of one update, over all micro-batches and devices

# float32 norms are summed in blocks, as positive terms: an error of at most 2⁻²⁴·256 a level
_BLOCK = 256
# room for the rounding of norms and products: gradients are clipped to this part of the norm
CLIPPED_TO = 1.0 - 1e-4


class ExactSum(NamedTuple):
    """A sum in units of 2⁻²⁴ clipping norms.

    Attributes:
        high, low: pytrees of int32; 2¹⁶·high + low is the sum, low in [0, 2¹⁶).
    """

    high: PyTree
    low: PyTree

    def __add__(self, other: ExactSum) -> ExactSum:  # type: ignore[override]
        """The sum of both, exact."""
        added = jax.tree.map(jnp.add, tuple(self), tuple(other))
        return _carried(*added)

    def over_devices(self, axis_name: str) -> ExactSum:
        """The sum over all devices of an axis of ``pmap`` or ``shard_map``, exact."""
        return _carried(*jax.lax.psum(tuple(self), axis_name))


def _carried(high: PyTree, low: PyTree) -> ExactSum:
    """Numbers whose low part may have grown beyond 16 bits."""
    mask = (1 << _LOW_BITS) - 1
    high = jax.tree.map(lambda h, l: h + (l >> _LOW_BITS), high, low)
    return ExactSum(high, jax.tree.map(lambda l: l & mask, low))


def zeros(like: ExactSum) -> ExactSum:
    """The sum of nothing, of the shapes of another one, whose arrays may be abstract."""
    return jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, jnp.int32), like)


def whole_and_fraction(high: Array, low: Array, dtype: DTypeLike) -> tuple[Array, Array]:
    """A sum in clipping norms as a whole number and a fraction in [−1/2, 1/2), exact in float32.

    Example:
        >>> whole, fraction = whole_and_fraction(jnp.int32(640), jnp.int32(32768), jnp.float32)
        >>> float(whole), float(fraction) == -0.5 + 2.0**-9
        (3.0, True)
    """
    bits = UNIT_BITS - _LOW_BITS
    whole = (high + (1 << (bits - 1))) >> bits
    rest = ((high - (whole << bits)) << _LOW_BITS) + low
    return whole.astype(dtype), rest.astype(dtype) * 2.0**-UNIT_BITS


def _squares(rows: Array) -> Array:
    """Σ x² of every row, shape (rows,)."""
    return _sum_of_rows((rows * rows).reshape(len(rows), -1))


def _sum_of_rows(terms: Array) -> Array:
    """Sums of rows of terms ≥ 0, of a relative error of at most 256·2⁻²⁴ a level of blocks.

    Up to 2³² terms take four levels, so a norm is right to 1e-4 in whatever order a device adds up
    a block.
    """
    while terms.shape[1] > _BLOCK:
        padding = ((0, 0), (0, -terms.shape[1] % _BLOCK))
        window, zero = (1, _BLOCK), np.zeros((), terms.dtype)
        terms = jax.lax.reduce_window(terms, zero, jax.lax.add, window, window, padding)
        # (XLA might merge the levels into one long sum)
        terms = jax.lax.optimization_barrier(terms)
    return jnp.sum(terms, axis=1)


def sum_of_clipped(gradients: list[Array], clip_norm: Array | float, keep: Array) -> ExactSum:
    """Σ over kept rows of g/C·min(1, C/‖g‖), ‖·‖ over all arrays, cut to units, exact.

    A row that is not finite, or of a norm above about 1e19·C in float32, counts as zero.

    Args:
        gradients: floating-point arrays with a common leading axis, one entry per example.
        clip_norm: C > 0; may be traced.
        keep: bool, which rows count.

    Returns:
        An :class:`ExactSum` of lists of arrays.
    """
    wide = [leaf.astype(jnp.promote_types(leaf.dtype, jnp.float32)) for leaf in gradients]
    widest = jnp.result_type(*wide)
    inverse = 1.0 / jnp.asarray(clip_norm, widest)
    scaled = [leaf * inverse.astype(leaf.dtype) for leaf in wide]
    squares = jnp.stack([_squares(leaf).astype(widest) for leaf in scaled], axis=1)
    total = _sum_of_rows(squares)
    keep = keep & jnp.isfinite(total)
    norm = jnp.sqrt(jnp.where(keep, total, 1.0))
    factor = (CLIPPED_TO * 2.0**UNIT_BITS) / jnp.maximum(norm, CLIPPED_TO)
    parts = [_rows_in_units(leaf, factor.astype(leaf.dtype), keep) for leaf in scaled]
    return ExactSum([part[0] for part in parts], [part[1] for part in parts])


def _rows_in_units(rows: Array, factor: Array, keep: Array) -> tuple[Array, Array]:
    """High and low part of Σ_i rows_i·factor_i, every product cut towards zero."""

    def in_units(some: slice, shape: tuple[int, ...]) -> Array:
        wide = (-1,) + (1,) * (rows.ndim - 1)
        product = rows[some] * factor[some].reshape(wide)
        # (0 times NaN is NaN)
        product = jnp.where(keep[some].reshape(wide), product, 0.0)
        return product.astype(jnp.int32).reshape(shape)

    number, shape = len(rows), rows.shape[1:]
    if number <= _ROWS:
        return _halves(jnp.sum(in_units(slice(None), rows.shape), axis=0, dtype=jnp.int32))
    groups = number // _GROUP
    cut = groups * _GROUP
    partial = jnp.sum(in_units(slice(cut), (groups, _GROUP, *shape)), axis=1, dtype=jnp.int32)
    high, low = (jnp.sum(part, axis=0, dtype=jnp.int32) for part in _halves(partial))
    if cut < number:
        rest = jnp.sum(in_units(slice(cut, None), (number - cut, *shape)), axis=0, dtype=jnp.int32)
        more = _halves(rest)
        high, low = high + more[0], low + more[1]
    total = _carried(high, low)
    return total.high, total.low


def _halves(numbers: Array) -> tuple[Array, Array]:
    return numbers >> _LOW_BITS, numbers & ((1 << _LOW_BITS) - 1)


def rounded(total: ExactSum, clip_norm: Array | float, dtypes: Sequence[DTypeLike]) -> list[Array]:
    """The sum of each array in one float, rounded once to nearest."""
    result = []
    for high, low, dtype in zip(total.high, total.low, dtypes, strict=True):
        wide = jnp.promote_types(dtype, jnp.float32)
        whole, fraction = whole_and_fraction(high, low, wide)
        result.append((whole + fraction) * jnp.asarray(clip_norm, wide))
    return result


def check_number(examples: int) -> None:
    """Refuse more examples in one update than a sum has room for.

    Raises:
        ValueError: there are more than 2²³ − 1.
    """
    if examples > MOST_EXAMPLES:
        raise ValueError(
            f"gradients must be of at most {MOST_EXAMPLES} examples in one update, got {examples}"
        )
