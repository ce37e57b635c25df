"""Lower bounds at any time, from the counts of a sequential audit: which claims are refuted now.

Every null (μ-GDP, (ε, δ)-DP, or advantage at most η) has a test supermartingale of its own: the
same thresholds and guesses, held against its own half-planes, and functions of the same counts.
Nulls are tried on a grid that is fixed beforehand, from the strongest on, until one is not refuted.
The bound is the last refuted one: if it exceeds the truth, then the first grid point at or above
the truth, which is a true null fixed beforehand, was refuted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import ndtr

from . import bets
from .epochs import LOG_WEIGHTS, STARTS
from .wealth import log_wealth

_CHUNK = 16  # nulls at a time
_SMALL = np.geomspace(0.01, 0.1, 16)[:-1]
_MUS = np.concatenate([[0.0], _SMALL, np.geomspace(0.1, 10.0, 301)])
_EPSILONS = np.concatenate([[0.0], _SMALL, np.geomspace(0.1, 20.0, 301)])
_ADVANTAGES = np.linspace(0.0, 0.996, 250)
_HALVINGS = 30
_MOST_EXCESS = 1e-10  # of bets that are made
_ROOM = 64.0  # roundings of each factor


def factors_of(audit: Any) -> np.ndarray:
    """log factors of an audit's own bets, in doubles."""
    slope = audit.lines.slope.astype(float)[audit.epoch.bets.line]
    odds, multiplier = (x.astype(float) for x in audit.epoch.bets[:2])
    return np.asarray(bets.log_factors(odds, slope, multiplier))


def exact_log_wealth(audit: Any) -> Any:
    """log of the wealth of an audit on the host, in doubles, rounded down."""
    return log_wealth(factors_of(audit), audit.counts.above, audit.counts.pairs)


def mu(audit: Any) -> float:
    """The last of the μ that are refuted, one after the other.

    Method: docs/method/sequential.md#wealth
    """
    return _last_refuted(audit, _MUS, _against_gaussian)


def epsilon(audit: Any, delta: float) -> float:
    """The last of the ε that are refuted at a δ, one after the other."""

    def against(odds: np.ndarray, values: np.ndarray):
        slope = np.exp(values)
        mirrored = 1.0 - np.exp(-values) * (1.0 - delta)
        steep = _against_line(odds, slope, np.full_like(slope, delta))
        flat = _against_line(odds, 1.0 / slope, mirrored)
        better = flat[2] > steep[2]
        return tuple(
            np.where(better[..., None] if a.ndim > better.ndim else better, a, b)
            for a, b in zip(flat[:2], steep[:2], strict=True)
        )

    return _last_refuted(audit, _EPSILONS, against)


def advantage(audit: Any) -> float:
    """The last of the advantages that are refuted, one after the other."""
    against = lambda odds, values: _against_line(odds, np.ones_like(values), values)[:2]
    return _last_refuted(audit, _ADVANTAGES, against)


def _last_refuted(audit: Any, grid: np.ndarray, against: Callable) -> float:
    """The last of an increasing grid of nulls that is refuted along with all before it."""
    level = -np.log1p(-audit.confidence) * (1.0 + 1e-12)
    number = np.maximum(audit.counts.pairs - STARTS, 0)
    running = np.flatnonzero(number)
    rest = np.log(max(1.0 - np.exp(LOG_WEIGHTS[running]).sum(), 1e-300))
    above = audit.counts.above[running].astype(float)
    odds = audit.epoch.bets.odds[running].astype(float)[None]
    n = number[running, None].astype(float)
    counts = np.stack([above[..., 1], n - above[..., 1], above[..., 0], n - above[..., 0]], axis=-1)
    found = 0.0
    for first in range(0, len(grid) if running.size else 0, _CHUNK):
        values = grid[first : first + _CHUNK]
        factors, excess = against(odds, values[:, None, None, None, None])
        terms = counts[None, :, :, None, None, :] * factors
        lost = np.finfo(float).eps * (8.0 * np.abs(terms).sum(-1)) + n[..., None, None] * excess
        each = LOG_WEIGHTS[running] + terms.sum(-1) - lost
        top = np.maximum(each.max(axis=(1, 2, 3, 4)), rest)
        total = np.exp(each - top[:, None, None, None, None]).sum(axis=(1, 2, 3, 4))
        wealth = top + np.log(total + np.exp(rest - top)) - 1e-12
        refuted = wealth >= level
        if not refuted.all():
            last = int(np.argmin(refuted))
            return float(values[last - 1]) if last else found
        found = float(values[-1])
    return found


def _against_line(odds: np.ndarray, slope: np.ndarray, intercept: np.ndarray):
    """Factors of the best bets against half-planes, what a pair's mean may exceed 1 by, growth."""
    odds, slope, intercept = np.broadcast_arrays(odds, slope[..., None], intercept[..., None])
    slope, intercept = slope[..., 0], intercept[..., 0]
    multiplier = bets.largest_multiplier(odds, slope, intercept)
    factors = bets.log_factors(odds, slope, multiplier)
    excess = np.where(multiplier > 0.0, _ROOM * np.finfo(float).eps, 0.0)
    return factors, excess, bets.growth(odds, slope, multiplier)


def _against_gaussian(odds: np.ndarray, mu: np.ndarray):
    """Factors against f_μ at the nearest point of its curve, and the excess of a pair's mean.

    At (p₀, q₀) on the curve, whose tangent has slope s, let a = (q₁ − q₀)/(q₀(1 − q₀)) and b =
    (p₀ − p₁)/(p₀(1 − p₀)). With d = p − p₀, the mean is at most (1 + a·s·d)(1 − b·d) ≤
    1 + (a·s − b)²/(4·a·s·b), which is 1 at the nearest point.
    """
    p1, q1 = odds[..., 0] / (1.0 + odds[..., 0]), odds[..., 1] / (1.0 + odds[..., 1])
    shape = np.broadcast_shapes(p1.shape, mu.shape)
    low, high = np.full(shape, -9.0), np.full(shape, 9.0) + mu
    t = low
    with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
        for _ in range(_HALVINGS):
            t = 0.5 * (low + high)
            a, b, s = _at(t, p1, q1, mu)
            # b = a·s at the nearest point; for smaller thresholds b is larger and a smaller
            before = b > a * s
            low, high = np.where(before, t, low), np.where(before, high, t)
        a, b, s = _at(t, p1, q1, mu)
        p0, q0 = ndtr(-t), ndtr(mu - t)
        p0_not, q0_not = ndtr(t), ndtr(t - mu)
        excess = (a * s - b) ** 2 / (4.0 * a * s * b)
        excess = excess + _ROOM * np.finfo(float).eps * (1.0 + a * (q0 + s * p0) + b * p0)
        used = (q1 > q0) & (p1 < p0) & (a > 0.0) & (b > 0.0) & (excess < _MOST_EXCESS)
        factors = np.log(
            np.stack(
                [q1 / q0, 1.0 / (1.0 + odds[..., 1]) / q0_not, p1 / p0,
                 1.0 / (1.0 + odds[..., 0]) / p0_not], axis=-1
            )
        )  # fmt: skip
    return np.where(used[..., None], factors, 0.0), np.where(used, excess, 0.0)


def _at(t: np.ndarray, p1: np.ndarray, q1: np.ndarray, mu: np.ndarray):
    """a, b and the slope at the threshold t of the curve of μ."""
    q0, p0 = ndtr(mu - t), ndtr(-t)
    a = (q1 - q0) / (q0 * ndtr(t - mu))
    b = (p0 - p1) / (p0 * ndtr(t))
    return a, b, np.exp(mu * t - 0.5 * mu * mu)
