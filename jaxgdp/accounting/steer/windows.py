"""Where to look: tilts and lattice windows from Chernoff bounds on the composed privacy loss.

Nothing here is part of a certificate. A poor tilt or a tight window makes a bracket wide, never
wrong: the mass that a window misses is bounded again from the lattice masses themselves
(``convolution``)."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import numpy as np

from ...numerics import namespace as xp
from ..plan import Plan
from .cumulants import Loss, common_unit, composed, cumulant, cumulants, quadrature
from .tilts import (
    at_depth,
    at_jump,
    at_threshold,
    at_top,
    at_zero,
    below_top,
    depths,
    ends,
    fall,
    gentle,
    smoothness,
)

_BOTH = np.array([False, True])
_DEEPEST = 38.6  # standard deviations out to which relative accuracy is meant: a rate of 1e-325
# by which the squared depths of two sides differ where the rate of one is nothing beside the
# other's
_ROOM = 60.0
_ROUGH = 200.0  # … and where single large steps take over, of which a saddle point tells little
_BEYOND = 7.0  # standard deviations from a threshold at which a single step may stop
# half the stretch of thresholds that is looked at where a jump leads there, in units of one over
# the tilt
_SEEN = 2.0
_WIDEST = 3.0  # how many times the variance at ℓ = 0 a saddle point may have and still be one


class _Window(NamedTuple):
    """Windows under one tilt; see ``Plan``. Shapes (sides,) and (sides, components)."""

    low: Any
    high: Any
    miss_low: Any
    miss_high: Any
    scale: Any
    centre: Any
    reach_low: Any
    reach_high: Any
    spread: Any
    middle: Any
    smooth: Any
    bandwidth: Any


def _least(bound, gaussian):
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
    return xp.minimum(first, second), xp.where(second < first, fine, at)


def _window(loss: Loss, s, y_low, y_high, thresholds, reach, bulk, rtol, fainter=0.0) -> _Window:
    """The window of a piece under tilt s.

    Args:
        y_low, y_high: depths of TPR at the ends of the piece. thresholds, reach: thresholds and
            depths of α there, shape (2, sides).
        bulk: standard deviation of the composed loss where small steps decide it.
        fainter: −log of the tilted mass that is looked at, where that is more than follows from the
            depths.

    Method: docs/method/windows.md#plan
    """
    single, mean, square = cumulants(loss, s[:, None])
    count, total = loss.count, lambda k: xp.sum(loss.count * k, axis=-1)
    value, spread = total(single), xp.sqrt(total(square))
    # −log of the tilted density at the piece's ends: r²/2 − s·t + Λ, for a normal loss an eighth of
    # length²
    faint = xp.maximum(xp.max(0.5 * reach**2 - s * thresholds + value, axis=0), fainter)
    # … and between them, where single large steps take over from many small ones, it is fainter
    # still
    jumps = 12.0 * xp.clip(xp.log(spread / bulk), 0.0, 2.0)
    keep = 8.0 - xp.log(rtol) + xp.minimum(faint, 800.0) + jumps - xp.log(xp.minimum(spread, 1.0))
    # one step: keep all but e^{−keep}/T of the tilted mass; Q-mass beyond goes to the atom at
    # infinity, so it must also stay far below the TPR and FNR of this piece
    miss = keep[:, None] + xp.log(count)
    deep = miss + (0.5 * xp.maximum(y_low**2, y_high**2) + 3.0)[:, None]
    start, last = loss.ends()
    bounded = loss.precision == 0.0
    tilt = s[:, None]

    def composed_high(a):
        return (total(cumulant(loss, (s + a)[..., None])) - value + keep) / a

    def composed_low(a):
        return (total(cumulant(loss, (s - a)[..., None])) - value + keep) / a

    def single_high(a):
        up = cumulant(loss, tilt + a)
        beyond = tilt + a - 1.0
        atom = xp.where(beyond > 0.0, (up + deep) / xp.where(beyond > 0.0, beyond, 1.0), xp.inf)
        return xp.maximum((up - single + miss) / a, atom)

    def single_low(a):
        # mass below the window is lumped at its edge: a bound on all of it needs s − a ≤ 0
        return xp.where(a >= tilt, (cumulant(loss, tilt - a) - single + miss) / a, xp.inf)

    most, each = xp.sqrt(2.0 * keep) / spread, xp.sqrt(2.0 * deep / square)
    high, miss_high = _least(composed_high, most)
    low, miss_low = _least(composed_low, most)
    above, _ = _least(single_high, each)
    below, _ = _least(single_low, each)
    below = xp.minimum(below, (miss - single) / tilt)
    above = xp.where(bounded, xp.minimum(above, last), above)
    below = xp.where(bounded, xp.minimum(below, -start), below)
    target = 1.15 * (keep + 8.0)
    middle, bandwidth = smoothness(loss, s, target)
    smooth = xp.sqrt(target / 0.4) / bandwidth
    return _Window(
        -low,
        high,
        miss_low,
        miss_high,
        single,
        mean,
        mean + below,
        above - mean,
        spread,
        middle,
        smooth,
        bandwidth,
    )


def _made(
    unit, loss: Loss, tilt, window: _Window, cut_low, cut_high, length, anchor, jump=xp.inf
) -> Plan:
    """The plan of a piece between two thresholds, from its window."""
    bottom, top = loss.support()
    spread = window.spread
    # no further than the composed loss reaches, with room for an attack's labels, which may lie a
    # little beyond
    room = 0.03 * (top - bottom)
    low, high = xp.maximum(window.low, bottom - room), xp.minimum(window.high, top + room)
    low = xp.minimum(low, cut_low - 0.01 * spread)
    high = xp.maximum(high, cut_high + 0.1 * spread)
    end = xp.where(loss.precision > 0.0, xp.inf, loss.loss[..., -1]) + 0.0 * window.scale
    return Plan(
        tilt, low, high, window.miss_low, window.miss_high, window.scale, window.centre, window.reach_low, window.reach_high,
        end, cut_low, cut_high, spread, window.middle, window.smooth, window.bandwidth, length,
        unit + 0.0 * tilt, anchor + 0.0 * tilt, jump + 0.0 * tilt,
    )  # fmt: skip


def _fine(rtol, square):
    """Depth that a relative accuracy takes beyond that of a rate: μ is a difference of quantiles, a
    small one needs more.
    """
    return 10.0 - xp.log(rtol) - 0.5 * xp.log(xp.minimum(square, 1.0))


class _Range(NamedTuple):
    """What all pieces of a half-curve share: the loss, and tilts and depths at both ends of the
    range of thresholds.
    """

    loss: Loss
    unit: Any
    tilt0: Any
    r_0: Any
    tilt_end: Any
    r_end: Any
    faintest: Any


def _range(groups, count, z_floor, z_delta, rtol, faintest, seen, sides) -> _Range:
    # how deep one step's tail matters: below the smallest rate asked for, and below both rates in
    # the curve's middle
    shallow = quadrature(groups, xp.full(count.shape, 30.0), sides)
    value, _, square = (a[0] for a in composed(shallow, 0.5 + xp.zeros(sides.shape)))
    asked = 0.5 * (z_floor if z_delta is None else xp.maximum(z_floor, z_delta)) ** 2 + 3.0
    deepest = xp.maximum(asked, -1.1 * value)
    loss = quadrature(groups, deepest + _fine(rtol, square) + xp.log(count), sides)
    # μ is a difference of quantiles: a small one needs that much more accurate rates
    faintest = xp.maximum(faintest + 0.5 * xp.log(xp.minimum(square, 1.0)), 4.0)

    # a step that alone carries the sum past every threshold asked for may as well stop there: its
    # P-mass stays at that point and its other Q-mass goes to the atom at infinity. Exponential
    # tilting needs this where such steps are the likeliest way there: it would fill the window with
    # steps beyond.
    reach = lambda longest: ends(loss.cut(longest), z_floor, z_delta)
    furthest = xp.max(loss.loss, axis=(-2, -1))

    def shorten(_, state):
        longest, found = state
        tilt0, _, _, _, threshold, spread = found
        room = 12.0 * spread + xp.maximum(-composed(loss.cut(longest), 0.0 * tilt0)[1], 0.0)
        shorter = xp.maximum(xp.where(xp.isfinite(seen[0]), seen[0], threshold), 0.0) + room
        less = (shorter < longest) & (shorter < furthest)
        longest = xp.where(less, shorter, longest)
        return longest, xp.cond(xp.any(less), lambda: reach(longest), lambda: found)

    longest = xp.full_like(seen[0], xp.inf)
    longest, found = xp.fori_loop(0, 2, shorten, (longest, reach(longest)))
    return _Range(loss.cut(longest), common_unit(groups), *found[:4], faintest)


def _piece(shared: _Range, rtol, seen, anchor, piece, pieces) -> Plan:
    loss, unit, tilt0, r_0, tilt_end, r_end, faintest = shared
    depth = r_0 + (r_end - r_0) * (piece + np.arange(2.0)[:, None]) / pieces
    is_first, is_last = piece == 0, piece == pieces - 1
    boundary = xp.stack([tilt0, tilt_end])
    if pieces > 1:
        solved = at_depth(loss, tilt0, depth, depth < -1.0)
        boundary = xp.where(xp.stack([is_first, is_last])[:, None], boundary, solved)
    _, edge_y, edge_t, _ = depths(loss, boundary)
    threshold, log_alpha = seen
    _, top = loss.support()
    known = (pieces == 1) & xp.isfinite(threshold) & (threshold < top)
    far_t = xp.where(known, threshold, edge_t[1])
    if loss.bounded:
        far_t = xp.where(is_last & at_top(loss, tilt0, tilt_end), top, far_t)
    # (with so much mass at infinity that no tilt has its mean at 0, the range may seem to end below
    # it: its first vertex is wanted)
    edge_t = xp.stack([xp.where(is_first, 0.0, edge_t[0]), xp.maximum(far_t, 0.0)])
    depth = xp.stack(
        [depth[0], xp.where(known, xp.sqrt(xp.maximum(-2.0 * log_alpha, 1e-30)), depth[1])]
    )
    tilt = gentle(loss, faintest, boundary[0], boundary[1], depth[1], edge_t[1])
    tilt = xp.where(boundary[1] > 1.0, xp.maximum(tilt, 1.0), tilt)
    bulk = xp.sqrt(composed(loss, tilt0)[2])
    window = _window(loss, tilt, edge_y[0], edge_y[1], edge_t, depth, bulk, rtol)
    # a little beyond the depth asked for, so that it is reached whatever the rounding of the
    # lattice (where single large steps matter the depths above are rough, so go further)
    beyond = 0.1 + 0.5 * xp.clip(xp.log(window.spread / bulk), 0.0, 1.0)
    cut_high = edge_t[1] + xp.where(is_last, beyond, 0.0) * window.spread
    high = xp.maximum(window.high, edge_t[1] + 0.01 * window.spread)
    length = (r_end - r_0) / pieces
    if loss.bounded:
        # next to the largest loss the law narrows fast, and the tilt that serves the far end may
        # lose sight of the near one
        near = 0.5 * depth[0] ** 2 - tilt * edge_t[0] + composed(loss, tilt)[0]
        length = xp.maximum(length, xp.sqrt(8.0 * xp.maximum(near, 0.0)))
    anchor = xp.where(anchor < cut_high, anchor, 0.0)
    return _made(unit, loss, tilt, window._replace(high=high), edge_t[0], cut_high, length, anchor)


def plan_whole(groups, count, z_floor, z_delta, rtol, faintest, seen, anchor, pieces: int) -> Plan:
    """The tilted windows that cover thresholds ℓ ≥ 0 down to FPR Φ(−z_floor) and TPR Φ(−z_delta),
    for both sides.

    Where both error rates at ℓ = 0 are already below the floor (almost no privacy), the mirrored
    end is covered
    instead: out to FNR Φ(−z_floor). ``z_delta`` None asks for nothing beyond the floor. Windows
    miss a tilted mass small enough for a relative accuracy ``rtol`` of μ at the ends of a piece.

    Args:
        groups: tuple of (stacked mechanism, counts), merged; one setting.
        count: all counts in a row.
        faintest: −log of the smallest density, under its tilt, at which a piece is used (for a
            composed loss of order one).
        seen: (thresholds, log FPRs there) at which the curve was seen to be deep enough, or (inf,
            0), of shape (sides,); for one piece. Where single large steps take over, the Chernoff
            bounds used here look much too far.
        anchor: a threshold at which a vertex is wanted, or 0.
        pieces: number of windows (static).

    Returns:
        A :class:`Plan` with leading axes of sides and pieces.

    Method: docs/method/tilting.md#saddle
    """
    if all(mechanism.symmetric for mechanism, _ in groups):
        # what is the same pair read backwards has two equal halves
        one = _plan_whole(
            groups,
            count,
            z_floor,
            z_delta,
            rtol,
            faintest,
            [a[:1] for a in seen],
            anchor,
            pieces,
            _BOTH[:1],
        )
        return jax.tree.map(lambda a: xp.concatenate([a, a]), one)
    return _plan_whole(groups, count, z_floor, z_delta, rtol, faintest, seen, anchor, pieces, _BOTH)


def _plan_whole(
    groups, count, z_floor, z_delta, rtol, faintest, seen, anchor, pieces: int, sides
) -> Plan:
    shared = _range(groups, count, z_floor, z_delta, rtol, faintest, seen, sides)
    if pieces == 1:
        return jax.tree.map(lambda a: a[:, None], _piece(shared, rtol, seen, anchor, 0, 1))
    # (a row of whole numbers of the same library as everything else)
    rows = xp.vmap(lambda piece: _piece(shared, rtol, seen, anchor, piece, pieces))(
        xp.arange(float(pieces)) + 0.0 * shared.tilt0[0]
    )
    return jax.tree.map(lambda a: xp.swapaxes(a, 0, 1), rows)


def plan_threshold(groups, count, threshold, rtol, faintest, share) -> Plan:
    """The tilted window that resolves the neighbourhood of one threshold |ℓ|, for each side: the
    tilt is the saddle point there.

    Deeper than rates of 1e-325 relative accuracy means nothing, so the window stops at that depth.

    Args:
        groups, count, faintest: see ``plan_whole``.
        threshold: privacy loss |ℓ| ≥ 0; a vertex is put there.
        share: of the threshold, beyond which a step is a jump; where one jump is the likeliest way
            there, what takes one is composed apart. 0 for never.

    Returns:
        A :class:`Plan` with a leading axis of sides.

    Method: docs/method/tilting.md#saddle
    """
    shallow = quadrature(groups, xp.full(count.shape, 30.0), _BOTH)
    value, _, square = (a[0] for a in composed(shallow, np.full(2, 0.5)))
    fine = _fine(rtol, square)

    def saddle(loss):
        """Tilts at ℓ = 0 and at the threshold, and the threshold; no deeper than the side that
        matters, with some room.
        """
        tilt0 = at_zero(loss)
        tilt = at_threshold(loss, tilt0, threshold + 0.0 * tilt0)
        tilt = below_top(loss, tilt0, tilt) if loss.bounded else tilt
        tilt = xp.maximum(tilt, tilt0)
        _, r_y, _, square = depths(loss, tilt)
        depth = xp.min(xp.maximum(r_y, 0.0))
        rough = xp.max(square / composed(loss, tilt0)[2]) > _WIDEST
        depth = (
            xp.minimum(xp.sqrt(depth**2 + xp.where(rough, _ROUGH, _ROOM)), _DEEPEST) + 0.0 * tilt0
        )
        far = xp.maximum(at_depth(loss, tilt0, depth, tilt0 > 0.0), tilt0)
        return tilt0, xp.minimum(tilt, far), xp.where(tilt > far, depths(loss, far)[2], threshold)

    # how deep one step's tail matters follows from the depth of the threshold, and that from the
    # tails
    deepest = xp.maximum(40.0, -1.1 * value)
    for _ in range(2):
        loss = quadrature(groups, deepest + fine + xp.log(count), _BOTH)
        tilt0, tilt, _ = saddle(loss)
        r_x = depths(loss, tilt)[0]
        deepest = xp.maximum(deepest, 0.5 * xp.max(r_x) ** 2 + 3.0)
    loss = quadrature(groups, deepest + fine + xp.log(count), _BOTH)
    tilt0 = at_zero(loss)
    spread = xp.sqrt(composed(loss, tilt0)[2])
    # a step that alone carries the sum past the threshold may as well stop there (see
    # ``plan_whole``)
    uncut, loss = (
        loss,
        loss.cut(threshold + _BEYOND * spread + xp.maximum(-composed(loss, 0.0 * tilt0)[1], 0.0)),
    )
    tilt0, tilt, place = saddle(loss)
    bulk = xp.sqrt(composed(loss, tilt0)[2])
    r_x, r_y, _, square = depths(loss, tilt)
    # where single large steps take over, the saddle point has both them and the many small ones in
    # its window, and neither is seen well: compose what takes a jump apart, under the tilt at which
    # that has its mean at the threshold
    least, positive = share * place, xp.maximum(place, 1e-9)
    stops = xp.where(
        place > 0.0, place + _BEYOND * bulk + 3.0 / fall(uncut, least, positive), xp.inf
    )
    apart = uncut.cut(stops)
    by_jump, fainter = at_jump(apart, least, positive, tilt)
    jumps = (square > _WIDEST * bulk**2) & (by_jump > 1.0) & (place > 0.0) & (share > 0.0)
    # (a single step with atoms is no composition: nothing is beside it)
    jumps = jumps & ((xp.sum(count) > 1.0) | (xp.max(loss.atomic) == 0.0))
    loss = loss._replace(loss=xp.where(jumps[:, None, None], apart.loss, loss.loss))
    tilt = xp.where(jumps, by_jump, tilt)
    # δ is a difference that is smaller than TPR by about the tilt
    fine = 0.25 * rtol / xp.maximum(tilt, 1.0)
    window = _window(
        loss,
        tilt,
        r_y,
        r_y,
        xp.stack([place, place]),
        xp.stack([r_x, r_x]),
        bulk,
        fine,
        xp.where(jumps, fainter, 0.0),
    )
    # the log of a tail changes by half the square of the tilt for every unit of variance: the
    # lattice has to be finer by the tilt
    window = window._replace(smooth=xp.minimum(window.smooth, 1.0 / xp.maximum(tilt, 1.0 - tilt)))
    window = window._replace(
        spread=xp.where(
            jumps, xp.minimum(xp.minimum(bulk, 0.1 * positive), _SEEN / tilt), window.spread
        )
    )
    cut_low, cut_high = (
        xp.maximum(place - window.spread, 0.0),
        xp.maximum(place, 0.0) + window.spread,
    )
    anchor = xp.where(threshold < cut_high, threshold, 0.0)
    jump = xp.where(jumps, share * place, xp.inf)
    return _made(
        common_unit(groups), loss, tilt, window, cut_low, cut_high, 0.0 * tilt, anchor, jump
    )
