"""Composition at low frequencies: a step's lattice law on few, unevenly spaced points, composed
without a long FFT.

A many-fold composition is smooth, so only its lowest K frequencies matter. They are sums over the
points of one step, a matrix product with a constant matrix; and those points may be spaced h where
most of the mass is and 2h, 4h, … further out, so that a few hundred serve a lattice of any length
N. What is dropped is bounded, not assumed: |φ| is sampled with a Taylor remainder up to the scale
of one step, and beyond it follows from the total variation of the masses."""

from __future__ import annotations

import itertools
import operator
from typing import Any, NamedTuple

import jax
import numpy as np

from ...numerics import namespace as xp
from ...numerics.batching import ONE_THREAD
from ...numerics.errors import DROPPED, FFT, NODE_SUMS, UNIT
from ...numerics.precision import with_float64
from ...numerics.recent import Recent
from ..experimental import matrix_transform
from . import trig_tables
from .convolution import Composed, escaped_mass, log_transform, normalisation

_LAWS = 24  # laws whose frequencies NumPy sums at once
# intervals on which dropped frequencies are bounded, up to the scale of one step and again beyond
# it
_PROBES = 24
_NODES = 32  # nodes of the sums over one block
_SMALL = 2**21  # entries of tables that are moved to a device
_MADE, _MOVED = (
    Recent(3 * 2**27),
    Recent(2**28),
)  # tables for the next bucket, on the host and on devices
_STEEPEST = 30.0  # largest decay over one block that the nodes resolve to the last digit


class Sums(NamedTuple):
    """1 − Re φ and −Im φ of steps at the lowest frequencies, shapes (…, K), and a bound on their
    distance from the exact ones; None for sums in doubles, as :func:`sums` takes them."""

    versine: Any
    sine: Any
    off: Any = None


class Tables(NamedTuple):
    """Constant matrices of one point pattern and one lattice length; arguments of a program, not
    part of it.

    Attributes:
        offset: lattice offsets of the n points from the centre, increasing whole numbers.
        size: N, lattice points of the composed loss.
        block: lattice points between vertices.
        inner: lattice points of the blocks that the transform sums; so many of them make a block
            between vertices.
        right, left: indices of the points at each distance above and below the centre, n where
            there is none, shape (D,); of the centre itself in the end.
        sine, versine: sin θ and 1 − cos θ with θ = 2π·distance·k/N, octave by octave, as
            ``waves.at_points`` gives them; see :func:`on_device`.
        even, odd: columns that bound |φ| on each probed interval, shapes (4, probes, D), (2,
            probes, D); see ``_probes``.
        probe_width: widths of the intervals, in radians per lattice point.
        core: 1 at points with neighbours at distance one on both sides, shape (n,).
        beyond: 1/(2·sin(θ/2)) at the lower ends of the intervals beyond the scale of one step, else
            huge.
        node, node_weight: nodes and weights for sums over i = 0 … block − 1.
        node_cos, node_sin: cos and sin of 2π·k·node/N, shape (nodes, K).
    """

    offset: Any
    size: Any
    block: Any
    inner: Any
    right: Any
    left: Any
    sine: Any
    versine: Any
    even: Any
    odd: Any
    probe_width: Any
    core: Any
    beyond: Any
    node: Any
    node_weight: Any
    node_cos: Any
    node_sin: Any


def _length(frequencies: int, vertices: int) -> int:
    """Blocks that the transform sums: as many as vertices, or more where there are as many
    frequencies.
    """
    return max(vertices, 2 * frequencies)


def _discrete_gauss(number: int, nodes: int):
    """Nodes and weights with Σ_{i<number} f(i) = Σ w·f(x), exact to degree 2·nodes − 1 (Gram
    polynomials).

    Method: docs/method/frequencies.md#sparse
    """
    count = min(number, nodes)
    k = np.arange(1, count)
    side = 0.5 * k * np.sqrt((number**2 - k**2) / (4.0 * k * k - 1.0))
    values, vectors = np.linalg.eigh(np.diag(side, 1) + np.diag(side, -1))
    x, weight = values + 0.5 * (number - 1), number * vectors[0] ** 2
    return np.pad(x, (0, nodes - count)), np.pad(weight, (0, nodes - count))


def _probes(distance: np.ndarray, edge: np.ndarray):
    """Columns for the bound of |φ(θ)| on the intervals between ``edge``.

    On an interval of width Δ about m, with A the points where |offset|·Δ ≤ 2,
    |φ(θ)| ≤ |φ_A(m) + (θ − m)·φ_A'(m)| + Δ²/8·E_A offset² + (mass outside A).
    The even columns are cos, offset·sin, 1 and offset², the odd ones sin and offset·cos, all restricted to A.

    Method: docs/method/frequencies.md#sparse
    """
    middle, width = 0.5 * (edge[1:] + edge[:-1]), np.diff(edge)
    j = distance[:, None]
    inside = j * width <= 2.0
    cos, sin = np.cos(middle * j), np.sin(middle * j)
    restricted = lambda *columns: np.stack([np.where(inside, column, 0.0).T for column in columns])
    square = np.broadcast_to(j * j, cos.shape)
    return restricted(cos, j * sin, np.ones_like(cos), square), restricted(sin, j * cos), width


def tables(size: int, frequencies: int, vertices: int, base: int, below: int, above: int) -> Tables:
    """Tables of a lattice of ``size`` points: ``base`` points an octave, so many octaves below and
    above the centre.
    """
    key = (size, frequencies, vertices, base, below, above)
    return _MADE.get(key, lambda: _tables(*key))


def _tables(size, frequencies, vertices, base, below, above) -> Tables:
    left, right = trig_tables.points(base, below), trig_tables.points(base, above)[:-1]
    offset = np.concatenate([-left[::-1], [0], right]).astype(float)
    core = np.zeros(len(offset))
    core[len(left) - 2 * base : len(left) + 2 * base] = 1.0
    # (the centre comes last: all its waves are 0)
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
    even, odd, width = _probes(distance, edge)
    beyond = np.append(np.full(_PROBES, 1e300), 0.5 / np.sin(0.5 * edge[_PROBES:-1]))
    inner = size // _length(frequencies, vertices)
    node, weight = _discrete_gauss(inner, _NODES)
    # (waves are the same for a step and for its mirror image)
    sine, versine = trig_tables.at_points(size, frequencies, base, max(below, above))
    return jax.tree.map(np.asarray, Tables(
        offset, float(size), float(size // vertices), float(inner), to_right, to_left, sine, versine, even, odd, width, core, beyond, node,
        weight, *trig_tables.at_nodes(size, frequencies, node),
    ))  # fmt: skip


def entries(t: Tables) -> int:
    """Numbers in a table of waves."""
    return t.right.size * t.node_cos.shape[-1]


def on_device(t: Tables) -> Tables:
    """Tables as arguments of a compiled program: moved once, and the rows of waves in one slab
    apart, so that no call copies any.

    ``t`` as :func:`tables` gives it; larger ones stay on the host.
    """
    if entries(t) > _SMALL:
        return t
    where = getattr(jax.config, "jax_default_device", None)

    # (what was moved is kept together with its copy on the host, which is how it is found again)
    def moved(a, form=lambda a: a):
        return _MOVED.get((id(a), where), lambda: (a, _put(form(a))))[1]

    sine, versine = (tuple(moved(a, _rows) for a in table) for table in (t.sine, t.versine))
    rest = t._replace(sine=None, versine=None)
    rest = _MOVED.get((id(t.offset), where), lambda: (rest, _put(rest)))[1]
    return rest._replace(sine=sine, versine=versine)


def _rows(wave):
    return tuple(wave[0]) if wave.shape[0] == 1 else wave


_put = with_float64(jax.device_put)


def fold(w, t: Tables):
    """Sum and difference of the masses at equal distances above and below the centre, shape
    (components, D).
    """
    padded = xp.pad(w, ((0, 0), (0, 1)))
    right, left = padded[:, t.right], padded[:, t.left]
    return right + left, right - left


def _in_rows(a, table):
    """Products of the folded masses (components, D) with a table of waves; shape (components,
    K).
    """
    rows = a[:, :-1].reshape(a.shape[0], -1, _row(table))
    if not xp.is_jax(rows, *jax.tree.leaves(table)):
        return _in_small_products(rows, table)

    def slab(octaves):
        every = (row for octave in octaves for row in octave)
        return _in_pairs([rows[:, b] @ row for b, row in enumerate(every)])

    if isinstance(table[0], tuple):  # as moved to a device
        return slab(table)
    if table[0].shape[0] == 1:
        return slab([octave[0] for octave in table])
    return xp.moveaxis(xp.lax_map(slab, table), 0, 1).reshape(a.shape[0], -1)


def _row(table) -> int:
    """Numbers in a row of a table of waves."""
    return jax.tree.leaves(table)[0].shape[-2]


def _in_small_products(rows, table):
    """The same by NumPy: each product so small that BLAS leaves it to one thread; of two on busy
    cores one would wait for the other.
    """
    (number, _, length), (slabs, each, _, width) = rows.shape, table[0].shape
    found = np.empty((number, slabs, width))
    for first in range(0, number, _LAWS):
        some = np.ascontiguousarray(np.swapaxes(rows[first : first + _LAWS], 0, 1))
        step = ONE_THREAD // (length * some.shape[1])
        for slab, k in itertools.product(range(slabs), range(0, width, step)):
            columns = [wave[slab, :, :, k : k + step] for wave in table]
            parts = (
                some[octave * each : (octave + 1) * each] @ column
                for octave, column in enumerate(columns)
            )
            found[first : first + _LAWS, slab, k : k + step] = _in_pairs(
                [row for part in parts for row in part]
            )
    return found.reshape(number, -1)


def _in_pairs(parts: list):
    """The sum of n terms, each in ⌈log₂ n⌉ additions."""
    while len(parts) > 1:
        parts = [
            operator.add(*pair) for pair in zip(parts[::2], parts[1::2], strict=False)
        ] + parts[len(parts) & ~1 :]
    return parts[0]


def sums(w, t: Tables) -> Sums:
    """The low frequencies of laws of shape (rows, n): of many at once, a large table is read once
    for all of them.
    """
    even, odd = fold(w, t)
    return Sums(_in_rows(even, t.versine), _in_rows(odd, t.sine))


def _dropped(w, count, t: Tables):
    """Bound on |φ₁^T₁·φ₂^T₂ ⋯| over every frequency from K to N/2.

    Method: docs/method/frequencies.md#sparse
    """
    even, odd = fold(w, t)
    cos, moment_sin, mass, square = (even @ column.T for column in t.even)
    sin, moment_cos = (odd @ column.T for column in t.odd)
    half = 0.5 * t.probe_width
    # φ = cos − i·sin, φ' = −moment_sin − i·moment_cos
    cross = xp.abs(-cos * moment_sin + sin * moment_cos)
    slope = moment_sin**2 + moment_cos**2
    middle = xp.sqrt(cos**2 + sin**2 + 2.0 * half * cross + half**2 * slope)
    probed = middle + 0.5 * half**2 * square + (1.0 - mass)
    inner = w * t.core
    variation = xp.sum(xp.abs(xp.diff(inner, axis=-1, prepend=0.0, append=0.0)), axis=-1)
    smooth = variation[:, None] * t.beyond + 1.0 - xp.sum(inner, axis=-1)[:, None]
    bound = xp.minimum(probed, smooth)
    log_bound = xp.log(xp.minimum(bound + DROPPED, 1.0))
    return xp.exp(xp.max(count @ log_bound))


def compose(
    weights,
    count,
    start,
    tilt,
    h,
    miss_low,
    miss_high,
    t: Tables,
    vertices: int,
    product: bool = False,
    known: Sums | None = None,
) -> Composed:
    """Compose the mechanisms of one setting from their low frequencies (unbatched); see
    ``convolution.compose_blocks``.

    ``product`` does the inverse transform as matrix products (``products``) and no FFT. ``known``
    are the frequencies of one step, where they are known already.

    Method: docs/method/frequencies.md#sparse
    Method: docs/method/rounding.md#guard
    """
    w = weights.weight
    versine, sine, off = sums(w, t) if known is None else known
    re, im = -versine, -sine
    log_abs, arg, log_error = log_transform(re, im)
    log_power, angle = count @ log_abs, count @ arg

    # rounding of φ − 1 = Σ w·(e^{−iθ} − 1): every term, and each relative error of a mass, comes
    # with |e^{−iθ} − 1|, and Σ w·|e^{−iθ} − 1|² = 2·Σ w·(1 − cos θ); a cell edge that is off moves
    # mass by the width of a cell
    k = xp.arange(re.shape[-1], dtype=re.dtype)
    versine = versine if off is None else xp.maximum(versine, 0.0) + off
    root = xp.sqrt(2.0 * versine)
    wave = 2.0 * xp.pi / t.size * k
    row = _row(t.sine)
    depth = row + np.ceil(np.log2(t.right.shape[0] // row)) + 4.0
    single = (
        depth * UNIT * (versine + root)
        + weights.relative[:, None] * root
        + wave * weights.moved[:, None]
    )
    relative = xp.einsum("c,ck->k", count, single * xp.exp(-log_abs))
    relative = relative + count @ log_error
    power = xp.exp(log_power)
    length = _length(re.shape[-1], vertices)
    transform = (
        matrix_transform.rounding(re.shape[-1], length) if product else FFT * np.log2(length)
    )
    error = power * (relative + transform * UNIT + NODE_SUMS)
    if off is not None:
        error = error + _moved(log_power, count @ xp.log1p((off + single) * xp.exp(-log_abs)))
    noise = xp.sqrt(2.0 * xp.sum(error * error) / t.size)
    escaped = _dropped(w, count, t) * xp.sqrt(t.size)
    escaped = escaped + escaped_mass(
        w, count, h * t.offset, h * start, h * t.size, h, miss_low, miss_high
    )
    escaped = escaped + xp.where(tilt * h * t.inner > _STEEPEST, 1.0, 0.0)

    # shift the window to its first point, then sum blocks by short kernels
    turns = k * xp.mod(start, t.size) / t.size
    angle = angle + (2.0 * np.pi) * (turns - xp.floor(turns))
    real, imaginary = power * xp.cos(angle), power * xp.sin(angle)
    i = t.node + 1.0
    decay = t.node_weight * xp.exp(-tilt * i * h)
    share = xp.expm1(i * h) / xp.expm1(t.inner * h)

    def block_sums(kernel):
        cos, sin = kernel @ t.node_cos, kernel @ t.node_sin
        if product:
            seen = matrix_transform.inverse(
                real * cos - imaginary * sin, real * sin + imaginary * cos, length
            )
        else:
            padded = xp.pad(
                xp.complex(real, imaginary) * xp.complex(cos, sin),
                (0, length // 2 + 1 - real.shape[0]),
            )
            seen = xp.irfft(padded, length)
        return (seen / t.inner).reshape(vertices, -1)

    plain, split = joined(block_sums(decay), block_sums(decay * share), tilt, h * t.inner)
    return Composed(plain, split, *normalisation(weights, count), noise, escaped)


def _moved(log_power, growth):
    """Bound on the change of Π φ^T, whose absolute value has this log, where each φ changes by δ;
    ``growth`` is Σ T·log(1 + |δ/φ|).

    |Π (φ + δ)^T − Π φ^T| ≤ Π (|φ| + |δ|)^T − Π |φ|^T, however large the change.

    Method: docs/method/narrow.md#spectrum
    """
    small = growth < 1.0
    whole = xp.exp(log_power + xp.where(small, 0.0, growth))
    return whole * xp.where(small, xp.expm1(xp.where(small, growth, 0.0)), 1.0)


def joined(plain, split, tilt, width):
    """Block sums (see ``convolution.Composed``) of each row of neighbouring blocks of the given
    width taken as one.

    A point x into the j-th of m blocks is (e^{jw + x} − 1)/(e^{mw} − 1) of the way to the far end:
    the chord of all m blocks, in terms of that of its own."""
    number = plain.shape[-1]
    if number == 1:
        return plain[:, 0], split[:, 0]
    before = width * xp.arange(number)
    decay = xp.exp(-tilt * before)
    whole = xp.expm1(number * width)
    along = split @ (decay * xp.exp(before) * (xp.expm1(width) / whole)) + plain @ (
        decay * xp.expm1(before) / whole
    )
    return plain @ decay, along
