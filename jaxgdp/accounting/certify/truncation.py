"""The composed mass outside of a window, bounded from the very lattice masses that are composed.

Indices of a circular lattice add modulo N, so no zero padding is needed: what would wrap around is
part of the error."""

from __future__ import annotations

from ...numerics import namespace as xp
from ...numerics.shapes import Array, Float
from .composed import Window

_LARGEST_EXPONENT = 690.0  # e to the power of it, times the number of points, is still a double


def log_moment(
    mass: Float[Array, "components points"], exponent: Float[Array, "components points"]
) -> Float[Array, " components"]:
    """log(1 + Σ mass·(e^{exponent} − 1)) of every component; masses (components, points).

    The largest exponent is taken out where e^{exponent} would overflow.

    Method: docs/method/windows.md#escaped
    """
    largest = xp.max(xp.where(mass > 0.0, exponent, 0.0), axis=-1)
    out = xp.maximum(largest - _LARGEST_EXPONENT, 0.0)
    growth = xp.sum(
        mass * xp.expm1(xp.minimum(exponent - out[:, None], _LARGEST_EXPONENT)), axis=-1
    )
    # (what is at 0 stays there: 1 − Σ mass, less all that expm1 took off)
    rest = xp.expm1(-out)
    return out + xp.log1p(rest + growth - rest * xp.sum(mass, axis=-1))


def escaped_mass(
    w: Float[Array, "components points"],
    count: Float[Array, " components"],
    offset: Float[Array, " points"],
    size: Float[Array, ""] | float,
    window: Window,
) -> Float[Array, ""]:
    """Chernoff bound on the composed mass outside a window of ``size`` lattice points.

    The exponential moments are those of the very masses ``w`` at ``offset`` points from the centre
    that are composed. The two end points hold whole tails: that any step lands there is bounded by
    T times their mass. Where even the sum of every component's largest (smallest) step stays
    inside, nothing wraps.

    Method: docs/method/windows.md#escaped
    """
    h = window.h
    steps, start, length = h * offset, h * window.start, h * size
    inner = xp.at_set(xp.at_set(w, (slice(None), 0), 0.0), (slice(None), -1), 0.0)

    def moment(a: Array) -> Array:
        return xp.sum(count * log_moment(inner, a * steps))

    above = xp.exp(moment(window.miss_high) - window.miss_high * (start + length))
    below = xp.exp(moment(-window.miss_low) + window.miss_low * (start - h))
    last = w.shape[-1] - 1
    largest = xp.take(steps, last - xp.argmax(inner[:, ::-1] > 0.0, axis=-1))
    smallest = xp.take(steps, xp.argmax(inner > 0.0, axis=-1))
    above = xp.where(count @ largest < start + length - 0.5 * h, 0.0, above)
    below = xp.where(count @ smallest > start - 0.5 * h, 0.0, below)
    return xp.sum(count * (w[:, 0] + w[:, -1])) + above + below
