"""Poisson sampling with a cap on the batch: one step of DP-SGD as fixed-shape programs run it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import betainc, betaincc

from .. import gdp
from ..numerics import namespace as xp
from ..numerics.errors import CAPPED, CELL, CLOSED_FORM, UNIT
from ..numerics.normal import inverse_square, precision_above
from ..numerics.pytree import check_fields, pytree
from ..numerics.shapes import Array, Parameter
from ..numerics.validation import at_most, known, positive, probability, whole
from ..pairs.cells import Cells
from .base import Mechanism
from .bracketed_pair import OpenPair, TailPair
from .drawn_batch_size import Sampled
from .profile_table import follow, table_of
from .subsampled_gaussian import SubsampledGaussian, sampled_gaussian

_LEAST = 1e-307  # μ² as a double


@pytree
@dataclass(frozen=True)
class TruncatedPoisson(Mechanism):
    """Gaussian noise on a Poisson sample cut to at most B random records (arXiv 2508.15089).

    Adding or removing one of n records. Let X ~ Bin(n − 1, q) be how many of the others are drawn.
    With X < B nothing is cut: the step is N(0, σ²) against (1 − q)·N(0, σ²) + q·N(1, σ²). With X ≥
    B, probability p, the record takes another one's place if it is drawn and kept: N(0, σ²) against
    (1 − q')·N(0, σ²) + q'·N(2, σ²), q' = E[qB/(X + 1) | X ≥ B] = B·Pr[Bin(n, q) > B]/(n·p),
    whatever X is, as the batch without the record is a uniform one of B of the others.

    From above, the attacker also learns which of the two it is. From below all other records are
    zero: a Poisson-subsampled Gaussian of rate (1 − p)·q + p·q'. The sides differ where batches are
    often cut.

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
        >>> TruncatedPoisson(
        ...     noise_multiplier=1.0, sampling_prob=0.01, batch_size=150, dataset_size=10_000
        ... ).shape
        ()
    """

    noise_multiplier: Parameter
    sampling_prob: Parameter
    batch_size: Parameter
    dataset_size: Parameter

    tight: ClassVar[bool] = False
    why_not_tight: ClassVar[str] = (
        "the upper side, where it is told whether a batch was cut, is loose where many are; the"
        " lower side is achieved by an attack"
    )
    undifferentiable: ClassVar[str] = "its rates are made from known numbers"
    relation: ClassVar[str] = "leaving out and adding a record"
    sampling: ClassVar[str] = (
        "Poisson sampling of which at most a fixed number of records is kept, chosen at random"
    )
    examples: ClassVar[dict] = {
        "TruncatedPoisson(1, 0.02, 30 of 1000)": lambda: TruncatedPoisson(1.0, 0.02, 30, 1000)
    }

    def __post_init__(self) -> None:
        known(self, why="its rates are made from its parameters", **vars(self))
        check_fields(
            self,
            noise_multiplier=positive,
            sampling_prob=probability,
            batch_size=whole,
            dataset_size=whole,
        )
        at_most("batch_size", self.batch_size, "dataset_size", self.dataset_size)

    def zeroed(self) -> ZeroedInTruncated:
        """The same step when a record counts as zero, in place of being left out.

        Example:
            >>> from jaxgdp import measure
            >>> step = TruncatedPoisson(1.0, 0.1, 15, 100)
            >>> left_out, zeroed = (measure(m, "delta", epsilon=1.0) for m in (step, step.zeroed()))
            >>> bool(zeroed.delta.upper < left_out.delta.upper)
            True
        """
        fields = self.noise_multiplier, self.sampling_prob, self.batch_size, self.dataset_size
        return ZeroedInTruncated(*fields)

    def canonical(self) -> Mechanism:
        """The mixture of the two pairs, with its attack."""
        return self.capped()

    def capped(self) -> CappedPair:
        """The mixture of the two pairs, with rates rounded to their safe sides."""
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
class ZeroedInTruncated(TruncatedPoisson):
    """The step of ``TruncatedPoisson`` when a record counts as zero on one of both data sets.

    The record takes its place in the batch on both. So nothing is told of X ≥ B, and given that the
    batch is one of a fixed size in which the record is with probability q'. The profile is the mean
    of those of Poisson sampling and of :class:`FixedSize`.

    Arguments, errors and the lower side are those of :class:`TruncatedPoisson`.

    Method: docs/method/implementations.md#truncated
    """

    tight: ClassVar[bool] = False
    why_not_tight: ClassVar[str] = (
        "the upper side, where it is told whether a batch was cut, is loose where many are; the"
        " lower side is achieved by an attack"
    )
    relation: ClassVar[str] = "zeroing a record, and the reverse"

    def canonical(self) -> Mechanism:
        """Itself: the pair of the other relation does not dominate."""
        return self

    def gathered(self, count: Array) -> Sequence[tuple[Mechanism, Array]]:
        """The pair of the profile, and no attack.

        Method: docs/method/implementations.md#truncated
        """
        parts = self.capped()
        names = ("noise_multiplier", "sampling_prob", "cut", "rest", "replaced")
        columns = [np.broadcast_to(getattr(parts, name), self.shape) for name in names]
        above, below = np.empty(self.shape, object), np.empty(self.shape, object)
        for index in np.ndindex(self.shape):
            numbers = [float(column[index]) for column in columns]
            above[index] = table_of(follow(_profile(*numbers)))
        # (the record moves every batch by no more than its norm)
        pair = OpenPair.build(above, below, precision_above(columns[0]))
        return [(TailPair.of(pair, inverse_square(columns[0])), count)]

    def lower_bound_mechanisms(self) -> tuple[Mechanism, ...]:
        """The step when all other records are zero."""
        parts = self.capped()
        columns = np.broadcast_arrays(parts.noise_multiplier, parts.member_prob)
        sigma, rate = (np.broadcast_to(column, self.shape) for column in columns)
        return (sampled_gaussian(sigma, rate),)

    def noise_alone(self) -> list[tuple[Any, Any]]:
        """The same, without anything that is told beside it."""
        (member,) = self.lower_bound_mechanisms()
        return [(member, 1)]


@pytree
@dataclass(frozen=True)
class CappedPair(Mechanism):
    """Two Poisson-subsampled Gaussians, of noise σ and σ/2, one at random; not checked.

    Attributes:
        noise_multiplier: σ.
        sampling_prob: rate of the first.
        cut: probability of the second.
        rest: that of the first, 1 − cut.
        replaced: rate of the second.
        member_prob: rate of the Poisson-subsampled Gaussian of the lower side.
    """

    noise_multiplier: Array
    sampling_prob: Array
    cut: Array
    rest: Array
    replaced: Array
    member_prob: Array

    atomic: ClassVar[bool] = False
    tight: ClassVar[bool] = False

    def _parts(self):
        none = -xp.inf
        log_cut = xp.where(self.cut > 0.0, xp.log(xp.where(self.cut > 0.0, self.cut, 1.0)), none)
        log_rest = xp.where(
            self.rest > 0.0, xp.log(xp.where(self.rest > 0.0, self.rest, 1.0)), none
        )
        first = sampled_gaussian(self.noise_multiplier, self.sampling_prob)
        second = sampled_gaussian(0.5 * self.noise_multiplier, self.replaced)
        return (log_rest, first), (log_cut, second)

    def lower_bound_member(self) -> SubsampledGaussian:
        """The step when all other records are zero."""
        return sampled_gaussian(self.noise_multiplier, self.member_prob)

    def loss_nodes(self, depth: Array | float):
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
        return precision_above(self.noise_multiplier, size)

    def limit_precision(self):
        """Not known where batches are cut: some data may reveal less than that pair."""
        return xp.where(self.cut > 0.0, xp.nan, self.tail_precision())

    def cells(self, ell: Array, end: Array | float) -> Cells:
        """Masses of both parts, added up by cell; shares are means by P-mass."""
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
        both = lambda first, second: xp.exp(log_a) * first + xp.exp(log_b) * second
        lost = both(a.lost, b.lost)
        lost_error = both(a.lost_error, b.lost_error) + CELL * UNIT * lost
        uncertain = xp.where(self.cut > 0.0, CAPPED, 0.0)
        roundoff = 4.0 + xp.maximum(a.roundoff, b.roundoff)
        return Cells(
            log_x,
            log_y,
            xp.clip(up, 0.0, 1.0),
            lost,
            lost_error,
            roundoff,
            xp.maximum(a.jitter, b.jitter),
            uncertain=uncertain,
        )


def _profile(
    sigma: float, rate: float, cut: float, rest: float, replaced: float
) -> Callable[[Array], Array]:
    """δ(ε), ε ≥ 0, of both orders, from above."""
    sampled, drawn = Sampled(sigma), np.asarray(rate)
    known = 1.0 + 4.0 * CLOSED_FORM

    def fixed(epsilon: Array) -> Array:
        # e^ε of the Gaussian's own ε is 1 + (e^ε − 1)/q′; 1 − β and β of advanced joint convexity
        with np.errstate(over="ignore"):
            grown = np.expm1(np.minimum(epsilon, 600.0))
        inner = np.minimum(np.log1p(grown / replaced), 1e4)
        other = grown * (1.0 - replaced) / (replaced + grown)
        far, close = (
            np.asarray(gdp.delta(epsilon=inner, mu=np.full(np.shape(inner), mu)), float)
            for mu in (2.0 / sigma, 1.0 / sigma)
        )
        found = replaced * (other * far + (1.0 - other) * close + 16.0 * UNIT * far)
        return np.minimum(found * known + 1e-300, replaced)

    def both(epsilon: Array) -> Array:
        plain = [order(drawn, epsilon) for order in (sampled.removed, sampled.added)]
        batches = cut * fixed(epsilon) if cut > 0.0 else 0.0
        return np.stack([np.minimum((rest * p + batches) * (1.0 + CAPPED), 1.0) for p in plain])

    return both
