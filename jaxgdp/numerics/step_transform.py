"""The transform of one step less 1, with a bound on its rounding that comes from a theorem.

φ − 1 = Σ w_j·(e^{−iθj} − 1) is found in two ways, and at every frequency the one with the smaller
bound is used: from the masses, whose sum is the same transform at frequency 0; and, by summation by
parts, as (e^{−iθ} − 1) times the transform of the masses beyond each point, whose rounding comes
with |e^{−iθ} − 1|. The second one serves where many steps leave only low frequencies."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

from . import namespace as xp
from .errors import UNIT
from .shapes import Array, Float
from .transforms import first_output, one_output

_ROW = 8  # masses that are added one after the other
_DIFFERENCE = 2.0  # units of Σ w, of the difference of two outputs
# units of what a sum of masses beyond points is multiplied with: e^{−iθ} − 1 (four) and the product
# (three)
_FACTOR = 7.0
_SUMS = 1.0 + 1e-9  # sums in these bounds are themselves rounded


class StepTransform(NamedTuple):
    """φ − 1 at the frequencies 2πk/N, and a bound on its distance from the exact transform."""

    re: Float[Array, "components frequencies"]
    im: Float[Array, "components frequencies"]
    off: Float[Array, "components frequencies"]

    def size(self) -> Float[Array, "components frequencies"]:
        """|φ − 1|, with a derivative where that is 0 as well."""
        return xp.sqrt(xp.maximum(self.re * self.re + self.im * self.im, 1e-300))


def circular(
    a: Float[Array, "components points"], left: int, size: int
) -> Float[Array, "components points"]:
    """Rows on ``size`` points, the centre (index ``left``) first, what is below it last.

    Longer rows are wound around the circle: one addition for each turn that is full.
    """
    if a.shape[-1] > size:
        before = -left % size
        turns = -(-(before + a.shape[-1]) // size)
        padded = xp.pad(a, ((0, 0), (before, turns * size - before - a.shape[-1])))
        return xp.sum(padded.reshape(-1, turns, size), axis=1)
    gap = xp.zeros((a.shape[0], size - a.shape[-1]), a.dtype)
    return xp.concatenate([a[:, left:], gap, a[:, :left]], axis=-1)


@functools.lru_cache(maxsize=8)
def _turns(size: int) -> tuple[np.ndarray, np.ndarray]:
    """e^{−iθ} − 1 and its absolute value at the frequencies θ = 2πk/size."""
    half = np.pi * np.arange(size // 2 + 1) / size
    sine = np.sin(half)
    return -2.0 * sine * (sine + 1j * np.cos(half)), 2.0 * sine


def chord(size: int) -> np.ndarray:
    """|e^{iθ} − 1| at the frequencies θ = 2πk/size."""
    return _turns(size)[1]


def sums_after(a: Float[Array, "components points"]) -> tuple[Array, int]:
    """Sums from every point on of rows of terms that are not negative, and how many additions
    follow each other in them: the sums are off by at most so many units of themselves.
    """
    number = a.shape[-1]
    if number == 0:
        return a, 0
    length = min(number, _ROW)
    rows = -(-number // length)
    padded = xp.pad(a, ((0, 0), (0, rows * length - number))).reshape(-1, rows, length)
    inner = xp.matmul(padded, np.tril(np.ones((length, length))))
    if rows == 1:
        return inner[:, 0, :number], length - 1
    later, additions = sums_after(inner[:, :, 0])
    later = xp.pad(later[:, 1:], ((0, 0), (0, 1)))
    return (inner + later[:, :, None]).reshape(-1, rows * length)[:, :number], additions + length


def step_transform(w: Float[Array, "components points"], left: int, size: int) -> StepTransform:
    """φ − 1 of masses that add up to 1, whatever the mass at the centre (index ``left``) is.

    Method: docs/method/rounding.md#transforms
    """
    rest = xp.at_set(w, (slice(None), left), 0.0)
    above, additions = sums_after(rest[:, left + 1 :])
    below, others = sums_after(rest[:, :left][:, ::-1])
    beyond = xp.concatenate([-below[:, ::-1], above, xp.zeros((w.shape[0], 1))], axis=-1)
    both = xp.rfft(circular(xp.concatenate([rest, beyond]), left, size))
    number = w.shape[0]
    direct, parts = both[:number], both[number:]
    whole, distance = xp.sum(rest, axis=-1), xp.sum(above, axis=-1) + xp.sum(below, axis=-1)
    wound = one_output(size) + (1.0 + w.shape[-1] // size) * UNIT
    own = (wound + first_output(size) + _DIFFERENCE * UNIT) * whole
    depth = wound + (max(additions, others) + _FACTOR) * UNIT
    by_parts = (depth * distance)[:, None] * chord(size)
    near = by_parts < own[:, None]
    found = xp.where(near, parts * _turns(size)[0], direct - direct[:, :1].real)
    return StepTransform(found.real, found.imag, _SUMS * xp.minimum(by_parts, own[:, None]))
