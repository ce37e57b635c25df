"""Masses of binomial laws, and of sums of steps −1, 0 and 1, for up to 10⁹ terms."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

from ..numerics.errors import LONG_BINOMIAL
from ..numerics.shapes import Array, Float

_ALL = 2000  # terms up to which every value is kept
# spread and constant of a window that leaves less than e^−700 of either tail (Bernstein)
_REACH, _ASIDE = 38.0, 480.0
_LOG_2PI = float(np.log(2.0 * np.pi))
# log n! − (n + ½)·log n + n − ½·log 2π, by its asymptotic series from _SERIES on
_SERIES = 16


class Law(NamedTuple):
    """Masses at neighbouring whole numbers.

    Attributes:
        first: the smallest of them.
        mass: Pr[first + i], each known up to ``error``.
        error: bound on the relative error of every mass.
        outside: bound on the probability of all other values.
    """

    first: int
    mass: Array
    error: float
    outside: float

    @property
    def values(self) -> Array:
        """The whole numbers, as floats."""
        return self.first + np.arange(float(len(self.mass)))


@functools.cache
def _small_remainders() -> Array:
    from math import lgamma, log

    exact = [0.0]
    for n in range(1, _SERIES):
        exact.append(lgamma(n + 1.0) - (n + 0.5) * log(n) + n - 0.5 * _LOG_2PI)
    return np.array(exact)


def _remainder(n: Array) -> Array:
    """log n! less Stirling's formula, to some 1e-15."""
    x = np.maximum(np.asarray(n, float), _SERIES)
    s = x**-2.0
    series = (1 / 12 - s * (1 / 360 - s * (1 / 1260 - s * (1 / 1680 - s / 1188)))) / x
    index = np.clip(np.asarray(n, float), 0, _SERIES - 1).astype(int)
    return np.where(np.asarray(n) < _SERIES, _small_remainders()[index], series)


def _deviance(x: Array, mean: Array | float) -> Array:
    """x·log(x/m) + m − x, to its own digits (Loader 2000)."""
    gap = x - mean
    v = gap / (x + mean)
    near = np.abs(v) < 0.1
    w = np.where(near, v, 0.0)
    # x·log(x/m) = 2x·artanh(v), and x·2v − (x − m) = (x − m)·v
    square, power, series = w * w, w, np.zeros_like(w)
    for k in range(1, 10):
        power = power * square
        series = series + power / (2 * k + 1)
    inside = gap * v + 2.0 * x * series
    with np.errstate(divide="ignore", invalid="ignore"):
        far = np.where(x > 0.0, x * np.log(np.where(x > 0.0, x, 1.0) / mean), 0.0) - gap
    return np.where(near, inside, far)


def binomial(number: int, prob: float, rest: float | None = None) -> Law:
    """Masses of Bin(n, p) by Loader's (2000) saddle-point form.

    Args:
        number: n ≥ 0.
        prob: p in [0, 1].
        rest: 1 − p, to its own digits; computed where left out.

    Method: docs/method/shuffled-reports.md#table
    """
    rest = 1.0 - prob if rest is None else rest
    if number == 0 or prob == 0.0:
        return Law(0, np.ones(1), 0.0, 0.0)
    if rest == 0.0:
        return Law(number, np.ones(1), 0.0, 0.0)
    mean, width = number * prob, _ASIDE + _REACH * np.sqrt(number * prob * rest)
    whole = number <= _ALL
    first = 0 if whole else max(0, int(mean - width))
    last = number if whole else min(number, int(mean + width) + 1)
    k = np.arange(first, last + 1, dtype=float)
    left = number - k
    inner = np.clip(k, 1.0, max(number - 1.0, 1.0))  # (both ends have closed forms)
    inner_left = np.maximum(number - inner, 1.0)
    log_mass = _remainder(np.asarray(float(number))) - _remainder(inner) - _remainder(inner_left)
    log_mass = log_mass - _deviance(inner, mean) - _deviance(inner_left, number * rest)
    log_mass = log_mass - 0.5 * (_LOG_2PI + np.log(inner) + np.log(inner_left) - np.log(number))
    log_mass = np.where(left == 0.0, number * np.log(prob), log_mass)
    log_mass = np.where(k == 0.0, number * np.log1p(-prob), log_mass)
    reach = max(float(last) - mean, mean - first)
    with np.errstate(under="ignore"):
        mass = np.exp(log_mass)
    outside = 0.0 if first == 0 and last == number else 1e-300
    return Law(first, mass, LONG_BINOMIAL[0] + LONG_BINOMIAL[1] * reach, outside)


class Steps(NamedTuple):
    """The law of a sum S of n steps that are 1 and −1 with probability r each, else 0.

    Attributes:
        mass: Pr[S = z] = Pr[S = −z], z = 0, 1, ….
        ratio: Pr[S = z + 1]/Pr[S = z], of as many z.
        error: bounds on the relative errors of the masses and of the ratios.
    """

    mass: Float[Array, " values"]
    ratio: Float[Array, " values"]
    error: tuple[float, float]


def sum_of_steps(number: int, each: float) -> Steps:
    """The law of a sum of n steps of −1, 0 and 1.

    With Q(x) = r·x + (1 − 2r) + r/x, x·(Qⁿ)′·Q = n·x·Q′·Qⁿ gives r(n − z + 1)·s(z − 1) = (1 −
    2r)·z·s(z) + r(n + z + 1)·s(z + 1). All terms are positive, so that the recursion from above
    loses no digits; its start is forgotten, as s is the solution that falls (Miller).

    Args:
        number: n ≥ 1.
        each: r in (0, ½).

    Method: docs/method/shuffled-reports.md#attack
    """
    spread = np.sqrt(2.0 * each * number)
    last = number if number <= _ALL else min(number, int(_ASIDE + (_REACH + 4.0) * spread))
    still, n = 1.0 - 2.0 * each, float(number)
    ratio = np.empty(last + 1)
    ratio[last] = below = 0.0
    for z in range(last, 0, -1):
        below = each * (n - z + 1.0) / (still * z + each * (n + z + 1.0) * below)
        ratio[z - 1] = below
    with np.errstate(divide="ignore"):
        log_mass = np.cumsum(np.append(0.0, np.log(ratio[:-1])).astype(np.longdouble))
    with np.errstate(under="ignore"):
        mass = np.exp(log_mass.astype(float))
        mass = mass / (2.0 * np.sum(mass) - mass[0])
    # (a ratio by a few roundings, whatever came before; a mass by as many as there are ratios)
    return Steps(mass, ratio, (LONG_BINOMIAL[0] + LONG_BINOMIAL[1] * last, LONG_BINOMIAL[0]))
