"""What is done for many views at once, stage by stage: plan them, compose their halves, read
numbers off.

Views that share a lattice are looked at together, chunk after chunk, by an executor
(``executors``). What is asked next is the engine's business."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import numpy as np

from ..certify.vertices import trimmed
from ..plan import Plan
from ..question import Kind, Question, Rates
from ..steer.lattice_choice import Lattice, needs
from ..steer.refinement import JUMP_SHARES, WHOLE, View
from . import executors
from .executors import COMPILED, Executor

_PLANNED_TOGETHER = 64
_READ_TOGETHER = (
    2**14
)  # vertices of a half that NumPy reads numbers off at once: as many as stay in cache
_PIECES_PLANNED = 4.0  # tilts that are planned in the time of a look
_COMPILED: set = set()  # programs that have been compiled, with the mechanisms' classes
_BY_NUMPY: dict[
    tuple, tuple[float, float]
] = {}  # looks that NumPy had to do instead of others: all of them, and the most at once


def take(tree, rows):
    """Some rows of every leaf."""
    return jax.tree.map(lambda a: np.asarray(a)[rows], tree)


def joined(parts):
    return jax.tree.map(lambda *a: np.concatenate(a), *parts)


def _chunks(executor: Executor, number: int, largest: int):
    """Cut so many rows into chunks; yields (rows, how many are real). Padded chunks all have the
    largest size, filled by repetition.
    """
    rows = np.arange(number)
    for start in range(0, number, largest):
        part = rows[start : start + largest]
        padding = largest - len(part) if executor.padded else 0
        yield np.concatenate([part, np.full(padding, part[0], part.dtype)]), len(part)


class Batch(NamedTuple):
    """What every task reads and none changes.

    Attributes:
        groups: ``Composition.stacked()`` with leaves of shape (settings, components). question:
            what to compute.
        rates: of every setting. parts: ``curve.gaussian_parts`` of every setting. anchor: a
            threshold known beforehand, or 0.
        executor: the one asked for, or None.
    """

    groups: Any
    question: Question
    rates: Rates
    parts: Any
    anchor: Any
    executor: Executor | None

    @property
    def number(self) -> int:
        return self.groups[0][1].shape[0]

    @property
    def components(self) -> int:
        return sum(count.shape[-1] for _, count in self.groups)

    def classes(self):
        """What compiled programs see of the mechanisms: their classes and how many there are of
        each.
        """
        return tuple((type(mechanism), count.shape[1:]) for mechanism, count in self.groups)

    def kind(self, aim: int) -> Kind:
        """What is read off a view."""
        kind = self.question.kind
        return (
            kind
            if aim == WHOLE
            else kind._replace(quantities=kind.quantities[aim : aim + 1], alike=(0,))
        )

    def rates_of(self, aim: int, rows) -> Rates:
        """What it is read at."""
        rates = (
            self.rates
            if aim == WHOLE
            else self.rates._replace(queries=self.rates.queries[aim : aim + 1])
        )
        return take(rates, rows)

    def choose(self, work: float, *program) -> Executor:
        """Who does so much work with this program; what NumPy gets of it is remembered.

        A program is compiled for work that is as large as any before it, so that nothing smaller
        has to wait for that."""
        if self.executor is not None:
            return self.executor
        key = self.classes(), *program
        before, most = _BY_NUMPY.get(key, (0.0, 0.0))
        who = executors.choose(work, self.compiled(*program), before if work >= most else 0.0)
        if who is not COMPILED and work > executors.MANY_ONCE_COMPILED:
            _BY_NUMPY[key] = before + work, max(most, work)
        return who

    def compiled(self, *program) -> bool:
        """Whether a program has been compiled for mechanisms of these classes."""
        return (self.classes(), *program) in _COMPILED

    def remember(self, executor: Executor, *program) -> None:
        """A program that an executor has run."""
        if executor is COMPILED:
            _COMPILED.add((self.classes(), *program))


def plan_views(batch: Batch, views: list[View]):
    """Plans (views, sides, pieces, …) and needs of views of one aim and one number of pieces."""
    aim, pieces, rtol = views[0].aim, views[0].pieces, batch.question.rtol
    program = ("plan", aim == WHOLE, pieces)
    work = len(views) * max(1.0, pieces / _PIECES_PLANNED)
    executor = batch.choose(work, *program)
    settings, faintest = np.array([v.setting for v in views]), np.array([v.faintest for v in views])
    seen = tuple(np.array([v.seen[i] for v in views], float) for i in (0, 1))
    threshold, share = (
        np.array([v.threshold for v in views]),
        np.array([JUMP_SHARES[v.closer] for v in views]),
    )
    out = []
    for chunk, real in _chunks(executor, len(views), _PLANNED_TOGETHER):
        rows = settings[chunk]
        groups = take(batch.groups, rows)
        if aim == WHOLE:
            depths = take((batch.rates.z_floor, batch.rates.z_delta), rows)
            mine = faintest[chunk], take(seen, chunk), batch.anchor[rows]
            found = executor.plan_whole(groups, depths, rtol, *mine, pieces)
        else:
            found = executor.plan_threshold(
                groups, threshold[chunk], rtol, faintest[chunk], share[chunk]
            )
        out.append(jax.tree.map(lambda a: np.asarray(a)[:real], found))  # noqa: B023
    batch.remember(executor, *program)
    plans, steps = joined(out)
    return plans, needs(*(_side(plans, side) for side in (0, 1)), steps, rtol, aim != WHOLE)


def _side(plans: Plan, side: int) -> Plan:
    return jax.tree.map(lambda a: a[:, side], plans)


class Look(NamedTuple):
    """Views of one aim on one lattice, to be looked at together.

    Attributes:
        lattice, aim: of all of them. settings: their rows in the batch. plans: theirs, leaves
            (views, sides, pieces, …).
        executor: who composes their halves. reader: who reads numbers off them.
    """

    lattice: Lattice
    aim: int
    settings: Any
    plans: Plan
    executor: Executor
    reader: Executor


def look_at(batch: Batch, looks: list[Look]) -> list:
    """What is read off the views of each look: (numbers, thresholds, ends, a list of curves or of
    nothing).

    NumPy takes as long for the numbers of one view as for those of twenty, so what it has to read
    is laid by until there is enough of it, of whatever lattice."""
    found: list[list] = [[] for _ in looks]
    waiting: dict[tuple, list] = {}

    def read(reader, aim, pieces, parts):
        rows = np.concatenate([part.rows for part in parts])
        vertices = joined([part.vertices for part in parts])
        kind, rates = batch.kind(aim), batch.rates_of(aim, rows)
        *numbers, curves = reader.read(
            take(batch.parts, rows), vertices[:2], vertices[-2:], rates, kind, pieces
        )
        at = 0
        for part in parts:
            mine = slice(at, at + part.real)
            found[part.look].append(
                (part.first, take(numbers, mine), [take(curves, at + i) for i in range(part.real)])
            )
            at += len(part.rows)

    for number, look in enumerate(looks):
        for part in _composed(batch, number, look):
            key = look.reader, look.aim, look.lattice.pieces
            if look.reader.padded:
                read(*key, [part])
                continue
            length = part.vertices[0].used.shape[-1]
            parts = waiting.setdefault((*key, length), [])
            parts.append(part)
            if sum(len(p.rows) for p in parts) * look.lattice.pieces * length >= _READ_TOGETHER:
                read(*key, waiting.pop((*key, length)))
    for (*key, _), parts in waiting.items():
        read(*key, parts)
    return [_in_order(parts) for parts in found]


def _in_order(parts: list):
    """What was read off the views of a look, whenever it was read, in one."""
    parts = sorted(parts, key=lambda part: part[0])
    return *joined([numbers for _, numbers, _ in parts]), [
        curve for _, _, curves in parts for curve in curves
    ]


class _Part(NamedTuple):
    """A chunk of the views of a look, with their halves.

    Attributes:
        look: its number. first: the first of the views in it. rows: theirs in the batch, of which
            ``real`` are not filling.
        vertices: of both sides, or of the one that both are, each from above and from below.
    """

    look: int
    first: int
    rows: Any
    real: int
    vertices: list


def _composed(batch: Batch, number: int, look: Look):
    """The halves of all views of a look, chunk after chunk; the next chunk is begun before one is
    given out, so that a compiled program works on it meanwhile."""
    lattice, executor, reader = look.lattice, look.executor, look.reader
    # what is the same pair read backwards has two equal halves
    sides = (0,) if all(mechanism.symmetric for mechanism, _ in batch.groups) else (0, 1)

    def ended(first, rows, real, halves):
        vertices = trimmed(
            [half for both in halves for half in _filled(both, len(rows) * lattice.pieces)]
        )
        if not reader.padded:
            rows, vertices = rows[:real], take(vertices, slice(0, real * lattice.pieces))
        return _Part(number, first, rows, real, vertices)

    begun, first = None, 0
    for chunk, real in _chunks(
        executor, len(look.settings), lattice.read_together() * executor.devices
    ):
        rows = look.settings[chunk]
        halves = [
            _half(executor, batch, lattice, side, rows, take(look.plans, chunk), real)
            for side in sides
        ]
        if begun is not None:
            yield ended(*begun)
        begun, first = (first, rows, real, halves), first + real
    if begun is not None:
        yield ended(*begun)


def _half(
    executor: Executor, batch: Batch, lattice: Lattice, side: int, settings, plans: Plan, real: int
) -> list:
    """Vertices of one side of the ``real`` first views of a chunk, from above and from below; see
    :func:`_filled`.

    As many at a time as the lattice allows; numbers are read off more of them at once.
    """
    shapes, tables = lattice.grids()
    pieces, size = lattice.pieces, len(settings)
    together = min(size, lattice.together(batch.components) * executor.devices)
    out = []
    for start in range(0, real, together):
        rows = np.minimum(np.arange(start, start + together), size - 1)
        rows = rows if executor.padded else rows[: real - start]
        units = jax.tree.map(
            lambda a: np.repeat(a, pieces, axis=0), take(batch.groups, settings[rows])
        )
        plan = jax.tree.map(
            lambda a: a.reshape((-1,) + a.shape[2:]), take(_side(plans, side), rows)
        )
        out.append(executor.half(units, plan, side == 1, tables[side], shapes[side]))
    return out


def _filled(parts: list, number: int):
    """The parts of a chunk in so many rows, the first part repeated to fill them."""
    found = jax.tree.map(lambda *a: np.concatenate(a), *parts)
    (length,) = {leaf.shape[0] for leaf in jax.tree.leaves(found)}
    return jax.tree.map(
        lambda a: np.concatenate([a, *[a] * (-(number // -length) - 1)])[:number], found
    )


def joined_rows(planned) -> Plan:
    """Plans of several views in one batch."""
    batches: dict[int, tuple] = {}
    for position, (plans, _, row) in enumerate(planned):
        batches.setdefault(id(plans), (plans, [], []))[1].append(row)
        batches[id(plans)][2].append(position)
    parts = joined([take(plans, np.array(rows)) for plans, rows, _ in batches.values()])
    order = np.argsort(
        np.concatenate([positions for _, _, positions in batches.values()]), kind="stable"
    )
    return take(parts, order)


def program_of(lattice: Lattice):
    """What views have in common whose halves one compiled program composes."""
    return "half", lattice._replace(size=0, pieces=1)
