"""A strategy matrix: its columns, what a participation makes of them, and checks."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...numerics.shapes import Array, Float
from ...numerics.validation import checked

MOST_STEPS = 10_000  # of a dense matrix: 0.8 GB
_LEAST, _MOST = 1e-100, 1e100  # of a column's largest entry, whose square has to be a double


def matrix(strategy: Any, num_steps: int | None) -> Float[Array, "steps steps"]:
    """C as a square matrix: from itself, or from Toeplitz coefficients and a number of steps.

    Raises:
        ValueError: not lower triangular, not square, a diagonal with a 0, more coefficients than
            steps, a column whose squared norm may be no double, or a number of steps that does not
            belong to it; names the argument.
    """
    given = checked("strategy", strategy, "finite numbers", lambda a: a == a)
    if given.ndim == 1:
        if num_steps is None:
            raise ValueError(
                "num_steps must be given with a strategy of Toeplitz coefficients, a whole number"
                " >= 1"
            )
        if len(given) > num_steps:
            raise ValueError(
                f"strategy must have at most num_steps = {num_steps} Toeplitz coefficients, got"
                f" {len(given)}"
            )
        full = np.zeros((num_steps, num_steps))
        for lag, value in enumerate(given.tolist()):
            np.fill_diagonal(full[lag:], value)
    elif given.ndim == 2:
        full = np.asarray(given, float)
        if full.shape[0] != full.shape[1]:
            raise ValueError(f"strategy must be a square matrix, got shape {full.shape}")
        if num_steps is not None and num_steps != len(full):
            raise ValueError(
                f"num_steps must be that of the strategy, {len(full)}, or left out, got {num_steps}"
            )
        if np.any(np.triu(full, 1) != 0.0):
            raise ValueError(
                "strategy must be lower triangular (a step may add only to itself and to later"
                " ones), got an entry above the diagonal"
            )
    else:
        raise ValueError(
            "strategy must be a matrix or one-dimensional Toeplitz coefficients, got shape"
            f" {given.shape}"
        )
    if np.any(np.diag(full) == 0.0):
        raise ValueError("strategy must have no 0 on its diagonal")
    largest = np.maximum(full.max(axis=0), -full.min(axis=0))
    checked("largest entry of every column of strategy", largest,
            f"from {_LEAST:g} to {_MOST:g} in size",
            lambda a: (a >= _LEAST) & (a <= _MOST))  # fmt: skip
    return full


def bands(c: Float[Array, "steps steps"]) -> int:
    """How many diagonals are not 0, from the main one to the last that is not."""
    number = len(c)
    for lag in range(number - 1, 0, -1):
        if np.any(np.diagonal(c, -lag) != 0.0):
            return lag + 1
    return 1


def squared_norms(columns: Float[Array, "steps columns"]) -> Float[Array, " columns"]:
    """Squared norms of columns, each to a rounding or two."""
    wide = columns.astype(np.longdouble)
    return np.asarray((wide * wide).sum(axis=0), float)


def gram(columns: Float[Array, "steps columns"]) -> Float[Array, "columns columns"]:
    """Inner products of columns: of terms of one sign, to some ``len`` roundings."""
    return columns.T @ columns


def modes(c: Float[Array, "steps steps"], cycle: int) -> Float[Array, "steps cycle"]:
    """For each first step j < cycle the sum of the columns j, j + cycle, j + 2·cycle, …"""
    return np.stack([c[:, j::cycle].sum(axis=1) for j in range(min(cycle, len(c)))], axis=1)
