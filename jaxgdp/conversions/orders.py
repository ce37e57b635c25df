"""Search over Rényi orders. Every order gives a valid bound, so the search decides only how tight the result is."""

from __future__ import annotations

import numpy as np

_POINTS = 13
_ROUNDS = 9


def best_order(value, low, high):
    """log(t − 1) of the order at which ``value`` is largest: a grid between two ends, narrowed about its best point again and again.

    Args:
        value: function of log(t − 1), an array with one more axis at the end than ``low``, returning the same shape; larger is better.
        low, high: ends of the search, arrays of equal shape.

    Returns:
        log(t − 1), the shape of ``low``.
    """
    grid = np.linspace(0.0, 1.0, _POINTS)
    for _ in range(_ROUNDS):
        points = low[..., None] + (high - low)[..., None] * grid
        best = np.argmax(value(points), axis=-1)[..., None]
        neighbours = np.clip(np.concatenate([best - 1, best, best + 1], axis=-1), 0, _POINTS - 1)
        low, middle, high = np.moveaxis(np.take_along_axis(points, neighbours, axis=-1), -1, 0)
    return middle
