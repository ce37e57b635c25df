"""Answers for runs in which a record is hardly ever sampled, from the law given that it is: see
``accounting.certify.seldom_sampled``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...bracket import Bracket
from ...mechanisms.composition import Groups
from ...numerics.precision import with_float64
from ...numerics.shapes import Int
from ..certify.curve import Curve
from ..question import NO_EXECUTOR, USUAL, Answer, Question
from . import share_places
from .running_brackets import unknown, worst
from .share_looks import HELPS, LOOKS, MOST_MORE, Looks
from .share_settings import MANY_STEPS, run_of

if TYPE_CHECKING:
    from ..certify import seldom_sampled

# width over 1e-3 of it from which on more points will not do, and the work from which on they take
# too long
FAR, _MOST_WORK = 200.0, 2.7e9
# times as much work as a last curve may be, beyond the usual accuracy, where no more is left
_TIMES_AT_LAST, _LEFT_AT_LAST = 2.0, 4.5
# … as long as twice as many points leave so much of a width at most, as they do but for rounding
_HELPS_AT_LAST = 0.4
# width over the width promised up to which twice as many points may do, and four times as many
TWICE, _FOUR_TIMES = 2.3, 10.0
# the noise up to which lattices do more than many times as many points, and the work of the last
# curve at the usual accuracy
_NOISE_OF_LATTICES, _MOST_WORK_USUAL = 0.25, 3e9
# products of masses of curves about a place in all where no lattice is tried, beside one, before
# one, also of few steps, which it may know well; how many times as many there are beyond the usual
# accuracy
_PRODUCTS_ALONE, _PRODUCTS, _PRODUCTS_BEFORE = 4.8e10, 2.6e10, 6e9
_PRODUCTS_FEW_STEPS, _TIMES_FINER = 4e9, 1.5
_LEFT_ALONE = 50.0  # width over the width promised that no lattice makes much of after those


@with_float64
def answer(groups: Groups, rows: Int[np.ndarray, " rows"], question: Question) -> Answer:
    """Certified numbers of settings of a batch in which the record is seldom sampled.

    Args:
        groups: as for the engine, uses as they were stated.
        rows: of the settings, of those that are ``seldom``.
        question: about these.

    Method: docs/method/seldom.md#seldom-share
    """
    number = len(rows)
    results = {quantity.name: unknown(number) for quantity, _ in question.asked}
    curves: list[Any] = [None] * number
    for i, row in enumerate(rows):
        own = question.take(np.array([i]), number)
        curves[i] = _narrowed(groups, int(row), own, results, i)
    none, executors = np.zeros(number, np.int64), np.full(number, NO_EXECUTOR, object)
    return Answer(results, none, [None] * number, curves if question.keep else [], executors)


@with_float64
def narrow(
    groups: Groups,
    row: int,
    own: Question,
    results: dict[str, Bracket],
    finer: int = 1,
    times: float = 1.0,
) -> None:
    """Narrow the numbers of a setting in place, where its record is seldom sampled.

    Args:
        groups: of the whole batch.
        row: the setting's.
        own: what is asked of it.
        results: of the whole batch.
        finer: how many times as many points as usual the first curve has.
        times: how many times as much work as usual curves may be.

    Method: docs/method/seldom.md#seldom-share
    """
    _narrowed(groups, row, own, results, row, finer, times)


def narrow_further(groups: Groups, row: int, own: Question, results: dict[str, Bracket]) -> bool:
    """Narrow the numbers of a setting whose first curve left them wide, where more points may do;
    whether these were near what is asked.

    Args:
        groups, row, own, results: as for :func:`narrow`.
    """
    left = worst(results, own, row)
    if 1.0 < left <= _far(own):
        narrow(groups, row, own, results, finer=_foreseen(left, own))
    return left <= _far(own)


def on_most_points(groups: Groups, row: int, own: Question, results: dict[str, Bracket]) -> bool:
    """Whether a setting that is ``seldom`` has had curves on as many points as may be, and these
    left a number so near to what is asked that no lattice shows more, at the usual accuracy.

    Args:
        groups, row, own, results: as for :func:`narrow`.

    Method: docs/method/seldom.md#seldom-which
    """
    left = worst(results, own, row)
    if own.rtol < USUAL or own.keep or left > _LEFT_ALONE:
        return False
    run = run_of(groups, row)
    if run is None:
        return False
    if share_places.served(own):  # (at a known loss lattices of many steps show less, and are long)
        return share_places.at_known_loss(own) and run.steps > MANY_STEPS
    return left <= _FOUR_TIMES and not _lattices_first(run)


def narrow_at_last(groups: Groups, row: int, own: Question, results: dict[str, Bracket]) -> None:
    """The same, of accuracies beyond 1e-3, where nothing else did and twice as many points as are
    usual may do: some ten seconds.

    Args:
        groups, row, own, results: as for :func:`narrow`.
    """
    if share_places.served(own):  # (a lattice about its place takes less)
        return
    if own.rtol < USUAL and 1.0 < worst(results, own, row) <= _LEFT_AT_LAST:
        narrow(groups, row, own, results, times=_TIMES_AT_LAST)


def _narrowed(
    groups: Groups,
    row: int,
    own: Question,
    results: dict[str, Bracket],
    at: int,
    finer: int = 1,
    times: float = 1.0,
) -> Curve | None:
    """Narrow the numbers of a setting in place, on ever more points while these help, with so many
    times the usual work; the last curve.
    """
    from ..certify import seldom_sampled

    run = run_of(groups, row)
    if run is None:
        return None
    least = 1 if own.rtol >= USUAL else 2 if own.rtol >= 0.99e-4 else 4
    most = times * (_MOST_WORK_USUAL if least == 1 else 3.0 * _MOST_WORK)
    looks, points = Looks(run, groups, row, own, results, at), finer * least
    while points > least and seldom_sampled.work(run, points) > most:
        points //= 2
    if share_places.served(own):
        if looks.about_a_place(_products(run, own, finer == 1)):
            return looks.curve
    if finer == 1 and not looks.at_few_points():
        return looks.curve
    helps, left = HELPS if times == 1.0 else _HELPS_AT_LAST, worst(results, own, at)
    for look in range(LOOKS):
        if look and seldom_sampled.work(run, points) > most:
            break
        before, left = left, looks.look(points, looks.faint())
        if left <= 1.0 or left > _far(own) or looks.stuck(helps):
            break
        # (what other means know of one side may be what is left)
        if least == 1 and finer > 1 and left > helps * before:
            break
        more = looks.more()
        if more > 2 and finer == 1 and least == 1 and not own.keep and _lattices_first(run):
            break
        while more > 2 and seldom_sampled.work(run, more * points) > most:
            more //= 2
        points *= more
    return looks.curve


def _products(run: seldom_sampled.Run, own: Question, first: bool) -> float:
    """How many products curves about a place take in all, before lattices or after them."""
    if own.rtol < USUAL:
        return _TIMES_FINER * _PRODUCTS
    few = run.steps <= MANY_STEPS
    if not few and share_places.at_known_loss(own):  # (what is asked again is known)
        return _PRODUCTS_ALONE
    if not first:
        return _PRODUCTS
    return _PRODUCTS_FEW_STEPS if few else _PRODUCTS_BEFORE


def _lattices_first(run: seldom_sampled.Run) -> bool:
    """Whether a lattice is more likely to do than a curve on many times as many points, at the
    usual accuracy.
    """
    return run.sigma <= _NOISE_OF_LATTICES or run.steps <= MANY_STEPS


def _foreseen(left: float, own: Question) -> int:
    """How many times as many points a curve has that is looked at when lattices have left so much
    of a width.
    """
    if left <= TWICE:
        return 2
    return 4 if left <= _FOUR_TIMES or own.rtol < USUAL else MOST_MORE


def _far(own: Question) -> float:
    """Width over the width promised from which on more points will not do: what is wide is so for
    another reason, however little is asked.
    """
    return FAR * min(1.0, 1e-3 / float(own.rtol))
