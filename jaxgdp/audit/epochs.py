"""Epochs of a sequential audit: when thresholds are chosen anew, and how, from the past alone.

An epoch starts after a number of pairs that is fixed beforehand. From then on it bets on a few
thresholds, with rates guessed from the pairs just before its start. Its wealth starts at 1. The
audit's wealth is the mean of what all epochs, thresholds and guesses have, by weights fixed
beforehand, and a mean of test supermartingales is one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..numerics import namespace as xp
from ..numerics.shapes import Array
from . import bets
from .bets import GUESSES, Bets
from .half_planes import HalfPlanes

STARTS = np.array([3, 6, 12, 24] + [96 * 4**i for i in range(9)])  # pairs before an epoch
_SHARES = np.array([4.0, 4.0, 4.0, 4.0, 2.0] + [0.5**i for i in range(8)])
EPOCHS = _SHARES / _SHARES.sum()  # weights of epochs
WINDOW = 512  # pairs before its start that an epoch learns from, at most
# thresholds are quantiles of members' and nonmembers' scores together
_LEVELS = np.array([0.5, 0.3, 0.7, 0.1, 0.9, 0.02, 0.98, 0.002, 0.998])
THRESHOLDS = np.array([0.40, 0.14, 0.14, 0.09, 0.09, 0.045, 0.045, 0.025, 0.025])
LOG_WEIGHTS = np.log(
    (EPOCHS[:, None, None, None] / EPOCHS.sum())
    * (THRESHOLDS[:, None, None] / THRESHOLDS.sum())
    * (GUESSES[:, None] * GUESSES / GUESSES.sum() ** 2)
)


class Epoch(NamedTuple):
    """What an epoch is fixed by at its start; shapes are those of one epoch, all are stacked.

    Attributes:
        threshold: scores above it count, shape (thresholds,).
        bets: on each threshold, :class:`jaxgdp.audit.bets.Bets` of shape (thresholds, 3, 3).
        factors: their :func:`jaxgdp.audit.bets.log_factors`, shape (thresholds, 3, 3, 4).
    """

    threshold: Array
    bets: Bets
    factors: Array


def idle() -> Epoch:
    """All epochs before any has started: no bets."""
    shape = LOG_WEIGHTS.shape
    return Epoch(
        np.full(shape[:2], np.inf),
        Bets(np.ones((*shape, 2)), np.zeros(shape), np.zeros(shape, np.int32)),
        np.zeros((*shape, 4)),
    )


def start(window: Array, number: Array, lines: HalfPlanes) -> Epoch:
    """Thresholds and bets of an epoch.

    Args:
        window: nonmembers' and members' scores, shape (2, n), the last ones in use.
        number: how many of each are in use.
        lines: the claim's half-planes.

    Returns:
        :class:`Epoch`.

    Method: docs/method/sequential.md#wealth
    """
    used = xp.broadcast_to(xp.arange(window.shape[1]) >= window.shape[1] - number, window.shape)
    pooled = xp.where(used, window, xp.inf).reshape(-1)
    pooled = pooled[xp.argsort(pooled)]
    ranks = xp.clip(xp.round(_LEVELS * 2.0 * number), 1, 2 * number - 1)
    threshold = pooled[ranks.astype(np.int32) - 1]
    above = xp.sum(used & (window > threshold[:, None, None]), axis=-1)
    odds = bets.guesses(above.astype(window.dtype), number * xp.ones_like(window[0, 0]))
    return Epoch(threshold, *best_bets(single(odds), lines))


def single(values: Array) -> Array:
    """Values rounded to 32 bits, in the precision they came in."""
    return values.astype(np.float32).astype(values.dtype)


def single_below(values: Array) -> Array:
    """Values ≥ 0 rounded down to 32 bits, in the precision they came in."""
    return single(values * (1.0 - 2.0**-21))


def best_bets(odds: Array, lines: HalfPlanes) -> tuple[Bets, Array]:
    """The bets with the fastest growth at guessed odds, and their log factors.

    The half-plane is one of the two at the corner that is nearest to the guess; any would be valid.

    Args:
        odds: shape (..., 2).
        lines: the claim's half-planes.
    """
    slope, intercept, corner = (xp.asarray(x) + 0.0 * odds.reshape(-1)[0] for x in lines)
    if slope.shape[0] == 1:
        first = second = xp.zeros_like(odds[..., 0]).astype(np.int32)
    else:
        rates = odds / (1.0 + odds)
        at = xp.clip(corner, 1e-30, 1.0 - 1e-7)
        distance = -xp.sum(
            rates[..., None, :] * xp.log(at) + (1.0 - rates[..., None, :]) * xp.log1p(-at), axis=-1
        )
        first = xp.argmin(distance, axis=-1).astype(np.int32)
        second = first + 1
    found = [_bet(odds, slope, intercept, line) for line in (first, second)]
    better = found[1][2] > found[0][2]
    multiplier = xp.where(better, found[1][0], found[0][0])
    line = xp.where(better, second, first)
    factors = xp.where(better[..., None], found[1][1], found[0][1])
    return Bets(odds, multiplier, line), factors


def _bet(odds: Array, slope: Array, intercept: Array, line: Array):
    """Multiplier, log factors and growth against one half-plane each."""
    s, c = slope[line], intercept[line]
    multiplier = single_below(bets.largest_multiplier(odds, s, c))
    return multiplier, bets.log_factors(odds, s, multiplier), bets.growth(odds, s, multiplier)
