"""What can be done at once: jobs for two threads, cut so that both have about as much to do.

A program that has to be compiled is compiled once, so passes that share one are one job; where
nothing has to be, jobs are cut in two. A cut never changes which settings a chunk has, so that a
setting's bits do not depend on what is compiled already."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

import jax
import numpy as np

from ...numerics.precision import with_float64
from ..plan import Plan
from ..steer.lattice_choice import likeliest
from ..steer.lattices import Lattices
from ..steer.refinement import CurveTask, Task
from . import plans
from .batch import Batch, Program, half_program, plan_program
from .executors import COMPILED, EAGER, Executor
from .passes import Pass, run_passes

SEVERAL = 64  # settings from which on jobs are cut in two and programs compiled ahead
# tasks of a job that plans with a compiled program, so that lattices are chosen beside the next one
_PLANNED = 256


class Bucket(NamedTuple):
    """Tasks of one kind, quantity and side that share their lattices."""

    lattices: Lattices
    quantity: int | None
    side: int | None
    tasks: list[Task]

    @property
    def work(self) -> float:
        """What they cost NumPy, in passes on 512 vertices."""
        return len(self.tasks) * self.lattices.work


class PassJob(NamedTuple):
    """Passes that are run one after the other.

    Attributes:
        buckets: the tasks of each pass.
        executor: who composes their halves.
        program: the program that has to be compiled for them, None where none has to be.
    """

    buckets: list[Bucket]
    executor: Executor
    program: Program | None = None


class PassJobs(NamedTuple):
    """Jobs of compiled programs, and jobs of NumPy."""

    compiled: list[PassJob]
    eager: list[PassJob]


def cut(tasks: list[Task], multiple: int = 1) -> list[list[Task]]:
    """Tasks in two parts of about equal size, the first a multiple; in one where they are few."""
    if len(tasks) <= 3 * SEVERAL:
        return [tasks]
    middle = -(-((len(tasks) + 1) // 2) // multiple) * multiple
    return [part for part in (tasks[:middle], tasks[middle:]) if part]


def plan_jobs(batch: Batch, tasks: list[Task]) -> list[list[Task]]:
    """Tasks to be planned, by what decides the shape of their plans."""
    alike: dict[tuple, list[Task]] = {}
    for task in tasks:
        alike.setdefault((task.quantity, task.pieces, task.side), []).append(task)
    jobs: list[list[Task]] = []
    for part in alike.values():
        whole = isinstance(part[0], CurveTask)
        program = plan_program(whole, part[0].pieces, part[0].side is None)
        ready = batch.is_compiled(program) or batch.executor in (None, EAGER)
        if batch.is_compiled(program) and batch.executor is not EAGER:
            most = max(_PLANNED, plans.TOGETHER * COMPILED.chunks)
            jobs += [part[at : at + most] for at in range(0, len(part), most)]
        else:
            jobs += cut(part, plans.TOGETHER) if ready else [part]
    return jobs


def by_program(chosen: list[tuple[Lattices, Task]]) -> dict[Program, list[Bucket]]:
    """Tasks in buckets, by the program that composes their halves; larger lattices first."""
    programs: dict[Program, dict[tuple, Bucket]] = {}
    for lattices, task in sorted(chosen, key=lambda item: item[0], reverse=True):
        buckets = programs.setdefault(half_program(lattices), {})
        key = lattices, task.quantity, task.side
        buckets.setdefault(key, Bucket(*key, [])).tasks.append(task)
    return {program: list(buckets.values()) for program, buckets in programs.items()}


def pass_jobs(batch: Batch, chosen: list[tuple[Lattices, Task]]) -> PassJobs:
    """Jobs for tasks and their lattices; few tasks of each of several are one job of NumPy's."""
    compiled: list[PassJob] = []
    eager: list[PassJob] = []
    few: list[Bucket] = []
    for program, buckets in by_program(chosen).items():
        ready = batch.is_compiled(program)
        executor = None
        if not ready:
            executor = _executor_of(batch, program, sum(bucket.work for bucket in buckets))
            if executor is not EAGER:
                compiled.append(PassJob(buckets, executor, program))
                continue
        for bucket in buckets:
            for part in cut(bucket.tasks, _multiple(batch, executor, bucket.lattices)):
                one = bucket._replace(tasks=part)
                mine = executor or _executor_of(batch, program, len(part) * one.lattices.pieces)
                if mine is EAGER and len(part) <= SEVERAL:
                    few.append(one)
                else:
                    (eager if mine is EAGER else compiled).append(PassJob([one], mine))
    # (two threads of NumPy wait for one another: where there are programs, one runs them while the
    # other one does what is NumPy's)
    lists = _shared(few, 1 if compiled else 2)
    return PassJobs(compiled, eager + [PassJob(some, EAGER) for some in lists if some])


def _executor_of(batch: Batch, program: Program, work: float) -> Executor:
    lattices = program[1]
    return batch.choose(work, program) if lattices.compiled else batch.executor or EAGER


def _multiple(batch: Batch, executor: Executor | None, lattices: Lattices) -> int:
    """Tasks of a chunk, where a cut would change chunks; NumPy's are always cut."""
    executor = batch.executor or executor
    return 1 if executor is EAGER else lattices.read_together() * COMPILED.chunks


def _shared(few: list[Bucket], number: int) -> list[list[Bucket]]:
    """Buckets in so many lists of about equal work, each started with the largest ones."""
    lists: list[list[Bucket]] = [[] for _ in range(number)]
    work = [0.0] * number
    for bucket in sorted(few, key=lambda bucket: -bucket.work):
        least = work.index(min(work))
        lists[least].append(bucket)
        work[least] += bucket.work
    return lists


def run_all(pool: ThreadPoolExecutor, jobs: list[Callable[[], Any]]) -> Iterator[Any]:
    """Results of all jobs, in their order, as they come; a single one is done here."""
    jobs = [with_float64(job) for job in jobs]
    return iter([jobs[0]()]) if len(jobs) == 1 else pool.map(lambda job: job(), jobs)


class Precompiled(NamedTuple):
    """A program that is being compiled meanwhile."""

    program: Program
    future: Future


def precompile(pool: ThreadPoolExecutor, batch: Batch) -> Precompiled | None:
    """Where compiled programs are asked for, compile those that most settings of a large batch will
    need while the first ones are planned; None where that is no use.
    """
    question, lattice = batch.question, likeliest(batch.question.rtol)
    lattices = Lattices(lattice, lattice)
    program = half_program(lattices)
    if (
        batch.executor is not COMPILED
        or batch.number <= SEVERAL
        or any(mechanism.atomic for mechanism, _ in batch.groups)
        or question.keep
        or getattr(jax.config, "jax_debug_nans", False)
        or batch.is_compiled(program)
    ):
        return None

    def compile_both():
        settings = np.zeros(lattice.read_together() * COMPILED.chunks, np.int64)
        blank = Plan.blank((len(settings), 2, 1), batch.components)
        run_passes(batch, [Pass(lattices, None, None, settings, blank, COMPILED, COMPILED)])
        batch.remember(COMPILED, program)

    return Precompiled(program, pool.submit(with_float64(compile_both)))
