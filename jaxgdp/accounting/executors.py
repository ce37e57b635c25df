"""Who computes: the same stages run by NumPy, one setting after the other, or compiled by JAX, many settings at a time.

The eager executor answers at once and is best for few settings; the compiled one pays tens of seconds of compiling once per lattice
shape and is then many times faster per setting. Both give the same brackets up to the rounding that they allow for.
"""

from __future__ import annotations

import functools
import os
from typing import Any, Protocol

import jax
import numpy as np

from . import stages
from .curve import gaussian_parts
from .half_curve import Sparse


class Executor(Protocol):
    """What runs the stages over the leading axis of their arguments (host arrays in, host arrays out).

    Attributes:
        name: "eager" or "compiled".
        padded: whether chunks should all have the same size.
    """

    name: str
    padded: bool

    def parts(self, groups) -> Any: ...

    def plan_whole(self, groups, depths, rtol, faintest, seen, anchor, pieces) -> Any: ...

    def plan_threshold(self, groups, threshold, rtol, faintest, share) -> Any: ...

    def half(self, groups, plans, reverse, tables, shape) -> Any: ...

    def read(self, parts, plus, minus, rates, kind, pieces) -> Any: ...


def _grid(shape, tables):
    return shape if tables is None else Sparse(tables, shape)


def _in_pieces(halves, pieces):
    return jax.tree.map(lambda a: a.reshape((-1, pieces) + a.shape[1:]), halves)


def _looped(stage):
    """A stage over the leading axis of its arguments, row after row."""

    def rows(*columns):
        leaves, structure = jax.tree.flatten(columns)
        leaves = [np.asarray(leaf) for leaf in leaves]
        with np.errstate(all="ignore"):
            found = [stage(*jax.tree.unflatten(structure, [leaf[i] for leaf in leaves])) for i in range(len(leaves[0]))]
        return jax.tree.map(lambda *a: np.stack(a), *found)

    return rows


class Eager:
    """NumPy and SciPy, setting by setting; nothing is compiled."""

    name, padded = "eager", False

    def parts(self, groups):
        return _looped(gaussian_parts)(groups)

    def plan_whole(self, groups, depths, rtol, faintest, seen, anchor, pieces):
        stage = lambda g, d, f, s, a: stages.plan_whole(g, d, rtol, f, s, a, pieces)  # noqa: E731
        return _looped(stage)(groups, depths, faintest, seen, anchor)

    def plan_threshold(self, groups, threshold, rtol, faintest, share):
        stage = lambda g, t, f, s: stages.plan_threshold(g, t, rtol, f, s)  # noqa: E731
        return _looped(stage)(groups, threshold, faintest, share)

    def half(self, groups, plans, reverse, tables, shape):
        grid = _grid(shape, tables)
        return _looped(lambda g, p: stages.half(g, p, grid, np.bool_(reverse)))(groups, plans)

    def read(self, parts, plus, minus, rates, kind, pieces):
        return _looped(lambda *mine: stages.read(*mine, kind))(parts, *_in_pieces((plus, minus), pieces), rates)


class Compiled:
    """JAX: each stage is batched with ``vmap`` and compiled once for each shape."""

    name, padded = "compiled", True

    def parts(self, groups):
        return jax.tree.map(np.asarray, _parts(groups))

    def plan_whole(self, groups, depths, rtol, faintest, seen, anchor, pieces):
        return _plan_whole(groups, depths, rtol, faintest, seen, anchor, pieces=pieces)

    def plan_threshold(self, groups, threshold, rtol, faintest, share):
        return _plan_threshold(groups, threshold, rtol, faintest, share)

    def half(self, groups, plans, reverse, tables, shape):
        return _half(groups, plans, np.asarray(reverse), tables, shape=shape)

    def read(self, parts, plus, minus, rates, kind, pieces):
        return _read(parts, plus, minus, rates, kind=kind, pieces=pieces)


@jax.jit
def _parts(groups):
    return jax.vmap(gaussian_parts)(groups)


@functools.partial(jax.jit, static_argnames=("pieces",))
def _plan_whole(groups, depths, rtol, faintest, seen, anchor, *, pieces):
    one = lambda g, d, f, s, a: stages.plan_whole(g, d, rtol, f, s, a, pieces)  # noqa: E731
    return jax.vmap(one)(groups, depths, faintest, seen, anchor)


@jax.jit
def _plan_threshold(groups, threshold, rtol, faintest, share):
    one = lambda g, t, f, s: stages.plan_threshold(g, t, rtol, f, s)  # noqa: E731
    return jax.vmap(one)(groups, threshold, faintest, share)


@functools.partial(jax.jit, static_argnames=("shape",))
def _half(groups, plans, reverse, tables, *, shape):
    """``shape`` is a ``Dense`` lattice, or the number of vertices of a ``Sparse`` one, whose ``tables`` are arguments."""
    return jax.vmap(lambda groups, plan: stages.half(groups, plan, _grid(shape, tables), reverse))(groups, plans)


@functools.partial(jax.jit, static_argnames=("kind", "pieces"))
def _read(parts, plus, minus, rates, *, kind, pieces):
    """The halves hold ``pieces`` pieces of each setting in a row."""
    return jax.vmap(lambda *mine: stages.read(*mine, kind))(parts, *_in_pieces((plus, minus), pieces), rates)


EAGER, COMPILED = Eager(), Compiled()
BY_NAME: dict[str, Executor] = {"eager": EAGER, "compiled": COMPILED}
MANY = 128  # looks at the smallest lattice that take as long as compiling a program
MANY_ONCE_COMPILED = 4  # … as a compiled chunk


def by_name(name: str | None) -> Executor | None:
    """The executor asked for by an argument, else by the environment variable ``JAXGDP_EXECUTOR``; None where neither decides.

    Raises:
        ValueError: the name is none of "eager", "compiled" and "auto".
    """
    name = name or os.environ.get("JAXGDP_EXECUTOR") or "auto"
    if name not in (*BY_NAME, "auto"):
        raise ValueError(f"executor must be one of 'eager', 'compiled', 'auto', got {name!r}")
    return BY_NAME.get(name)


def choose(work: float, compiled: bool, done: float = 0.0) -> Executor:
    """The executor that is done first with as much work as so many looks at the smallest lattice.

    Given whether the programs are compiled already, and how much work of such batches has been ``done`` one by one before: where
    that adds up to what compiling takes, compiling pays for the batches to come.
    """
    many = MANY_ONCE_COMPILED if compiled else max(MANY - done, MANY_ONCE_COMPILED)
    return COMPILED if work > many else EAGER
