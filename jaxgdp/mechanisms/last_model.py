"""Only the last model of a run of DP-SGD is released: what is known, from both sides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..numerics.pytree import check_fields, pytree
from ..numerics.shapes import Array, ArrayLike, Parameter
from ..numerics.validation import checked, known, positive, probability, whole
from .base import Mechanism, poisson_words
from .gaussian_mixture import GaussianMixture
from .groups import binomial_weights
from .subsampled_gaussian import SubsampledGaussian, sampled_gaussian

_MOST_STEPS = 10_000
_MOST_SHIFTS = 256  # of the attack: larger ones count as the largest of these
_NEGLIGIBLE = 1e-40  # weight of shifts that count as the largest one before
_FAINT = 1e6  # of the noise of an attack that shows next to nothing


@pytree
@dataclass(frozen=True)
class LastIterate(Mechanism):
    """The last model alone of T steps of DP-SGD with Poisson sampling.

    From above, what all models show together (``dpsgd``): whoever sees less is told less, and for
    losses that are not convex no better bound is known. From below, an attack on linear losses,
    whose last model is the sum of all noisy sums: Bin(T, p) + N(0, Tσ²) against N(0, Tσ²)
    (Annamalai, Balle, De Cristofaro & Hayes 2024). The truth for a given loss lies between: the
    lower side is no guarantee.

    Args:
        noise_multiplier: σ, standard deviation of the noise over the clipping norm; > 0, any shape.
        sampling_prob: p in (0, 1], any shape.
        num_steps: T, a whole number from 1 to 10⁴; any shape. The three broadcast.

    Raises:
        ValueError: an argument is out of range, or shapes do not broadcast (before tracing).

    Example:
        >>> import jaxgdp
        >>> last = LastIterate(noise_multiplier=1.0, sampling_prob=0.01, num_steps=100)
        >>> run = jaxgdp.dpsgd(noise_multiplier=1.0, sampling_prob=0.01, num_steps=100)
        >>> one, every = (jaxgdp.epsilon(each, delta=1e-5) for each in (last, run))
        >>> bool(0.0 < one.lower < every.lower <= one.upper)
        True

    Method: docs/method/kahane.md#last-model
    """

    noise_multiplier: Parameter
    sampling_prob: Parameter
    num_steps: Parameter

    tight: ClassVar[bool] = False
    why_not_tight: ClassVar[str] = (
        "the upper side is that of all models together, as no bound for the last one alone holds"
        " for every loss; the lower side is achieved by an attack on linear losses"
    )
    undifferentiable: ClassVar[str] = "the weights of its attack are made from known numbers"
    relation: ClassVar[str] = "leaving out and adding a record"
    noise_scale: ClassVar[str] = "noise_multiplier"
    examples: ClassVar[dict] = {"LastIterate(1, 0.05, 4 steps)": lambda: LastIterate(1.0, 0.05, 4)}

    def __post_init__(self) -> None:
        known(self, why="the weights of its attack are made from them", **vars(self))
        check_fields(self, noise_multiplier=positive, sampling_prob=probability, num_steps=_steps)

    def describe_sampling(self) -> str:
        """Poisson sampling, unless every record takes part."""
        return poisson_words(self.sampling_prob)

    def gathered(self, count: Array) -> list[tuple[Mechanism, Array]]:
        """T steps that dominate; their own attack shows next to nothing."""
        sigma, p, steps = np.broadcast_arrays(
            self.noise_multiplier, self.sampling_prob, self.num_steps
        )
        return [(AllIterates(sigma, p, steps), steps * count)]

    def lower_bound_mechanisms(self) -> tuple[LinearLosses]:
        """The attack on linear losses."""
        return (LinearLosses(self.noise_multiplier, self.sampling_prob, self.num_steps),)


@pytree
@dataclass(frozen=True)
class AllIterates(Mechanism):
    """One step of the run, from above only; not checked.

    Attributes:
        noise_multiplier, sampling_prob, num_steps: of the run.
    """

    noise_multiplier: Array
    sampling_prob: Array
    num_steps: Array

    atomic = False
    tight: ClassVar[bool] = False

    def _dominating(self) -> SubsampledGaussian:
        return sampled_gaussian(self.noise_multiplier, self.sampling_prob)

    def lower_bound_member(self) -> SubsampledGaussian:
        """A step with a million times √T the noise: less than the sum of all steps shows."""
        noise = self.noise_multiplier * (_FAINT * self.num_steps**0.5)
        return sampled_gaussian(noise, self.sampling_prob)

    def loss_nodes(self, depth: Array | float) -> tuple[Array, Array]:
        """Those of the step."""
        return self._dominating().loss_nodes(depth)

    def gaussian_precision(self) -> Array:
        """That of the step."""
        return self._dominating().gaussian_precision()

    def tail_precision(self) -> Array:
        """That of the step."""
        return self._dominating().tail_precision()

    def limit_precision(self) -> Array:
        """Not known: the sides are of two laws."""
        return self.noise_multiplier * float("nan")

    def cells(self, ell: Array, end: Array | float):
        """Those of the step (unbatched)."""
        return self._dominating().cells(ell, end)


@pytree
@dataclass(frozen=True)
class LinearLosses(Mechanism):
    """The sum of all noisy sums; not checked.

    Attributes:
        noise_multiplier, sampling_prob, num_steps: of the run.
    """

    noise_multiplier: Array
    sampling_prob: Array
    num_steps: Array

    def gathered(self, count: Array) -> list[tuple[Mechanism, Array]]:
        """The mixture of shifts 0, 1, …, those beyond the last one kept counted as that."""
        sigma, p, steps = np.broadcast_arrays(
            self.noise_multiplier, self.sampling_prob, self.num_steps
        )
        laws = {
            index: np.array(binomial_weights(int(steps[index]), float(p[index])))
            for index in np.ndindex(sigma.shape)
        }
        last = max(int(np.flatnonzero(law > _NEGLIGIBLE)[-1]) for law in laws.values())
        most = min(last + 1, int(steps.max()), _MOST_SHIFTS)
        weights = np.zeros((*sigma.shape, most + 1))
        for index, found in laws.items():
            weights[index][: min(len(found), most + 1)] = found[: most + 1]
            weights[index][-1] += found[most + 1 :].sum()
        return [(GaussianMixture(sigma * steps**0.5, np.arange(most + 1.0), weights), count)]


def _steps(name: str, value: ArrayLike) -> Array:
    value = whole(name, value)
    return checked(name, value, f"a whole number from 1 to {_MOST_STEPS}",
                   lambda a: a <= _MOST_STEPS)  # fmt: skip


def last_iterate(
    noise_multiplier: ArrayLike, sampling_prob: ArrayLike, num_steps: ArrayLike
) -> LastIterate:
    """The last model of T steps of DP-SGD; see :class:`LastIterate`.

    Args and Raises as there.

    Example:
        >>> last_iterate(1.0, 0.01, [100, 1000]).shape
        (2,)
    """
    return LastIterate(noise_multiplier, sampling_prob, num_steps)
