"""The privacy cost of a number of steps of a run, by the sampler that draws its batches."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from ..bracket import Bracket
from ..measure.pieces import Count
from ..mechanisms import Composition, RandomAllocation, Shuffled, compose, dpsgd
from ..numerics.shapes import Array
from ..quantities.registry import named
from .overflow import certified, without_steps


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
        noise_multiplier: σ.
        sampler: the accounting's description of the sampler: its name, and what else there is to
            know.
    """

    noise_multiplier: float
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
        if self.sampler[0] == "poisson":
            own = dpsgd(self.noise_multiplier, self.sampler[1], steps)
            return certified(own, names, asked, overflow, progress)
        steps = np.asarray(steps)
        more, fewer = -(-steps // self.period), steps // self.period
        epochs = np.unique(np.concatenate([more, fewer[fewer > 0]])).astype(np.int64)
        found, status = certified(self._epochs(epochs), names, asked, overflow, progress)
        brackets = {}
        for name, bracket in found.items():
            nothing = without_steps(name, asked)
            sides = [np.concatenate([[nothing], side]) for side in bracket]
            before, after = (np.searchsorted(epochs, e) + 1 for e in (np.maximum(fewer, 1), more))
            before = np.where(fewer > 0, before, 0)
            places = (before, after) if named(name).grows else (after, before)
            low, high = (side[place] for side, place in zip(sides, places, strict=True))
            brackets[name] = Bracket(low, high)
        return brackets, status[np.searchsorted(epochs, more)]
