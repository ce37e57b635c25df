"""``vmap`` for NumPy: a function of single arrays run once for many rows of them, and not row after
row.

Most of what NumPy spends on small arrays is spent on each call and not on its numbers. Inside
:func:`run` the arguments of a function are :class:`Batched`: an array with axes of rows in front,
of which the function sees one row. Operators, ufuncs and the functions in ``batching_rules`` act on
all rows at once. What a function may not do with a row of many (to ask whether it is true, to make
a plain array or a number of it, to hand it to a function without a rule) raises
:class:`Unbatchable`, and :func:`run` goes through the rows one by one."""

from __future__ import annotations

import contextlib
import functools
import itertools
import threading
from typing import Any

import jax
import numpy as np

ONE_THREAD = 2**18  # products of numbers in a product of matrices that BLAS leaves to one thread
_ROWS = 24  # of the left matrix in one of them


class Unbatchable(TypeError):
    """What a function asked of an array is not known for many rows at once."""


class Batched:
    """Rows of arrays that look like one.

    Attributes:
        value: all of them, the axes of rows in front; such an axis has length one where all its
            rows are the same.
        depth: number of axes of rows, one for each ``vmap`` around.
    """

    __slots__ = ("depth", "value")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, value, depth: int):
        self.value, self.depth = value, depth

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.shape[self.depth :]

    @property
    def ndim(self) -> int:
        return self.value.ndim - self.depth

    @property
    def dtype(self):
        return self.value.dtype

    @property
    def real(self) -> Batched:
        return Batched(self.value.real, self.depth)

    @property
    def imag(self) -> Batched:
        return Batched(self.value.imag, self.depth)

    def astype(self, kind) -> Batched:
        return Batched(self.value.astype(kind), self.depth)

    def reshape(self, *shape) -> Any:
        return np.reshape(self, shape[0] if len(shape) == 1 else shape)  # type: ignore[call-overload]

    def all(self, axis=None) -> Any:
        return np.all(self, axis=axis)  # type: ignore[call-overload]

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index):
        parts = index if type(index) is tuple else (index,)
        if any(type(part) is Batched for part in parts):
            return gathered(self, parts)
        return Batched(self.value[(slice(None),) * self.depth + parts], self.depth)

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        if method == "accumulate":
            (a,), axis = inputs, kwargs.get("axis", 0)
            return Batched(
                ufunc.accumulate(a.value, axis=axis + a.depth if axis >= 0 else axis), a.depth
            )
        if method != "__call__" or kwargs:
            raise Unbatchable(f"{ufunc.__name__} with {method} and {sorted(kwargs)}")
        return product(*inputs) if ufunc is np.matmul else elementwise(ufunc, *inputs)

    def __array_function__(self, function, types, args, kwargs):
        from .batching_rules import RULES  # (which needs this class)

        if (rule := RULES.get(function)) is None:
            raise Unbatchable(f"{function.__name__} has no rule for rows")
        return rule(*args, **kwargs)

    def _refuse(self, *_, **__):
        raise Unbatchable("an array of many rows is neither a number nor a plain array")

    __array__ = __bool__ = __float__ = __int__ = __index__ = __complex__ = _refuse


def _operator(ufunc, swapped=False):
    def operator(self, other):
        kind = type(other)
        # (most have nothing to bring together)
        if kind is float or (
            kind is Batched and other.depth == self.depth and other.value.ndim == self.value.ndim
        ):
            one, two = self.value, other.value if kind is Batched else other
            return Batched(ufunc(two, one) if swapped else ufunc(one, two), self.depth)
        return elementwise(ufunc, other, self) if swapped else elementwise(ufunc, self, other)

    return operator


for _name, _ufunc in {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.true_divide, "floordiv": np.floor_divide,
    "mod": np.remainder, "pow": np.power, "and": np.bitwise_and, "or": np.bitwise_or,
}.items():  # fmt: skip
    setattr(Batched, f"__{_name}__", _operator(_ufunc))
    setattr(Batched, f"__r{_name}__", _operator(_ufunc, swapped=True))
for _name, _ufunc in {
    "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal, "ne": np.not_equal,
}.items():  # fmt: skip
    setattr(Batched, f"__{_name}__", _operator(_ufunc))
for _name, _ufunc in {"neg": np.negative, "abs": np.absolute, "invert": np.invert}.items():
    setattr(
        Batched, f"__{_name}__", lambda self, ufunc=_ufunc: Batched(ufunc(self.value), self.depth)
    )
Batched.__matmul__ = lambda self, other: product(self, other)  # type: ignore[attr-defined]
Batched.__rmatmul__ = lambda self, other: product(other, self)  # type: ignore[attr-defined]


# --- how rows of several arrays are brought together ----------------------------------------------


def depth_of(arrays) -> int:
    """Axes of rows that several arrays have together."""
    return max(a.depth if type(a) is Batched else 0 for a in arrays)


def lifted(a, depth: int, rank: int) -> Any:
    """The plain array of ``a`` with so many axes of rows and, between them and its own axes, as
    many of length one as make ``rank``.

    What has no rows stays as it is: its axes are the last ones anyway.
    """
    if type(a) is not Batched:
        return a
    value, mine = a.value, a.depth
    more = depth - mine + rank - (value.ndim - mine)
    return value.reshape(value.shape[:mine] + (1,) * more + value.shape[mine:]) if more else value


def in_rows(arrays):
    """Plain arrays with all axes of rows of full length, and how many there are."""
    depth = depth_of(arrays)
    arrays = [a if type(a) is Batched else np.asarray(a) for a in arrays]
    rows = rows_of(arrays, depth)
    return [np.broadcast_to(lifted(a, depth, a.ndim), rows + a.shape) for a in arrays], depth


def rows_of(arrays, depth: int) -> tuple[int, ...]:
    """Lengths of the axes of rows of several arrays together."""
    return np.broadcast_shapes(
        (1,) * depth,
        *(lifted(a, depth, a.ndim).shape[:depth] for a in arrays if type(a) is Batched),
    )


def elementwise(function, *arrays):
    """A function of numbers, on all of several arrays that are broadcast against each other."""
    depth = rank = 0
    for a in arrays:
        kind = type(a)
        if kind is Batched:
            mine = a.depth
            own = a.value.ndim - mine
            depth = mine if mine > depth else depth
        else:
            own = 0 if kind is float else np.ndim(a)
        rank = own if own > rank else rank
    return Batched(
        function(*[lifted(a, depth, rank) if type(a) is Batched else a for a in arrays]), depth
    )


def product(a, b):
    """Matrix product of arrays of one or two axes."""
    depth, alone = depth_of((a, b)), (np.ndim(a) == 1, np.ndim(b) == 1)
    if type(b) is not Batched and np.ndim(b) == 2:
        rows = in_one_thread(np.ascontiguousarray(a.value).reshape(-1, a.value.shape[-1]), b)
        return Batched(rows.reshape(*a.value.shape[:-1], b.shape[-1]), depth)
    left = lifted(a, depth, np.ndim(a))
    right = lifted(b, depth, np.ndim(b))
    left = left[..., None, :] if alone[0] else left
    right = right[..., None] if alone[1] else right
    found = np.matmul(left, right)
    found = found[..., 0] if alone[1] else found
    return Batched(
        found[..., 0] if alone == (True, True) else found[..., 0, :] if alone[0] else found, depth
    )


def in_one_thread(a, b):
    """``a @ b`` in products so small that BLAS leaves each to one thread: of two on busy cores one
    would wait for the other.
    """
    (number, inner), width = a.shape, b.shape[1]
    some = min(number, _ROWS)
    step = max(1, ONE_THREAD // max(1, some * inner))
    if number == some and width <= step:
        return a @ b
    found = np.empty((number, width), np.result_type(a, b))
    for first, k in itertools.product(range(0, number, _ROWS), range(0, width, step)):
        found[first : first + _ROWS, k : k + step] = a[first : first + _ROWS] @ b[:, k : k + step]
    return found


def _grid(rows, depth: int, rank: int):
    """For each axis of rows the index of the row, to go with an index of ``rank`` axes."""
    return tuple(
        np.arange(n).reshape((n,) + (1,) * (depth - 1 - i + rank)) for i, n in enumerate(rows)
    )


def gathered(a, index):
    """``a[index]`` where some of the index has rows: whole numbers for the first axes, one each."""
    if any(type(part) is slice or part is None or part is Ellipsis for part in index):
        raise Unbatchable("an index with rows beside a slice")
    if any(np.asarray(getattr(part, "value", part)).dtype.kind not in "iu" for part in index):
        raise Unbatchable("an index with rows that is no whole number")
    depth, rank = depth_of((a, *index)), max(np.ndim(part) for part in index)
    places = tuple(lifted(part, depth, rank) for part in index)
    if type(a) is not Batched:
        return Batched(a[places], depth)
    value = lifted(a, depth, a.ndim)
    return Batched(value[_grid(value.shape[:depth], depth, rank) + places], depth)


def take(a, index) -> Any:
    """``a[index]`` for whole numbers, whichever of the two has rows."""
    if type(index) is Batched:
        return gathered(a, (index,))
    return a[index] if type(a) is Batched else np.take(a, index, axis=0)


def updated(put, a, index, value):
    """A copy of ``a`` in which ``put(array, index, value)`` has been done in every row."""
    parts = index if type(index) is tuple else (index,)
    depth = depth_of((a, value, *parts))
    a = a if type(a) is Batched else np.asarray(a)
    moving = any(type(part) is Batched for part in parts)
    all_rows = rows_of((a, value, *parts), depth)
    out = np.array(np.broadcast_to(lifted(a, depth, a.ndim), all_rows + a.shape))
    if moving:
        rank = max(np.ndim(part) for part in parts)
        places = _grid(all_rows, depth, rank) + tuple(lifted(part, depth, rank) for part in parts)
    else:
        places = (slice(None),) * depth + parts
    own = out[places].ndim - depth
    put(out, places, lifted(value, depth, own))
    return Batched(out, depth)


# --- running functions ----------------------------------------------------------------------------


def assign(array, index, value):
    """``array[index] = value``."""
    array[index] = value


def of_last_axis(function):
    """What NumPy or SciPy does along the last axis, of rows as well."""

    @functools.wraps(function, updated=())
    def along(a, *args):
        return (
            Batched(function(a.value, *args), a.depth) if type(a) is Batched else function(a, *args)
        )

    return along


def chosen(condition: Batched, yes, no, operands):
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
def _deeper(depth: int, rows: int, room: int):
    before = _HERE.depth, _HERE.rows, _HERE.room
    _HERE.depth, _HERE.rows, _HERE.room = depth, before[1] * rows, room
    try:
        yield
    finally:
        _HERE.depth, _HERE.rows, _HERE.room = before


def mapped(function, args, room: int | None = None):
    """``function`` over the leading axis of all its arguments, so many rows at once as there is
    room for (with those around).
    """
    leaves, structure = jax.tree.flatten(args)
    room = room or _HERE.room
    number, level = len(leaves[0]), _HERE.depth
    together = max(1, room // _HERE.rows)
    parts = []
    for start in range(0, number, together):
        part = slice(start, min(start + together, number))
        count = part.stop - part.start
        # (a single row needs no axis)
        rows = [leaf[start] if count == 1 else _rows(leaf, level, part) for leaf in leaves]
        with _deeper(level + (count > 1), count, room):
            found = function(*jax.tree.unflatten(structure, rows))
        found, shape = jax.tree.flatten(found)
        parts.append([_as_axis(leaf, level, count) for leaf in found])
    columns = (
        parts[0]
        if len(parts) == 1
        else [np.concatenate(column) for column in zip(*parts, strict=True)]
    )
    return jax.tree.unflatten(shape, columns)


def _rows(leaf, level: int, part: slice) -> Batched:
    """Some of the rows of an array, as the newest axis of rows."""
    value = (
        lifted(leaf, level, leaf.ndim)
        if type(leaf) is Batched
        else leaf.reshape((1,) * level + leaf.shape)
    )
    return Batched(value[(slice(None),) * level + (part,)], level + 1)


def _as_axis(leaf, level: int, count: int):
    """The newest axis of rows as the first axis of an array."""
    if type(leaf) is not Batched:
        leaf = np.asarray(leaf)
        return np.broadcast_to(leaf, (count, *leaf.shape))
    value = lifted(leaf, level + 1, leaf.ndim)
    if value.shape[level] != count:
        value = np.broadcast_to(value, value.shape[:level] + (count,) + value.shape[level + 1 :])
    return Batched(value, level) if level else value


def run(function, columns, room: int):
    """``function`` of every row of ``columns`` (plain arrays in any tree), stacked: many rows at
    once where it can be, else one by one.

    Args:
        function: of the rows of all columns. columns: a tuple.
        room: how many rows at once, those of ``namespace.vmap`` within counted; with room for a
            single one nothing is run together.
    """
    if room > 1:
        try:
            return mapped(function, columns, room)
        except (TypeError, AttributeError, ValueError, IndexError):
            # what a mechanism does is not known for rows, or wrong: then it is found to be so for a
            # single one
            pass
    leaves, structure = jax.tree.flatten(columns)
    found = [
        function(*jax.tree.unflatten(structure, [leaf[i] for leaf in leaves]))
        for i in range(len(leaves[0]))
    ]
    return jax.tree.map(lambda *a: np.stack(a), *found)
