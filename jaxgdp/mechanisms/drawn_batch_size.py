"""Poisson batches whose size is told: sums that are divided by the number of records drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .. import gdp
from ..numerics.errors import BINOMIAL_TAIL, CLOSED_FORM, UNIT
from ..numerics.normal import inverse_square, precision_above
from ..numerics.pytree import check_fields, default, pytree
from ..numerics.shapes import Array, Parameter
from ..numerics.validation import known, positive, probability, truth, whole
from .base import Mechanism, poisson_words
from .bracketed_pair import OpenPair, TailPair
from .profile_table import follow, table_of
from .subsampled_gaussian import SubsampledGaussian

_REACH, _GROUPS = 12.0, 400  # of sizes: standard deviations, and groups that are treated as one


@pytree
@dataclass(frozen=True)
class DrawnBatchSize(Mechanism):
    """Gaussian noise on the sum over a Poisson batch, published with the number of records in it.

    An implementation that divides the noisy sum by the number of records drawn, in place of the
    expected one, publishes no more than this; in many coordinates it publishes just this, as the
    scale of the noise tells the number. Given a batch of k, a record is in it with probability k/n.

    - Where the number of records n is known (``size_known``; a record counts as zero in one data
      set), the size has the same law on both: δ(ε) is the mean of that of Poisson sampling at the
      rates k/n.
    - Where a record is added or removed the size itself tells of it: its law is binomial of n − 1
      or of n records.

    The lower side is an attack that does not look at the size.

    Args:
        noise_multiplier: σ, standard deviation of the noise over the clipping norm; > 0, any shape.
        sampling_prob: p in (0, 1].
        dataset_size: n, records with the one in question, a whole number ≥ 1.
        size_known: whether n is known, True or False. All broadcast.

    Raises:
        ValueError: an argument is out of range, or shapes do not broadcast (before tracing).

    Example:
        >>> import jaxgdp
        >>> step = DrawnBatchSize(noise_multiplier=1.0, sampling_prob=0.01, dataset_size=10_000)
        >>> told = jaxgdp.epsilon(jaxgdp.compose([(step, 100)]), delta=1e-5)
        >>> kept = jaxgdp.epsilon(jaxgdp.dpsgd(1.0, 0.01, 100), delta=1e-5)
        >>> bool(kept.upper < told.upper < 1.1 * kept.upper)
        True
    """

    noise_multiplier: Parameter
    sampling_prob: Parameter
    dataset_size: Parameter
    size_known: Parameter = default(True)

    tight: ClassVar[bool] = False
    why_not_tight: ClassVar[str] = (
        "the lower side is an attack that does not look at the number of records drawn"
    )
    undifferentiable: ClassVar[str] = "its profile is made from known numbers"
    relation: ClassVar[str] = (
        "zeroing a record where the number of records is known, else adding or removing one"
    )
    beside_noise: ClassVar[str] = "the number of records that every step draws"
    sampling: ClassVar[str] = "Poisson sampling, and every step tells how many records it has drawn"
    examples: ClassVar[dict[str, Callable[[], Mechanism]]] = {
        "DrawnBatchSize(1, 0.1 of 50)": lambda: DrawnBatchSize(1.0, 0.1, 50)
    }

    def __post_init__(self) -> None:
        known(self, why="its profile is made from its parameters", **vars(self))
        check_fields(
            self,
            noise_multiplier=positive,
            sampling_prob=probability,
            dataset_size=whole,
            size_known=truth,
        )

    def noise_alone(self) -> list[tuple[Any, Any]]:
        """The noisy sum alone."""
        return [(SubsampledGaussian(self.noise_multiplier, self.sampling_prob), 1)]

    def describe_sampling(self) -> str:
        """Poisson sampling, and what is told of it."""
        rates = np.ravel(np.asarray(self.sampling_prob))
        told = poisson_words(rates[0]) if len(rates) == 1 else self.sampling
        return f"{told}; every step tells how many records it has drawn"

    def gathered(self, count: Array) -> Sequence[tuple[Mechanism, Array]]:
        """The pair of the profile, and no attack.

        Method: docs/method/implementations.md#size
        """
        shape = self.shape
        above, below = np.empty(shape, object), np.empty(shape, object)
        fields = (self.noise_multiplier, self.sampling_prob, self.dataset_size, self.size_known)
        columns = [np.broadcast_to(np.asarray(field), shape) for field in fields]
        for index in np.ndindex(shape):
            sigma, rate, number, told = (column[index] for column in columns)
            profile = _profile(float(sigma), float(rate), int(number), bool(told))
            above[index] = table_of(follow(profile))
        # (where n is known, no size shows more than a step without sampling)
        precision = np.where(columns[3], precision_above(columns[0]), np.inf)
        pair = OpenPair.build(above, below, precision)
        # (where the number of records is known, no more than without sampling; else p^n is at ∞)
        limit = np.where(columns[3], inverse_square(columns[0]), np.inf)
        return [(TailPair.of(pair, limit), count)]

    def lower_bound_mechanisms(self) -> tuple[Mechanism, ...]:
        """Poisson sampling without the size."""
        sigma, rate = np.broadcast_arrays(self.noise_multiplier, self.sampling_prob)
        wide = np.broadcast_shapes(self.shape)
        return (SubsampledGaussian(np.broadcast_to(sigma, wide), np.broadcast_to(rate, wide)),)


class Sampled:
    """δ(x), x any real number, of Poisson sampling at rates with Gaussian noise, from above; both
    orders.
    """

    def __init__(self, sigma: float) -> None:
        self.mu = 1.0 / sigma

    def _gaussian(self, epsilon: Array) -> Array:
        found = np.asarray(
            gdp.delta(epsilon=epsilon, mu=np.full(np.shape(epsilon), self.mu)), float
        )
        return np.minimum(found * (1.0 + 4.0 * CLOSED_FORM) + 1e-300, 1.0)

    def _removed(self, rate: Array, epsilon: Array) -> Array:
        with np.errstate(over="ignore"):
            inner = np.log1p(np.expm1(np.minimum(epsilon, 600.0)) / rate)
        return rate * self._gaussian(np.minimum(inner, 1e4))

    def _added(self, rate: Array, epsilon: Array) -> Array:
        epsilon = np.minimum(epsilon, 600.0)
        # (rounded down, which shows more; no difference from 1 where every record is drawn)
        with np.errstate(over="ignore"):
            lost = np.expm1(epsilon) * ((1.0 - rate) / rate) * (1.0 - 16.0 * UNIT)
        some = lost < 1.0
        inner = epsilon - np.log1p(-np.where(some, lost, 0.0))
        return np.where(some, rate * (1.0 - lost) * self._gaussian(inner), 0.0)

    def removed(self, rate: Array, x: Array) -> Array:
        """Of the mixture against the noise."""
        return _by_sign(self._removed, self._added, rate, x)

    def added(self, rate: Array, x: Array) -> Array:
        """Of the noise against the mixture."""
        return _by_sign(self._added, self._removed, rate, x)


def _by_sign(
    own: Callable[[Array, Array], Array],
    swapped: Callable[[Array, Array], Array],
    rate: Array,
    x: Array,
) -> Array:
    """δ(x) of an order from its own profile at x ≥ 0, and below 0 from that of the other order:
    δ(−x) = 1 − e^−x·(1 − δ′(x)).
    """
    rate, x = np.broadcast_arrays(rate, x)
    ahead = x >= 0.0
    if np.all(ahead):
        return own(rate, x)
    behind, found = ~ahead, np.empty(x.shape)
    if np.any(ahead):
        found[ahead] = own(rate[ahead], x[ahead])
    # (a sum of positive terms)
    found[behind] = np.exp(x[behind]) * swapped(rate[behind], -x[behind]) - np.expm1(x[behind])
    return found


class _Sizes:
    """Groups of sizes k of a batch: the first and the last of each, and their probability."""

    def __init__(self, number: int, rate: float, more: int) -> None:
        from scipy.stats import binom  # (slow to load)

        mean, spread = number * rate, np.sqrt(number * rate * (1.0 - rate)) + 1.0
        low = max(0, int(mean - _REACH * spread))
        high = min(number, int(mean + _REACH * spread) + 1)
        edges = np.unique(np.linspace(low, high + 1, _GROUPS + 1).astype(np.int64))
        self.first, self.last = edges[:-1].astype(float), edges[1:].astype(float) - 1.0
        inside = np.diff(binom.cdf(edges - 1, number, rate))
        upper = -np.diff(binom.sf(edges - 1, number, rate))
        chance = np.where(self.first > mean, upper, inside)
        self.chance = np.maximum(chance, 0.0) * (1.0 + BINOMIAL_TAIL)
        below = float(binom.cdf(low - 1, number, rate)) if low > 0 else 0.0
        # (the record that makes one more may be among those drawn)
        above = float(binom.sf(high, number + more, rate)) if high < number else 0.0
        self.outside = (below + above) * (1.0 + BINOMIAL_TAIL)


def _share(k: Array, number: int) -> Array:
    """k/n, rounded up: larger rates show more."""
    return np.clip(k / number * (1.0 + 4.0 * UNIT), 1e-300, 1.0)[:, None]


def _profile(sigma: float, rate: float, number: int, told: bool) -> Callable[[Array], Array]:
    """δ(ε), ε ≥ 0, of both orders, from above: groups of sizes count as their worst one."""
    if rate == 1.0 and not told:  # (the size is the number of records)
        return lambda epsilon: np.ones((2, *np.shape(epsilon)))
    sampled = Sampled(sigma)
    sizes = _Sizes(number, rate, 0) if told else _Sizes(number - 1, rate, 1)

    def known_size(epsilon: Array) -> Array:
        share = _share(sizes.last, number)
        both = [order(share, epsilon) for order in (sampled.removed, sampled.added)]
        return np.stack([sizes.chance @ each for each in both])

    def told_size(epsilon: Array) -> Array:
        # Q/P = (1 − p)·(1 + k/(n − k)·e^ℓ) of the Gaussian's own loss ℓ, for k of n − 1 others
        found = []
        for k, order, side in (
            (sizes.last, sampled.removed, -1.0),
            (sizes.first, sampled.added, 1.0),
        ):
            scale = np.log1p(-rate) - np.log1p(-k / number)
            share = _share(k, number)
            inner = order(share, epsilon + side * scale[:, None])
            weight = sizes.chance * np.exp(scale) if side < 0.0 else sizes.chance
            found.append(weight @ inner)
        found[0] = found[0] + rate ** float(number)  # (every record is drawn)
        return np.stack(found)

    def both(epsilon: Array) -> Array:
        inside = known_size(epsilon) if told else told_size(epsilon)
        return np.minimum(inside * (1.0 + BINOMIAL_TAIL) + sizes.outside, 1.0)

    return both
