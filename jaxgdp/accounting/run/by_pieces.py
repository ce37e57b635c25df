"""Answers for runs so far from private that their curve takes many tilts: where a curve by moments
leaves a number wide which is the largest of all, its pieces are composed coarsely, and finely where
these still do.

A piece bounds the curve between its own thresholds whatever the lattices of others are, and beside
whatever else does."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import jax
import numpy as np

from ...bracket import Bracket
from ...mechanisms.composition import Groups, collapse_gaussians
from ...numerics.precision import with_float64
from ...numerics.shapes import Array, Float, Int
from ..certify import closed_forms
from ..certify.curve import Curve, GaussianParts
from ..certify.finite_laws import padded
from ..certify.joined_halves import Bounds, beyond_largest, bounds, joined
from ..certify.jump_sides import best
from ..certify.vertices import Vertices, filled, in_rows, trimmed
from ..plan import Plan
from ..question import Question
from ..steer.lattice_choice import choose
from ..steer.lattice_needs import Side, needs
from ..steer.lattices import LatticeChoice
from ..steer.refinement import NO_KNOWN_REACH, PIECES, Rules
from . import by_jumps, by_moments, largest
from .batch import Batch
from .executors import EAGER
from .rows import joined as joined_rows
from .rows import take
from .running_brackets import worst

_WEAK, _FAR = 15.0, 6000.0  # μ between which a curve takes so many tilts, and not more
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
_MOST_SILENT, _AT_ONCE, _IN_ALL, _LOOKS = 20, 6, 24, 8
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
    if question.keep or not largest.asked(question):
        return False
    quantity = question.asked[0][0]
    low, high = (float(side[row]) for side in results[quantity.name])
    wide = float(quantity.excess(Bracket(low, high), question.rtol)) > 1.0
    return wide and _WEAK < low < high < np.inf and low < _FAR


class _Place(NamedTuple):
    """A piece of one side."""

    side: int
    piece: int


class _Piece(NamedTuple):
    """A piece as it was composed, from above and from below."""

    above: Vertices
    below: Vertices


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

    def coarse(self, side: int, pieces: list[int]) -> list[_Piece]:
        """Pieces of a half-curve: some at a time, of which what is used is kept."""
        found: list[_Piece] = []
        for first in range(0, len(pieces), _TOGETHER):
            some = np.array(pieces[first : first + _TOGETHER])
            lattice = self._lattice(side, some, _COARSE, 1.0, min(_SIZE, self.max_size))
            if lattice.kind == "sparse":  # (which takes little time, as fine as asked)
                lattice = self._lattice(side, some, self.question.rtol, 1.0, self.max_size)
            halves = self._half(side, some, lattice)
            for k in range(len(some)):
                found.append(_Piece(*(trimmed([take(half, [k])])[0] for half in halves)))
        return found

    def fine(self, place: _Place, detail: float) -> _Piece | None:
        """One piece, so many times as fine as foreseen; None where that is the lattice it had."""
        some = np.array([place.piece])
        lattice = self._lattice(place.side, some, self.question.rtol, detail, self.max_size)
        if self.latest.get(place) == lattice:
            return None
        self.latest[place] = lattice
        return _Piece(*self._half(place.side, some, lattice))

    def plan(self, side: int, pieces: Int[np.ndarray, " pieces"]) -> Plan:
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
        plan = jax.tree.map(lambda a: a[None], self.plan(side, pieces))
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
        return tuple(EAGER.half(groups, self.plan(side, pieces), side == 1, table, shape))

    def lower(self, pieces: dict[_Place, _Piece]) -> float:
        """The number from below, off some pieces."""
        sides = [[each for at, each in pieces.items() if at.side == side] for side in (0, 1)]
        halves = _in_rows([side or sides[1 - k] for k, side in enumerate(sides)])
        kind, number = self.batch.kind(None), len(halves[0][0].used)
        numbers = EAGER.read(self.batch.parts, *halves, self.batch.rates, kind, number)[0]
        return float(numbers[self.question.asked[0][0].name].lower[0])

    def values(self, half: Vertices) -> Float[np.ndarray, " vertices"]:
        """About the μ that each vertex of a row has, −∞ for those that do not matter."""
        return largest.of_vertices(self.question, half)

    def largest(self, piece: Vertices) -> float:
        """About the largest μ that the vertices of a piece have."""
        return float(np.max(self.values(piece), initial=-np.inf))


class _Above:
    """All that is known from above of both halves of a setting, and the pieces that were composed.

    Args:
        run: of the setting.
    """

    def __init__(self, run: _Run):
        self.run, self.parts = run, GaussianParts(*take(run.batch.parts, 0))
        largest = self.parts.largest_plus, self.parts.largest_minus
        self.others = [[beyond_largest(float(loss))] for loss in largest]
        self.pieces: dict[_Place, _Piece] = {}
        self.bounds: dict[_Place, Bounds] = {}
        self.halves: list[Vertices] = []

    def add(self, curve: Curve) -> None:
        """What a curve says beside the pieces."""
        for side, half in enumerate((curve.upper_plus, curve.upper_minus)):
            self.others[side].append(bounds(half))

    def put(self, pieces: dict[_Place, _Piece]) -> None:
        """Pieces that were composed, in the place of what stood there."""
        self.pieces |= pieces
        self.bounds |= {at: bounds(piece.above) for at, piece in pieces.items()}

    def upper(self) -> float:
        """The number from above, off both halves."""
        sides = self.run.batch.sides(None)
        self.halves = []
        for side in sides:
            own = [known for at, known in self.bounds.items() if at.side == side]
            self.halves.append(joined([*own, *self.others[side]]))
        plus, minus, none = padded([self.halves[0], self.halves[-1], best([])])
        curve = Curve(plus, minus, none, none, *self.parts)
        found = closed_forms.read([curve], self.run.question)
        return float(found[self.run.question.asked[0][0].name].upper[0])

    def values(self) -> dict[_Place, float]:
        """About the largest μ that every piece leaves, or all that is known there: the smaller
        one."""
        found = {}
        for side, half in zip(self.run.batch.sides(None), self.halves, strict=True):
            known = _largest_between(half, self.run.values(half), _ends(self.run, side))
            for piece, other in enumerate(known):
                own = self.pieces.get(_Place(side, piece))
                value = np.inf if own is None else self.run.largest(own.above)
                found[_Place(side, piece)] = min(value, float(other))
        return found


@with_float64
def narrow(
    groups: Groups,
    row: int,
    own: Question,
    results: dict[str, Bracket],
    max_size: int,
    curves: Sequence[Curve] = (),
) -> bool:
    """Narrow the number of a setting that is ``served``, in place; whether it takes more tilts than
    lattices of all pieces have elsewhere.

    Args:
        groups: of the whole batch.
        row: the setting's.
        own: what is asked of it.
        results: of the whole batch.
        max_size: largest dense lattice.
        curves: what is known of it by other means, in the order of removing a record.

    Method: docs/method/limit.md#long-runs
    """
    known = results[own.asked[0][0].name]
    with np.errstate(all="ignore"):
        by_jumps.narrow_by_located(groups, row, own, results)
        run = _Run(take(groups, [row]), own, max_size)
        above, done = _Above(run), dict[_Place, int]()
        for curve in (*curves, by_moments.first_curve(groups, row, own)):
            if curve is not None:
                above.add(curve)
        for _ in range(_LOOKS):
            known.upper[row] = np.fmin(known.upper[row], upper := above.upper())
            if worst(results, own, row) <= 1.0:
                break
            enough = float(known.lower[row]) * (1.0 + _ROOM * own.rtol)
            wide = _wide(above, enough, not upper < _VACUOUS * known.lower[row], done)
            pieces = _composed(run, wide, above, done)
            if not pieces:
                break
            above.put(pieces)
            known.lower[row] = np.fmax(known.lower[row], run.lower(pieces))
            if worst(results, own, row) <= 1.0:
                break
    return run.pieces > PIECES[-1]


def _wide(above: _Above, enough: float, vacuous: bool, done: dict[_Place, int]) -> list[_Place]:
    """Pieces that leave most open, whatever else is known there, of those that can be finer still;
    the ends of halves, too, where nothing is known from above."""
    value = above.values()
    if vacuous:
        ends = (0, above.run.pieces - 1)
        value |= {at: np.inf for at in value if at.piece in ends and at not in done}
    wide = [at for at in value if value[at] > enough and done.get(at, 0) < len(_DETAILS)]
    return sorted(wide, key=lambda at: -value[at])


def _composed(
    run: _Run, wide: list[_Place], above: _Above, done: dict[_Place, int]
) -> dict[_Place, _Piece]:
    """Pieces that were composed: coarsely all of which nothing was, else a few, finer than before.

    Args:
        run: of the setting.
        wide: pieces that leave most open.
        above: what is known.
        done: how often pieces were composed finely, renewed.
    """
    found: dict[_Place, _Piece] = {}
    new = [at for at in wide if at not in above.pieces]
    for side in run.batch.sides(None):
        pieces = sorted(at.piece for at in new if at.side == side)
        each = zip(pieces, run.coarse(side, pieces), strict=True)
        found |= {_Place(side, piece): composed for piece, composed in each}
    silent = sum(
        not np.isfinite(run.largest(above.pieces[at].above)) for at in wide if at not in new
    )
    next_ones = wide[:_AT_ONCE]
    if new or silent > _MOST_SILENT or sum(done.values()) + len(next_ones) > _IN_ALL:
        return found
    for at in next_ones:
        finer = run.fine(at, _DETAILS[done.get(at, 0)])
        done[at] = done.get(at, 0) + 1
        if finer is None:
            continue
        if not np.isfinite(run.largest(finer.above)):  # (it says nothing)
            finer = finer._replace(above=above.pieces[at].above)
        found[at] = finer
    return found


def _ends(run: _Run, side: int) -> Float[np.ndarray, " ends"]:
    """Thresholds between which each piece counts, from 0 to ∞."""
    plan = run.plan(side, np.arange(run.pieces))
    return np.concatenate([[0.0], np.asarray(plan.cut_low)[1:], [np.inf]])


def _largest_between(half: Vertices, value: Array, ends: Array) -> Float[np.ndarray, " pieces"]:
    """The largest of values of vertices whose slopes are between two ends, −∞ without any."""
    first = np.searchsorted(half.slopes_end()[0], ends[:-1], side="right")
    last = np.searchsorted(half.threshold()[0], ends[1:], side="left")
    return np.array([np.max(value[i:j], initial=-np.inf) for i, j in zip(first, last, strict=True)])


def _in_rows(sides: list[list[_Piece]]) -> list[list[Vertices]]:
    """Vertices of pieces in rows of one length, as many of each side, of which some are empty."""
    rows = [
        [
            joined_rows([in_rows(half, _LENGTH) for half in halves])
            for halves in zip(*side, strict=True)
        ]
        for side in sides
    ]
    most = max(len(v.used) for both in rows for v in both)
    return [[filled(v, most) for v in both] for both in rows]
