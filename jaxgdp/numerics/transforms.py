"""Bounds on the rounding of fast Fourier transforms whose lengths are powers of two.

A transform is made of passes over groups of 2, 4 or 8 numbers, with factors in between that are
roots of unity. A pass of r numbers has log₂ r additions, each off by a unit; a factor adds √5 units
(a complex product: Brent, Percival and Zimmermann 2007) and ``errors.ROOT`` (its own error); turns
by 45° in a pass of 8 add three. Each is relative to what it is made of. So

- all outputs together are off by the sum of these, relative to their root of summed squares, as
  every pass multiplies that root by √r (after Higham 2002, Section 24.1, by passes and not by
  halves);
- one output is off by the same, relative to the sum of the inputs' absolute values, as each input
  comes to it once, with a factor of absolute value 1. Where a real transform is made of a complex
  one of half the length, what comes before the last pass counts √2 times: |1 − iω| + |1 + iω| is
  at most 2√2;
- the first output needs no factor: it is off by one unit for each doubling.

``tests/numerics/test_transforms.py`` counts the passes of SciPy, NumPy and XLA on CPU, and holds
their factors against ball arithmetic.
"""

from __future__ import annotations

from .errors import FFT, FFT_OUTPUT, UNIT


def doublings(size: int) -> int:
    """log₂ of a length.

    Raises:
        ValueError: it is no power of two: passes of other numbers are not counted.

    Example:
        >>> doublings(1024)
        10
    """
    if size < 1 or int(size) & (int(size) - 1):
        raise ValueError(f"size must be a power of two, got {size!r}")
    return int(size).bit_length() - 1


def all_outputs(size: int) -> float:
    """Bound on the root of the outputs' summed squared errors, over that of the outputs.

    Method: docs/method/rounding.md#transforms
    """
    return FFT * doublings(size) * UNIT


def one_output(size: int) -> float:
    """Bound on the error of one output, over the sum of absolute values of the inputs.

    Method: docs/method/rounding.md#transforms
    """
    return FFT_OUTPUT * doublings(size) * UNIT


def first_output(size: int) -> float:
    """The same of the output at frequency 0, which is a sum of the inputs.

    Method: docs/method/rounding.md#transforms
    """
    return doublings(size) * UNIT
