"""The slope of a number at a place, by differences of certified brackets fine enough to show it, or
a refusal.

Brackets [lower, upper] of a number g at two points a < b bracket its mean slope between them: from
(lower(b) − upper(a))/(b − a) to (upper(b) − lower(a))/(b − a). A slope is returned if one of two
bounds on its error, which hold for all numbers within the brackets, is below one percent:

- g bends in one direction. Then its slope lies between the least and the largest of the mean slopes
  between neighbouring points.
- g is smooth on the scale of the points. Then central differences over a step h and a part r of it
  differ by (1 − r²)·g'''·h²/6, which is what the first is off by, but for 1/(1 − r²); and the jump
  from the slope on the left to that on the right, which a bend makes in proportion to the step,
  vanishes if it is extrapolated to a step of 0.

It is refused if neither is: at a corner of g the slopes to the left and to the right differ,
however short the step is."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..bracket import Bracket
from ..numerics.shapes import Array, Float

WITHIN = 0.009  # relative error of a slope that is returned, at most
# parts of the step at which g is asked: two scales, so that a row of corners meets them in
# different places
INNER = 0.3
PLACES = np.array([-1.0, -INNER, 0.0, INNER, 1.0])

_FIRST_STEP, _FIRST_RTOL = 4e-3, 1e-5
_LEAST_STEP, _LARGEST_STEP, LEAST_RTOL = 1e-8, 0.3, 1e-7
_BEND, _BLUR = 0.003, 0.004  # parts of a slope that bend and width may take, aimed at
_TRIES, _FINE_TRIES = 8, 3
_EXACT = 1e-9  # relative width of brackets that need not be narrower
_AT_ZERO = 0.1  # what steps are relative to, at 0

Ask = Callable[[Array, float], Bracket]  # (points, rtol) → brackets at the points


class UnprovenDerivative(ArithmeticError):
    """A derivative that does not exist, or that brackets do not prove: it is refused."""


class Sides(NamedTuple):
    """Sides of a place on which a number is defined, and the largest relative step that stays
    there.
    """

    below: bool
    above: bool
    largest: float = _LARGEST_STEP


class Slope(NamedTuple):
    """A slope and what it may be off by, all but the first relative to it.

    Attributes:
        value: the slope.
        bend: what is seen of the bend and of a corner.
        blur: what the widths of the brackets add to that.
        lower, upper: the least and the largest mean slope that is possible.
    """

    value: float
    bend: float
    blur: float
    lower: float
    upper: float

    @property
    def proven(self) -> bool:
        """Whether the error is below a percent."""
        if self.lower == self.upper == 0.0:
            return True  # (the number is the same double everywhere)
        return self.bend + self.blur <= WITHIN


def _mean_slopes(points: Float[Array, " points"], found: Bracket) -> tuple[Array, Array]:
    """Middles and half-widths of the mean slopes between neighbouring points."""
    lower, upper = np.asarray(found.lower, float), np.asarray(found.upper, float)
    middle, half = 0.5 * (lower + upper), 0.5 * (upper - lower)
    step = np.diff(points)
    return np.diff(middle) / step, (half[1:] + half[:-1]) / step


def one_bend(points: Float[Array, " points"], found: Bracket, at: float) -> Slope:
    """The slope of a number that bends in one direction."""
    with np.errstate(all="ignore"):
        middle, half = _mean_slopes(points, found)
        beside = (points[1:] == at) | (points[:-1] == at)
        value = np.sum((middle * np.diff(points))[beside]) / np.sum(np.diff(points)[beside])
        size = np.abs(value)
        bend, blur = np.max(np.abs(middle - value)) / size, np.max(half) / size
        lower, upper = np.min(middle - half), np.max(middle + half)
    return Slope(*map(float, (value, bend, blur, lower, upper)))


def smooth(points: Float[Array, " points"], found: Bracket) -> Slope:
    """The slope of a number that is smooth, from five points about a place."""
    with np.errstate(all="ignore"):
        a, b, c, d, e = 0.5 * (np.asarray(found.lower) + np.asarray(found.upper))
        half = 0.5 * (np.asarray(found.upper) - np.asarray(found.lower))
        whole, part = points[4] - points[0], points[3] - points[1]
        value, inner = (e - a) / whole, (d - b) / part
        size = np.abs(value)
        of_curvature = np.abs(value - inner) / (1.0 - INNER**2)
        # jumps of the slope over both steps: the second would be the first times INNER
        near, far = 2.0 * (b + d - 2.0 * c) / part, 2.0 * (a + e - 2.0 * c) / whole
        corner = 0.5 * np.abs(near - INNER * far) / (1.0 - INNER)
        h = 0.5 * whole
        # by how much these change with the number at each point
        weight = (
            1.0 / (2.0 * h) * np.array([1.0, 0.0, 0.0, 0.0, 1.0])
            + np.array([0.5, 0.5 / INNER, 0.0, 0.5 / INNER, 0.5]) / h / (1.0 - INNER**2)
            + np.array([INNER, 1.0 / INNER, 2.0 / INNER - 2.0 * INNER, 1.0 / INNER, INNER])
            / (2.0 * h * (1.0 - INNER))
        )
        blur = np.sum(weight * half)
        lower, upper = value - blur, value + blur
        bend, blur = (of_curvature + corner) / size, blur / size
    return Slope(*map(float, (value, bend, blur, lower, upper)))


def _points(at: float, step: float, sides: Sides) -> Float[Array, " points"]:
    some = ((PLACES >= 0.0) | sides.below) & ((PLACES <= 0.0) | sides.above)
    points = at + step * PLACES[some]
    points[PLACES[some] == 0.0] = at
    return points


class _Search:
    """Steps and accuracies that are tried, one after the other."""

    def __init__(self, largest: float, finest: float):
        self.step, self.rtol, self.largest = min(_FIRST_STEP, largest), _FIRST_RTOL, largest
        self.finest, self.fine = finest, 0
        self.jumps, self.bend, self.blur = 0, np.inf, np.inf
        self.stalled = False

    def advance(self, found: Slope, order: float) -> bool:
        """The next step and accuracy; whether there is anything left to try.

        ``order``: the power of the step with which the bend falls.
        """
        before = self.step, self.rtol
        seen = found.bend > found.blur
        # (a bend shrinks with the step; the jump of a corner does not)
        self.jumps = self.jumps + 1 if seen and found.bend > 0.7 * self.bend else 0
        self.bend = found.bend if seen else np.inf
        if self.jumps >= 2:
            return False
        if seen:
            self.largest = 0.7 * self.step
            factor = float(np.clip((_BEND / found.bend) ** (1.0 / order), 0.05, 0.7))
        else:
            bend = max(found.bend, 1e-5) if np.isfinite(found.bend) else 1e-5
            room = float(np.clip((_BEND / bend) ** (1.0 / order), 1.0, 10.0))
            factor = min(room, max(1.0, found.blur / _BLUR), self.largest / self.step)
        self.fine += self.rtol < _FIRST_RTOL
        if self.fine >= _FINE_TRIES:
            return False
        self.step = max(self.step * factor, _LEAST_STEP)
        blur = found.blur / factor
        if not blur <= _BLUR and self.rtol > self.finest and not self.stalled:
            wanted = 10.0 ** np.floor(np.log10(self.rtol * _BLUR / blur)) if blur < np.inf else 0.0
            self.rtol = float(max(wanted, self.finest, 1e-2 * self.rtol))
        self.blur = blur
        return (self.step, self.rtol) != before

    def look(self, found: Slope) -> None:
        """Notice if brackets do not get narrower any more."""
        if self.rtol < _FIRST_RTOL and found.blur > 0.4 * self.blur:
            self.stalled = True


def slope(ask: Ask, at: float, sides: Sides, finest: float = LEAST_RTOL) -> float:
    """The slope of a number, right to a percent; at an end of its range, the one-sided one.

    Args:
        ask: brackets of the number at points, at a relative accuracy.
        at: the place.
        sides: on which the number is defined.
        finest: the smallest relative accuracy to ask for.

    Raises:
        UnprovenDerivative: it does not exist there, or is not found; says which.

    Method: docs/method/derivatives.md#differences
    """
    scale = abs(at) if at != 0.0 else _AT_ZERO
    search = _Search(sides.largest, finest)
    for _ in range(_TRIES):
        points = _points(at, search.step * scale, sides)
        brackets = ask(points, search.rtol)
        if not np.isfinite([brackets.lower, brackets.upper]).all():
            raise UnprovenDerivative("the number is not finite there")
        bends = one_bend(points, brackets, at)
        if bends.proven:
            return bends.value
        best = bends if len(points) < len(PLACES) else smooth(points, brackets)
        if best.proven:
            return best.value
        width = np.max(np.asarray(brackets.upper) - np.asarray(brackets.lower))
        if best.blur > 1.0 and width <= _EXACT * np.max(np.abs(brackets.upper)):
            break
        search.look(best)
        if not search.advance(best, 1.0 if best is bends else 2.0):
            break
    last = bends  # type: ignore[possibly-unbound]
    between = f"mean slopes beside it are between {last.lower:.6g} and {last.upper:.6g}"
    if search.jumps >= 2:
        raise UnprovenDerivative(f"the number has a corner there: {between}, however near")
    raise UnprovenDerivative(f"brackets do not prove it to 1 %: {between}")


def slope_of_uses(ask: Ask, uses: float) -> float:
    """The slope in a number of uses: half the difference between one more use and one less (of one
    use: what a second one adds).

    Over more uses at once where that is shown to be the same.

    Raises:
        UnprovenDerivative: the number of uses is not whole, or brackets do not prove it.

    Method: docs/method/derivatives.md#differences
    """
    if uses != np.floor(uses) or uses < 1.0:
        raise UnprovenDerivative(f"{uses!r} is no whole number >= 1")
    step = np.floor(_FIRST_STEP * uses)
    points = np.array([max(uses - 1.0, 1.0), uses + 1.0])
    for rtol in (_FIRST_RTOL, 0.1 * _FIRST_RTOL, LEAST_RTOL):
        if step >= 4.0:
            places = np.array([-step, -np.ceil(INNER * step), 0.0, np.ceil(INNER * step), step])
            found = one_bend(uses + places, ask(uses + places, rtol), uses)
            if found.proven:
                return found.value
        found = one_bend(points, ask(points, rtol), points[0])
        if found.proven:
            return found.value
    between = f"it is between {found.lower:.6g} and {found.upper:.6g}"
    raise UnprovenDerivative(f"brackets do not prove it to 1 %: {between}")
