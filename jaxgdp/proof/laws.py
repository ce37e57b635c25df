"""Laws on a lattice of losses, in exact integers.

A mass is a whole number of units of 2^−bits. From above, masses of the numerator are rounded down
and what is lost goes to +∞; from below, masses of an attack's labels are rounded down under the
numerator and up under the denominator. Products are exact, and rounded again in the same
direction, so composition keeps the side (docs/method/proof.md)."""

from __future__ import annotations

import math
import secrets
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, TypeAlias

from .balls import Ball, Integer, ceil_scaled, exact, flint, floor_scaled

Polynomial: TypeAlias = Any  # flint.fmpz_poly

_PRIME = (1 << 61) - 1


class CorruptedProduct(ArithmeticError):
    """A product of polynomials that is not the product of its factors."""


@dataclass(frozen=True)
class Grid:
    """A lattice: its points are at shift + k·spacing, its masses in units of 2^−bits."""

    spacing: Ball
    shift: Ball
    bits: int

    def at(self, k: int) -> Ball:
        """The loss (or label) of point k."""
        return self.shift + self.spacing * k

    def beside(self, other: Grid) -> Grid:
        """The lattice of sums."""
        return replace(self, shift=self.shift + other.shift)


@dataclass(frozen=True)
class UpperLaw:
    """A pair that dominates: numerator's masses at lattice points, the rest of it at +∞.

    Attributes:
        grid: the lattice.
        first: number of the first point.
        masses: whole numbers, one for each point from the first on.

    Method: docs/method/proof.md#integers
    """

    grid: Grid
    first: int
    masses: list[Integer]

    def infinite(self) -> Integer:
        """The numerator's mass at +∞: all that is nowhere else."""
        return (1 << self.grid.bits) - _all(self.masses)


@dataclass(frozen=True)
class LowerLaw:
    """An attack: masses of sums of labels.

    Attributes:
        grid: the lattice of labels.
        first: number of the first label.
        numerator: masses that are certainly there.
        tilted: masses of the denominator times e^label, certainly not more than these.
        infinite: numerator's mass, certainly there, of what is always accused and what the
            denominator never shows.

    Method: docs/method/proof.md#labels-in-integers
    """

    grid: Grid
    first: int
    numerator: list[Integer]
    tilted: list[Integer]
    infinite: Integer


def product(a: list[Integer], b: list[Integer], bits: int, up: bool = False) -> list[Integer]:
    """Coefficients of the product of two polynomials over 2^bits, rounded down, or up.

    The exact product is checked at a random point before it is rounded.

    Raises:
        CorruptedProduct: it is not the product (of a broken machine, or a broken library).
    """
    first = flint.fmpz_poly(a)
    second = first if b is a else flint.fmpz_poly(b)
    result = first * second
    check(first, second, result)
    found = _divided(result, bits, up).coeffs()
    return found + [flint.fmpz(0)] * (len(a) + len(b) - 1 - len(found))


def _divided(values: Polynomial, bits: int, up: bool) -> Polynomial:
    """Every coefficient, none of which is negative, over 2^bits, rounded down, or up.

    (Quotients of numbers that are not negative are rounded down, whichever way FLINT rounds.)
    """
    unit = flint.fmpz(1) << bits
    if up:
        values = values + flint.fmpz_poly([unit - 1] * len(values))
    return values // flint.fmpz_poly([unit])


def check(first: Integer, second: Integer, result: Integer) -> None:
    """Compare a product with its factors at a random point modulo a prime.

    A wrong product of degree n agrees with a probability of at most n/(2^61 − 1).

    Method: docs/method/proof.md#integers
    """
    point = secrets.randbelow(_PRIME)
    a, b, c = (int(flint.nmod_poly(each, _PRIME)(point)) for each in (first, second, result))
    if a * b % _PRIME != c:
        raise CorruptedProduct(
            "a product of polynomials is not the product of its factors: this machine, or its"
            " python-flint, computes wrongly"
        )


def _all(values: list[Integer]) -> Integer:
    """The sum."""
    return flint.fmpz_poly(values)(1)


def _scaled_up(values: list[Integer], factor: Integer, bits: int) -> list[Integer]:
    """Each value times a factor in units of 2^−bits, rounded up."""
    found = _divided(flint.fmpz_poly(values) * factor, bits, True).coeffs()
    return found + [flint.fmpz(0)] * (len(values) - len(found))


def multiply_upper(a: UpperLaw, b: UpperLaw) -> UpperLaw:
    """The composition of two laws on lattices of one spacing, rounded down.

    Method: docs/method/proof.md#integers
    """
    masses = product(a.masses, b.masses, a.grid.bits)
    return UpperLaw(a.grid.beside(b.grid), a.first + b.first, masses)


def multiply_lower(a: LowerLaw, b: LowerLaw) -> LowerLaw:
    """The attack on both, with the sum of both labels.

    Method: docs/method/proof.md#labels-in-integers
    """
    bits = a.grid.bits
    all_of_b = _all(b.numerator) + b.infinite
    infinite = (a.infinite * all_of_b + _all(a.numerator) * b.infinite) >> bits
    return LowerLaw(
        a.grid.beside(b.grid),
        a.first + b.first,
        product(a.numerator, b.numerator, bits),
        product(a.tilted, b.tilted, bits, up=True),
        infinite,
    )


def _kept(masses: list[Integer], least: Integer, lowest: int) -> tuple[int, int]:
    """The window outside of which either side has less than ``least``, or that begins there."""
    low = min(max(lowest, 0), len(masses) - 1)
    total = sum(masses[: low + 1])
    while total < least and low < len(masses) - 1:
        low += 1
        total += masses[low]
    high, total = len(masses), masses[-1]
    while total < least and high > low + 1:
        high -= 1
        total += masses[high - 1]
    return low, high


def trim_upper(law: UpperLaw, least: Integer, first: int) -> UpperLaw:
    """A shorter window: what is above it goes to +∞, what is below to its lowest point.

    Args:
        law: to be cut.
        least: what either side loses at most, in units.
        first: a point below which losses need not be told apart.

    Method: docs/method/proof.md#integers
    """
    low, high = _kept(law.masses, least, first - law.first)
    masses = law.masses[low:high]
    masses[0] += sum(law.masses[:low])
    return replace(law, first=law.first + low, masses=masses)


def trim_lower(law: LowerLaw, least: Integer, first: int) -> LowerLaw:
    """A shorter window: labels above it are its last one, and those below are never accused.

    Args:
        law, least, first: as for :func:`trim_upper`.

    Method: docs/method/proof.md#labels-in-integers
    """
    low, high = _kept(law.numerator, least, first - law.first)
    numerator, tilted = law.numerator[low:high], law.tilted[low:high]
    numerator[-1] += sum(law.numerator[high:])
    above = flint.fmpz(0)
    step = _factor_up(-law.grid.spacing, law.grid.bits)
    for value in reversed(law.tilted[high:]):
        above = _times_up(above + value, step, law.grid.bits)
    tilted[-1] += above
    return replace(law, first=law.first + low, numerator=numerator, tilted=tilted)


def _factor_up(exponent: Ball, bits: int) -> Integer:
    return ceil_scaled(exponent.exp(), bits)


def _times_up(value: Integer, factor: Integer, bits: int) -> Integer:
    return -((-value * factor) >> bits)


def _halves(values: list[Integer], first: int) -> tuple[list[Integer], list[Integer], int]:
    """Values of even and of odd points, the former one longer, and half of the first even one."""
    zero = [flint.fmpz(0)]
    start = first // 2 if first % 2 == 0 else (first - 1) // 2
    values = values if first % 2 == 0 else zero + values
    values = values if len(values) % 2 else values + zero
    return values[::2], values[1::2], start


def coarsen_upper(law: UpperLaw) -> UpperLaw:
    """The same on a lattice twice as wide: masses between two points are split between them.

    An atom at ℓ goes up to ℓ + h with 1/(1 + e^{−h}) of its numerator's mass and down to ℓ − h with
    the rest, which keeps both masses (docs/method/dominating.md#split).

    Method: docs/method/proof.md#wider
    """
    grid = law.grid
    even, odd, start = _halves(law.masses, law.first)
    fall = (-grid.spacing).exp()
    up, down = (floor_scaled(share / (1 + fall), grid.bits) for share in (exact(1), fall))
    masses = list(even)
    for i, value in enumerate(odd):
        masses[i] += value * down >> grid.bits
        masses[i + 1] += value * up >> grid.bits
    return UpperLaw(replace(grid, spacing=2 * grid.spacing), start, masses)


def coarsen_lower(law: LowerLaw) -> LowerLaw:
    """The same attack with labels twice as far apart: odd ones count as the next lower one.

    Method: docs/method/proof.md#wider
    """
    grid = law.grid
    even, odd, start = _halves(law.numerator, law.first)
    numerator = list(even)
    for i, value in enumerate(odd):
        numerator[i] += value
    tilted, odd, _ = _halves(law.tilted, law.first)
    step = _factor_up(-grid.spacing, grid.bits)
    for i, value in enumerate(_scaled_up(odd, step, grid.bits)):
        tilted[i] += value
    wider = replace(grid, spacing=2 * grid.spacing)
    return recentre(replace(law, grid=wider, first=start, numerator=numerator, tilted=tilted))


def _spread_out(values: list[Integer]) -> list[Integer]:
    found = [flint.fmpz(0)] * (2 * len(values) - 1)
    found[::2] = values
    return found


def refine_upper(law: UpperLaw) -> UpperLaw:
    """The same on a lattice twice as fine, of which every other point is empty.

    Method: docs/method/proof.md#wider
    """
    grid = replace(law.grid, spacing=law.grid.spacing / 2)
    return UpperLaw(grid, 2 * law.first, _spread_out(law.masses))


def refine_lower(law: LowerLaw) -> LowerLaw:
    """The same on a lattice twice as fine, of which every other point is empty.

    Method: docs/method/proof.md#wider
    """
    grid = replace(law.grid, spacing=law.grid.spacing / 2)
    rows = _spread_out(law.numerator), _spread_out(law.tilted)
    return LowerLaw(grid, 2 * law.first, *rows, law.infinite)


def recentre(law: LowerLaw) -> LowerLaw:
    """The same attack with all labels moved, so that tilted masses are as large as numerator's.

    Labels may be moved as one likes; this only keeps the digits of the tilted masses.
    """
    bits = law.grid.bits
    move = math.log(max(int(_all(law.numerator)), 1)) - math.log(max(int(_all(law.tilted)), 1))
    tilted = _scaled_up(law.tilted, _factor_up(exact(move), bits), bits)
    return replace(law, grid=replace(law.grid, shift=law.grid.shift + move), tilted=tilted)


def cumulative(values: list[Integer], start: Integer) -> list[Integer]:
    """Sums from the last value to each of them, with ``start`` before; the last one first."""
    return list(accumulate(reversed(values), initial=start))
