"""A plan of a run's budget: which numbers of steps are computed before it starts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from .. import options
from ..deprecation import renamed_arguments
from ..measure.pieces import Count
from ..numerics.validation import positive, probability, whole, whole_up_to
from ..quantities import registry
from .correlated import CorrelatedRun, correlated, run_of
from .float32 import above, below
from .overflow import question, single, without_steps
from .plan import Plan
from .runs import Run, Sampler, stages_of

_MOST_STEPS = 2**24  # int32 steps, and a table of them that fits in memory
# steps: fewer are composed on dense lattices; a run that does without those
_SMOOTH, _LONG = 100, 1000
_APART = 1.15  # between numbers of steps computed at first; others when they are looked up


def _grid(max_steps: int, every: int | None, period: int = 1) -> np.ndarray:
    """Numbers of steps to compute: multiples of ``every``, or a constant factor apart from 100 on.

    If nothing changes within a ``period``, the numbers of whole periods are computed, and the last
    step.
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
    further = np.rint(np.geomspace(first, max_steps, number + 1)).astype(np.int64)
    return np.unique([*steps, *further])


@renamed_arguments(d="approximation")
def plan_budget(
    noise_multiplier: float | Callable[[int], Any] | None = None,
    sampling_prob: float | None = None,
    max_steps: int | None = None,
    quantities: str | Iterable[str] = ("mu", "epsilon", "advantage"),
    *,
    sampler: Sampler | None = None,
    mechanism: Any = None,
    every: int | None = None,
    overflow: float = 0.0,
    rtol: float = options.RTOL,
    fpr_floor: float = options.FPR_FLOOR,
    adjacency: str = options.ADJACENCY,
    delta: float = options.DELTA,
    epsilon: float = options.EPSILON,
    fpr: float = options.FPR,
    approximation: float = options.APPROXIMATION,
    prior: float = options.PRIOR,
    progress: Count | bool | None = None,
    **others: float,
) -> Plan:
    """Certified privacy of DP-SGD after 0, 1, …, ``max_steps`` steps, to use while training.

    Batches are Poisson samples, or those of ``sampler``. With shuffled or allocated batches, part
    of an epoch costs on the safe side as much as the whole. The number of steps of a run must not
    depend on the data; see :meth:`Plan.at`. A run of 5,000 steps computes 29 of them, in half a
    second or so; what a look-up needs beside them is computed then.

    Args:
        noise_multiplier: σ > 0, a number; or a schedule, a function of the number of the step from
            0 on that is fixed before the run and has at most 64 stages of equal noise, with Poisson
            batches. ``calibrate`` finds the factor that scales a whole schedule to a target.
        sampling_prob: p in (0, 1] of Poisson sampling, a number; not given with a ``sampler``.
        max_steps: most steps of the run, at most 2²⁴; by default those that the sampler was made
            for.
        quantities: any of those of :func:`jaxgdp.measure`.
        sampler: of :func:`poisson_sampler`, :func:`shuffle_sampler` or :func:`allocation_sampler`;
            its overflow is accounted for, and :meth:`Plan.check` refuses another one.
        mechanism: a :class:`jaxgdp.MatrixMechanism` in place of the noise, the sampling, the steps
            and the sampler: after so many steps their rows of C·X + σZ are released. The plan adds
            no noise of its own; ``jax_privacy`` does. With random batches parts of a cycle count
            as a whole one.
        every: compute every so many steps (1: all of them), and nothing more when a step is looked
            up; needed (1) for a quantity that is not monotone in the steps, such as "regret". By
            default few are computed first, 15 per cent apart from 100 on, and :meth:`Plan.at`
            computes what it needs to be at most 0.5 per cent above ``measure`` at every step.
        overflow: probability that a padded batch of the run overflows: ``sampler.overflow`` of
            :func:`poisson_sampler`; not given with a ``sampler``, whose own it is.
        rtol: requested relative width of every bracket, in [1e-8, 1).
        fpr_floor: of μ and the regret, in [1e-300, 0.5).
        adjacency: as in ``measure``.
        delta: δ of "epsilon", in (0, 1).
        epsilon: ε of "delta", nats.
        fpr: FPR of "tpr" and "beta", in (0, 1).
        approximation: d of "approximate_mu", in (0, 1).
        prior: of "bayes_risk", the probability that the record is absent, in (0, 1).
        progress: called with the number of settings finished; None displays them on a terminal.
        **others: arguments of other registered quantities.

    Raises:
        ValueError: an argument is out of range or not a scalar, a quantity is unknown, δ or d is
            not above the overflow, or a quantity does not define how an overflow shifts it (before
            tracing).
        TypeError: no quantity has an argument of that name.

    Example:
        >>> import jax
        >>> step = {"noise_multiplier": 8.0, "sampling_prob": 1.0}
        >>> plan = plan_budget(**step, max_steps=64, quantities=("mu", "advantage"))
        >>> now = jax.jit(lambda plan, t: plan.at(t))(plan, 64)
        >>> bool(now["mu"].contains(1.0)), now["mu"].upper.dtype.name
        (True, 'float32')
    """
    sigma: Any
    if mechanism is not None:
        given = {"noise_multiplier": noise_multiplier, "sampling_prob": sampling_prob}
        given |= {"max_steps": max_steps, "sampler": sampler, "overflow": overflow or None}
        sigma, accounted, last = correlated(mechanism, **given)
    else:
        accounted, max_steps, overflow = _sampled(sampler, sampling_prob, max_steps, overflow)
        whole_up_to("max_steps", max_steps, _MOST_STEPS)
        last = int(single("max_steps", max_steps, whole))
        sigma = _noise(noise_multiplier, accounted, last)
    run = run_of(sigma, accounted)
    stride = None if every is None else int(single("every", every, whole))
    registry.checked_arguments("plan_budget", others)
    settings = {
        "rtol": rtol, "fpr_floor": fpr_floor, "adjacency": adjacency, "delta": delta,
        "epsilon": epsilon, "fpr": fpr, "approximation": approximation, "prior": prior,
    } | others  # fmt: skip
    names, asked = question(quantities, overflow, settings)
    _refuse_not_monotone(names, run.period, stride)
    start = _before_the_first_step(run, names, asked)
    start = replace(start, max_steps=last, overflow=float(overflow), sampler=accounted)
    start = replace(start, drawn_by=sampler, refines=every is None)
    return start.refined(_grid(last, stride, run.period), progress)


def _before_the_first_step(
    run: Run | CorrelatedRun, names: tuple[str, ...], asked: dict[str, Any]
) -> Plan:
    """A plan of no steps."""
    nothing = {name: without_steps(name, asked) for name in names}
    return Plan(
        steps=np.zeros(1, np.int32),
        lower={name: below([value]) for name, value in nothing.items()},
        upper={name: above([value]) for name, value in nothing.items()},
        noise_multiplier=run.noise_multiplier,
        sampling_prob=run.sampling_prob,
        max_steps=0,
        overflow=0.0,
        asked=tuple(asked.items()),
        wide=0,
    )


def _noise(schedule: Any, sampler: tuple, max_steps: int) -> Any:
    """The noise multiplier, or the stages of a schedule of it."""
    if not callable(schedule):
        return single("noise_multiplier", schedule, positive)
    if sampler[0] != "poisson":
        raise ValueError(
            f"noise_multiplier must be a number for batches by {sampler[0]}, got a schedule: an"
            " epoch is accounted for as a whole"
        )
    stages = stages_of(schedule, max_steps)
    return stages[0][0] if len(stages) == 1 else stages


def _refuse_not_monotone(names: tuple[str, ...], period: int, every: int | None) -> None:
    """Refuse quantities that may fall with another step where steps are left out."""
    for quantity in registry.select(names):
        if quantity.monotone:
            continue
        if period > 1:
            raise ValueError(
                f"quantities must not have {quantity.name!r}, which is not monotone, where an epoch"
                " is accounted for as a whole"
            )
        if every != 1:
            raise ValueError(
                f"every must be 1 where quantities has {quantity.name!r}, which is not monotone in"
                f" the steps, got {every!r}"
            )


def _sampled(
    sampler: Sampler | None, sampling_prob: float | None, max_steps: int | None, overflow: float
) -> tuple[tuple, int, float]:
    """The accounting's description of the sampler, the most steps, and the overflow."""
    if sampler is None:
        if sampling_prob is None or max_steps is None:
            raise ValueError("sampling_prob and max_steps must be given where no sampler is")
        return ("poisson", single("sampling_prob", sampling_prob, probability)), max_steps, overflow
    if not hasattr(sampler, "accounted"):
        raise ValueError(
            f"sampler must be one of jaxgdp.training's, such as poisson_sampler(…), got {sampler!r}"
        )
    if sampling_prob is not None or overflow != 0.0:
        raise ValueError(
            "sampling_prob and overflow are those of the sampler: give one or the others"
        )
    most = getattr(sampler, "max_steps", None)
    steps = most if max_steps is None else max_steps
    if steps is None:
        raise ValueError(
            "max_steps must be given with a sampler that is made for any number of steps"
        )
    if max_steps is not None and most is not None and np.any(np.asarray(max_steps) > most):
        raise ValueError(
            f"max_steps must be at most the {most} steps that the sampler was made for, got"
            f" {max_steps!r}"
        )
    return sampler.accounted, steps, sampler.overflow
