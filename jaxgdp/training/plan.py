"""The privacy of a run at each of its steps, computed before it starts and looked up while it goes."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..bracket import Bracket
from ..mechanisms import dpsgd
from ..numerics.validation import (
    checked,
    nonnegative,
    one_of,
    positive,
    probability,
    whole,
)
from .float32 import above, below
from .overflow import FALLING, certified, question, single, without_steps

_MOST_STEPS = 2**24  # int32 steps, and a table of them that fits in memory
_UNBOUNDED = ("mu", "epsilon", "regret", "approximate_mu")
_SMOOTH, _LONG = 100, 1000  # steps: fewer are composed on dense lattices; a run that does without those
_TOGETHER = 65  # steps looked at in one round of a search: enough for the engine's full chunks


@dataclass(frozen=True)
class Plan:
    """Certified quantities of every step of a run, a small pytree of int32 and float32 arrays; made by :func:`plan_budget`.

    Attributes:
        steps: numbers of steps that were computed, from 0 on, increasing.
        position: for every number of steps 0 … max_steps, where in ``steps`` the first one not below it is.
        lower, upper: quantity → float32 array over ``steps``, rounded outward.
        noise_multiplier, sampling_prob, max_steps, overflow: of the run.
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

    @property
    def quantities(self) -> tuple[str, ...]:
        """Names of the quantities."""
        return tuple(self.upper)

    def at(self, step) -> dict[str, Bracket]:
        """The privacy of the first ``step`` steps: a gather, for use inside ``jit``, ``scan``, ``vmap``, ``pmap`` or ``shard_map``.

        Between computed numbers of steps, the side that grows is that of the next computed one and the other side that of the
        one before: right, as more steps never are more private. Beyond ``max_steps`` the safe side is the worst possible value.

        Args:
            step: number of steps taken, an integer of any shape; may be traced. 0 is before the first step.

        Returns:
            quantity → :class:`Bracket` of float32 arrays of that shape; report the upper side, of "beta" and "bayes_risk" the lower.

        Raises:
            ValueError: ``step`` is not an integer.

        Example:
            >>> plan = plan_budget(noise_multiplier=4.0, sampling_prob=1.0, max_steps=16, quantities="mu")
            >>> bool(plan.at(4)["mu"].contains(0.5))
            True
        """
        if not jnp.issubdtype(jnp.result_type(step), jnp.integer):
            raise ValueError(f"step must be an integer, got {step!r}")
        step = jnp.asarray(step)
        inside = jnp.clip(step, 0, self.max_steps)
        after = jnp.asarray(self.position)[inside]
        before = jnp.where(jnp.asarray(self.steps)[after] > inside, after - 1, after)
        beyond = step > self.max_steps
        found = {}
        for name in self.upper:
            lower, upper = jnp.asarray(self.lower[name]), jnp.asarray(self.upper[name])
            if name in FALLING:
                found[name] = Bracket(jnp.where(beyond, 0.0, lower[after]), upper[before])
            else:
                worst = jnp.inf if name in _UNBOUNDED else 1.0
                found[name] = Bracket(lower[before], jnp.where(beyond, worst, upper[after]))
        return found

    def max_steps_within(self, target=None, **limits) -> int:
        """The largest number of steps, up to ``max_steps``, at which every limit is certified to hold.

        The table tells between which two computed numbers of steps it lies; those between are then computed, until one number of
        steps is found within the limits and the next is not.

        Args:
            target: an object of ``jaxgdp.targets`` with its own δ, FPR or floor, or None.
            **limits: quantity of the plan → number that its safe side must not exceed ("beta" and "bayes_risk": fall below), at
                the plan's own δ, ε, FPR, d, floor and prior: ``plan.max_steps_within(mu=1.0, advantage=0.2)``.

        Returns:
            A whole number; 0 if a single step is too many.

        Raises:
            ValueError: no limit, a limit that is not a number, or a quantity the plan does not have.

        Example:
            >>> plan = plan_budget(noise_multiplier=4.0, sampling_prob=1.0, max_steps=100, quantities="mu")
            >>> plan.max_steps_within(mu=1.0 + 1e-3)
            16
        """
        goals = [_Limit(name, value, self) for name, value in limits.items()] + (
            [] if target is None else [_checked(target)]
        )
        if not goals:
            raise ValueError("max_steps_within needs a target or a limit, got none")
        asked = dict(self.asked)
        names = tuple(dict.fromkeys(goal.quantity for goal in goals))
        good, bad = 0, self.max_steps + 1
        if target is None:
            wide = lambda side: np.asarray(side, np.float64)  # a float32 array would round the limit
            table = {name: Bracket(wide(self.lower[name]), wide(self.upper[name])) for name in names}
            met = np.all([goal.meets(goal.read(table[goal.quantity])) for goal in goals], axis=0)
            last = int(np.flatnonzero(met)[-1]) if np.any(met) else -1
            if last < 0:
                return 0
            computed = np.asarray(self.steps)
            good = int(computed[last])
            bad = int(computed[last + 1]) if last + 1 < len(computed) else bad
        else:
            asked |= {name: float(value) for name, value in target.parameters().items()}
        while bad - good > 1:
            tried = np.unique(np.round(np.linspace(good, bad, min(_TOGETHER, bad - good - 1) + 2)).astype(np.int64))[
                1:-1
            ]
            run = dpsgd(self.noise_multiplier, self.sampling_prob, tried)
            brackets, _ = certified(run, names, asked, self.overflow)
            met = np.all([goal.meets(goal.read(brackets[goal.quantity])) for goal in goals], axis=0)
            last = int(np.flatnonzero(met)[-1]) if np.any(met) else -1
            good, bad = (
                (int(tried[last]) if last >= 0 else good),
                (int(tried[last + 1]) if last + 1 < len(tried) else bad),
            )
        return good


_ARRAYS = ("steps", "position", "lower", "upper")
jax.tree_util.register_dataclass(
    Plan, data_fields=_ARRAYS, meta_fields=[f.name for f in dataclasses.fields(Plan) if f.name not in _ARRAYS]
)


class _Limit:
    """A bound on the safe side of one quantity of a plan; reads like a target."""

    def __init__(self, name, value, plan: Plan):
        self.quantity = one_of("limit", name, plan.quantities)
        self.goal = float(nonnegative(name, value))

    def read(self, bracket: Bracket) -> Bracket:
        return bracket

    def meets(self, own: Bracket):
        return own.lower >= self.goal if self.quantity in FALLING else own.upper <= self.goal


def _checked(target):
    if (
        not all(hasattr(target, name) for name in ("quantity", "parameters", "read", "meets", "shape"))
        or target.shape != ()
    ):
        raise ValueError(f"target must be a scalar target of jaxgdp.targets, got {target!r}")
    if target.quantity == "regret":
        raise ValueError(f"target must be of a quantity that only grows with the steps, got {target!r}")
    return target


def _grid(max_steps: int, every) -> np.ndarray:
    """Numbers of steps to compute: multiples of ``every``, or few where each costs most (below 100) and then 1 % apart."""
    if every is not None:
        return np.unique(np.append(np.arange(every, max_steps + 1, every), max_steps))
    steps, t = [], _SMOOTH if max_steps >= _LONG else 1
    while t < max_steps:
        steps.append(t)
        t = max(t + 1, int(t * (1.5 if t < _SMOOTH else 1.01)))
    return np.array([*steps, max_steps])


def _monotone(bracket: Bracket, falling: bool) -> Bracket:
    """What more and fewer steps say about each number of steps: privacy never improves with another step."""
    before, after = np.maximum.accumulate, np.minimum.accumulate
    if falling:
        return Bracket(before(bracket.lower[::-1])[::-1], after(bracket.upper))
    return Bracket(before(bracket.lower), after(bracket.upper[::-1])[::-1])


def plan_budget(
    noise_multiplier,
    sampling_prob,
    max_steps,
    quantities=("mu", "epsilon", "advantage"),
    *,
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
    """Certified privacy of DP-SGD with Poisson sampling after 0, 1, …, ``max_steps`` steps, for use inside the training loop.

    Once compiled, each computed number of steps takes two to three milliseconds of one core (below 100 steps tens of them).

    Args:
        noise_multiplier: σ > 0. sampling_prob: p in (0, 1]. max_steps: most steps of the run, at most 2²⁴. Numbers, not arrays.
        quantities: any of those of :func:`jaxgdp.measure`.
        every: compute every so many steps (1: all of them). By default 1, 2, 3, 4, 6, … up to 100 and then 1 per cent apart; in runs
            of 1000 steps or more from 100 on (fewer cost most and matter least). In between :meth:`Plan.at` answers with the
            computed ones around it. "regret" needs ``every=1``: it is not monotone.
        overflow: probability that a padded batch of the run overflows: ``sampler.overflow`` of :func:`poisson_sampler`.
        rtol: relative width asked of μ. fpr_floor: of μ and the regret. adjacency: as in ``measure``.
        delta: of "epsilon". epsilon: of "delta", nats. fpr: of "tpr" and "beta". d: of "approximate_mu". prior: of "bayes_risk".
        progress: called with the number of settings finished, as they finish.

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
    valid = f"a whole number in [1, {_MOST_STEPS}]"
    checked("max_steps", max_steps, valid, lambda a: (a >= 1) & (a <= _MOST_STEPS) & (a == np.floor(a)))
    sigma, p = (
        single("noise_multiplier", noise_multiplier, positive),
        single("sampling_prob", sampling_prob, probability),
    )
    last, stride = (
        int(single("max_steps", max_steps, whole)),
        None if every is None else int(single("every", every, whole)),
    )
    given = {"rtol": rtol, "fpr_floor": fpr_floor, "adjacency": adjacency, "delta": delta, "epsilon": epsilon}
    names, asked = question(quantities, overflow, given | {"fpr": fpr, "d": d, "prior": prior})
    if "regret" in names and stride != 1:
        raise ValueError(
            f"every must be 1 where quantities has 'regret', which is not monotone in the steps, got {every!r}"
        )

    computed = _grid(last, stride)
    run = dpsgd(sigma, p, computed)
    brackets, status = certified(run, names, asked, overflow, progress)
    lower, upper = {}, {}
    for name, bracket in brackets.items():
        start = without_steps(name, asked)
        full = Bracket(*(np.concatenate([[start], np.asarray(side, np.float64)]) for side in bracket))
        full = full if name == "regret" else _monotone(full, name in FALLING)
        lower[name], upper[name] = below(full.lower), above(full.upper)
    steps = np.concatenate([[0], computed]).astype(np.int32)
    position = np.searchsorted(steps, np.arange(last + 1)).astype(np.int32)
    wide = int(np.sum(status != 0))
    return Plan(steps, position, lower, upper, sigma, p, last, float(overflow), tuple(asked.items()), wide)
