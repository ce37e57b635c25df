"""float64 numbers as float32 on a chosen side: what training code without 64-bit can hold."""

from __future__ import annotations

import numpy as np

from ..numerics.shapes import ArrayLike

_TINY = np.finfo(np.float32).tiny  # devices may flush what is smaller to zero


def above(value: ArrayLike) -> np.ndarray:
    """The least float32 not below a float64 array; for positive ones a normal number."""
    value = np.asarray(value, np.float64)
    with np.errstate(over="ignore", under="ignore"):
        near = value.astype(np.float32)
        near = np.where(near < value, np.nextafter(near, np.float32(np.inf)), near)
    return np.where((value > 0.0) & (near < _TINY), _TINY, near)


def below(value: ArrayLike) -> np.ndarray:
    """The largest float32 not above a float64 array; zero below the smallest normal one."""
    value = np.asarray(value, np.float64)
    with np.errstate(over="ignore", under="ignore"):
        near = value.astype(np.float32)
        near = np.where(near > value, np.nextafter(near, np.float32(-np.inf)), near)
    flushed = np.where(near < _TINY, np.float32(0.0), near)
    return np.where(value < 0.0, np.minimum(near, -_TINY), flushed)
