"""Which lattice a setting gets: the smallest of a short menu that has what its plan needs.

Few shapes, because each is one more program to compile. A poor choice makes a bracket wide, never
wrong."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from ...numerics.shapes import Array, Bool, Float
from ..certify import frequency_tables, trig_tables
from ..certify.lattice import Dense
from ..plan import Plan

_CHUNK = 2**19  # numbers in the largest array worked on at once
_TOGETHER = 24  # half-curve pieces worked on at once, at most
# of dense lattices: times the width promised at which a larger one than usual may do, and how many
# times as large that is (the largest take about 300 MiB)
_NEAR = {"jump": (5.0, 2), "heavy": (5.0, 1), "whole": (5.0, 1)}
# of all pieces of a lattice: reading takes a dozen arrays of them
_MOST_VERTICES = {"dense": 2**17, "sparse": 2**17}
_FOCUSED_VERTICES = 8192  # of a dense lattice for one threshold
_COARSE = 512  # … and of a sparse one that is no finer than foreseen
_FOCUSED = (
    1200.0  # vertices across the composed law that the neighbourhood of one threshold needs at most
)
_VERTICES = 24.0  # vertices between ℓ = 0 and the floor at rtol 1e-3, at least


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
        return max(1, min(_TOGETHER, _CHUNK // (2 * self.vertices)) // self.pieces)

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
        most = max(1, min(_TOGETHER, _CHUNK // (self.width * components)) // self.pieces)
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


SIZES = {
    "heavy": (14, 16, 18, 20),
    "whole": (13, 16, 18, 20),
    "jump": (13, 19),  # (these have twice as many arrays)
}  # of dense lattices


class _Shape(NamedTuple):
    """A sparse lattice of the menu, at rtol 1e-3.

    Attributes:
        frequencies, vertices: as of a lattice.
        room: how many times more vertices may be foreseen.
        base: points per octave.
        short, long: octaves on the short and on the long side of one step.
        fewest: steps; the law of fewer is not so smooth, and takes more points to show that its
            other frequencies are small.
    """

    frequencies: int
    vertices: int
    room: float
    base: int
    short: int
    long: int
    fewest: float = 0.0


# few, because each is one more program to compile
_MENU = (
    _Shape(64, 512, 1.25, 32, 4, 12, fewest=700.0),
    _Shape(128, 512, 1.25, 40, 4, 12),
    _Shape(128, 512, 1.25, 48, 11, 12),
    _Shape(1024, 2048, 1.5, 64, 3, 13),
    _Shape(1024, 2048, 1.5, 48, 12, 13),
    _Shape(2048, 2048, 2.5, 56, 3, 15),
    _Shape(4096, 2048, 3.0, 48, 3, 15),
    _Shape(8192, 2048, 3.0, 48, 3, 15),
)
_BLOCK = 128  # points between vertices, where a step then still fits
_TABLE = 2**24  # largest table
_FEWEST = 140  # steps, for a sparse lattice
# steps, up to which a finer lattice than that is a dense one: as cheap, and of use more often
_FEW = 300


class Needs(NamedTuple):
    """What each setting needs of a lattice at accuracy ``rtol`` (arrays over settings).

    Attributes:
        points: lattice points, if sparse.
        dense: lattice points, if dense.
        bandwidth: frequencies.
        vertices: of a piece.
        short, long: reach of a step on its two sides, in points of a sparse lattice.
        base: points per octave, if sparse.
        steps: number of steps.
        whole: whether one step is most of the composition.
        focused: whether the task is about one threshold.
        jumps: whether a single step is the likeliest way there.
    """

    points: Float[Array, " settings"]
    dense: Float[Array, " settings"]
    bandwidth: Float[Array, " settings"]
    vertices: Float[Array, " settings"]
    short: Float[Array, " settings"]
    long: Float[Array, " settings"]
    base: Float[Array, " settings"]
    steps: Float[Array, " settings"]
    whole: Bool[Array, " settings"]
    focused: Bool[Array, " settings"]
    jumps: Bool[Array, " settings"]


class NeedsOfSides(NamedTuple):
    """What each setting needs of a lattice that serves all its half-curves, and of one that serves
    one of them.

    Attributes:
        together: of a lattice for all of them.
        each: of one for each.
    """

    together: Needs
    each: tuple[Needs, ...]

    def of(self, row: int) -> NeedsOfSides:
        """The needs of one setting."""
        one = lambda needs: Needs(*(column[row] for column in needs))
        return NeedsOfSides(one(self.together), tuple(one(own) for own in self.each))


def likeliest(rtol: float) -> LatticeChoice:
    """The lattice (but for its size) that most settings of many small steps get."""
    extra = _sharper(rtol)
    frequencies, vertices, _, base, short, long, _ = _MENU[0]
    vertices, base = vertices << extra, base << extra
    return LatticeChoice("sparse", vertices, frequencies, 16 * vertices, base, short, long, 1)


def _sharper(rtol: float) -> int:
    """Doublings of points and vertices that an accuracy beyond 1e-3 takes."""
    return max(0, int(np.ceil(np.log2(np.sqrt(1e-3 / rtol)) - 0.4)))


def most_points(kind: str, largest: int, focused: bool, excess: float) -> int:
    """Points of the largest dense lattice, at most ``largest`` as a rule, for a task whose bracket
    is ``excess`` times as wide as promised.

    Tasks about one threshold that need not much more than the usual largest one get as many as
    memory allows, where that is more; a lattice for what takes a jump has more arrays."""
    usual, (near, times) = 2 ** SIZES[kind][-1], _NEAR[kind]
    free = largest >= 2 ** max(sizes[-1] for sizes in SIZES.values())  # no limit of the user's own
    return usual * times if focused and excess <= near and free else min(largest, usual)


def choose_each(need: NeedsOfSides, one: Callable[[Needs], LatticeChoice]) -> Lattices:
    """The lattices of one setting: one for both half-curves where a sparse one serves both, else
    the one that each half-curve needs.

    Args:
        need: of one setting.
        one: the lattice for needs, see :func:`choose`.
    """
    together = one(need.together)
    if together.kind == "sparse" or len(need.each) == 1:
        return Lattices(together, together)
    return Lattices(*(one(own) for own in need.each))


@np.errstate(all="ignore")
def choose(
    need: Needs,
    detail: float,
    rtol: float,
    pieces: int,
    largest: int,
    dense: bool,
    excess: float = np.inf,
) -> LatticeChoice:
    """The lattice for one setting.

    Args:
        need: numbers of one setting.
        detail: how many times finer a lattice than foreseen.
        rtol: requested relative accuracy.
        pieces: tilts along the half-curve.
        largest: points of the largest dense lattice, as a rule.
        dense: whether only dense lattices will do.
        excess: width over the width promised, of the passes so far.

    Method: docs/method/index.md#steering
    """
    if need.jumps:
        most = most_points("jump", largest, True, excess)
        points = float(2.0 ** np.ceil(np.log2(need.points * detail)))
        return _uniform("jump", points, most, pieces)
    if need.focused and detail > 1.0:
        kind, uniform = _dense_kind(need), need.points * detail / 2.0
        most = most_points(kind, largest, True, excess)
        if uniform <= (most / 2 if most <= largest else most):
            # (a second pass, at few thresholds: points that are equally far apart everywhere leave
            # nothing to chance)
            points = 2 ** int(np.ceil(np.log2(uniform * (4.0 if need.whole else 1.0))))
            return _uniform(kind, points, most, pieces)
    if not dense and need.steps >= (_FEWEST if detail <= 1.0 else _FEW):
        sparse = _sparse(need, detail, rtol, pieces)
        if sparse is not None:
            return sparse
    return _dense(need, detail, pieces, largest, excess)


def _most_vertices(kind: str, pieces: int) -> int:
    """Vertices of each of so many pieces, at most."""
    return max(_MOST_VERTICES[kind] // 2 ** int(np.ceil(np.log2(pieces))), 512)


def _dense_kind(need: Needs) -> str:
    return "whole" if need.whole else "heavy"


def _uniform(kind: str, points: float, most: int, pieces: int) -> LatticeChoice:
    """A dense lattice of about so many points for the neighbourhood of one threshold."""
    # (of a law far narrower than a double of its losses tells apart nothing is foreseen)
    size = int(np.clip(np.nan_to_num(points, nan=most, posinf=most), 2**13, most))
    return LatticeChoice(kind, min(size // 2, _FOCUSED_VERTICES), 0, size, 0, 0, 0, pieces)


def _demands(need: Needs, detail: float, rtol: float) -> Iterator[tuple]:
    """((how many times finer, how many times more vertices), doublings), in the order they are
    tried: as fine, and with as many points and vertices, as ``detail`` asks for if some lattice
    serves, less otherwise.
    """
    sharper = _sharper(rtol)
    ladder = range(sharper, sharper + (6 if need.focused else 4))
    if need.focused:
        return itertools.product(((detail, detail), (1.0, detail), (1.0, 1.0)), ladder)
    demands = ((detail, detail), (detail, 1.0), (2.0, 1.0), (1.0, 1.0))
    if detail > 8.0:
        return itertools.product(demands, ladder)
    return ((demand, extra) for extra in ladder for demand in demands)


def _sparse(need: Needs, detail: float, rtol: float, pieces: int) -> LatticeChoice | None:
    """The first sparse lattice of the menu that serves.

    N costs nothing, so it is rounded up generously where a step then still fits."""
    roundings = (_BLOCK, 2), (4, 4), (4, 2)
    most = _most_vertices("sparse", pieces)
    tries = itertools.product(_demands(need, detail, rtol), _MENU, roundings)
    for ((finer, denser), extra), shape, (block, factor) in tries:
        frequencies, vertices, room, base, short, long, fewest = shape
        vertices, base = min(vertices << extra, most), base << extra
        size = block * vertices
        while size < need.points * finer and size < 2**40:
            size *= factor
        scale = 1.1 * size / max(need.points, 1.0)
        if (
            need.steps >= fewest
            and need.bandwidth <= (1.2 if frequencies < _MENU[-1][0] else 1.5) * frequencies
            and (need.vertices * np.sqrt(min(denser, 4.0)) <= room * vertices or vertices == most)
            and (not need.focused or min(_COARSE * denser, 2.0 * _FOCUSED_VERTICES) <= vertices)
            and need.base * min(denser, 16.0 if need.focused else 6.0) <= base
            and scale * need.short + 8 < trig_tables.reach(base, short)
            and scale * need.long + 8 < trig_tables.reach(base, long)
            and base * (short + long + 4) * frequencies <= _TABLE
        ):
            return LatticeChoice("sparse", vertices, frequencies, size, base, short, long, pieces)
    return None


def _dense(need: Needs, detail: float, pieces: int, largest: int, excess: float) -> LatticeChoice:
    """The smallest dense lattice that serves, or the largest of all."""
    kind = _dense_kind(need)
    sizes = [2**k for k in SIZES[kind] if 2**k <= largest] or [largest]
    most = max(sizes[-1], most_points(kind, sizes[-1], bool(need.focused), excess))
    size = next((size for size in sizes if size >= need.dense * detail), most)
    share = (2 if pieces == 1 else 8) if kind == "heavy" else 16
    vertices = min(size // share, _most_vertices("dense", pieces))
    return LatticeChoice(kind, vertices, 0, size, 0, 0, 0, pieces)


class Side(NamedTuple):
    """Plans of one half-curve.

    Attributes:
        plan: leaves of shape (settings, pieces, …).
        swapped: whether the pair is swapped, so that its steps reach further to the left.
    """

    plan: Plan
    swapped: bool


@np.errstate(all="ignore")
def needs(
    sides: Sequence[Side], steps: Float[Array, " settings"], rtol: float, focused: bool = False
) -> NeedsOfSides:
    """What settings need of lattices.

    Args:
        sides: their half-curves.
        steps: their numbers of steps.
        rtol: requested relative accuracy.
        focused: whether the plans are about one threshold.
    """
    raw = [_needs_of(side, steps, rtol, focused) for side in sides]
    largest = Needs(*(np.maximum.reduce(columns) for columns in zip(*raw, strict=True)))
    each = tuple(_placed(own) for own in raw)
    return NeedsOfSides(each[0] if len(each) == 1 else _placed(largest), each)


def _placed(own: Needs) -> Needs:
    """Needs with the reach of a step in points, and the points that it takes of a dense lattice."""
    short, long = own.short, own.long
    whole = short >= 0.9 / 32
    stretch = np.maximum(np.where(whole, 2.0 * np.maximum(long, short), 2.0 * long), 1.0)
    return own._replace(
        dense=np.maximum(own.dense * stretch, 1.4 * own.vertices),
        short=short * own.points,
        long=long * own.points,
        whole=whole,
    )


def _needs_of(side: Side, steps: Array, rtol: float, focused: bool) -> Needs:
    """What one half-curve needs, with the reach of a step in parts of the window; see
    :func:`_placed`.
    """
    plan, width = side.plan, side.plan.high - side.plan.low
    # expected relative width 0.14·h²·T/V, from the variance under the tilt; the brackets themselves
    # decide later
    fine = np.sqrt(0.6 * rtol / 0.14)
    root = np.sqrt(steps[:, None])
    across = _largest(width / (fine * plan.spread))
    asked = _largest(width / np.maximum(plan.cut_high - plan.cut_low, 1e-300))
    low, high = (_largest(_step_reach(plan, below) / width) for below in (True, False))
    short, long = (high, low) if side.swapped else (low, high)
    # enough vertices across the composed law, and between the thresholds requested (a task about
    # one threshold has a vertex there)
    across = np.minimum(across, _FOCUSED) if focused else across
    vertices = np.maximum(0.75 * across, _VERTICES * np.sqrt(1e-3 / rtol) * np.minimum(asked, 40.0))
    return Needs(
        points=_largest(1.02 * width * root / (fine * plan.smooth)),
        dense=_largest(root * width / (fine * plan.spread)),
        bandwidth=_largest(1.05 * width * plan.bandwidth / (2.0 * np.pi)),
        vertices=vertices,
        short=short,
        long=long,
        # the error of a tail grows with the square of its depth, and falls with the square of the
        # points in an octave
        base=np.full(len(steps), (32.0 if focused else 8.0) * 2 ** _sharper(rtol)),
        steps=steps,
        whole=np.zeros(len(steps), bool),
        focused=np.full(len(steps), focused),
        jumps=np.any(np.isfinite(plan.jump), axis=1),
    )


def _largest(values: Float[Array, "settings pieces"]) -> Float[Array, " settings"]:
    """The largest of all pieces."""
    return np.max(values, axis=1)


def _step_reach(plan: Plan, low: bool) -> Any:
    """How far a step reaches below, or above, its median."""
    moved = plan.middle - plan.centre
    return np.max(plan.reach_low + moved if low else plan.reach_high - moved, axis=-1)
