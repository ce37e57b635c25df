"""Matrix products of so few numbers that BLAS leaves each to one thread, and of so many rows each
that a row has the same bits beside whichever others."""

from __future__ import annotations

import itertools
import math

import numpy as np

ONE_THREAD = 2**18  # products of numbers in a product of matrices that BLAS leaves to one thread
_OF_VECTOR = 9216  # … and in one of a matrix and a vector
_FEWEST = 4  # rows of a part of a product of matrices
# rows of the left matrix in each of them: BLAS sums what a row has in another order beside fewer
# rows or more, so it never gets others
ROWS = 12
_ALIGNED = 16  # columns that BLAS works on together


def in_one_thread(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """``a @ b`` in products so small that BLAS leaves each to one thread, which waits for none; a
    row has the same bits whichever others there are.
    """
    (number, inner), width = a.shape, b.shape[1]
    step, whole = columns(inner), -(-number // ROWS) * ROWS
    a, found = in_whole_parts(a), np.empty((whole, width), np.result_type(a, b))
    for first, k in itertools.product(range(0, whole, ROWS), range(0, width, step)):
        found[first : first + ROWS, k : k + step] = a[first : first + ROWS] @ b[:, k : k + step]
    return found[:number]


def columns(inner: int) -> int:
    """Columns of the right matrix in each product, of so many numbers in a row of the left one."""
    most = max(1, ONE_THREAD // max(1, ROWS * inner))
    return most - most % _ALIGNED if most > _ALIGNED else most


def in_whole_parts(a: np.ndarray) -> np.ndarray:
    """``a`` with rows of zeros behind it, up to a multiple of the rows of a product."""
    lacking = -len(a) % ROWS
    if not lacking:
        return a
    return np.concatenate([a, np.zeros((lacking, *a.shape[1:]), a.dtype)])


def matmul(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """``a @ b`` in one thread: beside that BLAS has others where numbers are many, and each goes on
    at full speed for longer than most products take, in case of another one.
    """
    if a.ndim == 1 or b.ndim == 1:
        few = max(_numbers(a), _numbers(b)) <= _OF_VECTOR
        return a @ b if few else np.einsum(_sum_of_products(a.ndim, b.ndim), a, b)
    (height, inner), width = a.shape[-2:], b.shape[-1]
    if min(height, width) == 1:
        few = max(_numbers(a), _numbers(b)) <= _OF_VECTOR
    else:
        few = height * inner * width <= ONE_THREAD
    rows = ONE_THREAD // max(inner * width, 1)
    if few or rows < _FEWEST or min(height, width) == 1:
        return a @ b if few else _by_sums(a, b)
    parts = np.array_split(np.arange(height), -(-height // rows))
    return np.concatenate([a[..., part[0] : part[-1] + 1, :] @ b for part in parts], axis=-2)


def _by_sums(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """``a @ b`` of two axes without BLAS; two vectors have the bits that they have alone."""
    if a.shape[-2] == b.shape[-1] == 1:
        rows = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        pairs = (np.broadcast_to(x, rows + x.shape[-2:]) for x in (a, b))
        left, right = (np.ascontiguousarray(x).reshape(-1, a.shape[-1]) for x in pairs)
        sums = [np.einsum("i,i->", *pair) for pair in zip(left, right, strict=True)]
        return np.array(sums, float).reshape(*rows, 1, 1)
    return np.einsum("...ij,...jk->...ik", a, b)


def _numbers(a: np.ndarray) -> int:
    """Numbers in a vector, or in one matrix of several."""
    return math.prod(a.shape[-2:])


def _sum_of_products(left: int, right: int) -> str:
    """What ``a @ b`` is where one of them has a single axis, from the numbers of axes of both."""
    if left == right == 1:
        return "i,i->"
    return "...i,i->..." if right == 1 else "i,...ij->...j"
