"""What dominates a mixture with far shifts: the kinds of far steps are shown, or their terms are
bounded where all outputs are near their centres."""

from __future__ import annotations

import numpy as np

from ....numerics.errors import UNIT
from ....numerics.normal import log1mexp, log_sub
from ....numerics.shapes import Array, Float
from ..counted_jumps import BINOMIAL
from ..curve import Curve
from ..normal_curve import Profile
from .law import Atoms
from .others import Others, nothing, profile_at
from .split import FarShifts
from .tables import between, profiles_of

_ROUNDED = 64.0 * UNIT  # share of all that a difference of losses is made of
_BEYOND = 1e-11  # share of a largest loss beyond all of its rounding
_APART = 1.0  # logs of two numbers differ by, at least, whose difference is taken


def removed(
    far: FarShifts,
    draws: Atoms,
    near: Curve | None,
    others: Others,
    t: Float[Array, " thresholds"],
    at: Float[Array, " places"],
) -> Profile:
    """Bounds from above on δ, and from below on 1 − δ, where a record is removed.

    Args:
        far, draws, near, others: as for ``both_sides``.
        t: thresholds.
        at: places at which draws are looked at.

    Method: docs/method/limit.md#far-shifts
    Method: docs/method/limit.md#far-beside-others
    """
    shown = _shown(far, draws, others, _of_near(near, t, False), t, at)
    if not far.log_bad < 0.0 or not far.more < np.inf:
        return shown
    # (δ falls as ε grows: whatever is rounded, ε is taken for less)
    moved = t - far.log_none - far.more
    of_near = _of_near(near, moved - _ROUNDED * (t - far.log_none + far.more), False)
    delta, rest = _sums(far, draws, others, t, at, draws.shown + far.more)
    found = _together(far, draws, of_near, delta, rest, far.log_bad)
    return _better(shown, found)


def added(
    far: FarShifts, draws: Atoms, near: Curve | None, alone: bool, t: Float[Array, " thresholds"]
) -> Profile:
    """The same where one is added: of Q only what has no far shift counts, or, where nothing else
    is composed with it, what is shown.

    Method: docs/method/limit.md#far-shifts
    Method: docs/method/limit.md#far-beside-others
    """
    moved = t + far.log_none
    moved = moved - _ROUNDED * (t - far.log_none)
    found = _of_near(near, moved, True)
    if not alone:
        return found
    return _better(_shown(far, draws, nothing(), _of_near(near, t, True), t, t), found)


def end_of_added(far: FarShifts, near: Curve | None) -> tuple[float, float]:
    """The largest loss of adding a record that is finite, and log of what lies at +∞: those of all
    but the far shifts, in units of the weight that these leave; ∞ where none is known.

    Method: docs/method/limit.md#far-beside-others
    """
    if near is None or near.upper_minus.top is None or near.upper_minus.log_infinity_mass is None:
        return np.inf, -np.inf
    top = float(np.ravel(near.upper_minus.top)[0])
    if not 0.0 < top < np.inf:
        return np.inf, -np.inf
    mass = float(np.ravel(near.upper_minus.log_infinity_mass)[0])
    return top - far.log_none + _BEYOND * (top - far.log_none), mass


def _better(one: Profile, other: Profile) -> Profile:
    return Profile(
        np.minimum(one.log_delta, other.log_delta), np.maximum(one.log_rest, other.log_rest)
    )


def _of_near(near: Curve | None, t: Array, swapped: bool) -> Profile:
    """The profile of all but the far shifts, at thresholds of either sign."""
    if near is not None:
        return profile_at(near, t, swapped)
    negative, size = t < 0.0, np.abs(t)
    log_delta = np.where(negative, log1mexp(-size), -np.inf)
    return Profile(log_delta, np.where(negative, -size, 0.0))


def _shown(
    far: FarShifts, draws: Atoms, others: Others, of_near: Profile, t: Array, at: Array
) -> Profile:
    """The bounds where it is shown which steps have a far shift, and of which kind."""
    delta, rest = _sums(far, draws, others, t, at, np.zeros_like(draws.shown))
    return _together(far, draws, of_near, delta, rest, -np.inf)


def _sums(
    far: FarShifts, draws: Atoms, others: Others, t: Array, at: Array, shift: Array
) -> tuple[Array, Array]:
    """Logs of sums over the draws and over the losses of others, of δ and of 1 − δ of a Gaussian
    curve, at t less a shift and less the loss.

    The near steps of a draw show no more than if each had the largest near shift.
    """
    deviation = np.sqrt(draws.high + far.steps * far.near[-1] ** 2 * (1.0 + _ROUNDED))
    table = profiles_of(draws, deviation * (1.0 + _ROUNDED), shift, at)
    # (what lies at +∞ of the others has δ = 1, whatever was drawn)
    delta = np.full(len(t), others.log_infinity + table.log_all)
    rest = np.full(len(t), -np.inf)
    for loss, log_mass, log_sure in zip(*others[:3], strict=True):
        less = _ROUNDED * (np.abs(t) + abs(loss)) if loss != 0.0 else 0.0
        own, left = between(table, t - loss - less)
        delta, rest = np.logaddexp(delta, own + log_mass), np.logaddexp(rest, left + log_sure)
    return delta, rest


def _together(
    far: FarShifts, draws: Atoms, of_near: Profile, delta: Array, rest: Array, log_bad: float
) -> Profile:
    """With the near shifts alone, the draws not looked at, and outputs far from their centres."""
    log_delta = np.logaddexp(delta, far.log_none + of_near.log_delta) + BINOMIAL
    log_delta = np.logaddexp(log_delta, np.logaddexp(draws.log_rest, log_bad))
    left = np.logaddexp(rest, far.log_none + of_near.log_rest) - BINOMIAL
    known = left > log_bad + _APART
    bad = log_bad if log_bad > -np.inf else -1e300
    taken = log_sub(np.where(known, left, 0.0), np.full_like(left, bad)) - BINOMIAL
    log_rest = np.where(known, np.minimum(taken, left), -np.inf)
    return Profile(np.minimum(log_delta, 0.0), np.minimum(log_rest, 0.0))
