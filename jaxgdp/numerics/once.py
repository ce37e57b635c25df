"""Results that several readings of the same arrays need, kept by the very arrays they come from.

A function marked :func:`once` is an ordinary one until :func:`sharing` sets for how long results
are kept. Traced results are shared within one trace: the program has it once."""

from __future__ import annotations

import contextlib
import functools
import struct
import threading
from collections.abc import Callable, Hashable, Iterator
from typing import Any, Protocol

import jax
import jax.extend.core
import numpy as np

from . import batching
from .namespace import is_jax


class ResultCache(Protocol):
    """The place of the kept results: ``recent.Recent``, or :class:`Everything`."""

    def get(self, key: Hashable, make: Callable[[], Any]) -> Any: ...


class Everything(dict):
    """Results by key, all of them: for as long as one setting is read off."""

    def get(self, key: Hashable, make: Callable[[], Any]) -> Any:  # type: ignore[override]
        """The value of ``key``, made if it is missing."""
        if key not in self:
            self[key] = make()
        return self[key]


class _Here(threading.local):
    store: ResultCache | None = None


_HERE = _Here()


@contextlib.contextmanager
def sharing(store: ResultCache | None = None) -> Iterator[None]:
    """Functions marked :func:`once` keep their results in ``store`` (none: until the end)."""
    before = _HERE.store
    if before is None:
        _HERE.store = Everything() if store is None else store
    try:
        yield
    finally:
        _HERE.store = before


def _same(leaf: Any) -> Hashable:
    """The key of an argument: numbers by value, to the last bit, and arrays by themselves."""
    if isinstance(leaf, np.generic):
        return type(leaf), leaf.tobytes()
    if isinstance(leaf, (bool, int)):
        return type(leaf), leaf
    return struct.pack("d", leaf) if isinstance(leaf, float) else id(leaf)


def once(function: Callable) -> Callable:
    """``function`` of pytrees of arrays, run once for the same arrays within :func:`sharing`."""

    @functools.wraps(function)
    def kept(*args: Any, **constants: Any) -> Any:
        if (store := _HERE.store) is None:
            return function(*args, **constants)
        leaves, structure = jax.tree.flatten(args)
        where = jax.extend.core.get_opaque_trace_state() if is_jax(*leaves) else batching.here()
        key = function, structure, tuple(map(_same, leaves)), tuple(sorted(constants.items()))
        # (arrays that are kept are no other ones' memory)
        made_where, _, result = store.get(
            key, lambda: (where, leaves, function(*args, **constants))
        )
        return result if made_where == where else function(*args, **constants)

    return kept
