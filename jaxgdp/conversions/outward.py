"""Rounding towards the safe side, so that no closed form errs towards less risk."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..numerics.errors import SPACING as UNIT

SMALLEST = np.finfo(np.float64).tiny  # what is below it has lost digits, or all


def one_minus(x: np.ndarray):
    """1 − x for x in [0, 1], rounded down where it is no double."""
    rest = 1.0 - x
    # (both differences are exact)
    error = np.where(x < 0.5, (1.0 - rest) - x, 0.0)
    return np.where(error < 0.0, np.nextafter(rest, -1.0), rest)


def up(value: Any, roundings: float = 4.0):
    """A value ≥ 0 of so many roundings, from above, a normal double at least; 0 stays 0."""
    with np.errstate(over="ignore"):
        return np.where(value > 0.0, np.maximum(value * (1.0 + roundings * UNIT), SMALLEST), 0.0)


def exp_up(log_value: Any, size: Any = None):
    """e^{log_value} from above, at most 1, for an exponent ≤ 0 that has been rounded at ``size``
    (by default its own); 0 only at −∞.
    """
    size = np.abs(log_value) if size is None else size
    with np.errstate(under="ignore", invalid="ignore"):
        value = np.exp(np.minimum(log_value, 0.0)) * (
            1.0 + 4.0 * UNIT * (1.0 + np.where(np.isfinite(size), size, 0.0))
        )
    return np.where(log_value == -np.inf, 0.0, np.minimum(np.maximum(value, SMALLEST), 1.0))
