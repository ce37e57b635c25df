"""Rules of NumPy's functions for rows of arrays: each as if it were called for every row."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from .rows import Batched, Unbatchable, depth_of, elementwise, implements, in_rows, lifted

_NONE = object()


def _reduction(function: Callable) -> Callable:
    """Over one axis, several or all."""

    def rule(
        a: Batched, axis: Any = None, keepdims: bool = False, *, initial: Any = _NONE
    ) -> Batched:
        value, depth = a.value, a.depth
        if axis is None:
            if keepdims and a.ndim != 1:
                raise Unbatchable("all axes are to be kept")
            value, axis = value.reshape(*value.shape[:depth], -1), -1
        elif isinstance(axis, tuple):
            axis = tuple(one + depth if one >= 0 else one for one in axis)
        elif axis >= 0:
            axis += depth
        more = {} if initial is _NONE else {"initial": initial}
        return Batched(function(value, axis=axis, keepdims=keepdims, **more), depth)

    return rule


def _along(function: Callable) -> Callable:
    """From an array to one of the same shape, along an axis, by default the only one."""

    def rule(a: Batched, axis: Any = -1, **kwargs: Any) -> Batched:
        if axis is None and a.ndim != 1:
            raise Unbatchable("more than one axis")
        axis = -1 if axis is None else axis
        return Batched(
            function(a.value, axis=axis + a.depth if axis >= 0 else axis, **kwargs), a.depth
        )

    return rule


def _moved(function: Callable) -> Callable:
    """Functions that name two axes."""

    def rule(a: Batched, first: int, second: int) -> Batched:
        shift = lambda axis: axis + a.depth if axis >= 0 else axis
        return Batched(function(a.value, shift(first), shift(second)), a.depth)

    return rule


@implements(np.concatenate)
def _concatenate(arrays: Iterable, axis: int = 0) -> Batched:
    values, depth = in_rows(list(arrays))
    return Batched(np.concatenate(values, axis=axis + depth if axis >= 0 else axis), depth)


@implements(np.stack)
def _stack(arrays: Iterable, axis: int = 0) -> Batched:
    values, depth = in_rows(list(arrays))
    return Batched(np.stack(values, axis=axis + depth if axis >= 0 else axis), depth)


@implements(np.append)
def _append(a: Any, values: Any) -> Batched:
    one_axis = lambda x: np.reshape(x, (-1,))
    return _concatenate([one_axis(a), one_axis(values)])


@implements(np.reshape)
def _reshape(a: Batched, shape: Any) -> Batched:
    shape = shape if isinstance(shape, tuple) else (shape,)
    return Batched(a.value.reshape(a.value.shape[: a.depth] + shape), a.depth)


@implements(np.broadcast_to)
def _broadcast_to(a: Batched, shape: Any) -> Batched:
    value = lifted(a, a.depth, len(shape))
    return Batched(np.broadcast_to(value, value.shape[: a.depth] + tuple(shape)), a.depth)


@implements(np.pad)
def _pad(a: Batched, widths: Any, mode: Any = "constant", constant_values: Any = 0.0):
    widths = [(0, 0)] * a.depth + [
        tuple(pair) for pair in np.broadcast_to(np.asarray(widths), (a.ndim, 2)).tolist()
    ]
    value = a.value
    if mode != "constant":
        return Batched(np.pad(value, widths, mode=mode), a.depth)
    shape = [n + before + after for n, (before, after) in zip(value.shape, widths, strict=True)]
    out = np.full(shape, constant_values, value.dtype)
    out[
        tuple(slice(before, before + n) for n, (before, _) in zip(value.shape, widths, strict=True))
    ] = value
    return Batched(out, a.depth)


@implements(np.take_along_axis)
def _take_along_axis(a: Any, index: Any, axis: int) -> Batched:
    depth = depth_of((a, index))
    rank = np.ndim(a)
    values: list[Any] = [
        lifted(x, depth, rank) if type(x) is Batched else x[(None,) * depth] for x in (a, index)
    ]
    return Batched(np.take_along_axis(*values, axis=axis + depth if axis >= 0 else axis), depth)


def _row_by_row(function: Callable) -> Callable:
    """A one-dimensional search, for which NumPy has no axis, of each row."""

    def rule(*arrays: Any, **constants: Any) -> Batched:
        values, depth = in_rows(arrays)
        rows = values[0].shape[:depth]
        found = [function(*(v[at] for v in values), **constants) for at in np.ndindex(rows)]
        return Batched(np.stack(found).reshape(rows + np.shape(found[0])), depth)

    return rule


@implements(np.einsum)
def _einsum(subscripts: str, *arrays: Any) -> Batched:
    depth = depth_of(arrays)
    inputs, output = subscripts.split("->")
    subscripts = ",".join("..." + part for part in inputs.split(",")) + "->..." + output
    return Batched(np.einsum(subscripts, *(lifted(a, depth, np.ndim(a)) for a in arrays)), depth)


@implements(np.polyval)
def _polyval(coefficients: Iterable, x: Any) -> Any:
    value = 0.0 * x
    for coefficient in coefficients:
        value = value * x + coefficient
    return value


@implements(np.diff)
def _diff(a: Batched, axis: int = -1, **ends: Any) -> Batched:
    if axis != -1 or any(np.ndim(end) for end in ends.values()):
        raise Unbatchable("differences along another axis than the last one")
    return Batched(np.diff(a.value, axis=-1, **ends), a.depth)


for _function in (np.all, np.any, np.argmax, np.argmin, np.max, np.mean, np.min, np.sum):
    implements(_function)(_reduction(_function))
for _function in (np.argsort, np.cumsum):
    implements(_function)(_along(_function))
for _function in (np.moveaxis, np.swapaxes):
    implements(_function)(_moved(_function))
for _function in (np.interp, np.searchsorted):
    implements(_function)(_row_by_row(_function))
implements(np.full_like)(lambda a, value: np.zeros(a.shape, a.dtype) + value)
implements(np.ones_like)(lambda a: np.ones(a.shape, a.dtype))
implements(np.zeros_like)(lambda a: np.zeros(a.shape, a.dtype))
implements(np.ndim)(lambda a: a.ndim)
implements(np.shape)(lambda a: a.shape)
implements(np.round)(lambda a: elementwise(np.round, a))
implements(np.where)(lambda condition, yes, no: elementwise(np.where, condition, yes, no))
