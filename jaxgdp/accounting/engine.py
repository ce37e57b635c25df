"""From a batch of mechanisms to certified curves: choose lattices, run bucket after bucket, refine what is too wide.

Three kinds of compiled program serve any batch: one plans tilts and windows, one per lattice shape goes from a plan to
the vertices of half a curve, and one per number of vertices reads the summaries off both halves. Batches are cut into
chunks of fixed size, so memory is bounded and nothing is retraced within a sweep.
"""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

import jax
import numpy as np

from ..bracket import Bracket
from ..numerics.precision import with_float64
from .executors import COMPILED, Executor, choose_executor
from .lattices import SIZES, Lattice, choose, likeliest, needs
from .question import Kind, Question, Rates
from .vertices import trimmed
from .windows import Plan

MAX_SIZE = 2**20
OK, WIDE = 0, 1
STATUS = {OK: "ok", WIDE: "wider than rtol at the largest lattice"}
_PIECE = 12.0  # standard deviations one tilt serves
_FAINTEST = 24.5  # −log of the density, per unit of rtol, that rounding leaves usable
_FEW_STEPS = 1000.0  # up to which its number does not matter
_TRIES, _FEW_TRIES = 6, 2  # lattices for one setting, at most
_STEPS = 6  # towards more detail, before there is said to be no finer lattice
_MANY = 64  # settings, from which on it is worth compiling ahead
_PIECES = (1, 8, 64)  # tilts along a half-curve, fewest first


class Answer(NamedTuple):
    """Results of one batch.

    Attributes:
        results: name → Bracket of arrays of shape (settings,).
        status: code per setting, keys of ``STATUS``.
        sizes: lattice points used per setting.
        lattices: the lattice of each setting's best bracket.
        curves: one Curve per setting when curves were kept.
    """

    results: dict
    status: Any
    sizes: Any
    lattices: list
    curves: list


def relative_width(bracket: Bracket):
    """Width over the upper side; ∞ where that says nothing."""
    with np.errstate(invalid="ignore"):
        relative = (bracket.upper - bracket.lower) / np.maximum(bracket.upper, 1e-300)
    return np.where(np.isfinite(relative), relative, np.inf)


def _take(tree, rows):
    return jax.tree.map(lambda a: np.asarray(a)[rows], tree)


def _chunks(executor, rows, largest):
    """Cut row numbers into equal chunks, the last one filled up by repetition; yields (padded rows, how many are real).

    Compiled chunks all have the largest size, so that each bucket compiles once.
    """
    size = largest if executor.name == "compiled" else min(largest, len(rows))
    for start in range(0, len(rows), size):
        part = rows[start : start + size]
        padding = size - len(part) if executor.name == "compiled" else 0
        yield np.concatenate([part, np.full(padding, part[0], part.dtype)]), len(part)


def _plan(executor, groups, rows, rtol, depths, pieces, faintest, seen):
    """Plans of the given settings (settings, sides, pieces, …) and what they need."""
    out, piece = [], np.tile(np.arange(pieces), len(rows))
    owner = np.repeat(np.arange(len(rows)), pieces)
    for chunk, real in _chunks(executor, np.arange(len(owner)), 64):
        mine = _take((*depths, faintest, seen), owner[chunk])
        batch = _take(groups, rows[owner[chunk]])
        answer = executor.plan(batch, *mine[:2], rtol, *mine[2:], piece[chunk], pieces)
        out.append(jax.tree.map(lambda a: np.asarray(a)[:real], answer))  # noqa: B023
    plans, steps = jax.tree.map(lambda *a: np.concatenate(a), *out)
    # (settings, sides, pieces, …)
    plans = jax.tree.map(lambda a: np.moveaxis(a.reshape((len(rows), pieces) + a.shape[1:]), 1, 2), plans)
    steps = steps[::pieces]
    return plans, needs(*(_side(plans, side) for side in (0, 1)), steps, rtol)


def _side(plans: Plan, side: int) -> Plan:
    return jax.tree.map(lambda a: a[:, side], plans)


def _run(executor: Executor, lattice: Lattice, groups, plans: Plan, kind: Kind, rates: Rates):
    """Results of the settings of one bucket, chunk after chunk: (summaries, ends, a list of curves or of nothing)."""
    out, curves = [], []
    # what is the same pair read backwards has two equal halves
    symmetric = all(mechanism.symmetric for mechanism, _ in groups)
    for chunk, real in _chunks(executor, np.arange(len(groups[0][1])), lattice.read_together()):
        sides = [_half(executor, lattice, side, groups, plans, chunk, real) for side in ((0,) if symmetric else (0, 1))]
        rows = trimmed([half for side in sides for half in side], lattice.pieces)
        plus, minus = rows[:2], rows[-2:]
        mine = _take(groups, chunk)
        *result, curve = executor.read(mine, plus, minus, _take(rates, chunk), kind, lattice.pieces)
        out.append(jax.tree.map(lambda a: np.asarray(a)[:real], result))  # noqa: B023
        curves += [_take(curve, i) for i in range(real)]
    return *jax.tree.map(lambda *a: np.concatenate(a), *out), curves


def _half(executor: Executor, lattice: Lattice, side: int, groups, plans: Plan, chunk, real: int):
    """Vertices of one side of the ``real`` first settings of a chunk, from above and from below, repeated to fill it.

    As many settings at a time as the lattice allows; numbers are read off more of them at once.
    """
    shapes, tables = lattice.grids()
    pieces, size = lattice.pieces, len(chunk)
    together = min(size, lattice.together(sum(count.shape[-1] for _, count in groups)))
    out = []
    for start in range(0, real, together):
        rows = chunk[np.minimum(np.arange(start, start + together), size - 1)]
        units = jax.tree.map(lambda a: np.repeat(a, pieces, axis=0), _take(groups, rows))
        plan = jax.tree.map(lambda a: a.reshape((-1,) + a.shape[2:]), _take(_side(plans, side), rows))
        out.append(executor.half(units, plan, side == 1, tables[side], shapes[side]))
    while len(out) * together < size:
        out.append(out[0])
    return jax.tree.map(lambda *a: np.concatenate(a)[: size * pieces], *out)


_REHEARSED: set = set()  # forms whose programs have been compiled ahead


def _long(plans: Plan, pieces: int):
    """Which settings need more pieces (sides and pieces on axes 1 and 2)."""
    return (np.max(plans.length[:, :, 0], axis=1) > _PIECE) & (pieces < _PIECES[-1])


class _Settings:
    """What is known so far about each setting of a batch."""

    def __init__(self, groups, question: Question, max_size: int, executor: Executor | None):
        self.groups, self.question, self.max_size = groups, question, max_size
        self.number = number = groups[0][1].shape[0]
        self.rates = question.rates(number)
        self.plans: dict[int, Any] = {}  # number of pieces → (plans, needs) of every setting
        # rounding errors grow with the root of the number of steps
        steps = sum(np.sum(count, axis=-1) for _, count in groups)
        usable = _FAINTEST + np.log(question.rtol) - 0.5 * np.log(np.maximum(steps / _FEW_STEPS, 1.0))
        self.faintest = np.clip(usable, 6.0, 19.0)
        self.seen = np.full((number, 2), np.inf), np.zeros((number, 2))
        self.detail, self.dense = np.ones(number), np.zeros(number, bool)
        # where both sides are of different pairs, no lattice brings them together
        self.most_tries = _TRIES if all(mechanism.closes for mechanism, _ in groups) else _FEW_TRIES
        self.tries, self.refocus, self.brighter = (np.zeros(number, np.int64) for _ in range(3))
        self.results: dict[str, Bracket] = {}
        self.status, self.sizes = np.full(number, WIDE), np.zeros(number, np.int64)
        self.width = np.full(number, np.inf)
        self.lattices: list = [None] * number
        self.curves: list = [None] * number if question.keep else []
        self.queue: dict[Lattice, list] = {}
        self.unplanned: dict[int, list] = {_PIECES[1 if question.keep else 0]: list(range(number))}
        smooth = not any(mechanism.atomic for mechanism, _ in groups)
        checks = getattr(jax.config, "jax_debug_nans", False)
        self.compiled = self.form() in _REHEARSED
        self.executor = executor or choose_executor(number, self.compiled)
        self.rehearses = (
            self.executor is COMPILED
            and number > _MANY
            and smooth
            and not question.keep
            and not checks
            and not self.compiled
        )
        self.ahead: Future | None = None

    def cut(self, rows):
        """Rows in one part or two."""
        return np.array_split(np.asarray(rows), 2 if self.compiled and len(rows) > 3 * _MANY else 1)

    def form(self):
        """What decides the programs that most settings will need."""
        kinds = tuple((type(mechanism), count.shape[1:]) for mechanism, count in self.groups)
        return kinds, self.question.kind, likeliest(self.question.rtol)

    def plan(self, rows, pieces):
        """Plans and needs of the rows, with this many pieces."""
        mine = _take((self.faintest, self.seen), rows)
        depths = _take((self.rates.z_floor, self.rates.z_delta), rows)
        return _plan(self.executor, self.groups, rows, self.question.rtol, depths, pieces, *mine)

    def keep_plan(self, rows, pieces, found):
        """Keep plans and put each row to its lattice, but those that need more pieces."""
        if pieces not in self.plans:
            self.plans[pieces] = jax.tree.map(lambda a: np.zeros((self.number,) + a.shape[1:], a.dtype), found)
        for kept, new in zip(jax.tree.leaves(self.plans[pieces]), jax.tree.leaves(found), strict=True):
            kept[rows] = new
        for row in rows[~_long(found[0], pieces)]:
            self.place(row, pieces)

    def lattice(self, row, pieces) -> Lattice:
        """The lattice for one planned setting at its present detail."""
        need, rtol = self.plans[pieces][1], self.question.rtol
        return choose(need, row, self.detail[row], rtol, pieces, self.max_size, self.dense[row])

    def place(self, row, pieces):
        """Put one planned setting into the bucket of its lattice."""
        self.queue.setdefault(self.lattice(row, pieces), []).append(row)

    def place_finer(self, row, lattice, more) -> bool:
        """Put one setting into the bucket of a lattice for at least ``more`` times the detail, or say that there is no other."""
        for _ in range(_STEPS):
            self.detail[row] *= more
            if self.lattice(row, lattice.pieces) != lattice:
                self.place(row, lattice.pieces)
                return True
            more = max(more, 1.5)
        return False

    def tasks(self):
        """What can be done now, as functions that change nothing: plans, and buckets.

        Two run at a time. A program that may still have to be compiled is compiled once, so buckets that share one are one task;
        later, tasks are cut so that both have about as much to do.
        """
        plans, programs = [], []
        for pieces, rows in self.unplanned.items():
            plans += [(pieces, part) for part in self.cut(rows)]
        shared: dict[Lattice, list] = {}
        for lattice, rows in sorted(self.queue.items(), reverse=True):
            if self.compiled:
                programs += [[(lattice, part)] for part in self.cut(rows)]
            else:
                shared.setdefault(lattice._replace(size=0), []).append((lattice, np.asarray(rows)))
        programs += shared.values()
        self.unplanned, self.queue = {}, {}

        def plan(pieces, rows):
            results = []
            while len(rows):
                found = self.plan(rows, pieces)
                results.append(("plan", rows, pieces, found))
                rows = rows[_long(found[0], pieces)]
                pieces = next((more for more in _PIECES if more > pieces), pieces)
            return results

        def run(buckets):
            if self.ahead and any(
                lattice._replace(size=0) == likeliest(self.question.rtol)._replace(size=0) for lattice, _ in buckets
            ):
                self.ahead.result()
            return [("run", rows, lattice, self.run(lattice, rows)) for lattice, rows in buckets]

        jobs: list[Callable] = [functools.partial(plan, *job) for job in plans]
        jobs += [functools.partial(run, buckets) for buckets in programs]
        return [with_float64(job) for job in jobs]

    def run(self, lattice, rows):
        """Results of the rows of one bucket."""
        plans = _take(self.plans[lattice.pieces][0], rows)
        rates = _take(self.rates, rows)
        return _run(self.executor, lattice, _take(self.groups, rows), plans, self.question.kind, rates)

    def rehearse(self):
        """Compile the programs that most settings of a large batch will need while the first ones are planned; no results."""
        lattice = likeliest(self.question.rtol)
        rows = np.zeros(lattice.read_together(), np.int64)
        mine, rates = _take((self.groups, self.rates), rows)
        plans = Plan.blank((len(rows), 2, 1), sum(count.shape[-1] for _, count in self.groups))
        _run(self.executor, lattice, mine, plans, self.question.kind, rates)
        _REHEARSED.add(self.form())

    def keep(self, lattice, rows, result):
        """Keep what is narrower than before, requeue what is too wide; returns how many are finished."""
        found, ends, curves = result
        relative = relative_width(found["mu"])
        better = (relative < self.width[rows]) | (self.sizes[rows] == 0)
        for name, bracket in found.items():
            store = self.results.setdefault(name, Bracket(np.zeros(self.number), np.full(self.number, np.inf)))
            for kept, new in zip(store, bracket, strict=True):
                kept[rows[better]] = new[better]
        if self.question.keep:
            for i in np.flatnonzero(better):
                self.curves[rows[i]] = curves[i]
        for i in np.flatnonzero(better):
            self.lattices[rows[i]] = lattice
        stuck = (relative > 0.9 * self.width[rows]) & (self.tries[rows] > 0)
        self.sizes[rows[better]], self.width[rows[better]] = lattice.size, relative[better]
        self.tries[rows] += 1
        done = relative <= self.question.rtol
        self.status[rows[done]] = OK
        sparse = lattice.kind == "sparse"
        largest = not sparse and lattice.size >= min(self.max_size, 2 ** SIZES[lattice.kind][-1])
        # the first look shows where the rates asked for are: a window that reaches just as far is cheaper and sharper
        planned = self.plans[lattice.pieces][0].cut_high[rows, :, -1]
        seen = ends
        off = (seen[0] < 0.9 * planned) | (np.isfinite(seen[0]) & (seen[0] > planned))
        refocused = ~done & np.any(off, axis=1) & (self.refocus[rows] < 2) & (lattice.pieces == 1)
        # where a finer lattice does not help, look from nearer to the far end; then use many more points
        closer = ~done & ~refocused & stuck & (self.brighter[rows] == 0) & (self.most_tries > _FEW_TRIES)
        finer = ~done & ~refocused & ~closer & (not largest) & (self.tries[rows] < self.most_tries)
        for i in np.flatnonzero(finer):
            row, wide = rows[i], relative[i]
            more = 8.0 if stuck[i] else np.clip(np.sqrt(wide / (0.8 * self.question.rtol)), 1.3, 4.0)
            if sparse and wide > 0.3 and stuck[i]:
                self.dense[row], self.detail[row], more = True, 1.0, 1.0
            finer[i] = self.place_finer(row, lattice, more)
        closer |= (
            sparse & ~done & ~refocused & ~finer & (self.brighter[rows] == 0) & (self.tries[rows] < self.most_tries)
        )
        for kept, new in zip(self.seen, seen, strict=True):
            kept[rows[refocused]] = new[refocused]
        self.refocus[rows[refocused]] += 1
        self.brighter[rows[closer]] += 1
        self.faintest[rows[closer]] *= 0.5
        again = refocused | closer
        if np.any(again):
            self.unplanned.setdefault(lattice.pieces, []).extend(rows[again])
        return int(np.sum(~(finer | again)))


def answer(
    groups, question: Question, progress=None, max_size: int = MAX_SIZE, executor: Executor | None = None
) -> Answer:
    """Certified summaries of a flat batch of mechanisms.

    Args:
        groups: ``Composition.stacked()`` with leaves of shape (settings, components).
        question: what to compute.
        progress: called with the number of settings finished, as they finish.
        max_size: largest dense lattice to try.

    Returns:
        An :class:`Answer`.
    """
    settings = with_float64(_Settings)(groups, question, max_size, executor)
    finished = progress or (lambda done: None)
    # two programs at a time: one compiles while the other runs (NumPy's small arrays gain nothing from threads)
    with ThreadPoolExecutor(min(2, os.cpu_count() or 1) if settings.executor is COMPILED else 1) as pool:
        tasks = settings.tasks()
        while tasks:
            waiting = pool.map(lambda task: task(), tasks)
            if settings.rehearses:
                settings.ahead, settings.rehearses = pool.submit(with_float64(settings.rehearse)), False
            for kind, rows, where, found in itertools.chain.from_iterable(waiting):
                if kind == "plan":
                    settings.keep_plan(rows, where, found)
                else:
                    finished(settings.keep(where, rows, found))
            tasks = settings.tasks()
        if settings.ahead:
            settings.ahead.result()
    return Answer(settings.results, settings.status, settings.sizes, settings.lattices, settings.curves)


__all__ = ["MAX_SIZE", "STATUS", "Answer", "Plan", "Question", "answer", "relative_width"]
