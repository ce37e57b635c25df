"""Answers for runs so far from private that their curve takes many tilts: all of its pieces are
composed coarsely, and finely only those that leave a number wide which is the largest of all.

A piece bounds the curve between its own thresholds whatever the lattices of others are."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import jax
import numpy as np

from ...bracket import Bracket
from ...mechanisms.composition import Groups, collapse_gaussians
from ...numerics.normal import ndtri_exp
from ...numerics.precision import with_float64
from ...numerics.shapes import Array, Int
from ..certify.vertices import Vertices, filled, in_rows, trimmed
from ..plan import Plan
from ..question import Question
from ..steer.lattice_choice import choose
from ..steer.lattice_needs import Side, needs
from ..steer.lattices import LatticeChoice
from ..steer.refinement import NO_KNOWN_REACH, PIECES, Rules
from .batch import Batch
from .executors import EAGER
from .rows import joined, take
from .running_brackets import worst

_WEAK, _FAR = 40.0, 6000.0  # μ between which a curve takes so many tilts, and not more
_MOST_TILTS = 1024
_TOGETHER = 8  # pieces that are composed at once
_FEW_STEPS = 1e5  # up to which lattices are dense
_LENGTH = 512  # vertices in a row that is read
_COARSE, _SIZE = 1e-3, 2**14  # accuracy of lattices of all pieces, and points of a dense one
_FINE = 2e-4  # … and of single ones at most: there sparse ones take little time, and show more
# nats between vertices of lattices of all pieces and of a single one, beyond which masses of a
# block are no more than rounding, and vertices in all at most
_APART, _MOST_VERTICES = (10.0, 1.0), 2**19
# points of an octave of one piece, over those foreseen, of up to so many frequencies
_FINER_BASE, _FEW_FREQUENCIES = 4, 128
# how many times as fine as foreseen a piece is composed, one after the other
_DETAILS = 1.0, 4.0, 16.0
# pieces that may say nothing, that are composed finely at once, and in all; looks at the curve
_SILENT, _AT_ONCE, _IN_ALL, _LOOKS = 16, 6, 24, 6
_ROOM = 0.3  # part of the width promised that a piece may be above what is achieved
# times what is known, of an upper side from which on the ends of a half do not say where it ends
_VACUOUS = 1.5


def served(question: Question, results: dict[str, Bracket], row: int) -> bool:
    """Whether a setting is asked for a number that is looked for here.

    Args:
        question: about the whole batch.
        results: what is known of it.
        row: the setting's.
    """
    if question.keep or len(question.asked) != 1:
        return False
    quantity = question.asked[0][0]
    if not quantity.of_all_rates:
        return False
    low, high = (float(side[row]) for side in results[quantity.name])
    wide = float(quantity.excess(Bracket(low, high), question.rtol)) > 1.0
    return wide and _WEAK < low < high < np.inf and low < _FAR


class _Place(NamedTuple):
    """A piece of one side."""

    side: int
    piece: int


class _Run:
    """One setting, its plan in many pieces, and who composes them.

    Args:
        groups, question: of the one setting.
        max_size: largest dense lattice.
    """

    def __init__(self, groups: Groups, question: Question, max_size: int):
        question = dataclasses.replace(question, rtol=min(question.rtol, _FINE))
        self.question, self.max_size = question, max_size
        self.latest: dict[_Place, LatticeChoice] = {}  # of pieces that were composed finely
        rates, parts = question.rates(1), EAGER.parts(groups)
        groups = collapse_gaussians(groups)
        self.batch = Batch(groups, question, rates, parts, np.zeros(1), EAGER)
        steps = float(sum(np.sum(n) for _, n in groups))
        density = Rules(question.rtol, max_size).max_neg_log_density(steps)
        self.pieces, longest = PIECES[-1], 2.0 * np.sqrt(2.0 * density)
        self.plans, self.steps = self._planned(density)
        # (no longer than densities are usable)
        while np.max(self.plans.length) > longest and 2 * self.pieces <= _MOST_TILTS:
            self.pieces *= 2
            self.plans, self.steps = self._planned(density)

    def _planned(self, density: float) -> tuple[Plan, Array]:
        rates = self.batch.rates
        return EAGER.plan_whole(
            self.batch.groups,
            (rates.z_floor, rates.z_delta),
            self.question.rtol,
            np.array([density]),
            (np.array([NO_KNOWN_REACH.thresholds]), np.array([NO_KNOWN_REACH.log_fprs])),
            self.batch.anchor,
            self.pieces,
        )

    def coarse(self, side: int) -> list[list[Vertices]]:
        """All pieces of a half-curve, from above and from below: some at a time, of which what is
        used is kept.
        """
        found: list[list[Vertices]] = [[], []]
        for first in range(0, self.pieces, _TOGETHER):
            some = np.arange(first, min(first + _TOGETHER, self.pieces))
            lattice = self._lattice(side, some, _COARSE, 1.0, min(_SIZE, self.max_size))
            if lattice.kind == "sparse":  # (which takes little time, as fine as asked)
                lattice = self._lattice(side, some, self.question.rtol, 1.0, self.max_size)
            for kept, half in zip(found, self._half(side, some, lattice), strict=True):
                kept += [trimmed([take(half, [k])])[0] for k in range(len(some))]
        return found

    def fine(self, place: _Place, detail: float) -> tuple[Vertices, ...]:
        """One piece, so many times as fine as foreseen, from above and from below; nothing where
        that is the lattice it had.
        """
        some = np.array([place.piece])
        lattice = self._lattice(place.side, some, self.question.rtol, detail, self.max_size)
        if self.latest.get(place) == lattice:
            return ()
        self.latest[place] = lattice
        return self._half(place.side, some, lattice)

    def _plan(self, side: int, pieces: Int[np.ndarray, " pieces"]) -> Plan:
        return jax.tree.map(lambda a: a[0, side][pieces], self.plans)

    def _lattice(
        self,
        side: int,
        pieces: Int[np.ndarray, " pieces"],
        rtol: float,
        detail: float,
        largest: int,
    ) -> LatticeChoice:
        """For some pieces of a half-curve: a dense one where the largest of all would serve."""
        plan = jax.tree.map(lambda a: a[None], self._plan(side, pieces))
        need = needs([Side(plan, side == 1)], self.steps, rtol).of(0).together
        dense = bool(need.dense * detail <= self.max_size and need.steps <= _FEW_STEPS)
        found = choose(need, detail, rtol, len(pieces), largest, dense)
        nats = float(np.max(plan.high - plan.low)) / _APART[len(pieces) == 1]
        most = min(_MOST_VERTICES / len(pieces), found.size / 2, 2**16)
        vertices = 2 ** int(np.log2(max(min(2.0 * nats, most), found.vertices)))
        if found.kind == "sparse" and len(pieces) == 1 and found.frequencies <= _FEW_FREQUENCIES:
            found = found._replace(base=_FINER_BASE * found.base)
        return found._replace(vertices=vertices)

    def _half(
        self, side: int, pieces: Int[np.ndarray, " pieces"], lattice: LatticeChoice
    ) -> tuple[Vertices, ...]:
        shape, table = lattice.grid(side)
        groups = jax.tree.map(lambda a: np.repeat(a, len(pieces), axis=0), self.batch.groups)
        return tuple(EAGER.half(groups, self._plan(side, pieces), side == 1, table, shape))

    def read(self, units: list) -> Bracket:
        """The number, off pieces of each side, each from above and from below."""
        halves = _in_rows(units)
        kind, number = self.batch.kind(None), len(halves[0][0].used)
        numbers = EAGER.read(self.batch.parts, *halves, self.batch.rates, kind, number)[0]
        return numbers[self.question.asked[0][0].name]

    def largest(self, piece: Vertices) -> float:
        """About the largest μ that the vertices of a piece have."""
        rate = float(self.batch.rates.queries[0][0])
        log_alpha, log_tpr, log_beta = (
            getattr(piece, name)[0] for name in ("log_alpha", "log_tpr", "log_beta")
        )
        used = piece.used[0]
        if self.question.asked[0][0].rate is None:  # (of rates from a floor on)
            used = used & ((log_alpha >= rate) | (log_beta <= rate))
        else:
            used = used & (log_tpr > rate)
            log_tpr = log_tpr + np.log(-np.expm1(np.minimum(rate - log_tpr, 0.0)))
        small = log_tpr < log_beta
        z = ndtri_exp(np.where(small, log_tpr, log_beta))
        value = np.where(small, z, -z) - ndtri_exp(log_alpha)
        return float(np.max(value, where=used & ~np.isnan(value), initial=-np.inf))


@with_float64
def narrow(
    groups: Groups, row: int, own: Question, results: dict[str, Bracket], max_size: int
) -> bool:
    """Narrow the number of a setting that is ``served``, in place; whether it takes more tilts than
    lattices of all pieces have elsewhere.

    Args:
        groups: of the whole batch.
        row: the setting's.
        own: what is asked of it.
        results: of the whole batch.
        max_size: largest dense lattice.

    Method: docs/method/limit.md#long-runs
    """
    known = results[own.asked[0][0].name]
    with np.errstate(all="ignore"):
        run = _Run(take(groups, [row]), own, max_size)
        more = run.pieces > PIECES[-1]
        units = [run.coarse(side) for side in run.batch.sides(None)]
        done: dict[_Place, int] = {}
        for _ in range(_LOOKS):
            found = run.read(units)
            known.lower[row] = np.fmax(known.lower[row], found.lower[0])
            known.upper[row] = np.fmin(known.upper[row], found.upper[0])
            if worst(results, own, row) <= 1.0:
                break
            enough = float(known.lower[row]) * (1.0 + _ROOM * own.rtol)
            vacuous = not found.upper[0] < _VACUOUS * known.lower[row]
            next_ones = _next(run, units, enough, vacuous, done)
            if not next_ones or sum(done.values()) + len(next_ones) > _IN_ALL:
                break
            for place in next_ones:
                _compose(run, units, place, _DETAILS[done.get(place, 0)])
                done[place] = done.get(place, 0) + 1
    return more


def _next(
    run: _Run, units: list, enough: float, vacuous: bool, done: dict[_Place, int]
) -> list[_Place]:
    """Pieces that leave most open, of those that can be finer still; the ends of halves, too, where
    nothing is known from above."""
    value = {
        _Place(side, piece): run.largest(vertices)
        for side, (above, _) in enumerate(units)
        for piece, vertices in enumerate(above)
    }
    if vacuous:
        ends = (0, run.pieces - 1)
        value |= {place: np.inf for place in value if place.piece in ends and place not in done}
    wide = [at for at in value if value[at] > enough and done.get(at, 0) < len(_DETAILS)]
    if sum(value[at] == np.inf for at in wide) > _SILENT + 4:
        return []
    return sorted(wide, key=lambda at: -value[at])[:_AT_ONCE]


def _compose(run: _Run, units: list, place: _Place, detail: float) -> None:
    """Put a finer piece in the place of a coarser one."""
    # (as many as there are: none where nothing is new)
    for old, new in zip(units[place.side], run.fine(place, detail), strict=False):
        if np.isfinite(run.largest(new)):  # (else it says nothing)
            old[place.piece] = new


def _in_rows(units: list) -> list[list[Vertices]]:
    """Vertices of all pieces in rows of one length, as many of each side, of which some are
    empty.
    """
    rows = [
        [joined([in_rows(piece, _LENGTH) for piece in half]) for half in both] for both in units
    ]
    most = max(len(v.used) for both in rows for v in both)
    rows = [[filled(v, most) for v in both] for both in rows]
    return [rows[0], rows[-1]]
