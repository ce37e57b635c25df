"""One batch and one question on lattices: the passes that ``refine`` asks for.

Tasks that share a lattice are computed together (``passes``); two jobs run at a time (``jobs``),
where the process may use two cores, so that one program is compiled while another one runs."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from ...bracket import Bracket
from ...mechanisms.composition import collapse_gaussians
from ...numerics.shapes import Array, Float
from ...numerics.threads import taking_turns
from ...scale.local import cores
from ..question import Answer, Question
from ..steer.lattice_choice import choose, choose_each
from ..steer.lattices import LatticeChoice, Lattices
from ..steer.refinement import (
    DONE,
    PLAN,
    CurveTask,
    Decision,
    PassResult,
    PointTask,
    Reach,
    Rules,
    Task,
    more_pieces,
    one_threshold,
    refine,
    whole_curve,
)
from . import jobs
from .allowance import Allowance
from .background import expected
from .batch import Batch, half_program, known_threshold
from .executors import EAGER, Executor
from .jobs import Bucket, PassJob, Precompiled
from .passes import Pass, Readings, run_passes
from .plans import PlannedTask, plan_tasks, plans_of
from .running_brackets import RunningBrackets

MAX_SIZE = 2**20
# … of so many components and more, each of which has arrays of its own
_MANY, _MAX_SIZE_OF_MANY = 3, 2**19
_MANY_STEPS = 1e4  # from which on sparse lattices about a place are tried
_NEAR = 10.0  # width over the width promised, of what is known of a place
# part of the other order's value from which on an order may be the worse one
_DECIDES = 0.9


class Planned(NamedTuple):
    """A task, its plan, and the lattices of its first pass."""

    task: Task
    plan: PlannedTask
    lattices: Lattices


class FinishedPass(NamedTuple):
    """A pass that was run, its tasks, and what was read off for each."""

    one: Pass
    tasks: list[Task]
    readings: Readings

    def result(self, row: int, excess: float, quantity: str | None) -> PassResult:
        """What it found for one task: of ``quantity``, if the task has one."""
        thresholds, log_fprs = self.readings.required_reach
        located = self.readings.located
        cut_high = self.one.plans.cut_high[row, :, -1]
        found = PassResult(
            self.one.lattices.leading,
            excess,
            Reach(_both_sides(thresholds[row]), _both_sides(log_fprs[row])),
            tuple(float(x) for x in cut_high),
            mixed=self.one.side is None and self.one.lattices.mixed,
        )
        if quantity is None:
            return found
        threshold = float(np.max(located[quantity][row])) if quantity in located else np.nan
        spread = float(np.min(self.one.plans.spread[row]))
        several = _several(self.one.plans.jump[row])
        return found._replace(threshold=threshold, spread=spread, several=several)


def _several(jump: Array) -> bool:
    """Whether several jumps lead to a threshold."""
    return bool(np.any(jump == -np.inf))


def _both_sides(values: Float[Array, " sides"]) -> tuple[float, float]:
    return float(values[0]), float(values[1])


class Engine:
    """One batch and one question, from the first tasks to the last pass.

    Args:
        groups: ``Composition.stacked()`` with leaves of shape (settings, components).
        question: what to compute.
        progress: called with the number of settings finished, as they finish.
        max_size: largest dense lattice to try.
        executor: the one that was named, or None.
        known: what is known of the settings by other means, or None.
        places: thresholds |ℓ| near which quantities are read off, by name, of shape (settings,), as
            far as they are known by other means, else NaN: then only these are looked at, once, and
            a setting has a third of the work. Quantities without a threshold stand for the whole
            curve, where they are finite.
    """

    def __init__(
        self,
        groups: tuple,
        question: Question,
        progress: Callable[[int], Any],
        max_size: int,
        executor: Executor | None,
        known: RunningBrackets | None = None,
        places: Mapping[str, Array] | None = None,
    ):
        self.question, self.progress = question, progress
        self.number = groups[0][1].shape[0]
        self.steps = np.asarray(sum(np.sum(n, axis=-1) for _, n in groups))
        # thresholds that are known beforehand, and quantities that get tasks of their own
        self.thresholds = [known_threshold(q, at, self.number) for q, at in question.asked]
        self.at_threshold = [
            q.threshold is not None or q.locate is not None for q, _ in question.asked
        ]
        self.at_thresholds_only = all(self.at_threshold) and not question.keep
        self.batch = self._batch(groups, executor)
        components = sum(count.shape[-1] for _, count in self.batch.groups)
        self.rules = Rules(
            question.rtol,
            max_size if components < _MANY else min(max_size, _MAX_SIZE_OF_MANY),
            all(mechanism.tight for mechanism, _ in groups),
            question.keep,
            executor.log_noise if executor else 0.0,
        )
        self.found = known or RunningBrackets(self.number, question)
        # whether orders get tasks of their own, for quantities that are the worse of both
        self.apart = question.adjacency.symmetric and not self.batch.symmetric
        # (setting, quantity, side, pieces) → its plan
        self.plans: dict[tuple, PlannedTask] = {}
        self.first_lattices: dict[tuple, Lattices] = {}
        self.started: set[tuple[int, int | None, int | None]] = set()
        self.open_tasks = np.zeros(self.number, int)
        self.finished = np.zeros(self.number, bool)
        scouts, part = self.at_thresholds_only, 1.0 / 3.0 if places else 1.0
        self.allowance = Allowance(groups, question, part, scouts)
        self.to_plan: list[Task] = []
        self.to_run: list[Task] = []
        self.places = places or {}

    def _batch(self, groups: tuple, executor: Executor | None) -> Batch:
        rates = self.question.rates(self.number)
        parts = (executor or EAGER).parts(groups)
        known = [row for row in self.thresholds if row is not None]
        anchor = known[0] if known else np.zeros(self.number)
        settings, prepare = expected()
        groups = collapse_gaussians(groups)
        return Batch(
            groups, self.question, rates, parts, anchor, executor, settings / self.number, prepare
        )

    def answer(self) -> Answer:
        """Everything that was requested."""
        self.start(self.first_tasks())
        with taking_turns(), ThreadPoolExecutor(min(2, len(cores()) or 2)) as pool:
            precompiled = jobs.precompile(pool, self.batch)
            while self.to_plan or self.to_run:
                self._round(pool, precompiled)
            if precompiled is not None:
                precompiled.future.result()
        return self.found.answer()

    def _round(self, pool: ThreadPoolExecutor, precompiled: Precompiled | None) -> None:
        """Do all that can be done now."""
        planning = jobs.plan_jobs(self.batch, self.to_plan)
        compiled, eager = jobs.pass_jobs(self.batch, self._affordable())
        running = [*compiled[:1], *eager, *compiled[1:]]
        self.to_plan, self.to_run = [], []
        done = jobs.run_all(
            pool,
            [functools.partial(self.plan_pending, tasks) for tasks in planning]
            + [functools.partial(self.run_pass, job, precompiled) for job in running],
        )
        for planned in itertools.islice(done, len(planning)):
            self.absorb_plans(planned)
        for passes in done:
            for one in passes:
                self.absorb(one)

    def _affordable(self) -> list[tuple[Lattices, Task]]:
        """Tasks that wait for a pass, with their lattices, as far as the work that is left for
        their settings goes: a first pass has a smaller lattice then, others are given up.
        """
        found: list[tuple[Lattices, Task]] = []
        for task in self.to_run:
            lattices = self.first_lattices.pop(_place_of(task), None) or self.lattices_of(task)
            if task.tries == 0:
                lattices = self.allowance.first(task, lattices, self._foreseen(task))
            if not self.allowance.spend(task, lattices):
                self.open_tasks[task.setting] -= 1
                continue
            found.append((lattices, task))
        self._report_finished()
        return found

    def _foreseen(self, task: Task) -> bool:
        """Whether its plan says how long its pieces are."""
        planned = self.plans[_place_of(task)]
        return bool(np.all(np.isfinite(planned.together.plans.length[planned.row])))

    def _report_finished(self) -> None:
        """Tell of settings that have no task left."""
        newly = (self.open_tasks == 0) & ~self.finished
        self.finished |= newly
        self.progress(int(np.sum(newly)))

    def first_tasks(self) -> Sequence[Task]:
        """Whole curves, or the thresholds themselves where all of them are known beforehand."""
        if self.places:
            return self._at_places()
        known = [row for row in self.thresholds if row is not None]
        settings = range(self.number)
        if not known or len(known) < len(self.thresholds) or self.question.keep:
            return [whole_curve(i, self.steps[i], self.rules) for i in settings]
        return [
            one_threshold(
                i, quantity, float(row[i]), self.steps[i], self.rules, self.side_of(quantity)
            )
            for quantity, row in enumerate(known)
            for i in settings
        ]

    def _at_places(self) -> list[Task]:
        """Tasks about places that are known beforehand, for each order where it has its own, and
        whole curves.
        """
        for setting in range(self.number):
            self.allowance.compose_in_full(setting)
        tasks: dict[tuple, Task] = {}
        for q, own in enumerate(self.at_threshold):
            places = self.places.get(self._name(q), np.zeros(0))
            for i in map(int, np.flatnonzero(np.isfinite(places))):
                if not own:
                    tasks[i,] = whole_curve(i, self.steps[i], self.rules)
                    continue
                for side in (0, 1) if self._by_order(q) else (self.side_of(q),):
                    tasks[i, q, side] = one_threshold(
                        i, q, float(places[i]), self.steps[i], self.rules, side
                    )
        # (of fewer steps sparse lattices are of no use where a whole curve on them showed nothing)
        return [
            dataclasses.replace(task, dense=bool(self.steps[task.setting] < _MANY_STEPS))
            for task in tasks.values()
        ]

    def start(self, tasks: Sequence[Task]) -> None:
        """Plan new tasks in the next round."""
        self.to_plan += tasks
        for task in tasks:
            self._add(task)

    def _add(self, task: Task) -> None:
        self.started.add((task.setting, task.quantity, task.side))
        self.open_tasks[task.setting] += 1

    def lattices_of(self, task: Task, plan: PlannedTask | None = None) -> Lattices:
        """The lattices that a task gets, by its plan."""
        return choose_each(
            (plan or self.plans[_place_of(task)]).needs,
            lambda need: choose(
                need,
                task.detail,
                self.question.rtol,
                task.pieces,
                self.rules.max_size,
                task.dense,
                excess=task.excess,
            ),
        )

    def leading_lattice_of(self, task: Task) -> LatticeChoice:
        """The one of them that decides what a pass costs."""
        return self.lattices_of(task).leading

    def plan_pending(self, tasks: list[Task]) -> list[Planned]:
        """Plans of tasks, in more pieces where one is too long (changes nothing)."""
        done: list[Planned] = []
        while tasks:
            together = plan_tasks(self.batch, tasks)
            length = np.max(together.plans.length[:, :, 0], axis=1)
            rtol = self.question.rtol
            longer = [more_pieces(task, l, rtol) for task, l in zip(tasks, length, strict=True)]
            plans = [PlannedTask(together, row) for row in range(len(tasks))]
            done += [
                Planned(task, plan, self.lattices_of(task, plan))
                for task, plan, more in zip(tasks, plans, longer, strict=True)
                if more is None
            ]
            tasks = [more for more in longer if more is not None]
        return done

    def run_pass(self, job: PassJob, precompiled: Precompiled | None) -> list[FinishedPass]:
        """Passes over some buckets of tasks (changes nothing)."""
        if precompiled is not None and job.program == precompiled.program:
            precompiled.future.result()  # (it is being compiled already)
        if job.program is not None:
            self.batch.wait_for(job.executor, job.program)
        passes = self._passes(job)
        found = run_passes(self.batch, passes)
        for one in passes:
            self.batch.remember(one.executor, half_program(one.lattices))
        return [
            FinishedPass(one, bucket.tasks, readings)
            for one, bucket, readings in zip(passes, job.buckets, found, strict=True)
        ]

    def _passes(self, job: PassJob) -> list[Pass]:
        # (what NumPy has composed it reads, too)
        reader = EAGER if job.executor is EAGER else self.batch.executor

        def one_pass(bucket: Bucket) -> Pass:
            lattices, quantity, side, tasks = bucket
            plans = plans_of([self.plans[_place_of(task)] for task in tasks])
            settings = np.array([task.setting for task in tasks])
            return Pass(lattices, quantity, side, settings, plans, job.executor, reader)

        return [one_pass(bucket) for bucket in job.buckets]

    def absorb_plans(self, planned: list[Planned]) -> None:
        """Run planned tasks in the next round."""
        for task, plan, lattices in planned:
            self.plans[_place_of(task)] = plan
            self.first_lattices[_place_of(task)] = lattices
            self.to_run.append(task)

    def absorb(self, done: FinishedPass) -> None:
        """Narrow brackets by a pass, and decide what its tasks do next."""
        settings = done.one.settings
        self._narrow(done)
        excess = self.found.width_over_promise(self.question.rtol, settings)
        served = self._quantities_of(done.one.quantity)
        for row, task in enumerate(done.tasks):
            worst = float(np.max(excess[served, row], initial=0.0))
            self.found.add_best(task.setting, worst, done.one, done.readings.curves[row])
            if self._by_order(task.quantity):
                self._absorb_orders(done, row, excess[:, row])
            else:
                result = self._result(done, row, task, worst)
                self._decide(done, row, task, result, excess[:, row])
        self._report_finished()

    def _result(self, done: FinishedPass, row: int, task: Task, worst: float) -> PassResult:
        if task.quantity is None:
            return done.result(row, worst, None)
        name = self._name(task.quantity)
        result = done.result(row, worst, name)
        if self._is_threshold(task.quantity) and np.isfinite(result.threshold):
            place = self._within_reach(name, done, row, np.asarray(result.threshold))
            result = result._replace(threshold=float(place))
        return result

    def _is_threshold(self, quantity: int) -> bool:
        """Whether a quantity is the threshold that it is read off at."""
        record = self.question.asked[quantity][0]
        return record.unit == "nats" and record.locate is not None

    def _within_reach(self, name: str, done: FinishedPass, row: int, place: Array) -> Array:
        """Where a pass found a quantity to be that is a threshold: between what is known of it,
        and no farther than a pass over the whole curve was planned.
        """
        task, plans, sides = done.tasks[row], done.one.plans, self.found.results[name]
        low, high = float(sides.lower[task.setting]), float(sides.upper[task.setting])
        if isinstance(task, CurveTask):
            return np.minimum(np.clip(place, low, high), np.max(plans.cut_high[row]))
        if low < np.min(plans.cut_low[row]) and high > np.max(plans.cut_high[row]):
            return task.threshold + 0.0 * place  # (nothing was seen)
        return np.clip(place, low, high)

    def _decide(
        self, done: FinishedPass, row: int, task: Task, result: PassResult, excess: Array
    ) -> None:
        """Refine a task, or end it and start what follows it."""
        decision = refine(task, result, self.rules, self.leading_lattice_of)
        self._carry_out(decision)
        self.start(self.follow_up(done, row, task, excess, decision))

    def _absorb_orders(self, done: FinishedPass, row: int, excess: Array) -> None:
        """Decide what a task about a quantity of each order does next; one about both orders is
        followed by one for each that leaves the worse of both too wide.
        """
        task = done.tasks[row]
        i, q = task.setting, task.quantity
        assert isinstance(task, PointTask) and q is not None
        for order, own in enumerate(self._excess_of_orders(q, i)):
            if task.side not in (None, order):
                continue
            mine = dataclasses.replace(task, side=order)
            if task.side is None:
                if own <= 1.0:
                    continue
                if done.one.plans.cut_high[row, order, -1] < task.threshold:
                    # (beside the other order it was planned no deeper than that one needs)
                    self.start([mine])
                    continue
                self.plans[_place_of(mine)] = self.plans[_place_of(task)].of_side(order)
                self._add(mine)
            result = done.result(row, own, None)
            at = order if task.side is None else 0
            spread = done.one.plans.spread[row, at, 0]
            place = (
                self._threshold_of(q, done, row, order) if self.thresholds[q] is None else np.nan
            )
            lattice = done.one.lattices[order]
            result = result._replace(lattice=lattice, threshold=place, spread=float(spread))
            several = _several(done.one.plans.jump[row, at])
            result = result._replace(several=several)
            self._decide(done, row, mine, result, excess)
        if task.side is None:
            self.open_tasks[i] -= 1

    def _narrow(self, done: FinishedPass) -> None:
        one, numbers = done.one, done.readings.numbers
        if one.side is not None and self._by_order(one.quantity):
            self.found.add_orders(one.settings, numbers, one.side)
            return
        self.found.add(one.settings, numbers)
        for side in (0, 1):
            each = {
                name: Bracket(both.lower[:, side], both.upper[:, side])
                for name, both in done.readings.by_order.items()
            }
            self.found.add_orders(one.settings, each, side)

    def _by_order(self, quantity: int | None) -> bool:
        """Whether each order is computed for itself."""
        return self.apart and quantity is not None and self._worse_of_orders(quantity)

    def _worse_of_orders(self, quantity: int) -> bool:
        return self.question.asked[quantity][0].worse_of_orders

    def _excess_of_orders(self, quantity: int, setting: int) -> tuple[float, float]:
        """Width over the width promised that each order leaves the worse of both."""
        record, name = self.question.asked[quantity][0], self._name(quantity)
        plus, minus = (
            float(record.excess(self.found.of_order(name, setting, side), self.question.rtol))
            for side in (0, 1)
        )
        return plus, minus

    def _bar(self, quantity: int, setting: int, side: int) -> float:
        """The value that the other order has at least, where that is a threshold, and more than
        is known of this one; else NaN.
        """
        name = self._name(quantity)
        if self.question.asked[quantity][0].locate is None:
            return np.nan
        least = float(self.found.results[name].lower[setting])
        own = float(self.found.by_order[name].lower[setting, side])
        return least if own < _DECIDES * least else np.nan

    def _carry_out(self, decision: Decision) -> None:
        if decision.action == PLAN:
            self.to_plan.append(decision.task)
        elif decision.action != DONE:
            self.to_run.append(decision.task)
        else:
            self.open_tasks[decision.task.setting] -= 1

    def follow_up(
        self,
        done: FinishedPass,
        row: int,
        task: Task,
        excess: Float[Array, " quantities"],
        decision: Decision,
    ) -> Sequence[Task]:
        """New tasks of a setting after a pass.

        A quantity that is read off at one threshold gets a task of its own where the first pass
        over the whole curve left it too wide; and a setting whose threshold was not enough gets its
        whole curve."""
        i = task.setting
        if isinstance(task, PointTask):
            wide = decision.action == DONE and excess[task.quantity] > 1.0
            in_vain = excess[task.quantity] <= _NEAR and self.allowance.of_many_tilts(i)
            return self._whole_curve_again(i) if wide and not in_vain else []
        if task.tries > 0 or self.question.keep:
            return []
        own = [q for q, own in enumerate(self.at_threshold) if own]
        found = self._at_thresholds(done, row, own, excess)
        if not found and np.any(excess > 1.0) and self.allowance.scouted(i):
            return self._whole_curve_again(i)
        return found

    def _whole_curve_again(self, setting: int) -> list[Task]:
        """The whole curve of a setting whose thresholds were not enough, unless it was composed as
        finely as it takes.
        """
        once = (setting, None, None) in self.started
        if once and not self.allowance.scouted(setting):
            return []
        if not self.allowance.compose_in_full(setting):
            return []
        return [whole_curve(setting, self.steps[setting], self.rules)]

    def _at_thresholds(
        self, done: FinishedPass, row: int, quantities: list[int], excess: Array
    ) -> list[Task]:
        """Tasks for quantities that a pass left too wide: one for each order that leaves them so,
        where each order has its own.
        """
        i = done.tasks[row].setting
        tasks: list[Task] = []
        for q in quantities:
            each = self._excess_of_orders(q, i) if self._by_order(q) else (excess[q],)
            for order, wide in enumerate(each):
                side = order if self._by_order(q) else self.side_of(q)
                place = self._threshold_of(q, done, row, side)
                if wide > 1.0 and np.isfinite(place) and (i, q, side) not in self.started:
                    tasks.append(one_threshold(i, q, place, self.steps[i], self.rules, side))
        return tasks

    def side_of(self, quantity: int) -> int | None:
        """The one half-curve that a quantity is read off where one order is asked for; None where
        it is read off both.
        """
        order = self.question.adjacency
        if order.symmetric or self.batch.symmetric or not self._worse_of_orders(quantity):
            return None
        return int(order.swapped)

    def _name(self, quantity: int) -> str:
        return self.question.asked[quantity][0].name

    def _quantities_of(self, quantity: int | None) -> list[int]:
        """Quantities that a task has to make accurate: its own, or those without a task."""
        if quantity is not None:
            return [quantity]
        return [q for q, own in enumerate(self.at_threshold) if self.question.keep or not own]

    def _threshold_of(self, quantity: int, done: FinishedPass, row: int, side: int | None) -> float:
        """Where a quantity is read off: known beforehand, or found in a pass; else NaN."""
        known, i = self.thresholds[quantity], done.tasks[row].setting
        if known is not None:
            return float(known[i])
        located, name = done.readings.located, self._name(quantity)
        if name not in located:
            return np.nan
        found = located[name][row]
        if self._is_threshold(quantity):
            found = self._within_reach(name, done, row, found)
        if not self._by_order(quantity):
            return float(np.max(found))
        least = self._bar(quantity, i, side)  # type: ignore[arg-type]
        # (a pass may have found less than is known)
        known_upper = self.found.by_order[name].upper[i, side]
        own = float(np.minimum(found if np.ndim(found) == 0 else found[side], known_upper))
        return own if np.isnan(least) else least


def _place_of(task: Task) -> tuple:
    """What tells the plans of different tasks of one batch apart."""
    return task.setting, task.quantity, task.side, task.pieces
