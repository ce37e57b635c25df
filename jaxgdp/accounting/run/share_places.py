"""Where the sums of a seldom sampled record are laid out on more points, for numbers that are read
off at one privacy loss, and on how many; nothing here is part of a certificate."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...adjacency import Adjacency
from ...bracket import Bracket
from ..question import USUAL, Question
from .batch import known_threshold
from .rows import take

if TYPE_CHECKING:
    from ..certify import seldom_sampled

_KNOWN = 0.7  # lower over upper side of a number from which on it is a place
_DIGITS = 2  # of a place, so that it is the same when it is asked for again
_AIM = 0.8  # the width over the width promised that is aimed at
_BLIND = 8.0  # times as many points there are at the place where curves showed nothing
# power of the distance between points that a width goes with, at least and at most, and below which
# points elsewhere are what more are needed of
_FALLS, _SLOW = (1.2, 1.8), 1.5
_USUAL_LEVELS = 8.0  # levels of the usual number of points that have all products, about
_LITTLE_MORE = 2.5  # times as many points, up to which half of the usual ones do elsewhere
# points elsewhere, over the usual ones, and the part of the products about a place that they may
# take in any case, also where there are many rare steps, and where they decide
_MOST_FINER, _ELSEWHERE, _WHERE_SLOW = 8.0, (0.1, 0.25), 0.35
_BETWEEN = 1.5  # times as many points, between two powers of two


class Points(NamedTuple):
    """How many points there are.

    Attributes:
        finer: how many times as many as usual.
        octaves, levels: about a place; see ``seldom_sampled.Focus``.
    """

    finer: float
    octaves: int = 0
    levels: int = 1

    @property
    def near(self) -> float:
        """How many times as many as usual there are at the place."""
        return self.finer * 2.0**self.octaves

    @property
    def of_place(self) -> float:
        """Products on the levels about the place, over those of one of the usual number."""
        return self.near**2 * self.levels


def served(own: Question) -> bool:
    """Whether one number is asked for, and read off at one loss of removing a record that is, or
    may become, known; beyond the usual accuracy, which points elsewhere count for too, at one that
    is known. Losses of adding a record are bounded, and points elsewhere count for them.
    """
    if own.keep or len(own.asked) != 1 or own.adjacency is Adjacency.ADD:
        return False
    ((quantity, _),) = own.asked
    known = own.rtol >= USUAL or quantity.threshold is not None
    return quantity.worse_of_orders and known


def at_known_loss(own: Question) -> bool:
    """Whether the number asked for is read off at a loss that is part of the question."""
    return served(own) and own.asked[0][0].threshold is not None


def place(own: Question, results: dict[str, Bracket], at: int) -> float | None:
    """The privacy loss of removing a record that the number asked for is read off at, about, if it
    is known.

    Args:
        own: what is asked.
        results: what is known of a batch.
        at: the setting's place there.
    """
    if not served(own):
        return None
    ((quantity, asked),) = own.asked
    sides, known = take(results[quantity.name], at), known_threshold(quantity, asked, 1)
    if known is not None:
        loss = float(known[0])
    elif sides.lower > _KNOWN * sides.upper:
        loss = 0.5 * float(sides.lower + sides.upper)
    else:
        return None
    return float(f"{loss:.{_DIGITS}g}")


class Widths:
    """Widths over the width promised of curves on ever more points about a place: they go with
    nearly the square of the distance between points there, as long as these are what decides.

    Args:
        many: whether there are so many rare steps that a body of those which are not large decides,
            too, whose points lie elsewhere.

    Method: docs/method/seldom.md#seldom-which
    """

    def __init__(self, many: bool = False) -> None:
        self.elsewhere = _ELSEWHERE[many]
        self.points = Points(1.0)
        self.width, self.falls = math.inf, _FALLS[-1]
        self.usual, self.finer = math.inf, math.inf

    def add(self, points: Points, width: float, products: seldom_sampled.Products) -> None:
        """A curve on so many points, and its width: infinite where that tells nothing."""
        self.falls = _FALLS[-1]
        if width < self.width < math.inf and points.near > self.points.near:
            more = math.log(points.near / self.points.near)
            self.falls = float(np.clip(math.log(self.width / width) / more, *_FALLS))
            if self.falls < _SLOW:
                self.elsewhere = _WHERE_SLOW
        self.points, self.width = points, width
        # products, of the usual number of points and of one finer level of as many
        self.usual = products.usual / points.finer**2
        finer = products.finer / points.of_place
        self.finer = finer if points.octaves else self.usual / _USUAL_LEVELS

    def work(self, points: Points) -> float:
        """Products that a curve takes, about."""
        near = self.finer * points.of_place if points.octaves else 0.0
        return self.usual * points.finer**2 + near

    def next(self, most: float, levels: int = 1) -> Points | None:
        """The points on which a curve is expected to be as narrow as asked, or as many of them as
        take so many products at most, on so many levels about the place; None where these are not
        more than there were.
        """
        last = self.points
        more = (self.width / _AIM) ** (1.0 / self.falls) if self.width < math.inf else _BLIND
        least = max(last.finer, 1.0 if more > _LITTLE_MORE else 0.5)
        if self.falls < _SLOW:
            least = min(2.0 * least, _MOST_FINER)
        best = None
        for points in self._ever_more(least, last.near * more, levels):
            if self.work(points) > most:
                break
            best = points
        return None if best is None or best.near < last.near or best == last else best

    def _ever_more(self, least: float, target: float, levels: int) -> Iterator[Points]:
        """Points, ever more of them about the place up to so many times as many as usual, and at
        least so many elsewhere: twice as many each time and, between, one and a half times as many
        where that takes less.
        """
        near = 2.0 ** math.ceil(math.log2(least))
        while True:
            points = self._divided(near, least, levels)
            yield points
            if near >= target:
                return
            between = self._divided(_BETWEEN * near, least, levels)
            if self.work(between) < self.work(self._divided(2.0 * near, least, levels)):
                yield between
                if between.near >= target:
                    return
            near *= 2.0

    def _divided(self, near: float, least: float, levels: int) -> Points:
        """So many times as many points as usual about the place, of which as many lie elsewhere, at
        least so many times as many as usual, as take a small part of all products.
        """
        octaves = math.floor(math.log2(near / least))
        while octaves > 0:
            more = Points(near / 2.0 ** (octaves - 1), octaves - 1, levels)
            part = self.elsewhere * self.finer * more.of_place
            if more.finer > _MOST_FINER or self.usual * more.finer**2 > part:
                break
            octaves -= 1
        return Points(near / 2.0**octaves, octaves, levels)
