"""One-parameter families of mechanisms: what is solved for, in which direction it buys privacy, and
the mechanism at each value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from .. import samplers
from ..mechanisms import Composition, SubsampledGaussian, as_composition, compose, dpsgd
from ..numerics.validation import broadcast


@dataclass(frozen=True)
class Unknown:
    """The parameter to solve for, in coordinates u that grow with privacy: u = ±log value.

    Attributes:
        name: as the user calls it.
        sign: 1 if larger values are more private, −1 otherwise.
        low, high: range searched.
        whole: whether only whole numbers count.
    """

    name: str
    sign: float
    low: float
    high: float
    whole: bool = False

    def value(self, u: np.ndarray):
        """The parameter at u, rounded towards privacy."""
        value = np.clip(np.exp(np.clip(self.sign * u, -700.0, 700.0)), self.low, self.high)
        return np.maximum(np.floor(value), self.low) if self.whole else value

    def coordinate(self, value: np.ndarray):
        """u of a parameter."""
        return self.sign * np.log(value)

    def less_private(self, value: np.ndarray, tolerance: float):
        """One tolerance step towards less privacy, at least 1 for whole numbers; in range."""
        if self.whole:
            return np.minimum(value + np.maximum(np.floor(value * tolerance), 1.0), self.high)
        moved = value * (1.0 + tolerance) if self.sign < 0 else value / (1.0 + tolerance)
        return np.clip(moved, self.low, self.high)

    def more_private(self, value: np.ndarray, tolerance: float):
        """One tolerance step towards more privacy, whose own step towards less leads back."""
        if self.whole:
            return np.maximum(
                np.minimum(np.floor(value / (1.0 + tolerance)), value - 1.0), self.low
            )
        moved = value / (1.0 + tolerance) if self.sign < 0 else value * (1.0 + tolerance)
        return np.clip(moved, self.low, self.high)

    @property
    def most_private(self) -> float:
        """The end of the range with most privacy."""
        return self.high if self.sign > 0 else self.low

    @property
    def least_private(self) -> float:
        """The end of the range with least privacy."""
        return self.low if self.sign > 0 else self.high


NOISE_MULTIPLIER = Unknown("noise_multiplier", 1.0, 1e-20, 1e20)
SCALE = Unknown("scale", 1.0, 1e-20, 1e20)
NUM_STEPS = Unknown("num_steps", -1.0, 1.0, 2.0**40, whole=True)
SAMPLING_PROB = Unknown("sampling_prob", -1.0, 1e-12, 1.0)
UNKNOWNS = {unknown.name: unknown for unknown in (NOISE_MULTIPLIER, NUM_STEPS, SAMPLING_PROB)}
BATCH_SIZE = "batch_size"  # up to that of the data, which ends its range


class DPSGD:
    """DP-SGD with one of its three parameters unknown.

    Args:
        unknown: which. shape: of the batch of calibrations. known: the other two, which broadcast
            to the shape. records: of one user.
    """

    def __init__(
        self, unknown: Unknown, shape: tuple[int, ...], known: dict[str, Any], records: int = 1
    ):
        self.unknown, self.shape, self.records = unknown, shape, records
        self.known = {
            name: np.broadcast_to(value, shape).reshape(-1) for name, value in known.items()
        }

    def at(self, values: np.ndarray, rows: Any) -> Composition:
        """The mechanisms of the given rows, with these values of the unknown."""
        given = {name: known[rows] for name, known in self.known.items()}
        given[self.unknown.name] = values
        steps = np.asarray(given["num_steps"], float)
        if self.records > 1:
            return dpsgd(given["noise_multiplier"], given["sampling_prob"], steps, self.records)
        step = SubsampledGaussian(given["noise_multiplier"], given["sampling_prob"])
        return Composition((step,), (steps,))

    def guess(self, mu: np.ndarray):
        """u of a central-limit guess: μ ≈ p·√(T·(e^{1/σ²} − 1)) (Bu et al. 2020)."""
        known = self.known
        mu = mu / self.records
        with np.errstate(over="ignore", divide="ignore"):
            if self.unknown is NOISE_MULTIPLIER:
                found = 1.0 / np.sqrt(
                    np.log1p((mu / known["sampling_prob"]) ** 2 / known["num_steps"])
                )
            else:
                growth = np.expm1(np.minimum(known["noise_multiplier"] ** -2.0, 700.0))
                if self.unknown is NUM_STEPS:
                    found = (mu / known["sampling_prob"]) ** 2 / growth
                else:
                    found = mu / np.sqrt(known["num_steps"] * growth)
        return self.unknown.coordinate(np.clip(found, self.unknown.low, self.unknown.high))


class BatchSize:
    """DP-SGD with Poisson batches of an expected size to be found, for a fixed number of epochs.

    The rate B/n and the number of steps ⌈E·n/B⌉ move together.

    Args:
        shape: of the batch of calibrations. known: "noise_multiplier" and "num_epochs", which
            broadcast to it. dataset_size: n, one number.
    """

    def __init__(self, shape: tuple[int, ...], known: dict[str, Any], dataset_size: int):
        self.shape, self.dataset_size = shape, dataset_size
        self.unknown = Unknown("batch_size", -1.0, 1.0, float(dataset_size), whole=True)
        self.known = {
            name: np.broadcast_to(value, shape).reshape(-1) for name, value in known.items()
        }

    def at(self, values: np.ndarray, rows: Any) -> Composition:
        """The mechanisms of the given rows, with these batch sizes."""
        records = self.known["num_epochs"][rows] * float(self.dataset_size)
        # (whole numbers, so the quotient is rounded once: a hair above a whole number is that one)
        steps = np.ceil(records / values * (1.0 - 2.0**-50))
        rate = np.minimum(values / self.dataset_size, 1.0)
        step = SubsampledGaussian(self.known["noise_multiplier"][rows], rate)
        return Composition((step,), (steps,))

    def guess(self, mu: np.ndarray):
        """u of a central-limit guess: μ ≈ √(p·E·(e^{1/σ²} − 1))."""
        growth = np.expm1(np.minimum(self.known["noise_multiplier"] ** -2.0, 700.0))
        found = self.dataset_size * mu**2 / (self.known["num_epochs"] * growth)
        return self.unknown.coordinate(np.clip(found, self.unknown.low, self.unknown.high))


class After:
    """Some rows of another family, each of whose mechanisms follows one that has been run.

    Args:
        family: of what is still to run. spent: the mechanism before it, of no shape. rows: which
            rows of the family.
    """

    def __init__(self, family: Any, spent: Composition, rows: np.ndarray):
        self.family, self.spent, self.rows = family, spent, rows
        self.unknown, self.shape = family.unknown, (len(rows),)

    def at(self, values: np.ndarray, rows: Any) -> Composition:
        """The mechanisms of the given rows, with what was run before."""
        return compose([(self.spent, 1), (self.family.at(values, self.rows[rows]), 1)])

    def guess(self, mu: np.ndarray):
        """u of the family alone: too little privacy, but near where little was spent."""
        every = np.ones(int(np.prod(self.family.shape)))
        every[self.rows] = mu
        return self.family.guess(every)[self.rows]


ALLOCATED_NOISE = Unknown(
    "noise_multiplier", 1.0, 0.2, 1e4
)  # for which ``RandomAllocation`` has tables


class Epochs:
    """Epochs of DP-SGD with batches by a sampler of ``jaxgdp.samplers``, the noise unknown.

    Args:
        sampler: by name. shape: of the batch of calibrations. known: "num_steps" of one epoch and
            "num_epochs", which broadcast to it.
    """

    def __init__(self, sampler: str, shape: tuple[int, ...], known: dict[str, Any]):
        self.sampler, self.shape = sampler, shape
        self.unknown = ALLOCATED_NOISE if sampler == "random_allocation" else NOISE_MULTIPLIER
        self.known = {
            name: np.broadcast_to(value, shape).reshape(-1) for name, value in known.items()
        }

    def at(self, values: np.ndarray, rows: Any) -> Composition:
        """The mechanisms of the given rows, with these noise multipliers."""
        return samplers.mechanism(
            self.sampler, values, self.known["num_steps"][rows], self.known["num_epochs"][rows]
        )

    def guess(self, mu: np.ndarray):
        """u of μ = √E/σ, or for random allocation of a central-limit guess: μ ≈ √(E·(e^{1/σ²} −
        1)/t), as for Poisson sampling.
        """
        share = mu**2 / self.known["num_epochs"]
        if self.sampler == "random_allocation":
            share = np.log1p(share * self.known["num_steps"])
        return self.unknown.coordinate(
            np.clip(1.0 / np.sqrt(share), self.unknown.low, self.unknown.high)
        )


class Scaled:
    """Any mechanism of one noise parameter, or a composition with a common scale.

    Args:
        make: scale → mechanism; called with arrays. shape: of the targets.

    Raises:
        ValueError: ``make`` returns no mechanism, or one whose shape does not follow that of the
            scale.
    """

    unknown = SCALE

    def __init__(self, make: Any, shape: tuple[int, ...]):
        self.make = make
        own = self._made(np.ones(())).shape
        self.shape = broadcast(target=np.empty(shape), mechanism=np.empty(own))
        made = self._made(np.ones((2, *self.shape))).shape
        if made != (2, *self.shape):
            raise ValueError(
                f"mechanism must return a mechanism of the shape of its scale, got shape {made} for"
                f" scales of shape {(2, *self.shape)}"
            )

    def _made(self, scale: np.ndarray) -> Composition:
        try:
            return as_composition(self.make(scale))
        except TypeError as error:
            raise ValueError(
                f"mechanism must be a callable scale -> mechanism, got {self.make!r} ({error})"
            ) from None

    def at(self, values: np.ndarray, rows: Any) -> Composition:
        """The mechanisms of the given rows, with these scales."""
        number = int(np.prod(self.shape))
        # every row of the batch gets its own scales, as many as the row with most of them
        order = np.argsort(rows, kind="stable")
        counts = np.bincount(rows, minlength=number)
        place = np.empty(len(rows), int)
        place[order] = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
        scales = np.ones((int(counts.max()), number))
        scales[place, rows] = values
        made = self._made(scales.reshape(-1, *self.shape))
        return _flat_rows(made, place * number + rows)

    def guess(self, mu: np.ndarray):
        """u of a scale that is 1 over μ."""
        return np.clip(-np.log(mu), -40.0, 40.0)


def _flat_rows(composition: Composition, rows: Any) -> Composition:
    """Some elements of a batched composition, by their number in row-major order."""
    shape = composition.shape

    def taken(mechanism: Any):
        inner = [kept for _, kept in mechanism.parameter_shapes().values()]
        leaves, structure = jax.tree.flatten(mechanism)
        wide = [
            np.broadcast_to(np.asarray(a), shape + k).reshape(-1, *k)
            for a, k in zip(leaves, inner, strict=True)
        ]
        return jax.tree.unflatten(structure, [a[rows] for a in wide])

    counts = tuple(np.broadcast_to(count, shape).reshape(-1)[rows] for count in composition.counts)
    return Composition(tuple(taken(m) for m in composition.mechanisms), counts)
