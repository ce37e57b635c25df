"""A store is filled: here, chunk after chunk, or by the workers of a Dask client."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

import numpy as np

from .lock import locked
from .store import Store, opened, opened_or_made
from .template import Template

Compute = Callable[..., dict[str, np.ndarray]]


def fill(path: Path, template: Template, compute: Compute, already, progress, client=None) -> None:
    """Compute and write whatever a store lacks; nothing at all, not even a lock, where it is whole.

    Args:
        path: of the store, made if there is none. template: of it.
        compute: (region of the grid, progress) → variable → array of the region's shape.
        already: called with the number of settings that are there. progress: called with the number
            finished, as they finish.
        client: ``dask.distributed.Client`` whose workers see the same path; None computes here.

    Raises:
        ValueError: the store belongs to another question or version.
        OSError: names a file that cannot be written, is damaged, or says that another process
            writes this store.
    """
    store = opened(path, template)
    if store is not None and not store.missing():
        already(int(np.prod(template.layout.shape)))
        return
    with locked(path):
        store = opened_or_made(path, template)
        missing = store.missing()
        already(int(np.prod(template.layout.shape)) - sum(map(template.layout.settings, missing)))
        if client is None:
            for chunk in missing:
                store.write(chunk, compute(template.layout.region(chunk), progress))
            return
        from .cluster import each

        task = functools.partial(_fill_one, path, store.names, template.layout, compute)
        for chunk in each(client, task, missing):
            progress(template.layout.settings(chunk))


def _fill_one(path, names, layout, compute, chunk) -> int:
    """What a worker does: one chunk, written where every other one is."""
    _kept(path, names, layout).write(chunk, compute(layout.region(chunk), None))
    return chunk


# (a worker writes many chunks of one store, whose arrays it opens once)
_kept = functools.lru_cache(maxsize=2)(Store)
