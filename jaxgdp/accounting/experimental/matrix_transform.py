"""The short inverse transform as matrix products, for accelerators without a fast 64-bit FFT.

x_m = (1/L)·Re Σ_k c_k·S_k·e^{2πikm/L}, k < K ≤ L/2, with c_0 = 1 and c_k = 2 else, is what
``irfft`` gives of a spectrum padded with zeros. With L = L₁·L₂, k = L₂·k₁ + k₂ and m = m₁ + L₁·m₂
it is two products with constant matrices and a factor in between (Cooley and Tukey 1965); all
arithmetic is real."""

from __future__ import annotations

import math

import numpy as np

from ...numerics import namespace as xp
from ...numerics.errors import TWIDDLE
from ...numerics.shapes import Array, Float


def factors(frequencies: int, length: int) -> tuple[int, int, int]:
    """(K₁, L₁, L₂) of a transform of a length that is a power of two: K₁ rows of L₂."""
    second = 2 ** math.ceil(math.log2(length) / 2)
    return -(-frequencies // second), length // second, second


def _turns(
    rows: int, columns: int, period: int
) -> tuple[Float[np.ndarray, "rows columns"], Float[np.ndarray, "rows columns"]]:
    """cos and sin of 2π·row·column/period; whole turns are taken off exactly."""
    turns = np.outer(np.arange(rows), np.arange(columns)) % period
    angle = 2.0 * np.pi * (np.where(turns > period // 2, turns - period, turns) / period)
    return np.cos(angle), np.sin(angle)


def inverse(
    re: Float[Array, " frequencies"], im: Float[Array, " frequencies"], length: int
) -> Float[Array, " numbers"]:
    """``irfft`` of the lowest frequencies re + i·im, shape (K,), to ``length`` numbers."""
    number = re.shape[-1]
    rows, first, second = factors(number, length)
    weight = np.where(np.arange(number) == 0, 1.0, 2.0) / length
    re, im = (
        xp.pad(a * weight, (0, rows * second - number)).reshape(rows, second).T for a in (re, im)
    )
    cos, sin = _turns(rows, first, first)
    re, im = re @ cos - im @ sin, re @ sin + im @ cos
    cos, sin = _turns(second, first, length)
    re, im = re * cos - im * sin, re * sin + im * cos
    cos, sin = _turns(second, second, second)
    return (re.T @ cos - im.T @ sin).T.reshape(length)


def rounding(frequencies: int, length: int) -> float:
    """Units by which the root of Σ x² of ``inverse`` is off, over the exact one, at most.

    A sum of n products in any order is off by n units of Σ |a·b|, and a row of n numbers has Σ |a|
    ≤ √n·(Σ a²)^½. With sines to ``TWIDDLE`` units, 2K₁ products in each part of the first product,
    2L₂ in the second, and Parseval's identity for either, that is √2·(2K₁ + √2·TWIDDLE)·√K₁ and
    (2L₂ + √2·TWIDDLE)·√L₂ units; the factor in between adds 2√2 + √2·TWIDDLE, the weights one. All
    of it is relative to Σ c²·|S|², at most twice the Σ x² of a real sequence."""
    rows, _, second = factors(frequencies, length)
    sines = math.sqrt(2.0) * TWIDDLE
    one = math.sqrt(2.0 * rows) * (2.0 * rows + sines)
    other = math.sqrt(second) * (2.0 * second + sines)
    return math.sqrt(2.0) * (one + other + 2.0 * math.sqrt(2.0) + sines + 1.0)


class _ByMatrices:
    """An ``InverseTransform`` of the certifying part: see :func:`inverse` and :func:`rounding`."""

    def of_product(
        self,
        real: Float[Array, " frequencies"],
        imaginary: Float[Array, " frequencies"],
        cos: Float[Array, " frequencies"],
        sin: Float[Array, " frequencies"],
        length: int,
    ) -> Float[Array, " numbers"]:
        return inverse(real * cos - imaginary * sin, real * sin + imaginary * cos, length)

    def rounding(self, frequencies: int, length: int) -> float:
        return rounding(frequencies, length)


BY_MATRICES = _ByMatrices()
