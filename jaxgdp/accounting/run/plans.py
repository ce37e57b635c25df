"""Plans of many tasks at once: tilts and windows, and what they need of a lattice."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import jax
import numpy as np

from ..plan import Plan
from ..steer.lattice_needs import NeedsOfSides, Side, needs
from ..steer.refinement import JUMP_SHARES, CurveTask, PointTask, Task
from .batch import Batch, plan_program
from .executors import COMPILED, EAGER, Executor
from .rows import chunks, joined, take

TOGETHER = 64  # tasks of one piece that are planned at once
_EAGER_TOGETHER = 256  # … by NumPy
_PIECES_PLANNED = 4.0  # tilts that are planned in the time of a pass


@dataclass(frozen=True, eq=False)
class PlannedTasks:
    """Plans of several tasks.

    Attributes:
        plans: leaves of shape (tasks, sides, pieces, …).
        needs: what each task needs of lattices.
    """

    plans: Plan
    needs: NeedsOfSides

    @functools.cached_property
    def of_sides(self) -> tuple[PlannedTasks, ...]:
        """The plans of each side for itself."""
        return tuple(
            PlannedTasks(
                jax.tree.map(lambda a: a[:, side : side + 1], self.plans),  # noqa: B023
                NeedsOfSides(own, (own,)),
            )
            for side, own in enumerate(self.needs.each)
        )


class PlannedTask(NamedTuple):
    """The plan of one of several tasks: a row of their plans."""

    together: PlannedTasks
    row: int

    @property
    def needs(self) -> NeedsOfSides:
        """What this task needs of lattices."""
        return self.together.needs.of(self.row)

    def of_side(self, side: int) -> PlannedTask:
        """The plan of one of both sides."""
        return PlannedTask(self.together.of_sides[side], self.row)


def plan_tasks(batch: Batch, tasks: list[Task]) -> PlannedTasks:
    """Plans of tasks of one kind, one quantity, one number of pieces and the same sides."""
    whole, pieces, rtol = isinstance(tasks[0], CurveTask), tasks[0].pieces, batch.question.rtol
    plan: Callable[..., tuple] = _plan_curves if whole else _plan_points
    side = tasks[0].side
    program = plan_program(whole, pieces, side is None)
    executor = batch.choose(len(tasks) * max(1.0, pieces / _PIECES_PLANNED), program)
    batch.wait_for(executor, program)
    if executor is EAGER:

        def plan_once() -> None:
            # (devices are counted here only: to count them starts the whole backend)
            chunk = [tasks[i % len(tasks)] for i in range(_at_once(COMPILED, pieces))]
            plan(batch, COMPILED, chunk)

        work = len(tasks) * pieces / _PIECES_PLANNED
        batch.compile_beside(work, program, plan_once)
    found = []
    for rows, real in chunks(len(tasks), _at_once(executor, pieces), executor.padded):
        part = plan(batch, executor, [tasks[row] for row in rows])
        found.append(take(part, slice(0, real)))
    batch.remember(executor, program)
    plans, steps = joined(found)
    planned = [
        Side(jax.tree.map(lambda a: a[:, at], plans), swapped == 1)  # noqa: B023
        for at, swapped in enumerate(sides_of(side))
    ]
    return PlannedTasks(plans, needs(planned, steps, rtol, not whole, batch.question.share_of_mu))


def _at_once(executor: Executor, pieces: int) -> int:
    """Tasks of so many pieces that are planned at once."""
    if executor is EAGER:
        return _EAGER_TOGETHER
    return max(TOGETHER // pieces, 1) * executor.chunks


def sides_of(side: int | None) -> tuple[int, ...]:
    """The sides that the plans of a task have, in their order."""
    return (0, 1) if side is None else (side,)


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
        np.array([sides_of(task.side) for task in tasks]) == 1,
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
