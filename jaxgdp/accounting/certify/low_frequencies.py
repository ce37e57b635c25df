"""Self-composition at low frequencies: a step's law on few, uneven points, without a long FFT.

A many-fold composition is smooth, so only its lowest K frequencies matter. They are sums over the
points of one step, a matrix product with a constant matrix; and those points may be spaced h where
most of the mass is and 2h, 4h, … further out, so that a few hundred serve a lattice of any length
N. What is dropped is bounded, not assumed: |φ| is sampled with a Taylor remainder up to the scale
of one step, and beyond it follows from the total variation of the masses."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np

from ...numerics import namespace as xp
from ...numerics.batching.products import ROWS, columns, in_whole_parts
from ...numerics.errors import DROPPED, NODE_SUMS, SPECTRUM, UNIT
from ...numerics.shapes import Array, Float
from .block_sums import Blocks, block_units, joined
from .composed import Composed, Window, change_of_powers, normalisation, root_of_squares
from .convolution import LogTransform, log_transform
from .discretisation import Weights
from .frequency_tables import Tables, transform_length
from .inverse_transform import BY_FFT, InverseTransform
from .trig_tables import Octaves
from .truncation import escaped_mass

_ROOM = 1e-9  # part of a mass that sums of some thousand of them may be off by, and more
_OFF = 1e-12  # the same of what is about the centre, which is nearly all
_NEXT_TO_1 = 1.0 - 2e-4  # bound on |φ| that is not small enough for some hundred thousand steps
_STEEPEST = 30.0  # largest decay over one block that the nodes resolve to the last digit


class Sums(NamedTuple):
    """Steps at the lowest frequencies.

    Attributes:
        versine, sine: 1 − Re φ and −Im φ, of shapes (…, K).
        off: bound on their distance from the exact ones; None for sums in doubles, as :func:`sums`
            takes them.
        log_dropped: log of a bound on |φ| at every other frequency, of shape (…, probes); None
            where that is still to be found.
    """

    versine: Float[Array, "... frequencies"]
    sine: Float[Array, "... frequencies"]
    off: Float[Array, "... frequencies"] | None = None
    log_dropped: Float[Array, "... probes"] | None = None


class Folded(NamedTuple):
    """Sum and difference of masses at equal distances from the centre (components, distances)."""

    even: Float[Array, "components distances"]
    odd: Float[Array, "components distances"]


def fold(w: Float[Array, "components points"], t: Tables) -> Folded:
    """Masses of steps by their distances from the centre."""
    padded = xp.pad(w, ((0, 0), (0, 1)))
    right, left = padded[:, t.right], padded[:, t.left]
    return Folded(right + left, right - left)


def _in_rows(
    a: Float[Array, "components distances"], table: Octaves
) -> Float[Array, "components frequencies"]:
    """Products of the folded masses with a table of sines."""
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


def _row(table: Octaves) -> int:
    """Numbers in a row of a table of sines."""
    return jax.tree.leaves(table)[0].shape[-2]


def _in_small_products(
    rows: Float[Array, "components rows row"], table: Octaves
) -> Float[np.ndarray, "components frequencies"]:
    """The same by NumPy: each product so small that BLAS leaves it to one thread, as of two on busy
    cores one would wait for the other, and of as many laws each (see ``batching.products``).
    """
    (number, _, length), (slabs, each, _, width) = rows.shape, table[0].shape  # type: ignore[union-attr]
    rows = in_whole_parts(np.asarray(rows))
    found, step = np.empty((len(rows), slabs, width)), columns(length)
    for first in range(0, len(rows), ROWS):
        some = np.ascontiguousarray(np.swapaxes(rows[first : first + ROWS], 0, 1))
        for slab, k in itertools.product(range(slabs), range(0, width, step)):
            octaves = [octave[slab, :, :, k : k + step] for octave in table]  # type: ignore[call-overload]
            parts = (
                some[octave * each : (octave + 1) * each] @ column
                for octave, column in enumerate(octaves)
            )
            found[first : first + ROWS, slab, k : k + step] = _in_pairs(
                [row for part in parts for row in part]
            )
    return found[:number].reshape(number, -1)


def _in_pairs(parts: list[Array]) -> Array:
    """The sum of n terms, each in ⌈log₂ n⌉ additions."""
    while len(parts) > 1:
        parts = [
            operator.add(*pair) for pair in zip(parts[::2], parts[1::2], strict=False)
        ] + parts[len(parts) & ~1 :]
    return parts[0]


def sums(w: Float[Array, "rows points"], t: Tables) -> Sums:
    """The low frequencies of laws (rows, n): a large table is read once for all of them."""
    folded = fold(w, t)
    even, odd = _in_rows(folded.even, t.versine), _in_rows(folded.odd, t.sine)
    return Sums(even, odd, log_dropped=_log_dropped(w, folded, t))


def _dropped(
    log_bound: Float[Array, "components probes"], count: Float[Array, " components"]
) -> Float[Array, ""]:
    """Bound on |φ₁^T₁·φ₂^T₂ ⋯| over every frequency from K to N/2.

    Method: docs/method/frequencies.md#sparse
    """
    return xp.exp(xp.max(count @ log_bound))


def _less_about_the_centre(
    w: Float[Array, "components points"], t: Tables
) -> Float[Array, "components probes"]:
    """By how much less the sum over the points at distance one is than their mass, at least, at
    every frequency about a probe: three points about the centre are cut down to the level of those
    beside them first.

    Method: docs/method/frequencies.md#sparse
    """
    inner, (left, _, each) = w * t.core, _sizes(w, t)
    middle = (2 + left) * each
    beside = xp.maximum(inner[:, middle - 2], inner[:, middle + 2])[:, None]
    peak = np.abs(np.arange(w.shape[-1]) - middle) <= 1
    level = xp.where(peak, xp.minimum(inner, beside), inner)
    variation = xp.sum(xp.abs(xp.diff(level, axis=-1, prepend=0.0, append=0.0)), axis=-1)
    whole, cut = xp.sum(inner, axis=-1), xp.sum(inner - level, axis=-1)
    level_mass, sums = (1.0 - _OFF) * (whole - cut), (1.0 + _OFF) * variation
    return xp.maximum(level_mass[:, None] - sums[:, None] * t.beyond, 0.0)


def _sizes(w: Float[Array, "components points"], t: Tables) -> tuple[int, int, int]:
    """Octaves to the left and to the right, and points of each."""
    left, right = t.octave_left.shape[0], t.octave_right.shape[0]
    return left, right, w.shape[-1] // (4 + left + right)


class _Octaves(NamedTuple):
    """By how much less sums over octaves are than their masses, at every frequency about a probe,
    at least, of shape (components, probes).

    Attributes:
        far: of those that are too far for Taylor about a probe.
        every: of all.
    """

    far: Float[Array, "components probes"]
    every: Float[Array, "components probes"]


def _octaves(w: Float[np.ndarray, "components points"], t: Tables) -> _Octaves:
    """What the points of each octave have, which are equally far apart, and those of two next to
    each other, on both sides.

    Method: docs/method/frequencies.md#sparse
    """
    left, right, each = _sizes(w, t)
    # (the last octave to the right has one point less)
    before = w[:, : left * each].reshape(len(w), left, each)[:, ::-1, ::-1]
    behind = np.pad(w[:, w.shape[-1] - right * each + 1 :], ((0, 0), (0, 1)))
    sides = (
        _less(before, t.octave_left, t),
        _less(behind.reshape(len(w), right, each), t.octave_right, t),
    )
    return _Octaves(*(np.sum(both, axis=0) for both in zip(*sides, strict=True)))


def _less(
    rows: Float[np.ndarray, "components octaves points"],
    steepest: Float[Array, "octaves probes"],
    t: Tables,
) -> _Octaves:
    """The same of one side, octaves and points of each by their distance."""
    number, each = rows.shape[1:]
    apart = np.ldexp(1.0, 1 + np.arange(number))
    place = apart[:, None] * (each + 1.0 + np.arange(each))
    # (the nearest point of each octave is next to its points times its spacing)
    outside = np.where(each * apart[:, None] * np.asarray(t.probe_width) > 2.0, 1.0, 0.0)
    variation = np.sum(np.abs(np.diff(rows, axis=-1, prepend=0.0, append=0.0)), axis=-1)
    mass, share = _of_moments(rows, place, t.edge)
    sums = np.minimum(variation[:, :, None] * steepest, mass[:, :, None] * share)
    single = np.maximum((1.0 - _ROOM) * mass[:, :, None] - sums, 0.0)
    two = np.concatenate([rows[:, :-1], rows[:, 1:]], axis=-1)
    mass, share = _of_moments(two, np.concatenate([place[:-1], place[1:]], axis=-1), t.edge)
    pair = np.maximum(mass[:, :, None] * (1.0 - _ROOM - share), 0.0)
    return _Octaves(_best(single * outside, pair * outside[:-1]), _best(single, pair))


def _best(
    single: Float[np.ndarray, "components octaves probes"],
    pair: Float[np.ndarray, "components pairs probes"],
) -> Float[np.ndarray, "components probes"]:
    """The larger sum of octaves of which those next to each other are taken together, or not, from
    the first or from the second one on.
    """
    every = np.sum(single, axis=1)
    gain = np.maximum(pair - single[:, :-1] - single[:, 1:], 0.0)
    return every + np.maximum(np.sum(gain[:, ::2], axis=1), np.sum(gain[:, 1::2], axis=1))


def _of_moments(
    rows: Float[np.ndarray, "components octaves points"],
    place: Float[np.ndarray, "octaves points"],
    edge: Float[Array, " edges"],
) -> tuple[Float[np.ndarray, "components octaves"], Float[np.ndarray, "components octaves probes"]]:
    """Masses, and the part of them that their sums have at most, by two moments about the mean.

    Method: docs/method/frequencies.md#sparse
    """
    length = place[:, -1:] - place[:, :1]
    u = (place - place[:, :1]) / length
    mass = np.sum(rows, axis=-1)
    law = rows / np.where(mass > 0.0, mass, 1.0)[:, :, None]
    off = u - np.sum(law * u, axis=-1)[:, :, None]
    square = np.sum(law * off**2, axis=-1)
    fourth = 2.0 * np.sum(law * off**4, axis=-1) + 6.0 * square**2
    low, high = (1.0 - _ROOM) * square - _ROOM, (1.0 + _ROOM) * fourth + _ROOM
    turn = (length * np.asarray(edge)) ** 2
    most = 1.0 - low[:, :, None] * turn + high[:, :, None] * turn**2 / 24.0
    most = np.maximum(most[:, :, :-1], most[:, :, 1:])
    return mass, np.sqrt(np.maximum(most, 0.0))


def _log_dropped(
    w: Float[Array, "components points"], folded: Folded, t: Tables
) -> Float[Array, "components probes"]:
    """log of a bound on |φ| about each probe, and at every frequency beyond them.

    Method: docs/method/frequencies.md#sparse
    """
    even, odd = folded
    cos, moment_sin = (xp.by_table(even, column.T) for column in t.even)
    sin, moment_cos = (xp.by_table(odd, column.T) for column in t.odd)
    half = 0.5 * t.probe_width
    # φ = cos − i·sin, φ' = −moment_sin − i·moment_cos
    cross = xp.abs(-cos * moment_sin + sin * moment_cos)
    slope = moment_sin**2 + moment_cos**2
    middle = xp.sqrt(cos**2 + sin**2 + 2.0 * half * cross + half**2 * slope)
    outside, square = _by_distance(even, t)
    probed = middle + 0.5 * half**2 * square + outside
    inner = w * t.core
    variation = xp.sum(xp.abs(xp.diff(inner, axis=-1, prepend=0.0, append=0.0)), axis=-1)
    smooth = variation[:, None] * t.beyond + 1.0 - xp.sum(inner, axis=-1)[:, None]
    bound = xp.minimum(xp.minimum(probed, smooth) + DROPPED, 1.0)
    return xp.log(_by_octaves(w, t, probed, bound))


def _by_distance(
    even: Float[Array, "components distances"], t: Tables
) -> tuple[Float[Array, "components probes"], Float[Array, "components probes"]]:
    """The mass that is too far for Taylor about each probe, and Σ distance²·mass of the rest, both
    with their rounding.

    Method: docs/method/frequencies.md#sparse
    """
    # (the centre, which comes last, is never too far, and its distance is 0)
    apart = even[:, :-1]
    square = xp.cumsum(apart * (t.distance * t.distance), axis=-1)
    beyond = xp.cumsum(apart[:, ::-1], axis=-1)[:, ::-1]
    none = xp.zeros_like(even[:, :1])
    room = 1.0 + (even.shape[-1] + 4.0) * UNIT
    of_probes = lambda sums: room * sums[:, t.inside]
    return (
        of_probes(xp.concatenate([beyond, none], axis=-1)),
        of_probes(xp.concatenate([none, square], axis=-1)),
    )


def _by_octaves(
    w: Float[Array, "components points"],
    t: Tables,
    probed: Float[Array, "components probes"],
    bound: Float[Array, "components probes"],
) -> Float[Array, "components probes"]:
    """The bounds, smaller by what octaves have less than their masses, of laws that leave one next
    to 1 otherwise: by NumPy, as it takes as long as all the rest.
    """
    if not isinstance(w, np.ndarray):
        return bound
    rows = np.flatnonzero(np.max(bound, axis=-1) > _NEXT_TO_1)
    if not len(rows):
        return bound
    octaves = _octaves(w[rows], t)
    probed = probed[rows] - octaves.far
    smooth = 1.0 - _less_about_the_centre(w[rows], t) - octaves.every
    less = np.maximum(np.minimum(probed, smooth), 0.0) + DROPPED
    bound[rows] = np.minimum(bound[rows], less)
    return bound


def compose(
    weights: Weights,
    count: Float[Array, " components"],
    window: Window,
    t: Tables,
    vertices: int,
    transform: InverseTransform = BY_FFT,
    known: Sums | None = None,
) -> Composed:
    """Compose the mechanisms of one setting from their low frequencies (unbatched).

    Args:
        weights, count, window: see ``convolution.compose_blocks``.
        t: the lattice.
        vertices: of the piece.
        transform: how the spectrum becomes block sums.
        known: frequencies of one step, where they are known already.

    Method: docs/method/frequencies.md#sparse
    Method: docs/method/rounding.md#guard
    """
    w = weights.weight
    found = sums(w, t) if known is None else known
    log_phi = log_transform(-found.versine, -found.sine)
    log_power, angle = (xp.matmul(count, part) for part in (log_phi.log_abs, log_phi.arg))
    power = xp.exp(log_power)
    length = transform_length(found.versine.shape[-1], vertices)
    rounding = transform.rounding(found.versine.shape[-1], length)
    noise = _noise(weights, count, found, log_phi, log_power, power, rounding, t)
    log_dropped = found.log_dropped
    if log_dropped is None:
        log_dropped = _log_dropped(w, fold(w, t), t)
    escaped = _dropped(log_dropped, count) * xp.sqrt(t.size)
    escaped = escaped + escaped_mass(w, count, t.offset, t.size, window)
    escaped = escaped + xp.where(window.tilt * window.h * t.inner > _STEEPEST, 1.0, 0.0)
    # shift the window to its first point, then sum blocks by short kernels
    k = xp.arange(power.shape[-1], dtype=power.dtype)
    turns = k * xp.mod(window.start, t.size) / t.size
    angle = angle + (2.0 * np.pi) * (turns - xp.floor(turns))
    real, imaginary = power * xp.cos(angle), power * xp.sin(angle)

    def numbers(cos: Array, sin: Array) -> Array:
        summed = transform.of_product(real, imaginary, cos, sin, length)
        return (summed / t.inner).reshape(vertices, -1)

    blocks = _block_sums(numbers, window, t)
    terms = t.block / t.inner + t.node.shape[-1]
    sum_error = UNIT * block_units(terms, window.tilt * window.h * t.block)
    return Composed(*blocks, *normalisation(weights, count), noise, escaped, sum_error)


def _block_sums(numbers: Callable[..., Array], window: Window, t: Tables) -> Blocks:
    """Block sums between vertices; ``numbers`` convolves the law by a kernel's spectrum."""
    i = t.node + 1.0
    decay = t.node_weight * xp.exp(-window.tilt * i * window.h)
    share = xp.expm1(i * window.h) / xp.expm1(t.inner * window.h)
    plain, split = (
        numbers(xp.by_table(kernel, t.node_cos), xp.by_table(kernel, t.node_sin))
        for kernel in (decay, decay * share)
    )
    return joined(plain, split, window.tilt, window.h * t.inner)


def _noise(
    weights: Weights,
    count: Float[Array, " components"],
    found: Sums,
    log_phi: LogTransform,
    log_power: Float[Array, " frequencies"],
    power: Float[Array, " frequencies"],
    rounding: float,
    t: Tables,
) -> Float[Array, ""]:
    """Rounding of φ − 1 = Σ w·(e^{−iθ} − 1), and of what is made of it.

    Every term, and each relative error of a mass, comes with |e^{−iθ} − 1|, and Σ w·|e^{−iθ} − 1|²
    = 2·Σ w·(1 − cos θ); a cell edge that is off moves mass by the width of a cell."""
    k = xp.arange(power.shape[-1], dtype=power.dtype)
    off = found.off
    versine = found.versine if off is None else xp.maximum(found.versine, 0.0) + off
    root = xp.sqrt(2.0 * versine)
    angle = 2.0 * xp.pi / t.size * k
    row = _row(t.sine)
    # (a sine has 3.1 units; two masses are added, and a product is taken)
    depth = row + np.ceil(np.log2(t.right.shape[0] // row)) + 5.0
    single = (
        depth * UNIT * (versine + root)
        + weights.relative[:, None] * root
        + angle * weights.moved[:, None]
        + weights.defect[:, None] * xp.sqrt(found.versine * found.versine + found.sine * found.sine)
    )
    single = single if off is None else single + off
    made = SPECTRUM * UNIT + NODE_SUMS
    growth = xp.matmul(count, xp.log1p(single * xp.exp(-log_phi.log_abs)) + log_phi.error)
    error = change_of_powers(power, log_power, growth) + power * made
    # (of the transform back all numbers together are known)
    return root_of_squares(error, t.size) + rounding * UNIT * root_of_squares(power, t.size)
