"""Padded batches: which records they hold, and how those are read from the data."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from ..numerics.shapes import Array, ArrayLike, Bool, Int, PyTree
from ..numerics.validation import whole


class Batch(NamedTuple):
    """One padded batch. How many records were drawn, and which, is secret.

    Attributes:
        indices: records, int32 of shape (padded_size,); padding points outside the data, to n, so
            read the data by ``sampler.take(batch, ...)``.
        mask: which of them are real, bool of shape (padded_size,).
        overflowed: whether more records were drawn than fit, so that the batch was emptied; scalar
            bool.
    """

    indices: Int[Array, " padded"]
    mask: Bool[Array, " padded"]
    overflowed: Bool[Array, ""]

    def part(self, number: ArrayLike, of: int) -> Batch:
        """One of several equal parts, for ``privatize(..., accumulate=of)``.

        Args:
            number: which part, from 0 on: ``state.part``; may be traced.
            of: how many parts there are; they must divide the padded size.

        Raises:
            ValueError: they do not, or a number that is not traced is out of range.

        Example:
            >>> batch = padded_batch(jnp.array([True, False, True, True]), 4)
            >>> batch.part(1, of=2).indices.tolist(), batch.part(1, of=2).mask.tolist()
            ([3, 4], [True, False])
        """
        padded, of = len(self.mask), int(whole("of", of))
        if padded % of:
            raise ValueError(f"of must divide the padded size {padded}, got {of}")
        place: Any = number
        if not isinstance(place, Tracer) and not 0 <= int(place) < of:
            raise ValueError(f"number must be in [0, {of - 1}], got {number}")
        size = padded // of
        cut = lambda rows: jax.lax.dynamic_slice_in_dim(rows, place * size, size)
        return Batch(cut(self.indices), cut(self.mask), self.overflowed)


class DrawnFrom:
    """The base of samplers of padded batches."""

    dataset_size: Any  # ints; fields of some samplers, properties of others
    padded_size: Any

    def take(self, batch: Batch, *data: PyTree) -> Any:
        """The records of a batch, with zeros for padding.

        Args:
            batch: what :meth:`sample` returned, or a part of it.
            *data: pytrees of arrays whose leading axis is the data set, on the host (NumPy) or on a
                device.

        Returns:
            The rows, a pytree for each; for a single one that pytree itself. NumPy arrays give
            NumPy arrays, so data may stay on the host; inside ``jit`` they become constants.

        Raises:
            ValueError: an array has another number of records than the sampler draws from.

        Example:
            >>> from jaxgdp.training import shuffle_sampler
            >>> sampler = shuffle_sampler(dataset_size=3, batch_size=2)
            >>> batch = sampler.sample(jax.random.key(0), 1)
            >>> sampler.take(batch, np.array([5.0, 6.0, 7.0])).shape, batch.mask.tolist()
            ((2,), [True, False])
        """
        for leaf in jax.tree.leaves(data):
            if np.shape(leaf)[:1] != (self.dataset_size,):
                raise ValueError(
                    f"data must have the sampler's {self.dataset_size} records along its leading"
                    f" axis, got shape {np.shape(leaf)}"
                )
        traced = isinstance(batch.indices, Tracer)
        keep = batch.mask if traced else np.asarray(batch.mask)
        inside = jnp.where(keep, batch.indices, 0)

        def rows(leaf: Any) -> Array:
            on_host = isinstance(leaf, np.ndarray) and not traced
            xp, places = (np, np.asarray(inside)) if on_host else (jnp, inside)
            taken = (leaf if on_host else jnp.asarray(leaf))[places]
            shown = keep.reshape((-1,) + (1,) * (taken.ndim - 1))
            return xp.where(shown, taken, xp.zeros((), taken.dtype))

        taken = jax.tree.map(rows, data)
        return taken[0] if len(data) == 1 else taken


def padded_batch(chosen: Array, padded_size: int) -> Batch:
    """The chosen records, bool of shape (n,), as a batch of ``padded_size``, emptied if more."""
    number = len(chosen)
    overflowed = jnp.sum(chosen, dtype=jnp.int32) > padded_size
    (indices,) = jnp.nonzero(chosen, size=padded_size, fill_value=number)
    mask = (indices < number) & ~overflowed
    return Batch(jnp.where(mask, indices, number).astype(jnp.int32), mask, overflowed)
