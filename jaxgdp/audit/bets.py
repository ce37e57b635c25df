"""Bets on one threshold: likelihood ratios whose mean is at most 1 under every law of a claim.

One pair of runs gives a member's score s′ and a nonmember's s. For an event A, such as "the score
is above τ", let q = Pr[s′ ∈ A] and p = Pr[s ∈ A]. A claim says q ≤ s·p + c for its half-planes. A
bet guesses rates (p₁, q₁) outside of one half-plane, and pays for a pair

    e = q₁/q₀ if s′ ∈ A, else (1 − q₁)/(1 − q₀);   times p₁/p₀ if s ∈ A, else (1 − p₁)/(1 − p₀),

where, for a multiplier x ≥ 0, q₀ and p₀ solve (q₁ − q₀)/(q₀(1 − q₀)) = x and (p₀ − p₁)/(p₀(1 −
p₀)) = s·x. The means of the two factors are 1 + x(q − q₀) and 1 − s·x·(p − p₀). If q₀ ≥ s·p₀ + c,
then under the claim x(q − q₀) ≤ s·x·(p − p₀) = t, and the mean of the product of the two
independent factors is at most (1 + t)(1 − t) ≤ 1. Nothing else is needed: any p₁, q₁, half-plane
and x with q₀ ≥ s·p₀ + c is a valid bet, and the largest such x makes (p₀, q₀) the nearest point of
the half-plane, with the fastest growth if (p₁, q₁) are the rates.

Bets are kept as odds p₁/(1 − p₁), q₁/(1 − q₁) and x, 32-bit numbers all, so that they are the same
numbers in every precision. The condition is checked with room for rounding."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..numerics import namespace as xp
from ..numerics.shapes import Array

_SOLVED = 26  # halvings of a multiplier's logarithm
_RANGE = (1e-7, 1e7)  # of multipliers
_ROOM = 16.0  # roundings allowed for in the condition on a multiplier
_SHARE = 1.25  # width of what is guessed, in standard deviations of a rate's probit at ½
GUESSES = np.array([0.25, 0.5, 0.25])  # weights of guessed rates: low, likely, high
_ROOT_HALF = 0.5**0.5
_FURTHEST = 5.0  # probits of guessed rates


class Bets(NamedTuple):
    """Bets on thresholds: guessed odds, and the half-plane and multiplier they are held against.

    Attributes:
        odds: p₁/(1 − p₁) and q₁/(1 − q₁), shape (..., 2).
        multiplier: x ≥ 0, shape (...); 0 bets nothing.
        line: position of the half-plane, shape (...).
    """

    odds: Array
    multiplier: Array
    line: Array


def unit(like: Any) -> float:
    """Half the spacing of numbers at 1 in the precision of an array."""
    return 0.5 * float(np.finfo(np.dtype(like.dtype)).eps)


def guesses(above: Array, number: Array) -> Array:
    """Odds that are guessed for the rates of a threshold from counts of the past.

    Args:
        above: scores above the threshold, nonmembers and members, shape (..., 2).
        number: scores of each.

    Returns:
        Odds of (p₁, q₁): three guesses of each, shape (..., 3, 3, 2).
    """
    width = _SHARE / xp.sqrt(xp.maximum(number, 1.0))
    middle = xp.ndtri((above + 0.5) / (number + 1.0))
    low = xp.ndtri((above + 0.1) / (number + 1.0)) - width
    high = xp.ndtri((above + 0.9) / (number + 1.0)) + width
    probit = xp.clip(xp.stack([low, middle, high]), -_FURTHEST, _FURTHEST)  # (3, ..., 2)
    odds = xp.erfc(-_ROOT_HALF * probit) / xp.erfc(_ROOT_HALF * probit)
    odds = xp.moveaxis(odds, 0, -1)  # (..., 2, 3)
    of_fpr, of_tpr = odds[..., 0, :, None], odds[..., 1, None, :]
    return xp.stack([of_fpr + 0.0 * of_tpr, of_tpr + 0.0 * of_fpr], axis=-1)


def projected(odds: Array, slope: Array, multiplier: Array) -> tuple[Array, Array]:
    """(p₀, 1 − p₀) and (q₀, 1 − q₀) of bets, relatively accurate to a few roundings.

    Both are roots of quadratics, written without cancellation.

    Args:
        odds: shape (..., 2).
        slope: s, shape (...).
        multiplier: x, shape (...).

    Returns:
        Arrays of shape (2, ...).
    """
    p, q = odds[..., 0], odds[..., 1]
    x, y = multiplier, slope * multiplier
    p, p_not = p / (1.0 + p), 1.0 / (1.0 + p)
    q, q_not = q / (1.0 + q), 1.0 / (1.0 + q)
    q0 = 2.0 * q / (x + 1.0 + xp.sqrt((x - 1.0) ** 2 + 4.0 * x * q_not))
    p0_not = 2.0 * p_not / (y + 1.0 + xp.sqrt((y - 1.0) ** 2 + 4.0 * y * p))
    return xp.stack([_rising(y, p), p0_not]), xp.stack([q0, _rising(x, q_not)])


def _rising(x: Array, rate: Array) -> Array:
    """The root r in (0, 1) of x·r² + (1 − x)·r = rate."""
    root = xp.sqrt((x - 1.0) ** 2 + 4.0 * x * rate)
    # 1 − x + root cancels for x > 1, where its conjugate does not
    steep = (x - 1.0 + root) / (2.0 * xp.maximum(x, 1.0))
    return xp.where(x > 1.0, steep, 2.0 * rate / (xp.maximum(1.0 - x, 0.0) + root))


def log_factors(odds: Array, slope: Array, multiplier: Array) -> Array:
    """log of the four factors: member above and below, nonmember above and below.

    Args:
        odds: shape (..., 2).
        slope: shape (...).
        multiplier: shape (...).

    Returns:
        Shape (..., 4).

    Method: docs/method/sequential.md#pair
    """
    (p0, p0_not), (q0, q0_not) = projected(odds, slope, multiplier)
    p, q = odds[..., 0], odds[..., 1]
    found = [
        xp.log(q / (1.0 + q) / q0),
        xp.log(1.0 / (1.0 + q) / q0_not),
        xp.log(p / (1.0 + p) / p0),
        xp.log(1.0 / (1.0 + p) / p0_not),
    ]
    return xp.where((multiplier > 0.0)[..., None], xp.stack(found, axis=-1), 0.0)


def valid(odds: Array, slope: Array, intercept: Array, multiplier: Array) -> Array:
    """Whether q₀ ≥ s·p₀ + c, with room for rounding."""
    (p0, _), (q0, _) = projected(odds, slope, multiplier)
    line = slope * p0 + intercept
    room = _ROOM * unit(q0)
    return q0 - line >= room * (q0 + slope * p0 + xp.abs(intercept))


def largest_multiplier(odds: Array, slope: Array, intercept: Array) -> Array:
    """The largest valid multiplier of a bet, from below; 0 where none is.

    q₀ falls and p₀ rises with x, so that the valid ones are an interval from 0 on.

    Args:
        odds: shape (..., 2).
        slope: shape (...).
        intercept: shape (...).

    Method: docs/method/sequential.md#pair
    """
    low, high = (np.log(end) + 0.0 * odds[..., 0] for end in _RANGE)
    any_valid = valid(odds, slope, intercept, xp.exp(low))

    def halved(_: int, ends: tuple[Array, Array]):
        middle = 0.5 * (ends[0] + ends[1])
        good = valid(odds, slope, intercept, xp.exp(middle))
        return xp.where(good, middle, ends[0]), xp.where(good, ends[1], middle)

    low, _ = xp.fori_loop(0, _SOLVED, halved, (low, high))
    return xp.where(any_valid, xp.exp(low), 0.0)


def growth(odds: Array, slope: Array, multiplier: Array) -> Array:
    """Mean of log e if the guessed rates are the rates."""
    p, q = odds[..., 0], odds[..., 1]
    weights = [q / (1.0 + q), 1.0 / (1.0 + q), p / (1.0 + p), 1.0 / (1.0 + p)]
    return xp.sum(xp.stack(weights, axis=-1) * log_factors(odds, slope, multiplier), axis=-1)
