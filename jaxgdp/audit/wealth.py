"""What a sequential audit has counted, and the wealth that follows from it, rounded down.

A bet's wealth after n pairs is exp(Σ count·log factor) over its four factors. Computed factors err
by a few roundings each, so that a whole sum errs by at most so many for each of its 2n factors, and
by a few of its terms: this much is subtracted."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..numerics import namespace as xp
from ..numerics.shapes import Array
from . import bets
from .epochs import LOG_WEIGHTS, STARTS

_ROUNDINGS = 32.0  # of each factor of a pair: twice what its few operations can lose


class Counts(NamedTuple):
    """Everything a sequential audit has counted.

    Attributes:
        pairs: how many pairs have been used.
        above: nonmembers and members above each threshold since its epoch began, shape (epochs,
            thresholds, 2).
        window: the last nonmembers' and members' scores, shape (2, WINDOW).
        waiting: scores that wait for a partner, shape (capacity,).
        num_waiting: how many members wait; minus the number of nonmembers that do.
        dropped: scores that found no room to wait.
        peak: largest logarithm of the wealth at the end of any update.
    """

    pairs: Array
    above: Array
    window: Array
    waiting: Array
    num_waiting: Array
    dropped: Array
    peak: Array


def log_wealth(factors: Array, above: Array, pairs: Array) -> Array:
    """log of the wealth, from below.

    Args:
        factors: from :func:`jaxgdp.audit.bets.log_factors`, shape (epochs, thresholds, 3, 3, 4).
        above: counts, shape (epochs, thresholds, 2).
        pairs: how many pairs have been used.

    Method: docs/method/sequential.md#wealth
    """
    number = xp.maximum(pairs - STARTS, 0)[:, None]
    nonmembers, members = above[..., 0], above[..., 1]
    counts = xp.stack([members, number - members, nonmembers, number - nonmembers], axis=-1)
    terms = counts[:, :, None, None, :].astype(factors.dtype) * factors
    u = bets.unit(factors)
    lost = u * (_ROUNDINGS * 2.0 * number[..., None, None] + 8.0 * xp.sum(xp.abs(terms), axis=-1))
    lost = xp.where(factors[..., 0] == 0.0, 0.0, lost)
    total = xp.logsumexp((LOG_WEIGHTS + xp.sum(terms, axis=-1) - lost).reshape(-1))
    return total - 64.0 * u * (1.0 + xp.abs(total))


def path(factors: Array, above: Array, pairs: int) -> np.ndarray:
    """log of the wealth after every one of several pairs, from below, on the host.

    Args:
        factors: from :func:`jaxgdp.audit.bets.log_factors`, in doubles.
        above: counts of each pair (not yet added up), shape (epochs, pairs, thresholds, 2); the
            counts before the first of them come as its own.
        pairs: how many pairs there are with the first of them.

    Returns:
        Shape (pairs,).

    Method: docs/method/sequential.md#wealth-rounded
    """
    if not above.shape[1]:
        return np.zeros(0)
    counts = np.cumsum(above, axis=1, dtype=float)
    number = np.maximum(pairs + np.arange(above.shape[1]) - STARTS[:, None], 0.0)
    u, total = bets.unit(factors), np.full(above.shape[1], -np.inf)
    for epoch in range(len(STARTS)):
        weights = LOG_WEIGHTS[epoch]
        if not number[epoch, -1]:
            total = np.logaddexp(total, np.log(np.exp(weights).sum()))
            continue
        n = number[epoch][:, None]
        nonmembers, members = counts[epoch, :, :, 0], counts[epoch, :, :, 1]
        table = np.stack([members, n - members, nonmembers, n - nonmembers], axis=-1)
        each = factors[epoch].reshape(*weights.shape[:1], -1, 4)
        sizes = np.abs(each).max(axis=(0, 1)).sum()
        # thresholds, guesses, pairs
        terms = each @ np.moveaxis(table, 0, -1) + weights.reshape(weights.shape[0], -1, 1)
        terms = terms.reshape(-1, len(table))
        top = terms.max(axis=0)
        mixed = top + np.log(np.exp(terms - top).sum(axis=0))
        # a bet that pays nothing loses nothing; the others at most this
        total = np.logaddexp(total, mixed - u * n[:, 0] * (2.0 * _ROUNDINGS + 8.0 * sizes))
    return total - 64.0 * u * (1.0 + np.abs(total))
