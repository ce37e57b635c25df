"""How the lowest frequencies of a law become numbers on a coarse lattice, with rounding."""

from __future__ import annotations

from typing import Protocol

from ...numerics import namespace as xp
from ...numerics.errors import UNIT
from ...numerics.shapes import Array, Float
from ...numerics.transforms import all_outputs


class InverseTransform(Protocol):
    """A way to do it, with its own bound on its rounding."""

    def of_product(
        self,
        real: Float[Array, " frequencies"],
        imaginary: Float[Array, " frequencies"],
        cos: Float[Array, " frequencies"],
        sin: Float[Array, " frequencies"],
        length: int,
    ) -> Float[Array, " vertices"]:
        """``irfft`` of (real + i·imaginary)·(cos + i·sin), low frequencies, to ``length``."""
        ...

    def rounding(self, frequencies: int, length: int) -> float:
        """Units by which the root of Σ x² is off, over that of the exact result, at most."""
        ...


class _ByFFT:
    """One short FFT."""

    def of_product(
        self,
        real: Float[Array, " frequencies"],
        imaginary: Float[Array, " frequencies"],
        cos: Float[Array, " frequencies"],
        sin: Float[Array, " frequencies"],
        length: int,
    ) -> Float[Array, " vertices"]:
        padded = xp.pad(
            xp.complex(real, imaginary) * xp.complex(cos, sin), (0, length // 2 + 1 - real.shape[0])
        )
        return xp.irfft(padded, length)

    def rounding(self, frequencies: int, length: int) -> float:
        return all_outputs(length) / UNIT


BY_FFT: InverseTransform = _ByFFT()
