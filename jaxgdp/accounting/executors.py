"""Who computes: the same stages run by NumPy, one setting after the other, or compiled by JAX, many settings at a time.

The eager executor answers at once and is best for few settings; the compiled one pays tens of seconds of compiling once per lattice
shape and is then many times faster per setting. Both give the same brackets up to the rounding that they allow for. The one by
products is compiled, too, and without any FFT, for accelerators that have none of 64 bits.
"""

from __future__ import annotations

import functools
import os
from typing import Any, Protocol

import jax
import numpy as np

from . import devices, stages
from .curve import gaussian_parts
from .half_curve import Sparse


class Executor(Protocol):
    """What runs the stages over the leading axis of their arguments (host arrays in, host arrays out).

    Attributes:
        name: "eager", "compiled" or "product".
        padded: whether chunks should all have the same size.
        devices: over how many devices it spreads a chunk.
    """

    name: str
    padded: bool

    @property
    def devices(self) -> int: ...

    def parts(self, groups) -> Any: ...

    def plan_whole(self, groups, depths, rtol, faintest, seen, anchor, pieces) -> Any: ...

    def plan_threshold(self, groups, threshold, rtol, faintest, share) -> Any: ...

    def half(self, groups, plans, reverse, tables, shape) -> Any: ...

    def read(self, parts, plus, minus, rates, kind, pieces) -> Any: ...


def _grid(shape, tables, product=False):
    return shape if tables is None else Sparse(tables, shape, product)


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

    name, padded, devices = "eager", False, 1

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
    """JAX: each stage is batched with ``vmap``, spread over all devices of the process and compiled once for each shape."""

    name, padded, product = "compiled", True, False

    @property
    def devices(self) -> int:
        return devices.number()

    def parts(self, groups):
        return jax.tree.map(np.asarray, _parts(groups))

    def plan_whole(self, groups, depths, rtol, faintest, seen, anchor, pieces):
        rows = devices.placed((groups, depths, faintest, seen, anchor))
        return _plan_whole(*rows, rtol, pieces=pieces)

    def plan_threshold(self, groups, threshold, rtol, faintest, share):
        return _plan_threshold(*devices.placed((groups, threshold, faintest, share)), rtol)

    def half(self, groups, plans, reverse, tables, shape):
        rows = devices.placed((groups, plans))
        return _half(*rows, np.asarray(reverse), tables, shape=shape, product=self.product)

    def read(self, parts, plus, minus, rates, kind, pieces):
        return _read(*devices.placed((parts, plus, minus, rates)), kind=kind, pieces=pieces)


class Product(Compiled):
    """Compiled without an FFT: the short inverse transform of the low-frequency method is a product of matrices.

    Dense lattices, which have long transforms, are left to NumPy on the host.
    """

    name, product = "product", True

    def half(self, groups, plans, reverse, tables, shape):
        if tables is None:
            return EAGER.half(groups, plans, reverse, tables, shape)
        return super().half(groups, plans, reverse, tables, shape)


@jax.jit
def _parts(groups):
    return jax.vmap(gaussian_parts)(groups)


@functools.partial(jax.jit, static_argnames=("pieces",))
def _plan_whole(groups, depths, faintest, seen, anchor, rtol, *, pieces):
    def one(row, rtol):
        groups, depths, faintest, seen, anchor = row
        return stages.plan_whole(groups, depths, rtol, faintest, seen, anchor, pieces)

    return devices.mapped(one, (groups, depths, faintest, seen, anchor), rtol)


@jax.jit
def _plan_threshold(groups, threshold, faintest, share, rtol):
    def one(row, rtol):
        groups, threshold, faintest, share = row
        return stages.plan_threshold(groups, threshold, rtol, faintest, share)

    return devices.mapped(one, (groups, threshold, faintest, share), rtol)


@functools.partial(jax.jit, static_argnames=("shape", "product"))
def _half(groups, plans, reverse, tables, *, shape, product=False):
    """``shape`` is a ``Dense`` lattice, or the number of vertices of a ``Sparse`` one, whose ``tables`` are arguments."""

    def one(row, others):
        reverse, tables = others
        return stages.half(*row, _grid(shape, tables, product), reverse)

    return devices.mapped(one, (groups, plans), (reverse, tables))


@functools.partial(jax.jit, static_argnames=("kind", "pieces"))
def _read(parts, plus, minus, rates, *, kind, pieces):
    """The halves hold ``pieces`` pieces of each setting in a row."""
    rows = parts, *_in_pieces((plus, minus), pieces), rates
    return devices.mapped(lambda row, _: stages.read(*row, kind), rows)


EAGER, COMPILED, PRODUCT = Eager(), Compiled(), Product()
BY_NAME: dict[str, Executor] = {"eager": EAGER, "compiled": COMPILED, "product": PRODUCT}
MANY = 128  # looks that take as long as compiling a program
MANY_ONCE_COMPILED = 4  # … as a compiled chunk


def by_name(name: str | None) -> Executor | None:
    """The executor asked for by an argument, else by the environment variable ``JAXGDP_EXECUTOR``; None where neither decides.

    Raises:
        ValueError: the name is none of "eager", "compiled", "product" and "auto".
    """
    name = name or os.environ.get("JAXGDP_EXECUTOR") or "auto"
    if name not in (*BY_NAME, "auto"):
        raise ValueError(f"executor must be one of 'eager', 'compiled', 'product', 'auto', got {name!r}")
    return BY_NAME.get(name)


def choose(work: float, compiled: bool) -> Executor:
    """The executor that is done first with so many looks, given whether their programs are compiled already."""
    return COMPILED if work > (MANY_ONCE_COMPILED if compiled else MANY) else EAGER
