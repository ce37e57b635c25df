"""The constant matrices with which low frequencies are summed, bounded and turned into block sums:
made once, moved to a device once.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import numpy as np

from ...numerics import aligned
from ...numerics.precision import with_float64
from ...numerics.recent import Recent, Shared
from ...numerics.shapes import Array, Bool, Float, Int
from . import trig_tables

# intervals on which dropped frequencies are bounded, up to the scale of one step and again beyond
# it
_PROBES = 24
_HUGE = 1e300
_COLUMNS = 4  # columns that bound |φ| on each of them
NODES = 32  # nodes of the sums over one block
_SMALL = 2**21  # entries of tables that are moved to a device
_MADE = Recent(2**27)  # tables for the next bucket, on the host …
_FEW = 2**24  # … of which so many bytes stay beside large arrays
_MOVED = Recent(2**28)  # … and on devices
_SHARED = Shared()  # columns of both half-curves
# beside compiled programs, whose batches go through all buckets of a sweep in turn
_KEPT_COMPILED = 3 * 2**27
# the same beside an accelerator, which has worked long before a table is made again or moved
_SMALL_THERE, _KEPT_THERE = 2**24, 2**31


class Tables(NamedTuple):
    """Constant matrices of one point pattern and lattice length; arguments of a program.

    Attributes:
        offset: lattice offsets of the n points from the centre, increasing whole numbers.
        size: N, lattice points of the composed loss.
        block: lattice points between vertices.
        inner: lattice points of the blocks that the transform sums; so many of them make a block
            between vertices.
        right, left: indices of the points at each distance above and below the centre, n where
            there is none, shape (D,); at the end, that of the centre itself.
        distance: those distances, in lattice points, without that of the centre.
        sine, versine: sin θ and 1 − cos θ with θ = 2π·distance·k/N, octave by octave, as
            ``trig_tables.at_points`` gives them; see :func:`on_device`.
        even, odd: columns that bound |φ| on each probed interval, shapes (2, probes, D); see
            ``_probes``.
        inside: how many distances are near enough for them on each interval, beside the centre.
        probe_width: widths of the intervals, in radians per lattice point.
        core: 1 at points with neighbours at distance one on both sides, shape (n,).
        beyond: 1/(2·sin(θ/2)) at the lower ends of the intervals beyond the scale of one step, else
            huge.
        edge: ends of the probed intervals, in radians per lattice point, shape (probes + 1,).
        octave_left, octave_right: the largest 1/(2·sin(θs/2)) on each interval, s being how far
            apart points of an octave are, from the next to the farthest one, shapes (octaves,
            probes); huge where θs reaches 2π. None where both sides of a step are one array.
        node, node_weight: nodes and weights for sums over i = 0 … block − 1.
        node_cos, node_sin: cos and sin of 2π·k·node/N, shape (nodes, K).
    """

    offset: Float[Array, " points"]
    size: Float[Array, ""] | float
    block: Float[Array, ""] | float
    inner: Float[Array, ""] | float
    right: Int[Array, " distances"]
    left: Int[Array, " distances"]
    distance: Float[Array, " distances_but_0"]
    sine: trig_tables.Octaves
    versine: trig_tables.Octaves
    even: Float[Array, "columns probes distances"]
    odd: Float[Array, "columns probes distances"]
    inside: Int[Array, " probes"]
    probe_width: Float[Array, " probes"]
    core: Float[Array, " points"]
    beyond: Float[Array, " probes"]
    edge: Float[Array, " edges"]
    octave_left: Float[Array, "left probes"]
    octave_right: Float[Array, "right probes"]
    node: Float[Array, " nodes"]
    node_weight: Float[Array, " nodes"]
    node_cos: Float[Array, "nodes frequencies"]
    node_sin: Float[Array, "nodes frequencies"]


def transform_length(frequencies: int, vertices: int) -> int:
    """Blocks that the transform sums: as many as vertices, or as frequencies if more."""
    return max(vertices, 2 * frequencies)


@functools.cache
def _discrete_gauss(
    number: int, nodes: int
) -> tuple[Float[Array, " nodes"], Float[Array, " nodes"]]:
    """Nodes and weights with Σ_{i<number} f(i) = Σ w·f(x), exact to degree 2·nodes − 1.

    Eigenvalues of a symmetric matrix that has nothing but its side diagonals: plus and minus the
    roots of those of one of half its size, so small that BLAS leaves it to one thread.

    Method: docs/method/frequencies.md#sparse
    """
    count = min(number, nodes)
    k = np.arange(1, count)
    side = 0.5 * k * np.sqrt((number**2 - k**2) / (4.0 * k * k - 1.0))
    half = (np.diag(side, 1) + np.diag(side, -1))[::2, 1::2]
    values, vectors = np.linalg.eigh(half @ half.T)
    root, weight = np.sqrt(np.maximum(values, 0.0)), 0.5 * number * vectors[0] ** 2
    odd = count % 2  # (then there is a node in the middle, which is its own mirror image)
    root[:odd], weight[:odd] = 0.0, 2.0 * weight[:odd]
    x = np.concatenate([-root[odd:][::-1], root]) + 0.5 * (number - 1)
    weight = np.concatenate([weight[odd:][::-1], weight])
    return np.pad(x, (0, nodes - count)), np.pad(weight, (0, nodes - count))


def _probes(
    distance: Float[Array, " distances"], edge: Float[Array, " edges"]
) -> tuple[Float[Array, "columns probes distances"], Float[Array, "columns probes distances"]]:
    """Columns for the bound of |φ(θ)| on the intervals between ``edge``: ``even`` and ``odd`` of
    :class:`Tables`.

    On an interval of width Δ about m, with A the points where |offset|·Δ ≤ 2,
    |φ(θ)| ≤ |φ_A(m) + (θ − m)·φ_A'(m)| + Δ²/8·E_A offset² + (mass outside A).
    The even columns are cos and offset·sin, the odd ones sin and offset·cos, all restricted to A.

    Method: docs/method/frequencies.md#sparse
    """
    middle, width = 0.5 * (edge[1:] + edge[:-1]), np.diff(edge)
    # (row by row: all of them are the largest arrays there are)
    even, odd = (aligned.zeros((2, len(width), len(distance))) for _ in range(2))
    for probe, at in enumerate(middle):
        inside = _inside(distance, width[probe])
        j = distance[inside]
        cos, sin = np.cos(at * j), np.sin(at * j)
        for column, of_even in enumerate((cos, j * sin)):
            even[column, probe, inside] = of_even
        for column, of_odd in enumerate((sin, j * cos)):
            odd[column, probe, inside] = of_odd
    return even, odd


def _inside(distance: Float[Array, " distances"], width: float) -> Bool[Array, " distances"]:
    """Distances that are in A on an interval of a width, see :func:`_probes`."""
    return distance * width <= 2.0


def _octaves(octaves: int, edge: Float[Array, " edges"]) -> Float[Array, "octaves probes"]:
    """The largest 1/(2·sin(θs/2)) for s = 2, 4, … on the intervals between ``edge``, with room."""
    half = 0.5 * np.ldexp(edge, 1 + np.arange(octaves)[:, None])
    least = np.minimum(np.sin(half[:, :-1]), np.sin(half[:, 1:]))
    usable = (half[:, 1:] < 0.99 * np.pi) & (least > 0.0)
    return np.where(usable, (1.0 + 1e-9) * 0.5 / np.where(usable, least, 1.0), _HUGE)


def tables(size: int, frequencies: int, vertices: int, base: int, below: int, above: int) -> Tables:
    """Tables of a lattice of ``size`` points: ``base`` an octave, so many octaves on each side."""
    short, long = sorted((below, above))
    key = (size, frequencies, vertices, base, short, long)
    columns = 2 * frequencies + 2 * _PROBES * _COLUMNS
    room = 8 * (base * (long + 2) * columns + 2 * NODES * frequencies)
    return _MADE.get(key, lambda: _both(*key), room)[below > above]


def make_room() -> None:
    """Forget most tables on the host: what needs memory for large arrays takes longer than to make
    them again.
    """
    _MADE.shrink(_FEW)


def _both(
    size: int, frequencies: int, vertices: int, base: int, short: int, long: int
) -> tuple[Tables, Tables]:
    """Tables of a step and of its mirror image, which have all large ones in common: forgotten one
    by one, each would be made again for the other.
    """
    one = _tables(size, frequencies, vertices, base, short, long)
    if short == long:
        return one, one
    return one, _tables(size, frequencies, vertices, base, long, short)


def _tables(
    size: int, frequencies: int, vertices: int, base: int, below: int, above: int
) -> Tables:
    left, right = trig_tables.points(base, below), trig_tables.points(base, above)[:-1]
    offset = np.concatenate([-left[::-1], [0], right]).astype(float)
    core = np.zeros(len(offset))
    core[len(left) - 2 * base : len(left) + 2 * base] = 1.0
    # (the centre comes last: its sines are all 0)
    distance = np.append(trig_tables.points(base, max(below, above)), 0).astype(float)
    to_right, to_left = np.full(len(distance), len(offset)), np.full(len(distance), len(offset))
    to_right[: len(right)], to_right[-1] = len(left) + 1 + np.arange(len(right)), len(left)
    to_left[: len(left)] = len(left) - 1 - np.arange(len(left))
    first = min(2.0 * np.pi * frequencies / size, np.pi)
    last = max(first, min(8.0 / base, np.pi))
    edge = np.append(
        np.geomspace(first, last, _PROBES + 1),
        np.linspace(last**0.5, np.pi**0.5, _PROBES + 1)[1:] ** 2,
    )
    # (they are the same for a step and for its mirror image, as sines are)
    key = size, frequencies, base, max(below, above)
    even, odd = _SHARED.pair(key, lambda: _probes(distance, edge))
    inside = np.array([np.sum(_inside(distance[:-1], width)) for width in np.diff(edge)])
    octaves = _octaves(below, edge), _octaves(above, edge)
    beyond = np.append(np.full(_PROBES, _HUGE), 0.5 / np.sin(0.5 * edge[_PROBES:-1]))
    inner = size // transform_length(frequencies, vertices)
    node, weight = _discrete_gauss(inner, NODES)
    sine, versine = trig_tables.at_points(size, frequencies, base, max(below, above))
    cos, sin = trig_tables.at_nodes(size, frequencies, node)
    block, whole = float(size // vertices), float(size)
    made = Tables(
        offset, whole, block, float(inner), to_right, to_left, distance[:-1], sine, versine,
        even, odd, inside, np.diff(edge), core, beyond, edge, *octaves, node, weight, cos, sin,
    )  # fmt: skip
    return jax.tree.map(np.asarray, made)


def entries(t: Tables) -> int:
    """Numbers in a table of sines."""
    return t.right.size * t.node_cos.shape[-1]


def on_device(t: Tables) -> Tables:
    """Tables as arguments of a compiled program: moved once, and the sines in a slab apart.

    ``t`` as :func:`tables` gives it; larger ones stay on the host.
    """
    accelerated = jax.default_backend() != "cpu"
    if accelerated:
        _MADE.most = _MOVED.most = _KEPT_THERE
    else:
        _MADE.most = _KEPT_COMPILED
    if entries(t) > (_SMALL_THERE if accelerated else _SMALL):
        return t
    where = getattr(jax.config, "jax_default_device", None)

    # (what was moved is kept together with its copy on the host, which is how it is found again)
    def moved(a):
        return _MOVED.get((id(a), where), lambda: (a, _put(_rows(a))))[1]

    sine, versine = (tuple(moved(a) for a in table) for table in (t.sine, t.versine))
    rest: Any = t._replace(sine=None, versine=None)
    rest = _MOVED.get((id(t.offset), where), lambda: (rest, _put(rest)))[1]
    return rest._replace(sine=sine, versine=versine)


def _rows(table: Array) -> Array | tuple[Array, ...]:
    return tuple(table[0]) if table.shape[0] == 1 else table


_put = with_float64(jax.device_put)
