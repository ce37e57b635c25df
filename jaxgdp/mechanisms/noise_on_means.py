"""Noise on means of gradients: steps of which attacks are known, and no guarantee."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..numerics.errors import SELECTION, UNIT
from ..numerics.normal import precision_above
from ..numerics.pytree import check_fields, default, pytree
from ..numerics.recent import Recent
from ..numerics.shapes import Array, Parameter
from ..numerics.validation import known, positive, probability, truth, whole
from ..pairs.table import NOTHING, Table, from_masses
from .base import Mechanism, poisson_words
from .bracketed_pair import BracketedPair, OpenPair
from .certified_curve import CertifiedCurve
from .composition import compose
from .selection_tables import achieved_cells
from .subsampled_gaussian import SubsampledGaussian

_GIVEN_UP = (
    1e-3,
    1e-4,
    1e-6,
    1e-8,
    1e-10,
    1e-13,
)  # probability of batches that an attack gives up, a step
# (what is left beside the infinities is faint)
_EVERYTHING = Table(np.zeros(1), np.full(1, 1e-300), np.full(1, 1e-300), 1.0, 1.0, 0.0)
_ATTACKS = Recent(most=2**24)  # made from a certified curve


@pytree
@dataclass(frozen=True)
class NoiseOnMean(Mechanism):
    """A step that averages over its Poisson batch before it adds noise or before it clips.

    A program may average the clipped gradients of the k records drawn and then add noise of σ/b, b
    = p·n; or it may clip the mean of a micro-batch in place of gradients. Both are accounted for as
    Poisson sampling with noise σ. If all other gradients oppose that of one record,

    - the mean moves by 2/k, which at noise σ/b is worth twice of what is accounted for at k = b;
    - the clipped mean of a batch turns around, from −1 to 1, if that of the record is large.

    No guarantee is known that is better than none. The lower side is such an attack; it gives up
    batches of more than some number of records and allows for batches without another record.

    Args:
        noise_multiplier: σ > 0, any shape.
        sampling_prob: p in (0, 1].
        dataset_size: n, known, with the record in question, a whole number ≥ 1.
        micro_batches: whether means are clipped, True or False. All broadcast.

    Raises:
        ValueError: an argument is out of range, or shapes do not broadcast (before tracing).

    Example:
        >>> import jaxgdp
        >>> step = NoiseOnMean(noise_multiplier=1.0, sampling_prob=0.1, dataset_size=1000)
        >>> found = jaxgdp.advantage(step)  # claimed: 0.0383
        >>> bool(0.05 < found.lower), float(found.upper)
        (True, 1.0)

    Method: docs/method/implementations.md#mean
    """

    noise_multiplier: Parameter
    sampling_prob: Parameter
    dataset_size: Parameter
    micro_batches: Parameter = default(False)

    tight: ClassVar[bool] = False
    why_not_tight: ClassVar[str] = (
        "no guarantee is known: the upper side allows for everything, the lower side is an attack"
    )
    undifferentiable: ClassVar[str] = "its attack is made from known numbers"
    relation: ClassVar[str] = "zeroing a record, of a known number of records"

    def __post_init__(self) -> None:
        known(self, why="its attack is made from its parameters", **vars(self))
        check_fields(
            self,
            noise_multiplier=positive,
            sampling_prob=probability,
            dataset_size=whole,
            micro_batches=truth,
        )

    def describe_sampling(self) -> str:
        """Poisson sampling."""
        rates = np.unique(np.asarray(self.sampling_prob))
        return poisson_words(rates[0]) if len(rates) == 1 else "Poisson sampling"

    def gathered(self, count: Array) -> Sequence[tuple[Mechanism, Array]]:
        """A pair that reveals everything."""
        above, below = np.empty(self.shape, object), np.empty(self.shape, object)
        for index in np.ndindex(self.shape):
            above[index], below[index] = _EVERYTHING, NOTHING
        return [(OpenPair.build(above, below, np.full(self.shape, np.inf)), count)]

    def lower_bound_mechanisms(self) -> tuple[Mechanism, ...]:
        """Attacks that give up more or fewer batches."""
        fields = self.noise_multiplier, self.sampling_prob, self.dataset_size, self.micro_batches
        columns = [np.broadcast_to(np.asarray(field), self.shape) for field in fields]
        tables = [np.empty(self.shape, object) for _ in _GIVEN_UP]
        precision = [np.empty(self.shape) for _ in _GIVEN_UP]
        for index in np.ndindex(self.shape):
            sigma, rate, number, clipped = (float(column[index]) for column in columns)
            for i, given_up in enumerate(_GIVEN_UP):
                turned, fallen = 0.5 * sigma, 0.0
                if not clipped:
                    most = _most_drawn(rate, number, given_up)
                    turned, fallen = turned * most / (rate * number), given_up * (most < number)
                attack = turned, rate, _no_other(rate, number), fallen
                tables[i][index] = _ATTACKS.get(attack, lambda attack=attack: _attack(*attack))
                precision[i][index] = precision_above(turned)
        if np.all(columns[3]):
            tables = tables[:1]
        # (an attack that shows nothing anywhere needs no lattice)
        return tuple(
            BracketedPair.build(table, table, square)
            for table, square in zip(tables, precision, strict=False)
            if any(each is not NOTHING for each in table.flat)
        )


def _no_other(rate: float, number: float) -> float:
    """The probability that none of the other records is drawn, rounded up."""
    if rate == 1.0:
        return float(number == 1.0)
    return float(min(np.exp((number - 1.0) * np.log1p(-rate)) * (1.0 + 1e-9), 1.0))


def _most_drawn(rate: float, number: float, given_up: float) -> float:
    """A size that batches with the record exceed with a probability of at most ``given_up``."""
    from scipy.stats import binom  # (slow to load)

    # (half of it, as the quantile is rounded)
    return float(binom.isf(0.5 * given_up, number - 1.0, rate)) + 1.0


class _Reached:
    """What is left of the curve of a pair where events are not quite those of the pair.

    Args:
        curve: both orders of a pair (P, Q).
        risen: by how much P of an event that speaks for Q may be larger.
        fallen: by how much Q of it may be smaller.
    """

    def __init__(self, curve: CertifiedCurve, risen: float, fallen: float) -> None:
        self.curve, self.moves = curve, ((risen, fallen), (fallen, risen))

    def tpr(self, order: int, fpr: Array) -> Array:
        """A TPR that is reached at an FPR; 0 where there is none."""
        more, less = self.moves[order]
        left = fpr * (1.0 - 2.0 * UNIT) - more
        reached = self.curve.tpr(order, np.where(left > 0.0, left, 0.5)) * (1.0 - 2.0 * UNIT)
        return np.where(left > 0.0, np.maximum(reached - less, 0.0), 0.0)


def _attack(sigma: float, rate: float, risen: float, fallen: float) -> Table:
    """A pair that is reached: of Poisson sampling, and of other batches now and then.

    The best tests of Poisson sampling are the larger the output, and other batches move it up.

    Method: docs/method/implementations.md#mean
    """
    if risen >= 1.0:
        return NOTHING
    curve = CertifiedCurve(compose([SubsampledGaussian(sigma, rate)]))
    cells = achieved_cells(_Reached(curve, risen, fallen))
    low, high = np.asarray(cells.low), np.asarray(cells.high)
    return from_masses(low, high, SELECTION) if len(low) > 1 else NOTHING
