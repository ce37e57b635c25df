"""Gaussian chains whose covariances are no smaller than those of a Gram matrix.

Given the value before, and where it is remembered the first one, a value of a chain does not depend
on anything earlier, so that the law of a sum over it can be followed from step to step."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ...numerics.shapes import Array, Float

ROOM = 1e-11  # of covariances: more than all roundings of a Gram matrix and of its chain


class Chain(NamedTuple):
    """Gaussian values X_0, X_1, … of one variance.

    Attributes:
        covariance: of all of them, numbers ≥ 0.
        remembers: whether X_j depends on X_0 as well as on X_{j−1}.
    """

    covariance: Float[Array, "cycle cycle"]
    remembers: bool

    @property
    def number(self) -> int:
        """How many values there are."""
        return len(self.covariance)

    @property
    def variance(self) -> float:
        """Of every value."""
        return float(self.covariance[0, 0])


def geometric(variance: float, rho: float, number: int, circle: bool) -> Chain:
    """Covariances v·ρ^d along a line, or v·(ρ^d + ρ^{b − d})/(1 + ρ^b) around a circle.

    Args:
        variance: v.
        rho: ρ in [0, 1).
        number: b, positions.
        circle: whether the last is next to the first.
    """
    place = np.arange(number)
    return Chain(
        _geometric(variance, rho, number, circle)(np.abs(np.subtract.outer(place, place))), circle
    )


def _geometric(
    variance: float, rho: float, number: int, circle: bool
) -> Callable[[Array], Float[Array, "*distances"]]:
    if not circle:
        return lambda d: variance * rho**d
    return lambda d: variance * (rho**d + rho ** (number - d)) / (1.0 + rho**number)


def candidates(gram: Float[Array, "cycle cycle"]) -> list[Chain]:
    """Chains that are at least a Gram matrix (of numbers ≥ 0) everywhere, the nearest one first.

    Method: docs/method/kahane.md#chains
    """
    if len(gram) < 2 or not np.any(gram):
        return []
    found = [_smallest_geometric(gram, False), _smallest_geometric(gram, True), anchored(gram)]
    # (the variance of a mean of likelihood ratios says how near)
    size = lambda chain: float(np.expm1(np.minimum(chain.covariance, 100.0)).sum())
    return sorted((chain for chain in found if chain is not None), key=size)


def _smallest_geometric(gram: Float[Array, "cycle cycle"], circle: bool) -> Chain | None:
    """The one of the smallest ρ; None if there is none."""
    number, a = len(gram), float(np.diag(gram).max()) * (1.0 + ROOM)
    apart = np.abs(np.subtract.outer(np.arange(number), np.arange(number)))
    distance = np.minimum(apart, number - apart) if circle else apart
    need = np.zeros(int(distance.max()) + 1)
    np.maximum.at(need, distance, gram)
    lags = np.arange(1, len(need))
    holds = lambda rho: bool(
        np.all(_geometric(a, rho, number, circle)(lags) >= need[1:] * (1.0 + 10.0 * ROOM))
    )
    low, high = 0.0, 1.0 - 1e-6
    if not holds(high):
        return None
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if holds(middle) else (middle, high)
    return geometric(a, high, number, circle)


def anchored(gram: Float[Array, "cycle cycle"]) -> Chain | None:
    """One whose covariances with the first value are those of the Gram matrix: what the first value
    explains is taken off, and the rest is followed by a chain, with the smallest step that is
    enough at every place. None if there is none.

    Method: docs/method/kahane.md#chains
    """
    number, v = len(gram), float(np.diag(gram).max()) * (1.0 + ROOM)
    need = gram * (1.0 + 10.0 * ROOM)
    share = need[0] / v
    share[0] = 1.0
    explained = v * np.outer(share, share)
    own = v - np.diag(explained)  # variances of the rest
    if number < 2 or np.any(share > 1.0) or np.any(own[1:] <= 0.0):
        return None
    rest, wanted = np.zeros((number, number)), need - explained
    rest[1, 1] = own[1]
    for j in range(2, number):
        before = rest[j - 1, 1:j]
        some = wanted[j, 1:j] > 0.0
        if np.any(some & (before <= 0.0)):
            return None
        step = float(np.max(wanted[j, 1:j][some] / before[some], initial=0.0))
        rest[j, 1:j] = rest[1:j, j] = step * before
        rest[j, j] = own[j]
        # (no value moves by more than an earlier one that moves it)
        most = np.max(rest[j, 1:j] / np.diag(rest)[1:j], initial=0.0)
        if step**2 * own[j - 1] >= own[j] or most > 1.0:
            return None
    found = explained + rest
    return Chain(found, True) if np.all(found >= gram) else None
