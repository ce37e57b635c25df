"""Batches drawn an epoch at a time: shuffled ones of fixed size, and random allocation.

Both are functions of the run's key and of the step, so that a run restored from a checkpoint goes
on with the same epoch, and a step can be drawn without the ones before it. The privacy cost of an
epoch is that of ``jaxgdp.Shuffled`` and ``jaxgdp.RandomAllocation``.

A shuffled batch is never larger than requested. An allocated batch may be: it is padded and, if it
does not fit, emptied, as in ``poisson``. The argument there holds here, too. The batch A_t of a
step without the record under attack does not depend on where that record is put; a step with more
than B records is noise either way, and only |A_t| = B in a step to which the record is allocated
reveals something. Summed over the steps, this event has a probability of at most Σ_t Pr[Bin(n, k/t)
≥ B], the d of ``poisson``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..deprecation import renamed_arguments, renamed_fields
from ..numerics.shapes import Array, ArrayLike
from ..numerics.validation import whole, whole_up_to
from .arguments import prng_key, step_number
from .batches import Batch, DrawnFrom, padded_batch
from .poisson import checked_padding

_MOST_SELECTED = 64  # steps of an epoch that a record is in; a table of them is made


class _ByEpoch(DrawnFrom):
    """The base of samplers of one epoch at a time."""

    num_batches: Any  # an int; a field of one sampler, a property of the other

    def sample(self, key: Array, step: ArrayLike) -> Batch:
        """The batch of one step; step // T is its epoch.

        Args:
            key: a JAX PRNG key, the same one at every step of the run and used for nothing else.
            step: number of the step from 0 on, an integer; may be traced.

        Raises:
            ValueError: ``key`` is no PRNG key, or ``step`` no integer.

        Example:
            >>> import jax, numpy as np
            >>> shuffled = shuffle_sampler(1000, batch_size=100)
            >>> for sampler in (shuffled, allocation_sampler(1000, num_batches=10, max_steps=10)):
            ...     batches = jax.vmap(sampler.sample, (None, 0))(jax.random.key(0), np.arange(10))
            ...     sorted(batches.indices[batches.mask].tolist()) == list(range(1000))
            True
            True
        """
        prng_key("key", key)
        return self._drawn(key, *jnp.divmod(step_number(step), self.num_batches))

    def _drawn(self, key: Array, epoch: Array, place: Array) -> Batch:
        raise NotImplementedError


@renamed_fields(num_examples="dataset_size")
@dataclass(frozen=True)
class ShuffleSampler(_ByEpoch):
    """Cuts a random permutation of the data into batches; build it with :func:`shuffle_sampler`.

    Attributes:
        dataset_size: n, records in the data set.
        padded_size: b, records in a batch; the last one of an epoch has what is left, and padding.
        reshuffle: whether every epoch has a permutation of its own.
    """

    dataset_size: int
    padded_size: int
    reshuffle: bool = True

    overflow = 0.0  # every batch fits

    @property
    def pads(self) -> bool:
        """Whether rows of a batch may be padding."""
        return self.dataset_size % self.padded_size > 0

    @property
    def num_batches(self) -> int:
        """T = ⌈n/b⌉, batches of an epoch."""
        return -(-self.dataset_size // self.padded_size)

    @property
    def expected_batch_size(self) -> float:
        """b: what the noisy sum of a batch is divided by, also of an epoch's last one."""
        return float(self.padded_size)

    @property
    def accounted(self) -> tuple:
        """The facts that the accounting needs."""
        return "shuffled", self.num_batches, self.reshuffle

    def _drawn(self, key: Array, epoch: Array, place: Array) -> Batch:
        order = jax.random.permutation(
            jax.random.fold_in(key, epoch if self.reshuffle else 0), self.dataset_size
        )
        room = self.num_batches * self.padded_size - self.dataset_size
        order = jnp.pad(order.astype(jnp.int32), (0, room), constant_values=self.dataset_size)
        indices = jax.lax.dynamic_slice(order, (place * self.padded_size,), (self.padded_size,))
        mask = indices < self.dataset_size
        return Batch(indices, mask, jnp.zeros((), bool))


@renamed_fields(num_examples="dataset_size")
@dataclass(frozen=True)
class AllocationSampler(_ByEpoch):
    """Puts every record into k of the t steps of an epoch; see :func:`allocation_sampler`.

    Attributes:
        dataset_size: n, records in the data set.
        num_batches: t, steps of an epoch.
        num_selected: k, steps of an epoch that a record is in.
        padded_size: B, the static size of a batch.
        overflow: bound on the probability that any batch of the run overflows: the d above.
        max_steps: number of steps it was computed for.
    """

    dataset_size: int
    num_batches: int
    num_selected: int
    padded_size: int
    overflow: float
    max_steps: int

    @property
    def pads(self) -> bool:
        """Whether rows of a batch may be padding."""
        return self.num_selected < self.num_batches or self.padded_size > self.dataset_size

    @property
    def expected_batch_size(self) -> float:
        """n·k/t: what the noisy sum of a batch is divided by, whatever its actual size."""
        return self.dataset_size * self.num_selected / self.num_batches

    @property
    def accounted(self) -> tuple:
        """The facts that the accounting needs."""
        return "random_allocation", self.num_batches, self.num_selected

    def _drawn(self, key: Array, epoch: Array, place: Array) -> Batch:
        allotted = _subsets(
            jax.random.fold_in(key, epoch), self.dataset_size, self.num_batches, self.num_selected
        )
        chosen = jnp.any(allotted == place, axis=0)
        return padded_batch(chosen, self.padded_size)


def _subsets(key: Array, number: int, of: int, size: int) -> Array:
    """Random subsets of {0, …, of − 1}, shape (size, number), by Floyd's algorithm.

    For j = of − size, …, of − 1 a number is drawn from 0, …, j; if it is in the subset already, j
    itself goes there."""
    chosen = jnp.full((size, number), -1, jnp.int32)
    for i, last in enumerate(range(of - size, of)):
        # (two words a number: the remainder of one would favour small ones by as much as t·2⁻³²)
        drawn = jax.random.randint(jax.random.fold_in(key, i), (number,), 0, last + 1, jnp.int32)
        taken = jnp.any(chosen == drawn, axis=0)
        chosen = chosen.at[i].set(jnp.where(taken, last, drawn))
    return chosen


@renamed_arguments(num_examples="dataset_size")
def shuffle_sampler(dataset_size: int, batch_size: int, reshuffle: bool = True) -> ShuffleSampler:
    """A sampler of shuffled batches of fixed size, each record once an epoch.

    Only its lower side is known to be near the truth where the noise is large (see
    :class:`jaxgdp.Shuffled`): for a promise that can be kept use :func:`allocation_sampler` or
    :func:`poisson_sampler`.

    Args:
        dataset_size: n ≥ 1, records in the data set, taken to be public.
        batch_size: b, a whole number in [1, n].
        reshuffle: whether to shuffle again before every epoch.

    Raises:
        ValueError: an argument is out of range.

    Example:
        >>> shuffle_sampler(dataset_size=60_000, batch_size=256).num_batches
        235
    """
    n = int(whole("dataset_size", dataset_size))
    size = int(whole_up_to("batch_size", batch_size, n))
    if not isinstance(reshuffle, (bool, np.bool_)):
        raise ValueError(f"reshuffle must be True or False, got {reshuffle!r}")
    return ShuffleSampler(n, size, bool(reshuffle))


@renamed_arguments(num_examples="dataset_size")
def allocation_sampler(
    dataset_size: int,
    num_batches: int,
    max_steps: int,
    num_selected: int = 1,
    overflow: float = 1e-20,
    padded_size: int | None = None,
    multiple_of: int = 1,
) -> AllocationSampler:
    """A sampler by random allocation of the smallest padded size that keeps to ``overflow``.

    Args:
        dataset_size: n ≥ 1, records in the data set, taken to be public.
        num_batches: t ≥ 1, steps of an epoch.
        max_steps: most steps of the run.
        num_selected: k, steps of an epoch that a record is in, a whole number in [1, min(t, 64)].
        overflow: largest bound on the probability of any overflow in the run, in [1e-100, 1e-3];
            part of the privacy cost, and taken from the sampler by
            :func:`jaxgdp.training.plan_budget`.
        padded_size: take this size instead, whatever its overflow.
        multiple_of: round the padded size up to a multiple of this, such as the micro-batch times
            the parts of an update.

    Raises:
        ValueError: an argument is out of range, or ``padded_size`` overflows in more than one run
            in a thousand.

    Example:
        >>> sampler = allocation_sampler(dataset_size=60_000, num_batches=100, max_steps=1000)
        >>> sampler.padded_size, sampler.expected_batch_size
        (860, 600.0)
    """
    n, t = int(whole("dataset_size", dataset_size)), int(whole("num_batches", num_batches))
    steps, most = int(whole("max_steps", max_steps)), min(t, _MOST_SELECTED)
    k = int(whole_up_to("num_selected", num_selected, most))
    padding = checked_padding(n, k / t, steps, overflow, padded_size, multiple_of)
    return AllocationSampler(n, t, k, *padding, steps)
