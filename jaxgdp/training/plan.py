"""The privacy of a run at each of its steps, computed before it starts and looked up while it goes."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from ..bracket import Bracket
from ..numerics.showing import cells, html_table, short
from ..numerics.validation import (
    checked,
    nonnegative,
    one_of,
    positive,
    probability,
    whole,
)
from ..progress import counting
from .float32 import above, below
from .overflow import ASKED_AT, FALLING, question, single, without_steps
from .runs import Run
from .stopping import candidates, last_within

_MOST_STEPS = 2**24  # int32 steps, and a table of them that fits in memory
_UNBOUNDED = ("mu", "epsilon", "regret", "approximate_mu")
_SMOOTH, _LONG = 100, 1000  # steps: fewer are composed on dense lattices; a run that does without those
_APART = 1.15  # between computed numbers of steps: what grows with their root is then 7 % apart at most
_ROWS = 11  # numbers of steps in a table
_SEARCH = 10  # evaluations that a search usually takes


@dataclass(frozen=True)
class Plan:
    """Certified quantities of every step of a run, a small pytree of int32 and float32 arrays; made by :func:`plan_budget`.

    Attributes:
        steps: numbers of steps that were computed at first, from 0 on, increasing; those of :meth:`max_steps_within` are kept beside.
        position: for every number of steps 0 … max_steps, where in ``steps`` the first one not below it is.
        lower, upper: quantity → float32 array over ``steps``, rounded outward.
        noise_multiplier, sampling_prob, max_steps, overflow: of the run.
        sampler: what the accounting knows of its sampler, such as ("poisson", 0.01): see :meth:`check`.
        asked: what was asked: rtol, adjacency, fpr_floor, and the δ, ε, FPR, d and prior of the quantities.
        wide: how many computed numbers of steps are wider than ``rtol``; their brackets hold all the same.
    """

    steps: Any
    position: Any
    lower: dict[str, Any]
    upper: dict[str, Any]
    noise_multiplier: float
    sampling_prob: float
    max_steps: int
    overflow: float
    asked: tuple
    wide: int
    sampler: tuple = ()

    def __repr__(self) -> str:
        run = f"noise_multiplier={short(self.noise_multiplier)}, sampling_prob={short(self.sampling_prob)}"
        known = f"{np.size(self.steps)} of {self.max_steps} steps computed"
        return f"Plan({', '.join(self.quantities)}; {run}, {known}, sampler {self.sampler})"

    def _repr_html_(self) -> str:
        steps = np.asarray(self.steps)
        chosen = np.unique(np.linspace(0, len(steps) - 1, _ROWS).astype(int))
        rows = [
            (
                int(steps[i]),
                *(cell for name in self.quantities for cell in cells(self.lower[name][i], self.upper[name][i])),
            )
            for i in chosen
        ]
        header = ("steps", *(f"{name} {side}" for name in self.quantities for side in ("lower", "upper")))
        return html_table(repr(self), header, rows)

    @property
    def _run(self) -> Run:
        return Run(self.noise_multiplier, self.sampler)

    def check(self, sampler):
        """The sampler, if it is the one that the plan was made for; call it before training.

        Args:
            sampler: of :func:`poisson_sampler`, :func:`shuffle_sampler` or :func:`allocation_sampler`.

        Returns:
            The same sampler.

        Raises:
            ValueError: it draws in another way, at another rate, or overflows more often than the plan accounts for.

        Example:
            >>> from jaxgdp.training import shuffle_sampler
            >>> plan = plan_budget(noise_multiplier=4.0, sampling_prob=0.1, max_steps=16, quantities="mu")
            >>> plan.check(shuffle_sampler(num_examples=100, batch_size=10))
            Traceback (most recent call last):
            ValueError: sampler must be the one that the plan was made for, ('poisson', 0.1), got ('shuffled', 10, True)
        """
        own = getattr(sampler, "accounted", None)
        if own != self.sampler:
            found = repr(sampler) if own is None else own
            raise ValueError(f"sampler must be the one that the plan was made for, {self.sampler}, got {found}")
        if sampler.overflow > self.overflow:
            raise ValueError(
                f"sampler must overflow with a probability of at most the plan's {self.overflow:g}, got {sampler.overflow:g}"
            )
        if getattr(sampler, "max_steps", self.max_steps) < self.max_steps:
            raise ValueError(
                f"sampler must be made for all {self.max_steps} steps of the plan, got one for {sampler.max_steps}"
            )
        return sampler

    @property
    def quantities(self) -> tuple[str, ...]:
        """Names of the quantities."""
        return tuple(self.upper)

    def at(self, step) -> dict[str, Bracket]:
        """The privacy of the first ``step`` steps: a gather, for use inside ``jit``, ``scan``, ``vmap``, ``pmap`` or ``shard_map``.

        Between computed numbers of steps, the side that grows is that of the next computed one and the other side that of the
        one before: right, as more steps never are more private. At a step that :meth:`max_steps_within` returned, and at all before
        it, the safe side is within the limits that were asked for. Beyond ``max_steps`` the safe side is the worst possible value.

        Args:
            step: number of steps taken, an integer of any shape; may be traced. 0 is before the first step; a negative one is no
                number of steps (a counter that overflowed) and counts as beyond ``max_steps``.

        Returns:
            quantity → :class:`Bracket` of float32 arrays of that shape, NumPy's if ``step`` and the plan are; report the upper side, of
            "beta" and "bayes_risk" the lower.

        Raises:
            ValueError: ``step`` is not an integer.

        Example:
            >>> plan = plan_budget(noise_multiplier=4.0, sampling_prob=1.0, max_steps=16, quantities="mu")
            >>> bool(plan.at(4)["mu"].contains(0.5))
            True
        """
        table = self._latest()
        on_host = not any(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(table))
        if isinstance(step, jax.Array):
            xp, step = jnp, step
        else:
            xp, step = (np if on_host else jnp), np.asarray(step)
        if not np.issubdtype(step.dtype, np.integer):
            raise ValueError(f"step must be an integer, got {step!r}")
        # compared in the step's own type, which may hold no max_steps, or numbers that int32 does not
        beyond = step < 0
        if self.max_steps < np.iinfo(step.dtype).max:
            beyond = beyond | (step > self.max_steps)
        inside = xp.where(beyond, 0, step).astype(np.int32)
        inside, beyond = xp.where(beyond, np.int32(self.max_steps), inside), xp.asarray(beyond)
        after = xp.asarray(table.position)[inside]
        before = xp.where(xp.asarray(table.steps)[after] > inside, after - 1, after)
        found = {}
        scalar = () if xp is np else ...
        for name in table.upper:
            lower, upper = xp.asarray(table.lower[name]), xp.asarray(table.upper[name])
            if name in FALLING:
                found[name] = Bracket(xp.where(beyond, np.float32(0.0), lower[after])[scalar], upper[before])
            else:
                worst = np.float32(np.inf if name in _UNBOUNDED else 1.0)
                found[name] = Bracket(lower[before], xp.where(beyond, worst, upper[after])[scalar])
        return found

    def refined(self, steps, progress=None) -> Plan:
        """The plan with more numbers of steps computed, so that :meth:`at` is as narrow there as ``rtol`` asks.

        Args:
            steps: whole numbers in [1, max_steps], any shape. progress: as for :func:`plan_budget`.

        Returns:
            A new :class:`Plan` of the same run; its brackets lie within this one's.

        Raises:
            ValueError: a number of steps is out of range, or the plan is traced.

        Example:
            >>> plan = plan_budget(noise_multiplier=4.0, sampling_prob=1.0, max_steps=100, quantities="mu", every=50)
            >>> float(plan.at(4)["mu"].upper) > 1.7, float(plan.refined(4).at(4)["mu"].upper) < 0.501
            (True, True)
        """
        self._on_host()
        plan = self._latest()
        valid = f"a whole number in [1, {self.max_steps}]"
        checked("steps", steps, valid, lambda a: (a >= 1) & (a <= self.max_steps) & (a == np.floor(a)))
        new = np.setdiff1d(np.asarray(steps).astype(np.int64), np.asarray(plan.steps))
        if not len(new):
            return plan
        with counting(progress, "planning", len(new)) as count:
            brackets, status = self._run.certified(new, self.quantities, dict(self.asked), self.overflow, count)
        return plan._with(new, brackets, int(np.sum(status != 0)))

    def _with(self, new, brackets: dict[str, Bracket], wide: int) -> Plan:
        """The plan with float64 brackets at new numbers of steps, none of which is in its table."""
        steps = np.concatenate([np.asarray(self.steps), new])
        order = np.argsort(steps)
        lower, upper = {}, {}
        for name, bracket in brackets.items():
            sides = (below(bracket.lower), self.lower[name]), (above(bracket.upper), self.upper[name])
            full = Bracket(*(np.concatenate([np.asarray(old), np.asarray(side)])[order] for side, old in sides))
            lower[name], upper[name] = full if name == "regret" else _monotone(full, name in FALLING)
        steps = steps[order].astype(np.int32)
        position = np.searchsorted(steps, np.arange(self.max_steps + 1)).astype(np.int32)
        return dataclasses.replace(
            self, steps=steps, position=position, lower=lower, upper=upper, wide=self.wide + wide
        )

    def _table(self, name) -> Bracket:
        """The computed brackets of one quantity, as float64: beside a float32 array a limit would be rounded."""
        return Bracket(np.asarray(self.lower[name], np.float64), np.asarray(self.upper[name], np.float64))

    def _latest(self) -> Plan:
        """The plan with the numbers of steps that :meth:`max_steps_within` has computed since."""
        return vars(self).get("_known", self)

    def _on_host(self):
        if any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(self)):
            raise ValueError("a plan can be asked for a number of steps on the host only; inside jit use at()")

    def max_steps_within(self, target=None, *, progress=None, **limits) -> int:
        """The largest number of steps, up to ``max_steps``, at which every limit is certified to hold.

        The table tells between which two computed numbers of steps it lies; some between are then computed, about ten, until one number
        of steps is found within the limits and the next is not. The plan remembers them: from then on :meth:`at` shows a safe side
        within the limits (in float32, as it is shown) at the number returned and at all before it. So ask before the plan is closed
        over by a function that is compiled, copied or put on a device: what was made of it before keeps the table it saw.

        Args:
            target: an object of ``jaxgdp.targets`` with its own δ, FPR or floor, or None.
            progress: called with the number of evaluations finished, as they finish; None shows them on a terminal.
            **limits: quantity of the plan → number that its safe side must not exceed ("beta" and "bayes_risk": fall below), at
                the plan's own δ, ε, FPR, d, floor and prior: ``plan.max_steps_within(mu=1.0, advantage=0.2)``.

        Returns:
            A whole number; 0 if a single step is too many.

        Raises:
            ValueError: no limit, a limit that is not a number, a quantity the plan does not have, or a traced plan.

        Example:
            >>> plan = plan_budget(noise_multiplier=4.0, sampling_prob=1.0, max_steps=100, quantities="mu")
            >>> plan.max_steps_within(mu=1.0 + 1e-3)
            16
            >>> bool(plan.at(16)["mu"].upper <= 1.0 + 1e-3)
            True
        """
        goals = [_Limit(name, value, self) for name, value in limits.items()] + (
            [] if target is None else [_checked(target)]
        )
        if not goals:
            raise ValueError("max_steps_within needs a target or a limit, got none")
        self._on_host()
        own = [goal for goal in goals if isinstance(goal, _Limit) or self._tabulates(goal)]
        with counting(progress, "looking for the last step within the budget", _SEARCH) as count:
            last = self._within(own, count) if own else self.max_steps
            return last if len(own) == len(goals) else self._search(target, last, count)

    def _tabulates(self, target) -> bool:
        """Whether a target is about a quantity of the plan at the plan's own δ, ε, FPR, d or floor."""
        if target.quantity not in self.upper:
            return False
        rate, asked = ASKED_AT.get(target.quantity), dict(self.asked)
        return rate is None or float(target.parameters().get(rate, asked[rate])) == asked[rate]

    def _within(self, goals, progress) -> int:
        """The last step of the plan's own table within some limits, once the table has it and the step after it."""
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
            scores = np.max([_score(goal, own) for goal, own in zip(goals, read, strict=True)], axis=0)
            ends = {first: float(scores[last]), second: float(scores[last + 1])}
            plan = plan.refined(period * np.asarray(candidates(*ends, ends, tries)), progress)
            tries += 1
        object.__setattr__(self, "_known", plan)  # the one thing a plan ever learns; its fields stay as they were made
        return int(computed[last]) if last >= 0 else 0

    def _search(self, target, most: int, progress) -> int:
        """The last step up to ``most`` that is within a target the table knows nothing about."""
        asked = dict(self.asked) | {name: float(value) for name, value in target.parameters().items()}
        period = self._run.period

        def evaluate(periods):
            steps = np.minimum(period * np.asarray(periods), most)
            brackets, _ = self._run.certified(steps, (target.quantity,), asked, self.overflow, progress)
            own = target.read(brackets[target.quantity])
            return target.meets(own), _score(target, own)

        return min(period * last_within(evaluate, 0, -(-most // period) + 1), most)


_ARRAYS = ("steps", "position", "lower", "upper")
_STATIC = tuple(field.name for field in dataclasses.fields(Plan) if field.name not in _ARRAYS)


def _flatten_with_keys(plan: Plan):
    table = plan._latest()
    arrays = tuple((jax.tree_util.GetAttrKey(name), getattr(table, name)) for name in _ARRAYS)
    return arrays, tuple(getattr(table, name) for name in _STATIC)


def _unflatten(static, arrays) -> Plan:
    return Plan(*arrays, **dict(zip(_STATIC, static, strict=True)))


jax.tree_util.register_pytree_with_keys(Plan, _flatten_with_keys, _unflatten)


class _Limit:
    """A bound on the safe side of one quantity of a plan; reads like a target."""

    def __init__(self, name, value, plan: Plan):
        self.quantity = one_of("limit", name, plan.quantities)
        self.safe = "lower" if name in FALLING else "upper"
        self.goal = single(name, value, nonnegative)

    def read(self, bracket: Bracket) -> Bracket:
        return bracket

    def meets(self, own: Bracket):
        return own.lower >= self.goal if self.safe == "lower" else own.upper <= self.goal


def _score(goal, own: Bracket):
    """Quantity over goal, at most 1 where the goal is met; NaN where there is no such number. It only steers a search."""
    accepted = getattr(goal, "goal", None)
    if accepted is None:
        return np.full(np.shape(own.upper), np.nan)
    with np.errstate(all="ignore"):
        rising = getattr(goal, "safe", "upper") == "upper"
        return np.asarray(own.upper / accepted if rising else accepted / own.lower, np.float64)


def _checked(target):
    if (
        not all(hasattr(target, name) for name in ("quantity", "parameters", "read", "meets", "shape"))
        or target.shape != ()
    ):
        raise ValueError(f"target must be a scalar target of jaxgdp.targets, got {target!r}")
    if target.quantity == "regret":
        raise ValueError(f"target must be of a quantity that only grows with the steps, got {target!r}")
    return target


def _grid(max_steps: int, every, period: int = 1) -> np.ndarray:
    """Numbers of steps to compute: multiples of ``every``, or few where each costs most (below 100) and then a constant factor apart.

    Where nothing changes within a ``period``, that of whole periods, and the last step.
    """
    if every is None and period > 1:
        epochs = _grid(max_steps // period, None) if max_steps >= period else np.zeros(0, np.int64)
        return np.unique(np.append(period * epochs, max_steps))
    if every is not None:
        return np.unique(np.append(np.arange(every, max_steps + 1, every), max_steps))
    steps, t = [], _SMOOTH if max_steps >= _LONG else 1
    while t < min(_SMOOTH, max_steps):
        steps.append(t)
        t = max(t + 1, int(t * 1.5))
    first = min(_SMOOTH, max_steps)
    number = int(np.ceil(np.log(max_steps / first) / np.log(_APART)))
    return np.unique([*steps, *np.rint(np.geomspace(first, max_steps, number + 1)).astype(np.int64)])


def _monotone(bracket: Bracket, falling: bool) -> Bracket:
    """What more and fewer steps say about each number of steps: privacy never improves with another step."""
    before, after = np.maximum.accumulate, np.minimum.accumulate
    if falling:
        return Bracket(before(bracket.lower[::-1])[::-1], after(bracket.upper))
    return Bracket(before(bracket.lower), after(bracket.upper[::-1])[::-1])


def plan_budget(
    noise_multiplier,
    sampling_prob=None,
    max_steps=None,
    quantities=("mu", "epsilon", "advantage"),
    *,
    sampler=None,
    every=None,
    overflow=0.0,
    rtol=1e-3,
    fpr_floor=1e-10,
    adjacency="add_remove",
    delta=1e-5,
    epsilon=1.0,
    fpr=1e-3,
    d=1e-10,
    prior=0.5,
    progress=None,
) -> Plan:
    """Certified privacy of DP-SGD after 0, 1, …, ``max_steps`` steps, for use inside the training loop.

    Batches are Poisson samples, or those of ``sampler``. With shuffled or allocated batches, part of an epoch costs on the safe side
    as much as the whole.

    A run of 5,000 steps computes 29 of them. That and :meth:`Plan.max_steps_within` (about ten more) is all the work there is: looking a
    step up compiles nothing on the host.

    Args:
        noise_multiplier: σ > 0, a number.
        sampling_prob: p in (0, 1] of Poisson sampling, a number; not given with a ``sampler``.
        max_steps: most steps of the run, at most 2²⁴; by default those that the sampler was made for.
        quantities: any of those of :func:`jaxgdp.measure`.
        sampler: of :func:`poisson_sampler`, :func:`shuffle_sampler` or :func:`allocation_sampler`; its overflow is accounted for, and
            :meth:`Plan.check` refuses another one.
        every: compute every so many steps (1: all of them). By default 1, 2, 3, 4, 6, … up to 100 and then at most 15 per cent apart; in
            runs of 1000 steps or more from 100 on (fewer cost most and matter least). In between :meth:`Plan.at` answers with the
            computed ones around it: on the safe side, and up to 7 per cent more where a quantity grows with the root of the steps.
            :meth:`Plan.max_steps_within` computes what it needs in between, and :meth:`Plan.refined` what you name. "regret" needs
            ``every=1``: it is not monotone.
        overflow: probability that a padded batch of the run overflows: ``sampler.overflow`` of :func:`poisson_sampler`; not given with
            a ``sampler``, whose own it is.
        rtol: relative width asked of every bracket, in [1e-8, 1).
        fpr_floor: of μ and the regret, in [1e-300, 0.5).
        adjacency: as in ``measure``.
        delta: δ of "epsilon", in (0, 1).
        epsilon: ε of "delta", nats.
        fpr: FPR of "tpr" and "beta", in (0, 1).
        d: of "approximate_mu", in (0, 1).
        prior: of "bayes_risk", the probability that the record is absent, in (0, 1).
        progress: called with the number of settings finished, as they finish; None shows them on a terminal.

    Returns:
        A :class:`Plan`.

    Raises:
        ValueError: an argument is out of range or not a scalar, a quantity is unknown, or δ or d is not above the overflow (before
            tracing).

    Example:
        >>> import jax
        >>> plan = plan_budget(noise_multiplier=8.0, sampling_prob=1.0, max_steps=64, quantities=("mu", "advantage"))
        >>> now = jax.jit(lambda plan, t: plan.at(t))(plan, 64)
        >>> bool(now["mu"].contains(1.0)), now["mu"].upper.dtype.name
        (True, 'float32')
    """
    accounted, max_steps, overflow = _sampled(sampler, sampling_prob, max_steps, overflow)
    valid = f"a whole number in [1, {_MOST_STEPS}]"
    checked("max_steps", max_steps, valid, lambda a: (a >= 1) & (a <= _MOST_STEPS) & (a == np.floor(a)))
    sigma = single("noise_multiplier", noise_multiplier, positive)
    run = Run(sigma, accounted)
    last, stride = (
        int(single("max_steps", max_steps, whole)),
        None if every is None else int(single("every", every, whole)),
    )
    given = {"rtol": rtol, "fpr_floor": fpr_floor, "adjacency": adjacency, "delta": delta, "epsilon": epsilon}
    names, asked = question(quantities, overflow, given | {"fpr": fpr, "d": d, "prior": prior})
    if "regret" in names and run.period > 1:
        raise ValueError(
            "quantities must not have 'regret', which is not monotone, where an epoch is accounted for as a whole"
        )
    if "regret" in names and stride != 1:
        raise ValueError(
            f"every must be 1 where quantities has 'regret', which is not monotone in the steps, got {every!r}"
        )

    nothing = {name: without_steps(name, asked) for name in names}
    start = Plan(
        steps=np.zeros(1, np.int32),
        position=np.zeros(last + 1, np.int32),
        lower={name: below([value]) for name, value in nothing.items()},
        upper={name: above([value]) for name, value in nothing.items()},
        noise_multiplier=sigma,
        sampling_prob=run.sampling_prob,
        max_steps=last,
        overflow=float(overflow),
        asked=tuple(asked.items()),
        wide=0,
        sampler=accounted,
    )
    return start.refined(_grid(last, stride, run.period), progress)


def _sampled(sampler, sampling_prob, max_steps, overflow):
    """What the accounting knows of the sampler, the most steps, and the overflow."""
    if sampler is None:
        if sampling_prob is None or max_steps is None:
            raise ValueError("sampling_prob and max_steps must be given where no sampler is")
        return ("poisson", single("sampling_prob", sampling_prob, probability)), max_steps, overflow
    if not hasattr(sampler, "accounted"):
        raise ValueError(f"sampler must be one of jaxgdp.training's, such as poisson_sampler(…), got {sampler!r}")
    if sampling_prob is not None or overflow != 0.0:
        raise ValueError("sampling_prob and overflow are those of the sampler: give one or the others")
    most = getattr(sampler, "max_steps", None)
    if max_steps is None and most is None:
        raise ValueError("max_steps must be given with a sampler that is made for any number of steps")
    if max_steps is not None and most is not None and np.any(np.asarray(max_steps) > most):
        raise ValueError(f"max_steps must be at most the {most} steps that the sampler was made for, got {max_steps!r}")
    return sampler.accounted, most if max_steps is None else max_steps, sampler.overflow
