"""Plans of many tasks at once: tilts and windows, and what they need of a lattice."""

from __future__ import annotations

from typing import NamedTuple

import jax
import numpy as np

from ..plan import Plan
from ..steer.lattice_choice import Needs, needs
from ..steer.refinement import JUMP_SHARES, CurveTask, PointTask, Task
from .batch import Batch, plan_program
from .executors import COMPILED, EAGER, Executor
from .rows import chunks, joined, take

TOGETHER = 64  # tasks that are planned at once
_PIECES_PLANNED = 4.0  # tilts that are planned in the time of a pass


class PlannedTasks(NamedTuple):
    """Plans of several tasks.

    Attributes:
        plans: leaves of shape (tasks, sides, pieces, …).
        needs: what each task needs of a lattice.
    """

    plans: Plan
    needs: Needs


class PlannedTask(NamedTuple):
    """The plan of one of several tasks: a row of their plans."""

    together: PlannedTasks
    row: int

    @property
    def needs(self) -> Needs:
        """What this task needs of a lattice."""
        return Needs(*(column[self.row] for column in self.together.needs))


def plan_tasks(batch: Batch, tasks: list[Task]) -> PlannedTasks:
    """Plans of tasks of one kind, one quantity and one number of pieces."""
    whole, pieces, rtol = isinstance(tasks[0], CurveTask), tasks[0].pieces, batch.question.rtol
    program, plan = plan_program(whole, pieces), _plan_curves if whole else _plan_points
    executor = batch.choose(len(tasks) * max(1.0, pieces / _PIECES_PLANNED), program)
    batch.wait_for(executor, program)
    if executor is EAGER:
        chunk = [tasks[i % len(tasks)] for i in range(TOGETHER)]
        work = len(tasks) * pieces / _PIECES_PLANNED
        batch.compile_beside(work, program, lambda: plan(batch, COMPILED, chunk))
    found = []
    for rows, real in chunks(len(tasks), TOGETHER, executor.padded):
        part = plan(batch, executor, [tasks[row] for row in rows])
        found.append(take(part, slice(0, real)))
    batch.remember(executor, program)
    plans, steps = joined(found)
    plus, minus = (jax.tree.map(lambda a: a[:, 0], plans), jax.tree.map(lambda a: a[:, 1], plans))
    return PlannedTasks(plans, needs(plus, minus, steps, rtol, not whole))


def _plan_curves(batch: Batch, executor: Executor, tasks: list[CurveTask]) -> tuple:
    settings = np.array([task.setting for task in tasks])
    depths = take((batch.rates.z_floor, batch.rates.z_delta), settings)
    thresholds = np.array([task.known_reach.thresholds for task in tasks], float)
    log_fprs = np.array([task.known_reach.log_fprs for task in tasks], float)
    return executor.plan_whole(
        take(batch.groups, settings),
        depths,
        batch.question.rtol,
        np.array([task.max_neg_log_density for task in tasks]),
        (thresholds, log_fprs),
        batch.anchor[settings],
        tasks[0].pieces,
    )


def _plan_points(batch: Batch, executor: Executor, tasks: list[PointTask]) -> tuple:
    return executor.plan_threshold(
        take(batch.groups, np.array([task.setting for task in tasks])),
        np.array([task.threshold for task in tasks]),
        batch.question.rtol,
        np.array([JUMP_SHARES[task.gentler_tilts] for task in tasks]),
    )


def plans_of(planned: list[PlannedTask]) -> Plan:
    """Plans of several tasks in one batch, in their order."""
    rows: dict[int, list[int]] = {}
    positions: dict[int, list[int]] = {}
    plans: dict[int, Plan] = {}
    for position, task in enumerate(planned):
        key = id(task.together.plans)
        plans[key] = task.together.plans
        rows.setdefault(key, []).append(task.row)
        positions.setdefault(key, []).append(position)
    parts = joined([take(plans[key], np.array(some)) for key, some in rows.items()])
    order = np.argsort(np.concatenate(list(positions.values())), kind="stable")
    return take(parts, order)
