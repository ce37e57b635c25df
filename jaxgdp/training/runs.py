"""The privacy cost of a number of steps of a run, by the sampler that draws its batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..bracket import Bracket
from ..measure.pieces import Count
from ..mechanisms import Composition, RandomAllocation, Shuffled, SubsampledGaussian, compose, dpsgd
from ..numerics.shapes import Array
from ..numerics.validation import positive
from ..quantities.registry import named
from .overflow import certified, without_steps

_MOST_STAGES = 64


class Sampler(Protocol):
    """What the accounting reads of a sampler of batches."""

    @property
    def accounted(self) -> tuple:
        """Its kind, and what else decides the privacy of a run."""
        ...

    @property
    def overflow(self) -> float:
        """Bound on the probability that any batch of a run overflows."""
        ...


class Run(NamedTuple):
    """A training run.

    Attributes:
        noise_multiplier: σ; or stages, pairs of a σ and the number of steps that have it.
        sampler: the accounting's description of the sampler: its name, and what else there is to
            know.
    """

    noise_multiplier: float | tuple[tuple[float, int], ...]
    sampler: tuple

    @property
    def period(self) -> int:
        """Steps accounted for together: an epoch; 1 where every step stands alone."""
        return 1 if self.sampler[0] == "poisson" else int(self.sampler[1])

    @property
    def sampling_prob(self) -> float:
        """The chance that a record is in a batch."""
        if self.sampler[0] == "poisson":
            return self.sampler[1]
        return (self.sampler[2] if self.sampler[0] == "random_allocation" else 1) / self.sampler[1]

    def _epochs(self, epochs: Array) -> Composition:
        name, batches, other = self.sampler
        if name == "shuffled":
            return compose([Shuffled(self.noise_multiplier, batches, epochs, other)])
        return compose([(RandomAllocation(self.noise_multiplier, batches, other), epochs)])

    def composition(self, steps: int) -> Composition:
        """So many steps as a mechanism; parts of an epoch count as a whole one."""
        if self.sampler[0] != "poisson":
            return self._epochs(np.asarray(-(-steps // self.period)))
        stages: Any = self.noise_multiplier
        parts: list[Any] = []
        for sigma, number in stages if isinstance(stages, tuple) else ((stages, steps),):
            taken = min(number, steps - sum(count for _, count in parts))
            if taken > 0:
                parts.append((SubsampledGaussian(sigma, self.sampling_prob), taken))
        return compose(parts)

    def certified(
        self,
        steps: Array,
        names: tuple[str, ...],
        asked: dict[str, Any],
        overflow: float,
        progress: Count | bool | None = None,
    ) -> tuple[dict[str, Bracket], Array]:
        """Brackets after numbers of steps: as :func:`jaxgdp.training.overflow.certified`.

        Part of an epoch is bounded by all of it on the safe side, and by none of it on the other: a
        record may be in any of its batches.

        Args:
            steps: whole numbers ≥ 1, one-dimensional.
            names, asked, overflow, progress: as there.

        Returns:
            (name → Bracket, status).
        """
        if isinstance(self.noise_multiplier, tuple):
            return self._certified_stages(np.asarray(steps), names, asked, overflow, progress)
        if self.sampler[0] == "poisson":
            own = dpsgd(self.noise_multiplier, self.sampler[1], steps)
            return certified(own, names, asked, overflow, progress)
        nothing = {name: without_steps(name, asked) for name in names}
        whole = lambda epochs: certified(self._epochs(epochs), names, asked, overflow, progress)
        return by_periods(np.asarray(steps), self.period, whole, nothing)

    def _certified_stages(
        self,
        steps: Array,
        names: tuple[str, ...],
        asked: dict[str, Any],
        overflow: float,
        progress: Count | bool | None,
    ) -> tuple[dict[str, Bracket], Array]:
        """The same for Poisson batches and noise in stages: earlier stages are over."""
        stages: Any = self.noise_multiplier
        ends = np.cumsum([number for _, number in stages])
        stage = np.searchsorted(ends, steps)
        brackets = {name: Bracket(*(np.empty(len(steps)) for _ in range(2))) for name in names}
        status = np.zeros(len(steps), int)
        for last in np.unique(stage):
            here = np.flatnonzero(stage == last)
            before = int(ends[last - 1]) if last else 0
            parts = [
                (SubsampledGaussian(sigma, self.sampling_prob), n) for sigma, n in stages[:last]
            ]
            step = SubsampledGaussian(stages[last][0], self.sampling_prob)
            run = compose([*parts, (step, steps[here] - before)])
            found, status[here] = certified(run, names, asked, overflow, progress)
            for name, bracket in found.items():
                brackets[name].lower[here], brackets[name].upper[here] = bracket
        return brackets, status


def by_periods(
    steps: Array,
    period: int,
    of_periods: Callable[[Array], tuple[dict[str, Bracket], Array]],
    nothing: dict[str, float],
) -> tuple[dict[str, Bracket], Array]:
    """Brackets after numbers of steps of which whole periods are accounted for: from above the next
    whole one, from below the one before.

    Args:
        steps: whole numbers ≥ 1.
        period: steps of a period.
        of_periods: brackets and status after increasing numbers of periods.
        nothing: quantity → its value before the first step.
    """
    more, fewer = -(-steps // period), steps // period
    periods = np.unique(np.concatenate([more, fewer[fewer > 0]])).astype(np.int64)
    found, status = of_periods(periods)
    brackets = {}
    for name, bracket in found.items():
        sides = [np.concatenate([[nothing[name]], side]) for side in bracket]
        before, after = (np.searchsorted(periods, e) + 1 for e in (np.maximum(fewer, 1), more))
        before = np.where(fewer > 0, before, 0)
        places = (before, after) if named(name).grows else (after, before)
        low, high = (side[place] for side, place in zip(sides, places, strict=True))
        brackets[name] = Bracket(low, high)
    return brackets, status[np.searchsorted(periods, more)]


def stages_of(schedule: Any, max_steps: int) -> tuple[tuple[float, int], ...]:
    """Stages of equal noise in a schedule: a function of the step, evaluated at every one.

    Args:
        schedule: function (number of the step from 0 on) → σ.
        max_steps: how many steps there are.

    Raises:
        ValueError: a noise multiplier is not a finite number > 0, or there are more than 64 stages.

    Example:
        >>> stages_of(lambda step: 2.0 if step < 3 else 1.0, 5)
        ((2.0, 3), (1.0, 2))
    """
    stages: list[tuple[float, int]] = []
    for step in range(max_steps):
        sigma = float(np.asarray(positive("noise_multiplier", schedule(step))))
        if stages and stages[-1][0] == sigma:
            stages[-1] = sigma, stages[-1][1] + 1
        else:
            stages.append((sigma, 1))
        if len(stages) > _MOST_STAGES:
            raise ValueError(
                f"noise_multiplier must have at most {_MOST_STAGES} stages of equal noise, got more"
                f" by step {step}: let the schedule change every so many steps"
            )
    return tuple(stages)
