"""The curve of N(0, σ²) against a mixture of shifts: a sample of the shifts that are not 0."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from ...numerics.errors import UNIT
from ...numerics.shapes import Array, Float
from .base import reciprocal
from .sampled import SampledCurve
from .shifts import ShiftsCurve

_LEAST, _MOST = 5e-324, float(np.finfo(float).max)


def mixture_curve(
    sigma: float, shifts: Float[Array, " shifts"], weights: Float[Array, " shifts"]
) -> SampledCurve:
    """N(0, σ²) against Σ w_i·N(c_i, σ²).

    Weights are added up exactly, so that each is rounded once and what is left of P, however
    little, is what was given.

    Args:
        sigma: σ.
        shifts, weights: c_i ≥ 0 and w_i ≥ 0, whose sum is divided out; not all c_i·w_i are 0.

    Method: docs/method/known.md#shifts
    """
    c = [float(each) for each in shifts]
    w = [Fraction(float(each)) for each in weights]
    moved = [i for i in range(len(c)) if c[i] > 0.0 and w[i] > 0]
    some, total = sum((w[i] for i in moved), Fraction(0)), sum(w, Fraction(0))
    inverse, size = reciprocal(sigma), np.array([c[i] for i in moved])
    low = np.clip(size * inverse.lower * (1.0 - 2.0 * UNIT), _LEAST, _MOST)
    high = np.clip(size * inverse.upper * (1.0 + 2.0 * UNIT), _LEAST, _MOST)
    base = ShiftsCurve(low, high, np.array([_log(w[i] / some) for i in moved]))
    rest = _log((total - some) / total) if some < total else -np.inf
    return SampledCurve(base, np.asarray(float(some / total)), np.asarray(rest))


def _log(value: Fraction) -> float:
    """log of a positive fraction, to a unit of itself and one of the fraction."""
    if value > Fraction(1, 2):
        return float(np.log1p(-float(1 - value)))
    if value > Fraction(1, 2**1000):
        return float(np.log(float(value)))
    return float(np.log(float(value * 2**1074)) - 1074.0 * np.log(2.0))
