"""Pairs whose upper and lower sides are of two members of one family."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...numerics.normal import precision_above
from ...numerics.pytree import pytree, unchecked
from ...numerics.shapes import Array
from ...pairs.cells import Cells
from ...pairs.known_curves import BetweenCurve
from ..base import Mechanism
from ..gaussian_mixture import GaussianMixture
from ..subsampled_gaussian import SubsampledGaussian, sampled_gaussian


@pytree
@dataclass(frozen=True)
class SampledRange(Mechanism):
    """Poisson-subsampled Gaussians: one that dominates, and one that an attack achieves; not
    checked.

    Attributes:
        noise_multiplier, sampling_prob: σ and p of the one that dominates.
        member_noise, member_prob: those of the attack.
    """

    noise_multiplier: Array
    sampling_prob: Array
    member_noise: Array
    member_prob: Array

    atomic = False
    tight: ClassVar[bool] = False
    undifferentiable: ClassVar[str] = "its sides are made from known numbers"

    def _dominating(self) -> SubsampledGaussian:
        return sampled_gaussian(self.noise_multiplier, self.sampling_prob)

    def lower_bound_member(self) -> SubsampledGaussian:
        """The law that the attack achieves."""
        return sampled_gaussian(self.member_noise, self.member_prob)

    def loss_nodes(self, depth: Array | float) -> tuple[Array, Array]:
        """Those of the pair that dominates."""
        return self._dominating().loss_nodes(depth)

    def gaussian_precision(self) -> Array:
        """That of the pair that dominates."""
        return self._dominating().gaussian_precision()

    def tail_precision(self) -> Array:
        """1/σ², rounded up."""
        return precision_above(self.noise_multiplier)

    def limit_precision(self) -> Array:
        """Not known: the sides are of two laws."""
        return self.noise_multiplier * float("nan")

    def cells(self, ell: Array, end: Array | float) -> Cells:
        """Those of the pair that dominates (unbatched)."""
        return self._dominating().cells(ell, end)


@pytree
@dataclass(frozen=True)
class MixtureRange(Mechanism):
    """Mixtures of shifts: one that dominates, and one that an attack achieves; not checked.

    Attributes:
        noise_multiplier: σ of both.
        shifts, weights: of the one that dominates, as in ``GaussianMixture``.
        member_shifts, member_weights: those of the attack.
    """

    noise_multiplier: Array
    shifts: Array
    weights: Array
    member_shifts: Array
    member_weights: Array

    atomic = False
    tight: ClassVar[bool] = False
    trailing: ClassVar[dict[str, int]] = {
        "shifts": 1,
        "weights": 1,
        "member_shifts": 1,
        "member_weights": 1,
    }
    undifferentiable: ClassVar[str] = "its sides are made from known numbers"

    def _dominating(self) -> GaussianMixture:
        return _mixture(self.noise_multiplier, self.shifts, self.weights)

    def lower_bound_member(self) -> GaussianMixture:
        """The law that the attack achieves."""
        return _mixture(self.noise_multiplier, self.member_shifts, self.member_weights)

    def loss_nodes(self, depth: Array | float) -> tuple[Array, Array]:
        """Those of the pair that dominates."""
        return self._dominating().loss_nodes(depth)

    def gaussian_precision(self) -> Array:
        """That of the pair that dominates."""
        return self._dominating().gaussian_precision()

    def tail_precision(self) -> Array:
        """That of the pair that dominates."""
        return self._dominating().tail_precision()

    def limit_precision(self) -> Array:
        """Not known: the sides are of two laws."""
        return self.noise_multiplier * float("nan")

    def work_per_point(self) -> float:
        """That of the pair that dominates."""
        return self._dominating().work_per_point()

    def known_curve(self) -> BetweenCurve | None:
        """One use of each is known."""
        above, below = (
            each.known_curve() for each in (self._dominating(), self.lower_bound_member())
        )
        return None if above is None or below is None else BetweenCurve(above, below)

    def cells(self, ell: Array, end: Array | float) -> Cells:
        """Those of the pair that dominates (unbatched)."""
        return self._dominating().cells(ell, end)


def _mixture(noise: Array, shifts: Array, weights: Array) -> GaussianMixture:
    return unchecked(GaussianMixture, noise_multiplier=noise, shifts=shifts, weights=weights)
