"""Where lattices are placed: tilts and windows from Chernoff bounds on the composed privacy loss.

Nothing here is part of a certificate. A poor tilt or a tight window makes a bracket wide, never
wrong: the mass that a window misses is bounded again from the lattice masses themselves
(``truncation``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ...numerics import namespace as xp
from ...numerics.shapes import Array, Float
from ..plan import Plan
from .cumulants import Cumulants, LossQuadrature, cumulant, cumulants
from .tilts import smoothness


class Window(NamedTuple):
    """Windows under one tilt; see ``Plan``."""

    low: Float[Array, " sides"]
    high: Float[Array, " sides"]
    miss_low: Float[Array, " sides"]
    miss_high: Float[Array, " sides"]
    scale: Float[Array, "sides components"]
    centre: Float[Array, "sides components"]
    reach_low: Float[Array, "sides components"]
    reach_high: Float[Array, "sides components"]
    spread: Float[Array, " sides"]
    middle: Float[Array, "sides components"]
    smooth: Float[Array, " sides"]
    bandwidth: Float[Array, " sides"]


class Piece(NamedTuple):
    """The thresholds that a window is for.

    Attributes:
        tpr_depths: depths of the TPR at its two ends, shape (2, sides).
        thresholds: its two ends, shape (2, sides).
        fpr_depths: depths of the FPR there, shape (2, sides).
        bulk: standard deviation of the composed loss where small steps decide it.
    """

    tpr_depths: Float[Array, "2 sides"]
    thresholds: Float[Array, "2 sides"]
    fpr_depths: Float[Array, "2 sides"]
    bulk: Float[Array, " sides"]


class _Bound(NamedTuple):
    """The smallest value of a Chernoff bound, and the offset where it is reached."""

    value: Array
    offset: Array


def _least(bound: Callable, gaussian: Array) -> _Bound:
    """Smallest value of a Chernoff bound over offsets a > 0, and where, by two searches.

    ``gaussian`` is the best offset for a normal loss; with heavy tails the best one is far below
    it. ``bound`` takes offsets with an axis in front of those of ``gaussian``.

    Method: docs/method/windows.md#plan
    """
    top = xp.log(2.0 * gaussian)
    bottom = xp.minimum(xp.log(0.05), top - 4.0)

    def search(low, high, number):
        share = np.arange(number).reshape((number,) + (1,) * xp.ndim(gaussian)) / (number - 1)
        offsets = xp.exp(low + share * (high - low))
        values = bound(offsets)
        k = xp.argmin(values, axis=0)[None]
        best = xp.take_along_axis(values, k, 0)[0]
        return best, xp.take_along_axis(offsets, k, 0)[0], (high - low) / (number - 1)

    first, at, gap = search(bottom, top, 14)
    second, fine, _ = search(xp.log(at) - gap, xp.log(at) + gap, 8)
    return _Bound(xp.minimum(first, second), xp.where(second < first, fine, at))


def window_of(
    loss: LossQuadrature,
    s: Float[Array, " sides"],
    piece: Piece,
    rtol: Array | float,
    fainter: Array | float,
) -> Window:
    """The window of a piece under tilt s.

    Args:
        loss: of all components.
        s: the tilt.
        piece: the thresholds the window is for.
        rtol: relative accuracy.
        fainter: −log of the tilted mass to be resolved, where that is more than follows from the
            depths; 0 for none.

    Method: docs/method/windows.md#plan
    """
    each = cumulants(loss, s[:, None])
    total = lambda k: xp.sum(loss.uses * k, axis=-1)
    value, spread = total(each.value), xp.sqrt(total(each.variance))
    keep = _neg_log_mass_missed(s, value, spread, piece, rtol, fainter)
    # one step: keep all but e^{−keep}/T of the tilted mass; Q-mass beyond goes to the atom at
    # infinity, so it must also stay far below the TPR and FNR of this piece
    miss = keep[:, None] + xp.log(loss.uses)
    y_low, y_high = piece.tpr_depths[0], piece.tpr_depths[1]
    deep = miss + (0.5 * xp.maximum(y_low**2, y_high**2) + 3.0)[:, None]

    def composed_high(a):
        return (total(cumulant(loss, (s + a)[..., None])) - value + keep) / a

    def composed_low(a):
        return (total(cumulant(loss, (s - a)[..., None])) - value + keep) / a

    most = xp.sqrt(2.0 * keep) / spread
    high, miss_high = _least(composed_high, most)
    low, miss_low = _least(composed_low, most)
    step = _step_window(loss, s[:, None], each, miss, deep)
    target = 1.15 * (keep + 8.0)
    middle, bandwidth = smoothness(loss, s, target)
    return Window(
        low=-low,
        high=high,
        miss_low=miss_low,
        miss_high=miss_high,
        scale=each.value,
        centre=each.mean,
        reach_low=each.mean + step.below,
        reach_high=step.above - each.mean,
        spread=spread,
        middle=middle,
        smooth=xp.sqrt(target / 0.4) / bandwidth,
        bandwidth=bandwidth,
    )


def _neg_log_mass_missed(
    s: Array, value: Array, spread: Array, piece: Piece, rtol: Array | float, fainter: Array | float
) -> Float[Array, " sides"]:
    """−log of the tilted mass that a window may miss."""
    # −log of the tilted density at the piece's ends: r²/2 − s·t + Λ, for a normal loss an eighth of
    # length²
    faint = 0.5 * piece.fpr_depths**2 - s * piece.thresholds + value
    faint = xp.maximum(xp.max(faint, axis=0), fainter)
    # … and between them, where single large steps take over from many small ones, it is fainter
    # still
    jumps = 12.0 * xp.clip(xp.log(spread / piece.bulk), 0.0, 2.0)
    return 8.0 - xp.log(rtol) + xp.minimum(faint, 800.0) + jumps - xp.log(xp.minimum(spread, 1.0))


class _StepWindow(NamedTuple):
    """How far below and above 0 one step's window reaches, shape (sides, components)."""

    below: Array
    above: Array


def _step_window(
    loss: LossQuadrature, tilt: Array, each: Cumulants, miss: Array, deep: Array
) -> _StepWindow:
    """The window of one step of each component.

    ``miss`` and ``deep`` are −log of the tilted mass, and of the Q-mass, that it may miss.
    """
    single, _, square = each
    start, last = loss.node_range()
    bounded = loss.precision == 0.0

    def single_high(a):
        up = cumulant(loss, tilt + a)
        beyond = tilt + a - 1.0
        atom = xp.where(beyond > 0.0, (up + deep) / xp.where(beyond > 0.0, beyond, 1.0), xp.inf)
        return xp.maximum((up - single + miss) / a, atom)

    def single_low(a):
        # mass below the window is lumped at its edge: a bound on all of it needs s − a ≤ 0
        return xp.where(a >= tilt, (cumulant(loss, tilt - a) - single + miss) / a, xp.inf)

    gaussian = xp.sqrt(2.0 * deep / square)
    above, _ = _least(single_high, gaussian)
    below, _ = _least(single_low, gaussian)
    below = xp.minimum(below, (miss - single) / tilt)
    above = xp.where(bounded, xp.minimum(above, last), above)
    below = xp.where(bounded, xp.minimum(below, -start), below)
    return _StepWindow(below, above)


class Cut(NamedTuple):
    """What a plan has beside its tilt and window; see ``Plan``. Shapes (sides,)."""

    low: Array
    high: Array
    length: Array
    anchor: Array | float
    jump: Array | float = xp.inf


def plan_of(unit: Array, loss: LossQuadrature, tilt: Array, window: Window, cut: Cut) -> Plan:
    """The plan of a piece between two thresholds, from its window."""
    bottom, top = loss.support()
    spread = window.spread
    # no further than the composed loss reaches, with room for an attack's labels, which may lie a
    # little beyond
    room = 0.03 * (top - bottom)
    low, high = xp.maximum(window.low, bottom - room), xp.minimum(window.high, top + room)
    low = xp.minimum(low, cut.low - 0.01 * spread)
    high = xp.maximum(high, cut.high + 0.1 * spread)
    end = xp.where(loss.precision > 0.0, xp.inf, loss.nodes[..., -1]) + 0.0 * window.scale
    return Plan(
        tilt=tilt,
        low=low,
        high=high,
        miss_low=window.miss_low,
        miss_high=window.miss_high,
        scale=window.scale,
        centre=window.centre,
        reach_low=window.reach_low,
        reach_high=window.reach_high,
        end=end,
        cut_low=cut.low,
        cut_high=cut.high,
        spread=spread,
        middle=window.middle,
        smooth=window.smooth,
        bandwidth=window.bandwidth,
        length=cut.length,
        unit=unit + 0.0 * tilt,
        anchor=cut.anchor + 0.0 * tilt,
        jump=cut.jump + 0.0 * tilt,
    )


def extra_depth(rtol: Array | float, square: Array) -> Array:
    """Depth that a relative accuracy takes beyond a rate's: a small μ needs more."""
    return 10.0 - xp.log(rtol) - 0.5 * xp.log(xp.minimum(square, 1.0))
