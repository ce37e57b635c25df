"""R ↦ a cheap lower bound on f(1 − R), as a table that NumPy and JAX read: for one-run audits."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..numerics import namespace as xp
from ..numerics.shapes import Array


class Swapped(NamedTuple):
    """A lower bound on R ↦ f(1 − R) by its values at knots; a pytree, called like a function.

    f is convex. Beyond a segment, the line through its ends lies below f; so it does if its near
    end is lowered and its far one raised.

    Attributes:
        knots: R, increasing from 0, shape (k,).
        low: lower bounds there, non-decreasing.
        onward: slopes of lines used to the right of their segment, shape (k − 1,).
        back: slopes of lines used to the left of theirs.
    """

    knots: Array
    low: Array
    onward: Array
    back: Array

    def __call__(self, right: Array) -> Array:
        """The bound at every R of an array."""
        last = self.knots.shape[0] - 1
        j = xp.clip(xp.searchsorted(self.knots, right, side="right") - 1, 0, last)
        before, after = xp.clip(j - 1, 0, last - 1), xp.clip(j + 1, 0, last - 1)
        end = xp.clip(j + 1, 0, last)
        ahead = self.low[j] + self.onward[before] * (right - self.knots[j])
        behind = self.low[end] - self.back[after] * (self.knots[end] - right)
        found = xp.maximum(self.low[j], xp.where(j > 0, ahead, -xp.inf))
        return xp.maximum(found, xp.where(j + 1 < last, behind, -xp.inf))


def swapped(knots: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> Swapped:
    """The table from both sides of f at the FPRs 1 − R.

    Args:
        knots: R, increasing from 0.
        lower: lower bounds on f(1 − R).
        upper: upper bounds.
    """
    low = np.minimum.accumulate(lower[::-1])[::-1]
    gaps = np.diff(knots)
    return Swapped(knots, low, (low[1:] - upper[:-1]) / gaps, (upper[1:] - low[:-1]) / gaps)
