"""Quantities of curves that are known in closed form: both sides of each by monotone functions.

Arguments are those of ``Quantity.read_known``: a batch of curves, and a query for each of them. A
query that is the log of a rate is rounded: each side is read at the end of what it may have been.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...bracket import Bracket
from ...numerics.errors import GAP, UNIT
from ...numerics.first_double import first_double
from ...numerics.shapes import Array, Bool
from ...pairs.known_curves import GaussianCurve, OrientedCurve

_LARGEST = float(np.finfo(float).max)
_EXPONENT = 1e-12  # relative error of e^x up to x = 600, and of what it multiplies
_FEW = 7  # points tried at once on a curve that takes its arguments one by one


def _probability(logs: Bracket) -> Bracket:
    """e^a, rounded outward."""
    with np.errstate(under="ignore"):
        low, high = (np.exp(side) for side in logs)
    tiny = np.where(np.isneginf(logs.upper), 0.0, np.finfo(float).tiny)
    return Bracket(
        low * (1.0 - 8.0 * UNIT), np.minimum(np.maximum(high * (1.0 + 8.0 * UNIT), tiny), 1.0)
    )


def _rounded(log_rate: Array) -> Bracket:
    """The log of a rate before it was rounded."""
    room = 2.0 * UNIT * np.where(np.isfinite(log_rate), np.abs(log_rate), 0.0)
    return Bracket(log_rate - room, np.minimum(log_rate + room, 0.0))


def delta(known: OrientedCurve, query: Array, *, symmetric: bool) -> Bracket:
    """δ(ε)."""
    return _probability(known.log_delta(query, symmetric=symmetric))


def advantage(known: OrientedCurve, query: Array, *, symmetric: bool) -> Bracket:
    """δ(0), which both orders share."""
    return _probability(known.log_delta(np.zeros(np.shape(query)), symmetric=False))


def epsilon(known: OrientedCurve, query: Array, *, symmetric: bool) -> Bracket:
    """ε(δ): an ε at which δ(ε) is certainly at most δ, and one at which it is certainly more.

    Method: docs/method/known.md#readings
    """
    goal, each = _rounded(query), known.expanded()

    def within(x: Array) -> Bool[Array, "settings sections"]:
        return each.log_delta(x, symmetric=symmetric).upper <= goal.lower[:, None]

    def beyond(x: Array) -> Bool[Array, "settings sections"]:
        return ~(each.log_delta(x, symmetric=symmetric).lower > goal.upper[:, None])

    single = lambda statement, x: statement(x[:, None])[:, 0]
    low, high, sections = _span(known, query, symmetric)
    with np.errstate(all="ignore"):
        high = np.where(single(within, high), high, _LARGEST)
        above = first_double(within, low, high, **sections).after
        below = first_double(beyond, low, high, **sections).before
        upper = np.where(single(within, above), above, np.inf)
        upper = np.where(single(within, 0.0 * low), 0.0, upper)
        lower = np.where(single(beyond, below), 0.0, below)
        end = known.end(query, symmetric=symmetric)
        endless = (end == np.inf) & ~single(beyond, np.full(low.shape, _LARGEST))
    return Bracket(np.where(endless, np.inf, lower), np.minimum(upper, end))


def _span(
    known: OrientedCurve, query: Array, symmetric: bool
) -> tuple[Array, Array, dict[str, int]]:
    """Where ε is looked for, and how."""
    if known.curve.batched:
        return np.zeros(np.shape(query)), np.full(np.shape(query), _LARGEST), {}
    curve: Any = known.curve  # (what is no batch knows where to look)
    spans = [
        [curve.epsilon_span(order, float(log_d)) for log_d in query]
        for order in known.orders(symmetric)
    ]
    low, high = np.max(np.array(spans), axis=0).T
    return low, high, {"sections": _FEW}


def tpr(known: OrientedCurve, query: Array, *, symmetric: bool) -> Bracket | None:
    """1 − f(α)."""
    sides = [known.curve.rates(known.orders(symmetric), side) for side in _rounded(query)]
    if sides[0] is None or sides[1] is None:
        return None
    return _probability(Bracket(sides[0].log_tpr.lower, sides[1].log_tpr.upper))


def beta(known: OrientedCurve, query: Array, *, symmetric: bool) -> Bracket | None:
    """f(α)."""
    sides = [known.curve.rates(known.orders(symmetric), side) for side in _rounded(query)]
    if sides[0] is None or sides[1] is None:
        return None
    return _probability(Bracket(sides[1].log_beta.lower, sides[0].log_beta.upper))


def bayes_risk(known: OrientedCurve, query: Array, *, symmetric: bool) -> Bracket:
    """min(π, 1 − π)·(1 − δ(|log(π/(1 − π))|)), of the order that belongs to the prior."""
    inside = np.where((query > 0.0) & (query < 1.0), query, 0.5)
    guess = np.minimum(query, 1.0 - query)
    logs = np.log(inside), np.log1p(-inside)
    slope, room = np.abs(logs[0] - logs[1]), 4.0 * UNIT * (np.abs(logs[0]) + np.abs(logs[1]))

    def rest(order: OrientedCurve) -> Bracket:
        return Bracket(
            order.log_one_minus_delta(np.maximum(slope - room, 0.0), symmetric=symmetric).lower,
            order.log_one_minus_delta(slope + room, symmetric=symmetric).upper,
        )

    found = rest(known)
    if not symmetric:
        other = rest(OrientedCurve(known.curve, not known.swapped))
        found = Bracket(*(np.where(query >= 0.5, a, b) for a, b in zip(found, other, strict=True)))
    low, high = _probability(found)
    upper = np.minimum(guess * high * (1.0 + 4.0 * UNIT), guess)
    # (a risk below every double is still not 0)
    upper = np.maximum(upper, np.where(guess > 0.0, np.finfo(float).tiny, 0.0))
    return Bracket(guess * low * (1.0 - 4.0 * UNIT), upper)


def mu(known: OrientedCurve, query: Array, *, symmetric: bool) -> Bracket | None:
    """μ*(floor), which falls as the floor grows."""
    low, high = (known.curve.mu(side) for side in _rounded(query))
    return None if low is None or high is None else Bracket(high.lower, low.upper)


def regret(known: OrientedCurve, query: Array, *, symmetric: bool) -> Bracket | None:
    """Δ of reporting the upper μ of a curve that is itself Gaussian: by how far that μ is known.

    Method: docs/method/regret.md#sides
    """
    found = mu(known, query, symmetric=symmetric)
    if found is None or not isinstance(known.curve, GaussianCurve):
        return None
    # (every m between both sides has m²/8 of at least that of the lower one)
    steepest = np.exp(-np.minimum(np.square(found.lower) / 8.0, 600.0)) * (1.0 + _EXPONENT)
    width = (found.upper - found.lower) * steepest * np.sqrt(1.0 / (8.0 * np.pi)) + GAP
    return Bracket(np.zeros(np.shape(width)), np.fmin(width, 0.5))
