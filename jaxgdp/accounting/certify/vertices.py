"""Vertices of a half-curve, and rows of few lengths that hold the used ones.

Lattices of every shape give their vertices in rows of a few standard lengths, so that whatever
reads numbers off them is compiled once for all."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...numerics import namespace as xp
from ...numerics.shapes import Array, Bool, Float, Int

# length of the shortest row: it holds what is used of the lattices of fewest vertices
_SHORTEST = 272
_LONGER = 2  # each length is so many times the one before


class Vertices(NamedTuple):
    """Vertices of a half-curve, by piece (leading axes: batch…, pieces; last axis: vertices).

    Attributes:
        first, step: threshold of vertex k is (first + k)·step; its slopes are those up to vertex k
            + 1.
        log_alpha, log_tpr, log_beta: error rates, each on the certified side.
        used: vertices that belong to their piece.
        above_noise: vertices at which the rounding guard is a small part of α.
        top: threshold beyond which the curve is known exactly (the largest composed loss): there α
            is 0 and TPR is …
        log_infinity_mass: … the log of the mass at +∞, on the certified side. One of each for every
            piece, all equal; both are None for mechanisms without atoms or a largest loss (static).
        at: thresholds of the vertices and the end of the last one's slopes, not decreasing, where
            they are not equally far apart; else None (static).
    """

    first: Float[Array, "*units"]
    step: Float[Array, "*units"]
    log_alpha: Float[Array, "*units vertices"]
    log_tpr: Float[Array, "*units vertices"]
    log_beta: Float[Array, "*units vertices"]
    used: Bool[Array, "*units vertices"]
    above_noise: Bool[Array, "*units vertices"]
    top: Float[Array, "*units"] | None = None
    log_infinity_mass: Float[Array, "*units"] | None = None
    at: Float[Array, "*units ends"] | None = None

    def threshold(self) -> Float[Array, "*units vertices"]:
        """ℓ of every vertex."""
        if self.at is not None:
            return self.at[..., :-1]
        k = xp.arange(self.log_alpha.shape[-1], dtype=float)
        return self.step[..., None] * (self.first[..., None] + k)

    def slopes_end(self) -> Float[Array, "*units vertices"]:
        """ℓ up to which the slopes of every vertex go."""
        return self.threshold() + self.step[..., None] if self.at is None else self.at[..., 1:]

    def within(self, loss: Array) -> tuple[Array, Array]:
        """The vertex in whose slopes a loss is, of one piece, and whether there is one."""
        number = self.log_alpha.shape[0]
        if self.at is None:
            k = xp.floor(loss / self.step - self.first)
        else:
            k = xp.searchsorted(self.at, loss, side="right") - 1.0
        inside = (k >= 0.0) & (k < number)
        return xp.where(inside, k, 0.0).astype(int), inside


def trimmed(halves: list[Vertices]) -> list[Vertices]:
    """The same half-curves (host arrays, units on the leading axis) cut to what is used of each
    unit, in rows of one standard length, or of all vertices where these are not as many.
    """
    spans = [_span(half.used) for half in halves]
    longest = max(int(np.max(last - first, initial=0)) for first, last in spans)
    length = _SHORTEST
    while length < longest:
        length *= _LONGER
    every = max(half.used.shape[-1] for half in halves)
    length = min(length, max(every, _SHORTEST))
    return [_cut(half, first, length) for half, (first, _) in zip(halves, spans, strict=True)]


def lengthened(half: Vertices, length: int) -> Vertices:
    """The same with unused vertices behind the others, up to so many (at least those there are)."""
    more = length - half.used.shape[-1]
    if more == 0:
        return half
    behind = [(0, 0)] * (half.used.ndim - 1) + [(0, more)]
    rates = {
        name: xp.pad(getattr(half, name), behind, mode="edge")
        for name in ("log_alpha", "log_tpr", "log_beta")
    }
    marks = {name: xp.pad(getattr(half, name), behind) for name in ("used", "above_noise")}
    return half._replace(**rates, **marks)


def in_rows(half: Vertices, length: int) -> Vertices:
    """The used vertices of units in rows of so many, each a unit of its own that begins with the
    last vertex of the row before it: nothing lies between.

    Args:
        half: on the leading axis units; thresholds equally far apart.
        length: of a row, at least 2.

    Method: docs/method/mu.md#rows
    """
    units, starts = [], []
    for unit, (first, last) in enumerate(zip(*_span(half.used), strict=True)):
        own = np.arange(first, max(last - 1, first + 1), length - 1)
        units.append(np.full(len(own), unit))
        starts.append(own)
    rows, first = np.concatenate(units), np.concatenate(starts)
    taken = {name: value[rows] for name, value in half._asdict().items() if value is not None}
    return _cut(half._replace(**taken), first, length)


def filled(half: Vertices, number: int) -> Vertices:
    """Units with others behind them, up to so many, of which no vertex is used."""
    more = np.minimum(np.arange(number), len(half.used) - 1)
    own = (np.arange(number) < len(half.used))[:, None]
    taken = {name: value[more] for name, value in half._asdict().items() if value is not None}
    found = half._replace(**taken)
    return found._replace(used=found.used & own, above_noise=found.above_noise & own)


def _span(
    used: Bool[Array, "units vertices"],
) -> tuple[Int[np.ndarray, " units"], Int[np.ndarray, " units"]]:
    """First used vertex of each row, and the one after the last."""
    number = used.shape[-1]
    any_used = np.any(used, axis=-1)
    first, last = np.argmax(used, axis=-1), number - np.argmax(used[..., ::-1], axis=-1)
    return np.where(any_used, first, 0), np.where(any_used, last, 0)


def _cut(half: Vertices, first: Int[np.ndarray, " units"], length: int) -> Vertices:
    number = half.used.shape[-1]
    at = first[:, None] + np.arange(length)
    inside = at < number
    flat = np.minimum(at, number - 1) + number * np.arange(len(first))[:, None]
    rates = {
        name: getattr(half, name).reshape(-1).take(flat)
        for name in ("log_alpha", "log_tpr", "log_beta")
    }
    marks = {
        name: getattr(half, name).reshape(-1).take(flat) & inside
        for name in ("used", "above_noise")
    }
    return half._replace(first=half.first + first, **rates, **marks)
