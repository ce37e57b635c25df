"""Where lattices are placed: tilts and windows from Chernoff bounds on the composed privacy loss.

Nothing here is part of a certificate. A poor tilt or a tight window makes a bracket wide, never
wrong: the mass that a window misses is bounded again from the lattice masses themselves
(``truncation``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np

from ...numerics import namespace as xp
from ...numerics.shapes import Array, Bool, Float
from ..plan import Plan
from .cumulants import (
    Cumulants,
    LossQuadrature,
    common_unit,
    composed,
    cumulant,
    cumulants,
    quadrature,
)
from .tilts import (
    at_depth,
    at_jump,
    at_threshold,
    at_top,
    at_zero,
    below_top,
    depths,
    smoothness,
    tail_slope,
    tilt_range,
    weakest_usable_tilt,
)

_BOTH = np.array([False, True])
_DEEPEST = 38.6  # standard deviations out to which relative accuracy is meant: a rate of 1e-325
# by which the squared depths of two sides differ where the rate of one is nothing beside the
# other's
_ROOM = 60.0
_ROUGH = 200.0  # … and where single large steps take over, which a saddle point hardly describes
_BEYOND = 7.0  # standard deviations from a threshold at which a single step may stop
# half the stretch of thresholds that is resolved where a jump leads there, in units of one over the
# tilt
_RESOLVED = 2.0
_WIDEST = 3.0  # how many times the variance at ℓ = 0 a saddle point may have and still be one


class _Window(NamedTuple):
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


class _Piece(NamedTuple):
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
    """Smallest value of a Chernoff bound over offsets a > 0, and where: a coarse search, then a
    finer one.

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


def _window(
    loss: LossQuadrature,
    s: Float[Array, " sides"],
    piece: _Piece,
    rtol: Array | float,
    fainter: Array | float,
) -> _Window:
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
    return _Window(
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
    s: Array,
    value: Array,
    spread: Array,
    piece: _Piece,
    rtol: Array | float,
    fainter: Array | float,
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


class _Cut(NamedTuple):
    """What a plan has beside its tilt and window; see ``Plan``. Shapes (sides,)."""

    low: Array
    high: Array
    length: Array
    anchor: Array | float
    jump: Array | float = xp.inf


def _made(unit: Array, loss: LossQuadrature, tilt: Array, window: _Window, cut: _Cut) -> Plan:
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


def _fine(rtol: Array | float, square: Array) -> Array:
    """Depth that a relative accuracy takes beyond that of a rate: μ is a difference of quantiles, a
    small one needs more.
    """
    return 10.0 - xp.log(rtol) - 0.5 * xp.log(xp.minimum(square, 1.0))


class _Shared(NamedTuple):
    """What all pieces of a half-curve share.

    Attributes:
        loss: with steps cut where they alone carry the sum past every threshold.
        unit: greatest common divisor of the units of all atoms.
        tilt0, depth0: tilt at ℓ = 0, and the depth of the FPR there.
        tilt_end, depth_end: tilt at the far end, and the depth of the FPR there.
        max_neg_log_density: see ``plan_whole``; for the size of this loss.
    """

    loss: LossQuadrature
    unit: Array
    tilt0: Array
    depth0: Array
    tilt_end: Array
    depth_end: Array
    max_neg_log_density: Array


def _shared(
    groups: tuple,
    count: Array,
    z_floor: Array,
    z_delta: Array | None,
    rtol: Array | float,
    max_neg_log_density: Array | float,
    known_reach: tuple,
    sides: Bool[Array, " sides"],
) -> _Shared:
    # how deep one step's tail matters: below the smallest rate asked for, and below both rates in
    # the curve's middle
    shallow = quadrature(groups, xp.full(count.shape, 30.0), sides)
    value, _, square = (a[0] for a in composed(shallow, 0.5 + xp.zeros(sides.shape)))
    asked = 0.5 * (z_floor if z_delta is None else xp.maximum(z_floor, z_delta)) ** 2 + 3.0
    deepest = xp.maximum(asked, -1.1 * value)
    loss = quadrature(groups, deepest + _fine(rtol, square) + xp.log(count), sides)
    # μ is a difference of quantiles: a small one needs that much more accurate rates
    max_neg_log_density = xp.maximum(
        max_neg_log_density + 0.5 * xp.log(xp.minimum(square, 1.0)), 4.0
    )

    # a step that alone carries the sum past every threshold asked for may as well stop there: its
    # P-mass stays at that point and its other Q-mass goes to the atom at infinity. Exponential
    # tilting needs this where such steps are the likeliest way there: it would fill the window with
    # steps beyond.
    reach = lambda longest: tilt_range(loss.cut(longest), z_floor, z_delta)
    furthest = xp.max(loss.nodes, axis=(-2, -1))
    known = known_reach[0]

    def shorten(_, state):
        longest, found = state
        room = 12.0 * found.spread
        room = room + xp.maximum(-composed(loss.cut(longest), 0.0 * found.tilt0)[1], 0.0)
        shorter = xp.maximum(xp.where(xp.isfinite(known), known, found.threshold), 0.0) + room
        less = (shorter < longest) & (shorter < furthest)
        longest = xp.where(less, shorter, longest)
        return longest, xp.cond(xp.any(less), lambda: reach(longest), lambda: found)

    longest = xp.full_like(known, xp.inf)
    longest, found = xp.fori_loop(0, 2, shorten, (longest, reach(longest)))
    return _Shared(loss.cut(longest), common_unit(groups), *found[:4], max_neg_log_density)


def _piece(
    shared: _Shared,
    rtol: Array | float,
    known_reach: tuple,
    anchor: Array | float,
    piece: Array | int,
    pieces: int,
) -> Plan:
    """The plan of one of several pieces of a half-curve."""
    loss, unit, tilt0, depth0, tilt_end, depth_end, max_neg_log_density = shared
    depth = depth0 + (depth_end - depth0) * (piece + np.arange(2.0)[:, None]) / pieces
    is_first, is_last = piece == 0, piece == pieces - 1
    boundary = xp.stack([tilt0, tilt_end])
    if pieces > 1:
        solved = at_depth(loss, tilt0, depth, depth < -1.0)
        boundary = xp.where(xp.stack([is_first, is_last])[:, None], boundary, solved)
    _, edge_y, edge_t, _ = depths(loss, boundary)
    threshold, log_fpr = known_reach
    _, top = loss.support()
    known = (pieces == 1) & xp.isfinite(threshold) & (threshold < top)
    far_t = xp.where(known, threshold, edge_t[1])
    if loss.bounded:
        far_t = xp.where(is_last & at_top(loss, tilt0, tilt_end), top, far_t)
    # (with so much mass at infinity that no tilt has its mean at 0, the range may seem to end below
    # it: its first vertex is wanted)
    edge_t = xp.stack([xp.where(is_first, 0.0, edge_t[0]), xp.maximum(far_t, 0.0)])
    depth = xp.stack(
        [depth[0], xp.where(known, xp.sqrt(xp.maximum(-2.0 * log_fpr, 1e-30)), depth[1])]
    )
    tilt = weakest_usable_tilt(
        loss, max_neg_log_density, boundary[0], boundary[1], depth[1], edge_t[1]
    )
    tilt = xp.where(boundary[1] > 1.0, xp.maximum(tilt, 1.0), tilt)
    bulk = xp.sqrt(composed(loss, tilt0)[2])
    window = _window(loss, tilt, _Piece(edge_y, edge_t, depth, bulk), rtol, 0.0)
    # a little beyond the depth asked for, so that it is reached whatever the rounding of the
    # lattice (where single large steps matter the depths above are rough, so go further)
    beyond = 0.1 + 0.5 * xp.clip(xp.log(window.spread / bulk), 0.0, 1.0)
    cut_high = edge_t[1] + xp.where(is_last, beyond, 0.0) * window.spread
    high = xp.maximum(window.high, edge_t[1] + 0.01 * window.spread)
    length = (depth_end - depth0) / pieces
    if loss.bounded:
        # next to the largest loss the law narrows fast, and the tilt that serves the far end may
        # leave nothing to resolve at the near one
        near = 0.5 * depth[0] ** 2 - tilt * edge_t[0] + composed(loss, tilt)[0]
        length = xp.maximum(length, xp.sqrt(8.0 * xp.maximum(near, 0.0)))
    anchor = xp.where(anchor < cut_high, anchor, 0.0)
    cut = _Cut(edge_t[0], cut_high, length, anchor)
    return _made(unit, loss, tilt, window._replace(high=high), cut)


def plan_whole(
    groups: tuple,
    count: Float[Array, " components"],
    z_floor: Float[Array, ""],
    z_delta: Float[Array, ""] | None,
    rtol: float,
    max_neg_log_density: Float[Array, ""] | float,
    known_reach: tuple[Float[Array, " sides"], Float[Array, " sides"]],
    anchor: Float[Array, ""] | float,
    pieces: int,
) -> Plan:
    """The tilted windows that cover thresholds ℓ ≥ 0 down to FPR Φ(−z_floor) and TPR Φ(−z_delta),
    for both sides.

    Where both error rates at ℓ = 0 are already below the floor (almost no privacy), the mirrored
    end is covered instead: out to FNR Φ(−z_floor). Windows miss a tilted mass small enough for a
    relative accuracy ``rtol`` of μ at the ends of a piece.

    Args:
        groups: tuple of (stacked mechanism, counts), Gaussians collapsed; one setting.
        count: all counts in a row.
        z_floor: depth of the FPR floor in standard deviations.
        z_delta: depth of the smallest TPR; None asks for nothing beyond the floor.
        rtol: relative accuracy.
        max_neg_log_density: −log of the smallest density, under its tilt, at which a piece is used
            (for a composed loss of order one).
        known_reach: thresholds, and log FPRs there, at which the curve is known to be deep enough,
            or (∞, 0); for one piece. Where single large steps take over, the Chernoff bounds used
            here reach much too far.
        anchor: a threshold at which a vertex is wanted, or 0.
        pieces: number of windows (static).

    Returns:
        A :class:`Plan` with leading axes of sides and pieces.

    Method: docs/method/tilting.md#saddle
    """
    symmetric = all(mechanism.symmetric for mechanism, _ in groups)
    sides = _BOTH[:1] if symmetric else _BOTH
    # (a pair that is the same read backwards has two equal halves)
    reach = (known_reach[0][:1], known_reach[1][:1]) if symmetric else known_reach
    shared = _shared(groups, count, z_floor, z_delta, rtol, max_neg_log_density, reach, sides)
    if pieces == 1:
        plan = jax.tree.map(lambda a: a[:, None], _piece(shared, rtol, reach, anchor, 0, 1))
    else:
        # (a row of whole numbers of the same library as everything else)
        rows = xp.vmap(lambda piece: _piece(shared, rtol, reach, anchor, piece, pieces))(
            xp.arange(float(pieces)) + 0.0 * shared.tilt0[0]
        )
        plan = jax.tree.map(lambda a: xp.swapaxes(a, 0, 1), rows)
    return jax.tree.map(lambda a: xp.concatenate([a, a]), plan) if symmetric else plan


class _Saddle(NamedTuple):
    """The saddle point of a threshold, no deeper than the side that matters, with some room; shapes
    (sides,).

    Attributes:
        tilt0: tilt at ℓ = 0.
        tilt: tilt at the threshold.
        place: the threshold, or a nearer one where that would be too deep.
    """

    tilt0: Array
    tilt: Array
    place: Array


def _saddle(loss: LossQuadrature, threshold: Array) -> _Saddle:
    tilt0 = at_zero(loss)
    tilt = at_threshold(loss, tilt0, threshold + 0.0 * tilt0)
    tilt = below_top(loss, tilt0, tilt) if loss.bounded else tilt
    tilt = xp.maximum(tilt, tilt0)
    _, r_y, _, square = depths(loss, tilt)
    depth = xp.min(xp.maximum(r_y, 0.0))
    rough = xp.max(square / composed(loss, tilt0)[2]) > _WIDEST
    depth = xp.minimum(xp.sqrt(depth**2 + xp.where(rough, _ROUGH, _ROOM)), _DEEPEST) + 0.0 * tilt0
    far = xp.maximum(at_depth(loss, tilt0, depth, tilt0 > 0.0), tilt0)
    place = xp.where(tilt > far, depths(loss, far)[2], threshold)
    return _Saddle(tilt0, xp.minimum(tilt, far), place)


def _quadrature_about(
    groups: tuple, count: Array, threshold: Array, rtol: Array | float
) -> LossQuadrature:
    """A quadrature that is deep enough for the rates at a threshold."""
    shallow = quadrature(groups, xp.full(count.shape, 30.0), _BOTH)
    value, _, square = (a[0] for a in composed(shallow, np.full(2, 0.5)))
    fine = _fine(rtol, square)
    # how deep one step's tail matters follows from the depth of the threshold, and that from the
    # tails
    deepest = xp.maximum(40.0, -1.1 * value)
    for _ in range(2):
        loss = quadrature(groups, deepest + fine + xp.log(count), _BOTH)
        r_x = depths(loss, _saddle(loss, threshold).tilt).fpr
        deepest = xp.maximum(deepest, 0.5 * xp.max(r_x) ** 2 + 3.0)
    return quadrature(groups, deepest + fine + xp.log(count), _BOTH)


class _ByJump(NamedTuple):
    """What takes one jump, composed apart, where that is the likeliest way to the threshold; shapes
    (sides,).

    Attributes:
        likeliest: whether it is.
        loss: with steps cut where they are of no use; nodes of shape (sides, components, nodes).
        tilt: for what takes a jump.
        neg_log_mass: −log of its mass about the threshold under that tilt.
    """

    likeliest: Array
    loss: LossQuadrature
    tilt: Array
    neg_log_mass: Array


def _by_jump(
    uncut: LossQuadrature,
    loss: LossQuadrature,
    saddle: _Saddle,
    variance: Array,
    bulk: Array,
    share: Array,
) -> _ByJump:
    """Where single large steps take over, the saddle point has both them and the many small ones in
    its window, and resolves neither well: what takes a jump is composed apart, under the tilt at
    which that has its mean at the threshold.
    """
    _, tilt, place = saddle
    least, positive = share * place, xp.maximum(place, 1e-9)
    stops = xp.where(
        place > 0.0, place + _BEYOND * bulk + 3.0 / tail_slope(uncut, least, positive), xp.inf
    )
    apart = uncut.cut(stops)
    by_jump, fainter = at_jump(apart, least, positive, tilt)
    jumps = (variance > _WIDEST * bulk**2) & (by_jump > 1.0) & (place > 0.0) & (share > 0.0)
    # (a single step with atoms is no composition: nothing is beside it)
    jumps = jumps & ((xp.sum(loss.uses) > 1.0) | (xp.max(loss.atomic) == 0.0))
    return _ByJump(jumps, apart, by_jump, fainter)


def plan_threshold(
    groups: tuple,
    count: Float[Array, " components"],
    threshold: Float[Array, ""],
    rtol: float,
    share: Float[Array, ""],
) -> Plan:
    """The tilted window that resolves the neighbourhood of one threshold |ℓ|, for each side: the
    tilt is the saddle point there.

    Deeper than rates of 1e-325 relative accuracy means nothing, so the window stops at that depth.

    Args:
        groups: tuple of (stacked mechanism, counts), Gaussians collapsed; one setting.
        count: all counts in a row.
        threshold: privacy loss |ℓ| ≥ 0; a vertex is put there.
        rtol: relative accuracy.
        share: of the threshold, beyond which a step is a jump; where one jump is the likeliest way
            there, what takes one is composed apart. 0 for never.

    Returns:
        A :class:`Plan` with a leading axis of sides.

    Method: docs/method/tilting.md#saddle
    """
    uncut = _quadrature_about(groups, count, threshold, rtol)
    tilt0 = at_zero(uncut)
    spread = xp.sqrt(composed(uncut, tilt0)[2])
    # a step that alone carries the sum past the threshold may as well stop there (see
    # ``_shared``)
    loss = uncut.cut(
        threshold + _BEYOND * spread + xp.maximum(-composed(uncut, 0.0 * tilt0)[1], 0.0)
    )
    saddle = _saddle(loss, threshold)
    bulk = xp.sqrt(composed(loss, saddle.tilt0)[2])
    r_x, r_y, _, variance = depths(loss, saddle.tilt)
    jump = _by_jump(uncut, loss, saddle, variance, bulk, share)
    jumps, place = jump.likeliest, saddle.place
    loss = loss._replace(nodes=xp.where(jumps[:, None, None], jump.loss.nodes, loss.nodes))
    tilt = xp.where(jumps, jump.tilt, saddle.tilt)
    piece = _Piece(xp.stack([r_y, r_y]), xp.stack([place, place]), xp.stack([r_x, r_x]), bulk)
    # δ is a difference that is smaller than TPR by about the tilt
    fine = 0.25 * rtol / xp.maximum(tilt, 1.0)
    window = _window(loss, tilt, piece, fine, xp.where(jumps, jump.neg_log_mass, 0.0))
    narrow = xp.minimum(xp.minimum(bulk, 0.1 * xp.maximum(place, 1e-9)), _RESOLVED / tilt)
    window = window._replace(
        # the log of a tail changes by half the square of the tilt for every unit of variance: the
        # lattice has to be finer by the tilt
        smooth=xp.minimum(window.smooth, 1.0 / xp.maximum(tilt, 1.0 - tilt)),
        spread=xp.where(jumps, narrow, window.spread),
    )
    cut_low = xp.maximum(place - window.spread, 0.0)
    cut_high = xp.maximum(place, 0.0) + window.spread
    anchor = xp.where(threshold < cut_high, threshold, 0.0)
    jump_from = xp.where(jumps, share * place, xp.inf)
    cut = _Cut(cut_low, cut_high, 0.0 * tilt, anchor, jump_from)
    return _made(common_unit(groups), loss, tilt, window, cut)
