"""The Gaussian mechanism."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import ndtr

from ..numerics.pytree import check_fields, pytree
from ..numerics.shapes import Parameter
from ..numerics.validation import positive
from .base import EVERY_RECORD, Mechanism
from .subsampled_gaussian import SubsampledGaussian


@pytree
@dataclass(frozen=True)
class Gaussian(Mechanism):
    """Gaussian noise on a query of sensitivity one: exactly (1/σ)-GDP (Dong et al. 2022).

    The pair is N(0, σ²) against N(1, σ²).

    Args:
        noise_multiplier: σ, standard deviation of the noise over the sensitivity; > 0, any shape.

    Raises:
        ValueError: σ is not a finite number > 0 (before tracing).

    Example:
        >>> Gaussian(noise_multiplier=[1.0, 2.0]).shape
        (2,)
    """

    noise_multiplier: Parameter

    atomic = False
    differentiable: ClassVar[tuple[str, ...]] = ("noise_multiplier",)
    relation: ClassVar[str] = "leaving out and adding a record"
    sampling: ClassVar[str] = EVERY_RECORD
    noise_scale: ClassVar[str] = "noise_multiplier"
    examples: ClassVar[dict] = {"Gaussian(2)": lambda: Gaussian(2.0)}

    def __post_init__(self) -> None:
        check_fields(self, noise_multiplier=positive)

    def canonical(self) -> SubsampledGaussian:
        """The subsampled Gaussian with p = 1, so that compositions stack both kinds together."""
        return SubsampledGaussian(self.noise_multiplier, np.ones(()))

    def subsampled(self, sampling_prob: float) -> SubsampledGaussian:
        """The subsampled Gaussian of the same noise."""
        return SubsampledGaussian(self.noise_multiplier, sampling_prob)

    def noise_tail(self, distance: float) -> float:
        """Φ(−distance/σ)."""
        return ndtr(-distance / float(self.noise_multiplier))

    def replace_one(self) -> Gaussian:
        """Replacing a record moves the query by up to 2: noise over that is σ/2.

        Method: docs/method/adjacency.md#relations
        """
        return Gaussian(self.noise_multiplier / 2.0)
