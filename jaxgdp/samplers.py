"""Batch samplers by name: how records get into the batches of an epoch, and the mechanism that accounts for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .mechanisms import Composition, Deterministic, RandomAllocation, Shuffled, compose, dpsgd
from .numerics.validation import one_of, probability, whole


@dataclass(frozen=True)
class Sampler:
    """One way to draw the batches of training.

    Attributes:
        name: as users write it, such as "shuffled".
        title: a few words for legends and tables.
        make: (noise_multiplier, num_batches, num_epochs, sampling_prob) → composition; arrays that broadcast.
    """

    name: str
    title: str
    make: Callable[[Any, Any, Any, Any], Composition]


REGISTRY: dict[str, Sampler] = {}


def register(sampler: Sampler) -> Sampler:
    """Add a sampler; from then on it is compared, and asked for by name, like any other.

    Args:
        sampler: the record.

    Returns:
        The same record.

    Raises:
        ValueError: its name is taken.
    """
    if sampler.name in REGISTRY:
        raise ValueError(f"sampler {sampler.name!r} is registered already")
    REGISTRY[sampler.name] = sampler
    return sampler


def named(name: str) -> Sampler:
    """A registered sampler.

    Raises:
        ValueError: unknown name; lists the known ones.
    """
    return REGISTRY[one_of("sampler", name, tuple(REGISTRY))]


def mechanism(sampler: str, noise_multiplier, num_batches, num_epochs: Any = 1, sampling_prob=None) -> Composition:
    """What a sampler's training releases.

    Args:
        sampler: a registered name.
        noise_multiplier: σ > 0, any shape.
        num_batches: T, batches of an epoch, whole numbers ≥ 1.
        num_epochs: E, whole numbers ≥ 1.
        sampling_prob: the chance of a record to be in a batch, for samplers that draw batches on their own; 1/T where not given.

    Returns:
        A :class:`jaxgdp.Composition`.

    Raises:
        ValueError: the sampler is unknown or an argument out of range.

    Example:
        >>> mechanism("shuffled", 1.0, num_batches=100, num_epochs=[1, 10]).shape
        (2,)
    """
    batches, epochs = whole("num_batches", num_batches), whole("num_epochs", num_epochs)
    rate = 1.0 / batches if sampling_prob is None else probability("sampling_prob", sampling_prob)
    return named(sampler).make(noise_multiplier, batches, epochs, rate)


register(
    Sampler(
        "deterministic", "fixed order", lambda sigma, batches, epochs, rate: compose([Deterministic(sigma, epochs)])
    )
)
register(
    Sampler(
        "shuffled",
        "shuffled each epoch",
        lambda sigma, batches, epochs, rate: compose([Shuffled(sigma, batches, epochs)]),
    )
)
register(Sampler("poisson", "Poisson", lambda sigma, batches, epochs, rate: dpsgd(sigma, rate, batches * epochs)))
register(
    Sampler(
        "random_allocation",
        "random allocation",
        lambda sigma, batches, epochs, rate: compose([(RandomAllocation(sigma, batches), epochs)]),
    )
)
