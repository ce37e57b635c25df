"""Answers for runs in which a record is hardly ever sampled, from the law given that it is: see
``accounting.certify.seldom_sampled``."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...bracket import Bracket
from ...mechanisms import SubsampledGaussian
from ...mechanisms.composition import Groups
from ...numerics.precision import with_float64
from ...numerics.shapes import Array, Bool, Float, Int
from ..certify import closed_forms
from ..certify.curve import Curve, gaussian_parts
from ..question import NO_EXECUTOR, USUAL, Answer, Question
from . import share_places
from .batch import known_threshold
from .rows import take
from .running_brackets import unknown, worst
from .share_places import Points

if TYPE_CHECKING:
    from ..certify import seldom_sampled
    from ..certify.seldom_sampled import Focus, Products

# expected number of times, rate and noise up to which lattices show less or take longer, as a rule
_HARDLY_EVER, _RATE, _NOISE = 0.05, 1e-6, 0.4
# … and where whole curves are wanted: the far end of a lattice is seconds of work
_SELDOM = 50.0
# … and the noise of runs of so many steps that lattices are dense or long: between, a lattice of
# many settings takes a tenth of the time
_NOISE_OF_OTHERS, _LATTICES = 0.6, (300.0, 1e4)
LITTLE_NOISE = 0.13  # up to which lattices show less than the number of jumps does, as a rule
# curves on ever more points; width over 1e-3 of it from which on more of them will not do,
# part of a width that they have to leave at most, and the work from which on they take too long
_LOOKS, FAR, _HELPS, _MOST_WORK = 4, 200.0, 0.8, 2.7e9
_NEARLY = 1.2  # width over the width promised that is expected of twice as many, not to skip them
# times as much work as a last curve may be, beyond the usual accuracy, where no more is left
_TIMES_AT_LAST, _LEFT_AT_LAST = 2.0, 4.5
# … as long as twice as many points leave so much of a width at most, as they do but for rounding
_HELPS_AT_LAST = 0.4
# width over the width promised up to which twice as many points may do, and four times as many
TWICE, _FOUR_TIMES = 2.3, 10.0
# the noise up to which lattices do more than many times as many points, and the work of the last
# curve at the usual accuracy; how many times as many points it has at most
_NOISE_OF_LATTICES, _MOST_WORK_USUAL, _MOST_MORE = 0.25, 3e9, 8
# how many times as many points as usual a first curve has at the usual accuracy, and where a number
# takes more of them
_ROUGH, _LESS_ROUGH = 0.25, 0.5
# arguments that are rates, and the share of the least one that does not matter
_RATES, _FAINT = {"fpr", "fpr_floor", "delta", "approximation"}, 1e-6
# part of a width that twice as many points leave, about, the width over the width promised up to
# which that is tried, and the relative width of a bracket that says nothing
_LEAVES, _NEARLY_ALL, _NOTHING = 0.3, 0.9, 0.97
# points of a first curve about a place beyond the usual accuracy, octaves also at that; products of
# masses in all where no lattice is tried, beside one, before one, also of few steps, which it may
# know well, and of a second curve; how many times as many there are beyond the usual accuracy
_FIRST = Points(1.0, 2)
_PRODUCTS_ALONE, _PRODUCTS, _PRODUCTS_BEFORE = 4.8e10, 2.6e10, 6e9
_PRODUCTS_FEW_STEPS, _PRODUCTS_NEXT = 4e9, 5e9
_LEFT_ALONE = 50.0  # width over the width promised that no lattice makes much of after those
_MOST_LEVELS = 5  # about a place
_MANY_RARE = 100.0  # expected steps with the record, from which on most of them are not large
_TIMES_FINER = 1.5
_UNSEEN = 1e-260  # number up to which tests are not kept
# log of a δ of many steps, up to which lattices show less than curves, and of so many that lattices
# take long
_LOG_SMALL, _LOG_SMALL_OF_LONG, _LONG = -70.0, -25.0, 1e6
_AS_DEEP = 0.8  # times that of large steps, that the log of a central limit is at least


def seldom(
    groups: Groups, most_noise: float = np.inf, curves: bool = False
) -> Bool[np.ndarray, " settings"]:
    """Settings of a batch that are answered so first: others only where lattices leave a number
    wide.

    Args:
        groups: of the whole batch.
        most_noise: of those that are meant.
        curves: whether whole curves are wanted, at the usual accuracy.

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
        rare = (p * count <= (_SELDOM if curves else _HARDLY_EVER)) | (p <= _RATE) | large
        found |= np.any((count > 1.0) & rare & (sigma <= most_noise), axis=-1)
    found &= np.asarray(components) == 1
    for row in np.flatnonzero(found):
        found[row] = _run(groups, int(row)) is not None
    return found


def asked_first(groups: Groups, question: Question) -> Bool[np.ndarray, " settings"]:
    """Settings of a batch that are answered so before any lattice: those that are ``seldom``, and
    of many steps also those whose δ at a known loss is so small that lattices show little of it.

    Method: docs/method/seldom.md#seldom-which
    """
    found = seldom(groups, curves=question.keep and question.rtol >= USUAL)
    if question.rtol < USUAL or not share_places.at_known_loss(question):
        return found
    from ..certify import seldom_sampled

    ((quantity, asked),) = question.asked
    losses = known_threshold(quantity, asked, len(found))
    assert losses is not None
    limits = _log_of_limit(groups, losses)
    for row in np.flatnonzero(~found & (limits < _LOG_SMALL_OF_LONG)):
        run = _run(groups, int(row))
        if run is not None:
            small = _LOG_SMALL_OF_LONG if run.steps > _LONG else _LOG_SMALL
            steps = seldom_sampled.LargeSteps.of(run, float(losses[row]))
            found[row] = steps.log_delta < small and limits[row] < _AS_DEEP * steps.log_delta
    return found


def _log_of_limit(
    groups: Groups, losses: Float[Array, " settings"]
) -> Float[np.ndarray, " settings"]:
    """Logs of what the central limit of many steps of a sampled Gaussian mechanism has beyond a
    loss, about; 0 of other settings.
    """
    found = np.zeros(len(groups[0][1]))
    for mechanism, count in groups:
        if isinstance(mechanism, SubsampledGaussian):
            p, sigma = np.asarray(mechanism.sampling_prob), np.asarray(mechanism.noise_multiplier)
            with np.errstate(all="ignore"):
                mu = p * np.sqrt(count * np.expm1(sigma**-2.0))
                far = np.maximum(losses[:, None] / mu - 0.5 * mu, 0.0)
            logs = np.where(count > _LATTICES[1], -0.5 * far * far, 0.0)
            found = np.minimum(found, np.min(logs, axis=-1))
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


class _Look(NamedTuple):
    """At a curve: how many times as many points it has as usual, and the mass that does not matter;
    see ``seldom_sampled.both_sides``.
    """

    finer: float
    faint: float


def _rough(run: seldom_sampled.Run, own: Question) -> _Look | None:
    """A look at few points, which may do at the usual accuracy."""
    if own.keep or own.rtol < USUAL:
        return None
    sharp = any(run.sigma > quantity.sharp_beyond for quantity, _ in own.asked)
    return _Look(_LESS_ROUGH if sharp else _ROUGH, _faint(run, own))


def _faint(
    run: seldom_sampled.Run, own: Question, results: dict[str, Bracket] | None = None, at: int = 0
) -> float:
    """Mass of all runs that does not matter: a small share of those in which the record is sampled
    of the smallest rate asked for, and a small one of what is known of a probability at a
    threshold, which may be anything; 0 where nothing is.
    """
    share, most = -math.expm1(-run.log_never) * min(1.0, run.tau), math.inf
    for (quantity, _), query in zip(own.asked, own.rates(1).queries, strict=True):
        if quantity.argument in _RATES:
            most = min(most, share * float(np.exp(query[0])))
        elif quantity.argument == "prior":
            most = min(most, share * float(min(query[0], 1.0 - query[0])))
        elif quantity.argument is not None:
            known = 0.0
            if results is not None and quantity.unit == "probability":
                known = float(results[quantity.name].lower[at])
            most = min(most, max(known, 0.0))
    # (the same where a little more is known)
    least = _FAINT * min(most, share)
    return math.ldexp(1.0, 8 * (math.frexp(least)[1] // 8)) if least > 0.0 else 0.0


class _Looks:
    """At curves of one setting, on ever more points.

    Args:
        run: its one mechanism.
        groups: of the whole batch.
        row: the setting's.
        own: what is asked of it.
        results: what is known of the batch, narrowed in place.
        at: the setting's place there.
    """

    def __init__(
        self,
        run: seldom_sampled.Run,
        groups: Groups,
        row: int,
        own: Question,
        results: dict[str, Bracket],
        at: int,
    ):
        self.run, self.own, self.results, self.at = run, own, results, at
        self.parts = gaussian_parts(take(groups, row))
        self.alone = {name: unknown(at + 1) for name in results}
        self.curve: Curve | None = None
        # width over the width promised by these curves alone, the last one and the one before, and
        # how many times the points were doubled between them
        self.width, self.before, self.doubled = np.inf, np.inf, 1.0
        self.finer = 0.0
        self.products: Products | None = None

    def look(self, finer: float, faint: float = 0.0, focus: Focus | None = None) -> float:
        """Width over the width promised, of what is known then."""
        from ..certify import seldom_sampled

        with np.errstate(all="ignore"):
            curve, self.products = seldom_sampled.counted(self.run, self.parts, finer, faint, focus)
            self.curve = closed_forms.oriented(curve, self.own.adjacency)
        _narrow((self.results, self.alone), self.at, self.curve, self.own)
        self.before, self.width = self.width, worst(self.alone, self.own, self.at)
        self.doubled = math.log2(finer / self.finer) if self.finer else 1.0
        self.finer = finer
        return worst(self.results, self.own, self.at)

    def at_few_points(self) -> bool:
        """Look at few points; whether more of them may do, where these do not."""
        one = _rough(self.run, self.own)
        while one is not None:
            if self.look(*one) <= 1.0:
                return False
            if one.faint == 0.0 and self._unseen():
                return False
            again = one.finer < _LESS_ROUGH and _LEAVES * self.width <= _NEARLY_ALL
            one = one._replace(finer=_LESS_ROUGH) if again else None
        return True

    def _unseen(self, place: float | None = None) -> bool:
        """Whether a number, or the FPR of a test at the place where it is read off, is so small
        that no curve has more of it than an upper side.
        """
        sides = (self.alone[quantity.name].upper[self.at] for quantity, _ in self.own.asked)
        rates = [float(upper) for upper in sides]
        if place is not None:
            fall = math.exp(-min(max(place, 0.0), 700.0))
            rates += [
                fall * (float(np.max(at)) if quantity.argument in _RATES else rate)
                for (quantity, at), rate in zip(self.own.asked, rates, strict=True)
            ]
        return min(rates) <= _UNSEEN and self.width * self.own.rtol >= _NOTHING

    def about_a_place(self, most: float) -> bool:
        """Look at curves on ever more points about the one place where a number is read off, while
        these help, with so many products in all; whether there is such a place.
        """
        from ..certify import seldom_sampled

        widths = share_places.Widths(self.run.log_never > _MANY_RARE)
        rough = _rough(self.run, self.own)
        points = _FIRST if rough is None else Points(rough.finer, _FIRST.octaves)
        points = points._replace(levels=self._levels())
        left = worst(self.results, self.own, self.at)
        for look in range(_LOOKS):
            place = share_places.place(self.own, self.results, self.at)
            if place is None:
                points = points._replace(octaves=0)
                if look:
                    return False
            focus = None
            if place is not None and points.octaves > 0:
                focus = seldom_sampled.Focus(place, points.octaves, points.levels)
            before, left = left, self.look(points.finer, self.faint(), focus)
            seen = self.width * self.own.rtol < _NOTHING
            assert self.products is not None
            widths.add(points, self.width if seen else math.inf, self.products)
            if left <= 1.0 or (look and seen and self.stuck(_HELPS)):
                break
            # (where others know a lower side, an upper one may be what is left)
            helped = left * self.own.rtol < _NOTHING and left <= _HELPS * before
            if self._unseen(None if helped else place):
                break
            if focus is not None and not seen and self.products.finer == 0.0:
                break  # no sum is there
            most -= sum(self.products)
            more = widths.next(most if look else min(most, _PRODUCTS_NEXT), self._levels())
            if more is None:
                break
            points = more
        return True

    def _levels(self) -> int:
        """On how many levels about the place there are more points, where it is known."""
        from ..certify import seldom_sampled

        place = share_places.place(self.own, self.results, self.at)
        if place is None:
            return 1
        return min(seldom_sampled.LargeSteps.of(self.run, place).levels, _MOST_LEVELS)

    def stuck(self, helps: float) -> bool:
        """Whether more points left more than such a part of the width."""
        return self.width > helps * self.before

    def more(self) -> int:
        """How many times as many points the next curve has: as many as leave enough of the width,
        where twice as many leave as much of it as they did before.
        """
        usual = self.own.rtol >= USUAL
        if np.isfinite(self.before) and self.before * self.own.rtol < _NOTHING:
            leaves = (self.width / self.before) ** (1.0 / self.doubled)
        elif usual:
            leaves = _LEAVES
        else:
            return 2
        more, most = 2, _MOST_MORE if usual else 4
        while more < most and leaves ** math.log2(more) * self.width > _NEARLY:
            more *= 2
        return more

    def faint(self) -> float:
        """Mass that does not matter, as far as what is looked for is known already."""
        if self.own.keep or self.own.rtol < USUAL:
            return 0.0
        return _faint(self.run, self.own, self.results, self.at)


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
    most = times * (_MOST_WORK_USUAL if least == 1 else 3.0 * _MOST_WORK)
    looks, points = _Looks(run, groups, row, own, results, at), finer * least
    while points > least and seldom_sampled.work(run, points) > most:
        points //= 2
    if share_places.served(own):
        if looks.about_a_place(_products(run, own, finer == 1)):
            return looks.curve
    if finer == 1 and not looks.at_few_points():
        return looks.curve
    helps, left = _HELPS if times == 1.0 else _HELPS_AT_LAST, worst(results, own, at)
    for look in range(_LOOKS):
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
    few = run.steps <= _LATTICES[1]
    if not few and share_places.at_known_loss(own):  # (what is asked again is known)
        return _PRODUCTS_ALONE
    if not first:
        return _PRODUCTS
    return _PRODUCTS_FEW_STEPS if few else _PRODUCTS_BEFORE


def _lattices_first(run: seldom_sampled.Run) -> bool:
    """Whether a lattice is more likely to do than a curve on many times as many points, at the
    usual accuracy.
    """
    return run.sigma <= _NOISE_OF_LATTICES or run.steps <= _LATTICES[1]


def _far(own: Question) -> float:
    """Width over the width promised from which on more points will not do: what is wide is so for
    another reason, however little is asked.
    """
    return FAR * min(1.0, 1e-3 / float(own.rtol))


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
    run = _run(groups, row)
    if run is None:
        return False
    if share_places.served(own):  # (at a known loss lattices of many steps show less, and are long)
        return share_places.at_known_loss(own) and run.steps > _LATTICES[1]
    return left <= _FOUR_TIMES and not _lattices_first(run)


def _foreseen(left: float, own: Question) -> int:
    """How many times as many points a curve has that is looked at when lattices have left so much
    of a width.
    """
    if left <= TWICE:
        return 2
    return 4 if left <= _FOUR_TIMES or own.rtol < USUAL else _MOST_MORE


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


def _narrow(each: tuple[dict[str, Bracket], ...], row: int, curve: Curve, own: Question) -> None:
    with np.errstate(all="ignore"):
        found = closed_forms.read([curve], own)
    for results in each:
        for name, bracket in found.items():
            known = results[name]
            known.lower[row] = np.fmax(known.lower[row], bracket.lower[0])
            known.upper[row] = np.fmin(known.upper[row], bracket.upper[0])
