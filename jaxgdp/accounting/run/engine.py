"""From a batch of mechanisms to certified numbers: carries out the looks that the policy
(``refine``) asks for.

Looks that share a lattice are done together (``batch``); two tasks run at a time, where the process
may use two cores, so that one program is compiled while another one runs."""

from __future__ import annotations

import collections
import functools
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import jax
import numpy as np

from ...bracket import STATUS, Bracket
from ...numerics.precision import with_float64
from ...numerics.threads import taking_turns
from ...scale.local import cores
from ..certify import finite_laws
from ..plan import Plan
from ..question import Answer, Question
from ..steer.lattice_choice import Lattice, Needs, choose, likeliest
from ..steer.refinement import (
    DONE,
    PLAN,
    WHOLE,
    Outcome,
    Rules,
    View,
    focus,
    more_pieces,
    refine,
    whole,
)
from . import executors
from .executors import COMPILED, EAGER, Executor
from .passes import Batch, Look, joined_rows, look_at, plan_views, program_of, take

MAX_SIZE = 2**20
_SEVERAL = 64  # settings from which on tasks are cut in two and programs compiled ahead


class _Found:
    """The brackets so far, what all looks have in common."""

    def __init__(self, number: int, question: Question):
        self.asked = question.asked
        self.results = {
            q.name: Bracket(np.full(number, -np.inf), np.full(number, np.inf))
            for q, _ in self.asked
        }
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
        return np.stack(
            [q.excess(take(self.results[q.name], settings), rtol) for q, _ in self.asked]
        )


def answer(
    groups,
    question: Question,
    progress=None,
    max_size: int = MAX_SIZE,
    executor: Executor | None = None,
) -> Answer:
    """Certified numbers of a flat batch of mechanisms.

    Args:
        groups: ``Composition.stacked()`` with leaves of shape (settings, components).
        question: what to compute.
        progress: called with the number of settings finished, as they finish.
        max_size: largest dense lattice to try, but for views of one threshold that need not much
            more than 2^20 points.
        executor: who computes; None lets the environment variable ``JAXGDP_EXECUTOR`` decide, else
            the number of settings.

    Returns:
        An :class:`Answer`.
    """
    executor, progress = executor or executors.by_name(None), progress or (lambda done: None)
    number, alone = groups[0][1].shape[0], finite_laws.used_once(groups)
    if not np.any(alone):
        return with_float64(_answer)(groups, question, progress, max_size, executor)
    # one use of a pair known from tables needs no lattice
    found = _Found(number, question)
    rows, others = np.flatnonzero(alone), np.flatnonzero(~alone)
    found.put(rows, finite_laws.answer(groups, rows, question.take(rows, number)))
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
    tight, coarse = (
        all(mechanism.tight for mechanism, _ in groups),
        executor.coarse if executor else 0.0,
    )
    rules = Rules(question.rtol, max_size, tight, question.keep, coarse)
    steps: Any = sum(np.sum(count, axis=-1) for _, count in groups)
    found = _Found(number, question)

    views: list[View] = []
    if question.asked and len(known) == len(question.asked) and not question.keep:
        for aim, row in enumerate(known):
            views += [focus(i, aim, row[i], steps[i], rules) for i in range(number)]
    else:
        views = [whole(i, steps[i], rules) for i in range(number)]
    made = {(v.setting, v.aim) for v in views}
    open_views, finished = (
        np.bincount([v.setting for v in views], minlength=number),
        np.zeros(number, bool),
    )
    planned: dict[
        tuple, tuple
    ] = {}  # (setting, aim, pieces) → plans and needs, and the row in them

    def lattice_of(view: View) -> Lattice:
        _, need, row = planned[view.setting, view.aim, view.pieces]
        mine = Needs(*(a[row] for a in need))
        return choose(
            mine, view.detail, question.rtol, view.pieces, max_size, view.dense, excess=view.excess
        )

    def plan(views):
        done = []
        while views:
            result = plan_views(batch, views)
            done.append((views, result))
            length = np.max(result[0].length[:, :, 0], axis=1)
            views = [
                w
                for v, l in zip(views, length, strict=True)
                if (w := more_pieces(v, l)) is not None
            ]
        return PLAN, done

    def look(buckets, who):
        looks, numbers = [], collections.Counter()
        for (lattice, aim), views in buckets:
            numbers["read", lattice.pieces, batch.kind(aim)] += len(views)
        for (lattice, aim), views in buckets:
            settings = np.array([v.setting for v in views])
            plans = joined_rows([planned[v.setting, v.aim, v.pieces] for v in views])
            # (few views of many pieces are work enough to compile their halves, and not their
            # reading)
            reading = "read", lattice.pieces, batch.kind(aim)
            reader = batch.choose(numbers[reading], *reading) if who is COMPILED else who
            looks.append(Look(lattice, aim, settings, plans, who, reader))
        found = look_at(batch, looks)
        for mine in looks:
            batch.remember(who, *program_of(mine.lattice))
            batch.remember(mine.reader, "read", mine.lattice.pieces, batch.kind(mine.aim))
        return "look", [
            (mine, views, what)
            for mine, (_, views), what in zip(looks, buckets, found, strict=True)
        ]

    to_plan, to_look = list(views), []
    with taking_turns(), ThreadPoolExecutor(min(2, len(cores()) or 2)) as pool:
        rehearsed = _rehearsal(pool, batch)
        while to_plan or to_look:
            jobs = _tasks(
                batch, to_plan, [(lattice_of(v), v) for v in to_look], plan, look, rehearsed
            )
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
                for (lattice, aim, _, plans, *_), mine, (numbers, located, ends, curves) in done:
                    settings = np.array([v.setting for v in mine])
                    found.add(settings, numbers)
                    excess = found.excess(question.rtol, settings)
                    apart = [
                        q.threshold is not None or q.locate is not None for q, _ in question.asked
                    ]
                    for k, view in enumerate(mine):
                        i = view.setting
                        serves = _serves(aim, apart, question)
                        worst = float(np.max(excess[serves, k], initial=0.0))
                        outcome = _outcome(batch, lattice, aim, plans, k, worst, ends, located)
                        if worst < found.best[i] or found.sizes[i] == 0:
                            found.best[i], found.sizes[i], found.lattices[i] = (
                                worst,
                                lattice.size,
                                lattice,
                            )
                            if question.keep:
                                found.curves[i] = curves[k]
                        step = refine(view, outcome, rules, lattice_of)
                        open_views[i] -= step.action == DONE
                        if step.action == PLAN:
                            to_plan.append(step.view)
                        elif step.action != DONE:
                            to_look.append(step.view)
                        # what is read off at one threshold gets a view of its own where the first
                        # look at the whole is too coarse
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
                        elif (
                            aim != WHOLE
                            and step.action == DONE
                            and worst > 1.0
                            and (i, WHOLE) not in made
                        ):
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
    """Quantities that a view has to make accurate: its own; of the whole curve those that have no
    view of their own.
    """
    if aim != WHOLE:
        return [aim]
    return [q for q in range(len(apart)) if question.keep or not apart[q]]


def _place(question: Question, thresholds, located, q: int, i: int, k: int) -> float:
    if thresholds[q] is not None:
        return float(thresholds[q][i])
    name = question.asked[q][0].name
    return float(located[name][k]) if name in located else np.nan


def _outcome(
    batch: Batch, lattice: Lattice, aim: int, plans: Plan, k: int, worst: float, ends, located
) -> Outcome:
    ends = tuple(tuple(float(x) for x in a[k]) for a in ends)
    reach = tuple(float(x) for x in plans.cut_high[k, :, -1])
    if aim == WHOLE:
        return Outcome(lattice, worst, ends, reach)
    quantity = batch.question.asked[aim][0]
    at = float(located[quantity.name][k]) if quantity.name in located else np.nan
    return Outcome(lattice, worst, ends, reach, at, float(np.min(plans.spread[k])))


def _halved(rows: list, cut: bool) -> list[list]:
    return [rows[: (len(rows) + 1) // 2], rows[(len(rows) + 1) // 2 :]] if cut else [rows]


def _tasks(batch: Batch, to_plan, to_look, plan, look, rehearsed: Future | None) -> list[Callable]:
    """What can be done now, as functions that change nothing: plans of one shape, and looks of one
    lattice.

    A program that has to be compiled is compiled once, so looks that share one are one task; where
    nothing has to be, tasks are cut so that both cores have about as much to do. Few views of each
    of several lattices are one task of NumPy's."""
    jobs: list[Callable] = []
    plans: dict[tuple, list] = {}
    for view in to_plan:
        plans.setdefault((view.aim != WHOLE, view.aim, view.pieces), []).append(view)
    for views in plans.values():
        ready = batch.compiled("plan", views[0].aim == WHOLE, views[0].pieces)
        jobs += [
            functools.partial(plan, part)
            for part in _halved(views, ready and len(views) > 3 * _SEVERAL)
        ]
    shared: dict[tuple, dict[tuple, list]] = {}
    for lattice, view in sorted(to_look, key=lambda item: item[0], reverse=True):
        buckets = shared.setdefault(program_of(lattice), {})
        buckets.setdefault((lattice, view.aim), []).append(view)
    first, compiled, eager, few = likeliest(batch.question.rtol)._replace(size=0), [], [], []
    for program, buckets in shared.items():
        lattice, ready = program[1], batch.compiled(*program)

        def who(work, lattice=lattice, program=program):
            return batch.choose(work, *program) if lattice.compiled else batch.executor or EAGER

        chosen = (
            None
            if ready
            else who(sum(len(views) * mine.work for (mine, _), views in buckets.items()))
        )
        if ready or chosen is EAGER:
            for key, views in buckets.items():
                for part in _halved(views, len(views) > 3 * _SEVERAL):
                    mine = chosen or who(len(part) * key[0].pieces)
                    if mine is EAGER and len(part) <= _SEVERAL:
                        few.append((key, part))
                    else:
                        (eager if mine is EAGER else compiled).append(
                            functools.partial(look, [(key, part)], mine)
                        )
            continue
        compiled.append(
            functools.partial(
                _compiling,
                look,
                list(buckets.items()),
                chosen,
                rehearsed if lattice == first else None,
            )
        )
    # (two threads of NumPy wait for one another: where there are programs, one runs them while the
    # other one does what is NumPy's)
    eager += [
        functools.partial(look, some, EAGER) for some in _shared(few, 1 if compiled else 2) if some
    ]
    return [with_float64(job) for job in (*jobs, *compiled[:1], *eager, *compiled[1:])]


def _shared(few: list, number: int) -> list[list]:
    """Buckets of views in so many lists of about equal work, each started with the largest ones."""
    lists: list[list] = [[] for _ in range(number)]
    work = [0.0] * number
    for (lattice, aim), views in sorted(few, key=lambda item: -len(item[1]) * item[0][0].work):
        least = work.index(min(work))
        lists[least].append(((lattice, aim), views))
        work[least] += len(views) * lattice.work
    return lists


def _compiling(look, buckets, who, rehearsed: Future | None):
    """Looks with a program that has to be compiled, unless it is being compiled already."""
    if rehearsed is not None:
        rehearsed.result()
    return look(buckets, who)


def _run(pool: ThreadPoolExecutor, jobs):
    """Results of all jobs; a single one is done here."""
    return [jobs[0]()] if len(jobs) == 1 else list(pool.map(lambda job: job(), jobs))


def _rehearsal(pool: ThreadPoolExecutor, batch: Batch) -> Future | None:
    """Compile the programs that most settings of a large batch will need while the first ones are
    planned; None where that is no use.
    """
    question = batch.question
    smooth = not any(mechanism.atomic for mechanism, _ in batch.groups)
    checks = getattr(jax.config, "jax_debug_nans", False)
    lattice = likeliest(question.rtol)
    program = program_of(lattice)
    chosen = batch.executor or executors.choose(batch.number, False)
    known = batch.compiled(*program)
    if (
        chosen is not COMPILED
        or batch.number <= _SEVERAL
        or not smooth
        or question.keep
        or checks
        or known
    ):
        return None

    def rehearse():
        rows = np.zeros(lattice.read_together() * COMPILED.devices, np.int64)
        plans = Plan.blank((len(rows), 2, 1), batch.components)
        look_at(batch, [Look(lattice, WHOLE, rows, plans, COMPILED, COMPILED)])
        batch.remember(COMPILED, *program)
        batch.remember(COMPILED, "read", lattice.pieces, question.kind)

    return pool.submit(with_float64(rehearse))


__all__ = ["MAX_SIZE", "STATUS", "Answer", "Question", "answer"]
