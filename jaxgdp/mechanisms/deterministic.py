"""Batches in a fixed order: every record is used exactly once an epoch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..numerics import namespace as xp
from ..numerics.pytree import check_fields, default, pytree
from ..numerics.shapes import Parameter
from ..numerics.validation import positive, whole
from .base import Mechanism
from .gaussian import Gaussian
from .subsampled_gaussian import SubsampledGaussian


@pytree
@dataclass(frozen=True)
class Deterministic(Mechanism):
    """Gaussian noise on sums over disjoint batches in a fixed order, gone through once an epoch
    (Chua et al. 2024, Algorithm 2).

    A record enters one batch of each epoch and the others do not depend on it (parallel
    composition), whatever the number of batches: E epochs are exactly μ-GDP with μ = √E/σ. For one
    epoch this is their Proposition 3.1, δ(ε) = Φ(−σε + 1/(2σ)) − e^ε·Φ(−σε − 1/(2σ)).

    Neighbouring data sets are those of the zero-out relation: one record counts as zero in one of
    them, and stays where it is in the order. "remove" is a record that becomes zero, "add" the
    reverse, and both are the same here. Leaving a record out would move all later ones to other
    batches.

    Args:
        noise_multiplier: σ, standard deviation of the noise over the clipping norm; > 0, any shape.
        num_epochs: E, a whole number ≥ 1, broadcast against σ.

    Raises:
        ValueError: an argument is out of range or not a number (before tracing).

    Example:
        >>> Deterministic(noise_multiplier=[1.0, 2.0], num_epochs=4).shape
        (2,)
    """

    noise_multiplier: Parameter
    num_epochs: Parameter = default(1)

    atomic = False
    differentiable: ClassVar[tuple[str, ...]] = ("noise_multiplier",)
    undifferentiable: ClassVar[str] = "that is a whole number"
    relation: ClassVar[str] = "zeroing a record, and the reverse"
    sampling: ClassVar[str] = "none: batches in a fixed order, each record in one batch an epoch"
    examples: ClassVar[dict] = {"Deterministic(2, 4 epochs)": lambda: Deterministic(2.0, 4)}

    def __post_init__(self) -> None:
        check_fields(self, noise_multiplier=positive, num_epochs=whole)

    def canonical(self) -> SubsampledGaussian:
        """The Gaussian mechanism of noise σ/√E, with a sampling rate of 1."""
        return SubsampledGaussian(self.noise_multiplier / xp.sqrt(self.num_epochs), np.ones(()))

    def replace_one(self) -> Gaussian:
        """Replacing a record moves one batch an epoch by up to 2: noise over that is σ/2."""
        return Gaussian(self.noise_multiplier / xp.sqrt(self.num_epochs) / 2.0)
