"""From a bound on the profile of both orders to a table of a pair that dominates."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..numerics.errors import SELECTION
from ..numerics.shapes import Array
from ..pairs.hull import hull
from ..pairs.table import NOTHING, Table

_LADDER = np.concatenate([[0.0], np.geomspace(1e-4, 4000.0, 60)])  # ε of a first look at a profile
_FAINTEST = 1e-50  # δ below which a profile is not followed
_POINTS, _FAR_POINTS = 900, 150  # of a profile in one order, evenly in the depth, up to and beyond
_NEAR = 8.5  # the depth of δ = 1e-16
_LITTLE, _LEAST_PART = 1e-12, 1e-280  # of a faint profile: where its chord ends, and what counts
_LARGEST = 700.0  # ε whose exponential is a double
_THINNER = 12  # times that the points of a profile are halved in number, at most
# of a profile of which nothing but 1 is known
ALL = Table(np.zeros(1), np.full(1, 1e-300), np.full(1, 1e-300), 1.0, 1.0, 0.0)


class Profile(NamedTuple):
    """Upper bounds on δ(ε) at ε ≥ 0, of both orders, the first at ε = 0.

    Attributes:
        epsilon: increasing, from 0 on.
        delta: of each order, shape (2, points); they do not increase.
    """

    epsilon: Array
    delta: Array

    def at(self, order: int, epsilon: Array) -> Array:
        """A bound at any ε: δ is convex in e^ε, so that it is below its chords.

        At ε < 0 it is δ(ε) = 1 − e^ε·(1 − δ′(−ε)), with δ′ of the other order.
        """
        x = np.append(-self.epsilon[:0:-1], self.epsilon)
        mirror = 1.0 - np.exp(-self.epsilon[:0:-1]) * (1.0 - self.delta[1 - order, :0:-1])
        known = np.append(mirror, self.delta[order])
        cell = np.clip(np.searchsorted(x, epsilon, "right") - 1, 0, len(x) - 2)
        low, high = x[cell], x[cell + 1]
        e = np.clip(epsilon, low, high)
        share = np.exp(e - high) * np.expm1(low - e) / np.expm1(low - high)
        found = known[cell] * (1.0 - share) + known[cell + 1] * share
        return np.where(epsilon < x[0], 1.0, found) * (1.0 + SELECTION)


def follow(both: Callable[[Array], Array]) -> Profile:
    """A profile at points that follow its fall; ``both`` bounds δ of both orders at ε ≥ 0."""
    first = np.maximum(both(_LADDER), _FAINTEST)
    same = np.allclose(first[0], first[1], rtol=1e-6, atol=0.0)
    some = [_points(order) for order in (first[:1] if same else first)]
    epsilon = np.unique(np.concatenate([[0.0], *some]))
    epsilon = epsilon[np.append(True, np.diff(epsilon) > 1e-9 * epsilon[1:] + 1e-12)]
    delta = np.minimum.accumulate(both(epsilon), axis=1)
    delta[:, 0] = np.min(delta[:, 0])  # the total variation distance is that of both orders
    return Profile(epsilon, delta)


def _points(delta: Array) -> Array:
    """Points that follow a profile known on the ladder."""
    # (in the scale of a Gaussian's losses a profile falls evenly)
    depth = np.maximum.accumulate(np.sqrt(-2.0 * np.log(np.minimum(delta, 1.0 - 1e-16))))
    falls = np.append(np.diff(depth) > 1e-9, False)
    last = int(np.flatnonzero(falls)[-1]) + 1 if np.any(falls) else 1
    near = min(_NEAR, depth[last])
    depths = np.append(
        np.linspace(depth[0], near, _POINTS), np.linspace(near, depth[last], _FAR_POINTS)
    )
    by_depth = np.interp(depths, depth[: last + 1], _LADDER[: last + 1])
    t = np.linspace(0.0, 1.0, _FAR_POINTS)
    return np.append(by_depth, _LADDER[last] * (0.1 * t + 0.9 * t**3))


def table_of(profile: Profile) -> Table:
    """The pair of the convex hull of a profile, which dominates."""
    whole = float(profile.delta[0, 0])
    if whole <= _FAINTEST or len(profile.epsilon) == 1:
        return _faint(profile)
    up, call = _until_flat(profile.epsilon[1:], profile.delta[0, 1:])
    down, put = _until_flat(profile.epsilon[1:], profile.delta[1, 1:])
    # (a pair of fewer bounds dominates as well: next to each other some differ by their rounding)
    for every in 2 ** np.arange(_THINNER):
        some = slice(every - 1, None, every)
        with contextlib.suppress(ArithmeticError), np.errstate(all="ignore"):
            found = _hull(whole, (up[some], call[some]), (down[some], put[some]))
            if len(found.loss):
                return found
    return ALL


def _faint(profile: Profile) -> Table:
    """The pair of a profile of which hardly anything is left at 0: losses of −ε, 0 and ε for an ε
    at which there is far less, and that at infinity; or all of it there.

    δ is convex in e^ε, so that it is below its chord from 0 to there.
    """
    whole, most = float(profile.delta[0, 0]), np.max(profile.delta, axis=0)
    if whole == 0.0:
        return NOTHING
    at = np.flatnonzero((most <= _LITTLE * whole) & (profile.epsilon > 0.0))
    k = int(at[0]) if len(at) else len(most) - 1
    end, left = min(float(profile.epsilon[k]), _LARGEST), float(most[k])
    if not 0.0 < end < _LARGEST:
        return Table(np.zeros(1), np.ones(1), np.ones(1), whole, whole, SELECTION)
    part = max(whole, _LEAST_PART) / -np.expm1(-end)
    loss, p = np.array([-end, 0.0, end]), np.array([part, 1.0, part * np.exp(-end)])
    return Table(loss, p, p * np.exp(loss), left, left, SELECTION)


def _hull(whole: float, up: tuple[Array, Array], down: tuple[Array, Array]) -> Table:
    """The pair of bounds on δ at 0 and, of each order, at ε > 0.

    Raises:
        ArithmeticError: rounding has broken the hull.
    """
    (e, call), (f, put) = ((x[x < _LARGEST], delta[x < _LARGEST]) for x, delta in (up, down))
    return hull(
        np.concatenate([-f[::-1], [0.0], e]),
        np.concatenate([np.zeros_like(put), [whole], call]),
        np.concatenate([(put * np.exp(-f))[::-1], [whole], np.zeros_like(call)]),
    )


def _until_flat(epsilon: Array, delta: Array) -> tuple[Array, Array]:
    """A profile up to where it no longer falls, or is faint: what is left there is at infinity."""
    delta = np.minimum.accumulate(delta)
    faint = delta[-1] if delta[-1] == 0.0 else max(delta[-1], _FAINTEST)
    end = int(np.argmax(delta <= faint)) + 1
    return epsilon[:end], delta[:end]
