"""What NumPy's functions do with rows of arrays (``batching``): each as if it were called for every
row.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .batching import Batched, Unbatchable, depth_of, elementwise, in_rows, lifted


def _reduction(function):
    """Over one axis, several or all."""

    def rule(a, axis=None, keepdims=False):
        value, depth = a.value, a.depth
        if axis is None:
            if keepdims and a.ndim != 1:
                raise Unbatchable("all axes are to be kept")
            value, axis = value.reshape(*value.shape[:depth], -1), -1
        elif isinstance(axis, tuple):
            axis = tuple(one + depth if one >= 0 else one for one in axis)
        elif axis >= 0:
            axis += depth
        return Batched(function(value, axis=axis, keepdims=keepdims), depth)

    return rule


def _along(function):
    """From an array to one of the same shape, along an axis; along the only one if none is
    named.
    """

    def rule(a, axis=-1, **kwargs):
        if axis is None and a.ndim != 1:
            raise Unbatchable("more than one axis")
        axis = -1 if axis is None else axis
        return Batched(
            function(a.value, axis=axis + a.depth if axis >= 0 else axis, **kwargs), a.depth
        )

    return rule


def _moved(function):
    """What names two axes."""

    def rule(a, first, second):
        shift = lambda axis: axis + a.depth if axis >= 0 else axis
        return Batched(function(a.value, shift(first), shift(second)), a.depth)

    return rule


def _concatenate(arrays, axis=0):
    values, depth = in_rows(list(arrays))
    return Batched(np.concatenate(values, axis=axis + depth if axis >= 0 else axis), depth)


def _stack(arrays, axis=0):
    values, depth = in_rows(list(arrays))
    return Batched(np.stack(values, axis=axis + depth if axis >= 0 else axis), depth)


def _append(a, values):
    one_axis = lambda x: np.reshape(x, (-1,))
    return _concatenate([one_axis(a), one_axis(values)])


def _reshape(a, shape):
    shape = shape if isinstance(shape, tuple) else (shape,)
    return Batched(a.value.reshape(a.value.shape[: a.depth] + shape), a.depth)


def _broadcast_to(a, shape):
    value = lifted(a, a.depth, len(shape))
    return Batched(np.broadcast_to(value, value.shape[: a.depth] + tuple(shape)), a.depth)


def _pad(a, widths, mode: Any = "constant", constant_values: Any = 0.0):
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


def _take_along_axis(a, index, axis):
    depth = depth_of((a, index))
    rank = np.ndim(a)
    values: list[Any] = [
        lifted(x, depth, rank) if type(x) is Batched else x[(None,) * depth] for x in (a, index)
    ]
    return Batched(np.take_along_axis(*values, axis=axis + depth if axis >= 0 else axis), depth)


def _row_by_row(function):
    """Of one-dimensional searches, for which NumPy has no axis: ``function`` of each row."""

    def rule(*arrays):
        values, depth = in_rows(arrays)
        rows = values[0].shape[:depth]
        found = [function(*(value[at] for value in values)) for at in np.ndindex(rows)]
        return Batched(np.stack(found).reshape(rows + np.shape(found[0])), depth)

    return rule


def _einsum(subscripts, *arrays):
    depth = depth_of(arrays)
    inputs, output = subscripts.split("->")
    subscripts = ",".join("..." + part for part in inputs.split(",")) + "->..." + output
    return Batched(np.einsum(subscripts, *(lifted(a, depth, np.ndim(a)) for a in arrays)), depth)


def _polyval(coefficients, x):
    value = 0.0 * x
    for coefficient in coefficients:
        value = value * x + coefficient
    return value


def _diff(a, axis=-1, **ends):
    if axis != -1 or any(np.ndim(end) for end in ends.values()):
        raise Unbatchable("differences but along the last axis")
    return Batched(np.diff(a.value, axis=-1, **ends), a.depth)


RULES = {
    np.all: _reduction(np.all),
    np.any: _reduction(np.any),
    np.append: _append,
    np.argmax: _reduction(np.argmax),
    np.argmin: _reduction(np.argmin),
    np.argsort: _along(np.argsort),
    np.broadcast_to: _broadcast_to,
    np.concatenate: _concatenate,
    np.cumsum: _along(np.cumsum),
    np.diff: _diff,
    np.einsum: _einsum,
    np.full_like: lambda a, value: np.zeros(a.shape, a.dtype) + value,
    np.interp: _row_by_row(np.interp),
    np.max: _reduction(np.max),
    np.mean: _reduction(np.mean),
    np.min: _reduction(np.min),
    np.moveaxis: _moved(np.moveaxis),
    np.ndim: lambda a: a.ndim,
    np.ones_like: lambda a: np.ones(a.shape, a.dtype),
    np.pad: _pad,
    np.polyval: _polyval,
    np.reshape: _reshape,
    np.round: lambda a: elementwise(np.round, a),
    np.searchsorted: _row_by_row(np.searchsorted),
    np.shape: lambda a: a.shape,
    np.stack: _stack,
    np.sum: _reduction(np.sum),
    np.swapaxes: _moved(np.swapaxes),
    np.take_along_axis: _take_along_axis,
    np.where: lambda *arrays: elementwise(np.where, *arrays),
    np.zeros_like: lambda a: np.zeros(a.shape, a.dtype),
}
