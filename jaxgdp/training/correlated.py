"""The privacy of the first steps of a run whose noise is correlated over its steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..bracket import Bracket
from ..measure import measure
from ..measure.pieces import Count
from ..mechanisms import Composition, MatrixMechanism, compose
from ..numerics.shapes import Array
from ..participation import BallsInBins, CyclicPoisson, Participation
from .overflow import without_steps
from .runs import Run, by_periods

NAME = "matrix mechanism"


@dataclass(frozen=True)
class Strategy:
    """A strategy and who takes part in which step, hashable: the sampler of a correlated run.

    Attributes:
        entries: bytes of the matrix, or of its Toeplitz coefficients.
        shape: of these.
        participation: one of ``jaxgdp.participation``.
        num_steps: of the whole run.
    """

    entries: bytes
    shape: tuple[int, ...]
    participation: Participation
    num_steps: int

    def __repr__(self) -> str:
        given = "x".join(map(str, self.shape))
        return f"Strategy({given} numbers, {self.participation}, {self.num_steps} steps)"

    def first(self, noise_multiplier: float, steps: int) -> MatrixMechanism:
        """The mechanism of the first steps alone: the upper left corner of C.

        With less steps than groups each group has one at most, and the rest of them none.
        """
        given, chosen = np.frombuffer(self.entries).reshape(self.shape), self.participation
        part = given[:steps] if given.ndim == 1 else given[:steps, :steps]
        if isinstance(chosen, CyclicPoisson):
            chosen = CyclicPoisson(chosen.sampling_prob, min(chosen.cycle, steps))
        return MatrixMechanism(part, noise_multiplier, chosen, steps)


class CorrelatedRun(NamedTuple):
    """A run of a matrix mechanism; the counterpart of :class:`jaxgdp.training.runs.Run`.

    Attributes:
        noise_multiplier: σ.
        strategy: C, and the participation.
    """

    noise_multiplier: float
    strategy: Strategy

    @property
    def period(self) -> int:
        """Steps accounted for together: a cycle of random batches, else 1."""
        chosen = self.strategy.participation
        return int(chosen.cycle) if isinstance(chosen, BallsInBins) else 1

    @property
    def sampling_prob(self) -> float:
        """The chance that a record is in the batch of a step of its own; 1 without sampling."""
        chosen = self.strategy.participation
        if isinstance(chosen, BallsInBins):
            return 1.0 / float(chosen.cycle)
        return float(getattr(chosen, "sampling_prob", 1.0))

    def composition(self, steps: int) -> Composition:
        """So many steps as a mechanism; parts of a cycle of random batches count as a whole one."""
        whole = min(-(-steps // self.period) * self.period, self.strategy.num_steps)
        return compose([(self.strategy.first(self.noise_multiplier, whole), 1)])

    def certified(
        self,
        steps: Array,
        names: tuple[str, ...],
        asked: dict[str, Any],
        overflow: float,
        progress: Count | bool | None = None,
    ) -> tuple[dict[str, Bracket], Array]:
        """Brackets after numbers of steps, as those of an uncorrelated run; without overflows."""
        steps = np.asarray(steps)

        def of_steps(numbers: Array) -> tuple[dict[str, Bracket], Array]:
            runs = [self.composition(int(number)) for number in numbers]
            found = measure(runs, quantities=names, progress=progress, **asked)
            return dict(found.brackets), found.worst

        if self.period == 1:
            return of_steps(steps)
        nothing = {name: without_steps(name, asked) for name in names}
        last = self.strategy.num_steps
        # (a last cycle that is cut short is accounted for as it is)
        whole = lambda cycles: of_steps(np.minimum(cycles * self.period, last))
        return by_periods(np.where(steps == last, -(-steps // self.period) * self.period, steps),
                          self.period, whole, nothing)  # fmt: skip


def correlated(mechanism: Any, **others: Any) -> tuple[float, tuple, int]:
    """The noise, the description of the sampler and the number of steps of a matrix mechanism.

    Args:
        mechanism: a scalar ``MatrixMechanism``.
        **others: arguments that must not be given with it, None where they are not.

    Raises:
        ValueError: it is something else, has several noise multipliers, or another argument is
            given; names it.
    """
    if not isinstance(mechanism, MatrixMechanism):
        raise ValueError(f"mechanism must be a MatrixMechanism, got {type(mechanism).__name__}")
    if mechanism.shape:
        raise ValueError(f"mechanism must have one noise_multiplier, got shape {mechanism.shape}")
    for name, value in others.items():
        if value is not None:
            raise ValueError(
                f"{name} must not be given with a mechanism, which has its own, got {value!r}"
            )
    entries = np.asarray(mechanism.strategy, float)
    strategy = Strategy(
        entries.tobytes(), entries.shape, mechanism.participation, int(mechanism.num_steps)
    )
    return float(mechanism.noise_multiplier), (NAME, strategy), strategy.num_steps


def run_of(noise_multiplier: Any, sampler: tuple) -> Any:
    """The run that a plan's noise and sampler describe."""
    if sampler and sampler[0] == NAME:
        return CorrelatedRun(noise_multiplier, sampler[1])
    return Run(noise_multiplier, sampler)


def refuse_own_noise(run: Any) -> None:
    """Refuse to add noise for a run whose noise is correlated.

    Raises:
        ValueError: it is one.
    """
    if isinstance(run, CorrelatedRun):
        raise ValueError(
            "a plan of a MatrixMechanism has no noise of its own: add C⁻¹·σZ by the library that"
            " made the strategy, such as jax_privacy.noise_addition"
        )


__all__ = ["CorrelatedRun", "Strategy", "correlated", "refuse_own_noise", "run_of"]
