"""Exact laws of what a sparse vector publishes on given answers: what attacks on it are made of."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, log_ndtr

from ..numerics.errors import INDEX_LAW, UNIT
from ..numerics.shapes import Array
from ..pairs.table import NOTHING, Table, from_masses
from .maximum_laws import log_below, log_density

_GAUSS = np.polynomial.legendre.leggauss(16)
_REACH = {"laplace": 60.0, "gaussian": 14.0}  # scales beyond which no noise of a threshold is
_STEPS = {"laplace": 44.0, "gaussian": 14.0}  # the same of a query's noise, beyond its logs
_EVEN = 2000  # panels of one scale, up to which all are that wide
_MOST_ASKED = 64  # queries of an attack
_RAREST = 1e-9  # probability of an outcome that an attack looks at by itself
_FARTHEST = 6.0  # scales of both noises that an answer of an attack moves by, at most
_MOST_TOLD = 24  # answers above the threshold that an attack counts


def _nodes(noise: str, threshold: float, query: float, answers: Array) -> tuple[Array, Array]:
    """Nodes and weights of integrals over the noise of the threshold, whose law is in them."""
    far = _REACH[noise] * threshold
    steps = _STEPS[noise] + np.log(1.0 + len(answers))
    kinks = np.unique(answers)
    own = np.linspace(-far, far, int(2.0 * _REACH[noise]) + 1)
    low, high = max(kinks[0] - steps * query, -far), min(kinks[-1] + steps * query, far)
    if high <= low:
        ladder = np.zeros(0)
    elif (high - low) / query <= _EVEN:
        ladder = np.linspace(low, high, int((high - low) / query) + 2)
    else:
        around = query * np.linspace(-steps, steps, int(2.0 * steps) + 1)
        ladder = np.ravel(kinks[:, None] + around)
    edges = np.unique(np.concatenate([own, np.clip(ladder, -far, far), np.clip(kinks, -far, far)]))
    half = 0.5 * np.diff(edges)[:, None]
    x = np.ravel(edges[:-1, None] + half * (1.0 + _GAUSS[0]))
    weight = np.ravel(half * _GAUSS[1]) * np.exp(log_density(noise, x / threshold)) / threshold
    return x, weight


def _log_above(noise: str, x: Array) -> Array:
    return log_ndtr(-x) if noise == "gaussian" else log_below(noise, -x)


def index_law(noise: str, threshold: float, query: float, answers: Array) -> Array:
    """Probabilities that each of n answers is the first that is said to be above 0, and that none
    is.

    Args:
        noise: "laplace" or "gaussian".
        threshold, query: scales of the noise of the threshold and of an answer.
        answers: n numbers, over the threshold.

    Method: docs/method/noisy-maximum.md#sparse-noise
    """
    x, weight = _nodes(noise, threshold, query, answers)
    found = np.empty(len(answers) + 1)
    passed = np.zeros(len(x))
    for k, answer in enumerate(answers):
        away = (x - answer) / query
        found[k] = np.sum(weight * np.exp(passed + _log_above(noise, away)))
        passed = passed + log_below(noise, away)
    found[-1] = np.sum(weight * np.exp(passed))
    return found


class Stream(NamedTuple):
    """Answers of an attack: a number of equal ones, and then others that are equal.

    Attributes:
        first, last: how many there are of each.
        low, high: the answers on one data set.
        low_moves, high_moves: by how much they differ on the other.
    """

    first: int
    last: int
    low: float
    high: float
    low_moves: float
    high_moves: float

    def answers(self, other: bool) -> Array:
        """Those on one of both data sets."""
        low = self.low + self.low_moves * other
        high = self.high + self.high_moves * other
        return np.repeat([low, high], [self.first, self.last])


def _counts_law(
    noise: str, threshold: float, query: float, stream: Stream, other: bool, told: int
) -> Array:
    """Probabilities that one of the first answers is above, or else j of the last, j = 0, 1, …, or
    whether any is where only one is told.
    """
    answers = stream.answers(other)
    x, weight = _nodes(noise, threshold, query, answers)
    none = np.zeros(len(x))
    if stream.first:
        none = stream.first * log_below(noise, (x - answers[0]) / query)
    found = [np.sum(weight * -np.expm1(none))]
    away, n = (x - answers[-1]) / query, stream.last
    below = log_below(noise, away)
    left = weight * np.exp(none)
    if told == 1:
        return np.array(
            [*found, np.sum(left * np.exp(n * below)), -np.sum(left * np.expm1(n * below))]
        )
    above = _log_above(noise, away)
    for j in range(n + 1):
        choose = gammaln(n + 1.0) - gammaln(j + 1.0) - gammaln(n - j + 1.0)
        found.append(np.sum(left * np.exp(choose + j * above + (n - j) * below)))
    return np.array(found)


def _gathered(p: Array, q: Array) -> tuple[Array, Array]:
    """Rare outcomes as one with the most frequent one: they are known to no digits of their own."""
    rare = np.minimum(p, q) < _RAREST
    if np.all(rare):
        return np.ones(1), np.ones(1)
    most = int(np.argmax(np.where(rare, 0.0, p + q)))
    p, q = (np.where(rare, 0.0, a) + np.eye(len(a))[most] * np.sum(a[rare]) for a in (p, q))
    return p[~rare], q[~rare]


def _streams(threshold: float, query: float, asked: int, told: int, monotone: bool) -> list[Stream]:
    """Answers to try: levels in units of the noise."""
    wide = float(np.hypot(threshold, query))
    # (answers that go down against the threshold, and others that go up; neighbours may move less)
    step = min(1.0, _FARTHEST * wide)
    moves = (-step, 0.0) if monotone else (-step, step)
    found = []
    for last in sorted(
        {min(told, asked), min(max(asked // 2, told), asked) if told == 1 else told}
    ):
        last = min(last, asked)
        for first in sorted({0, 1, (asked - last) // 4, asked - last}):
            if first > asked - last:
                continue
            own = query * np.log(first + 1.0)
            lows = [-own + wide * t for t in (-2.0, -1.0, 0.0, 1.0)] if first else [0.0]
            highs = [wide * t for t in (-2.0, -0.5, 0.0, 1.0, 2.0)]
            up = moves[1] if first else (moves[1] or -step)
            found += [
                Stream(first, last, low, high, moves[0], up) for low in lows for high in highs
            ]
    return found


def _scores(p: Array, q: Array, largest: float) -> tuple[float, ...]:
    """What an attack is worth: over many uses, and at losses of half and most of the largest."""
    many = -np.log(max(float(np.sum(np.sqrt(p * q))), 1e-300))
    beyond = lambda x: max(
        float(np.sum(np.maximum(a - np.exp(min(x, 600.0)) * b, 0.0))) for a, b in ((p, q), (q, p))
    )
    return many, beyond(0.4 * largest), beyond(0.8 * largest)


@functools.lru_cache(maxsize=256)
def attacks(
    noise: str,
    threshold: float,
    query: float,
    asked: int,
    told: int,
    monotone: bool,
    largest: float,
) -> tuple[Table, ...]:
    """Pairs of the exact laws of what a sparse vector publishes on the best of some streams.

    Args:
        noise, threshold, query: as for :func:`index_law`, the threshold at 0.
        asked: how many queries there are.
        told: how many answers above the threshold are published.
        monotone: whether all answers move in the same direction.
        largest: a loss, for the choice of a stream.
    """
    asked, told = min(asked, _MOST_ASKED), min(told, _MOST_TOLD, asked)
    best: list[tuple[float, Stream | None]] = [(0.0, None)] * 3
    for stream in _streams(threshold, query, asked, told, monotone):
        p, q = (_counts_law(noise, threshold, query, stream, o, told) for o in (False, True))
        for k, score in enumerate(_scores(*_gathered(p, q), largest)):
            if score > best[k][0]:
                best[k] = score, stream
    chosen = [stream or best[0][1] for _, stream in best]
    return tuple(
        NOTHING if stream is None else _table(noise, threshold, query, stream, told)
        for stream in chosen
    )


def _table(noise: str, threshold: float, query: float, stream: Stream, told: int) -> Table:
    if told == 1:
        laws = (index_law(noise, threshold, query, stream.answers(o)) for o in (False, True))
    else:
        laws = (_counts_law(noise, threshold, query, stream, o, told) for o in (False, True))
    p, q = _gathered(*laws)
    if len(p) == 1:
        return NOTHING
    return from_masses(np.asarray(p), np.asarray(q), INDEX_LAW + 64.0 * len(p) * UNIT)
