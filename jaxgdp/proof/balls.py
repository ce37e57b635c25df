"""Ball arithmetic: every number is an interval that certainly holds the true one.

Everything here is done by FLINT (``python-flint``), none of it by floating-point units: sums,
products and elementary functions come with rigorous error bounds (Johansson 2017)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

flint: Any
try:
    import flint
except ImportError:  # the extra is not installed: require() tells how to get it
    flint = None

Ball: TypeAlias = Any  # flint.arb
Integer: TypeAlias = Any  # flint.fmpz


def require() -> None:
    """Make sure that ``python-flint`` is there.

    Raises:
        ImportError: it is not; says how to install it.
    """
    if flint is None:
        raise ImportError('a proof needs python-flint: pip install "jaxgdp[proof]"')


@contextlib.contextmanager
def precision(bits: int) -> Iterator[None]:
    """Balls have ``bits`` bits inside; whatever the user had set comes back afterwards."""
    before = flint.ctx.prec
    flint.ctx.prec = bits
    try:
        yield
    finally:
        flint.ctx.prec = before


def exact(value: Any) -> Ball:
    """A double, a whole number or a fraction as a ball; a double is the number it stands for."""
    if isinstance(value, flint.arb):
        return value
    if isinstance(value, int | flint.fmpz):
        return flint.arb(value)
    if isinstance(value, Fraction):
        return flint.arb(value.numerator) / value.denominator
    return flint.arb(float(value))


def fraction(value: float) -> Fraction:
    """The fraction that a double is."""
    return Fraction(float(value))


def upper_tail(x: Ball) -> Ball:
    """Pr[Z > x] of a standard normal Z."""
    return (x / exact(2).sqrt()).erfc() / 2


class Sides(NamedTuple):
    """Two ends with the true number between them; either may be infinite."""

    lower: Ball
    upper: Ball


def _quantile(rate: Ball, complement: Ball) -> Ball:
    if not rate > 0:
        return flint.arb.neg_inf()
    if not complement > 0:
        return flint.arb.pos_inf()
    root = exact(2).sqrt()
    return -root * (2 * rate).erfcinv() if rate < complement else root * (2 * complement).erfcinv()


def quantile(rate: Ball) -> Sides:
    """Φ⁻¹ of a ball of probabilities; rates that may be 0 or 1 have an infinite end."""
    low, high = rate.lower(), rate.upper()
    return Sides(_quantile(low, 1 - low).lower(), _quantile(high, 1 - high).upper())


def gaussian_delta(epsilon: Ball, mu: Ball) -> Ball:
    """δ_μ(ε) = Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ)."""
    half, ratio = mu / 2, epsilon / mu
    return upper_tail(ratio - half) - epsilon.exp() * upper_tail(ratio + half)


def floor_scaled(value: Ball, bits: int) -> Integer:
    """The largest whole number that is certainly at most value·2^bits."""
    return (value * flint.arb(1 << bits)).lower().floor().unique_fmpz()


def ceil_scaled(value: Ball, bits: int) -> Integer:
    """The smallest whole number that is certainly at least value·2^bits."""
    return (value * flint.arb(1 << bits)).upper().ceil().unique_fmpz()


def dyadic(value: Ball) -> Fraction:
    """An end of a ball, which is a whole number times a power of two, as a fraction."""
    mantissa, exponent = value.man_exp()
    mantissa, exponent = int(mantissa), int(exponent)
    return Fraction(mantissa) * (Fraction(2) ** exponent)
