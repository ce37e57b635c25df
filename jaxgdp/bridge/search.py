"""The search for a head μ: the GDP transformation from both sides on a growing grid (Liu et al.
2022, Algorithm 1; see :mod:`jaxgdp.bridge.head`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..numerics.errors import COMPOSED_MU
from ..numerics.shapes import Array
from .chords import Ends, chord_mu
from .inversion import exceeds, mu_of
from .source import Logs, Source

# absolute and relative, by which a value may lie above its neighbours' chord by rounding
_NOT_CONVEX = (4e-16, 1e-9)
_OPEN = 5e-11  # relative, by which a point may exceed a μ before its own is solved for


class Grid:
    """Evaluated ε with δ from both sides, as logs, increasing in ε.

    Attributes:
        source: the profile.
        epsilon: where it has been evaluated.
        low, high: the profile there from below and from above.
    """

    def __init__(self, source: Source, epsilon: Array):
        self.source = source
        self.epsilon = np.zeros(0)
        self.low = self.high = Logs(np.zeros(0), np.zeros(0))
        self.add(epsilon)

    def add(self, epsilon: Array) -> None:
        """Evaluate the profile at those ε that are new."""
        epsilon = np.setdiff1d(epsilon, self.epsilon)
        low, high = self.source.sides(epsilon)
        order = np.argsort(np.concatenate([self.epsilon, epsilon]), kind="stable")

        def merged(old: Logs, new: Logs) -> Logs:
            return Logs(*(np.concatenate([a, b])[order] for a, b in zip(old, new, strict=True)))

        self.low, self.high = merged(self.low, low), merged(self.high, high)
        self.epsilon = np.concatenate([self.epsilon, epsilon])[order]

    def falling(self) -> Logs:
        """log δ and log(1 − δ) from above, without the increases that rounding may make."""
        log_delta, log_one_minus_delta = self.high
        return Logs(
            np.maximum.accumulate(log_delta[::-1])[::-1],
            np.minimum.accumulate(log_one_minus_delta[::-1])[::-1],
        )

    def concave(self) -> Array:
        """Whether an inner point lies above the chord of its neighbours."""
        found = np.zeros(len(self.epsilon), bool)
        if self.source.function is None or len(found) < 3:
            return found
        e, h = self.epsilon, np.exp(self.high[0])
        with np.errstate(under="ignore"):
            span = np.expm1(e[:-2] - e[2:])
            to_left = np.expm1(e[1:-1] - e[2:]) / span
            to_right = np.exp(e[1:-1] - e[2:]) * np.expm1(e[:-2] - e[1:-1]) / span
            chord = h[:-2] * to_left + h[2:] * to_right
        found[1:-1] = h[1:-1] > chord * (1.0 + _NOT_CONVEX[1]) + _NOT_CONVEX[0]
        return found


class Heights(NamedTuple):
    """The most that the transformation may be in each cell, and whether its chord says so."""

    most: Array
    curved: Array


class Search:
    """Both sides of the head μ on a growing grid.

    Attributes:
        grid: where the profile has been evaluated.
        limits: μ between which the transformation lies whatever ε.
        low, high: its largest value at the points, from below and from above.
        above: ``high`` with room for the points that were passed over.
        epsilon: where the lower side is reached.
        searches: number of values that had to be solved for.
    """

    def __init__(self, grid: Grid, limits: tuple[float, float]):
        self.grid, self.limits = grid, limits
        self.low, self.high, self.above = limits[0] * (1.0 - COMPOSED_MU), 0.0, 0.0
        self.epsilon, self.searches = 0.0, 0
        self.random = np.random.default_rng(0)

    def points(self) -> None:
        """Raise both largest values at the points; one binary search for each new one."""
        grid = self.grid
        for side, name in ((grid.low, "low"), (grid.high, "high")):
            done = np.zeros(len(grid.epsilon), bool)
            while True:
                # (room for what the search itself leaves open)
                above = np.flatnonzero(
                    exceeds(grid.epsilon, *side, getattr(self, name) * (1.0 + _OPEN)) & ~done
                )
                if not len(above):
                    break
                i = int(self.random.choice(above))
                done[i] = True
                self.searches += 1
                found = mu_of(grid.epsilon[i], side[0][i], side[1][i])
                if name == "low" and found[0] > self.low:
                    self.low, self.epsilon = float(found[0]), float(grid.epsilon[i])
                elif name == "high":
                    self.high = max(
                        self.high, min(float(found[1]), self.limits[1] * (1.0 + COMPOSED_MU))
                    )
        # a point that was passed over exceeds it by no more than that
        self.above = self.high * (1.0 + 2.0 * _OPEN)

    def cells(self) -> Heights:
        """How high the transformation may be in each cell."""
        grid = self.grid
        log_delta, log_one_minus_delta = grid.falling()
        left = Ends(grid.epsilon[:-1], log_delta[:-1], log_one_minus_delta[:-1])
        right = Ends(grid.epsilon[1:], log_delta[1:], log_one_minus_delta[1:])
        with np.errstate(all="ignore"):
            by_chord, at = chord_mu(left, right)
        width = right.epsilon - left.epsilon
        inside = (at >= left.epsilon - 0.01 * width) & (at <= right.epsilon + 0.01 * width)
        chord = np.where(inside | ~np.isfinite(by_chord), by_chord, self.above)
        concave = grid.concave()
        chord = np.where(concave[:-1] | concave[1:], np.inf, chord)
        stairs = np.full(len(width), self.above)
        # only where the staircase is above what is known is its height needed
        step = right.epsilon, left.log_delta, left.log_one_minus_delta
        needed = exceeds(*step, self.above) & (chord > self.above)
        if np.any(needed):
            self.searches += 1
            stairs[needed] = mu_of(*(a[needed] for a in step))[1]
        curved = chord <= stairs
        most = np.maximum(np.minimum(chord, stairs), self.above)
        return Heights(np.minimum(most, self.limits[1] * (1.0 + COMPOSED_MU)), curved)
