"""NumPy: setting by setting in one call, nothing is compiled."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import threading
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from ...numerics import batching
from ...numerics.shapes import Array, Bool, Float
from ..certify import frequency_tables, low_frequencies, reading
from ..certify.curve import gaussian_parts
from ..plan import Plan
from ..question import Kind, Rates
from . import stages
from .executor import Groups, Halves
from .grids import grid_of, in_pieces
from .rows import joined, take

_IN_CACHE = 2**18  # numbers in an array of many rows, at most, that the host has close by
_LARGE = 2**18  # numbers in a lattice after which what it took is given back
# numbers in a lattice that is worked on by one thread at a time, as it takes hundreds of MiB
_ALONE = 2**19
_SUMMED = 480  # laws whose low frequencies are summed at once: a few arrays of some MiB
_PLANNED = 256  # pieces of one component that are planned at once


def _looped(stage: Callable, room: int = 1, components: int = 1) -> Callable:
    """A stage over the leading axis of its arguments, as many rows at once as have room.

    Args:
        stage: of one row.
        room: rows of one component at once.
        components: of each row. Where there is no room for all of them, rows are worked on one by
            one, and as many of their components at once as there is room for.
    """

    def rows(*columns: Any) -> Any:
        _keep_memory()
        columns = jax.tree.map(np.asarray, columns)
        with np.errstate(all="ignore"):
            if components <= room:
                return batching.run(stage, columns, room // components)
            (number,) = {len(leaf) for leaf in jax.tree.leaves(columns)}
            some = (take(columns, slice(i, i + 1)) for i in range(number))
            return joined([batching.run(stage, row, room) for row in some])

    return rows


def _components(groups: Groups) -> int:
    return sum(count.shape[-1] for _, count in groups)


def _worked_on(grid: Any) -> int:
    """Rows of a lattice that are worked on at once: three laws for each half-curve piece."""
    return _IN_CACHE // grid.widest


@functools.cache
def _keep_memory() -> None:
    """Ask the allocator once for much and give it back: a C library whose threshold follows the
    largest block that was freed then keeps what large arrays leave for the next ones, instead of a
    new page fault for every page of each."""
    np.empty(2**21)


@functools.cache
def _trim() -> Callable[[int], int]:
    """The C library's function that gives free memory back, where it has one."""
    try:
        return ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return lambda kept: 0


def _give_back_memory(grid: Any) -> None:
    """After a large lattice, give free memory back: every thread's heap would keep its own."""
    if grid.widest >= _LARGE:
        _trim()(0)


_ALONE_LOCK = threading.Lock()


def _unlock() -> None:
    """In a child process that was forked while another thread held the lock."""
    global _ALONE_LOCK
    _ALONE_LOCK = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_unlock)


@np.errstate(all="ignore")
def _sums(steps: Any, tables: Any) -> low_frequencies.Sums:
    """The low frequencies of all laws of many steps, of hundreds of laws by one product."""
    weight = np.stack([law.weight for law in steps[0]], axis=1)
    rows = weight.reshape(-1, weight.shape[-1])
    found = joined(
        [
            low_frequencies.sums(rows[first : first + _SUMMED], tables)
            for first in range(0, len(rows), _SUMMED)
        ]
    )
    return jax.tree.map(lambda a: a.reshape(weight.shape[:-1] + a.shape[-1:]), found)


def _scalar(value: bool) -> Any:
    """A number of NumPy's, which has what arrays have."""
    return np.bool_(value)


class Eager:
    """NumPy and SciPy, setting by setting; nothing is compiled."""

    name, padded, keeps, chunks, log_noise = "eager", False, False, 1, 0.0

    def parts(self, groups: Groups) -> Any:
        return _looped(gaussian_parts)(groups)

    def plan_whole(
        self,
        groups: Groups,
        depths: tuple[Array, Array | None],
        rtol: float,
        max_neg_log_density: Float[Array, " settings"],
        known_reach: tuple[Array, Array],
        anchor: Float[Array, " settings"],
        pieces: int,
    ) -> tuple[Plan, Array]:
        stage = lambda g, d, f, s, a: stages.plan_whole(g, d, rtol, f, s, a, pieces)
        return _looped(stage, _PLANNED, _components(groups))(
            groups, depths, max_neg_log_density, known_reach, anchor
        )

    def plan_threshold(
        self,
        groups: Groups,
        threshold: Float[Array, " settings"],
        rtol: float,
        share: Float[Array, " settings"],
        reverse: Bool[Array, "settings sides"],
    ) -> tuple[Plan, Array]:
        stage = lambda g, t, s, r: stages.plan_threshold(g, t, rtol, s, r)
        return _looped(stage, _PLANNED, _components(groups))(groups, threshold, share, reverse)

    def step(self, groups: Groups, plans: Plan, reverse: bool, tables: Any, shape: Any) -> Any:
        grid, swapped = grid_of(shape, tables), _scalar(reverse)
        stage = lambda g, p: stages.steps(g, p, grid, swapped)
        return _looped(stage, _worked_on(grid), _components(groups))(groups, plans)

    def half(
        self, groups: Groups, plans: Plan, reverse: bool, tables: Any, shape: Any, known: Any = None
    ) -> Halves:
        grid = grid_of(shape, tables)
        if grid.widest >= _ALONE:
            frequency_tables.make_room()
            _trim()(0)  # (what others have left)
        with _ALONE_LOCK if grid.widest >= _ALONE else contextlib.nullcontext():
            return self._half(groups, plans, reverse, tables, shape, known)

    def _half(
        self, groups: Groups, plans: Plan, reverse: bool, tables: Any, shape: Any, known: Any
    ) -> Halves:
        """See :meth:`half`."""
        grid = grid_of(shape, tables)
        if tables is not None and known is None:
            steps = self.step(groups, plans, reverse, tables, shape)
            known = steps, _sums(steps, tables)
        swapped = _scalar(reverse)
        stage = lambda g, p, k: stages.half(g, p, grid, swapped, k)
        found = _looped(stage, _worked_on(grid), _components(groups))(groups, plans, known)
        _give_back_memory(grid)
        return found

    def read(
        self, parts: Any, plus: list, minus: list, rates: Rates, kind: Kind, pieces: int
    ) -> Any:
        room = _IN_CACHE // (2 * plus[0].used.shape[-1] * pieces)
        return _looped(lambda *mine: reading.read(*mine, kind), room)(
            parts, *in_pieces((plus, minus), pieces), rates
        )


EAGER = Eager()
