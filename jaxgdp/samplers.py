"""Batch samplers by name: how records get into batches, and the mechanism behind it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .mechanisms import (
    Composition,
    Deterministic,
    FixedSize,
    RandomAllocation,
    Shuffled,
    TruncatedPoisson,
    compose,
    dpsgd,
)
from .numerics.shapes import ArrayLike
from .numerics.validation import one_of, probability, whole


@dataclass(frozen=True)
class Setting:
    """One training, or an array of them, whose batches are to be drawn; what is None was not given.

    Attributes:
        noise_multiplier: σ > 0.
        num_batches: T, batches of an epoch.
        num_epochs: E.
        sampling_prob: the chance of a record to be in a batch, for samplers that draw batches on
            their own.
        batch_size: b.
        dataset_size: n.
        truncated_batch_size: B, the most records of a batch that is cut.
        num_steps: of the whole run, of samplers that draw every batch on its own.
    """

    noise_multiplier: Any
    num_batches: Any
    num_epochs: Any
    sampling_prob: Any
    batch_size: Any = None
    dataset_size: Any = None
    truncated_batch_size: Any = None
    num_steps: Any = None

    @property
    def steps(self) -> Any:
        """Steps of the whole run: ``num_steps``, or whole epochs."""
        return self.num_batches * self.num_epochs if self.num_steps is None else self.num_steps


@dataclass(frozen=True)
class Sampler:
    """One way to draw the batches of training.

    Attributes:
        name: as users write it, such as "shuffled".
        title: a few words for legends and tables.
        make: :class:`Setting` of arrays that broadcast → composition.
        needs: what of a setting it cannot do without, of what may be None.
        by_default: whether it is compared where no sampler is named; not those whose brackets are
            wide and take minutes.
    """

    name: str
    title: str
    make: Callable[[Setting], Composition]
    needs: tuple[str, ...] = ()
    by_default: bool = True


REGISTRY: dict[str, Sampler] = {}


def register(sampler: Sampler) -> Sampler:
    """Add a sampler, which can be compared and requested by name from then on, like any other.

    Args:
        sampler: the entry.

    Returns:
        The same entry.

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


def mechanism(
    sampler: str,
    noise_multiplier: ArrayLike,
    num_batches: ArrayLike,
    num_epochs: ArrayLike = 1,
    sampling_prob: ArrayLike | None = None,
    batch_size: ArrayLike | None = None,
    dataset_size: ArrayLike | None = None,
    truncated_batch_size: ArrayLike | None = None,
    num_steps: ArrayLike | None = None,
) -> Composition:
    """The mechanism that a sampler's training releases.

    Args:
        sampler: a registered name.
        noise_multiplier: σ > 0, any shape.
        num_batches: T, batches of an epoch, whole numbers ≥ 1.
        num_epochs: E, whole numbers ≥ 1.
        sampling_prob: the chance of a record to be in a batch, for samplers that draw batches on
            their own; 1/T where not given.
        batch_size: b, for "fixed_size".
        dataset_size: n, for "fixed_size" and "truncated_poisson".
        truncated_batch_size: B, the most records of a batch, for "truncated_poisson".
        num_steps: of the whole run, of samplers that draw every batch on its own; default T·E.

    Raises:
        ValueError: the sampler is unknown, an argument out of range, or one that the sampler needs
            not given.

    Example:
        >>> mechanism("shuffled", 1.0, num_batches=100, num_epochs=[1, 10]).shape
        (2,)
    """
    batches, epochs = whole("num_batches", num_batches), whole("num_epochs", num_epochs)
    rate = 1.0 / batches if sampling_prob is None else probability("sampling_prob", sampling_prob)
    setting = Setting(
        noise_multiplier, batches, epochs, rate, batch_size, dataset_size, truncated_batch_size,
        None if num_steps is None else whole("num_steps", num_steps),
    )  # fmt: skip
    for name in named(sampler).needs:
        if getattr(setting, name) is None:
            raise ValueError(f"{name} must be given for sampler {sampler!r}")
    return named(sampler).make(setting)


def _truncated(setting: Setting) -> Composition:
    size, most = setting.dataset_size, setting.truncated_batch_size
    step = TruncatedPoisson(setting.noise_multiplier, setting.sampling_prob, most, size)
    return compose([(step, setting.steps)])


def _fixed_size(setting: Setting) -> Composition:
    step = FixedSize(setting.noise_multiplier, setting.batch_size, setting.dataset_size)
    return compose([(step, setting.steps)])


def _deterministic(at: Setting) -> Composition:
    return compose([Deterministic(at.noise_multiplier, at.num_epochs)])


def _shuffled(at: Setting) -> Composition:
    return compose([Shuffled(at.noise_multiplier, at.num_batches, at.num_epochs)])


def _poisson(at: Setting) -> Composition:
    return dpsgd(at.noise_multiplier, at.sampling_prob, at.steps)


def _allocated(at: Setting) -> Composition:
    return compose([(RandomAllocation(at.noise_multiplier, at.num_batches), at.num_epochs)])


for _sampler in (
    Sampler("deterministic", "fixed order", _deterministic),
    Sampler("shuffled", "shuffled each epoch", _shuffled),
    Sampler("poisson", "Poisson", _poisson),
    Sampler("random_allocation", "random allocation", _allocated),
    Sampler("truncated_poisson", "Poisson, cut", _truncated,
            ("truncated_batch_size", "dataset_size"), by_default=False),
    Sampler("fixed_size", "fixed size", _fixed_size,
            ("batch_size", "dataset_size"), by_default=False),
):  # fmt: skip
    register(_sampler)
