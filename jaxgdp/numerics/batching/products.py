"""Matrix products of so few numbers that BLAS leaves each to one thread."""

from __future__ import annotations

import itertools

import numpy as np

ONE_THREAD = 2**18  # products of numbers in a product of matrices that BLAS leaves to one thread
_ROWS = 24  # of the left matrix in one of them


def in_one_thread(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """``a @ b`` in products so small that BLAS leaves each to one thread, which waits for none."""
    (number, inner), width = a.shape, b.shape[1]
    some = min(number, _ROWS)
    step = max(1, ONE_THREAD // max(1, some * inner))
    if number == some and width <= step:
        return a @ b
    found = np.empty((number, width), np.result_type(a, b))
    for first, k in itertools.product(range(0, number, _ROWS), range(0, width, step)):
        found[first : first + _ROWS, k : k + step] = a[first : first + _ROWS] @ b[:, k : k + step]
    return found
