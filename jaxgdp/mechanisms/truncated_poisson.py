"""Poisson sampling with a cap on the batch: one step of DP-SGD as fixed-shape programs run it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import betainc, betaincc

from ..numerics import namespace as xp
from ..numerics.errors import CAPPED, PRECISION
from ..numerics.pytree import pytree
from ..numerics.validation import broadcast, known, positive, probability, whole
from ..pairs.cells import Cells
from .base import Mechanism
from .subsampled_gaussian import SubsampledGaussian

_LEAST = 1e-307  # μ² as a double


@pytree
@dataclass(frozen=True)
class TruncatedPoisson(Mechanism):
    """Gaussian noise on a Poisson sample of which at most B records are kept, chosen at random
    (arXiv 2508.15089).

    Adding or removing one of n records. Let X ~ Bin(n − 1, q) be how many of the others are drawn.
    With X < B nothing is cut: the step is N(0, σ²) against (1 − q)·N(0, σ²) + q·N(1, σ²). With X ≥
    B, probability p, the record takes another one's place if it is drawn and kept: N(0, σ²) against
    (1 − q')·N(0, σ²) + q'·N(2, σ²), q' = E[qB/(X + 1) | X ≥ B] = B·Pr[Bin(n, q) > B]/(n·p),
    whatever X is, as the batch without the record is a uniform one of B of the others.

    From above, whoever looks is told which of the two it is. From below all other records are zero:
    a Poisson-subsampled Gaussian of rate (1 − p)·q + p·q'. The sides differ where batches are often
    cut.

    Args:
        noise_multiplier: σ, standard deviation of the noise over the clipping norm; > 0, any shape.
        sampling_prob: q in (0, 1], the probability that a record is drawn; any shape.
        batch_size: B, the most records of a batch, a whole number from 1 to n; any shape.
        dataset_size: n, records with the one that is added or removed, a whole number ≥ 1; any
            shape.

    Raises:
        ValueError: an argument is out of range, a batch larger than the data, or shapes do not
            broadcast (before tracing).

    Example:
        >>> TruncatedPoisson(noise_multiplier=1.0, sampling_prob=0.01, batch_size=150, dataset_size=10_000).shape
        ()
    """

    noise_multiplier: Any
    sampling_prob: Any
    batch_size: Any
    dataset_size: Any

    tight: ClassVar[bool] = False
    why_not_tight: ClassVar[str] = (
        "the upper side, where it is told whether a batch was cut, is loose where many are; the"
        " lower side is achieved by an attack"
    )
    undifferentiable: ClassVar[str] = "its rates are made from known numbers"
    relation: ClassVar[str] = "leaving out and adding a record"

    def __post_init__(self):
        fields = {
            name: getattr(self, name)
            for name in ("noise_multiplier", "sampling_prob", "batch_size", "dataset_size")
        }
        known(self, why="its rates are made from its parameters", **fields)
        sigma = positive("noise_multiplier", self.noise_multiplier)
        rate = probability("sampling_prob", self.sampling_prob)
        batch, size = sizes(self.batch_size, self.dataset_size)
        broadcast(noise_multiplier=sigma, sampling_prob=rate, batch_size=batch, dataset_size=size)
        for name, value in zip(fields, (sigma, rate, batch, size), strict=True):
            object.__setattr__(self, name, value)

    def canonical(self) -> CappedPair:
        """The mixture of the two pairs, with its attack."""
        q, batch, size = np.broadcast_arrays(self.sampling_prob, self.batch_size, self.dataset_size)
        cut = np.where(
            batch < size, betainc(batch, np.maximum(size - batch, 0.5), q), 0.0
        )  # Pr[Bin(n − 1, q) ≥ B]
        rest = np.where(
            batch < size, betaincc(batch, np.maximum(size - batch, 0.5), q), 1.0
        )  # (what 1 − cut has lost the digits of)
        kept = np.where(
            batch < size, batch * betainc(batch + 1.0, np.maximum(size - batch, 0.5), q) / size, 0.0
        )  # p·q'
        some = cut > 0.0
        # (rates are rounded, each to its safe side: a smaller one shows less)
        rate = np.where(
            some, np.clip(kept / np.where(some, cut, 1.0) * (1.0 + CAPPED), 1e-300, q), q
        )
        member_prob = np.clip(
            rest * q + kept - np.where(some, CAPPED * (cut + kept), 0.0), 1e-300, 1.0
        )
        return CappedPair(self.noise_multiplier, q, cut, rest, rate, member_prob)


@pytree
@dataclass(frozen=True)
class CappedPair(Mechanism):
    """Two Poisson-subsampled Gaussians, of noise σ and σ/2, one of which is chosen at random and
    told; not checked.

    Attributes:
        noise_multiplier: σ. sampling_prob: rate of the first. cut: probability of the second. rest:
            that of the first, 1 − cut.
        replaced: rate of the second.
        member_prob: rate of the Poisson-subsampled Gaussian of the lower side.
    """

    noise_multiplier: Any
    sampling_prob: Any
    cut: Any
    rest: Any
    replaced: Any
    member_prob: Any

    atomic: ClassVar[bool] = False
    tight: ClassVar[bool] = False

    def _parts(self):
        none = -xp.inf
        log_cut = xp.where(self.cut > 0.0, xp.log(xp.where(self.cut > 0.0, self.cut, 1.0)), none)
        log_rest = xp.where(
            self.rest > 0.0, xp.log(xp.where(self.rest > 0.0, self.rest, 1.0)), none
        )
        first = SubsampledGaussian.__new__(SubsampledGaussian)
        second = SubsampledGaussian.__new__(SubsampledGaussian)
        for part, sigma, rate in (
            (first, self.noise_multiplier, self.sampling_prob),
            (second, 0.5 * self.noise_multiplier, self.replaced),
        ):
            object.__setattr__(part, "noise_multiplier", sigma)
            object.__setattr__(part, "sampling_prob", rate)
        return (log_rest, first), (log_cut, second)

    def lower_bound_member(self) -> SubsampledGaussian:
        """The step when all other records are zero."""
        found = SubsampledGaussian.__new__(SubsampledGaussian)
        object.__setattr__(found, "noise_multiplier", self.noise_multiplier)
        object.__setattr__(found, "sampling_prob", self.member_prob)
        return found

    def loss_nodes(self, depth):
        """Nodes of both parts, in increasing order."""
        loss, weight = [], []
        for log_part, part in self._parts():
            nodes, log_weight = part.loss_nodes(depth)
            loss.append(nodes)
            weight.append(log_weight + log_part)
        loss, weight = xp.concatenate(loss), xp.concatenate(weight)
        order = xp.argsort(loss)
        return loss[order], weight[order]

    def tail_precision(self):
        """4/σ², that of replacing a record, where batches are cut at all, else 1/σ²; rounded up."""
        size = xp.where(self.cut > 0.0, 4.0, 1.0)
        return xp.maximum(size * self.noise_multiplier**-2.0 * (1.0 + PRECISION), _LEAST)

    def limit_precision(self):
        """Not known where batches are cut: some data may show less than the pair that dominates."""
        return xp.where(self.cut > 0.0, xp.nan, self.tail_precision())

    def cells(self, ell, end) -> Cells:
        """Masses of both parts, added up cell by cell (unbatched); the shares of connect-the-dots
        are means by P-mass.
        """
        (log_a, a), (log_b, b) = (
            (log_part, part.cells(ell, end)) for log_part, part in self._parts()
        )
        log_x = xp.logaddexp(log_a + a.log_x, log_b + b.log_x)
        log_y = xp.logaddexp(log_a + a.log_y, log_b + b.log_y)
        inner = log_x[1:-1]
        some = inner > -xp.inf
        share = lambda log_part, cells: xp.exp(
            xp.where(some, log_part + cells.log_x[1:-1] - xp.where(some, inner, 0.0), -xp.inf)
        )
        up = xp.where(some, share(log_a, a) * a.up + share(log_b, b) * b.up, 1.0)
        lost = xp.exp(log_a) * a.lost + xp.exp(log_b) * b.lost
        uncertain = xp.where(self.cut > 0.0, CAPPED, 0.0)
        roundoff = 4.0 + xp.maximum(a.roundoff, b.roundoff)
        return Cells(
            log_x,
            log_y,
            xp.clip(up, 0.0, 1.0),
            lost,
            roundoff,
            xp.maximum(a.jitter, b.jitter),
            uncertain=uncertain,
        )


def sizes(batch_size, dataset_size):
    """A batch and the data it is from, as arrays.

    Raises:
        ValueError: not whole numbers, or a batch larger than the data.
    """
    batch, size = whole("batch_size", batch_size), whole("dataset_size", dataset_size)
    broadcast(batch_size=batch, dataset_size=size)
    if np.any(batch > size):
        b, n = np.broadcast_arrays(batch, size)
        b, n = b[b > n].flat[0], n[b > n].flat[0]
        raise ValueError(
            f"batch_size must be a whole number in [1, dataset_size] = [1, {n:g}], got {b:g}"
        )
    return batch, size
