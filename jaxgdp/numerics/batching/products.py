"""Matrix products of so few numbers that BLAS leaves each to one thread, and of so many rows each
that a row has the same bits beside whichever others."""

from __future__ import annotations

import itertools

import numpy as np

ONE_THREAD = 2**18  # products of numbers in a product of matrices that BLAS leaves to one thread
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
