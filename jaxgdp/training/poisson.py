"""Poisson batches of static shape, and what their static shape costs in privacy.

Every record enters a batch on its own with probability p. A compiled step wants arrays of one size,
so the batch is padded to ``padded_size`` and masked. The number of records is random and may exceed
any size below the whole data set. Cutting the batch down quietly would no longer be Poisson
sampling. Here a batch that does not fit is emptied instead (the step then releases noise only), the
chance of that is bounded before training starts, and the accounting takes it in.

The cost of emptying. Let A be the batch without the record under attack, and B the padded size; A
does not depend on that record. Given |A| < B the record never causes an overflow and the step is
the usual one. Given |A| > B the step is noise either way. Only |A| = B reveals something: the
record's presence may then empty the batch. In one step that has probability at most Pr[Bin(n, p) ≥
B], the same with and without the record. Let d be the sum of that over the steps. A run of exact
Poisson sampling with trade-off curve f then becomes one with a curve of at least (1 − d)·f(α/(1 −
d)), however its steps depend on earlier ones. Data sets of at most B records never overflow, so the
lower sides of brackets stand."""

from __future__ import annotations

import math
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from scipy.special import betainc

from ..deprecation import renamed_arguments, renamed_fields, warn
from ..numerics.errors import BINOMIAL_TAIL
from ..numerics.shapes import Array, ArrayLike
from ..numerics.validation import checked, probability, whole
from .arguments import prng_key, step_number
from .batches import Batch, DrawnFrom, padded_batch

_WORD = 2.0**32


@renamed_fields(num_examples="dataset_size")
@dataclass(frozen=True)
class PoissonSampler(DrawnFrom):
    """Draws padded Poisson batches, also inside ``jit``; see :func:`poisson_sampler`.

    Attributes:
        dataset_size: n, records in the data set (or in one device's share of it).
        sampling_prob: requested p; the draw uses p rounded down to a multiple of 2⁻³², which is at
            least as private.
        padded_size: B, the static size of a batch.
        overflow: bound on the probability that any batch of the run overflows: the d above.
        max_steps: number of steps it was computed for.
    """

    dataset_size: int
    sampling_prob: float
    padded_size: int
    overflow: float
    max_steps: int

    @property
    def accounted(self) -> tuple:
        """The facts that the accounting needs."""
        return "poisson", self.sampling_prob

    @property
    def expected_batch_size(self) -> float:
        """n·p: what the noisy sum of a batch is divided by, whatever its actual size."""
        return self.dataset_size * self.sampling_prob

    @property
    def pads(self) -> bool:
        """Whether rows of a batch may be padding."""
        return self.sampling_prob < 1.0 or self.padded_size > self.dataset_size

    def sample(self, key: Array, step: ArrayLike | None = None) -> Batch:
        """Draw the batch of one step: that of ``jax.random.fold_in(key, step)``.

        Args:
            key: a JAX PRNG key, the same one at every step of the run.
            step: number of the step from 0 on, an integer such as ``state.step``; may be traced.

        Raises:
            ValueError: ``key`` is no PRNG key, or ``step`` no integer.

        Example:
            >>> import jax
            >>> sampler = poisson_sampler(dataset_size=1000, sampling_prob=0.05, max_steps=100)
            >>> batch = jax.jit(sampler.sample)(jax.random.key(0), 0)
            >>> batch.indices.shape == batch.mask.shape == (sampler.padded_size,)
            True
        """
        prng_key("key", key)
        if step is None:
            # (the same key at every step draws the same batch at every step)
            warn("sample(key)", "sample(key, step), with the key of the run and its step")
        else:
            key = jax.random.fold_in(key, step_number(step))
        if self.sampling_prob == 1.0:
            chosen = jnp.ones(self.dataset_size, bool)
        else:
            # whole words: a float32 uniform has only 23 bits, which would move a small p by per
            # cents
            words = jax.random.bits(key, (self.dataset_size,), jnp.uint32)
            chosen = words < jnp.uint32(math.floor(self.sampling_prob * _WORD))
        return padded_batch(chosen, self.padded_size)


@renamed_arguments(num_examples="dataset_size")
def overflow_probability(
    dataset_size: int, sampling_prob: float, padded_size: int, max_steps: int
) -> float:
    """Bound on the probability of a batch of ``padded_size`` or more: max_steps·Pr[Bin(n, p) ≥ B].

    0 where the whole data set fits.

    Args:
        dataset_size: n ≥ 1.
        sampling_prob: p in (0, 1].
        padded_size: B ≥ 1.
        max_steps: whole number ≥ 1.

    Returns:
        A float, rounded up.

    Raises:
        ValueError: an argument is out of range.

    Example:
        >>> # 11/2¹⁰, rounded up
        >>> overflow_probability(dataset_size=10, sampling_prob=0.5, padded_size=9, max_steps=1)
        0.010742198...
    """
    n, size = int(whole("dataset_size", dataset_size)), int(whole("padded_size", padded_size))
    p = float(probability("sampling_prob", sampling_prob))
    steps = int(whole("max_steps", max_steps))
    if size >= n:
        return 0.0
    tail = float(betainc(size, n - size + 1.0, p)) * (1.0 + BINOMIAL_TAIL)
    return min(1.0, steps * tail + 5e-324)


@renamed_arguments(num_examples="dataset_size")
def poisson_sampler(
    dataset_size: int,
    sampling_prob: float,
    max_steps: int,
    overflow: float = 1e-20,
    padded_size: int | None = None,
    multiple_of: int = 1,
) -> PoissonSampler:
    """A sampler with the smallest padded size that keeps the run's overflow to ``overflow``.

    Args:
        dataset_size: n ≥ 1, records in the data set, taken to be public. On several devices, in one
            device's share: each samples its own share with its own key, the union is a Poisson
            sample of the whole, and as a record is in one share only, the ``overflow`` of one share
            is that of all.
        sampling_prob: p in [2⁻³², 1].
        max_steps: most steps of the run.
        overflow: largest bound on the probability of any overflow in the run, in [1e-100, 1e-3]. It
            is part of the privacy cost: pass the sampler's own ``overflow`` to
            :func:`jaxgdp.training.plan_budget`.
        padded_size: take this size instead, whatever its overflow.
        multiple_of: round the padded size up to a multiple of this, such as the micro-batch times
            the parts of an update.

    Raises:
        ValueError: an argument is out of range, or ``padded_size`` overflows in more than one run
            in a thousand.

    Example:
        >>> sampler = poisson_sampler(dataset_size=60_000, sampling_prob=0.01, max_steps=1000)
        >>> sampler.padded_size, sampler.expected_batch_size
        (860, 600.0)
    """
    n, steps = int(whole("dataset_size", dataset_size)), int(whole("max_steps", max_steps))
    at_least = lambda a: (a >= 1.0 / _WORD) & (a <= 1.0)
    p = float(checked("sampling_prob", sampling_prob, "in [2**-32, 1]", at_least))
    padding = checked_padding(n, p, steps, overflow, padded_size, multiple_of)
    return PoissonSampler(n, p, *padding, steps)


def checked_padding(
    dataset_size: int,
    rate: float,
    max_steps: int,
    overflow: float,
    padded_size: int | None,
    multiple_of: int = 1,
) -> tuple[int, float]:
    """The padded size, as given or the smallest for ``overflow``, and its overflow probability.

    Args:
        dataset_size, rate, max_steps: as for :func:`overflow_probability`.
        overflow, padded_size, multiple_of: as for :func:`poisson_sampler`.

    Raises:
        ValueError: ``overflow`` is not in [1e-100, 1e-3], or ``padded_size`` overflows in more than
            one run in a thousand.
    """
    largest = float(
        checked("overflow", overflow, "in [1e-100, 1e-3]", lambda a: (a >= 1e-100) & (a <= 1e-3))
    )
    if padded_size is None:
        size = _smallest_padded_size(dataset_size, rate, max_steps, largest)
    else:
        size = int(whole("padded_size", padded_size))
    size += -size % int(whole("multiple_of", multiple_of))
    found = overflow_probability(dataset_size, rate, size, max_steps)
    if found > 1e-3:
        raise ValueError(
            f"padded_size must overflow in at most one run in a thousand, got {size}: {found:.3g}"
        )
    return size, found


def _smallest_padded_size(
    dataset_size: int, sampling_prob: float, max_steps: int, overflow: float
) -> int:
    """The smallest B with an :func:`overflow_probability` of at most ``overflow``."""
    low, high = 0, dataset_size  # the bound holds at high, never at low
    while high - low > 1:
        middle = (low + high) // 2
        fits = overflow_probability(dataset_size, sampling_prob, middle, max_steps) <= overflow
        low, high = (low, middle) if fits else (middle, high)
    return high
