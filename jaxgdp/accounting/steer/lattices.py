"""Lattices that settings may get: shapes, what a pass on one costs, how many settings at once."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax

from ..certify import frequency_tables
from ..certify.lattice import Dense

_CHUNK = 2**19  # numbers in the largest array worked on at once
_TOGETHER = 24  # half-curve pieces worked on at once, at most
# … of lattices of so many frequencies and more, which few settings get
_FEW_OF, _FEW = 2048, 4
_READ = 2**14  # vertices of a half that numbers are read off at once: few settings have many
SIZES = {
    "heavy": (14, 16, 18, 20),
    "whole": (13, 16, 18, 20),
    "jump": (13, 19),  # (these have twice as many arrays)
}  # of dense lattices


class Grids(NamedTuple):
    """Shapes and tables of the lattices of two half-curves.

    Attributes:
        shapes: the ``Dense`` lattice of each side, or its number of vertices if it is sparse.
        tables: ``frequency_tables.Tables`` of each side, None if it is dense.
    """

    shapes: tuple[Any, Any]
    tables: tuple[Any, Any] = (None, None)


class Grid(NamedTuple):
    """Shape and tables of the lattice of one half-curve; see :class:`Grids`."""

    shape: Any
    tables: Any


class LatticeChoice(NamedTuple):
    """What a bucket of settings shares: equal ones run together, equal shapes by one program.

    Attributes:
        kind: "sparse" (many small steps), "heavy" (dense, one step reaches up to half of the
            window, to the right), "whole" (dense, one step is most of the composition) or "jump"
            (dense, only what takes a jump).
        vertices: of each piece.
        frequencies: kept, if sparse.
        size: N, lattice points of the composed loss.
        base: points per octave, if sparse.
        short, long: octaves of points on the two sides of one step, if sparse.
        pieces: tilts along the half-curve.
    """

    kind: str
    vertices: int
    frequencies: int
    size: int
    base: int
    short: int
    long: int
    pieces: int

    def grid(self, side: int) -> Grid:
        """Shape and tables of one of the two half-curves."""
        shapes, tables = self.grids()
        return Grid(shapes[side], tables[side])

    def grids(self) -> Grids:
        """Shapes and tables of the two half-curves, for :mod:`jaxgdp.accounting.run.stages`."""
        if self.kind == "sparse":
            key = (self.size, self.frequencies, self.vertices, self.base)
            plus, minus = (self.short, self.long), (self.long, self.short)
            tables = frequency_tables.tables(*key, *plus), frequency_tables.tables(*key, *minus)
            return Grids((self.vertices, self.vertices), tables)
        size, block = self.size, self.size // self.vertices
        if self.kind == "whole":
            shape = Dense(size, size // 2, size // 2, block)
            return Grids((shape, shape))
        jump = self.kind == "jump"
        left, right = (size // 8, 3 * size // 4) if jump else (size // 32, size // 2)
        return Grids((Dense(size, left, right, block, jump), Dense(size, right, left, block, jump)))

    @property
    def compiled(self) -> bool:
        """Whether compiling ever pays: not for the long transforms of dense lattices, which
        compiled for a CPU take twice as long.
        """
        return self.kind == "sparse" or jax.default_backend() != "cpu"

    @property
    def work(self) -> float:
        """What a task costs NumPy, in passes on 512 vertices."""
        return self.pieces * max(1.0, self.vertices / 512)

    def read_together(self) -> int:
        """Settings whose numbers are read off at once."""
        return max(1, min(_TOGETHER, _READ // self.vertices) // self.pieces)

    @property
    def width(self) -> int:
        """Numbers in the longest arrays of one piece."""
        if self.kind != "sparse":
            return self.size
        points = self.base * (self.short + self.long + 4)
        return max(points, min(32 * max(self.vertices, 2 * self.frequencies), 2**16))

    def together(self, components: int, read: int | None = None) -> int:
        """Settings whose half-curves are worked on at once: a whole share of those read at once,
        ``read`` where that is not as many as this lattice allows.
        """
        most = _FEW if self.frequencies >= _FEW_OF else _TOGETHER
        most = max(1, min(most, _CHUNK // (self.width * components)) // self.pieces)
        read = read or self.read_together()
        return next(share for share in range(min(most, read), 0, -1) if read % share == 0)


class Lattices(NamedTuple):
    """The lattices of both half-curves of a task.

    Attributes:
        plus, minus: of each; the same where only one half-curve is composed.
    """

    plus: LatticeChoice
    minus: LatticeChoice

    @property
    def leading(self) -> LatticeChoice:
        """The one of more points, which decides what a pass costs."""
        return max(self, key=lambda lattice: (lattice.kind != "sparse", lattice.size))

    @property
    def pieces(self) -> int:
        """Tilts along a half-curve."""
        return self.plus.pieces

    @property
    def compiled(self) -> bool:
        """Whether compiling ever pays."""
        return self.plus.compiled and self.minus.compiled

    @property
    def sparse(self) -> bool:
        """Whether both are sparse."""
        return self.plus.kind == self.minus.kind == "sparse"

    @property
    def mixed(self) -> bool:
        """Whether one of them is sparse and the other one is not."""
        return (self.plus.kind == "sparse") != (self.minus.kind == "sparse")

    @property
    def work(self) -> float:
        """What a task costs NumPy, in passes on 512 vertices."""
        return max(self.plus.work, self.minus.work)

    @property
    def points(self) -> int:
        """Numbers in the longest arrays of all pieces of both halves."""
        return sum(lattice.pieces * lattice.width for lattice in self)

    def within(self, points: float) -> Lattices:
        """The same of at most so many points, where the dense one of a half has more than its
        share.
        """
        return Lattices(*(_within(lattice, 0.5 * points) for lattice in self))

    def shapes(self) -> Lattices:
        """The part that decides the programs."""
        return Lattices(*(lattice._replace(size=0, pieces=1) for lattice in self))

    def read_together(self) -> int:
        """Settings whose numbers are read off at once."""
        return min(lattice.read_together() for lattice in self)


def _within(lattice: LatticeChoice, points: float) -> LatticeChoice:
    """A dense lattice of at most so many points in all its pieces: of a size of the menu."""
    if lattice.kind == "sparse" or lattice.pieces * lattice.size <= points:
        return lattice
    fitting = [e for e in SIZES[lattice.kind] if lattice.pieces * 2**e <= points]
    size = 2 ** max(fitting, default=SIZES[lattice.kind][0])
    return lattice._replace(size=size, vertices=min(lattice.vertices, size // 2))
