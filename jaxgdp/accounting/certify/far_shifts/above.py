"""What dominates a mixture with far shifts: the kinds of far steps are shown, or their terms are
bounded where all outputs are near their centres."""

from __future__ import annotations

import numpy as np

from ....numerics import namespace as xp
from ....numerics.errors import UNIT
from ....numerics.normal import log1mexp, log_sub
from ....numerics.shapes import Array, Float
from ..counted_jumps import BINOMIAL, profiles
from ..curve import Curve, log_delta_at, log_one_minus_delta_at
from ..normal_curve import Profile
from .law import Atoms
from .split import FarShifts

_ROUNDED = 64.0 * UNIT  # share of all that a difference of losses is made of
_APART = 1.0  # logs of two numbers differ by, at least, whose difference is taken
_BLOCK = 2**20  # profiles that are computed at once


def removed(
    far: FarShifts, draws: Atoms, near: Curve | None, t: Float[Array, " thresholds"]
) -> Profile:
    """Bounds from above on δ, and from below on 1 − δ, where a record is removed.

    Method: docs/method/limit.md#far-shifts
    """
    shown = _shown(far, draws, _of_near(near, t, False), t)
    if not far.log_bad < 0.0 or not far.more < np.inf:
        return shown
    # (δ falls as ε grows: whatever is rounded, ε is taken for less)
    moved = t - far.log_none - far.more
    of_near = _of_near(near, moved - _ROUNDED * (t - far.log_none + far.more), False)
    delta, rest = _sums(far, draws, t, draws.shown + far.more)
    found = _together(far, draws, of_near, delta, rest, far.log_bad)
    return _better(shown, found)


def added(
    far: FarShifts, draws: Atoms, near: Curve | None, t: Float[Array, " thresholds"]
) -> Profile:
    """The same where one is added: of Q only what has no far shift counts.

    Method: docs/method/limit.md#far-shifts
    """
    shown = _shown(far, draws, _of_near(near, t, True), t)
    moved = t + far.log_none
    moved = moved - _ROUNDED * (t - far.log_none)
    return _better(shown, _of_near(near, moved, True))


def _better(one: Profile, other: Profile) -> Profile:
    return Profile(
        np.minimum(one.log_delta, other.log_delta), np.maximum(one.log_rest, other.log_rest)
    )


def _of_near(near: Curve | None, t: Array, swapped: bool) -> Profile:
    """The profile of the near shifts alone, at thresholds of either sign.

    1 − δ(−ε) of one order is e^{−ε}·(1 − δ(ε)) of the other.
    """
    negative, size = t < 0.0, np.abs(t)
    if near is None:
        log_delta = np.where(negative, log1mexp(-size), -np.inf)
        return Profile(log_delta, np.where(negative, -size, 0.0))
    sides = near.upper_plus, near.upper_minus
    own, other = sides[::-1] if swapped else sides
    with np.errstate(all="ignore"):
        log_delta = np.asarray(log_delta_at(own, size))
        log_rest = np.asarray(log_one_minus_delta_at(own, size))
        turned = np.asarray(log_one_minus_delta_at(other, size)) - size * (1.0 + _ROUNDED)
    log_rest = np.where(negative, turned, log_rest)
    log_delta = np.where(negative, log1mexp(np.minimum(log_rest, 0.0)) + BINOMIAL, log_delta)
    return Profile(np.minimum(log_delta, 0.0), np.minimum(log_rest, 0.0))


def _shown(far: FarShifts, draws: Atoms, of_near: Profile, t: Array) -> Profile:
    """The bounds where it is shown which steps have a far shift, and of which kind."""
    delta, rest = _sums(far, draws, t, np.zeros_like(draws.shown))
    return _together(far, draws, of_near, delta, rest, -np.inf)


def _sums(far: FarShifts, draws: Atoms, t: Array, shift: Array) -> tuple[Array, Array]:
    """Logs of sums over the draws of δ and of 1 − δ of a Gaussian curve, at t less a shift.

    The near steps of a draw show no more than if each had the largest near shift.
    """
    deviation = np.sqrt(draws.high + far.steps * far.near[-1] ** 2 * (1.0 + _ROUNDED))
    deviation = deviation * (1.0 + _ROUNDED)
    columns = max(_BLOCK // max(len(deviation), 1), 1)
    found = [
        _block(t[i : i + columns, None], deviation, shift, draws.log_mass)
        for i in range(0, len(t), columns)
    ]
    delta, rest = (np.concatenate(side) for side in zip(*found, strict=True))
    return delta, rest


def _block(t: Array, deviation: Array, shift: Array, log_mass: Array) -> tuple[Array, Array]:
    size = t + np.abs(shift) + deviation * deviation
    epsilon = t - shift - _ROUNDED * size
    away, turned = np.abs(epsilon), epsilon < 0.0
    with np.errstate(all="ignore"):
        delta, rest = profiles(deviation, away)
        rest = np.where(turned, rest - away * (1.0 + _ROUNDED), rest)
        delta = np.where(turned, log1mexp(np.minimum(rest, 0.0)) + BINOMIAL, delta)
    delta = np.where(np.isnan(delta), 0.0, np.minimum(delta, 0.0))
    rest = np.where(np.isnan(rest), -np.inf, rest)
    return xp.logsumexp(delta + log_mass, axis=-1), xp.logsumexp(rest + log_mass, axis=-1)


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
