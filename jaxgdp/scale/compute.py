"""The chunks that a store lacks are computed: here, or by the workers of a Dask client."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..numerics.optional import Client
from .layout import Layout
from .lock import locked
from .store import Store, opened, opened_or_made
from .template import Template

Compute = Callable[..., dict[str, Any]]
Count = Callable[[int], Any]


def compute_missing(
    path: Path,
    template: Template,
    compute: Compute,
    skip: Count,
    progress: Count,
    client: Client | str | None = None,
) -> None:
    """Compute and write whatever a store lacks. A store that is whole is not even locked.

    Args:
        path: of the store, made if there is none.
        template: of the store.
        compute: (region of the grid, progress) → variable → array of the region's shape.
        skip: called with the number of settings that are there already.
        progress: called with the number of settings finished, as they finish.
        client: ``dask.distributed.Client`` whose workers can read and write the same path; None
            computes here.

    Raises:
        ValueError: the store belongs to another question or version.
        OSError: names a file that cannot be written or is damaged, or the lock of another process
            that writes this store.
    """
    store = opened(path, template)
    if store is not None and not store.missing():
        skip(math.prod(template.layout.shape))
        return
    with locked(path):
        store = opened_or_made(path, template)
        missing = store.missing()
        fresh = isinstance(missing, range)  # (all chunks, which nobody counts one by one)
        whole = math.prod(template.layout.shape)
        skip(0 if fresh else whole - sum(map(template.layout.settings, missing)))
        if client is None:
            for chunk in missing:
                store.write(chunk, compute(template.layout.region(chunk), progress))
            return
        from .cluster import each

        task = functools.partial(_compute_chunk, path, store.names, template.layout, compute)
        for chunk in each(client, task, missing):
            progress(template.layout.settings(chunk))


def _compute_chunk(
    path: Path, names: tuple[str, ...], layout: Layout, compute: Compute, chunk: int
) -> int:
    """The task of a worker: one chunk, written where every other one is."""
    _opened_once(path, names, layout).write(chunk, compute(layout.region(chunk), None))
    return chunk


# (a worker writes many chunks of one store, whose arrays it opens once)
_opened_once = functools.lru_cache(maxsize=2)(Store)
