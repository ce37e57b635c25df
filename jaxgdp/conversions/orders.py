"""Search over Rényi orders: every order is valid, so it decides the tightness alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .renyi import last_ruled_out

_POINTS = 13
_ROUNDS = 8
_STEPS = 30  # at most; three to six are usual


def best_order(value: Callable[[np.ndarray], np.ndarray], low: Any, high: Any):
    """log(t − 1) of the order at which ``value`` is largest: a grid between two ends, narrowed
    about its best point again and again.

    Args:
        value: function of log(t − 1), an array with one more axis at the end than ``low``,
            returning the same shape; larger is better.
        low, high: ends of the search, arrays of equal shape.

    Returns:
        log(t − 1), the shape of ``low``.
    """
    grid = np.linspace(0.0, 1.0, _POINTS)
    middle = low
    for _ in range(_ROUNDS):
        points = low[..., None] + (high - low)[..., None] * grid
        best = np.argmax(value(points), axis=-1)[..., None]
        neighbours = np.clip(np.concatenate([best - 1, best, best + 1], axis=-1), 0, _POINTS - 1)
        low, middle, high = np.moveaxis(np.take_along_axis(points, neighbours, axis=-1), -1, 0)
    return middle


def last_ruled_out_by_any(margin: Callable[..., Any], low: Any, high: Any, lowest: float):
    """The largest y that some order t ≥ 1 rules out.

    From what t = 1 rules out, take the order that rules the point out by most (per t), then the
    last point that this order rules out, and
    again: Newton's method for the largest margin, from one side.

    Args:
        margin: function of (y, s), s = t − 1, positive where the order rules y out; it has to
            accept one more axis at the end.
        low, high: ends of the search for log s.
        lowest: smallest y.

    Returns:
        y, the shape of ``low``; −∞ where nothing is ruled out.
    """
    y = last_ruled_out(lambda y: margin(y, np.zeros_like(y)), lowest, low.shape)
    for _ in range(_STEPS):
        point = np.maximum(y, lowest)[..., None]

        def excess(log_s, point=point):
            s = np.exp(log_s)
            return margin(point, s) / (1.0 + s)

        s = np.exp(best_order(excess, low, high))
        further = np.maximum(y, last_ruled_out(lambda y, s=s: margin(y, s), lowest, low.shape))
        done = np.all(further - np.maximum(y, lowest) <= 1e-14 * (1.0 + np.abs(further)))
        y = further
        if done:
            break
    return y
