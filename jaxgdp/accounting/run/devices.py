"""A batch over all devices of a process: each has its share of rows, and nothing passes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

_AXIS = "settings"


def number() -> int:
    """Devices of this process, of the backend that JAX computes on; 1 where the user has chosen one
    (``jax.default_device``).
    """
    return (
        1
        if getattr(jax.config, "jax_default_device", None) is not None
        else jax.local_device_count()
    )


@functools.cache
def _mesh() -> Mesh:
    return Mesh(np.array(jax.local_devices()), (_AXIS,))


def placed(rows: Any) -> Any:
    """Rows on the devices that will work on them, where they divide evenly."""
    several = number()
    if several == 1 or any(np.shape(leaf)[0] % several for leaf in jax.tree.leaves(rows)):
        return rows
    return jax.device_put(rows, NamedSharding(_mesh(), P(_AXIS)))


def mapped(one: Callable, rows: Any, others: Any = ()) -> Any:
    """``one(row, others)`` over the leading axis of ``rows``, inside a compiled function.

    Each device runs the same program on its rows; where they do not divide evenly the first is
    repeated."""
    batched = lambda rows, others: jax.vmap(lambda row: one(row, others))(rows)
    several = number()
    if several == 1:
        return batched(rows, others)
    (length,) = {leaf.shape[0] for leaf in jax.tree.leaves(rows)}
    spare = -length % several
    if spare:
        rows = jax.tree.map(lambda a: jnp.concatenate([a, jnp.repeat(a[:1], spare, axis=0)]), rows)
    split = jax.shard_map(
        batched, mesh=_mesh(), in_specs=(P(_AXIS), P()), out_specs=P(_AXIS), check_vma=False
    )
    found = split(rows, others)
    return jax.tree.map(lambda a: a[:length], found) if spare else found
