"""A pair of laws on a grid of losses that dominates a mechanism: its upper side as masses."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from .. import options
from ..accounting.certify.curve import log_delta_at
from ..mechanisms import Composition
from ..mechanisms.base import Mechanism
from ..mechanisms.finite_pair import FinitePair
from ..numerics.compiling import Program
from ..numerics.precision import with_float64
from ..numerics.shapes import Array
from ..tradeoff import TradeoffCurve, tradeoff

_MOST = 2**21  # grid points of a half


class LossPair(NamedTuple):
    """Atoms of the privacy loss at multiples of a spacing, each half with the masses of one law.

    Attributes:
        spacing: the grid's spacing h.
        above: positions k > 0 of losses k·h.
        q_above: their Q-masses (record present).
        below: positions k > 0 of losses −k·h.
        p_below: their P-masses (record absent).
        centre: P- and Q-mass at loss 0.
        q_plus: Q-mass at +∞.
        p_minus: P-mass at −∞.
    """

    spacing: float
    above: np.ndarray
    q_above: np.ndarray
    below: np.ndarray
    p_below: np.ndarray
    centre: float
    q_plus: float
    p_minus: float

    def mechanism(self) -> FinitePair:
        """The pair as a mechanism that composes with others."""
        up, down = self.spacing * self.above, -self.spacing * self.below
        loss = np.concatenate([down, [0.0], up])
        with np.errstate(divide="ignore"):
            low, zero, high = np.log(self.p_below), np.log(self.centre), np.log(self.q_above)
            ends = np.log(self.p_minus), np.log(self.q_plus)
        log_p = np.concatenate([low, [zero], high - up])
        return FinitePair.build(loss, log_p, log_p + loss, *(np.asarray(end) for end in ends))


_log_delta = Program(log_delta_at)


class _Half(NamedTuple):
    """One half of a hull: its vertices, the slope right of each, and the slope left of the first,
    where another half is beside it.
    """

    vertices: list[int]
    slopes: list[np.longdouble]
    first: np.longdouble | None = None

    def shorter(self) -> _Half:
        return self._replace(vertices=self.vertices[:-1], slopes=self.slopes[:-1])


@with_float64
def _profiles(curve: TradeoffCurve, epsilon: Array) -> tuple[Array, Array]:
    """Upper sides of δ(ε) of both orders, ε ≥ 0."""
    finest = curve._curves[0][-1]
    plus, minus = (
        np.exp(np.minimum(np.asarray(_log_delta(side, epsilon)), 0.0))
        for side in (finest.upper_plus, finest.upper_minus)
    )
    return plus, minus


def _reach(curve: TradeoffCurve, spacing: float, tail: float) -> int:
    """Grid points until neither order's δ falls by more than ``tail`` any more."""
    ladder = np.unique(np.round(np.geomspace(16, _MOST, 400)))
    flat = np.ones(len(ladder), bool)
    for d in _profiles(curve, spacing * np.append(ladder, 1e3 * _MOST)):
        flat &= d[:-1] - d[-1] <= tail
    if not np.any(flat):
        raise ValueError(
            f"value_discretization_interval must be larger: {spacing:g} needs more than {_MOST}"
            f" points to reach a tail of {tail:g}"
        )
    return int(ladder[np.argmax(flat)])


def _hull(gamma: Array, height: Array) -> _Half:
    """Lower convex hull of a falling curve over [1, ∞), flat beyond its last point."""
    vertices, slopes = [len(height) - 1], list[Any]([np.longdouble(0.0)])
    for i in range(len(height) - 2, -1, -1):
        while (
            slope := (height[vertices[-1]] - height[i]) / (gamma[vertices[-1]] - gamma[i])
        ) >= slopes[-1]:
            vertices.pop()
            slopes.pop()
            if not vertices:
                break
        if not vertices:
            slope = np.longdouble(0.0)
        vertices.append(i)
        slopes.append(slope)
    return _Half(vertices, slopes)


def dominating_pair(
    mechanism: Mechanism | Composition,
    spacing: float = 1e-4,
    tail: float = 1e-20,
    rtol: float = options.RTOL,
) -> LossPair:
    """A pair on multiples of a spacing that dominates a mechanism in both orders.

    The certified δ(ε) at the grid points bounds the profile from above there, and the lower convex
    hull of these points, as a function of e^ε, bounds it everywhere, because the profile is convex
    (Doroshenko et al. 2022). Its changes of slope are the masses. Mass beyond the last point goes
    to infinity, with the mechanism's own mass there.

    Args:
        mechanism: an unbatched mechanism or composition; its pair in the order (record absent,
            record present).
        spacing: h > 0.
        tail: how much mass may be moved to infinity.
        rtol: requested width of the curve.
    """
    curve = tradeoff(mechanism, rtol=rtol, adjacency="remove")
    if curve.shape != ():
        raise ValueError(f"mechanism must be a single one, got a batch of shape {curve.shape}")
    number = _reach(curve, spacing, tail)
    epsilon = spacing * np.arange(number + 1)
    gamma = np.exp(epsilon.astype(np.longdouble))
    plus, minus = (
        np.minimum.accumulate(d).astype(np.longdouble) for d in _profiles(curve, epsilon)
    )
    # both orders share δ(0), the total variation distance
    plus[0] = minus[0] = min(plus[0], minus[0])
    right, left = _hull(gamma, plus), _hull(gamma, minus)
    pair = functools.partial(_pair, spacing, epsilon, q_plus=plus[-1], p_minus=minus[-1])

    def across(here: Array, there: Array, i: int, j: int) -> np.longdouble:
        """Slope of the chord from the other half's vertex j, mirrored, to vertex i."""
        mirrored = 1.0 - (1.0 - there[j]) / gamma[j]
        return (here[i] - mirrored) / (gamma[i] - 1.0 / gamma[j])

    # where the halves meet the whole has to be convex too
    if right.vertices[-1] == 0 and left.vertices[-1] == 0:
        at_zero = right.slopes[-1] - (minus[0] - left.slopes[-1] - 1.0)
        if at_zero >= 0.0 or len(right.vertices) == 1 or len(left.vertices) == 1:
            return pair(right, left, max(float(at_zero), 0.0))
        right, left = right.shorter(), left.shorter()
    while True:
        i, j = right.vertices[-1], left.vertices[-1]
        from_left, from_right = across(plus, minus, i, j), across(minus, plus, j, i)
        if from_left > right.slopes[-1] and len(right.vertices) > 1:
            right = right.shorter()
        elif from_right > left.slopes[-1] and len(left.vertices) > 1:
            left = left.shorter()
        else:
            break
    return pair(right._replace(first=from_left), left._replace(first=from_right), 0.0)


def _pair(
    spacing: float,
    epsilon: Array,
    right: _Half,
    left: _Half,
    centre: float,
    q_plus: float,
    p_minus: float,
) -> LossPair:
    """Changes of slope as masses."""
    halves: list[Array] = []
    for vertices, slopes, first in (right, left):
        slopes = np.array(slopes)
        before = np.append(slopes[1:], slopes[-1] if first is None else first)
        mass = np.maximum(slopes - before, 0.0)
        where = np.array(vertices)
        kept = (where > 0) & (mass > 0.0)
        order = np.argsort(where[kept])
        where, mass = where[kept][order], mass[kept][order]
        halves += [where, (mass * np.exp(epsilon[where].astype(np.longdouble))).astype(float)]
    return LossPair(spacing, *halves, centre, float(q_plus), float(p_minus))
