"""What the far steps of a run show, tabulated: between the places of a table δ is below its chord,
and the rates of tests are monotone."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ....numerics import namespace as xp
from ....numerics.errors import UNIT
from ....numerics.normal import log1mexp, log_error, log_ndtr
from ....numerics.shapes import Array, Float
from ..counted_jumps import BINOMIAL, profiles
from ..normal_curve import Profile
from .law import Atoms

_ROUNDED = 64.0 * UNIT  # share of all that a difference of losses is made of
_BLOCK = 2**20  # draws times places that are looked at at once


class Profiles(NamedTuple):
    """Bounds on sums over draws of δ, and of 1 − δ from below, at increasing places; ``log_all`` is
    the log of what all draws weigh together, from above.
    """

    at: Float[Array, " places"]
    log_delta: Float[Array, " places"]
    log_rest: Float[Array, " places"]
    log_all: float


class Rates(NamedTuple):
    """Of tests whether some term is beyond a place, at increasing places: with the record that the
    term of what was drawn is, from below, and that it is not, from above; without it the sum over
    all terms, from above.
    """

    at: Float[Array, " places"]
    log_tpr: Float[Array, " places"]
    log_missed: Float[Array, " places"]
    log_fpr: Float[Array, " places"]


def profiles_of(
    draws: Atoms,
    deviation: Float[Array, " atoms"],
    shift: Float[Array, " atoms"],
    at: Float[Array, " places"],
) -> Profiles:
    """Sums over draws of Gaussian curves at places less a shift.

    Args:
        draws: their law.
        deviation: √S of each, from above.
        shift: what is taken off the place, of each.
        at: increasing.

    Method: docs/method/limit.md#far-shifts
    """
    columns = max(_BLOCK // max(len(deviation), 1), 1)
    found = [
        _block(at[i : i + columns, None], deviation, shift, draws.log_mass)
        for i in range(0, len(at), columns)
    ]
    delta, rest = (np.concatenate(side) for side in zip(*found, strict=True))
    drawn = float(xp.logsumexp(draws.log_mass, axis=-1)) + BINOMIAL
    return Profiles(at, delta, rest, min(drawn, 0.0))


def _block(t: Array, deviation: Array, shift: Array, log_mass: Array) -> tuple[Array, Array]:
    size = np.abs(t) + np.abs(shift) + deviation * deviation
    epsilon = t - shift - _ROUNDED * size
    away, turned = np.abs(epsilon), epsilon < 0.0
    with np.errstate(all="ignore"):
        delta, rest = profiles(deviation, away)
        rest = np.where(turned, rest - away * (1.0 + _ROUNDED), rest)
        delta = np.where(turned, log1mexp(np.minimum(rest, 0.0)) + BINOMIAL, delta)
    delta = np.where(np.isnan(delta), 0.0, np.minimum(delta, 0.0))
    rest = np.where(np.isnan(rest), -np.inf, rest)
    return xp.logsumexp(delta + log_mass, axis=-1), xp.logsumexp(rest + log_mass, axis=-1)


def between(table: Profiles, t: Float[Array, ...]) -> Profile:
    """The sums at any thresholds: δ is convex in e^t, so that the chord of two places is above it,
    that from δ = 1 at −∞ included; beyond the last place it is no more than there.

    Method: docs/method/limit.md#far-beside-others
    """
    at, last = table.at, len(table.at) - 1
    i = np.clip(np.searchsorted(at, t, side="right") - 1, -1, last)
    low, high = np.maximum(i, 0), np.minimum(i + 1, last)
    first, inside = i < 0, (i >= 0) & (i < last)
    with np.errstate(all="ignore"):
        width = at[high] - at[low]
        share = t - at[high] + log1mexp(at[low] - t) - log1mexp(-width)
        share = np.where(inside & (t > at[low]), np.minimum(share, 0.0), -np.inf)
        # (both shares by themselves: either may be next to nothing)
        other = log1mexp(t - at[high]) - log1mexp(-width)
        other = np.where(inside, np.minimum(other, 0.0), 0.0)
        off = log_error(share, other)
        delta = np.logaddexp(other + table.log_delta[low], share + table.log_delta[high]) + off
        rest = np.logaddexp(other + table.log_rest[low], share + table.log_rest[high]) - off
        before = np.minimum(t - at[0], 0.0)
        rest = np.where(first, table.log_rest[0] + before, rest)
    return Profile(np.where(first, table.log_all, np.minimum(delta, table.log_all)), rest)


def rates_of(draws: Atoms, at: Float[Array, " places"]) -> Rates:
    """Rates of the tests by single terms.

    Args:
        draws: the law of the far steps.
        at: increasing.

    Method: docs/method/limit.md#far-shifts
    """
    place = at[:, None]
    # (of the sums of squares of a draw the one at which least is seen)
    deviation = np.sqrt(np.clip(2.0 * (draws.own - place), draws.low, draws.high))
    half = 0.5 * deviation
    moved = (draws.own - place) / deviation
    off = _ROUNDED * (half + (np.abs(draws.own) + np.abs(place)) / deviation)
    seen = draws.log_mass + log_ndtr(half + moved - off) * (1.0 + _ROUNDED)
    missed = draws.log_mass + log_ndtr(-half - moved + off) * (1.0 - _ROUNDED)
    sums = [xp.logsumexp(logs, axis=-1) for logs in (seen, missed, _false(draws, place))]
    return Rates(at, *sums)


def _false(draws: Atoms, place: Array) -> Array:
    """Logs of the sums of FPRs over all terms of a draw, each of them at the sum of squares between
    its bounds that makes it largest: e^{mass − own} are at least as many as there are.
    """
    beyond = place - draws.shown
    size = np.abs(place) + np.abs(draws.shown)
    most = np.sqrt(np.clip(2.0 * beyond, draws.low, draws.high))
    off = _ROUNDED * (most + size / most)
    each = log_ndtr(-0.5 * most - beyond / most + off) * (1.0 - _ROUNDED)
    return draws.log_mass - draws.own + BINOMIAL + np.minimum(each, 0.0)


def rates_at(table: Rates, t: Float[Array, ...]) -> tuple[Array, Array, Array]:
    """The rates at any thresholds, by the next place that is no smaller; beyond the last one
    nothing is known to be seen. The FPR by the next place that is no larger.

    Method: docs/method/limit.md#far-beside-others
    """
    last = len(table.at) - 1
    i, j = np.searchsorted(table.at, t), np.searchsorted(table.at, t, side="right") - 1
    above, below = np.minimum(i, last), np.maximum(j, 0)
    return (
        np.where(i > last, -np.inf, table.log_tpr[above]),
        np.where(i > last, 0.0, table.log_missed[above]),
        np.where(j < 0, 0.0, np.minimum(table.log_fpr[below], 0.0)),
    )
