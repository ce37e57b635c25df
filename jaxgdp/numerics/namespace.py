"""One array namespace for NumPy and JAX: every function follows the arrays it is given.

Between a mechanism and its numbers everything is written once, against this module (``from
..numerics import namespace as xp``). Given NumPy arrays and numbers only, a function answers at
once with NumPy and SciPy, and nothing is compiled; as soon as one argument is a JAX array or a
tracer, it is the JAX function of the same name. For functions in which the two libraries differ
(``vmap`` over an axis, bounded loops, indexed updates, conditionals, a derivative rule) there is
one helper here for both.

Code that uses it may not rely on what only JAX does: gathers are not clamped to the array, updates
out of bounds are not dropped."""

from __future__ import annotations

import builtins
import functools
import operator
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.fft
import scipy.special
from jax.core import Tracer

from . import batching
from .batching import RULES, Batched

inf, nan, pi = np.inf, np.nan, np.pi

_KNOWN: dict[type, bool] = dict.fromkeys(
    (np.ndarray, np.float64, float, int, bool, np.bool_), False
)


def _of_jax(value: Any) -> bool:
    kind = type(value)
    known = _KNOWN.get(kind)
    if known is None:
        if kind in (list, tuple):
            return builtins.any(_of_jax(item) for item in value)
        known = _KNOWN[kind] = isinstance(value, (jax.Array, Tracer))
    return known


def is_jax(*values: Any) -> bool:
    """Whether any of the values (arrays, numbers, lists of them) is a JAX array or a tracer."""
    return builtins.any(_of_jax(value) for value in values)


def tree_is_jax(tree: Any) -> bool:
    """Whether any leaf of a pytree is a JAX array or a tracer."""
    return builtins.any(_of_jax(leaf) for leaf in jax.tree.leaves(tree))


def _either(by_numpy: Callable, by_jax: Callable) -> Any:
    # (what NumPy would ask of rows, without the way there)
    elementwise = functools.partial(batching.elementwise, by_numpy)
    rule = elementwise if isinstance(by_numpy, np.ufunc) else RULES.get(by_numpy, by_numpy)
    name = getattr(by_numpy, "__name__", "function")

    @functools.wraps(by_numpy, assigned=("__name__",), updated=())
    def function(*args: Any, **kwargs: Any):
        chosen = by_numpy
        for value in args:
            kind = type(value)
            if kind is Batched:
                chosen = rule
            elif _KNOWN.get(kind) is not False and _of_jax(value):
                return by_jax(*args, **kwargs)
        try:
            return chosen(*args, **kwargs)
        except TypeError:
            if chosen is by_numpy:
                raise
            return batching.by_rule(rule, name, args, kwargs)

    function.__doc__ = f"``{name}`` of the library that the arguments belong to."
    return function


# named alike in both libraries
abs = _either(np.abs, jnp.abs)
all = _either(np.all, jnp.all)
append = _either(np.append, jnp.append)
arctan2 = _either(np.arctan2, jnp.arctan2)
argmin = _either(np.argmin, jnp.argmin)
argmax = _either(np.argmax, jnp.argmax)
argsort = _either(np.argsort, jnp.argsort)
broadcast_to = _either(np.broadcast_to, jnp.broadcast_to)
ceil = _either(np.ceil, jnp.ceil)
clip = _either(lambda a, low, high: np.minimum(np.maximum(a, low), high), jnp.clip)
concatenate = _either(np.concatenate, jnp.concatenate)
cos = _either(np.cos, jnp.cos)
cumsum = _either(np.cumsum, jnp.cumsum)
diff = _either(np.diff, jnp.diff)
exp = _either(np.exp, jnp.exp)
expm1 = _either(np.expm1, jnp.expm1)
floor = _either(np.floor, jnp.floor)
full_like = _either(np.full_like, jnp.full_like)
interp = _either(np.interp, jnp.interp)
isfinite = _either(np.isfinite, jnp.isfinite)
isinf = _either(np.isinf, jnp.isinf)
isnan = _either(np.isnan, jnp.isnan)
log = _either(np.log, jnp.log)
log1p = _either(np.log1p, jnp.log1p)
logaddexp = _either(np.logaddexp, jnp.logaddexp)
max = _either(np.max, jnp.max)
maximum = _either(np.maximum, jnp.maximum)
mean = _either(np.mean, jnp.mean)
min = _either(np.min, jnp.min)
minimum = _either(np.minimum, jnp.minimum)
mod = _either(np.mod, jnp.mod)
moveaxis = _either(np.moveaxis, jnp.moveaxis)
ones_like = _either(np.ones_like, jnp.ones_like)
pad = _either(np.pad, jnp.pad)
polyval = _either(np.polyval, jnp.polyval)
reshape = _either(np.reshape, jnp.reshape)
round = _either(np.round, jnp.round)
searchsorted = _either(np.searchsorted, jnp.searchsorted)
sign = _either(np.sign, jnp.sign)
sin = _either(np.sin, jnp.sin)
sqrt = _either(np.sqrt, jnp.sqrt)
stack = _either(np.stack, jnp.stack)
sum = _either(np.sum, jnp.sum)
swapaxes = _either(np.swapaxes, jnp.swapaxes)
take = _either(batching.take, lambda a, i: jnp.take(jnp.asarray(a), i, axis=0))
take_along_axis = _either(np.take_along_axis, jnp.take_along_axis)
where = _either(np.where, jnp.where)
zeros_like = _either(np.zeros_like, jnp.zeros_like)
any = _either(np.any, jnp.any)

# made from nothing: NumPy's, which are constants to a JAX function
arange, array, full, linspace = np.arange, np.array, np.full, np.linspace
ones, zeros, shape, ndim = np.ones, np.zeros, np.shape, np.ndim

asarray = _either(
    lambda a, dtype=None: (
        (a if dtype is None else a.astype(dtype)) if type(a) is Batched else np.asarray(a, dtype)
    ),
    jnp.asarray,
)

# of SciPy and of jax.scipy, jax.nn, jax.lax
erfc = _either(scipy.special.erfc, jax.scipy.special.erfc)
ndtri = _either(scipy.special.ndtri, jax.scipy.special.ndtri)
rfft = _either(batching.of_last_axis(scipy.fft.rfft), jnp.fft.rfft)
irfft = _either(batching.of_last_axis(scipy.fft.irfft), jnp.fft.irfft)
complex = _either(lambda re, im: re + 1j * im, jax.lax.complex)
cummax = _either(np.maximum.accumulate, jax.lax.cummax)
cumulative_logaddexp = _either(
    np.logaddexp.accumulate, functools.partial(jax.lax.associative_scan, jnp.logaddexp)
)
stop_gradient = _either(lambda a: a, jax.lax.stop_gradient)


def einsum(subscripts: str, *operands: Any):
    """``einsum`` of the library that the operands belong to."""
    return (jnp if is_jax(*operands) else np).einsum(subscripts, *operands)


def matmul(a: Any, b: Any):
    """``a @ b``, which NumPy works out in one thread."""
    if is_jax(a, b) or type(a) is Batched or type(b) is Batched:
        return operator.matmul(a, b)
    return batching.matmul(np.asarray(a), np.asarray(b))


def by_table(a: Any, table: Any):
    """``a @ table`` for a table of two axes that all rows have in common; each row has the same
    bits whichever others there are.
    """
    if is_jax(a, table) or type(a) is Batched:
        return a @ table
    return batching.in_one_thread(np.reshape(a, (-1, np.shape(a)[-1])), table).reshape(
        *np.shape(a)[:-1], table.shape[-1]
    )


def logsumexp(a: Any, axis: int | None = None):
    """log Σ e^a along an axis, −∞ where nothing is finite."""
    if _of_jax(a):
        return jax.nn.logsumexp(a, axis=axis)
    top = np.max(a, axis=axis, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        total = np.log(np.sum(np.exp(a - top), axis=axis))
    return total + np.reshape(top, np.shape(total))


def _updated(put: Callable, a: Any, index: Any, value: Any) -> Any:
    if Batched in builtins.map(type, (a, value, *(index if type(index) is tuple else (index,)))):
        return batching.updated(put, a, index, value)
    a = np.array(a)
    put(a, index, value)
    return a


def at_set(a: Any, index: Any, value: Any):
    """A copy of ``a`` with ``a[index] = value``."""
    if is_jax(a, index, value):
        return jnp.asarray(a).at[index].set(value)
    return _updated(batching.assign, a, index, value)


def at_add(a: Any, index: Any, value: Any):
    """A copy of ``a`` with ``value`` added at ``index``, as often as an index occurs."""
    if is_jax(a, index, value):
        return jnp.asarray(a).at[index].add(value)
    return _updated(np.add.at, a, index, value)


def at_max(a: Any, index: Any, value: Any):
    """A copy of ``a`` with the largest ``value`` at each ``index``; without a derivative."""
    if is_jax(a, index, value):
        return jnp.asarray(jax.lax.stop_gradient(a)).at[index].max(jax.lax.stop_gradient(value))
    return _updated(np.maximum.at, a, index, value)


def cond(condition: Any, yes: Callable, no: Callable, *operands: Any):
    """``yes(*operands)`` where the scalar condition holds, else ``no(*operands)``."""
    if _of_jax(condition):
        return jax.lax.cond(condition, yes, no, *operands)
    if type(condition) is Batched:
        return batching.chosen(condition, yes, no, operands)
    return yes(*operands) if condition else no(*operands)


def fori_loop(first: int, after: int, body: Callable, state: Any, done: Callable | None = None):
    """``state = body(i, state)`` for whole numbers from ``first`` up to ``after``.

    ``done(state)`` is True where nothing changes any more: the loop ends when it is True
    everywhere, and has no derivative from outputs to inputs then."""
    if tree_is_jax(state):
        if done is None:
            return jax.lax.fori_loop(first, after, body, state)
        return _jax_loop_until(first, after, body, state, done)
    for i in range(first, after):
        state = body(i, state)
        if done is not None and np.all(getattr(finished := done(state), "value", finished)):
            break
    return state


def _jax_loop_until(first: int, after: int, body: Callable, state: Any, done: Callable) -> Any:
    """The loop of :func:`fori_loop` that ends when it is done everywhere."""

    def more(carried: tuple) -> Any:
        return (carried[0] < after) & ~jnp.all(done(carried[1]))

    def step(carried: tuple) -> tuple:
        i, now = carried
        return i + 1, body(i, now)

    # (as a body leaves its types, from the first round on)
    types = jax.eval_shape(functools.partial(body, first), state)
    state = jax.tree.map(lambda a, after: jnp.asarray(a, after.dtype), state, types)
    return jax.lax.while_loop(more, step, (jnp.asarray(first), state))[1]


def vmap(function: Callable):
    """``function`` over the leading axis: JAX's, all rows at once in ``batching.run``, a loop."""

    @functools.wraps(function)
    def mapped(*args: Any):
        leaves, structure = jax.tree.flatten(args)
        if builtins.any(_of_jax(leaf) for leaf in leaves):
            return jax.vmap(function)(*args)
        if batching.inside():
            return batching.mapped(function, args)
        rows = [function(*jax.tree.unflatten(structure, row)) for row in zip(*leaves, strict=True)]
        columns = [jax.tree.leaves(row) for row in rows]
        return jax.tree.unflatten(
            jax.tree.structure(rows[0]), [stack(column) for column in zip(*columns, strict=True)]
        )

    return mapped


def lax_map(function: Callable, rows: Any):
    """``function`` of one row of ``rows`` after the other."""
    if _of_jax(rows):
        return jax.lax.map(function, rows)
    return np.stack([function(row) for row in rows])


def custom_jvp(function: Callable):
    """``jax.custom_jvp`` for JAX arguments, the plain function for others, with ``defjvp``."""
    ruled = jax.custom_jvp(function)

    @functools.wraps(function)
    def either(*args: Any):
        return ruled(*args) if tree_is_jax(args) else function(*args)

    either_: Any = either
    either_.defjvp = ruled.defjvp
    return either_
