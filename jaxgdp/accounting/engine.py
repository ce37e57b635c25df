"""From a batch of mechanisms to certified numbers: carries out the looks that the policy (``refine``) asks for.

Looks that share a lattice are done together, chunk after chunk, by an executor; two tasks run at a time, where the process may use two
cores, so that one program is compiled while another one runs.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

import jax
import numpy as np

from ..bracket import STATUS, Bracket
from ..numerics.precision import with_float64
from ..scale.local import cores
from . import executors, single
from .executors import COMPILED, EAGER, Executor
from .lattices import Lattice, Needs, choose, likeliest, needs
from .question import Answer, Kind, Question, Rates
from .refine import DONE, JUMP_SHARES, PLAN, WHOLE, Outcome, Rules, View, focus, more_pieces, refine, whole
from .vertices import trimmed
from .windows import Plan

MAX_SIZE = 2**20
_SEVERAL = 64  # settings from which on tasks are cut in two and programs compiled ahead
_PLANNED_TOGETHER = 64
_PIECES_PLANNED = 4.0  # tilts that are planned in the time of a look


def take(tree, rows):
    """Some rows of every leaf."""
    return jax.tree.map(lambda a: np.asarray(a)[rows], tree)


def _joined(parts):
    return jax.tree.map(lambda *a: np.concatenate(a), *parts)


def _chunks(executor: Executor, number: int, largest: int):
    """Cut so many rows into chunks; yields (rows, how many are real). Padded chunks all have the largest size, filled by repetition."""
    rows = np.arange(number)
    for start in range(0, number, largest):
        part = rows[start : start + largest]
        padding = largest - len(part) if executor.padded else 0
        yield np.concatenate([part, np.full(padding, part[0], part.dtype)]), len(part)


# --- looks: what is done for views that are looked at together -----------------------------------------------------


class Batch(NamedTuple):
    """What every task reads and none changes.

    Attributes:
        groups: ``Composition.stacked()`` with leaves of shape (settings, components). question: what to compute.
        rates: of every setting. parts: ``curve.gaussian_parts`` of every setting. anchor: a threshold known beforehand, or 0.
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
        """What compiled programs see of the mechanisms: their classes and how many there are of each."""
        return tuple((type(mechanism), count.shape[1:]) for mechanism, count in self.groups)

    def kind(self, aim: int) -> Kind:
        """What is read off a view."""
        kind = self.question.kind
        return kind if aim == WHOLE else kind._replace(quantities=kind.quantities[aim : aim + 1], alike=(0,))

    def rates_of(self, aim: int, rows) -> Rates:
        """What it is read at."""
        rates = self.rates if aim == WHOLE else self.rates._replace(queries=self.rates.queries[aim : aim + 1])
        return take(rates, rows)

    def choose(self, work: float, *program) -> Executor:
        """Who does so much work with this program."""
        return self.executor or executors.choose(work, (self.classes(), *program) in _COMPILED)


_COMPILED: set = set()  # programs that have been compiled


def _remember(executor: Executor, batch: Batch, *program):
    if executor is COMPILED:
        _COMPILED.add((batch.classes(), *program))


def _plan(batch: Batch, views: list[View]):
    """Plans (views, sides, pieces, …) and needs of views of one aim and one number of pieces."""
    aim, pieces, rtol = views[0].aim, views[0].pieces, batch.question.rtol
    program = ("plan", aim == WHOLE, pieces)
    work = len(views) * max(1.0, pieces / _PIECES_PLANNED)
    executor = batch.choose(work, *program)
    settings, faintest = np.array([v.setting for v in views]), np.array([v.faintest for v in views])
    seen = tuple(np.array([v.seen[i] for v in views], float) for i in (0, 1))
    threshold, share = np.array([v.threshold for v in views]), np.array([JUMP_SHARES[v.closer] for v in views])
    out = []
    for chunk, real in _chunks(executor, len(views), _PLANNED_TOGETHER):
        rows = settings[chunk]
        groups = take(batch.groups, rows)
        if aim == WHOLE:
            depths = take((batch.rates.z_floor, batch.rates.z_delta), rows)
            mine = faintest[chunk], take(seen, chunk), batch.anchor[rows]
            found = executor.plan_whole(groups, depths, rtol, *mine, pieces)
        else:
            found = executor.plan_threshold(groups, threshold[chunk], rtol, faintest[chunk], share[chunk])
        out.append(jax.tree.map(lambda a: np.asarray(a)[:real], found))  # noqa: B023
    _remember(executor, batch, *program)
    plans, steps = _joined(out)
    return plans, needs(*(_side(plans, side) for side in (0, 1)), steps, rtol, aim != WHOLE)


def _side(plans: Plan, side: int) -> Plan:
    return jax.tree.map(lambda a: a[:, side], plans)


def _look(batch: Batch, executor: Executor, reader: Executor, lattice: Lattice, aim: int, settings, plans: Plan):
    """What ``reader`` reads off views of one lattice and one aim: (numbers, thresholds, ends, a list of curves or of nothing)."""
    out, curves, kind = [], [], batch.kind(aim)
    # what is the same pair read backwards has two equal halves
    sides = (0,) if all(mechanism.symmetric for mechanism, _ in batch.groups) else (0, 1)
    for chunk, real in _chunks(executor, len(settings), lattice.read_together() * executor.devices):
        rows = settings[chunk]
        halves = [_half(executor, batch, lattice, side, rows, take(plans, chunk), real) for side in sides]
        vertices = trimmed([half for both in halves for half in both])
        plus, minus = vertices[:2], vertices[-2:]
        *found, curve = reader.read(
            take(batch.parts, rows), plus, minus, batch.rates_of(aim, rows), kind, lattice.pieces
        )
        out.append(jax.tree.map(lambda a: np.asarray(a)[:real], found))  # noqa: B023
        curves += [take(curve, i) for i in range(real)]
    return *_joined(out), curves


def _half(executor: Executor, batch: Batch, lattice: Lattice, side: int, settings, plans: Plan, real: int):
    """Vertices of one side of the ``real`` first views of a chunk, from above and from below, repeated to fill it.

    As many at a time as the lattice allows; numbers are read off more of them at once.
    """
    shapes, tables = lattice.grids()
    pieces, size = lattice.pieces, len(settings)
    together = min(size, lattice.together(batch.components) * executor.devices)
    out = []
    for start in range(0, real, together):
        rows = np.minimum(np.arange(start, start + together), size - 1)
        rows = rows if executor.padded else rows[: real - start]
        units = jax.tree.map(lambda a: np.repeat(a, pieces, axis=0), take(batch.groups, settings[rows]))
        plan = jax.tree.map(lambda a: a.reshape((-1,) + a.shape[2:]), take(_side(plans, side), rows))
        out.append(executor.half(units, plan, side == 1, tables[side], shapes[side]))
    while len(out) * together < size:
        out.append(out[0])
    return jax.tree.map(lambda *a: np.concatenate(a)[: size * pieces], *out)


# --- the loop: looks, what they found, and what the policy asks for next --------------------------------------------


class _Found:
    """The brackets so far, what all looks have in common."""

    def __init__(self, number: int, question: Question):
        self.asked = question.asked
        self.results = {q.name: Bracket(np.full(number, -np.inf), np.full(number, np.inf)) for q, _ in self.asked}
        self.best = np.full(number, np.inf)
        self.sizes, self.lattices = np.zeros(number, np.int64), [None] * number
        self.curves: list = [None] * number if question.keep else []

    def add(self, settings, found) -> None:
        for name, bracket in found.items():
            known = self.results[name]
            known.lower[settings] = np.fmax(known.lower[settings], bracket.lower)
            known.upper[settings] = np.fmin(known.upper[settings], bracket.upper)

    def put(self, settings, answer: Answer) -> None:
        """What is known of some settings by other means."""
        self.add(settings, answer.results)
        self.sizes[settings] = answer.sizes
        for i, lattice in zip(settings, answer.lattices, strict=True):
            self.lattices[i] = lattice
        for i, curve in zip(settings, answer.curves, strict=False):
            self.curves[i] = curve

    def answer(self) -> Answer:
        return Answer(self.results, self.sizes, self.lattices, self.curves)

    def excess(self, rtol: float, settings):
        """Width over the width promised of every quantity (axis 0)."""
        return np.stack([q.excess(take(self.results[q.name], settings), rtol) for q, _ in self.asked])


def answer(
    groups, question: Question, progress=None, max_size: int = MAX_SIZE, executor: Executor | None = None
) -> Answer:
    """Certified numbers of a flat batch of mechanisms.

    Args:
        groups: ``Composition.stacked()`` with leaves of shape (settings, components).
        question: what to compute.
        progress: called with the number of settings finished, as they finish.
        max_size: largest dense lattice to try, but for views of one threshold that need not much more than 2^20 points.
        executor: who computes; None lets the environment variable ``JAXGDP_EXECUTOR`` decide, else the number of settings.

    Returns:
        An :class:`Answer`.
    """
    executor, progress = executor or executors.by_name(None), progress or (lambda done: None)
    number, alone = groups[0][1].shape[0], single.used_once(groups)
    if not np.any(alone):
        return with_float64(_answer)(groups, question, progress, max_size, executor)
    # one use of a pair known from tables needs no lattice
    found = _Found(number, question)
    rows, others = np.flatnonzero(alone), np.flatnonzero(~alone)
    found.put(rows, single.answer(groups, rows, question.take(rows, number)))
    progress(len(rows))
    if len(others):
        part = take(groups, others), question.take(others, number)
        found.put(others, with_float64(_answer)(*part, progress, max_size, executor))
    return found.answer()


def _answer(groups, question: Question, progress, max_size, executor) -> Answer:
    number, rates = groups[0][1].shape[0], question.rates(groups[0][1].shape[0])
    parts = (executor or executors.choose(number, False)).parts(groups)
    thresholds = [_known_threshold(quantity, value, number) for quantity, value in question.asked]
    known = [row for row in thresholds if row is not None]
    batch = Batch(groups, question, rates, parts, known[0] if known else np.zeros(number), executor)
    closes, coarse = all(mechanism.closes for mechanism, _ in groups), executor.coarse if executor else 0.0
    rules = Rules(question.rtol, max_size, closes, question.keep, coarse)
    steps: Any = sum(np.sum(count, axis=-1) for _, count in groups)
    found = _Found(number, question)

    views: list[View] = []
    if question.asked and len(known) == len(question.asked) and not question.keep:
        for aim, row in enumerate(known):
            views += [focus(i, aim, row[i], steps[i], rules) for i in range(number)]
    else:
        views = [whole(i, steps[i], rules) for i in range(number)]
    made = {(v.setting, v.aim) for v in views}
    open_views, finished = np.bincount([v.setting for v in views], minlength=number), np.zeros(number, bool)
    planned: dict[tuple, tuple] = {}  # (setting, aim, pieces) → plans and needs, and the row in them

    def lattice_of(view: View) -> Lattice:
        _, need, row = planned[view.setting, view.aim, view.pieces]
        mine = Needs(*(a[row] for a in need))
        return choose(mine, view.detail, question.rtol, view.pieces, max_size, view.dense, excess=view.excess)

    def plan(views):
        done = []
        while views:
            result = _plan(batch, views)
            done.append((views, result))
            length = np.max(result[0].length[:, :, 0], axis=1)
            views = [w for v, l in zip(views, length, strict=True) if (w := more_pieces(v, l)) is not None]
        return PLAN, done

    def look(buckets):
        # (looks of one program: it is compiled for all of them, or for none)
        done, number = [], sum(len(views) for _, views in buckets)
        for (lattice, aim), views in buckets:
            settings = np.array([v.setting for v in views])
            plans = _joined_rows([planned[v.setting, v.aim, v.pieces] for v in views])
            program = ("look", lattice._replace(size=0), batch.kind(aim))
            who = batch.choose(number * lattice.pieces, *program) if lattice.compiled else batch.executor or EAGER
            # (few views of many pieces are work enough to compile their halves, and not their reading)
            reading = ("read", lattice.pieces, batch.kind(aim))
            reader = batch.choose(number, *reading) if who is COMPILED else who
            done.append((lattice, aim, views, plans, _look(batch, who, reader, lattice, aim, settings, plans)))
            _remember(who, batch, *program)
            _remember(reader, batch, *reading)
        return "look", done

    to_plan, to_look = list(views), []
    with ThreadPoolExecutor(min(2, len(cores()) or 2)) as pool:
        rehearsed = _rehearsal(pool, batch)
        while to_plan or to_look:
            jobs = _tasks(batch, to_plan, [(lattice_of(v), v) for v in to_look], plan, look, rehearsed)
            to_plan, to_look = [], []
            for what, done in _run(pool, jobs):
                if what == PLAN:
                    for mine, (plans, need) in done:
                        length = np.max(plans.length[:, :, 0], axis=1)
                        for row, view in enumerate(mine):
                            if more_pieces(view, length[row]) is None:
                                planned[view.setting, view.aim, view.pieces] = plans, need, row
                                to_look.append(view)
                    continue
                for lattice, aim, mine, plans, (numbers, located, ends, curves) in done:
                    settings = np.array([v.setting for v in mine])
                    found.add(settings, numbers)
                    excess = found.excess(question.rtol, settings)
                    apart = [q.threshold is not None or q.locate is not None for q, _ in question.asked]
                    for k, view in enumerate(mine):
                        i = view.setting
                        serves = _serves(aim, apart, question)
                        worst = float(np.max(excess[serves, k], initial=0.0))
                        outcome = _outcome(batch, lattice, aim, plans, k, worst, ends, located)
                        if worst < found.best[i] or found.sizes[i] == 0:
                            found.best[i], found.sizes[i], found.lattices[i] = worst, lattice.size, lattice
                            if question.keep:
                                found.curves[i] = curves[k]
                        step = refine(view, outcome, rules, lattice_of)
                        open_views[i] -= step.action == DONE
                        if step.action == PLAN:
                            to_plan.append(step.view)
                        elif step.action != DONE:
                            to_look.append(step.view)
                        # what is read off at one threshold gets a view of its own where the first look at the whole is too coarse
                        more = []
                        if aim == WHOLE and view.tries == 0 and not question.keep:
                            at = {
                                q: _place(question, thresholds, located, q, i, k)
                                for q in (int(q) for q in np.flatnonzero(apart))
                            }
                            more = [
                                focus(i, q, t, steps[i], rules)
                                for q, t in at.items()
                                if excess[q, k] > 1.0 and np.isfinite(t) and (i, q) not in made
                            ]
                        elif aim != WHOLE and step.action == DONE and worst > 1.0 and (i, WHOLE) not in made:
                            more = [whole(i, steps[i], rules)]
                        to_plan += more
                        made |= {(v.setting, v.aim) for v in more}
                        open_views[i] += len(more)
                    newly = (open_views == 0) & ~finished
                    finished |= newly
                    progress(int(np.sum(newly)))
        if rehearsed is not None:
            rehearsed.result()
    return found.answer()


def _known_threshold(quantity, value, number):
    """|ℓ| at which a quantity is read off, for every setting, where that is known beforehand."""
    if quantity.threshold is None:
        return None
    return np.broadcast_to(np.asarray(quantity.threshold(value), float), (number,))


def _serves(aim: int, apart, question: Question):
    """Quantities that a view has to make accurate: its own; of the whole curve those that have no view of their own."""
    if aim != WHOLE:
        return [aim]
    return [q for q in range(len(apart)) if question.keep or not apart[q]]


def _place(question: Question, thresholds, located, q: int, i: int, k: int) -> float:
    if thresholds[q] is not None:
        return float(thresholds[q][i])
    name = question.asked[q][0].name
    return float(located[name][k]) if name in located else np.nan


def _outcome(batch: Batch, lattice: Lattice, aim: int, plans: Plan, k: int, worst: float, ends, located) -> Outcome:
    ends = tuple(tuple(float(x) for x in a[k]) for a in ends)
    reach = tuple(float(x) for x in plans.cut_high[k, :, -1])
    if aim == WHOLE:
        return Outcome(lattice, worst, ends, reach)
    quantity = batch.question.asked[aim][0]
    at = float(located[quantity.name][k]) if quantity.name in located else np.nan
    return Outcome(lattice, worst, ends, reach, at, float(np.min(plans.spread[k])))


def _joined_rows(planned) -> Plan:
    """Plans of several views in one batch."""
    batches: dict[int, tuple] = {}
    for position, (plans, _, row) in enumerate(planned):
        batches.setdefault(id(plans), (plans, [], []))[1].append(row)
        batches[id(plans)][2].append(position)
    parts = _joined([take(plans, np.array(rows)) for plans, rows, _ in batches.values()])
    order = np.argsort(np.concatenate([positions for _, _, positions in batches.values()]), kind="stable")
    return take(parts, order)


def _halved(rows: list, cut: bool) -> list[list]:
    return [rows[: (len(rows) + 1) // 2], rows[(len(rows) + 1) // 2 :]] if cut else [rows]


def _tasks(batch: Batch, to_plan, to_look, plan, look, rehearsed: Future | None) -> list[Callable]:
    """What can be done now, as functions that change nothing: plans of one shape, and looks of one lattice.

    A program that may still have to be compiled is compiled once, so looks that share one are one task; once compiled, tasks are
    cut so that both cores have about as much to do.
    """
    jobs: list[Callable] = []
    plans: dict[tuple, list] = {}
    for view in to_plan:
        plans.setdefault((view.aim != WHOLE, view.aim, view.pieces), []).append(view)
    for views in plans.values():
        ready = (batch.classes(), "plan", views[0].aim == WHOLE, views[0].pieces) in _COMPILED
        jobs += [lambda part=part: plan(part) for part in _halved(views, ready and len(views) > 3 * _SEVERAL)]
    buckets: dict[tuple, list] = {}
    for lattice, view in to_look:
        buckets.setdefault((lattice, view.aim), []).append(view)
    shared: dict[tuple, list] = {}
    for (lattice, aim), views in sorted(buckets.items(), key=lambda item: item[0], reverse=True):
        program = ("look", lattice._replace(size=0), batch.kind(aim))
        if (batch.classes(), *program) in _COMPILED:
            for part in _halved(views, len(views) > 3 * _SEVERAL):
                jobs.append(lambda part=part, key=(lattice, aim): look([(key, part)]))
        else:
            shared.setdefault(program, []).append(((lattice, aim), views))
    first = likeliest(batch.question.rtol)._replace(size=0)
    for (_, lattice, _), part in shared.items():

        def job(part=part, waits=rehearsed is not None and lattice == first):
            if waits and rehearsed is not None:
                rehearsed.result()
            return look(part)

        jobs.append(job)
    return [with_float64(job) for job in jobs]


def _run(pool: ThreadPoolExecutor, jobs):
    """Results of all jobs; a single one is done here."""
    return [jobs[0]()] if len(jobs) == 1 else list(pool.map(lambda job: job(), jobs))


def _rehearsal(pool: ThreadPoolExecutor, batch: Batch) -> Future | None:
    """Compile the programs that most settings of a large batch will need while the first ones are planned; None where that is no use."""
    question = batch.question
    smooth = not any(mechanism.atomic for mechanism, _ in batch.groups)
    checks = getattr(jax.config, "jax_debug_nans", False)
    lattice = likeliest(question.rtol)
    program = ("look", lattice._replace(size=0), question.kind)
    chosen = batch.executor or executors.choose(batch.number, False)
    known = (batch.classes(), *program) in _COMPILED
    if chosen is not COMPILED or batch.number <= _SEVERAL or not smooth or question.keep or checks or known:
        return None

    def rehearse():
        rows = np.zeros(lattice.read_together() * COMPILED.devices, np.int64)
        plans = Plan.blank((len(rows), 2, 1), batch.components)
        _look(batch, COMPILED, COMPILED, lattice, WHOLE, rows, plans)
        _remember(COMPILED, batch, *program)
        _remember(COMPILED, batch, "read", lattice.pieces, question.kind)

    return pool.submit(with_float64(rehearse))


__all__ = ["MAX_SIZE", "STATUS", "Answer", "Question", "answer"]
