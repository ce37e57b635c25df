"""The part of a self-composition in which at least one step is a jump.

Where one large step carries the sum past a threshold, tilting alone shows that part beside a law of
many small steps that is larger by far more than rounding allows. With φ = φ_small + φ_jump the
difference φ^T − φ_small^T = φ_small^T·expm1(T·log1p(φ_jump/φ_small)) has relative accuracy. What is
left out, no jump at all, is bounded (Chernoff) beyond a point: no vertex below it is used."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...numerics import namespace as xp
from ...numerics.errors import SPECTRUM, UNIT
from ...numerics.shapes import Array, Bool, Float
from ...numerics.step_transform import StepTransform, chord, circular, step_transform, sums_after
from ...numerics.transforms import all_outputs, one_output
from .block_sums import block_sums, block_units
from .composed import Composed, Window, growth_less_one, normalisation, root_of_squares
from .convolution import LogTransform, log_transform, shifted
from .discretisation import Weights
from .truncation import escaped_mass, log_moment

_LARGEST = 300.0  # log of an error beyond which nothing is known
_QUOTIENT = 16.0  # units of a quotient of complex numbers, of its square root and of a sum with 1
_COARSE = 2048  # points of the lattice on which a tilt is chosen


class _Parts(NamedTuple):
    """Masses of one step and their transforms, components in rows.

    Attributes:
        small, jump: masses of small steps and of jumps.
        total: mass of the small steps.
        rounding: bound on what the total is off by, beside what all masses lack to a sum of 1.
        near: φ_small − 1, of the small masses over their total.
        log_small: log φ_small, of the small masses over their total.
        ratio: φ_jump/φ_small, real and imaginary part.
        log_ratio: log(1 + ratio).
    """

    small: Float[Array, "components points"]
    jump: Float[Array, "components points"]
    total: Float[Array, " components"]
    rounding: Float[Array, " components"]
    near: StepTransform
    log_small: LogTransform
    ratio_re: Float[Array, "components frequencies"]
    ratio_im: Float[Array, "components frequencies"]
    log_ratio: LogTransform


class _Difference(NamedTuple):
    """φ^T − φ_small^T over the direction of φ_small^T.

    Attributes:
        re, im: its parts. size: its absolute value.
        power, angle: absolute value and angle of φ_small^T.
        whole: absolute value of φ^T, at most 1.
        log_power, log_whole: logs of both absolute values.
        tame: whether the two differ by less than a factor e.
    """

    re: Float[Array, " frequencies"]
    im: Float[Array, " frequencies"]
    size: Float[Array, " frequencies"]
    power: Float[Array, " frequencies"]
    angle: Float[Array, " frequencies"]
    whole: Float[Array, " frequencies"]
    log_power: Float[Array, " frequencies"]
    log_whole: Float[Array, " frequencies"]
    tame: Bool[Array, " frequencies"]


def compose_jumps(
    weights: Weights,
    count: Float[Array, " components"],
    window: Window,
    beyond: Bool[Array, "components points"],
    from_point: Float[Array, ""],
    *,
    left: int,
    size: int,
    block: int,
) -> Composed:
    """The part of the composition in which at least one step is a jump (unbatched).

    Args:
        weights, count, window, left, size, block: see ``convolution.compose_blocks``.
        beyond: which masses are jumps, shape (components, points).
        from_point: first lattice point (from the sum of centres) that is looked at: use no vertex
            below it.

    Method: docs/method/frequencies.md#jumps
    """
    w = weights.weight
    offset = xp.arange(-left, w.shape[-1] - left)
    parts = _parts(w, beyond, left, size)
    more = _difference(parts, count)
    noise = _noise(weights, count, parts, more, size)
    escaped = escaped_mass(w, count, offset, size, window)
    escaped = escaped + _no_jump(parts, count, window, offset, left, from_point)
    del parts
    # (in one expression: NumPy rounds a product of complex numbers another way where neither is
    # kept)
    spectrum = shifted(xp.ones_like(more.power), more.angle, window.start, size) * xp.complex(
        more.re, more.im
    )
    del more
    blocks = block_sums(spectrum, window.tilt, window.h, size, block)
    sum_error = UNIT * block_units(block, window.tilt * window.h * block)
    return Composed(*blocks, *normalisation(weights, count), noise, escaped, sum_error)


def _parts(
    w: Float[Array, "components points"],
    beyond: Bool[Array, "components points"],
    left: int,
    size: int,
) -> _Parts:
    small, jump = xp.where(beyond, 0.0, w), xp.where(beyond, w, 0.0)
    total, rounding = _total(small, jump)
    near = step_transform(small / total[:, None], left, size)
    log_small = log_transform(near.re, near.im)
    far = xp.rfft(circular(jump, left, size))
    # (φ = 0 to rounding is kept finite, as in its log)
    some = xp.abs(1.0 + near.re) + xp.abs(near.im) > 1e-140
    phi = xp.complex(xp.where(some, 1.0 + near.re, 1e-140), xp.where(some, near.im, 0.0))
    ratio = far / (phi * total[:, None])
    # (1 + ratio may be next to 1)
    log_ratio = log_transform(ratio.real, ratio.imag)
    return _Parts(small, jump, total, rounding, near, log_small, ratio.real, ratio.imag, log_ratio)


def _total(
    small: Float[Array, "components points"], jump: Float[Array, "components points"]
) -> tuple[Float[Array, " components"], Float[Array, " components"]]:
    """Mass of the small steps, and its rounding: what jumps leave of 1, where they are rare."""
    (after, additions), (beyond, _) = sums_after(small), sums_after(jump)
    few = beyond[:, 0] < 0.5
    total = xp.where(few, 1.0 - beyond[:, 0], after[:, 0])
    summed = xp.where(few, beyond[:, 0], after[:, 0])
    return total, ((additions + 2.0) * summed + 1.0) * UNIT


def _difference(parts: _Parts, count: Float[Array, " components"]) -> _Difference:
    real, imaginary = (
        xp.matmul(count, part) for part in (parts.log_ratio.log_abs, parts.log_ratio.arg)
    )
    log_power = xp.matmul(count, parts.log_small.log_abs + xp.log(parts.total)[:, None])
    angle = xp.matmul(count, parts.log_small.arg)
    # times e^{a + ib} − 1 = expm1(a)·cos b − 2·sin²(b/2) + i·e^a·sin b; where φ_small is next to
    # nothing e^a alone may overflow
    power, whole = xp.exp(log_power), xp.exp(xp.minimum(log_power + real, 0.0))
    half, cosine = xp.sin(0.5 * imaginary), xp.cos(imaginary)
    tame = xp.abs(real) < 1.0
    shrunk = xp.where(tame, real, 0.0)
    re = xp.where(
        tame, power * (xp.expm1(shrunk) * cosine - 2.0 * half * half), whole * cosine - power
    )
    im = whole * xp.sin(imaginary)
    size = xp.sqrt(re * re + im * im)
    return _Difference(re, im, size, power, angle, whole, log_power, log_power + real, tame)


def _noise(
    weights: Weights,
    count: Float[Array, " components"],
    parts: _Parts,
    more: _Difference,
    size: int,
) -> Float[Array, ""]:
    """Rounding of all frequencies: of φ_small as in ``convolution.compose_blocks``, as far as it
    reaches the part with jumps; of φ_jump, relative to its own mass.

    Method: docs/method/frequencies.md#second-order
    """
    re, im, jump = parts.ratio_re, parts.ratio_im, parts.jump
    made = SPECTRUM * UNIT
    inverse = xp.exp(-parts.log_small.log_abs) / parts.total[:, None]
    jumping = xp.sum(jump, axis=-1)
    single = (
        parts.total[:, None] * parts.near.off
        + (weights.noise + parts.rounding + 2.0 * weights.defect * jumping)[:, None]
        + (weights.defect * parts.total)[:, None] * parts.near.size()
        + chord(size) * weights.jitter[:, None]
    ) * inverse + 4.0 * UNIT
    own = one_output(size) * jumping + xp.sum(jump * weights.error, axis=-1)
    small_error = single + parts.log_small.error
    jump_error = own[:, None] * inverse
    del single, inverse  # (lattices are long)
    # (a quotient by what is off by a share e of at most ½: 1/(1 − e) ≤ 1 + 2e)
    divided = xp.sqrt(re * re + im * im) * (small_error + _QUOTIENT * UNIT)
    moved = (jump_error + divided) * (1.0 + 2.0 * small_error)
    del divided
    least = xp.maximum(xp.sqrt((1.0 + re) ** 2 + im * im), 1e-100)
    small, ratio = (
        xp.matmul(count, of) for of in (small_error, moved / least + parts.log_ratio.error)
    )
    del moved
    known = (small < 0.5) & (ratio < 1.0)
    small, ratio = (growth_less_one(xp.where(known, growth, 0.0)) for growth in (small, ratio))
    error = more.size * (small + made) + more.whole * (1.0 + small) * ratio
    error = error + xp.where(more.tame, 0.0, (more.power + more.whole) * (small + made))
    del small, ratio
    most = _largest_powers(count, more, small_error, (small_error + jump_error) / least)
    error = xp.where(known, error, more.size + most)
    # (of the transform back all numbers together are known)
    return root_of_squares(error, size) + all_outputs(size) * root_of_squares(more.size, size)


def _largest_powers(
    count: Float[Array, " components"],
    more: _Difference,
    small: Float[Array, "components frequencies"],
    whole: Float[Array, "components frequencies"],
) -> Float[Array, " frequencies"]:
    """Bound on |φ_small|^T + |φ|^T, of which each φ is off by such a share of itself."""
    logs = (
        more.log_power + xp.matmul(count, xp.log1p(small)),
        more.log_whole + xp.matmul(count, xp.log1p(whole)),
    )
    first, second = (xp.exp(xp.minimum(log, _LARGEST)) for log in logs)
    return first + second


def _no_jump(
    parts: _Parts,
    count: Float[Array, " components"],
    window: Window,
    offset: Float[Array, " points"],
    left: int,
    from_point: Float[Array, ""],
) -> Float[Array, ""]:
    """Chernoff bound on the mass of small steps alone from ``from_point`` on."""
    h, total = window.h, parts.total

    def log_bound(a: Array, mass: Array, offset: Array) -> Array:
        return (
            xp.sum(count * (log_moment(mass, a * h * offset) + xp.log(total))) - a * h * from_point
        )

    # (any tilt gives a bound: the best one on a coarse lattice will do)
    share, tilts = parts.small / total[:, None], window.miss_high * 2.0 ** xp.arange(-6.0, 9.0)
    coarse = _coarser(share, left)
    best = xp.argmin(xp.stack([log_bound(tilts[i], *coarse) for i in range(15)]))
    return xp.exp(xp.minimum(log_bound(xp.take(tilts, best), share, offset), 0.0))


def _coarser(
    mass: Float[Array, "components points"], left: int
) -> tuple[Float[Array, "components points"], Float[Array, " points"]]:
    """Masses (components, points) and offsets on a lattice of about so many points, each mass
    shared by the two points beside it.
    """
    each = max(1, mass.shape[-1] // _COARSE)
    cells = -(-mass.shape[-1] // each)
    rows = xp.pad(mass, ((0, 0), (0, cells * each - mass.shape[-1]))).reshape(-1, cells, each)
    above = xp.matmul(rows, np.arange(each) / each)
    below = xp.sum(rows, axis=-1) - above
    return (
        xp.pad(below, ((0, 0), (0, 1))) + xp.pad(above, ((0, 0), (1, 0))),
        each * np.arange(cells + 1.0) - left,
    )
