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
_MEMORY_OF_CHUNK = 2**30  # bytes; less than half of them were in use at any time
_MOST_CHUNKS = 16


def number() -> int:
    """Devices of this process, of the backend that JAX computes on; 1 where the user has chosen one
    (``jax.default_device``).
    """
    return (
        1
        if getattr(jax.config, "jax_default_device", None) is not None
        else jax.local_device_count()
    )


def _device() -> Any:
    """The first device that JAX computes on."""
    chosen = getattr(jax.config, "jax_default_device", None)
    known = chosen if isinstance(chosen, str) else None
    return chosen if known is None and chosen else jax.local_devices(backend=known)[0]


def chunks_of_each() -> int:
    """Chunks of a compiled program that a device works on at once: one where it is a CPU, whose
    caches a chunk is made for; as many as have room in the memory of an accelerator, which loses
    time with each start of a program.
    """
    device = _device()
    if device.platform == "cpu":
        return 1
    room = (device.memory_stats() or {}).get("bytes_limit", 0)
    return min(max(1, room // _MEMORY_OF_CHUNK), _MOST_CHUNKS)


def accelerated() -> bool:
    """Whether JAX computes on an accelerator, from which arrays are not moved without need."""
    return _device().platform != "cpu"


def joined(parts: list, number: int) -> Any:
    """Trees of one structure in so many rows, row after row, the first ones repeated to fill them,
    inside a compiled function.
    """
    (length,) = {leaf.shape[0] for leaf in jax.tree.leaves(parts[0])}
    if len(parts) == 1 and length == number:
        return parts[0]
    repeats = max(-(number // -length) - len(parts), 0)
    every = [*parts, *parts[:1] * repeats]
    return jax.tree.map(lambda *a: jnp.concatenate(a)[:number], *every)


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
