"""Convolutions of masses in short sums of products, which are added up in pairs: of n products a
mass has little more than the logarithm of n roundings."""

from __future__ import annotations

import math

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from ...numerics.batching.products import ONE_THREAD

_LARGE = 4  # longest sums from which on products of matrices are faster
# numbers of the shorter one in a sum by products of matrices, and numbers of the result in a row
_TAPS, _ROW = 128, 32
_WIDTH = _ROW + _TAPS - 1  # numbers of the longer one that a row is made of
# rows in a product of matrices that BLAS leaves to one thread, a multiple of what it works on
# together
_ROWS = ONE_THREAD // (_ROW * _WIDTH) // 16 * 16
_TOGETHER = 8  # such sums of one number that are kept at once


def units(width: int, block: int) -> int:
    """Roundings of a sum of at most so many products by :func:`convolve`."""
    return min(block, width) + math.ceil(math.log2(max(width / block, 1.0))) + 1


def convolve(one: np.ndarray, other: np.ndarray, block: int) -> np.ndarray:
    """Their convolution, in sums of at most ``block`` products that are added up in pairs.

    Args:
        one, other: finite numbers of at least 0.
        block: longest sum of products in any order, at least 128.

    Method: docs/method/seldom.md#seldom-sums
    """
    short, long = (one, other) if len(one) <= len(other) else (other, one)
    if len(short) <= block:
        return np.correlate(long, short[::-1], "full")
    if len(short) >= _LARGE * block:
        return _by_matrices(short, long)
    half = len(short) // 2
    first, second = (convolve(part, long, block) for part in (short[:half], short[half:]))
    return _joined(first, second, half)


def _joined(first: np.ndarray, second: np.ndarray, apart: int) -> np.ndarray:
    """The sum of numbers, of which the second ones begin so many places further on."""
    found = np.zeros(apart + len(second))
    found[: len(first)] = first
    found[apart:] += second
    return found


def _by_matrices(short: np.ndarray, long: np.ndarray) -> np.ndarray:
    """The convolution in sums of up to 128 products: each row of the result is made of a stretch of
    ``long``, by a matrix that has as many of ``short``, and beside them zeros, which add no
    rounding, in every column.
    """
    blocks, number = -(-len(short) // _TAPS), len(long) + _TAPS - 1
    whole, room = np.zeros((blocks, _TAPS + 2 * (_ROW - 1))), _ROW - 1
    taps = np.zeros(blocks * _TAPS)
    taps[: len(short)] = short
    whole[:, room : room + _TAPS] = taps.reshape(blocks, _TAPS)[:, ::-1]
    matrices = np.ascontiguousarray(sliding_window_view(whole, _ROW, axis=-1)[:, :, ::-1])
    products = -(-number // (_ROW * _ROWS))
    padded = np.zeros(products * _ROWS * _ROW + _WIDTH)
    padded[_TAPS - 1 : _TAPS - 1 + len(long)] = long
    stretches = sliding_window_view(padded, _WIDTH)[::_ROW][: products * _ROWS]
    stretches = np.ascontiguousarray(stretches).reshape(products, _ROWS, _WIDTH)
    return _added(matrices, stretches, number)[: len(short) + len(long) - 1]


def _added(matrices: np.ndarray, stretches: np.ndarray, number: int) -> np.ndarray:
    """Sums of so many numbers by each of the matrices, added up in pairs."""
    blocks = len(matrices)
    if blocks > _TOGETHER:
        half = -(-blocks // 2)
        parts = (_added(part, stretches, number) for part in (matrices[:half], matrices[half:]))
        return _joined(*parts, half * _TAPS)
    rows = np.matmul(stretches, matrices[:, None]).reshape(blocks, -1)
    sums, apart = list(rows[:, :number]), _TAPS
    while len(sums) > 1:
        pairs = [_joined(*sums[i : i + 2], apart) for i in range(0, len(sums) - 1, 2)]
        sums, apart = pairs + sums[2 * len(pairs) :], 2 * apart
    return sums[0]
