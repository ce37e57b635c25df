"""Which lattice a setting gets: the smallest of a short menu that has what its plan needs.

Few shapes, because each is one more program to compile. A poor choice makes a bracket wide, never
wrong."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from ..certify import trig_tables
from .lattice_needs import Needs, NeedsOfSides, sharper
from .lattices import SIZES, LatticeChoice, Lattices

# of dense lattices: times the width promised at which a larger one than usual may do, and how many
# times as large that is (the largest take about 300 MiB)
_NEAR = {"jump": (5.0, 2), "heavy": (5.0, 1), "whole": (5.0, 1)}
# of all pieces of a lattice: reading takes a dozen arrays of them
_MOST_VERTICES = {"dense": 2**17, "sparse": 2**17}
_FOCUSED_VERTICES = 8192  # of a dense lattice for one threshold
_COARSE = 512  # … and of a sparse one that is no finer than foreseen


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
    _Shape(64, 512, 1.25, 40, 3, 12, fewest=350.0),
    _Shape(128, 512, 1.25, 40, 4, 12),
    _Shape(128, 512, 1.25, 48, 11, 12),
    _Shape(1024, 2048, 1.5, 64, 3, 13),
    _Shape(1024, 2048, 1.5, 48, 12, 13),
    _Shape(2048, 2048, 2.5, 56, 3, 15),
    _Shape(4096, 2048, 3.0, 48, 3, 15),
    _Shape(8192, 2048, 3.0, 48, 3, 15),
)
# … and for steps that reach far beyond what most of them show, beyond the usual accuracy
_FAR = (_Shape(64, 512, 1.25, 160, 3, 18, fewest=1e5),)
_FAR_PIECES = 8  # at most, as each has three laws of many points
_FAR_VERTICES = 2**16  # about one threshold, as what is looked for lies between two of them
# the smallest ones for first passes over whole curves, which get them where the width foreseen is
# no more than is promised
_LEAN = (
    _Shape(32, 256, 1.0, 32, 2, 9),
    _Shape(64, 512, 1.0, 40, 3, 12),
    _Shape(256, 1024, 1.0, 64, 3, 13),
    _Shape(512, 2048, 1.0, 64, 3, 13),
)
# of the width foreseen, over the width promised: by vertices, by points in an octave where there
# are few octaves and where there are many, and by points where they are equally far apart
_BY_VERTICES, _BY_OCTAVES, _BY_MANY_OCTAVES, _BY_POINTS = 0.55, 0.2, 1.0, 0.6
_MANY_OCTAVES = 13
_FORESEEN = 0.9  # of the width promised, that may be foreseen
_BLOCK = 128  # points between vertices, where a step then still fits
# largest table, and numbers in all tables of a lattice (about), which take 8 bytes each: beside its
# sines at each frequency, those of 48 intervals that bound what is dropped
_TABLE, _TABLES, _BOUNDS, _MANY_PIECES = 2**24, 4.6e7, 288, 64
_FEWEST = 140  # steps, for a sparse lattice
# steps, up to which a finer lattice than that is a dense one: as cheap, and of use more often
_FEW = 300


def likeliest(rtol: float) -> LatticeChoice:
    """The lattice (but for its size) that most settings of many small steps get."""
    extra = sharper(rtol)
    frequencies, vertices, _, base, short, long, _ = _MENU[0]
    vertices, base = vertices << extra, base << extra
    return LatticeChoice("sparse", vertices, frequencies, 16 * vertices, base, short, long, 1)


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
            points = 2 ** int(np.ceil(np.log2(uniform * (2.0 if need.whole else 1.0))))
            return _uniform(kind, points, most, pieces)
    if not dense and need.steps >= (_FEWEST if detail <= 1.0 else _FEW):
        lean = None if need.focused or detail > 1.0 else _lean(need, rtol, pieces)
        sparse = lean or _sparse(need, detail, rtol, pieces)
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
    least = sharper(rtol)
    ladder = range(least, least + (6 if need.focused else 4))
    if need.focused:
        return itertools.product(((detail, detail), (1.0, detail), (1.0, 1.0)), ladder)
    demands = ((detail, detail), (detail, 1.0), (2.0, 1.0), (1.0, 1.0))
    if detail > 8.0:
        return itertools.product(demands, ladder)
    return ((demand, extra) for extra in ladder for demand in demands)


def _lean(need: Needs, rtol: float, pieces: int) -> LatticeChoice | None:
    """The first small sparse lattice whose bracket is foreseen to be as narrow as promised."""
    extra = sharper(rtol)
    for shape, (block, factor) in itertools.product(_LEAN, ((64, 4), (8, 2))):
        frequencies, vertices, _, base, short, long, _ = shape
        vertices, base = vertices << extra, base << extra
        size = block * vertices
        while size < 2.0 * need.points and size < 2**40:
            size *= factor
        if (
            need.bandwidth <= 1.15 * frequencies
            and _foreseen(need, vertices, base, long, size, rtol) <= _FORESEEN * need.share
            and _reaches(need, shape, base, size, pieces)
            and vertices <= _most_vertices("sparse", pieces)
        ):
            return LatticeChoice("sparse", vertices, frequencies, size, base, short, long, pieces)
    return None


def _reaches(need: Needs, shape: _Shape, base: int, size: int, pieces: int) -> bool:
    """Whether the points of a step reach as far as a step does, with tables that have room."""
    scale, points = 1.1 * size / max(need.points, 1.0), base * (shape.short + shape.long + 4)
    # (each of many pieces takes as long as one)
    tables = _TABLES if pieces < _MANY_PIECES else 0.25 * _TABLES
    return bool(
        scale * need.short + 8 < trig_tables.reach(base, shape.short)
        and scale * need.long + 8 < trig_tables.reach(base, shape.long)
        and points * shape.frequencies <= _TABLE
        and points * (2 * shape.frequencies + _BOUNDS) <= tables
    )


def _foreseen(need: Needs, vertices: int, base: int, long: int, size: int, rtol: float) -> float:
    """Width of a bracket of μ over the width promised."""
    octaves = _BY_OCTAVES if long < _MANY_OCTAVES else _BY_MANY_OCTAVES
    return float(
        _BY_VERTICES * (need.vertices / vertices) ** 2
        + octaves * (32.0 / base) ** 2 * (1e-3 / rtol)
        + _BY_POINTS * (need.points / size) ** 2
    )


def _sparse(need: Needs, detail: float, rtol: float, pieces: int) -> LatticeChoice | None:
    """The first sparse lattice of the menu that serves.

    N costs nothing, so it is rounded up generously where a step then still fits."""
    roundings = (_BLOCK, 2), (4, 4), (4, 2)
    most = _most_vertices("sparse", pieces)
    menu = _MENU + _FAR if sharper(rtol) and pieces <= _FAR_PIECES else _MENU
    tries = itertools.product(_demands(need, detail, rtol), menu, roundings)
    for ((finer, denser), extra), shape, (block, factor) in tries:
        frequencies, vertices, room, base, short, long, fewest = shape
        vertices, base = min(vertices << extra, most), base << extra
        size = block * vertices
        while size < need.points * finer and size < 2**40:
            size *= factor
        if (
            need.steps >= fewest
            and need.bandwidth <= (1.2 if frequencies < _MENU[-1][0] else 1.5) * frequencies
            and (need.vertices * np.sqrt(min(denser, 4.0)) <= room * vertices or vertices == most)
            and (not need.focused or min(_COARSE * denser, 2.0 * _FOCUSED_VERTICES) <= vertices)
            and need.base * min(denser, 16.0 if need.focused else 6.0) <= base
            and _reaches(need, shape, base, size, pieces)
        ):
            if need.focused and shape in _FAR:
                vertices = max(vertices, _FAR_VERTICES)
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
