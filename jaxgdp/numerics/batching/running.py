"""Functions of single arrays run for many rows of them at once."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np

from .rows import Batched, Unbatchable, elementwise, lifted


def assign(array: np.ndarray, index: Any, value: Any) -> None:
    """``array[index] = value``."""
    array[index] = value


def of_last_axis(function: Callable) -> Callable:
    """A function of NumPy or SciPy along the last axis, of rows as well."""

    @functools.wraps(function, updated=())
    def along(a: Any, *args: Any) -> Any:
        return (
            Batched(function(a.value, *args), a.depth) if type(a) is Batched else function(a, *args)
        )

    return along


def chosen(condition: Batched, yes: Callable, no: Callable, operands: tuple) -> Any:
    """``yes(*operands)`` in rows where the scalar condition holds, ``no(*operands)`` in others."""
    if np.all(condition.value):
        return yes(*operands)
    if not np.any(condition.value):
        return no(*operands)
    return jax.tree.map(
        lambda a, b: elementwise(np.where, condition, a, b), yes(*operands), no(*operands)
    )


class _Here(threading.local):
    depth, rows, room = 0, 1, 1


_HERE = _Here()


def here() -> int:
    """Axes of rows around what runs now."""
    return _HERE.depth


def inside() -> bool:
    """Whether rows are run together here."""
    return _HERE.room > 1


@contextlib.contextmanager
def _deeper(depth: int, rows: int, room: int) -> Iterator[None]:
    before = _HERE.depth, _HERE.rows, _HERE.room
    _HERE.depth, _HERE.rows, _HERE.room = depth, before[1] * rows, room
    try:
        yield
    finally:
        _HERE.depth, _HERE.rows, _HERE.room = before


def mapped(function: Callable, args: Any, room: int | None = None, alike: tuple = ()) -> Any:
    """``function`` over the leading axis of all arguments, as many rows at once as have room; what
    is ``alike`` (plain arrays) goes first.
    """
    leaves, structure = jax.tree.flatten(args)
    room = room or _HERE.room
    number, level = len(leaves[0]), _HERE.depth
    together = max(1, room // _HERE.rows)
    parts, shape = [], None
    for start in range(0, number, together):
        part = slice(start, min(start + together, number))
        count = part.stop - part.start
        # (a single row needs no axis)
        rows = [leaf[start] if count == 1 else _rows(leaf, level, part) for leaf in leaves]
        with _deeper(level + (count > 1), count, room):
            first = alike if count == 1 else jax.tree.map(lambda a: _alike(a, level), alike)
            found = function(*first, *jax.tree.unflatten(structure, rows))
        found, shape = jax.tree.flatten(found)
        parts.append([_as_axis(leaf, level, count) for leaf in found])
    columns = parts[0]
    if len(parts) > 1:
        columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    assert shape is not None
    return jax.tree.unflatten(shape, columns)


def _rows(leaf: Any, level: int, part: slice) -> Batched:
    """Some of the rows of an array, as the newest axis of rows."""
    if type(leaf) is Batched:
        value = lifted(leaf, level, leaf.ndim)
    else:
        value = leaf.reshape((1,) * level + leaf.shape)
    return Batched(value[(slice(None),) * level + (part,)], level + 1)


def _alike(leaf: Any, level: int) -> Batched:
    """A plain array that all rows of the newest axis have."""
    return Batched(np.reshape(leaf, (1,) * (level + 1) + np.shape(leaf)), level + 1)


def _as_axis(leaf: Any, level: int, count: int) -> Any:
    """The newest axis of rows as the first axis of an array."""
    if type(leaf) is not Batched:
        leaf = np.asarray(leaf)
        return np.broadcast_to(leaf, (count, *leaf.shape))
    value = lifted(leaf, level + 1, leaf.ndim)
    if value.shape[level] != count:
        value = np.broadcast_to(value, value.shape[:level] + (count,) + value.shape[level + 1 :])
    return Batched(value, level) if level else value


def run(function: Callable, columns: tuple, room: int, alike: tuple = ()) -> Any:
    """``function`` of every row of ``columns`` (plain arrays in any tree), stacked: many rows at
    once where there is a rule for all that it does, else one by one.

    Args:
        function: of what is alike in all rows, and of the rows of all columns.
        columns: a tuple of trees of plain arrays with a leading axis of rows.
        room: how many rows at once, those of ``namespace.vmap`` within counted; with room for a
            single one nothing is run together.
        alike: a tuple of trees of plain arrays that every row has: what is computed of them alone
            is computed once for rows that are run together.

    Raises:
        Exception: whatever ``function`` raises but :class:`Unbatchable`.
    """
    if room > 1:
        try:
            return mapped(function, columns, room, alike)
        except Exception as error:
            if not _misses_a_rule(error):
                raise
    leaves, structure = jax.tree.flatten(columns)
    found = [
        function(*alike, *jax.tree.unflatten(structure, [leaf[i] for leaf in leaves]))
        for i in range(len(leaves[0]))
    ]
    return jax.tree.map(lambda *a: np.stack(a), *found)


def _misses_a_rule(error: BaseException | None) -> bool:
    """Whether an error is :class:`Unbatchable`, or what a library that met rows made of one."""
    while error is not None and not isinstance(error, Unbatchable):
        error = error.__cause__ or error.__context__
    return error is not None
