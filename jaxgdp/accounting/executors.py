"""Who computes: the same stages run by NumPy, one setting after the other, or compiled by JAX, many settings at a time.

The eager executor answers at once and is best for few settings; the compiled one pays tens of seconds of compiling once per lattice
shape and is then a hundred times faster per setting. Both give the same brackets up to the rounding that they allow for.
"""

from __future__ import annotations

import functools
import os
from typing import Any, Protocol

import jax
import numpy as np

from . import stages
from .half_curve import Sparse


class Executor(Protocol):
    """What runs the three stages over the leading axis of their arguments (host arrays in, host arrays out)."""

    name: str

    def plan(self, groups, z_floor, z_delta, rtol, faintest, seen, piece, pieces) -> Any: ...

    def half(self, groups, plans, reverse, tables, shape) -> Any: ...

    def read(self, groups, plus, minus, rates, kind, pieces) -> Any: ...


def _grid(shape, tables):
    return shape if tables is None else Sparse(tables, shape)


def _one(tree, i):
    return jax.tree.map(lambda a: np.asarray(a)[i], tree)


def _joined(rows):
    """Rows of results side by side; whatever is None or a constant stays so."""
    return jax.tree.map(lambda *a: np.stack(a), *rows)


def _in_pieces(halves, pieces):
    return jax.tree.map(lambda a: a.reshape((-1, pieces) + a.shape[1:]), halves)


class Eager:
    """NumPy and SciPy, setting by setting; nothing is compiled."""

    name = "eager"

    def plan(self, groups, z_floor, z_delta, rtol, faintest, seen, piece, pieces):
        mine = (groups, z_floor, z_delta, faintest, seen, piece)
        with np.errstate(all="ignore"):
            rows = []
            for i in range(len(piece)):
                group, floor, delta, faint, shown, at = _one(mine, i)
                rows.append(stages.plan(group, floor, delta, rtol, faint, shown, at, pieces))
            return _joined(rows)

    def half(self, groups, plans, reverse, tables, shape):
        grid = _grid(shape, tables)
        with np.errstate(all="ignore"):
            number = len(plans.tilt)
            return _joined([stages.half(_one(groups, i), _one(plans, i), grid, reverse) for i in range(number)])

    def read(self, groups, plus, minus, rates, kind, pieces):
        mine = (groups, *_in_pieces((plus, minus), pieces), rates)
        with np.errstate(all="ignore"):
            return _joined([stages.read(*_one(mine, i), kind) for i in range(len(rates.log_floor))])


class Compiled:
    """JAX: each stage is batched with ``vmap`` and compiled once for each shape."""

    name = "compiled"

    def plan(self, groups, z_floor, z_delta, rtol, faintest, seen, piece, pieces):
        return _plan(groups, z_floor, z_delta, rtol, faintest, seen, piece, pieces)

    def half(self, groups, plans, reverse, tables, shape):
        return _half(groups, plans, np.asarray(reverse), tables, shape=shape)

    def read(self, groups, plus, minus, rates, kind, pieces):
        return _read(groups, plus, minus, rates, kind=kind, pieces=pieces)


@jax.jit
def _plan(groups, z_floor, z_delta, rtol, faintest, seen, piece, pieces):
    def one(groups, z_floor, z_delta, faintest, seen, piece):
        return stages.plan(groups, z_floor, z_delta, rtol, faintest, seen, piece, pieces)

    return jax.vmap(one)(groups, z_floor, z_delta, faintest, seen, piece)


@functools.partial(jax.jit, static_argnames=("shape",))
def _half(groups, plans, reverse, tables, *, shape):
    """``shape`` is a ``Dense`` lattice, or the number of vertices of a ``Sparse`` one, whose ``tables`` are arguments."""
    return jax.vmap(lambda groups, plan: stages.half(groups, plan, _grid(shape, tables), reverse))(groups, plans)


@functools.partial(jax.jit, static_argnames=("kind", "pieces"))
def _read(groups, plus, minus, rates, *, kind, pieces):
    """The halves hold ``pieces`` pieces of each setting in a row."""
    return jax.vmap(lambda *mine: stages.read(*mine, kind))(groups, *_in_pieces((plus, minus), pieces), rates)


EAGER, COMPILED = Eager(), Compiled()
BY_NAME: dict[str, Executor] = {"eager": EAGER, "compiled": COMPILED}
_FEW = 128  # settings up to which the eager executor is done before the other one has compiled
_FEW_ONCE_COMPILED = 4


def choose_executor(number: int, compiled: bool) -> Executor:
    """The executor for so many settings, given whether their programs are compiled already.

    The environment variable ``JAXGDP_EXECUTOR`` ("eager" or "compiled") decides otherwise.
    """
    wanted = os.environ.get("JAXGDP_EXECUTOR", "auto")
    if wanted in BY_NAME:
        return BY_NAME[wanted]
    return COMPILED if number > (_FEW_ONCE_COMPILED if compiled else _FEW) else EAGER
