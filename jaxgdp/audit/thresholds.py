"""False positives and false negatives of every threshold.

Compiled and batched over models on an accelerator. On a CPU, where XLA sorts ten times slower than
NumPy, and for a few models, the same lines run on the host."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..numerics.compiling import Program
from ..numerics.shapes import Array

FEW = 8  # models for which nothing is compiled anywhere


def counts(member: Array, nonmember: Array, xp: Any = np):
    """Errors of guessing "member" at or above each score, and of never guessing it.

    Args:
        member, nonmember: scores, shapes (n₁,) and (n₀,), no NaN.
        xp: NumPy or jax.numpy.

    Returns:
        (thresholds, false positives, false negatives), shape (n₁ + n₀ + 1,).
    """
    ones, zeros = member.shape[0], nonmember.shape[0]
    pooled = xp.concatenate([member, nonmember])
    order = xp.argsort(pooled)
    at = pooled[order]
    own = xp.cumsum(order < ones)
    # where a run of equal scores begins: members and others below it
    fresh = xp.concatenate([xp.full(1, True), at[1:] > at[:-1]])
    misses = xp.concatenate([xp.zeros(1, own.dtype), own[:-1]])
    below = xp.arange(ones + zeros) - misses
    # inside such a run, and at last: never guess
    never = xp.full(1, xp.inf), xp.zeros(1, own.dtype), xp.full(1, ones, own.dtype)
    found = (
        xp.where(fresh, at, xp.inf),
        xp.where(fresh, zeros - below, 0),
        xp.where(fresh, misses, ones),
    )
    return tuple(xp.concatenate(pair) for pair in zip(found, never, strict=True))


def _best(member: Array, nonmember: Array, of_fpr: Array, of_fnr: Array, xp: Any = jnp):
    thresholds, fp, fn = counts(member, nonmember, xp)
    values = xp.max(of_fpr[:, fp] + of_fnr[:, fn], axis=0)
    best = xp.argmax(values)
    return values[best], thresholds[best]


_compiled = Program(jax.vmap(_best, (0, 0, None, None)))


def best(member: Array, nonmember: Array, of_fpr: Array, of_fnr: Array):
    """Largest over thresholds and rows j of of_fpr[j][FP] + of_fnr[j][FN], and where.

    Args:
        member, nonmember: scores, shapes (models, n₁) and (models, n₀).
        of_fpr, of_fnr: tables of shape (rows, n₀ + 1) and (rows, n₁ + 1).

    Returns:
        (values, thresholds), shape (models,).
    """
    if len(member) > FEW and jax.default_backend() != "cpu":
        return tuple(np.asarray(a) for a in _compiled(member, nonmember, of_fpr, of_fnr))
    found = [_best(a, b, of_fpr, of_fnr, np) for a, b in zip(member, nonmember, strict=True)]
    return tuple(np.array(column) for column in zip(*found, strict=True))


def at(member: Array, nonmember: Array, threshold: np.ndarray, of_fpr: Array, of_fnr: Array):
    """The same sum at one threshold for each model.

    Args:
        member, nonmember, of_fpr, of_fnr: as for :func:`best`.
        threshold: shape (models,).

    Returns:
        Values, shape (models,).
    """
    fp = np.sum(nonmember >= threshold[:, None], axis=1)
    fn = np.sum(member < threshold[:, None], axis=1)
    return np.max(of_fpr[:, fp] + of_fnr[:, fn], axis=0)
