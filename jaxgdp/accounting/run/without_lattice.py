"""Answers for compositions that are so long, or so far from private, that no lattice serves or none
is needed: from exact moments of one use and a limit theorem with its error bound."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...adjacency import Adjacency
from ...bracket import Bracket
from ...mechanisms import GaussianMixture, SubsampledGaussian
from ...mechanisms.composition import Groups
from ...numerics.precision import with_float64
from ...numerics.shapes import Array, Bool, Int
from ..certify import (
    closed_forms,
    counted_jumps,
    finite_laws,
    jump_sides,
    located_jumps,
    normal_curve,
)
from ..certify.counted_jumps import Jumps, SampledRun
from ..certify.curve import Curve, gaussian_parts
from ..certify.discrete_pairs import coarsened_pair, dominating_pair
from ..certify.tilted_moments import Parts, tilted_sum
from ..question import NO_EXECUTOR, USUAL, Answer, Question
from ..steer import limit_plan
from ..steer.limit_plan import Reach
from . import by_share, largest
from .batch import known_threshold
from .rows import take
from .running_brackets import RunningBrackets, unknown, worst

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
_MOST_COUNTED = 160  # outputs that a test wants to be large, at most
# times thresholds of tests are looked for about the best one, each a tenth as far apart
_CLOSER = 3
_JUMP_LOOKS = 3  # at curves by jumps, each with thresholds nearer to those that are asked for
_HELPS = 0.8  # part of a width that a first curve has to leave at most, for a second one


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
                    _narrow(results[name], i, bracket)
                left = worst(results, own, i)
                if largest.all_asked(own):
                    look = _look_between(look, curve, own, results, i, bool(long.briefly[row]))
                    continue
                look = _next_look(look, left, own, bool(long.briefly[row]))
                located = _located(curves[i], own) + _between(own, results, i)
    none, executors = np.zeros(number, np.int64), np.full(number, NO_EXECUTOR, object)
    kept = curves if question.keep else []
    return Answer(results, none, [None] * number, kept, executors)


def _next_look(look: Look, left: float, own: Question, briefly: bool) -> Look | None:
    """What the next curve has, None for no other one.

    Args:
        look: what the last one had.
        left: width over the width promised.
        own: what is asked of the one setting.
        briefly: whether the setting is answered so, as in :class:`Long`.
    """
    if look.finer == (1, 1):
        worthwhile = left <= _NEARLY or not briefly
    else:
        worthwhile = left <= _NEARLY and not briefly
    return _finer(look, own) if left > 1.0 and worthwhile else None


def _finer(look: Look, own: Question) -> Look | None:
    """The next finer one, None after the finest: as many thresholds as before where each quantity
    is read off at some that the last curve told.
    """
    points = {1: _FINER, _FINER: _FINEST}.get(look.finer[0])
    located = all(q.locate is not None or q.threshold is not None for q, _ in own.asked)
    located &= not own.keep
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


@with_float64
def narrow_what_is_wide(groups: Groups, question: Question, found: Answer) -> None:
    """Narrow the numbers that lattices left wider than promised, in place: by the law given that a
    record is sampled, by the number of jumps, and by moments, a last resort for sums of many uses,
    which ends where a first curve hardly helps.

    Args:
        groups, question: of the whole batch.
        found: its answer by lattices.

    Method: docs/method/limit.md#long-runs
    """
    tight = all(mechanism.tight for mechanism, _ in groups)
    if not tight or question.keep:
        return
    uses = np.asarray(sum(np.sum(count, axis=-1) for _, count in groups))
    tried, seldom = jumps_tell(groups, question), by_share.seldom(groups)
    little = tried | by_share.seldom(groups, by_share.LITTLE_NOISE)
    with np.errstate(all="ignore"):
        excess = [q.excess(found.results[q.name], question.rtol) for q, _ in question.asked]
        wide = np.max(excess, axis=0, initial=0.0) > 1.0
        for row in map(int, np.flatnonzero(wide)):
            own = question.take(np.array([row]), len(uses))
            if not little[row]:
                narrow_by_jumps(groups, row, own, found.results)
            if not seldom[row]:
                by_share.narrow(groups, row, own, found.results)
            elif not little[row]:
                by_share.narrow_further(groups, row, own, found.results)
            if uses[row] >= limit_plan.FEWEST_USES:
                _narrow_by_moments(groups, row, own, found.results)
            by_share.narrow_at_last(groups, row, own, found.results)


def _narrow_by_moments(
    groups: Groups, row: int, own: Question, results: dict[str, Bracket]
) -> None:
    located: tuple[float, ...] = ()
    look: Look | None = Look((1, 1))
    while look is not None:
        before = worst(results, own, row)
        if not 1.0 < before <= (_NEARLY if look.finer[0] == _FINEST else np.inf):
            return
        curve = _curve(groups, row, _reach(own, located), own.rtol, *look)
        oriented = closed_forms.oriented(curve, own.adjacency)
        for name, bracket in closed_forms.read([oriented], own).items():
            _narrow(results[name], row, bracket)
        located = _located(oriented, own) + _between(own, results, row)
        if not (worst(results, own, row) <= _HELPS * before or len(located) > 1):
            return
        if largest.all_asked(own):
            look = _look_between(look, curve, own, results, row, briefly=False)
        else:
            look = _finer(look, own)


def jumps_tell(groups: Groups, question: Question) -> Bool[np.ndarray, " settings"]:
    """Settings for which the number of jumps most likely says all that is asked."""
    return _some_jumps(groups, question, limit_plan.jumps_tell)


def jumps_help(groups: Groups, question: Question) -> Bool[np.ndarray, " settings"]:
    """Settings for which the number of jumps says much that costs lattices many passes."""
    return _some_jumps(groups, question, limit_plan.may_have_jumps)


def _some_jumps(
    groups: Groups, question: Question, rule: Callable[[Jumps], bool]
) -> Bool[np.ndarray, " settings"]:
    """Settings of hardly any noise for which a rule holds."""
    number = len(groups[0][1])
    found = np.zeros(number, bool)
    if question.keep:
        return found
    little = np.zeros(number, bool)
    for m, count in groups:
        if isinstance(m, (SubsampledGaussian, GaussianMixture)):
            # (of a mixture the largest shift: smaller ones are looked at below)
            most = np.max(m.shifts, axis=-1) if isinstance(m, GaussianMixture) else 1.0
            noise = np.where(count > 0.0, m.noise_multiplier, np.inf)
            little |= np.any(noise <= limit_plan.HARDLY_ANY_NOISE * most, axis=-1)
    for row in np.flatnonzero(little):
        jumps = jumps_of(groups, int(row))
        found[row] = jumps is not None and rule(jumps)
    return found


@with_float64
def narrow_by_jumps(
    groups: Groups,
    row: int,
    own: Question,
    results: dict[str, Bracket],
    orders: RunningBrackets | None = None,
) -> Curve | None:
    """Narrow the numbers of a setting by the number of its steps with the record, where these are
    few and tell much, in place; the curve of most thresholds, in the order of removing a record.

    Args:
        groups: of the whole batch.
        row: the setting's.
        own: what is asked of it.
        results: of the whole batch.
        orders: of the whole batch, whose brackets of each order are narrowed, too.

    Method: docs/method/limit.md#counted-jumps
    """
    jumps, found = jumps_of(groups, row), None
    if jumps is None or not limit_plan.may_have_jumps(jumps):
        return None
    parts, many = gaussian_parts(take(groups, row)), largest.asked(own)
    with np.errstate(all="ignore"):
        thresholds = _closer(jumps, own, limit_plan.jump_thresholds(jumps))
        for _ in range(_JUMP_LOOKS):
            before, at = worst(results, own, row), _about(thresholds, own, results, row)
            curve = jump_sides.both_sides(jumps, at, _MOST_COUNTED, parts, limit_plan.jump_places)
            found = curve if found is None or many else found
            if orders is not None:
                _narrow_orders(orders, row, curve, own)
            curve = closed_forms.oriented(curve, own.adjacency)
            for name, bracket in closed_forms.read([curve], own).items():
                _narrow(results[name], row, bracket)
            left = worst(results, own, row)
            if left <= 1.0 or not left <= _HELPS * before:
                break
            if many:
                thresholds = np.concatenate([at, largest.about_largest(own, found)])
            else:
                # (what the others say is known by now)
                thresholds = thresholds[:: _JUMP_LOOKS * 2]
    return found


def narrow_by_located_jumps(
    groups: Groups, row: int, own: Question, results: dict[str, Bracket]
) -> None:
    """Narrow the numbers of a setting from below, by tests by which of its steps had the record, of
    which there may be thousands; in place.

    Args:
        groups: of the whole batch.
        row: the setting's.
        own: what is asked of it.
        results: of the whole batch.

    Method: docs/method/limit.md#located-jumps
    """
    jumps = jumps_of(groups, row)
    if jumps is None or not limit_plan.may_be_located(jumps):
        return
    with np.errstate(all="ignore"):
        thresholds = _closer(jumps, own, limit_plan.located_thresholds(jumps))
        curve = jump_sides.located_tests(jumps, thresholds, gaussian_parts(take(groups, row)))
    curve = closed_forms.oriented(curve, own.adjacency)
    for name, bracket in closed_forms.read([curve], own).items():
        _narrow(results[name], row, bracket)


def _closer(jumps: Jumps, own: Question, thresholds: Any) -> Any:
    """Thresholds, with more of them about where the largest μ is by tests by which steps of the
    nearest run had the record, if that is what is asked.
    """
    found = [thresholds]
    terms = located_jumps.located(jumps.nearest) if largest.asked(own) else None
    for _ in range(_CLOSER):
        if terms is None:
            break
        tests = located_jumps.achieved_tests(terms, found[-1])[0]
        found.append(largest.about(found[-1], largest.values(own, *tests[0])))
        if not len(found[-1]):
            break
    return np.unique(np.concatenate(found))


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


def _narrow_orders(orders: RunningBrackets, row: int, curve: Curve, own: Question) -> None:
    asked = tuple((q, at) for q, at in own.asked if q.name in orders.by_order)
    for side, order in enumerate((Adjacency.REMOVE, Adjacency.ADD) if asked else ()):
        one = dataclasses.replace(own, asked=asked, adjacency=order)
        read = closed_forms.read([closed_forms.oriented(curve, order)], one)
        orders.add_orders(np.array([row]), read, side)


def _about(thresholds: Any, own: Question, results: dict[str, Bracket], row: int) -> Any:
    """Thresholds, with those that are asked for, and more about an ε as far as it is known."""
    more: list[Any] = [np.zeros(1)]
    for quantity, at in own.asked:
        known = known_threshold(quantity, at, 1)
        if known is not None:
            more.append(known)
        elif quantity.unit == "nats":  # (what is read is a threshold itself)
            more.append(
                limit_plan.about_epsilon(
                    results[quantity.name].lower[row], results[quantity.name].upper[row]
                )
            )
    found = np.concatenate([thresholds, *more])
    return np.unique(found[(found >= 0.0) & np.isfinite(found)])


def jumps_of(groups: Groups, row: int) -> Jumps | None:
    """Bounds by jumps of the one sampled mechanism that a setting consists of, if it does."""
    found: list[Jumps | None] = []
    for stacked, counts in groups:
        for k in np.flatnonzero(counts[row] > 0.0):
            mechanism, uses = take(stacked, (row, k)), float(counts[row, k])
            if isinstance(mechanism, SubsampledGaussian):
                sigma, p = float(mechanism.noise_multiplier), float(mechanism.sampling_prob)
                own = SampledRun(sigma, p, uses)
                found.append(Jumps(own, (own,)) if p > 0.0 else None)
            elif isinstance(mechanism, GaussianMixture):
                sigma = float(mechanism.noise_multiplier)
                law = mechanism.shifts, mechanism.weights
                found.append(counted_jumps.jumps_of_shifts(sigma, *law, uses))
            else:
                return None
    return found[0] if len(found) == 1 else None


def _narrow(known: Bracket, row: int, found: Bracket) -> None:
    known.lower[row] = np.fmax(known.lower[row], found.lower[0])
    known.upper[row] = np.fmin(known.upper[row], found.upper[0])
