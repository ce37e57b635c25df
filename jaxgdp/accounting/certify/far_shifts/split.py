"""A mixture of shifts, split where a gap begins: near ones, and kinds of far ones."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ....numerics.errors import UNIT
from ....numerics.normal import log1mexp, log_ndtr
from ....numerics.shapes import Array, Float

GAP = 8.0  # deviations of the noise between neighbours from which on they are told apart, nearly
_MOST_KINDS = 8
# deviations within which outputs are near their centres, as a rule, and the part of the way to the
# middle between two centres that this is
_ENOUGH, _PART = 38.0, (0.5, 0.9)
_ROOM = 64.0 * UNIT


class FarShifts(NamedTuple):
    """T steps of N(0, 1) against Σ_i w_i·N(τ_i, 1), the shifts in deviations of the noise.

    Attributes:
        steps: T.
        near, log_near_w: shifts before the gap, and logs of their weights over all of them.
        low, high: bounds on the shift of each kind of far ones.
        log_own: log of the weight of each kind.
        log_shown: log of the weight of all kinds that are not told from it, with its own.
        log_near, log_far: logs of the weights of all near and of all far ones.
        log_bad: log of a bound on the probability that some output is not near its centre.
        more: bound on what all other terms of the likelihood ratios of all steps add to the log of
            those of what was drawn, where all outputs are near their centres.
    """

    steps: float
    near: Float[Array, " near"]
    log_near_w: Float[Array, " near"]
    low: Float[Array, " kinds"]
    high: Float[Array, " kinds"]
    log_own: Float[Array, " kinds"]
    log_shown: Float[Array, " kinds"]
    log_near: float
    log_far: float
    log_bad: float
    more: float

    @property
    def log_none(self) -> float:
        """log of the probability that no shift is far."""
        return self.steps * self.log_near


def split(
    sigma: float, shifts: Float[Array, " shifts"], weights: Float[Array, " shifts"], steps: float
) -> FarShifts | None:
    """A mixture split at its first gap; None where there is none.

    Args:
        sigma: σ.
        shifts, weights: c_i ≥ 0 and w_i ≥ 0, whose sum is divided out.
        steps: T.

    Method: docs/method/limit.md#far-shifts
    """
    order = np.argsort(shifts, kind="stable")
    with np.errstate(over="ignore"):
        tau, w = np.asarray(shifts, float)[order] / sigma, np.asarray(weights, float)[order]
        if not np.all(np.isfinite(tau * tau)):  # (lattices say that nothing is known)
            return None
    some = w > 0.0
    tau, w = tau[some], w[some]
    gaps = np.flatnonzero(np.diff(tau) >= GAP)
    if not len(gaps):
        return None
    first = int(gaps[0]) + 1
    near, far = w[:first].sum(), w[first:].sum()
    total = near + far
    log_near = np.log(near / total) if far > near else np.log1p(-far / total)
    log_far = np.log(far / total) if near >= far else np.log1p(-near / total)
    log_w, group = np.log(w[first:]) - np.log(total), _groups(tau[first:])
    low, high, log_own, group = _kinds(tau[first:], log_w, group)
    shown = np.array([np.logaddexp.reduce(log_own[group == g]) for g in group])
    found = FarShifts(
        steps,
        tau[:first],
        np.log(w[:first]) - np.log(near),
        low,
        high,
        log_own,
        shown,
        float(log_near),
        float(log_far),
        0.0,
        np.inf,
    )
    return _apart(found, group)


def _groups(tau: Array) -> Array:
    """The number of the group of each far shift: neighbours in one are not told apart."""
    return np.concatenate([[0], np.cumsum(np.diff(tau) >= GAP)])


def _kinds(tau: Array, log_w: Array, group: Array) -> tuple[Array, Array, Array, Array]:
    """Bounds on shift, log weight and group of so many kinds: the heaviest shifts are kinds of
    their own, all others are one, with all of their groups.
    """
    if len(tau) <= _MOST_KINDS:
        return tau, tau, log_w, group
    order = np.argsort(-log_w, kind="stable")
    alone, rest = np.sort(order[: _MOST_KINDS - 1]), order[_MOST_KINDS - 1 :]
    joined = np.isin(group, group[rest])
    group = np.where(joined, -1, group)
    merged = lambda a, b: np.append(a[alone], b)
    return (
        merged(tau, tau[rest].min()),
        merged(tau, tau[rest].max()),
        merged(log_w, np.logaddexp.reduce(log_w[rest])),
        merged(group, -1),
    )


def _apart(found: FarShifts, group: Array) -> FarShifts:
    """With how far outputs may be from their centres, and what other terms add there.

    A quotient of likelihood ratios of two shifts is monotone in the output: the terms of smaller
    shifts count most at the smallest output, those of larger ones at the largest.
    """
    tau, top = found.high, float(found.near[-1])
    others = group[:, None] != group[None, :]
    between = np.where(others, np.abs(tau[:, None] - tau[None, :]), np.inf)
    gap = min(float(tau.min() - top), float(between.min()))
    z = float(np.clip(2.0 * _ENOUGH / gap, *_PART)) * 0.5 * gap if gap > 0.0 else 0.0
    size = 4.0 * _ROOM * float(np.max(tau)) * (float(np.max(tau)) + z)

    def near_term(o: float) -> float:
        terms = found.log_near_w + found.near * (o - 0.5 * found.near)
        return found.log_near + float(np.logaddexp.reduce(terms))

    term = lambda k, o: found.log_shown[k] + tau[k] * (o - 0.5 * tau[k])
    every = np.arange(len(tau))
    more = [float(np.logaddexp.reduce(term(every, top + z))) - near_term(top + z)]
    for i in every:
        low, high = float(tau[i]) - z, float(tau[i]) + z
        smaller, larger = others[i] & (tau < tau[i]), others[i] & (tau > tau[i])
        terms = np.concatenate([[near_term(low)], term(smaller, low)]) - term(i, low)
        terms = np.append(terms, term(larger, high) - term(i, high))
        more.append(float(np.logaddexp.reduce(terms)))
    log_bad = np.log(found.steps) + np.log(2.0) + float(log_ndtr(-z)) * (1.0 - _ROOM) + _ROOM
    worst = found.steps * np.exp(min(max(more) + size, 700.0)) * (1.0 + 1e-9)
    return found._replace(log_bad=min(log_bad, 0.0), more=worst)


def log_missed(found: FarShifts, cut: Float[Array, " cuts"]) -> Float[Array, " cuts"]:
    """log of a bound on the probability, with the record, that some shift is far and no output
    larger than ``cut``.
    """
    each = found.log_own + log_ndtr(cut[:, None] - found.low) * (1.0 - _ROOM)
    log_less = np.minimum(np.logaddexp.reduce(each, axis=-1), found.log_far)
    with np.errstate(all="ignore"):
        more = found.steps * np.log1p(np.exp(log_less - found.log_near))
        # (e^x − 1, of which x may be far below all doubles: then it is x)
        tiny = np.log(found.steps) + log_less - found.log_near
        log_grown = np.where(more > 1e-300, more + log1mexp(-more), tiny)
    return np.minimum(found.log_none + log_grown + 1e-9, log1mexp(found.log_none))


def log_hit(found: FarShifts, cut: Float[Array, " cuts"]) -> Float[Array, " cuts"]:
    """log of a bound from below on the probability, with the record, that some shift is far and its
    output is larger than ``cut``.
    """
    each = found.log_own + log_ndtr(found.low - cut[:, None]) * (1.0 + _ROOM)
    h = np.minimum(np.logaddexp.reduce(each, axis=-1), found.log_far)
    with np.errstate(all="ignore"):
        none = found.steps * log1mexp(h)
        tiny = np.log(found.steps) + h
        return np.where(none < -1e-300, log1mexp(none), np.minimum(tiny, 0.0)) - 1e-9
