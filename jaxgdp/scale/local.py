"""Workers on this machine, each on cores of its own."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..numerics.optional import missing

if TYPE_CHECKING:
    from distributed import Client, Worker

# what Dask does beside the work: with its own settings an idle worker takes 4 % of a core and its
# scheduler 5 %, with these 1 and 2 %
_QUIET = {
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "2s",
    "distributed.worker.profile.enabled": False,
}


def cores() -> list[int]:
    """Numbers of the cores this process may use; none where the system does not say."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []


def share(here: list[int], workers: int, position: int) -> list[int]:
    """The cores of one of so many workers: all of them where there are fewer cores than workers.

    Example:
        >>> share([0, 1, 2, 3, 4], 2, 1)
        [1, 3]
    """
    return here[position % workers :: workers] if len(here) >= workers else here


@contextlib.contextmanager
def workers(number: int) -> Iterator[Client]:
    """A ``dask.distributed.Client`` of so many processes on this machine, one thread each.

    XLA and BLAS use all available cores, so each process is kept to its share before it loads them;
    one that dies is replaced. Dask's sampling profiler is off and its monitors tick slowly: with
    few cores they cost as much as a twentieth of the work.

    Raises:
        ImportError: ``distributed`` is missing.
    """
    try:
        from dask import config
        from distributed import Client, LocalCluster, WorkerPlugin
    except ImportError:
        raise missing("workers need dask.distributed", "scale") from None
    import jax

    here = cores()

    class OwnCores(WorkerPlugin):
        """Keeps a worker to its cores."""

        def setup(self, worker: Worker) -> None:
            mine = share(here, number, int(worker.name))
            if mine:
                os.sched_setaffinity(0, mine)

    cache = {
        name.upper(): str(value)
        for name in ("jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs")
        if (value := getattr(jax.config, name)) is not None
    }
    settings: dict[str, Any] = {
        "n_workers": number,
        "threads_per_worker": 1,
        "dashboard_address": ":0",
        "env": cache,
    }
    with (
        config.set(_QUIET),
        LocalCluster(**settings) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        client.register_plugin(OwnCores(), name="own-cores")
        yield client
