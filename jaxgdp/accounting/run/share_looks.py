"""Looks at curves of a seldom sampled record, on ever more points; which ones steers, what they say
is certified."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...bracket import Bracket
from ...mechanisms.composition import Groups
from ..certify import closed_forms
from ..certify.curve import Curve, gaussian_parts
from ..question import USUAL, Question
from . import share_places
from .rows import take
from .running_brackets import unknown, worst
from .share_places import Points

if TYPE_CHECKING:
    from ..certify import seldom_sampled
    from ..certify.seldom_sampled import Focus, Products

LOOKS = 4  # at curves on ever more points, at most
HELPS = 0.8  # part of a width that more points have to leave at most
MOST_MORE = 8  # how many times as many points the next curve has at most
_NEARLY = 1.2  # width over the width promised that is expected of twice as many, not to skip them
# how many times as many points as usual a first curve has at the usual accuracy, and where a number
# takes more of them
_ROUGH, _LESS_ROUGH = 0.25, 0.5
# arguments that are rates, and the share of the least one that does not matter
_RATES, _FAINT = {"fpr", "fpr_floor", "delta", "approximation"}, 1e-6
# part of a width that twice as many points leave, about, the width over the width promised up to
# which that is tried, and the relative width of a bracket that says nothing
_LEAVES, _NEARLY_ALL, _NOTHING = 0.3, 0.9, 0.97
# points of a first curve about a place beyond the usual accuracy, octaves also at that, and the
# products of masses of a second one
_FIRST, _PRODUCTS_NEXT = Points(1.0, 2), 5e9
_MOST_LEVELS = 5  # about a place
_MANY_RARE = 100.0  # expected steps with the record, from which on most of them are not large
_UNSEEN = 1e-290  # number up to which tests are not kept


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


class Looks:
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
        for look in range(LOOKS):
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
            if left <= 1.0 or (look and seen and self.stuck(HELPS)):
                break
            # (where others know a lower side, an upper one may be what is left)
            helped = left * self.own.rtol < _NOTHING and left <= HELPS * before
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
        more, most = 2, MOST_MORE if usual else 4
        while more < most and leaves ** math.log2(more) * self.width > _NEARLY:
            more *= 2
        return more

    def faint(self) -> float:
        """Mass that does not matter, as far as what is looked for is known already."""
        if self.own.keep or self.own.rtol < USUAL:
            return 0.0
        return _faint(self.run, self.own, self.results, self.at)


def _narrow(each: tuple[dict[str, Bracket], ...], row: int, curve: Curve, own: Question) -> None:
    with np.errstate(all="ignore"):
        found = closed_forms.read([curve], own)
    for results in each:
        for name, bracket in found.items():
            known = results[name]
            known.lower[row] = np.fmax(known.lower[row], bracket.lower[0])
            known.upper[row] = np.fmin(known.upper[row], bracket.upper[0])
