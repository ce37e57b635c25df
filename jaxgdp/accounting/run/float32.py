"""An accelerator of 32 bits, for what those do without rounding; the rest by its host."""

from __future__ import annotations

import contextlib
from typing import Any

import jax
import numpy as np

from ...numerics.compiling import Program
from ...numerics.shapes import Array, Bool, Float
from ..experimental import ozaki, ozaki_frequencies
from ..plan import Plan
from ..question import Kind, Rates
from . import devices
from .compiled import COMPILED
from .eager import EAGER
from .executor import Executor, Groups, Halves


class Float32:
    """Sums over the points of one step on a 32-bit device, with a bound on what is left out.

    Brackets are wider, and as certain. The rest is done in 64 bits by another executor, on the CPU
    of the host, and lattices that the device does not serve by NumPy."""

    name, keeps, log_noise = "float32", False, 10.0

    def __init__(self, host: Executor):
        self.host, self.padded = host, host.padded

    @property
    def chunks(self) -> int:
        return devices.number()

    def parts(self, groups: Groups) -> Any:
        with _on_host():
            return self.host.parts(groups)

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
        with _on_host():
            return self.host.plan_whole(
                groups, depths, rtol, max_neg_log_density, known_reach, anchor, pieces
            )

    def plan_threshold(
        self,
        groups: Groups,
        threshold: Float[Array, " settings"],
        rtol: float,
        share: Float[Array, " settings"],
        reverse: Bool[Array, "settings sides"],
    ) -> tuple[Plan, Array]:
        with _on_host():
            return self.host.plan_threshold(groups, threshold, rtol, share, reverse)

    def step(self, groups: Groups, plans: Plan, reverse: bool, tables: Any, shape: Any) -> Any:
        with _on_host():
            return jax.tree.map(np.asarray, self.host.step(groups, plans, reverse, tables, shape))

    def half(
        self, groups: Groups, plans: Plan, reverse: bool, tables: Any, shape: Any, known: Any = None
    ) -> Halves:
        if not ozaki_frequencies.serves(tables):
            return EAGER.half(groups, plans, reverse, tables, shape)
        steps = self.step(groups, plans, reverse, tables, shape)
        weight = np.stack([law.weight for law in steps.laws], axis=1)
        sums = ozaki_frequencies.sums(weight, tables, _exact_sums)
        with _on_host():
            return self.host.half(groups, plans, reverse, tables, shape, (steps, sums))

    def read(
        self, parts: Any, plus: list, minus: list, rates: Rates, kind: Kind, pieces: int
    ) -> Any:
        with _on_host():
            return self.host.read(parts, plus, minus, rates, kind, pieces)


@Program
def _whole_sums(rows: Array, columns: Array) -> Array:
    return devices.mapped(ozaki.exact_sums, rows, columns)


def _exact_sums(rows: Array, columns: Array) -> Array:
    """``ozaki.exact_sums`` of every row, over all devices."""
    return _whole_sums(devices.placed(rows), columns)


def _on_host():
    """Where JAX computes on an accelerator: on the CPU beside it."""
    if jax.default_backend() == "cpu":
        return contextlib.nullcontext()
    return jax.default_device(jax.local_devices(backend="cpu")[0])


FLOAT32 = Float32(COMPILED)
