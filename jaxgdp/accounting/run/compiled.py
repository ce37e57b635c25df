"""JAX: many settings at a time, compiled once for each shape."""

from __future__ import annotations

import functools
from typing import Any

import jax
import numpy as np

from ...numerics.compiling import Program
from ...numerics.shapes import Array, Bool, Float
from ..certify import frequency_tables, reading
from ..certify.curve import gaussian_parts
from ..plan import Plan
from ..question import Kind, Rates
from . import devices, stages
from .eager import EAGER
from .executor import Groups, Halves
from .grids import grid_of, in_pieces


class Compiled:
    """JAX: each stage is batched with ``vmap``, spread over all devices of the process and compiled
    once for each shape.
    """

    name, padded, product, log_noise = "compiled", True, False, 0.0

    @property
    def keeps(self) -> bool:
        return devices.accelerated()

    @property
    def chunks(self) -> int:
        return devices.number() * devices.chunks_of_each()

    def parts(self, groups: Groups) -> Any:
        return jax.tree.map(np.asarray, _parts(groups))

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
        rows = devices.placed((groups, depths, max_neg_log_density, known_reach, anchor))
        return _plan_whole(*rows, rtol, pieces=pieces)

    def plan_threshold(
        self,
        groups: Groups,
        threshold: Float[Array, " settings"],
        rtol: float,
        share: Float[Array, " settings"],
        reverse: Bool[Array, "settings sides"],
    ) -> tuple[Plan, Array]:
        return _plan_threshold(*devices.placed((groups, threshold, share, reverse)), rtol)

    def step(self, groups: Groups, plans: Plan, reverse: bool, tables: Any, shape: Any) -> Any:
        return _step(
            *devices.placed((groups, plans)), np.asarray(reverse), _moved(tables), shape=shape
        )

    def half(
        self, groups: Groups, plans: Plan, reverse: bool, tables: Any, shape: Any, known: Any = None
    ) -> Halves:
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

    def read(
        self, parts: Any, plus: list, minus: list, rates: Rates, kind: Kind, pieces: int
    ) -> Any:
        return _read(*devices.placed((parts, plus, minus, rates)), kind=kind, pieces=pieces)


class Product(Compiled):
    """Compiled without an FFT: the short inverse transform is a product of matrices.

    Dense lattices, which have long transforms, are left to NumPy on the host.
    """

    name, product = "product", True

    def half(
        self, groups: Groups, plans: Plan, reverse: bool, tables: Any, shape: Any, known: Any = None
    ) -> Halves:
        if tables is None:
            return EAGER.half(groups, plans, reverse, tables, shape)
        return super().half(groups, plans, reverse, tables, shape, known)


def _moved(tables: Any) -> Any:
    """The tables of a sparse lattice, on the device."""
    return None if tables is None else frequency_tables.on_device(tables)


@Program
def _parts(groups: Groups) -> Any:
    return jax.vmap(gaussian_parts)(groups)


@functools.partial(Program, static_argnames=("pieces",))
def _plan_whole(
    groups: Groups,
    depths: tuple,
    max_neg_log_density: Array,
    known_reach: tuple,
    anchor: Array,
    rtol: float,
    *,
    pieces: int,
) -> Any:
    def one(row, rtol):
        groups, depths, max_neg_log_density, known_reach, anchor = row
        return stages.plan_whole(
            groups, depths, rtol, max_neg_log_density, known_reach, anchor, pieces
        )

    return devices.mapped(one, (groups, depths, max_neg_log_density, known_reach, anchor), rtol)


@Program
def _plan_threshold(
    groups: Groups, threshold: Array, share: Array, reverse: Array, rtol: float
) -> Any:
    def one(row, rtol):
        groups, threshold, share, reverse = row
        return stages.plan_threshold(groups, threshold, rtol, share, reverse)

    return devices.mapped(one, (groups, threshold, share, reverse), rtol)


@functools.partial(Program, static_argnames=("shape",))
def _step(groups: Groups, plans: Plan, reverse: Array, tables: Any, *, shape: Any) -> Any:
    """Arguments as those of :func:`_half`."""

    def one(row, others):
        reverse, tables = others
        return stages.steps(*row, grid_of(shape, tables), reverse)

    return devices.mapped(one, (groups, plans), (reverse, tables))


@functools.partial(Program, static_argnames=("shape", "product"))
def _half(
    groups: Groups,
    plans: Plan,
    reverse: Array,
    tables: Any,
    known: Any = None,
    *,
    shape: Any,
    product: bool = False,
) -> Any:
    """``shape`` is a ``Dense`` lattice, or a ``Sparse`` one's vertices, ``tables`` arguments."""

    def one(row, others):
        (groups, plan, known), (reverse, tables) = row, others
        return stages.half(groups, plan, grid_of(shape, tables, product), reverse, known)

    return devices.mapped(one, (groups, plans, known), (reverse, tables))


@functools.partial(Program, static_argnames=("kind", "pieces"))
def _read(parts: Any, plus: list, minus: list, rates: Rates, *, kind: Kind, pieces: int) -> Any:
    """The halves hold ``pieces`` pieces of each setting in a row."""
    rows = parts, *in_pieces((plus, minus), pieces), rates
    return devices.mapped(lambda row, _: reading.read(*row, kind), rows)


COMPILED, PRODUCT = Compiled(), Product()
