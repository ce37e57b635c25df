"""A pair of laws from bounds on E(U − c)₊ and E(c − U)₊ of its likelihood ratio."""

from __future__ import annotations

import numpy as np

from ..numerics.errors import UNIT
from .table import Table

# relative, that bounds are raised by before their hull is taken: more than all roundings after that
_ROOM = 1e-9


def hull(losses: np.ndarray, call: np.ndarray, put: np.ndarray) -> Table:
    """The pair of the lower convex hull of bounds on E(U − c)₊ and E(c − U)₊: it dominates all.

    E(U − c)₊ is convex in c, and E(c − U)₊ = E(U − c)₊ + c − 1, so it is below all chords between
    bounds. The slopes of the hull are the probabilities Pr[U' > c] of the pair. The remainder at
    the largest c is Q-mass at loss +∞, the slope at 0 P-mass at −∞.

    Args:
        losses: log c, increasing, with 0 among them.
        call, put: bounds on E(U − c)₊ and E(c − U)₊ at each, positive.

    Raises:
        ArithmeticError: rounding has broken the hull.

    Method: docs/method/dominating.md#several
    """
    c = np.append(0.0, np.exp(losses))
    call = np.minimum(np.append(1.0, call * (1.0 + _ROOM)), 1.0)
    put = np.minimum(np.append(0.0, put * (1.0 + _ROOM)), c)
    one = int(np.searchsorted(losses, 0.0)) + 1
    call[one] = put[one] = min(call[one], put[one])
    value = put.tolist()[: one + 1], call.tolist()[one:]

    def rise(i: int, j: int, low: bool):
        """Slope of the chord from i to j, of E(c − U)₊ or of E(U − c)₊."""
        gap = float(c[j] - c[i])
        if j <= one:
            found, own = (value[0][j] - value[0][i]) / gap, True
        elif i >= one:
            found, own = (value[1][j - one] - value[1][i - one]) / gap, False
        else:
            found, own = (value[1][j - one] - value[0][i] - 1.0 + float(c[i])) / gap, False
        return found if own == low else found + (1.0 if low else -1.0)

    kept = [0]
    for j in range(1, len(c)):
        while len(kept) > 1:
            low = kept[-1] < one
            if rise(kept[-2], kept[-1], low) < rise(kept[-1], j, low):
                break
            kept.pop()
        kept.append(j)
    while kept[-2] >= one and rise(kept[-2], kept[-1], False) >= 0.0:
        kept.pop()
    p = []
    for before, at, after in zip(kept, kept[1:], [*kept[2:], None], strict=False):
        low = at < one
        p.append(
            (rise(at, after, low) if after is not None else float(low)) - rise(before, at, low)
        )
    at, p = np.array(kept[1:]), np.array(p)
    x, minus, plus = c[at], rise(0, kept[1], True), float(call[kept[-1]])
    # what was asked for has to be there after all roundings
    gap = np.diff(x)
    above = plus + np.append(np.cumsum((gap * np.cumsum(p[::-1])[::-1][1:])[::-1])[::-1], 0.0)
    below = minus * x[0] + np.append(0.0, np.cumsum(gap * (minus + np.cumsum(p[:-1]))))
    enough = np.where(
        at >= one, above >= call[at] * (1.0 - 0.1 * _ROOM), below >= put[at] * (1.0 - 0.1 * _ROOM)
    )
    if not np.all(enough) or not np.all(p > 0.0):
        raise ArithmeticError("the hull of bounds is not convex, or lies below them")
    return Table(losses[at - 1], p, p * x, minus, plus, (4.0 * len(p) + 64.0) * UNIT)
