"""What was made lately, kept for the next time: as much of it as fits into so many bytes."""

from __future__ import annotations

import collections
import threading
from collections.abc import Callable, Hashable
from typing import Any

import jax


class Recent:
    """Results by key, the least recently used of them forgotten first; the latest one stays, however large it is.

    Args:
        most: bytes of the arrays in all of them; an array that several share counts once.
    """

    def __init__(self, most: int):
        self.most = most
        self._kept: collections.OrderedDict[Hashable, Any] = collections.OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """The pytree of arrays under ``key``, made where it is not there; to two threads that make it at once, the same one."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        made = make()
        with self._lock:
            made = self._kept.setdefault(key, made)
            self._kept.move_to_end(key)
            while len(self._kept) > 1 and self._size() > self.most:
                self._kept.popitem(last=False)
        return made

    def _size(self) -> int:
        arrays = {id(array): array.nbytes for array in jax.tree.leaves(list(self._kept.values()))}
        return sum(arrays.values())
