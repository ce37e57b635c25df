"""Shapes of lattices, and where one lies: points of a step, frequencies, thresholds."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np

from ...numerics import namespace as xp
from ...numerics.shapes import Array, Float
from ..plan import Plan
from . import low_frequencies
from .composed import Composed, Window
from .convolution import compose_blocks
from .discretisation import Weights
from .frequency_tables import Tables
from .inverse_transform import BY_FFT, InverseTransform
from .jumps import compose_jumps


class Dense(NamedTuple):
    """A lattice on which every point of a step and every frequency is kept (static).

    Attributes:
        size: N, lattice points of the composed loss; a power of two.
        left, right: lattice points of one step below, and from, its centre; together at most N.
        block: M, lattice points between vertices.
        jumps: whether only what takes at least one jump (a step beyond ``Plan.jump``) is composed.
    """

    size: int
    left: int
    right: int
    block: int
    jumps: bool = False

    @property
    def offset(self) -> Float[np.ndarray, " points"]:
        return np.arange(-self.left, self.right, dtype=float)

    @property
    def vertices(self) -> int:
        return self.size // self.block

    @property
    def widest(self) -> int:
        """Numbers in the largest row of an array."""
        return self.size

    def centre(self, plan: Plan) -> Float[Array, " components"]:
        return plan.centre

    def in_step(
        self, h: Float[Array, ""], unit: Float[Array, ""], anchor: Float[Array, ""]
    ) -> Float[Array, ""]:
        """h, or the next larger spacing with atoms at multiples of ``unit`` on vertices, or at
        least on lattice points; with the anchor on a lattice point, where there are none."""
        whole = xp.floor(unit / (h * self.block))
        fine = xp.floor(unit / h)
        parts = xp.where(whole >= 1.0, whole * self.block, fine)
        return xp.where(
            parts >= 1.0,
            unit / xp.maximum(parts, 1.0),
            xp.where(unit > 0.0, h, _reaching(h, anchor)),
        )

    def phase(
        self, h: Float[Array, ""], unit: Float[Array, ""], anchor: Float[Array, ""]
    ) -> Float[Array, ""]:
        """Lattice points from a whole block to the anchor; none where atoms are on vertices."""
        return xp.where(unit > 0.0, 0.0, _phase(h, anchor, self.block))

    def compose(
        self,
        weights: Weights,
        count: Float[Array, " components"],
        window: Window,
        plan: Plan,
        centre: Float[Array, " components"],
        shift: Float[Array, ""] | float,
        sums: low_frequencies.Sums | None = None,
        real_uses: bool = False,
    ) -> Composed:
        """Self-composition of a step; ``real_uses`` with derivatives in the numbers of uses."""
        shape = {"left": self.left, "size": self.size, "block": self.block}
        if not self.jumps:
            moving = centre if real_uses else None
            return compose_blocks(weights, count, window, **shape, centre=moving)
        h = window.h
        beyond = h * (centre[:, None] + self.offset) > plan.jump
        # (vertices below are not used, see ``half_vertices.dominating_vertices``)
        lowest = plan.cut_low - 0.05 * plan.spread - 2.0 * h * self.block
        from_point = xp.floor(lowest / h) + shift - xp.sum(count * centre)
        found = compose_jumps(weights, count, window, beyond, from_point, **shape)
        # (sums from the left, as a smaller tilt needs them, are not known: docs/method/tilting.md)
        return found._replace(escaped=xp.where(plan.tilt >= 1.0, found.escaped, xp.inf))


class Sparse(NamedTuple):
    """A lattice of any length of which few points of a step and low frequencies are used.

    Attributes:
        tables: its points and constant matrices (an argument of the program).
        vertices: vertices of a piece (static).
        transform: how its few frequencies become block sums (static).
    """

    tables: Tables
    vertices: int
    transform: InverseTransform = BY_FFT

    @property
    def offset(self) -> Float[Array, " points"]:
        return self.tables.offset

    @property
    def size(self) -> Float[Array, ""] | float:
        return self.tables.size

    @property
    def block(self) -> Float[Array, ""] | float:
        return self.tables.block

    @property
    def widest(self) -> int:
        """Numbers in the largest row of an array."""
        return max(self.tables.offset.size, 2 * self.vertices)

    def centre(self, plan: Plan) -> Float[Array, " components"]:
        return plan.middle

    def in_step(
        self, h: Float[Array, ""], unit: Float[Array, ""], anchor: Float[Array, ""]
    ) -> Float[Array, ""]:
        """h, or the next larger spacing that has the anchor on a lattice point."""
        return _reaching(h, anchor)

    def phase(
        self, h: Float[Array, ""], unit: Float[Array, ""], anchor: Float[Array, ""]
    ) -> Float[Array, ""]:
        """Lattice points from a whole number of blocks to the anchor."""
        return _phase(h, anchor, self.block)

    def compose(
        self,
        weights: Weights,
        count: Float[Array, " components"],
        window: Window,
        plan: Plan,
        centre: Float[Array, " components"],
        shift: Float[Array, ""] | float,
        sums: low_frequencies.Sums | None = None,
        real_uses: bool = False,
    ) -> Composed:
        """Self-composition of a step, whose frequencies are ``sums`` where they are known."""
        # (few frequencies, at which log φ is a continuous branch: derivatives in the number of uses
        # are those of φ^T)
        return low_frequencies.compose(
            weights, count, window, self.tables, self.vertices, self.transform, sums
        )


Grid: TypeAlias = Dense | Sparse


class Placement(NamedTuple):
    """Where the lattice of a piece lies.

    Attributes:
        h: spacing, in nats.
        width: distance between two vertices.
        first: threshold of the first vertex, in units of that; see :func:`first_vertex`.
        size: N, lattice points of the composed loss.
    """

    h: Float[Array, ""]
    width: Float[Array, ""]
    first: Float[Array, ""]
    size: Float[Array, ""] | float

    def thresholds(self, number: int) -> Float[Array, " vertices"]:
        """Those of so many vertices."""
        return self.width * (self.first + xp.arange(number))


def placement(plan: Plan, grid: Grid) -> Placement:
    """Where the lattice of a piece lies."""
    h = spacing(plan, grid)
    return Placement(h, h * grid.block, first_vertex(plan, grid, h), grid.size)


def spacing(plan: Plan, grid: Grid) -> Float[Array, ""]:
    """h of a piece: the smallest that fits both the composed and the single-step window."""
    composed = (plan.high - plan.low) / (grid.size - 6 * grid.block)
    moved = grid.centre(plan) - plan.centre
    below = xp.max(plan.reach_low + moved) / (-grid.offset[0] - 2.0)
    above = xp.max(plan.reach_high - moved) / (grid.offset[-1] - 2.0)
    h = xp.maximum(composed, xp.maximum(below, above))
    return grid.in_step(h, plan.unit, plan.anchor)


def first_vertex(plan: Plan, grid: Grid, h: Float[Array, ""]) -> Float[Array, ""]:
    """Threshold of the first vertex in distances between two: whole, but for the anchor's phase.

    Method: docs/method/blocks.md#thinning
    """
    phase = grid.phase(h, plan.unit, plan.anchor) / grid.block
    return xp.floor(plan.low / (h * grid.block) - phase) - 1.0 + phase


def _reaching(h: Float[Array, ""], anchor: Float[Array, ""]) -> Float[Array, ""]:
    """The next larger spacing of which the anchor is a whole multiple, where it is at least h."""
    parts = xp.floor(anchor / h)
    return xp.where(parts >= 1.0, anchor / xp.maximum(parts, 1.0), h)


def _phase(
    h: Float[Array, ""], anchor: Float[Array, ""], block: Float[Array, ""] | float
) -> Float[Array, ""]:
    points = xp.round(anchor / h)
    return points - block * xp.floor(points / block)
