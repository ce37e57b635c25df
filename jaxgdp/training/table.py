"""Tables of brackets over numbers of steps: made monotone, and looked up on host or device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..bracket import Bracket
from ..numerics.shapes import Array, Int
from ..quantities.registry import named
from .knots import drawn


def monotone(bracket: Bracket, grows: bool) -> Bracket:
    """Bounds on each number of steps from others: privacy never improves with a step."""
    before, after = np.maximum.accumulate, np.minimum.accumulate
    if grows:
        return Bracket(before(bracket.lower), after(bracket.upper[::-1])[::-1])
    return Bracket(before(bracket.lower[::-1])[::-1], after(bracket.upper))


def looked_up(
    steps: Int[Array, " computed"],
    brackets: Mapping[str, Bracket],
    step: Array,
    max_steps: int,
    xp: Any,
    lines: bool = False,
) -> dict[str, Bracket]:
    """The brackets after numbers of steps, on the safe side between computed ones.

    Args:
        steps: computed numbers of steps, from 0 to ``max_steps``, increasing.
        brackets: quantity → float32 bracket over ``steps``.
        step: integers of any shape; may be traced.
        max_steps: beyond it, and below 0, the safe side is the worst possible value.
        xp: NumPy, or JAX's.
        lines: whether the table is of knots, of :func:`thinned`: sides are lines between them.
    """
    # compared in the step's own type, which may hold no max_steps, or numbers that int32 does not
    beyond = step < 0
    if max_steps < np.iinfo(step.dtype).max:
        beyond = beyond | (step > max_steps)
    inside = xp.where(beyond, 0, step).astype(np.int32)
    inside, beyond = xp.where(beyond, np.int32(max_steps), inside), xp.asarray(beyond)
    steps = xp.asarray(steps)
    # (unrolled: a loop would have to know over which devices the step varies)
    how = {} if xp is np else {"method": "scan_unrolled"}
    after = xp.searchsorted(steps, inside, **how)
    before = xp.where(steps[after] > inside, after - 1, after)
    way = xp.maximum(steps[after] - steps[before], 1).astype(np.float32)
    share = (inside - steps[before]).astype(np.float32) / way
    found = {}
    scalar = () if xp is np else ...
    for name, (low, high) in brackets.items():
        lower, upper, of = xp.asarray(low), xp.asarray(high), named(name)
        worst = np.float32(of.worst)
        safe, other = (upper, lower) if of.grows else (lower, upper)
        best, far = safe[after], other[before]
        if lines:
            # (rounded, but not beyond the knot)
            sooner, nearer = (xp.minimum, xp.maximum) if of.grows else (xp.maximum, xp.minimum)
            best = sooner(drawn(safe[before], best, share, best, xp), best)
            far = nearer(drawn(far, other[after], share, far, xp), far)
        best = xp.where(beyond, worst, best)[scalar]
        found[name] = Bracket(far, best) if of.grows else Bracket(best, far)
    return found
