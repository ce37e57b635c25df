"""The privacy of a run at each of its steps, computed beforehand and looked up on the way."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.core import Tracer

from ..bracket import Bracket
from ..measure.pieces import Count
from ..mechanisms import Composition
from ..numerics.shapes import Array, ArrayLike, Float, Int
from ..numerics.showing import cells, html_table, short
from ..numerics.validation import whole_up_to
from ..progress import show_progress
from ..quantities.registry import named
from ..targets import Target
from .between import around, grid, growth, open_gaps
from .correlated import refuse_own_noise, run_of
from .float32 import above, below
from .goals import Limit, checked_target, score
from .knots import thinned
from .runs import Sampler
from .stopping import candidates, last_within
from .table import looked_up, monotone
from .transformation import privatize

_Sampler = TypeVar("_Sampler", bound=Sampler)
_ROWS = 11  # numbers of steps in a table
_SEARCH = 10  # evaluations that a search usually takes


@dataclass(frozen=True)
class Plan:
    """Certified quantities of every step of a run, a small pytree; see :func:`plan_budget`.

    Attributes:
        steps: numbers of steps that were computed at first, from 0 on, increasing; those that
            :meth:`max_steps_within` and :meth:`at` compute are kept beside.
        lower, upper: quantity → float32 array over ``steps``, rounded outward.
        noise_multiplier, sampling_prob, max_steps, overflow: of the run; of a schedule, pairs of a
            noise multiplier and the number of steps that have it.
        sampler: the accounting's description of its sampler, such as ("poisson", 0.01): see
            :meth:`check`.
        drawn_by: the sampler itself, where the plan was made for one; :meth:`privatize` takes it.
        asked: the question: rtol, adjacency, fpr_floor, and the δ, ε, FPR, d and prior of the
            quantities.
        wide: how many computed numbers of steps are wider than ``rtol``; their brackets hold all
            the same.
        refines: whether :meth:`at` computes what is missing; not where ``every`` was given.
        stops: what :meth:`max_steps_within` returned.
        lines: whether sides are lines between the numbers of steps, of which few are then enough:
            in compiled functions and on devices.
    """

    steps: Int[Array, " computed"]
    lower: dict[str, Float[Array, " computed"]]
    upper: dict[str, Float[Array, " computed"]]
    noise_multiplier: float | tuple[tuple[float, int], ...]
    sampling_prob: float
    max_steps: int
    overflow: float
    asked: tuple
    wide: int
    sampler: tuple = ()
    drawn_by: Any = None
    refines: bool = False
    stops: tuple[int, ...] = ()
    lines: bool = False

    def __repr__(self) -> str:
        names = ("noise_multiplier", "sampling_prob")
        run = ", ".join(f"{name}={short(getattr(self, name))}" for name in names)
        known = f"{np.size(self.steps)} of {self.max_steps} steps computed"
        return f"Plan({', '.join(self.quantities)}; {run}, {known}, sampler {self.sampler})"

    def _repr_html_(self) -> str:
        steps = np.asarray(self.steps)
        chosen = np.unique(np.linspace(0, len(steps) - 1, _ROWS).astype(int))
        rows, names = [], self.quantities
        for i in chosen:
            sides = (cells(float(self.lower[n][i]), float(self.upper[n][i])) for n in names)
            rows.append((int(steps[i]), *itertools.chain.from_iterable(sides)))
        header = (f"{name} {side}" for name in names for side in ("lower", "upper"))
        return html_table(repr(self), ("steps", *header), rows)

    def noise_at(self, step: ArrayLike) -> Array:
        """The noise multiplier of a step, numbered from 0 on, as float32; may be traced."""
        place: Any = step
        if not isinstance(self.noise_multiplier, tuple):
            return jnp.full(jnp.shape(place), self.noise_multiplier, jnp.float32)
        sigma, numbers = (np.asarray(column) for column in zip(*self.noise_multiplier, strict=True))
        stage = jnp.searchsorted(jnp.asarray(np.cumsum(numbers)), place, side="right")
        return jnp.asarray(above(sigma))[jnp.minimum(stage, len(sigma) - 1)]

    def composition(self, steps: int) -> Composition:
        """The first steps of a run as a mechanism, for :func:`jaxgdp.report` and ``measure``.

        Args:
            steps: how many were taken, a whole number in [1, max_steps]: ``int(state.step)``.

        Raises:
            ValueError: it is out of range.

        Example:
            >>> from jaxgdp.training import plan_budget
            >>> plan = plan_budget(lambda t: 8.0 if t < 32 else 4.0, 1.0, 64, "mu", every=64)
            >>> tuple(map(int, plan.composition(40).counts))
            (32, 8)
        """
        taken = int(whole_up_to("steps", steps, self.max_steps))
        return self._run.composition(taken)

    @property
    def _run(self) -> Any:
        return run_of(self.noise_multiplier, self.sampler)

    def check(self, sampler: _Sampler) -> _Sampler:
        """The sampler, if it is the one that the plan was made for; call it before training.

        Args:
            sampler: of :func:`poisson_sampler`, :func:`shuffle_sampler` or
                :func:`allocation_sampler`.

        Raises:
            ValueError: it draws in another way, at another rate, or overflows more often than the
                plan accounts for.

        Example:
            >>> from jaxgdp.training import plan_budget, shuffle_sampler
            >>> step = {"noise_multiplier": 4.0, "sampling_prob": 0.1}
            >>> plan = plan_budget(**step, max_steps=16, quantities="mu")
            >>> plan.check(shuffle_sampler(dataset_size=100, batch_size=10))
            Traceback (most recent call last):
            ValueError: sampler must be the one that the plan was made for, ('poisson', 0.1), ...
        """
        own = getattr(sampler, "accounted", None)
        if own != self.sampler:
            found = repr(sampler) if own is None else own
            raise ValueError(
                f"sampler must be the one that the plan was made for, {self.sampler}, got {found}"
            )
        if sampler.overflow > self.overflow:
            raise ValueError(
                f"sampler must overflow with a probability of at most the plan's {self.overflow:g},"
                f" got {sampler.overflow:g}"
            )
        most = getattr(sampler, "max_steps", self.max_steps)
        if most < self.max_steps:
            raise ValueError(
                f"sampler must be made for all {self.max_steps} steps of the plan, got one for"
                f" {most}"
            )
        return sampler

    def privatize(
        self,
        clip_norm: Array | float,
        key: Array,
        *,
        max_steps: ArrayLike | None = None,
        inner: optax.GradientTransformation | None = None,
        axis_name: str | None = None,
        sampler: Sampler | None = None,
        accumulate: int = 1,
    ) -> optax.GradientTransformationExtraArgs:
        """:func:`privatize` with the plan's own noise, sampler and last step.

        So that what is run is what is accounted for, nothing of it is written twice.

        Args:
            clip_norm, key, inner, axis_name, accumulate: as for :func:`privatize`.
            max_steps: noisy gradients to release, such as :meth:`max_steps_within`; at most, and by
                default, the plan's ``max_steps``.
            sampler: needed where the plan was made for a rate and no sampler; checked.

        Raises:
            ValueError: as for :func:`privatize`; there is no sampler or another one than the
                plan's; more steps than the plan knows.

        Example:
            >>> from jaxgdp.training import plan_budget, poisson_sampler
            >>> sampler = poisson_sampler(dataset_size=1000, sampling_prob=0.1, max_steps=50)
            >>> plan = plan_budget(noise_multiplier=2.0, sampler=sampler, quantities="mu")
            >>> optimiser = plan.privatize(clip_norm=1.0, key=jax.random.key(0))
            >>> int(optimiser.init(jnp.zeros(3)).max_steps)
            50
        """
        refuse_own_noise(self._run)
        used = self.drawn_by if sampler is None else sampler
        if used is None:
            raise ValueError(
                "sampler must be given, as the plan was made for a rate: or make the plan with"
                " plan_budget(noise_multiplier, sampler=sampler)"
            )
        if max_steps is None:
            max_steps = self.max_steps
        elif not isinstance(max_steps, Tracer) and np.any(np.asarray(max_steps) > self.max_steps):
            raise ValueError(
                f"max_steps must be at most the plan's {self.max_steps}, got {max_steps}"
            )
        return privatize(
            clip_norm,
            self.noise_at if isinstance(self.noise_multiplier, tuple) else self.noise_multiplier,
            key=key,
            max_steps=max_steps,
            inner=inner,
            axis_name=axis_name,
            sampler=self.check(used),
            accumulate=accumulate,
        )

    @property
    def quantities(self) -> tuple[str, ...]:
        """Names of the quantities."""
        return tuple(self.upper)

    def at(self, step: ArrayLike) -> dict[str, Bracket]:
        """The privacy of the first ``step`` steps, also inside ``jit`` and its kin.

        The safe side is at most 0.5 per cent above that of :func:`jaxgdp.measure` with the
        ``rtol`` of 1e-3, at every step. A number of steps that is not close to a computed one is
        computed when it is looked up, with a few around it, and remembered (30 to 300 ms, once).
        Where ``step`` is traced, or the plan goes into a compiled function or onto a device, all
        that are missing are computed before, and what is looked up are certified lines between a
        few numbers of steps (1 kB or so), which are as close. With ``every`` given, nothing more is
        computed.

        Between computed numbers of steps, the side that grows is that of the next computed one and
        the other side that of the one before: right, as more steps never are more private. At a
        step that :meth:`max_steps_within` returned, and at all before it, the safe side is within
        the limits that were requested. Beyond ``max_steps`` the safe side is the worst possible
        value.

        The bracket is that of a number of steps which does not depend on the data. Where outputs
        decide when to stop (early stopping on a loss, say), report ``at(max_steps)``, or stop by
        :class:`PrivacyFilter`, which is made for that.

        Args:
            step: number of steps taken, an integer of any shape; may be traced. 0 is before the
                first step; a negative one is no number of steps (a counter that overflowed) and
                counts as beyond ``max_steps``.

        Returns:
            quantity → :class:`Bracket` of float32 arrays of that shape, NumPy's if ``step`` and the
            plan are; report the upper side, of "beta" and "bayes_risk" the lower.

        Raises:
            ValueError: ``step`` is not an integer.

        Example:
            >>> from jaxgdp.training import plan_budget
            >>> step = {"noise_multiplier": 4.0, "sampling_prob": 1.0}
            >>> plan = plan_budget(**step, max_steps=16, quantities="mu")
            >>> bool(plan.at(4)["mu"].contains(0.5))
            True
        """
        step = step if isinstance(step, jax.Array) else np.asarray(step)
        if not np.issubdtype(step.dtype, np.integer):
            raise ValueError(f"step must be an integer, got {step!r}")
        table = self._complete() if isinstance(step, Tracer) else self._close_to(np.asarray(step))
        on_host = table._by_numpy() and not isinstance(step, jax.Array)
        brackets = {name: Bracket(table.lower[name], table.upper[name]) for name in table.upper}
        xp = np if on_host else jnp
        return looked_up(table.steps, brackets, step, self.max_steps, xp, table.lines)

    def _growth(self) -> Array:
        """What safe sides grow by from each computed number of steps to the next."""
        return growth(
            self.upper[name] if named(name).grows else self.lower[name] for name in self.upper
        )

    def _close_to(self, asked: Array) -> Plan:
        """The plan, so far as it is known, with what is missing to be close to ``measure``."""
        plan = self._latest()
        if not self.refines or plan.lines or not plan._by_numpy():
            return plan
        inside = asked[(asked > 0) & (asked < self.max_steps)].astype(np.int64)
        inside = inside[plan._misses(inside)]
        if not len(inside):
            return plan
        period = self._run.period
        # (from what was computed at first, so that what was asked before decides nothing)
        wanted = grid(self.steps, self._growth(), period)
        if len(wanted):
            plan = self._known_with(around(wanted, inside))
        # a quantity that grows by more than its neighbours suggest
        inside = inside[plan._misses(inside)]
        return self._known_with(np.minimum(-(-inside // period) * period, self.max_steps))

    def _misses(self, asked: Int[Array, " asked"]) -> np.ndarray:
        """Whether each number of steps, in [1, max_steps), lies in a gap."""
        steps = np.asarray(self.steps)
        after = np.searchsorted(steps, asked)
        gaps = open_gaps(steps, self._growth(), self._run.period)
        return (steps[after] != asked) & gaps[after - 1]

    def _complete(self) -> Plan:
        """The plan with no gap left, for look-ups that are compiled."""
        plan = self._latest()
        while self.refines and not plan.lines and plan._by_numpy():
            wanted = grid(plan.steps, plan._growth(), self._run.period)
            if not len(np.setdiff1d(wanted, np.asarray(plan.steps))):
                break
            plan = self._known_with(wanted)
        return plan._thinned()

    def _thinned(self) -> Plan:
        """The plan as lines between few numbers of steps, where they are fewer."""
        if not self.refines or self.lines or not self._by_numpy():
            return self
        brackets = {name: Bracket(self.lower[name], self.upper[name]) for name in self.upper}
        found = thinned(self.steps, brackets, self.stops)
        if found is None:
            return self
        lower = {name: bracket.lower for name, bracket in found[1].items()}
        upper = {name: bracket.upper for name, bracket in found[1].items()}
        return dataclasses.replace(self, steps=found[0], lower=lower, upper=upper, lines=True)

    def _known_with(self, steps: Array) -> Plan:
        """The plan with more numbers of steps, which it remembers; also while JAX traces."""
        if len(steps):
            with jax.ensure_compile_time_eval():
                plan = self._latest().refined(steps)
            # (the one thing a plan ever learns; its fields stay as they were made)
            object.__setattr__(self, "_known", plan)
        return self._latest()

    def _by_numpy(self) -> bool:
        """Whether the table is on the host."""
        return all(isinstance(leaf, np.ndarray) for leaf in self._leaves())

    def _leaves(self) -> tuple[Any, ...]:
        """The arrays of the table as it is."""
        return (self.steps, *self.lower.values(), *self.upper.values())

    def refined(self, steps: ArrayLike, progress: Count | bool | None = None) -> Plan:
        """The plan with more numbers of steps computed, as narrow as ``rtol`` requires.

        Args:
            steps: whole numbers in [1, max_steps], any shape.
            progress: as for :func:`jaxgdp.training.plan_budget`.

        Returns:
            A new :class:`Plan` of the same run; its brackets lie within this one's.

        Raises:
            ValueError: a number of steps is out of range, or the plan is traced.

        Example:
            >>> from jaxgdp.training import plan_budget
            >>> step = {"noise_multiplier": 4.0, "sampling_prob": 1.0}
            >>> plan = plan_budget(**step, max_steps=100, quantities="mu", every=50)
            >>> refined = plan.refined(4)
            >>> float(plan.at(4)["mu"].upper) > 1.7, float(refined.at(4)["mu"].upper) < 0.501
            (True, True)
        """
        self._on_host()
        plan = self._latest()
        whole_up_to("steps", steps, self.max_steps)
        new = np.setdiff1d(np.asarray(steps).astype(np.int64), np.asarray(plan.steps))
        if not len(new):
            return plan
        with show_progress("planning", len(new), progress) as count:
            brackets, status = self._run.certified(
                new, self.quantities, dict(self.asked), self.overflow, count
            )
        return plan._with(new, brackets, int(np.sum(status != 0)))

    def _with(self, new: np.ndarray, brackets: dict[str, Bracket], wide: int) -> Plan:
        """The plan with float64 brackets at new numbers of steps, none of which is in its table."""
        steps = np.concatenate([np.asarray(self.steps), new])
        order = np.argsort(steps)
        lower, upper = {}, {}
        for name, bracket in brackets.items():
            known = self.lower[name], below(bracket.lower)
            most = self.upper[name], above(bracket.upper)
            full = Bracket(*(np.concatenate(list(pair))[order] for pair in (known, most)))
            of = named(name)
            lower[name], upper[name] = full if not of.monotone else monotone(full, of.grows)
        steps = steps[order].astype(np.int32)
        return dataclasses.replace(
            self, steps=steps, lower=lower, upper=upper, wide=self.wide + wide, lines=False
        )

    def _table(self, name: str) -> Bracket:
        """The computed brackets of one quantity in float64, in which a limit is not rounded."""
        return Bracket(
            np.asarray(self.lower[name], np.float64), np.asarray(self.upper[name], np.float64)
        )

    def _latest(self) -> Plan:
        """The plan with the numbers of steps that have been computed since it was made."""
        return vars(self).get("_known", self)

    def _on_host(self) -> None:
        if any(isinstance(leaf, Tracer) for leaf in self._leaves()):
            raise ValueError(
                "more steps of a plan can be computed on the host only; inside jit use at()"
            )

    def max_steps_within(
        self, target: Target | None = None, *, progress: Count | bool | None = None, **limits: float
    ) -> int:
        """The largest number of steps, up to ``max_steps``, certified to be within every limit.

        The table determines between which two computed numbers of steps it lies; some between are
        then computed, about ten, until one number of steps is found within the limits and the next
        is not. The plan remembers them: from then on :meth:`at` returns a safe side within the
        limits (in float32, as it is returned) at the number returned and at all before it. So call
        this before the plan is closed over by a function that is compiled, copied or put on a
        device: copies made before keep their table.

        Args:
            target: an object of ``jaxgdp.targets`` with its own δ, FPR or floor, or None.
            progress: called with the number of evaluations finished, as they finish; None displays
                them on a terminal.
            **limits: quantity of the plan → number that its safe side must not exceed ("beta" and
                "bayes_risk": fall below), at the plan's own δ, ε, FPR, d, floor and prior:
                ``plan.max_steps_within(mu=1.0, advantage=0.2)``.

        Returns:
            A whole number; 0 if a single step is too many.

        Raises:
            ValueError: no limit, a limit that is not a number, a quantity the plan does not have,
                or a traced plan.

        Example:
            >>> from jaxgdp.training import plan_budget
            >>> step = {"noise_multiplier": 4.0, "sampling_prob": 1.0}
            >>> plan = plan_budget(**step, max_steps=100, quantities="mu")
            >>> plan.max_steps_within(mu=1.0 + 1e-3)
            16
            >>> bool(plan.at(16)["mu"].upper <= 1.0 + 1e-3)
            True
        """
        goals = [Limit(name, value, self.quantities) for name, value in limits.items()] + (
            [] if target is None else [checked_target(target)]
        )
        if not goals:
            raise ValueError("max_steps_within needs a target or a limit, got none")
        self._on_host()
        own = [goal for goal in goals if isinstance(goal, Limit) or self._tabulates(goal)]
        with show_progress("searching for the last step", _SEARCH, progress) as count:
            last = self._within(own, count) if own else self.max_steps
            if target is None or len(own) == len(goals):
                return last
            return self._search(target, last, count)

    def _tabulates(self, target: Target) -> bool:
        """Whether a target is a quantity of the plan at the plan's own argument."""
        if target.quantity not in self.upper:
            return False
        rate, asked = named(target.quantity).argument, dict(self.asked)
        return rate is None or float(target.parameters().get(rate, asked[rate])) == asked[rate]

    def _within(self, goals: list[Limit | Target], progress: Count | None) -> int:
        """The last step of the plan's own table within limits, once it and the next are there."""
        plan, tries, period = self._latest(), 0, self._run.period
        while True:
            computed = np.asarray(plan.steps)
            read = [goal.read(plan._table(goal.quantity)) for goal in goals]
            met = np.all([goal.meets(own) for goal, own in zip(goals, read, strict=True)], axis=0)
            last = int(np.flatnonzero(met)[-1]) if np.any(met) else -1
            if last < 0 or last + 1 == len(computed):
                break
            # (all steps of a period cost the same)
            first, second = (int(-(-computed[i] // period)) for i in (last, last + 1))
            if second <= first + 1:
                break
            scores = np.max(list(map(score, goals, read)), axis=0)
            ends = {first: float(scores[last]), second: float(scores[last + 1])}
            plan = plan.refined(period * np.asarray(candidates(*ends, ends, tries)), progress)
            tries += 1
        stop = int(computed[last]) if last >= 0 else 0
        plan = dataclasses.replace(plan, stops=tuple(sorted({*plan.stops, stop} - {0})))
        # (the one thing a plan ever learns; its fields stay as they were made)
        object.__setattr__(self, "_known", plan)
        return stop

    def _search(self, target: Target, most: int, progress: Count | None) -> int:
        """The last step up to ``most`` within a target beyond the table's quantities."""
        own = {name: float(value) for name, value in target.parameters().items()}
        asked = dict(self.asked) | own
        period = self._run.period

        def evaluate(periods: np.ndarray) -> tuple[Array, Array]:
            steps = np.minimum(period * np.asarray(periods), most)
            brackets, _ = self._run.certified(
                steps, (target.quantity,), asked, self.overflow, progress
            )
            own = target.read(brackets[target.quantity])
            return target.meets(own), score(target, own)

        return min(period * last_within(evaluate, 0, -(-most // period) + 1), most)


_ARRAYS = ("steps", "lower", "upper")
_STATIC = tuple(field.name for field in dataclasses.fields(Plan) if field.name not in _ARRAYS)


def _flatten_with_keys(plan: Plan) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    table = plan._complete()
    arrays = tuple((jax.tree_util.GetAttrKey(name), getattr(table, name)) for name in _ARRAYS)
    return arrays, tuple(getattr(table, name) for name in _STATIC)


def _unflatten(static: tuple[Any, ...], arrays: Iterable[Any]) -> Plan:
    return Plan(*arrays, **dict(zip(_STATIC, static, strict=True)))


jax.tree_util.register_pytree_with_keys(Plan, _flatten_with_keys, _unflatten)
