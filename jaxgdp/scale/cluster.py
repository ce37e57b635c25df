"""Work handed to the workers of a Dask cluster, each of which has to be the same as here."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from ..numerics.optional import Client, missing
from .template import versions

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

# times that the scheduler may give a task up, because as many workers as it allows died while they
# ran it
_PATIENCE = 5


class OtherWorker(RuntimeError, ValueError):
    """A worker is not the same as the client: raised while it runs, by which client was given."""


def _same_as(there: dict[str, str]) -> None:
    """Refuse to compute on a worker that would compute other numbers than the client.

    Raises:
        OtherWorker: it has other versions, or no doubles; names which.
    """
    import jax

    from ..numerics.precision import with_float64

    here = versions()
    other = [
        f"{name} {here[name]} (the client has {there[name]})"
        for name in there
        if here[name] != there[name]
    ]
    if other:
        raise OtherWorker(f"this worker has {', '.join(other)}")
    if with_float64(lambda: jax.numpy.ones(1).dtype)() != "float64":
        raise OtherWorker("this worker cannot compute in 64 bits")


def _checked(there: dict[str, str], function: Callable[[_Item], _Result], item: _Item) -> _Result:
    _same_as(there)
    return function(item)


@contextlib.contextmanager
def connected(client: Client | str | None) -> Iterator[Client | None]:
    """The client itself, or one for the address of a scheduler, closed at the end; None for None.

    Raises:
        ValueError: it is neither.
        ImportError: ``distributed`` is missing.
    """
    if client is None:
        yield None
        return
    try:
        from distributed import Client
    except ImportError:
        raise missing("client= needs dask.distributed", "scale") from None
    if isinstance(client, Client):
        yield client
    elif isinstance(client, str):
        with Client(client, set_as_default=False) as mine:
            yield mine
    else:
        raise ValueError(
            "client must be a dask.distributed.Client or the address of a scheduler, got"
            f" {client!r}"
        )


def each(
    client: Client | str, function: Callable[[_Item], _Result], items: Sequence[_Item]
) -> Iterator[_Result]:
    """``function`` of every item by the workers, in the order in which they finish.

    If a worker dies, another worker takes over its task; an error of the function itself
    ends everything.

    Args:
        client: ``dask.distributed.Client`` or the address of a scheduler.
        function: picklable, of one argument.
        items: its arguments.

    Raises:
        OtherWorker: a worker has other versions than the client, or cannot compute in 64 bits.
    """
    with connected(client) as cluster:
        from distributed import KilledWorker, as_completed

        assert cluster is not None
        name = getattr(getattr(function, "func", function), "__name__", "task").strip("_")
        task = functools.partial(_checked, versions(), function)
        tasks = cluster.map(task, items, pure=False, key=f"jaxgdp-{name}")
        pending = {future.key: (future, item, 1) for future, item in zip(tasks, items, strict=True)}
        finished = as_completed(tasks, loop=cluster.loop)
        # whoever holds on to what is done has it done again when its worker dies: only what is
        # pending is held
        del tasks
        try:
            for future in finished:
                item, attempt = pending.pop(future.key)[1:]
                try:
                    result = future.result()
                except KilledWorker:
                    if attempt == _PATIENCE:
                        raise
                    other = cluster.submit(task, item, pure=False, key=f"{future.key}-{attempt}")
                    pending[other.key] = other, item, attempt + 1
                    finished.add(other)
                    continue
                del future
                yield result
        finally:
            cluster.cancel([future for future, _, _ in pending.values()])
