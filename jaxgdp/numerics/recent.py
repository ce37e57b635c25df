"""A cache of recent values: as many as fit into a number of bytes."""

from __future__ import annotations

import collections
import threading
import weakref
from collections.abc import Callable, Hashable
from typing import Any

import jax


class Recent:
    """Results by key, the least recently used forgotten first; the latest one always stays.

    Args:
        most: bytes of the arrays in all of them; an array that several share counts once.
        each: what the place of an array takes, however small it is.
    """

    def __init__(self, most: int, each: int = 0):
        self.most, self.each = most, each
        self._kept: collections.OrderedDict[Hashable, Any] = collections.OrderedDict()
        self._holders: collections.Counter[int] = collections.Counter()
        self._bytes = 0
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], Any], room: int = 0) -> Any:
        """The pytree under ``key``, made where it is missing; the same one for all threads.

        Args:
            key: of the pytree.
            make: makes it.
            room: bytes that it takes, about, for which others are forgotten before it is made.
        """
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        self.shrink(self.most - room)
        made = make()
        with self._lock:
            if key not in self._kept:
                self._kept[key] = made
                self._count(made, 1)
            self._kept.move_to_end(key)
            made = self._kept[key]
            while len(self._kept) > 1 and self._bytes > self.most:
                self._count(self._kept.popitem(last=False)[1], -1)
        return made

    def shrink(self, most: int) -> None:
        """Forget the least recently used ones, so that so many bytes are left at most."""
        with self._lock:
            while self._kept and self._bytes > most:
                self._count(self._kept.popitem(last=False)[1], -1)

    def _count(self, result: Any, change: int) -> None:
        """One more holder, or one less, of every array in a result."""
        leaves = jax.tree.leaves(result)
        self._bytes += change * self.each * len(leaves)
        for leaf in leaves:
            before = self._holders[id(leaf)]
            self._holders[id(leaf)] = before + change
            if before == 0 or before + change == 0:
                self._bytes += change * getattr(leaf, "nbytes", 0)
            if before + change == 0:
                del self._holders[id(leaf)]


class Shared:
    """Arrays by key, for as long as other objects hold them."""

    def __init__(self):
        self._arrays: weakref.WeakValueDictionary[Hashable, Any] = weakref.WeakValueDictionary()
        self._lock = threading.Lock()

    def pair(self, key: Hashable, make: Callable[[], tuple[Any, Any]]) -> tuple[Any, Any]:
        """The two arrays under ``key``, made where they are missing; the same for all threads."""
        known = self._known(key)
        if known is not None:
            return known
        made = make()
        with self._lock:
            known = self._known(key)
            if known is None:
                self._arrays[key, 0], self._arrays[key, 1] = made
        return made if known is None else known

    def _known(self, key: Hashable) -> tuple[Any, Any] | None:
        first, second = self._arrays.get((key, 0)), self._arrays.get((key, 1))
        return None if first is None or second is None else (first, second)
