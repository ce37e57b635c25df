"""Pairs of log-linear densities on a grid: closed forms interval by interval."""

from __future__ import annotations

import mpmath
import numpy as np
from mpmath import mpf

from .setting import Setting, adjacency_of, built, of_adjacency, rates
from .smooth import Smooth

_DIGITS = 40


def _integral(log_left, log_right, width):
    """∫ of a density whose log is a straight line."""
    rise = log_right - log_left
    if abs(rise) < mpf(10) ** -25:
        return width * mpmath.exp(log_left) * (1 + rise / 2)
    return width * mpmath.exp(log_left) * mpmath.expm1(rise) / rise


def _above(epsilon, grid, log_p, log_q):
    """P- and Q-mass where log q − log p > ε."""
    alpha, tpr = mpf(0), mpf(0)
    for i in range(len(grid) - 1):
        width = grid[i + 1] - grid[i]
        if width == 0:
            continue
        left, right = log_q[i] - log_p[i] - epsilon, log_q[i + 1] - log_p[i + 1] - epsilon
        if left <= 0 and right <= 0:
            continue
        first, last = mpf(0), mpf(1)
        if left <= 0:
            first = -left / (right - left)
        elif right <= 0:
            last = left / (left - right)
        along = lambda a, s: a[i] + (a[i + 1] - a[i]) * s  # noqa: B023
        alpha += _integral(along(log_p, first), along(log_p, last), width * (last - first))
        tpr += _integral(along(log_q, first), along(log_q, last), width * (last - first))
    return alpha, tpr


def draw(rng) -> Setting:
    """A pair on a random grid; what is missing of either law sits at an infinite loss."""
    with mpmath.workdps(_DIGITS):
        number = int(rng.integers(2, 9))
        grid = np.cumsum(rng.uniform(0.1, 1.5, number))
        steep = float(rng.choice([0.3, 1.5, 5.0]))
        log_p = rng.normal(0.0, steep, number)
        log_q = log_p + rng.normal(0.0, float(rng.choice([0.01, 0.3, 2.0])), number)
        x = [mpf(v) for v in grid.tolist()]
        totals = []
        for a in (log_p, log_q):
            line = [mpf(v) for v in a.tolist()]
            totals.append(
                mpmath.fsum(
                    _integral(line[i], line[i + 1], x[i + 1] - x[i]) for i in range(number - 1)
                )
            )
        missing = rng.uniform() < 0.4
        for a, total in zip((log_p, log_q), totals, strict=True):
            kept = float(rng.choice([0.5, 0.99, 1.0 - 1e-9])) if missing else 1.0 - 1e-14
            a += float(mpmath.log(kept / total))
        name = "jaxgdp.FromDensities" if missing else "jaxgdp.FromDensities.normalized"
        text = f"{name}({grid.tolist()!r}, {log_p.tolist()!r}, {log_q.tolist()!r})"
        p, q = ([mpf(v) for v in a.tolist()] for a in (log_p, log_q))
        sums = [
            mpmath.fsum(_integral(a[i], a[i + 1], x[i + 1] - x[i]) for i in range(number - 1))
            for a in (p, q)
        ]
        if not missing:
            p, q = (
                [v - mpmath.log(total) for v in a] for a, total in zip((p, q), sums, strict=True)
            )
            sums = [mpf(1), mpf(1)]
        infinite_q, infinite_p = 1 - sums[1], 1 - sums[0]

        def rate(epsilon):
            alpha, tpr = _above(mpf(epsilon), x, p, q)
            return alpha, tpr + infinite_q

        losses = [b - a for a, b in zip(p, q, strict=True)]
        curve = Smooth(rate, min(losses), max(losses), level=(infinite_p, infinite_q))
        adjacency = adjacency_of(rng, ("add_remove", "add", "remove", "replace_one"))
        at = rates(rng, float(max(map(abs, losses))))
        return Setting(
            text,
            built(text),
            adjacency,
            of_adjacency(curve, adjacency),
            at,
            _DIGITS,
            accuracy=1e-13,
        )
