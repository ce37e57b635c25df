"""Shuffled batches: each record is in one batch an epoch, at a secret position."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..numerics import namespace as xp
from ..numerics.normal import inverse_square, precision_above
from ..numerics.pytree import check_fields, default, pytree
from ..numerics.shapes import Array, Parameter
from ..numerics.validation import known, positive, truth, whole
from ..pairs.cells import Cells
from .base import Mechanism
from .random_allocation import RandomAllocation
from .shuffled_attack import Slices, attack
from .subsampled_gaussian import SubsampledGaussian

_WORTH = 0.6  # noise from which random allocation is worth a look
_BETTER = 1.5  # noise from which it is the better one for several epochs
_MOST_NOISE, _MOST_BATCHES = 1e4, 1e7  # for which there are tables of it
# mean of the sum that the record is in, without and with it
_ZERO_OUT, _REPLACE = (1.0, 2.0), (0.0, 2.0)


@pytree
@dataclass(frozen=True)
class Shuffled(Mechanism):
    """Gaussian noise on sums over batches cut from a random permutation (Chua et al. 2024).

    No tight pair is known, so the two sides of a bracket are of different laws and do not meet:

    - The upper side is that of :class:`Deterministic`: shuffling first does not make a mechanism
      less private (their Theorem 4.1), so E epochs are √E/σ-GDP whether or not the data is shuffled
      again before each.
    - The lower side is an attack that is carried out: the data set whose other records all point
      away from the one in question, and the largest of the T noisy sums (their Section 4.3;
      ``shuffled_attack``). Reshuffled epochs repeat it; if one permutation serves all epochs, the
      attack uses the T means over epochs, of noise σ/√E. If the noise is large, random allocation
      is the better lower side: shuffled batches come to just that on a data set whose other records
      are all zero.

    For small σ the sides nearly meet; for large σ the upper side is loose by a factor of up to √T
    in μ, as far as is known: amplification by shuffling is proven for pure local differential
    privacy, and the Gaussian mechanism has none. Its (ε₀, δ₀) forms need T·δ₀·e^{ε₀} far below δ at
    an e^{ε₀} far below T, which gives no bound at the noise of training and a weak one elsewhere.

    Neighbouring data sets are those of the zero-out relation: one record counts as zero in one of
    them and keeps its place, as the number of records is fixed. "remove" is a record that becomes
    zero, "add" the reverse, "replace_one" any other value in its place.

    Args:
        noise_multiplier: σ, standard deviation of the noise over the clipping norm; > 0, any shape.
        num_batches: T, batches of an epoch, a whole number ≥ 1.
        num_epochs: E, a whole number ≥ 1.
        reshuffle: whether the data is shuffled again before every epoch, or once for all: True or
            False, or an array of these. All broadcast.

    Raises:
        ValueError: an argument is out of range or not a number (before tracing).

    Example:
        >>> import jaxgdp
        >>> epoch = Shuffled(noise_multiplier=0.4, num_batches=10_000)
        >>> delta = jaxgdp.measure(epoch, "delta", epsilon=4.0).delta
        >>> bool(delta.lower > 0.226), bool(delta.upper < 0.2442)  # Poisson sampling: below 1.2e-5
        (True, True)
    """

    noise_multiplier: Parameter
    num_batches: Parameter
    num_epochs: Parameter = default(1)
    reshuffle: Parameter = default(True)

    tight: ClassVar[bool] = False
    why_not_tight: ClassVar[str] = (
        "the upper side, that of a fixed order, is loose where the noise is large, as nobody knows"
        " a tight one; the lower side is achieved by an attack"
    )
    undifferentiable: ClassVar[str] = (
        "the attack of its lower side is a table made from known numbers"
    )
    relation: ClassVar[str] = "zeroing a record, and the reverse"
    sampling: ClassVar[str] = "shuffling: batches of a fixed size cut from a random permutation"
    examples: ClassVar[dict] = {"Shuffled(1, 100 batches)": lambda: Shuffled(1.0, 100)}

    def __post_init__(self) -> None:
        known(
            self,
            noise_multiplier=self.noise_multiplier,
            num_batches=self.num_batches,
            num_epochs=self.num_epochs,
        )
        check_fields(
            self, noise_multiplier=positive, num_batches=whole, num_epochs=whole, reshuffle=truth
        )

    def lower_bound_mechanisms(self) -> tuple[Mechanism, ...]:
        """The attack of the lower side; and random allocation, to which shuffled batches come down
        if all other records are zero.
        """
        pair = self.canonical()
        sigma = pair.noise_multiplier
        if (
            np.any(sigma < _WORTH)
            or np.any(sigma > _MOST_NOISE)
            or np.max(self.num_batches) > _MOST_BATCHES
        ):
            return pair.lower_bound_mechanisms()
        allocated = AllocatedEpochs(sigma, self.num_batches, pair.epochs)
        return (
            (allocated,)
            if np.all((sigma > _BETTER) & (pair.epochs > 1.0))
            else (*pair.lower_bound_mechanisms(), allocated)
        )

    def canonical(self) -> ShuffledPair:
        """The pair, and the attack, of one use and how many uses there are."""
        return self._pair(1.0, _ZERO_OUT)

    def replace_one(self) -> ShuffledPair:
        """Replacing a record moves its batch by up to 2: noise over that is σ/2, and an attack on a
        record opposite to all others.
        """
        return self._pair(2.0, _REPLACE)

    def _pair(self, sensitivity: float, means: tuple[float, float]) -> ShuffledPair:
        arrays = self.noise_multiplier, self.num_batches, self.num_epochs, self.reshuffle
        sigma, batches, epochs, reshuffle = np.broadcast_arrays(*arrays)
        sigma = np.where(reshuffle, sigma, sigma / np.sqrt(epochs))
        found = attack(sigma, batches, means)
        uses = np.where(reshuffle, epochs, 1.0)
        return ShuffledPair(sigma / sensitivity, uses, found.loss, found.log_p, found.error)


@pytree
@dataclass(frozen=True)
class ShuffledPair(Mechanism):
    """Epochs of shuffled batches: a dominating Gaussian pair, an attack's law; not checked.

    Attributes:
        noise_multiplier: σ of the Gaussian pair.
        epochs: how many uses this stands for.
        loss, log_p, error: of the attack, see :class:`Slices`.
    """

    noise_multiplier: Array
    epochs: Array
    loss: Array
    log_p: Array
    error: Array

    tight: ClassVar[bool] = False
    trailing: ClassVar[dict[str, int]] = {"loss": 1, "log_p": 1}

    def gathered(self, count: Array):
        """One epoch, as often as there are epochs."""
        one = ShuffledPair(self.noise_multiplier, np.ones(()), self.loss, self.log_p, self.error)
        return [(one, count * self.epochs)]

    def lower_bound_member(self) -> Slices:
        """The law of the slices."""
        return Slices(self.loss, self.log_p, self.error)

    def lower_bound_mechanisms(self) -> tuple[ShuffledEpochs]:
        """The attack on all epochs."""
        return (ShuffledEpochs(self.epochs, self.loss, self.log_p, self.error),)

    def _dominating(self) -> SubsampledGaussian:
        return SubsampledGaussian(self.noise_multiplier, xp.ones_like(self.noise_multiplier))

    def loss_nodes(self, depth: Array | float):
        """Those of the Gaussian pair."""
        return self._dominating().loss_nodes(depth)

    def gaussian_precision(self):
        """1/σ²."""
        return inverse_square(self.noise_multiplier)

    def tail_precision(self):
        """1/σ², rounded up."""
        return precision_above(self.noise_multiplier)

    def cells(self, ell: Array, end: Array | float) -> Cells:
        """Cells of the Gaussian pair (unbatched)."""
        return self._dominating().cells(ell, end)

    def replace_one(self) -> ShuffledPair:
        """Itself: the relation is chosen when it is built."""
        return self


@pytree
@dataclass(frozen=True)
class ShuffledEpochs(Mechanism):
    """The attack on several epochs; not checked.

    Attributes:
        epochs: how many uses of the attack this stands for.
        loss, log_p, error: see :class:`Slices`.
    """

    epochs: Array
    loss: Array
    log_p: Array
    error: Array

    trailing: ClassVar[dict[str, int]] = {"loss": 1, "log_p": 1}

    def gathered(self, count: Array):
        """One epoch, as often as there are epochs."""
        return [(Slices(self.loss, self.log_p, self.error), count * self.epochs)]


@pytree
@dataclass(frozen=True)
class AllocatedEpochs(Mechanism):
    """Epochs of random allocation; not checked.

    Attributes:
        noise_multiplier, num_batches, epochs: σ, T and how many epochs this stands for.
    """

    noise_multiplier: Array
    num_batches: Array
    epochs: Array

    def gathered(self, count: Array):
        """One epoch, as often as there are epochs."""
        return (
            RandomAllocation(self.noise_multiplier, self.num_batches)
            .canonical()
            .gathered(count * self.epochs)
        )
