"""Arrays of many rows with the shape of one, and what NumPy's functions do with them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

import numpy as np

from .products import in_one_thread, matmul

# what NumPy's functions do with rows, each as if it were called for every row
RULES: dict[Callable, Callable] = {}


def implements(*functions: Callable):
    """Register what follows as the rule for functions of NumPy (see ``rules``)."""

    def registered(rule: Callable) -> Callable:
        RULES.update(dict.fromkeys(functions, rule))
        return rule

    return registered


class Unbatchable(TypeError):
    """A function did with an array what has no rule for many rows at once."""


class UnknownAttribute(Unbatchable, AttributeError):
    """A function requested an attribute of arrays that rows do not have."""


class Batched:
    """Rows of arrays with the shape of one row.

    Attributes:
        value: all of them, the axes of rows in front; such an axis has length one where all its
            rows are the same.
        depth: number of axes of rows, one for each ``vmap`` around.
    """

    __slots__ = ("depth", "value")

    def __init__(self, value: Any, depth: int):
        self.value, self.depth = value, depth

    def __getattr__(self, name: str) -> NoReturn:
        raise UnknownAttribute(f"{name} of an array has no rule for rows")

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.shape[self.depth :]

    @property
    def ndim(self) -> int:
        return self.value.ndim - self.depth

    @property
    def dtype(self) -> np.dtype:
        return self.value.dtype

    @property
    def real(self) -> Batched:
        return Batched(self.value.real, self.depth)

    @property
    def imag(self) -> Batched:
        return Batched(self.value.imag, self.depth)

    def astype(self, kind: Any) -> Batched:
        return Batched(self.value.astype(kind), self.depth)

    def reshape(self, *shape: Any) -> Any:
        return np.reshape(self, shape[0] if len(shape) == 1 else shape)  # type: ignore[call-overload]

    def all(self, axis: Any = None) -> Any:
        return np.all(self, axis=axis)  # type: ignore[call-overload]

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an array without axes")
        return self.shape[0]

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index: Any) -> Batched:
        parts = index if type(index) is tuple else (index,)
        if any(type(part) is Batched for part in parts):
            return gathered(self, parts)
        return Batched(self.value[(slice(None),) * self.depth + parts], self.depth)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any):
        if method == "accumulate" and not set(kwargs) - {"axis"}:
            (a,), axis = inputs, kwargs.get("axis", 0)
            return Batched(
                ufunc.accumulate(a.value, axis=axis + a.depth if axis >= 0 else axis), a.depth
            )
        if method != "__call__" or kwargs or ufunc.nout > 1:
            raise Unbatchable(f"{ufunc.__name__} with {method} and {sorted(kwargs)}")
        return product(*inputs) if ufunc is np.matmul else elementwise(ufunc, *inputs)

    def __array_function__(self, function: Callable, types: Any, args: tuple, kwargs: dict):
        rule = RULES.get(function)
        if rule is None:
            raise Unbatchable(f"{function.__name__} has no rule for rows")
        return by_rule(rule, function.__name__, args, kwargs)

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise Unbatchable("an array of many rows is neither a number nor a plain array")

    # what would make a number, a plain array or a key of it, or change it
    __array__ = _refuse
    __jax_array__ = property(_refuse)  # (JAX asks whether there is one)
    __bool__ = __float__ = __int__ = __index__ = __complex__ = _refuse
    __hash__ = __format__ = __round__ = __divmod__ = __rdivmod__ = _refuse  # type: ignore[assignment]
    __setitem__ = _refuse


def by_rule(rule: Callable, name: str, args: tuple, kwargs: dict) -> Any:
    """``rule(*args, **kwargs)``.

    Raises:
        Unbatchable: the rule does not take these arguments.
    """
    try:
        return rule(*args, **kwargs)
    except TypeError as error:
        if isinstance(error, Unbatchable) or _takes(rule, args, kwargs):
            raise
        raise Unbatchable(f"the rule of {name} for rows does not take these arguments") from error


def _takes(rule: Callable, args: tuple, kwargs: dict) -> bool:
    try:
        inspect.signature(rule).bind(*args, **kwargs)
    except TypeError:
        return False
    return True


def _operator(ufunc: np.ufunc, swapped: bool = False) -> Callable:
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
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.true_divide,
    "floordiv": np.floor_divide, "mod": np.remainder, "pow": np.power, "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor, "lshift": np.left_shift, "rshift": np.right_shift,
}.items():  # fmt: skip
    setattr(Batched, f"__{_name}__", _operator(_ufunc))
    setattr(Batched, f"__r{_name}__", _operator(_ufunc, swapped=True))
for _name, _ufunc in {
    "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal,
    "ne": np.not_equal,
}.items():  # fmt: skip
    setattr(Batched, f"__{_name}__", _operator(_ufunc))
for _name, _ufunc in {
    "neg": np.negative, "pos": np.positive, "abs": np.absolute, "invert": np.invert,
}.items():  # fmt: skip
    setattr(
        Batched, f"__{_name}__", lambda self, ufunc=_ufunc: Batched(ufunc(self.value), self.depth)
    )
Batched.__matmul__ = lambda self, other: product(self, other)  # type: ignore[attr-defined]
Batched.__rmatmul__ = lambda self, other: product(other, self)  # type: ignore[attr-defined]


# how rows of several arrays are brought together


def depth_of(arrays: Iterable) -> int:
    """Axes of rows that several arrays have together."""
    return max(a.depth if type(a) is Batched else 0 for a in arrays)


def lifted(a: Any, depth: int, rank: int) -> Any:
    """The plain array of ``a`` with so many axes of rows, and ``rank`` axes of its own behind them.

    An array without rows stays as it is: its axes are the last ones anyway.
    """
    if type(a) is not Batched:
        return a
    value, mine = a.value, a.depth
    more = depth - mine + rank - (value.ndim - mine)
    return value.reshape(value.shape[:mine] + (1,) * more + value.shape[mine:]) if more else value


def in_rows(arrays: Iterable) -> tuple[list[np.ndarray], int]:
    """Plain arrays with all axes of rows of full length, and how many there are."""
    depth = depth_of(arrays)
    arrays = [a if type(a) is Batched else np.asarray(a) for a in arrays]
    rows = rows_of(arrays, depth)
    return [np.broadcast_to(lifted(a, depth, a.ndim), rows + a.shape) for a in arrays], depth


def rows_of(arrays: Iterable, depth: int) -> tuple[int, ...]:
    """Lengths of the axes of rows of several arrays together."""
    return np.broadcast_shapes(
        (1,) * depth,
        *(lifted(a, depth, a.ndim).shape[:depth] for a in arrays if type(a) is Batched),
    )


def elementwise(function: Callable, *arrays: Any) -> Batched:
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


def product(a: Any, b: Any) -> Batched:
    """Matrix product of arrays of one or two axes."""
    depth, alone = depth_of((a, b)), (np.ndim(a) == 1, np.ndim(b) == 1)
    if type(b) is not Batched and np.ndim(b) == 2:
        rows = in_one_thread(np.ascontiguousarray(a.value).reshape(-1, a.value.shape[-1]), b)
        return Batched(rows.reshape(*a.value.shape[:-1], b.shape[-1]), depth)
    left = lifted(a, depth, np.ndim(a))
    right = lifted(b, depth, np.ndim(b))
    left = left[..., None, :] if alone[0] else left
    right = right[..., None] if alone[1] else right
    found = matmul(left, right)
    found = found[..., 0] if alone[1] else found
    return Batched(
        found[..., 0] if alone == (True, True) else found[..., 0, :] if alone[0] else found, depth
    )


def _grid(rows: tuple[int, ...], depth: int, rank: int) -> tuple[np.ndarray, ...]:
    """For each axis of rows the index of the row, to go with an index of ``rank`` axes."""
    return tuple(
        np.arange(n).reshape((n,) + (1,) * (depth - 1 - i + rank)) for i, n in enumerate(rows)
    )


def gathered(a: Any, index: tuple) -> Batched:
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


def take(a: Any, index: Any) -> Any:
    """``a[index]`` for whole numbers, whichever of the two has rows."""
    if type(index) is Batched:
        return gathered(a, (index,))
    return a[index] if type(a) is Batched else np.take(a, index, axis=0)


def updated(put: Callable, a: Any, index: Any, value: Any) -> Batched:
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
