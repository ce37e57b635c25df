"""Numbers of compositions that are so long, or so far from private, that no lattice serves or none
is needed: by exact moments of one use and a limit theorem with its error bound."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...bracket import Bracket
from ...mechanisms.composition import Groups
from ...numerics.precision import with_float64
from ...numerics.shapes import Array, Bool, Int
from ..certify import closed_forms, finite_laws, normal_curve
from ..certify.curve import Curve, gaussian_parts
from ..certify.discrete_pairs import coarsened_pair, dominating_pair
from ..certify.tilted_moments import Parts, tilted_sum
from ..question import NO_EXECUTOR, USUAL, Answer, Question
from ..steer import limit_plan
from ..steer.limit_plan import Reach
from . import largest
from .batch import known_threshold
from .rows import take
from .running_brackets import narrow_one, unknown, worst

_POINTS, _THRESHOLDS = 2048, 192  # of one step, and of a half-curve, in the first pass
_FEW_POINTS, _SHALLOW = 512, 40.0  # of one step, and how deep, to see whether a sum is normal
_NEARLY_NORMAL = 0.02  # Lyapunov ratio up to which it is taken for that
# times as many points in the second one, and in the third one, times as many thresholds where it is
# not known which ones tell, and width over the width promised up to which a third one is tried
_FINER, _FINEST, _UNLOCATED, _NEARLY = 2, 8, 5, 12.0
# the same up to which more thresholds do where what is asked is the largest of all rates, and times
# as many points of one step where these do not
_MOST_TIMES, _MORE_POINTS = 30.0, 4
# part of an upper side that the lower one is away from it at most, for so many thresholds between
_NEAR, _PLACES = 0.05, 13
_HELPS = 0.8  # part of a width that a curve has to leave at most, for another one

More = tuple[Array, Array]  # thresholds of each half-curve


class Look(NamedTuple):
    """What a curve by moments has.

    Attributes:
        finer: how many times as many points of one step, and thresholds, as a first one.
        more: thresholds of each half-curve beside these.
    """

    finer: tuple[int, int]
    more: More | None = None


class _Sides:
    """What dominates a composition and what it dominates, from cells of so many points."""

    def __init__(self, groups: Groups, row: int, depth: float, points: int):
        above, below, precision = [], [], 0.0
        for stacked, counts in groups:
            for k, uses in enumerate(counts[row]):
                mechanism = take(stacked, (row, k))
                # (``gaussian_precision`` alone only says that cumulants are a Gaussian's)
                if float(mechanism.gaussian_part_precision()) > 0.0:
                    precision += float(mechanism.gaussian_precision()) * float(uses)
                    continue
                ell = limit_plan.loss_points(mechanism, depth + np.log(uses), points)
                member = mechanism.lower_bound_member()
                cells = mechanism.cells(ell, np.inf)
                above.append((dominating_pair(cells, ell), float(uses)))
                cells = cells if member is mechanism else member.cells(ell, np.inf)
                below.append((coarsened_pair(cells, ell), float(uses)))
        self.above, self.below = (Parts(tuple(side), precision) for side in (above, below))


def _curve(
    groups: Groups,
    row: int,
    reach: Reach,
    rtol: float,
    finer: tuple[int, int],
    more: More | None = None,
) -> Curve:
    """Both sides of both half-curves of one setting, with ``more`` thresholds of each."""
    extra = 10.0 - np.log(rtol)
    points, number = _POINTS * finer[0], _THRESHOLDS * finer[1]
    sides = _Sides(groups, row, reach.depth + extra, points)
    orders = sides.above, sides.above.swapped()
    deeper = max(limit_plan.depth_at(o, t) for o in orders for t in (0.0, *reach.thresholds))
    if deeper > reach.depth:
        sides = _Sides(groups, row, deeper + extra, points)
    halves = []
    for swap in (False, True):
        above, below = (part.swapped() if swap else part for part in (sides.above, sides.below))
        at = limit_plan.thresholds(above, reach, number)
        if more is not None:
            at = limit_plan.with_more(above, at, np.asarray(more[int(swap)]))
        halves.append(normal_curve.dominating_half(above, at))
        halves.append(normal_curve.achieved_half(below, at))
    plus, below_plus, minus, below_minus = finite_laws.padded(halves)
    parts = gaussian_parts(take(groups, row))
    return Curve(plus, minus, below_plus, below_minus, *parts)


def _reach(question: Question, located: tuple[float, ...]) -> Reach:
    """How far out the curve of the one setting of a question is wanted."""
    rates = question.rates(1)
    known = (known_threshold(quantity, at, 1) for quantity, at in question.asked)
    inside = tuple(float(t[0]) for t in known if t is not None)
    deepest = None if rates.z_delta is None else float(rates.z_delta[0])
    return Reach(float(rates.z_floor[0]), deepest, inside + located)


def _located(curve: Curve, question: Question) -> tuple[float, ...]:
    """Thresholds that quantities are read off at, where that follows from a first curve."""
    kind, rates = question.kind, question.rates(1)
    found = (
        float(quantity.locate(curve, query[0], symmetric=kind.adjacency.symmetric))
        for quantity, query in zip(kind.quantities, rates.queries, strict=True)
        if quantity.locate is not None
    )
    return tuple(t for t in found if np.isfinite(t))


def _between(own: Question, results: dict[str, Bracket], row: int) -> tuple[float, ...]:
    """Thresholds between both sides of what is a threshold itself, where these are near."""
    found: list[float] = []
    for quantity, _ in own.asked:
        low, high = (float(side[row]) for side in results[quantity.name])
        if quantity.unit == "nats" and high * (1.0 - _NEAR) < low < high < np.inf:
            found += list(np.linspace(low, high, _PLACES))
    return tuple(found)


class Long(NamedTuple):
    """Which settings are answered without a lattice, arrays over settings.

    Attributes:
        tried: those that are so first.
        hopeless: those that no lattice would do better.
        briefly: those that lattices do better, or in less time, where a first curve or two leave
            them wide.
        normal: those whose sum is next to normal.
    """

    tried: Bool[np.ndarray, " settings"]
    hopeless: Bool[np.ndarray, " settings"]
    briefly: Bool[np.ndarray, " settings"]
    normal: Bool[np.ndarray, " settings"]


@with_float64
def served(groups: Groups, some: Bool[np.ndarray, " settings"], rtol: float) -> Long:
    """Of ``some`` settings of a batch, those that are answered here."""
    uses = np.asarray(sum(np.sum(count, axis=-1) for _, count in groups))
    some, few = np.asarray(some), uses < limit_plan.FEWEST_USES
    weak, far, long = (np.zeros_like(some) for _ in range(3))
    may_be_weak, may_be_far = limit_plan.may_be_weak(groups)
    rows = np.flatnonzero(some & np.where(few, may_be_far, may_be_weak))
    if len(rows):
        weak[rows], far[rows], long[rows] = limit_plan.weakness(take(groups, rows))
    # (of few uses that hide hardly anything no lattice is small)
    some = some & (~few | far)
    weak, long = weak & some, long & some
    normal = some & (uses >= limit_plan.MANY_USES) & ~far
    for row in np.flatnonzero(normal):
        normal[row] = _is_normal(groups, int(row))
    # (at the usual accuracy lattices take a twentieth of the time for most of these)
    weak &= far | (rtol < USUAL)
    tried = weak | normal
    hopeless = far | (normal & (uses >= limit_plan.MOST_USES))
    # (at the usual accuracy a lattice takes less than a third curve)
    briefly = (tried | long) & ~hopeless & ((rtol >= USUAL) | ~tried)
    return Long(tried | long, hopeless, briefly, normal)


def _is_normal(groups: Groups, row: int) -> bool:
    """Whether the sum of losses is next to normal under P, under Q and in between: where a few
    large steps make it up, a lattice says more.
    """
    with np.errstate(all="ignore"):
        sides = _Sides(groups, row, _SHALLOW, _FEW_POINTS)
        ratios = tilted_sum(sides.above, np.array([0.0, 0.5, 1.0])).lyapunov
    return bool(np.all(ratios <= _NEARLY_NORMAL))


@with_float64
def answer(
    groups: Groups, rows: Int[np.ndarray, " rows"], question: Question, long: Long
) -> Answer:
    """Certified numbers of some settings of a batch, by their moments alone.

    Args:
        groups: as for the engine, uses as they were stated.
        rows: of the settings.
        question: about these.
        long: about the whole batch. What is so ``briefly`` has no more curves where the first one
            leaves it far wider than asked, and no third one.

    Method: docs/method/limit.md#long-runs
    """
    number = len(rows)
    results = {quantity.name: unknown(number) for quantity, _ in question.asked}
    curves: list[Any] = [None] * number
    with np.errstate(all="ignore"):
        for i, row in enumerate(rows):
            own, located = question.take(np.array([i]), number), ()
            look: Look | None = Look((1, 1))
            while look is not None:
                reach = _reach(own, located)
                curve = _curve(groups, int(row), reach, question.rtol, *look)
                curves[i] = closed_forms.oriented(curve, question.adjacency)
                for name, bracket in closed_forms.read([curves[i]], own).items():
                    narrow_one(results[name], i, bracket)
                left = worst(results, own, i)
                if largest.all_asked(own):
                    look = _look_between(look, curve, own, results, i, bool(long.briefly[row]))
                    continue
                look = _next_look(look, left, own, curves[i], bool(long.briefly[row]))
                located = _located(curves[i], own) + _between(own, results, i)
    none, executors = np.zeros(number, np.int64), np.full(number, NO_EXECUTOR, object)
    kept = curves if question.keep else []
    return Answer(results, none, [None] * number, kept, executors)


def _next_look(look: Look, left: float, own: Question, curve: Curve, briefly: bool) -> Look | None:
    """What the next curve has, None for no other one.

    Args:
        look: what the last one had.
        left: width over the width promised.
        own: what is asked of the one setting.
        curve: the last one, in the order that is asked for.
        briefly: whether the setting is answered so, as in :class:`Long`.
    """
    if look.finer == (1, 1):
        worthwhile = left <= _NEARLY or not briefly
    else:
        worthwhile = left <= _NEARLY and not briefly
    return _finer(look, own, curve) if left > 1.0 and worthwhile else None


def _finer(look: Look, own: Question, curve: Curve) -> Look | None:
    """The next finer one, None after the finest: as many thresholds as before where the last curve
    told for each quantity at which of them it is read off.
    """
    points = {1: _FINER, _FINER: _FINEST}.get(look.finer[0])
    to_locate = [q.locate is not None for q, _ in own.asked if q.threshold is None]
    located = all(to_locate) and len(_located(curve, own)) >= len(to_locate) and not own.keep
    return None if points is None else Look((points, 1 if located else _UNLOCATED))


def _look_between(
    look: Look, curve: Curve, own: Question, results: dict[str, Bracket], row: int, briefly: bool
) -> Look | None:
    """What the next curve has where all that is asked is the largest of all rates, None for no
    other one: as many thresholds as it takes between those of the last one, and more points where
    these do not help.

    Args:
        look: what the last curve had.
        curve: the last one, in the order of removing a record.
        own: what is asked of the one setting.
        results: what is known of all.
        row: the setting's.
        briefly: whether it is answered so, as in :class:`Long`.
    """
    left = worst(results, own, row)
    if not 1.0 < left <= (_MOST_TIMES if briefly else np.inf):
        return None
    if look.more is None:
        return Look((1, 1), largest.between(own, curve, results, row))
    if briefly or look.finer != (1, 1) or left > _NEARLY:
        return None
    return Look((_MORE_POINTS, 1), largest.between(own, curve, results, row))


def narrow(groups: Groups, row: int, own: Question, results: dict[str, Bracket]) -> None:
    """Narrow the numbers of a setting by its moments, a last resort for sums of many uses, which
    ends where a curve hardly helps; in place.

    Args:
        groups: of the whole batch.
        row: the setting's.
        own: what is asked of it.
        results: of the whole batch.

    Method: docs/method/limit.md#long-runs
    """
    if sum(float(np.sum(count[row])) for _, count in groups) < limit_plan.FEWEST_USES:
        return
    located: tuple[float, ...] = ()
    look: Look | None = Look((1, 1))
    while look is not None:
        before = worst(results, own, row)
        if not 1.0 < before <= (_NEARLY if look.finer[0] == _FINEST else np.inf):
            return
        curve = _curve(groups, row, _reach(own, located), own.rtol, *look)
        oriented = closed_forms.oriented(curve, own.adjacency)
        for name, bracket in closed_forms.read([oriented], own).items():
            narrow_one(results[name], row, bracket)
        located = _located(oriented, own) + _between(own, results, row)
        if not (worst(results, own, row) <= _HELPS * before or len(located) > 1):
            return
        if largest.all_asked(own):
            look = _look_between(look, curve, own, results, row, briefly=False)
        else:
            look = _finer(look, own, oriented)


@with_float64
def first_curve(groups: Groups, row: int, own: Question, finer: int = 1) -> Curve | None:
    """The first curve of a setting by its moments, in the order of removing a record; None where
    its uses are too few.

    Args:
        groups: of the whole batch.
        row: the setting's.
        own: what is asked of it.
        finer: how many times as many thresholds as usual it has.
    """
    if sum(float(np.sum(count[row])) for _, count in groups) < limit_plan.FEWEST_USES:
        return None
    return _curve(groups, row, _reach(own, ()), own.rtol, (1, finer))
