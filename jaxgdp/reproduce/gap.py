"""Largest vertical distance between a certified trade-off curve and a Gaussian one below it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from .. import gdp
from ..bracket import Bracket
from ..numerics.shapes import Array
from ..tradeoff import TradeoffCurve

_REACH = 7.0
_AT_ONCE = 16


class Gap(NamedTuple):
    """max over α of f(α) − f_μ(α), and where the curve was evaluated.

    Attributes:
        largest: bracket of the maximum.
        alpha: FPRs, increasing.
        beta: bracket of f there.
        gaussian: f_μ there.
    """

    largest: Bracket
    alpha: Array
    beta: Bracket
    gaussian: Array


def _cell_bounds(alpha: Array, upper: Array, gaussian: Array, mu: float) -> Array:
    """Upper bound on f − f_μ in each cell: f is below its chord, f_μ above its end tangents.

    The chord minus the higher tangent is largest at an end or where the tangents meet.
    """
    a, b = alpha[:-1], alpha[1:]
    slope = -np.exp(np.clip(-mu * ndtri(alpha) - mu**2 / 2.0, -700.0, 700.0))
    turn = slope[1:] - slope[:-1]
    # steps from a to where the tangents meet, kept inside the cell: any point there gives a valid
    # bound
    with np.errstate(divide="ignore", invalid="ignore"):
        step = (gaussian[:-1] - gaussian[1:] + slope[1:] * (b - a)) / turn
    step = np.clip(np.where(np.isfinite(step), step, 0.0), 0.0, b - a)
    chord = upper[:-1] + (upper[1:] - upper[:-1]) * (step / (b - a))
    left, right = gaussian[:-1] + slope[:-1] * step, gaussian[1:] - slope[1:] * (b - a - step)
    # on either side of the point one tangent alone is used
    inner = chord - np.minimum(left, right)
    ends = np.maximum(upper[:-1] - gaussian[:-1], upper[1:] - gaussian[1:])
    return np.minimum(np.maximum(inner, ends), upper[:-1] - gaussian[1:])


def largest_gap(
    curve: TradeoffCurve, mu: float, points: int = 141, rounds: int = 8, rtol: float = 0.02
) -> Gap:
    """How far f rises above f_μ: a certified bracket of max over α of f(α) − f_μ(α).

    Branch and bound: f is evaluated where Φ⁻¹(α) is evenly spaced, and again within the cells that
    may hold the maximum.

    Args:
        curve: a scalar :class:`jaxgdp.TradeoffCurve`.
        mu: μ > 0 of the Gaussian curve, such as the upper side of ``curve.mu()``.
        points: FPRs of the first round.
        rounds: further rounds, at most.
        rtol: relative width of the bracket at which to stop.

    Example:
        >>> import jaxgdp
        >>> found = largest_gap(jaxgdp.tradeoff(jaxgdp.Gaussian(2.0)), 0.5, points=41, rounds=1)
        >>> bool(found.largest.lower <= 0.0 <= found.largest.upper)
        True
    """
    alpha = ndtr(np.linspace(-_REACH, _REACH, points))
    lower, upper = curve.beta(alpha)
    left = rounds
    while True:
        gaussian = gdp.beta(fpr=alpha, mu=mu)
        bounds = _cell_bounds(alpha, upper, gaussian, mu)
        # beyond the outermost points: f is at most 1 on the left and falls on the right
        ends = max(1.0 - gaussian[0], upper[-1])
        best = Bracket(np.max(lower - gaussian), max(np.max(bounds), ends))
        worst = np.argsort(bounds)[::-1][:_AT_ONCE]
        worst = worst[bounds[worst] > best.lower]
        if left == 0 or worst.size == 0 or best.width <= rtol * best.lower:
            return Gap(best, alpha, Bracket(lower, upper), gaussian)
        left -= 1
        new = 0.5 * (alpha[worst] + alpha[worst + 1])
        found = curve.beta(new)
        order = np.argsort(np.concatenate([alpha, new]))
        alpha = np.concatenate([alpha, new])[order]
        lower = np.concatenate([lower, found.lower])[order]
        upper = np.concatenate([upper, found.upper])[order]
