"""Batches of a fixed size, drawn without replacement: one step of DP-SGD."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .. import gdp
from ..numerics.errors import CLOSED_FORM, PRECISION
from ..numerics.pytree import check_fields, pytree
from ..numerics.shapes import Array, Parameter
from ..numerics.validation import at_most, known, positive, whole
from .base import Mechanism
from .finite_pair import FinitePair
from .from_profile import FromProfile
from .subsampled_gaussian import SubsampledGaussian, sampled_gaussian

_POINTS = 1500  # of a profile
_DEPTH = 13.0  # standard deviations that a profile reaches to: δ below 1e-38 is mass at infinity


@pytree
@dataclass(frozen=True)
class FixedSize(Mechanism):
    """Gaussian noise on the sum over b of n records drawn without replacement, every step anew.

    Known by its privacy profile alone (Balle, Barthe & Gaboardi 2018, advanced joint convexity).
    With q = b/n and e^{ε'} = 1 + q·(e^ε − 1), and δ_μ that of the Gaussian mechanism,

    - zero-out adjacency (a record is there or counts as zero; "remove", "add", "add_remove"): δ(ε')
      ≤ q·((1 − β)·δ_{2/σ}(ε) + β·δ_{1/σ}(ε)), β = e^{ε' − ε}: where it is drawn the other batch has
      either nothing or another record in its place. For both directions;
    - "replace_one": δ(ε') ≤ q·δ_{2/σ}(ε).

    The pair of that profile dominates, and does so under composition; no single pair of data sets
    need have all of it. The attack of the lower side is on data that are zero but for the record
    (zero-out), or all opposite to it (replace-one): Poisson-subsampled Gaussians of rate q, one
    after the other in one order. One step of replace-one is known exactly; compositions and
    zero-out are not.

    Args:
        noise_multiplier: σ, standard deviation of the noise over the clipping norm; > 0, any shape.
        batch_size: b, a whole number from 1 to n; any shape.
        dataset_size: n, a whole number ≥ 1; any shape.

    Raises:
        ValueError: an argument is out of range, a batch larger than the data, or shapes do not
            broadcast (before tracing).

    Example:
        >>> FixedSize(noise_multiplier=1.0, batch_size=100, dataset_size=10_000).shape
        ()
    """

    noise_multiplier: Parameter
    batch_size: Parameter
    dataset_size: Parameter

    tight: ClassVar[bool] = False
    why_not_tight: ClassVar[str] = (
        "the upper side, the pair of a profile that no pair of data sets need show all of, is loose"
        " under composition; the lower side is achieved by an attack"
    )
    undifferentiable: ClassVar[str] = "its profile is made from known numbers"
    relation: ClassVar[str] = "zeroing a record, and the reverse"
    sampling: ClassVar[str] = (
        "batches of a fixed size, drawn at random without replacement, anew at every step"
    )
    examples: ClassVar[dict] = {"FixedSize(1, 20 of 1000)": lambda: FixedSize(1.0, 20, 1000)}

    def __post_init__(self) -> None:
        known(self, why="its profile is made from its parameters", **vars(self))
        check_fields(self, noise_multiplier=positive, batch_size=whole, dataset_size=whole)
        at_most("batch_size", self.batch_size, "dataset_size", self.dataset_size)
        if np.any(self.noise_multiplier < 0.05):
            raise ValueError(
                "noise_multiplier must be at least 0.05 for FixedSize, got"
                f" {np.min(self.noise_multiplier):g}"
            )

    def canonical(self) -> SampledPair:
        """The pair of the profile for zero-out adjacency."""
        return self._pair(1.0)

    def replace_one(self) -> ReplacedInFixedSize:
        """The pair of the profile for replacing a record.

        Method: docs/method/adjacency.md#relations
        """
        return ReplacedInFixedSize(self.noise_multiplier, self.batch_size, self.dataset_size)

    def _pair(self, near: float) -> SampledPair:
        """``near``: how far a batch with the record is from one with its replacement."""
        sigma, batch, size = np.broadcast_arrays(
            self.noise_multiplier, self.batch_size, self.dataset_size
        )
        rate = batch / size
        mu = 2.0 / sigma
        t = np.linspace(0.0, 1.0, _POINTS)
        reach = (mu * _DEPTH + 0.5 * mu * mu)[..., None]
        # finest next to 0, where most of the mass is
        epsilon = reach * (0.25 * t + 0.75 * t**3)
        q = rate[..., None]
        with np.errstate(over="ignore"):
            subsampled = np.where(
                epsilon < 30.0,
                np.log1p(q * np.expm1(np.minimum(epsilon, 30.0))),
                epsilon + np.log(q + (1.0 - q) * np.exp(-epsilon)),
            )
        # β = q + (1 − q)·e^{−ε}; where nearly all records are drawn, 1 − β is no difference of it
        beside = ((size - batch) / size)[..., None] * -np.expm1(-epsilon)
        far, close = (
            np.asarray(gdp.delta(epsilon=epsilon, mu=np.broadcast_to(m, epsilon.shape)), float)
            for m in (mu[..., None], near / sigma[..., None])
        )
        delta = q * (beside * far + (1.0 - beside) * close)
        delta = np.minimum(delta * (1.0 + 4.0 * CLOSED_FORM) + 1e-300, 1.0)
        found = FromProfile(subsampled, delta).canonical()
        precision = (near / sigma) ** 2 * (1.0 + 4.0 * PRECISION)
        fields = (found.loss, found.log_p, found.log_q, found.log_p_minus, found.log_q_plus)
        return SampledPair(*fields, found.place, found.loss_rest, precision, sigma / near, rate)


@pytree
@dataclass(frozen=True)
class ReplacedInFixedSize(FixedSize):
    """Batches of a fixed size under replacing a record; not checked."""

    def canonical(self) -> SampledPair:
        """The pair of the profile for replacing a record."""
        return self._pair(2.0)

    def replace_one(self) -> ReplacedInFixedSize:
        """Itself."""
        return self


@pytree
@dataclass(frozen=True)
class SampledPair(FinitePair):
    """The pair of a profile, and the Poisson-subsampled Gaussian of the lower side; not checked.

    Attributes:
        precision: square of a Gaussian-DP parameter that bounds one use at every FPR.
        member_noise, member_prob: σ and rate of that Gaussian.
    """

    precision: Array
    member_noise: Array
    member_prob: Array

    tight: ClassVar[bool] = False

    def known_curve(self) -> None:
        """Not known: no pair of data sets need have all of the profile."""

    def tail_precision(self):
        """As given: with every batch fixed, a record moves a sum by no more than its norm."""
        return self.precision

    def limit_precision(self):
        """Not known: no single pair of data sets need have all of the profile."""
        return np.nan * self.precision

    def lower_bound_member(self) -> SubsampledGaussian:
        """The law if the other data are zero, or all opposite to the record."""
        return sampled_gaussian(self.member_noise, self.member_prob)
