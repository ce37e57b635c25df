"""Answers for runs in which a record is hardly ever sampled, from the law given that it is: see
``accounting.certify.seldom_sampled``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...bracket import Bracket
from ...mechanisms import SubsampledGaussian
from ...mechanisms.composition import Groups
from ...numerics.precision import with_float64
from ...numerics.shapes import Bool, Int
from ..certify import closed_forms
from ..certify.curve import Curve, gaussian_parts
from ..question import NO_EXECUTOR, USUAL, Answer, Question
from .rows import take
from .running_brackets import unknown, worst

if TYPE_CHECKING:
    from ..certify import seldom_sampled

# expected number of times, rate and noise up to which lattices show less or take longer, as a rule
_HARDLY_EVER, _RATE, _NOISE = 0.05, 1e-6, 0.4
# … and the noise of runs of so many steps that lattices are dense or long: between, a lattice of
# many settings takes a tenth of the time
_NOISE_OF_OTHERS, _LATTICES = 0.6, (300.0, 1e4)
LITTLE_NOISE = 0.13  # up to which lattices show less than the number of jumps does, as a rule
# curves on ever more points; width over 1e-3 of it from which on more of them will not do,
# part of a width that they have to leave at most, and the work from which on they take too long
_LOOKS, _FAR, _HELPS, _MOST_WORK = 4, 200.0, 0.8, 2.7e9
_NEARLY = 1.2  # width over the width promised that is expected of twice as many, not to skip them
# times as much work as a last curve may be, beyond the usual accuracy, where no more is left
_TIMES_AT_LAST, _LEFT_AT_LAST = 2.0, 4.5
# … as long as twice as many points leave so much of a width at most, as they do but for rounding
_HELPS_AT_LAST = 0.4
_TWICE = 3.0  # width over the width promised up to which twice as many points may do


def seldom(groups: Groups, most_noise: float = np.inf) -> Bool[np.ndarray, " settings"]:
    """Settings of a batch that are answered so first: others only where lattices leave a number
    wide.

    Args:
        groups: of the whole batch.
        most_noise: of those that are meant.

    Method: docs/method/seldom.md#seldom-which
    """
    number = len(groups[0][1])
    components = sum(np.sum(np.asarray(count) > 0.0, axis=-1) for _, count in groups)
    found = np.zeros(number, bool)
    for mechanism, count in groups:
        if not isinstance(mechanism, SubsampledGaussian):
            continue
        p, sigma = np.asarray(mechanism.sampling_prob), np.asarray(mechanism.noise_multiplier)
        others = (count < _LATTICES[0]) | (count > _LATTICES[1])
        large = sigma <= np.where(others, _NOISE_OF_OTHERS, _NOISE)
        rare = (p * count <= _HARDLY_EVER) | (p <= _RATE) | large
        found |= np.any((count > 1.0) & rare & (sigma <= most_noise), axis=-1)
    found &= np.asarray(components) == 1
    for row in np.flatnonzero(found):
        found[row] = _run(groups, int(row)) is not None
    return found


def hardly_ever(groups: Groups) -> Bool[np.ndarray, " settings"]:
    """Settings of one sampled Gaussian mechanism whose record is sampled so seldom that lattices
    keep too few digits for accuracies beyond 1e-3.

    Method: docs/method/seldom.md#seldom-which
    """
    rare = [
        (p * count <= _HARDLY_EVER) | (p <= _RATE)
        for mechanism, count in groups
        if isinstance(mechanism, SubsampledGaussian)
        for p in (np.asarray(mechanism.sampling_prob),)
    ]
    some = np.zeros(len(groups[0][1]), bool)
    for each in rare:
        some |= np.all(each, axis=-1)
    return some & seldom(groups)


def _run(groups: Groups, row: int) -> seldom_sampled.Run | None:
    """The one sampled Gaussian mechanism that a setting consists of, if its record is seldom
    sampled."""
    # (loaded where it is used: with the mechanism that it shares sums with)
    from ..certify import seldom_sampled

    found: list[seldom_sampled.Run] = []
    for stacked, counts in groups:
        for k in np.flatnonzero(counts[row] > 0.0):
            uses = float(counts[row, k])
            if not isinstance(stacked, SubsampledGaussian) or not uses.is_integer():
                return None
            mechanism = take(stacked, (row, k))
            sigma, p = float(mechanism.noise_multiplier), float(mechanism.sampling_prob)
            found.append(seldom_sampled.Run(sigma, p, int(uses)))
    return found[0] if len(found) == 1 and seldom_sampled.serves(found[0]) else None


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

    run = _run(groups, row)
    if run is None:
        return None
    least = 1 if own.rtol >= USUAL else 2 if own.rtol >= 0.99e-4 else 4
    parts, most = (
        gaussian_parts(take(groups, row)),
        times * _MOST_WORK * (1.0 if least == 1 else 3.0),
    )
    finer, curve, before = finer * least, None, np.inf
    alone = {name: unknown(at + 1) for name in results}
    while finer > least and seldom_sampled.work(run, finer) > most:
        finer //= 2
    for look in range(_LOOKS):
        if look and seldom_sampled.work(run, finer) > most:
            break
        with np.errstate(all="ignore"):
            curve = seldom_sampled.both_sides(run, parts, finer)
            curve = closed_forms.oriented(curve, own.adjacency)
        _narrow((results, alone), at, curve, own)
        left, mine = worst(results, own, at), worst(alone, own, at)
        helps = _HELPS if times == 1.0 else _HELPS_AT_LAST
        if left <= 1.0 or left > _far(own) or (look and mine > helps * before):
            break
        # (twice as many points leave as much of it as they did before)
        more = 4 if look and mine * mine > _NEARLY * before else 2
        finer *= more if seldom_sampled.work(run, more * finer) <= most else 2
        before = mine
    return curve


def _far(own: Question) -> float:
    """Width over the width promised from which on more points will not do: what is wide is so for
    another reason, however little is asked.
    """
    return _FAR * min(1.0, 1e-3 / float(own.rtol))


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
        narrow(groups, row, own, results, finer=2 if left <= _TWICE else 4)
    return left <= _far(own)


def narrow_at_last(groups: Groups, row: int, own: Question, results: dict[str, Bracket]) -> None:
    """The same, of accuracies beyond 1e-3, where nothing else did and twice as many points as are
    usual may do: some ten seconds.

    Args:
        groups, row, own, results: as for :func:`narrow`.
    """
    if own.rtol < USUAL and 1.0 < worst(results, own, row) <= _LEFT_AT_LAST:
        narrow(groups, row, own, results, times=_TIMES_AT_LAST)


def _narrow(each: tuple[dict[str, Bracket], ...], row: int, curve: Curve, own: Question) -> None:
    with np.errstate(all="ignore"):
        found = closed_forms.read([curve], own)
    for results in each:
        for name, bracket in found.items():
            known = results[name]
            known.lower[row] = np.fmax(known.lower[row], bracket.lower[0])
            known.upper[row] = np.fmin(known.upper[row], bracket.upper[0])
