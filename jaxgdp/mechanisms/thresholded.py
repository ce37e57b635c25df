"""Unknown domains: noisy counts of which only those above a threshold are published."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import log_ndtr, ndtr

from .. import gdp
from ..numerics.errors import CLOSED_FORM, THRESHOLD
from ..numerics.pytree import check_fields, default, pytree
from ..numerics.shapes import Array, ArrayLike, Parameter
from ..numerics.validation import finite, known, positive, truth, whole_up_to
from ..pairs.table import Table, from_masses
from .base import Mechanism
from .bracketed_pair import OpenPair
from .from_pmfs import FromPMFs
from .gaussian import Gaussian
from .laplace import Laplace
from .profile_table import ALL, follow, table_of

MOST_CELLS = 64
_DEEPEST, _ROUNDED = 12.0, 3000  # of counts in an attack: reach in σ, and outputs told apart
_CLEAREST = 30.0  # μ of counts in an attack, at most
_FARTHEST = 1e150  # of a threshold, over the scale of noise: log probabilities are numbers
# log Pr[no new cell is published] below which a profile is not followed: a product bounds it then
_HIDDEN = -600.0
_FAR, _BIN = 37.0, 0.125  # of counts beside new cells that are hardly ever missing, in σ


@pytree
@dataclass(frozen=True)
class FixedNewCells(Mechanism):
    """Counts in ``known_cells`` cells, and a coin that shows whether a new cell is published; not
    checked.

    Attributes:
        noise: of one count, a mechanism.
        known_cells: cells that are published on both data sets.
        log_hidden: log of the probability that no new cell is published.

    Method: docs/method/domains.md#threshold
    """

    noise: Mechanism
    known_cells: Array
    log_hidden: Array

    def parameter_shapes(self) -> dict[str, tuple[tuple[int, ...], tuple[int, ...]]]:
        """By leaf."""
        inner = {f"noise.{name}": both for name, both in self.noise.parameter_shapes().items()}
        own = (("known_cells", self.known_cells), ("log_hidden", self.log_hidden))
        return inner | {name: (np.shape(value), ()) for name, value in own}

    def gathered(self, count: Array) -> Sequence[tuple[Mechanism, Array]]:
        """The counts and the coin: they are independent."""
        hidden = np.asarray(self.log_hidden)
        with np.errstate(divide="ignore"):
            shown = np.log(-np.expm1(hidden))
        coin = FromPMFs.from_logs(
            np.stack(np.broadcast_arrays(np.zeros_like(hidden), -np.inf), axis=-1),
            np.stack([hidden, shown], axis=-1),
        )
        found = [(coin.canonical(), count)]
        if np.any(self.known_cells > 0.0):
            found += list(self.noise.canonical().gathered(count * self.known_cells))
        return found


_RELATION = "adding or removing a record that counts once in each of its cells"


class _Thresholded(Mechanism):
    """What Gaussian and Laplace noise have in common."""

    threshold: Parameter
    max_cells: Parameter

    tight: ClassVar[bool] = False
    why_not_tight: ClassVar[str] = (
        "how many cells of a record are new may differ from use to use: the upper side allows for"
        " the worst of each, the lower side has one number of them for all uses"
    )
    undifferentiable: ClassVar[str] = "its profile is made from known numbers"
    relation: ClassVar[str] = _RELATION
    beside_noise: ClassVar[str] = "keys that only one record has"
    sampling: ClassVar[str] = "none: every use includes every record"

    def __post_init__(self) -> None:
        known(self, why="its profile is made from its parameters", **vars(self))
        noise = next(iter(self.given_fields()))
        checks = {noise: positive, "threshold": finite, "max_cells": _cells, "strict": truth}
        check_fields(self, **checks)
        with np.errstate(over="ignore"):
            far = np.abs(np.asarray(self.threshold) - 1.0) / getattr(self, noise)
        if np.any(far > _FARTHEST):
            raise ValueError(
                f"threshold must lie within {_FARTHEST:g} times {noise} of 1, got a distance of"
                f" {np.max(far):g} times"
            )

    def _noise(self) -> Mechanism:
        """The noise of one count."""
        raise NotImplementedError

    def noise_alone(self) -> list[tuple[Any, Any]]:
        """The noisy counts, if all cells are known."""
        return [(self._noise(), np.asarray(self.max_cells))]

    def _log_tail(self, distance: Array) -> Array:
        """log of the probability that noise is at least so much."""
        raise NotImplementedError

    def shown(self) -> Array:
        """The probability that a cell is published which holds the record in question alone.

        The noise has to be at least the threshold less 1; where it has to be more than that
        (``strict``) the probability is the same, as the noise is continuous.
        """
        return np.exp(self._log_tail(np.asarray(self.threshold) - 1.0))

    def _log_hidden(self, *, above: bool = False) -> Array:
        """log of the probability that a new cell is not published, from below or from above.

        Where a cell is likely published this is the other tail: next to 1 a difference would be
        rounded away, and with it how surely a cell that is missing tells of the record.
        """
        room, least = (1.0 - THRESHOLD, 0.0) if above else (1.0 + THRESHOLD, np.finfo(float).tiny)
        distance = np.asarray(self.threshold) - 1.0
        shown = np.exp(self._log_tail(distance)) * room + least
        likely = self._log_tail(-distance) * room
        hidden = np.where(shown < 0.5, np.log1p(-np.minimum(shown, 0.5)), likely)
        return np.broadcast_to(hidden, self.shape)

    def _new_cells(self) -> Array:
        """log of the probability that none of D new cells is published, from below; shape (…)."""
        return np.asarray(self.max_cells) * self._log_hidden()

    def _far(self) -> Array:
        """Whether new cells are missing so seldom that this says more than all counts."""
        return self._new_cells() < _HIDDEN

    def _at(self, value: ArrayLike, index: tuple[int, ...]) -> float:
        return float(np.broadcast_to(np.asarray(value), self.shape)[index])

    def lower_bound_mechanisms(self) -> tuple[Mechanism, ...]:
        """A record with a fixed number of new cells, for a few numbers."""
        cells = np.broadcast_to(np.asarray(self.max_cells), self.shape)
        hidden, far = self._log_hidden(above=True), self._far()
        members = []
        for new in sorted({0.0, 1.0, 2.0, float(np.max(cells) // 2), float(np.max(cells))}):
            own = np.where(far, cells, np.minimum(new, cells))
            members.append(FixedNewCells(self._noise(), cells - own, own * hidden))
        return tuple(members)


def _coin(log_hidden: float) -> Table:
    """What tells whether new cells are published, with this log of the chance that none is."""
    if not log_hidden > -np.inf:
        return ALL
    log_a = np.reshape(log_hidden, 1)
    return Table(log_a, np.ones(1), np.exp(log_a), 0.0, -np.expm1(log_hidden), THRESHOLD)


def _missing(mu: float, log_hidden: float) -> Table:
    """New cells that are hardly ever missing, and Gaussian counts in as many known cells.

    P-mass of a bin of the loss counts at its lower end, with as much less of Q; what Q has more is
    at infinity.

    Method: docs/method/domains.md#threshold
    """
    z = np.arange(-_FAR, _FAR, _BIN)
    with np.errstate(over="ignore", invalid="ignore"):
        room = THRESHOLD * (0.5 * mu * mu + mu * np.abs(z) - log_hidden)
        loss = (-0.5 * mu * mu + mu * z + log_hidden) - room
    if not np.all(loss > -np.inf):
        return ALL
    upper = np.append(z[1:], np.inf)
    p = np.where(z < 0.0, ndtr(upper) - ndtr(z), ndtr(-z) - ndtr(-upper))
    return Table(loss, p, p * np.exp(loss), 1e-299, 1.0, THRESHOLD)


def _counts(mu: float) -> Table:
    """Gaussian counts in known cells, rounded: what an attack beside other mechanisms counts on.

    Of hardly any noise, those with more: laws that share no output are no table.
    """
    mu = min(mu, _CLEAREST)
    inside = np.linspace(0.5 * mu - _DEEPEST, 0.5 * mu + _DEEPEST, _ROUNDED)
    z = np.concatenate([[-np.inf], inside, [np.inf]])
    masses = []
    for shift in (0.0, mu):
        low, high = (z - shift)[:-1], (z - shift)[1:]
        # (each difference of the smaller tails)
        masses.append(np.where(low < 0.0, ndtr(high) - ndtr(low), ndtr(-low) - ndtr(-high)))
    return from_masses(masses[0], masses[1], THRESHOLD)


def _cells(name: str, value: ArrayLike) -> Array:
    return whole_up_to(name, value, MOST_CELLS)


@pytree
@dataclass(frozen=True)
class ThresholdedGaussian(_Thresholded):
    """Counts with Gaussian noise, of which those of at least a threshold are published.

    The cells are those that occur in the data: a record may bring new ones along, each of which is
    published with the probability q that the noise is at least ``threshold`` − 1. With j of D cells
    new, a = (1 − q)^j and μ = √(D − j)/σ, δ(ε) = 1 − a + a·δ_μ(ε − log a) for removing the record
    and δ_μ(ε + log a) for adding it. The profile of one use is the largest of these, and is exact.

    Args:
        noise_multiplier: σ, standard deviation of the noise of one count, to which a record adds 1;
            > 0, any shape.
        threshold: τ, the least noisy count that is published.
        max_cells: D, the most cells that a record counts in, a whole number from 1 to 64.
        strict: whether a noisy count has to be more than the threshold; as noise is continuous,
            this does not change any number.

    Raises:
        ValueError: an argument is out of range, or shapes do not broadcast (before tracing).

    Example:
        >>> import jaxgdp
        >>> table = ThresholdedGaussian(noise_multiplier=2.0, threshold=12.0, max_cells=1)
        >>> bool(jaxgdp.epsilon(table, delta=1e-5).upper < 2.0)
        True
    """

    noise_multiplier: Parameter
    threshold: Parameter
    max_cells: Parameter = default(1)
    strict: Parameter = default(False)

    relation: ClassVar[str] = _RELATION
    examples: ClassVar[dict[str, Callable[[], Mechanism]]] = {
        "ThresholdedGaussian(2, 12)": lambda: ThresholdedGaussian(2.0, 12.0)
    }

    def _log_tail(self, distance: Array) -> Array:
        return log_ndtr(-distance / self.noise_multiplier)

    def _noise(self) -> Mechanism:
        return Gaussian(self.noise_multiplier)

    def gathered(self, count: Array) -> Sequence[tuple[Mechanism, Array]]:
        """The pair of the largest profile of all numbers of new cells.

        Method: docs/method/domains.md#threshold
        """
        shape, far = self.shape, self._far()
        above, below = np.empty(shape, object), np.empty(shape, object)
        for index in np.ndindex(shape):
            with np.errstate(over="ignore"):
                mu = np.sqrt(self._at(self.max_cells, index)) / self._at(
                    self.noise_multiplier, index
                )
            if far[index]:
                above[index] = _missing(mu, float(self._new_cells()[index]))
                continue
            above[index], below[index] = self._table(index), _counts(mu)
        return [(OpenPair.build(above, below, np.full(shape, np.inf)), count)]

    def _table(self, index: tuple[int, ...]) -> Any:
        cells = int(self._at(self.max_cells, index))
        profiles = self._profiles(index)
        log_hidden = np.arange(cells + 1) * float(self._log_hidden()[index])

        def both(epsilon: Array) -> Array:
            found = np.zeros((2, len(epsilon)))
            for new in range(cells + 1):
                log_a = log_hidden[new]
                known_cells = cells - new
                here, there = epsilon - log_a, epsilon + log_a
                inner = profiles(known_cells, np.maximum(there, 0.0))
                # δ(−x) = 1 − e^{−x}·(1 − δ(x)) of a symmetric pair
                mirrored = profiles(known_cells, np.maximum(-there, 0.0))
                beyond = 1.0 - np.exp(np.minimum(there, 0.0)) * (1.0 - mirrored)
                added = np.where(there >= 0.0, inner, beyond)
                removed = -np.expm1(log_a) + np.exp(log_a) * profiles(known_cells, here)
                found = np.maximum(found, np.stack([removed, added]))
            return np.minimum(found * (1.0 + THRESHOLD), 1.0)

        return table_of(follow(both))

    def _profiles(self, index: tuple[int, ...]) -> Callable[[int, Array], Array]:
        """δ(ε), ε ≥ 0, of counts in so many cells, from above."""
        sigma = self._at(self.noise_multiplier, index)

        def profile(cells: int, epsilon: Array) -> Array:
            if cells == 0:
                return np.zeros(len(epsilon))
            mu = np.full(len(epsilon), np.sqrt(cells) / sigma)
            found = np.asarray(gdp.delta(epsilon=epsilon, mu=mu), float)
            return np.minimum(found * (1.0 + 4.0 * CLOSED_FORM) + 1e-300, 1.0)

        return profile


@pytree
@dataclass(frozen=True)
class ThresholdedLaplace(_Thresholded):
    """Counts with Laplace noise, of which those of at least a threshold are published.

    As :class:`ThresholdedGaussian`, with q = ½·e^{−(τ − 1)/b} where the threshold is at least 1.
    The upper side allows for D known and D new cells at once.

    Args:
        scale: b, of the noise of one count, to which a record adds 1; > 0, any shape.
        threshold: τ, the least noisy count that is published.
        max_cells: D, the most cells that a record counts in, a whole number from 1 to 64.
        strict: whether a noisy count has to be more than the threshold; as noise is continuous,
            this does not change any number.

    Raises:
        ValueError: an argument is out of range, or shapes do not broadcast (before tracing).

    Example:
        >>> import jaxgdp
        >>> table = ThresholdedLaplace(scale=2.0, threshold=25.0, max_cells=1)
        >>> bool(jaxgdp.epsilon(table, delta=1e-5).upper < 0.51)
        True
    """

    scale: Parameter
    threshold: Parameter
    max_cells: Parameter = default(1)
    strict: Parameter = default(False)

    relation: ClassVar[str] = _RELATION
    examples: ClassVar[dict[str, Callable[[], Mechanism]]] = {
        "ThresholdedLaplace(2, 25)": lambda: ThresholdedLaplace(2.0, 25.0)
    }

    def _log_tail(self, distance: Array) -> Array:
        away = distance / self.scale
        with np.errstate(divide="ignore"):
            return np.where(
                away >= 0.0,
                np.log(0.5) - np.maximum(away, 0.0),
                np.log1p(-0.5 * np.exp(np.minimum(away, 0.0))),
            )

    def _noise(self) -> Mechanism:
        return Laplace(self.scale)

    def gathered(self, count: Array) -> Sequence[tuple[Mechanism, Array]]:
        """Counts in all D cells, and a coin that shows whether any of D new cells is published:
        more than any number of new cells shows.

        Method: docs/method/domains.md#threshold
        """
        cells = np.broadcast_to(np.asarray(self.max_cells), self.shape)
        hidden, far = self._new_cells(), self._far()
        coins, nothing = np.empty(self.shape, object), np.empty(self.shape, object)
        for index in np.ndindex(self.shape):
            reach = self._at(self.max_cells, index) / self._at(self.scale, index)
            coins[index] = _coin(float(hidden[index]) - (reach if far[index] else 0.0))
        # (no attack sees it beside counts in all cells)
        pair = OpenPair.build(coins, nothing, np.full(self.shape, np.inf))
        found: list[tuple[Mechanism, Array]] = [(pair, count)]
        if not np.all(far):
            known_cells = np.where(far, 0.0, count * cells)
            found += self._noise().canonical().gathered(known_cells)
        return found
