"""What settings need of their lattices, from their plans: points, vertices, frequencies, reach."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...numerics.shapes import Array, Bool, Float
from ..plan import Plan

_FOCUSED = (
    1200.0  # vertices across the composed law that the neighbourhood of one threshold needs at most
)
_VERTICES = 24.0  # vertices between ℓ = 0 and the floor at rtol 1e-3, at least


class Needs(NamedTuple):
    """What each setting needs of a lattice at accuracy ``rtol`` (arrays over settings).

    Attributes:
        points: lattice points, if sparse.
        dense: lattice points, if dense.
        bandwidth: frequencies.
        vertices: of a piece.
        short, long: reach of a step on its two sides, in points of a sparse lattice.
        base: points per octave, if sparse.
        steps: number of steps.
        whole: whether one step is most of the composition.
        focused: whether the task is about one threshold.
        jumps: whether a single step is the likeliest way there.
        share: of the width promised, that a bracket of μ may have.
    """

    points: Float[Array, " settings"]
    dense: Float[Array, " settings"]
    bandwidth: Float[Array, " settings"]
    vertices: Float[Array, " settings"]
    short: Float[Array, " settings"]
    long: Float[Array, " settings"]
    base: Float[Array, " settings"]
    steps: Float[Array, " settings"]
    whole: Bool[Array, " settings"]
    focused: Bool[Array, " settings"]
    jumps: Bool[Array, " settings"]
    share: Float[Array, " settings"] | float = 0.0


class NeedsOfSides(NamedTuple):
    """What each setting needs of a lattice that serves all its half-curves, and of one that serves
    one of them.

    Attributes:
        together: of a lattice for all of them.
        each: of one for each.
    """

    together: Needs
    each: tuple[Needs, ...]

    def of(self, row: int) -> NeedsOfSides:
        """The needs of one setting."""
        one = lambda needs: Needs(*(column[row] for column in needs))
        return NeedsOfSides(one(self.together), tuple(one(own) for own in self.each))


class Side(NamedTuple):
    """Plans of one half-curve.

    Attributes:
        plan: leaves of shape (settings, pieces, …).
        swapped: whether the pair is swapped, so that its steps reach further to the left.
    """

    plan: Plan
    swapped: bool


def sharper(rtol: float) -> int:
    """Doublings of points and vertices that an accuracy beyond 1e-3 takes."""
    return max(0, int(np.ceil(np.log2(np.sqrt(1e-3 / rtol)) - 0.4)))


@np.errstate(all="ignore")
def needs(
    sides: Sequence[Side],
    steps: Float[Array, " settings"],
    rtol: float,
    focused: bool = False,
    share: Callable[[Array], Array] | None = None,
) -> NeedsOfSides:
    """What settings need of lattices.

    Args:
        sides: their half-curves.
        steps: their numbers of steps.
        rtol: requested relative accuracy.
        focused: whether the plans are about one threshold.
        share: of the width promised, that a bracket of μ may have, by the standard deviation of the
            composed loss; None for none.
    """
    raw = [_needs_of(side, steps, rtol, focused) for side in sides]
    largest = Needs(*(np.maximum.reduce(columns) for columns in zip(*raw, strict=True)))
    if share is not None:
        spread = np.maximum.reduce([_largest(side.plan.spread) for side in sides])
        largest = largest._replace(share=share(spread))
    each = tuple(_placed(own) for own in raw)
    return NeedsOfSides(each[0] if len(each) == 1 else _placed(largest), each)


def _placed(own: Needs) -> Needs:
    """Needs with the reach of a step in points, and the points that it takes of a dense lattice."""
    short, long = own.short, own.long
    whole = short >= 0.9 / 32
    stretch = np.maximum(np.where(whole, 2.0 * np.maximum(long, short), 2.0 * long), 1.0)
    return own._replace(
        dense=np.maximum(own.dense * stretch, 1.4 * own.vertices),
        short=short * own.points,
        long=long * own.points,
        whole=whole,
    )


def _needs_of(side: Side, steps: Array, rtol: float, focused: bool) -> Needs:
    """What one half-curve needs, with the reach of a step in parts of the window; see
    :func:`_placed`.
    """
    plan, width = side.plan, side.plan.high - side.plan.low
    # expected relative width 0.14·h²·T/V, from the variance under the tilt; the brackets themselves
    # decide later
    fine = np.sqrt(0.6 * rtol / 0.14)
    root = np.sqrt(steps[:, None])
    across = _largest(width / (fine * plan.spread))
    asked = _largest(width / np.maximum(plan.cut_high - plan.cut_low, 1e-300))
    low, high = (_largest(_step_reach(plan, below) / width) for below in (True, False))
    short, long = (high, low) if side.swapped else (low, high)
    # enough vertices across the composed law, and between the thresholds requested (a task about
    # one threshold has a vertex there)
    across = np.minimum(across, _FOCUSED) if focused else across
    vertices = np.maximum(0.75 * across, _VERTICES * np.sqrt(1e-3 / rtol) * np.minimum(asked, 40.0))
    return Needs(
        points=_largest(1.02 * width * root / (fine * plan.smooth)),
        dense=_largest(root * width / (fine * plan.spread)),
        bandwidth=_largest(1.05 * width * plan.bandwidth / (2.0 * np.pi)),
        vertices=vertices,
        short=short,
        long=long,
        # the error of a tail grows with the square of its depth, and falls with the square of the
        # points in an octave
        base=np.full(len(steps), (32.0 if focused else 8.0) * 2 ** sharper(rtol)),
        steps=steps,
        whole=np.zeros(len(steps), bool),
        focused=np.full(len(steps), focused),
        jumps=np.any(np.isfinite(plan.jump), axis=1),
        share=np.zeros(len(steps)),
    )


def _largest(values: Float[Array, "settings pieces"]) -> Float[Array, " settings"]:
    """The largest of all pieces."""
    return np.max(values, axis=1)


def _step_reach(plan: Plan, low: bool) -> Any:
    """How far a step reaches below, or above, its median."""
    moved = plan.middle - plan.centre
    return np.max(plan.reach_low + moved if low else plan.reach_high - moved, axis=-1)
