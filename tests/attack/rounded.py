"""Both orders of a run of few, large steps, from privacy losses rounded up or down to a grid and
composed by sums of products of positive numbers.

Rounding every loss up (down) makes δ at every ε larger (smaller), and what is lost at the ends of
the grid goes to the side that keeps this true. No transform and no difference is involved, so that
the masses have a relative error of about 1e-12 however small they are."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.signal import lfilter
from scipy.special import ndtr

from .curve import Curve


class Law(NamedTuple):
    """Masses of the privacy loss under P.

    Attributes:
        first: the smallest loss on the grid, in spacings.
        masses: of each loss on the grid, and beyond the last one.
        infinity: mass at +∞.
    """

    first: int
    masses: np.ndarray
    infinity: float


def subsampled_gaussian(sigma: float, p: float, spacing: float, ends: tuple, swap: bool, up: bool):
    """The loss of one step: of (1 − p)·N(0, σ²) + p·N(1, σ²) against N(0, σ²), or of the pair
    swapped, rounded to a grid between ``ends`` (in spacings).
    """
    sign = -1.0 if swap else 1.0
    edges = spacing * np.arange(ends[0], ends[1] + 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        # x at which the loss (its negative, swapped) takes these values
        ratio = np.log1p(np.expm1(sign * edges) / p)
    x = np.where(np.isnan(ratio), -np.inf, sigma**2 * ratio + 0.5)
    x = x if not swap else x[::-1]

    def between(a, b, mean):
        a, b = (a - mean) / sigma, (b - mean) / sigma
        return np.where(a > 0.0, ndtr(-a) - ndtr(-b), ndtr(b) - ndtr(a))

    def mass(a, b):
        """Under P."""
        if swap:
            return between(a, b, 0.0)
        return (1.0 - p) * between(a, b, 0.0) + p * between(a, b, 1.0)

    cells = mass(x[:-1], x[1:])
    below, above = mass(np.array([-np.inf]), x[:1])[0], mass(x[-1:], np.array([np.inf]))[0]
    if swap:  # a large x is a small loss
        cells, below, above = cells[::-1], above, below
    masses = np.zeros(len(edges))
    if up:
        masses[1:], masses[0] = cells, below
        return Law(ends[0], masses, above)
    masses[:-1] = cells
    masses[-1] += above
    return Law(ends[0], masses, 0.0)


def _sum_of(one: Law, other: Law, ends: tuple, up: bool) -> Law:
    """The loss of both, on a grid between ``ends``."""
    found = np.convolve(one.masses, other.masses)
    first = one.first + other.first
    low, high = ends[0] - first, ends[1] - first + 1
    kept = found[max(low, 0) : high].copy()
    beyond, beneath = float(np.sum(found[high:])), float(np.sum(found[: max(low, 0)]))
    infinity = one.infinity + other.infinity - one.infinity * other.infinity
    if up:
        kept[0] += beneath
        return Law(max(first, ends[0]), kept, infinity + beyond)
    kept[-1] += beyond
    return Law(max(first, ends[0]), kept, infinity)


def composed(law: Law, steps: int, ends: tuple, up: bool) -> Law:
    """So many steps, by squaring; sums outside of ``ends`` count as the end, 0 or ∞."""
    total = None
    while steps:
        if steps % 2:
            total = law if total is None else _sum_of(total, law, ends, up)
        steps //= 2
        law = _sum_of(law, law, ends, up) if steps else law
    return total


class Rounded(Curve):
    """A curve from the laws of both orders at a spacing."""

    def __init__(self, forward: Law, backward: Law, spacing: float, both: bool = False):
        self.forward, self.backward, self.spacing, self.both = forward, backward, spacing, both

    def swapped(self):
        return Rounded(self.backward, self.forward, self.spacing, self.both)

    def symmetrised(self):
        return Rounded(self.forward, self.backward, self.spacing, True)

    def _one(self, law: Law, epsilons):
        """δ at every ε ≥ 0 of one order."""
        losses = self.spacing * (law.first + np.arange(len(law.masses)))
        gains = -np.expm1(np.minimum(np.subtract.outer(epsilons, losses), 0.0))
        return np.minimum(law.infinity + gains @ law.masses, 1.0)

    def _profile(self, epsilons):
        """δ at every ε ≥ 0."""
        found = self._one(self.forward, epsilons)
        return np.maximum(found, self._one(self.backward, epsilons)) if self.both else found

    def _one_at_nodes(self, law: Law, number: int):
        """δ of one order at the first nodes, from the last one down: each is a mean of the mass
        beyond it and of δ at the next one.
        """
        masses = np.zeros(number)
        above = law.masses[max(-law.first, 0) :]  # (losses below 0 gain nothing)
        first = max(law.first, 0)
        masses[first : first + len(above)] = above
        beyond = np.append(np.cumsum(masses[:0:-1])[::-1], 0.0)
        kept = np.exp(-self.spacing)
        gains = lfilter([-np.expm1(-self.spacing)], [1.0, -kept], beyond[::-1])[::-1]
        return np.minimum(law.infinity + gains, 1.0)

    def _at_nodes(self, number: int):
        """δ at the first nodes."""
        found = self._one_at_nodes(self.forward, number)
        return np.maximum(found, self._one_at_nodes(self.backward, number)) if self.both else found

    def profile(self, epsilon):
        epsilon = float(epsilon)
        if epsilon >= 0.0:
            return float(self._profile(np.array([epsilon]))[0])
        other = self if self.both else self.swapped()
        return -np.expm1(epsilon) + np.exp(epsilon) * float(other._profile(np.array([-epsilon]))[0])

    def _nodes(self):
        """All ε ≥ 0 at which a line of the curve may change, and a few beyond."""
        last = max(law.first + len(law.masses) for law in (self.forward, self.backward))
        return self.spacing * np.arange(last + 1)

    def tpr(self, fpr):
        """The lowest supporting line, TPR ≤ δ(ε) + e^ε·α: the lowest one is at a node, or at
        infinity.
        """
        nodes, fpr = self._nodes(), float(fpr)
        with np.errstate(over="ignore"):
            right = self._at_nodes(len(nodes)) + np.exp(nodes) * fpr
        other = self if self.both else self.swapped()
        left = 1.0 - np.exp(-nodes) * (1.0 - other._at_nodes(len(nodes)) - fpr)
        return min(1.0, float(np.min(right)), float(np.min(left)))

    def epsilon(self, delta):
        nodes = self._nodes()
        found = self._at_nodes(len(nodes))
        if found[0] <= delta:
            return 0.0
        if found[-1] > delta:
            return np.inf
        low, high = nodes[np.flatnonzero(found > delta)[-1]], None
        high = low + self.spacing
        for _ in range(60):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self.profile(middle) > delta else (low, middle)
        return high


def pair(sigma: float, p: float, steps: int, most: float, points: int):
    """(rounded down, rounded up) of a run of DP-SGD, good for ε from 0 to ``most``, on about so
    many points.
    """
    least = np.log1p(
        -p
    )  # no step's loss is smaller when removing, nor larger than −this when adding
    top = most + 40.0 - steps * least
    spacing = (top - steps * least) / points
    ends = int(np.floor(steps * least / spacing)) - steps, int(np.ceil(top / spacing)) + steps
    one = int(np.floor(least / spacing)), ends[1]
    # when adding, a sum that far below 0 never comes back
    other = -ends[1], int(np.ceil(-least / spacing))
    found = []
    for up in (False, True):
        forward = subsampled_gaussian(sigma, p, spacing, one, False, up)
        backward = subsampled_gaussian(sigma, p, spacing, other, True, up)
        found.append(
            Rounded(
                composed(forward, steps, ends, up),
                composed(backward, steps, (-ends[1], ends[1]), up),
                spacing,
            )
        )
    return tuple(found)
