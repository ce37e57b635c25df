"""Self-composition by FFT, on a lattice of which every point and frequency is kept.

What is transformed is φ − 1 (``step_transform``), and φ^T = exp(T·log1p(φ − 1))."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...numerics import namespace as xp
from ...numerics.errors import ARCTAN2, LOG1P, SPECTRUM, UNIT
from ...numerics.shapes import Array, Float
from ...numerics.step_transform import chord, step_transform
from ...numerics.transforms import all_outputs
from .block_sums import block_sums, block_units
from .composed import Composed, Window, change_of_powers, normalisation, root_of_squares
from .derivative import uses_change
from .discretisation import Weights
from .truncation import escaped_mass


class LogTransform(NamedTuple):
    """log φ = log_abs + i·arg at every frequency, and a bound on the rounding errors of both."""

    log_abs: Float[Array, "components frequencies"]
    arg: Float[Array, "components frequencies"]
    error: Float[Array, "components frequencies"]


def log_transform(
    re: Float[Array, "components frequencies"], im: Float[Array, "components frequencies"]
) -> LogTransform:
    """log|φ| and arg φ from real and imaginary part of φ − 1, and a bound on their rounding.

    From φ − 1 where φ is near 1, from φ itself elsewhere; φ = 0 to rounding is kept finite.

    Method: docs/method/frequencies.md#transform
    """
    square = (1.0 + re) * (1.0 + re) + im * im
    near = square > 0.25
    near_log = xp.log1p(xp.where(near, 2.0 * re + re * re + im * im, 0.0))
    log_abs = 0.5 * xp.where(near, near_log, xp.log(xp.maximum(square, 1e-280)))
    # (at φ = 0 the angle means nothing and has no derivative)
    arg = xp.arctan2(im, xp.where(square > 0.0, 1.0 + re, 1.0))
    error = UNIT * (LOG1P * xp.abs(log_abs) + ARCTAN2 * xp.abs(arg))
    return LogTransform(log_abs, arg, error)


def compose_blocks(
    weights: Weights,
    count: Float[Array, " components"],
    window: Window,
    *,
    left: int,
    size: int,
    block: int,
    centre: Float[Array, " components"] | None = None,
) -> Composed:
    """Compose the mechanisms of one setting on a circular lattice of ``size`` points (unbatched).

    Args:
        weights: with a leading axis of components; index ``left`` is the centre.
        count: uses of each component, shape (components,).
        window: where the law is composed.
        left: lattice points of one step below its centre.
        size: N, a power of two.
        block: M, points per block, a power of two.
        centre: centres of the components in points; given where derivatives in the numbers of uses
            are wanted.

    Method: docs/method/frequencies.md#transform
    """
    w, start = weights.weight, window.start
    transform = step_transform(w, left, size)
    log_phi = log_transform(transform.re, transform.im)
    used = count
    if centre is not None:
        # (what the numbers of uses change is added as one, below)
        count, start = xp.stop_gradient(count), xp.stop_gradient(start)
    log_power, angle = (xp.matmul(count, part) for part in (log_phi.log_abs, log_phi.arg))
    if centre is not None:
        more, turned = uses_change(
            used, weights.log_total, log_phi.log_abs, log_phi.arg, centre, size
        )
        log_power, angle = log_power + more, angle + turned
    power = xp.exp(log_power)
    lacking = weights.defect[:, None] * transform.size()
    off = transform.off + _masses_error(weights, size) + lacking
    noise = _noise(count, off, log_phi, log_power, power)
    window = window._replace(start=start)
    escaped = escaped_mass(w, count, xp.arange(-left, w.shape[-1] - left), size, window)
    blocks = block_sums(shifted(power, angle, start, size), window.tilt, window.h, size, block)
    sum_error = UNIT * block_units(block, window.tilt * window.h * block)
    return Composed(*blocks, *normalisation(weights, count), noise, escaped, sum_error)


def _masses_error(weights: Weights, size: int) -> Float[Array, "components frequencies"]:
    """What rounding of the masses themselves moves the transform of each component by."""
    return weights.noise[:, None] + chord(size) * weights.jitter[:, None]


def _noise(
    count: Float[Array, " components"],
    off: Float[Array, "components frequencies"],
    log_phi: LogTransform,
    log_power: Float[Array, " frequencies"],
    power: Float[Array, " frequencies"],
) -> Float[Array, ""]:
    """Rounding of all frequencies: of the transform (``off``, through T·log(1 + off/|φ|)), of log1p
    and of the power itself.

    Where ``off`` exceeds |φ|, log(1 + off/|φ|) is at most log(2·off) − log|φ|.

    Method: docs/method/frequencies.md#second-order
    """
    size = 2 * (power.shape[-1] - 1)
    share = off * xp.exp(-log_phi.log_abs)
    most = xp.log(2.0 * xp.max(off, axis=-1))[:, None] - log_phi.log_abs
    growth = xp.matmul(count, xp.where(share <= 1.0, share, most) + log_phi.error)
    error = change_of_powers(power, log_power, growth) + SPECTRUM * UNIT * power
    # (of the transform back all numbers together are known)
    return root_of_squares(error, size) + all_outputs(size) * root_of_squares(power, size)


def shifted(
    power: Float[Array, " frequencies"],
    angle: Float[Array, " frequencies"],
    start: Float[Array, ""],
    size: int,
) -> Array:
    """The spectrum of absolute values ``power`` and angles, from the window's first point on."""
    k = xp.arange(size // 2 + 1, dtype=float)
    turns = k * (start % size) / size
    angle = angle + (2.0 * np.pi) * (turns - xp.floor(turns))
    return xp.complex(power * xp.cos(angle), power * xp.sin(angle))
