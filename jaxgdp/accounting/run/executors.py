"""Who computes: the same stages run by NumPy, one setting after the other, or compiled by JAX, many
settings at a time.

The eager executor answers at once and is best for few settings; the compiled one pays tens of
seconds of compiling once per lattice shape and is then many times faster per setting. Both give the
same brackets up to the rounding that they allow for. The one by products is compiled, too, and
without any FFT, for accelerators that have none of 64 bits; and one leaves to the accelerator only
what 32 bits do without rounding."""

from __future__ import annotations

import contextlib
import functools
import os
from typing import Any, Protocol

import jax
import numpy as np

from ...numerics import batching
from ...numerics.compiling import Program
from ..certify import low_frequencies
from ..certify.curve import gaussian_parts
from ..certify.half_curve import Sparse
from ..experimental import ozaki_frequencies
from . import devices, stages

_IN_CACHE = 2**17  # numbers in an array of many rows, at most, that the host has close by
_PLANNED = 128  # pieces of one component that are planned at once


class Executor(Protocol):
    """What runs the stages over the leading axis of their arguments (host arrays in, host arrays
    out).

    Attributes:
        name: "eager", "compiled", "product" or "float32".
        padded: whether chunks should all have the same size.
        devices: over how many devices it spreads a chunk.
        log_noise: log of how many times larger its noise is than that of doubles; decides how strongly
            laws are tilted.
    """

    name: str
    padded: bool
    log_noise: float

    @property
    def devices(self) -> int: ...

    def parts(self, groups) -> Any: ...

    def plan_whole(
        self, groups, depths, rtol, max_neg_log_density, known_reach, anchor, pieces
    ) -> Any: ...

    def plan_threshold(self, groups, threshold, rtol, share) -> Any: ...

    def step(self, groups, plans, reverse, tables, shape) -> Any: ...

    def half(self, groups, plans, reverse, tables, shape, known=None) -> Any: ...

    def read(self, parts, plus, minus, rates, kind, pieces) -> Any: ...


def _grid(shape, tables, product=False):
    return shape if tables is None else Sparse(tables, shape, product)


def _in_pieces(halves, pieces):
    return jax.tree.map(lambda a: a.reshape((-1, pieces) + a.shape[1:]), halves)


def _looped(stage, room=1):
    """A stage over the leading axis of its arguments: as many rows at once as there is room for,
    see ``batching.run``.
    """

    def rows(*columns):
        _keep_memory()
        columns = jax.tree.map(np.asarray, columns)
        with np.errstate(all="ignore"):
            return batching.run(stage, columns, room)

    return rows


def _components(groups) -> int:
    return sum(count.shape[-1] for _, count in groups)


def _planned(groups) -> int:
    """Half-curve pieces that are planned at once."""
    return _PLANNED // _components(groups)


def _worked_on(groups, grid) -> int:
    """Rows of a lattice that are worked on at once: three laws for each half-curve piece."""
    return _IN_CACHE // (grid.widest * _components(groups))


@functools.cache
def _keep_memory():
    """Ask the allocator once for much and give it back: a C library whose threshold follows the
    largest block that was freed then keeps what large arrays leave for the next ones, instead of a
    new page fault for every page of each."""
    np.empty(2**21)


def _sums(steps, tables) -> low_frequencies.Sums:
    """The low frequencies of all laws of many steps, by one product."""
    weight = np.stack([law.weight for law in steps[0]], axis=1)
    found = low_frequencies.sums(weight.reshape(-1, weight.shape[-1]), tables)
    return jax.tree.map(lambda a: a.reshape(weight.shape[:-1] + a.shape[-1:]), found)


class Eager:
    """NumPy and SciPy, setting by setting; nothing is compiled."""

    name, padded, devices, log_noise = "eager", False, 1, 0.0

    def parts(self, groups):
        return _looped(gaussian_parts)(groups)

    def plan_whole(self, groups, depths, rtol, max_neg_log_density, known_reach, anchor, pieces):
        stage = lambda g, d, f, s, a: stages.plan_whole(g, d, rtol, f, s, a, pieces)
        return _looped(stage, _planned(groups))(
            groups, depths, max_neg_log_density, known_reach, anchor
        )

    def plan_threshold(self, groups, threshold, rtol, share):
        stage = lambda g, t, s: stages.plan_threshold(g, t, rtol, s)
        return _looped(stage, _planned(groups))(groups, threshold, share)

    def step(self, groups, plans, reverse, tables, shape):
        grid = _grid(shape, tables)
        stage = lambda g, p: stages.steps(g, p, grid, np.bool_(reverse))
        return _looped(stage, _worked_on(groups, grid))(groups, plans)

    def half(self, groups, plans, reverse, tables, shape, known=None):
        grid = _grid(shape, tables)
        if tables is not None and known is None:
            steps = self.step(groups, plans, reverse, tables, shape)
            known = steps, _sums(steps, tables)
        stage = lambda g, p, k: stages.half(g, p, grid, np.bool_(reverse), k)
        return _looped(stage, _worked_on(groups, grid))(groups, plans, known)

    def read(self, parts, plus, minus, rates, kind, pieces):
        room = _IN_CACHE // (2 * plus[0].used.shape[-1] * pieces)
        return _looped(lambda *mine: stages.read(*mine, kind), room)(
            parts, *_in_pieces((plus, minus), pieces), rates
        )


class Compiled:
    """JAX: each stage is batched with ``vmap``, spread over all devices of the process and compiled
    once for each shape.
    """

    name, padded, product, log_noise = "compiled", True, False, 0.0

    @property
    def devices(self) -> int:
        return devices.number()

    def parts(self, groups):
        return jax.tree.map(np.asarray, _parts(groups))

    def plan_whole(self, groups, depths, rtol, max_neg_log_density, known_reach, anchor, pieces):
        rows = devices.placed((groups, depths, max_neg_log_density, known_reach, anchor))
        return _plan_whole(*rows, rtol, pieces=pieces)

    def plan_threshold(self, groups, threshold, rtol, share):
        return _plan_threshold(*devices.placed((groups, threshold, share)), rtol)

    def step(self, groups, plans, reverse, tables, shape):
        return _step(
            *devices.placed((groups, plans)), np.asarray(reverse), _moved(tables), shape=shape
        )

    def half(self, groups, plans, reverse, tables, shape, known=None):
        groups, plans, known = devices.placed((groups, plans, known))
        return _half(
            groups,
            plans,
            np.asarray(reverse),
            _moved(tables),
            known,
            shape=shape,
            product=self.product,
        )

    def read(self, parts, plus, minus, rates, kind, pieces):
        return _read(*devices.placed((parts, plus, minus, rates)), kind=kind, pieces=pieces)


class Product(Compiled):
    """Compiled without an FFT: the short inverse transform of the low-frequency method is a product
    of matrices.

    Dense lattices, which have long transforms, are left to NumPy on the host.
    """

    name, product = "product", True

    def half(self, groups, plans, reverse, tables, shape, known=None):
        if tables is None:
            return EAGER.half(groups, plans, reverse, tables, shape)
        return super().half(groups, plans, reverse, tables, shape, known)


class Float32:
    """Sums over the points of one step by a device that computes in 32 bits, with a bound on what
    it leaves out.

    Brackets are wider, and as certain. The rest is done in 64 bits by another executor, on the CPU
    of the host, and lattices that the device does not serve by NumPy."""

    name, log_noise = "float32", 10.0

    def __init__(self, host: Executor):
        self.host, self.padded = host, host.padded

    @property
    def devices(self) -> int:
        return devices.number()

    def parts(self, groups):
        with _on_host():
            return self.host.parts(groups)

    def plan_whole(self, groups, depths, rtol, max_neg_log_density, known_reach, anchor, pieces):
        with _on_host():
            return self.host.plan_whole(
                groups, depths, rtol, max_neg_log_density, known_reach, anchor, pieces
            )

    def plan_threshold(self, groups, threshold, rtol, share):
        with _on_host():
            return self.host.plan_threshold(groups, threshold, rtol, share)

    def step(self, groups, plans, reverse, tables, shape):
        with _on_host():
            return jax.tree.map(np.asarray, self.host.step(groups, plans, reverse, tables, shape))

    def half(self, groups, plans, reverse, tables, shape, known=None):
        if not ozaki_frequencies.serves(tables):
            return EAGER.half(groups, plans, reverse, tables, shape)
        steps = self.step(groups, plans, reverse, tables, shape)
        sums = ozaki_frequencies.sums(np.stack([law.weight for law in steps[0]], axis=1), tables)
        with _on_host():
            return self.host.half(groups, plans, reverse, tables, shape, (steps, sums))

    def read(self, parts, plus, minus, rates, kind, pieces):
        with _on_host():
            return self.host.read(parts, plus, minus, rates, kind, pieces)


def _on_host():
    """Where JAX computes on an accelerator: on the CPU beside it."""
    if jax.default_backend() == "cpu":
        return contextlib.nullcontext()
    return jax.default_device(jax.local_devices(backend="cpu")[0])


def _moved(tables):
    return None if tables is None else low_frequencies.on_device(tables)


@Program
def _parts(groups):
    return jax.vmap(gaussian_parts)(groups)


@functools.partial(Program, static_argnames=("pieces",))
def _plan_whole(groups, depths, max_neg_log_density, known_reach, anchor, rtol, *, pieces):
    def one(row, rtol):
        groups, depths, max_neg_log_density, known_reach, anchor = row
        return stages.plan_whole(
            groups, depths, rtol, max_neg_log_density, known_reach, anchor, pieces
        )

    return devices.mapped(one, (groups, depths, max_neg_log_density, known_reach, anchor), rtol)


@Program
def _plan_threshold(groups, threshold, share, rtol):
    def one(row, rtol):
        groups, threshold, share = row
        return stages.plan_threshold(groups, threshold, rtol, share)

    return devices.mapped(one, (groups, threshold, share), rtol)


@functools.partial(Program, static_argnames=("shape",))
def _step(groups, plans, reverse, tables, *, shape):
    """Arguments as those of :func:`_half`."""

    def one(row, others):
        reverse, tables = others
        return stages.steps(*row, _grid(shape, tables), reverse)

    return devices.mapped(one, (groups, plans), (reverse, tables))


@functools.partial(Program, static_argnames=("shape", "product"))
def _half(groups, plans, reverse, tables, known=None, *, shape, product=False):
    """``shape`` is a ``Dense`` lattice, or the number of vertices of a ``Sparse`` one, whose
    ``tables`` are arguments.
    """

    def one(row, others):
        (groups, plan, known), (reverse, tables) = row, others
        return stages.half(groups, plan, _grid(shape, tables, product), reverse, known)

    return devices.mapped(one, (groups, plans, known), (reverse, tables))


@functools.partial(Program, static_argnames=("kind", "pieces"))
def _read(parts, plus, minus, rates, *, kind, pieces):
    """The halves hold ``pieces`` pieces of each setting in a row."""
    rows = parts, *_in_pieces((plus, minus), pieces), rates
    return devices.mapped(lambda row, _: stages.read(*row, kind), rows)


EAGER, COMPILED, PRODUCT = Eager(), Compiled(), Product()
FLOAT32 = Float32(COMPILED)
BY_NAME: dict[str, Executor] = {who.name: who for who in (EAGER, COMPILED, PRODUCT, FLOAT32)}
# passes at once, on 512 vertices each, that take NumPy a fifth of the time of compiling programs:
# more are compiled for
MANY = 600
MANY_IN_ALL = 1800  # … that take about as long, all those before counted
# settings that NumPy answers in as much time as it takes to compile their programs and to run them
# once
MANY_AND_NO_MORE = 4000
MANY_ONCE_COMPILED = 4  # … as a compiled chunk


def for_one_call(number: int) -> str | None:
    """Who answers the only call of a process, of so many settings of DP-SGD, as an argument
    ``executor``; None leaves it open.

    On a CPU NumPy is done with thousands of settings before their programs are compiled, and
    nothing comes after them."""
    left_open = by_name(None) is None and jax.default_backend() == "cpu"
    return EAGER.name if left_open and number <= MANY_AND_NO_MORE else None


def by_name(name: str | None) -> Executor | None:
    """The executor asked for by an argument, else by the environment variable ``JAXGDP_EXECUTOR``;
    None where neither decides.

    Raises:
        ValueError: the name is none of "eager", "compiled", "product", "float32" and "auto".
    """
    name = name or os.environ.get("JAXGDP_EXECUTOR") or "auto"
    if name not in (*BY_NAME, "auto"):
        raise ValueError(
            f"executor must be one of {', '.join(map(repr, (*BY_NAME, 'auto')))}, got {name!r}"
        )
    return BY_NAME.get(name)


def choose(work: float, compiled: bool, before: float = 0.0) -> Executor:
    """Who does so many passes: NumPy a few, a program many, for whose compiling the next ones have
    to wait.

    Args:
        work: passes, on 512 vertices each.
        compiled: whether their program is compiled already.
        before: passes that it would have spared NumPy so far: what NumPy has done for as long as
            compiling takes will be asked for again.
    """
    pays = work > MANY_ONCE_COMPILED and (compiled or work > MANY or before + work > MANY_IN_ALL)
    return COMPILED if pays else EAGER
