"""The tilted windows of a whole curve: from ℓ = 0 down to the rates that are asked for."""

from __future__ import annotations

from typing import NamedTuple

import jax
import numpy as np

from ...numerics import namespace as xp
from ...numerics import normal
from ...numerics.shapes import Array, Bool, Float
from ..plan import Plan
from .cumulants import LossQuadrature, common_unit, composed, quadrature
from .tilts import at_depth, at_top, depths, tilt_range, weakest_usable_tilt
from .windows import Cut, Piece, extra_depth, plan_of, window_of

# −log of the part of a rate that steps have which are left out, and the part of the way to a
# threshold that one of the others makes at least
_HARDLY, _MOST_OF = 6.5, 0.4
_BOTH = np.array([False, True])


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
    loss = quadrature(groups, deepest + extra_depth(rtol, square) + xp.log(count), sides)
    # μ is a difference of quantiles: a small one needs that much more accurate rates
    max_neg_log_density = xp.maximum(
        max_neg_log_density + 0.5 * xp.log(xp.minimum(square, 1.0)), 4.0
    )

    # a step that alone carries the sum past every threshold asked for may as well stop there: its
    # P-mass stays at that point and its other Q-mass goes to the atom at infinity. Exponential
    # tilting needs this where such steps are the likeliest way there: it would fill the window with
    # steps beyond. So may one that hardly ever is so long, where one is most of the way: the depths
    # of the far end are too deep a guess with it.
    reach = lambda longest: tilt_range(loss.cut(longest), z_floor, z_delta)
    furthest = xp.max(loss.nodes, axis=(-2, -1))
    known = known_reach[0]
    likely = xp.where(xp.isfinite(known), xp.inf, _longest_likely(loss, z_floor, z_delta))

    def shorter(longest, found):
        """Where steps may stop, and on which sides that is any nearer."""
        room = 12.0 * found.spread
        room = room + xp.maximum(-composed(loss.cut(longest), 0.0 * found.tilt0)[1], 0.0)
        stop = xp.maximum(xp.where(xp.isfinite(known), known, found.threshold), 0.0) + room
        stop = xp.where(likely < _MOST_OF * found.threshold, stop, xp.minimum(stop, likely))
        less = (stop < longest) & (stop < furthest)
        return xp.where(less, stop, longest), less

    def shorten(_, state):
        _, _, longest, _ = state
        found = reach(longest)
        return longest, found, *shorter(longest, found)

    whole = xp.full_like(known, xp.inf)
    found = reach(whole)
    state = whole, found, *shorter(whole, found)
    longest, found, *_ = xp.fori_loop(0, 2, shorten, state, lambda state: ~xp.any(state[3]))
    return _Shared(loss.cut(longest), common_unit(groups), *found[:4], max_neg_log_density)


def _longest_likely(
    loss: LossQuadrature, z_floor: Array, z_delta: Array | None
) -> Float[Array, " sides"]:
    """How long a single step is, at most, of all but so small a part of the rates that are asked
    for that it does not matter; ∞ where that is not told by nodes.

    Method: docs/method/tilting.md#saddle
    """
    longest = loss.likely(normal.log_ndtr(-z_floor) - _HARDLY, of_q=False)
    if z_delta is not None:
        of_q = loss.likely(normal.log_ndtr(-z_delta) - _HARDLY, of_q=True)
        longest = xp.maximum(longest, of_q)
    told = xp.all((loss.atomic == 0.0) & (loss.precision == 0.0))
    return xp.where(told & ~loss.reverse, longest, xp.inf)


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
    window = window_of(loss, tilt, Piece(edge_y, edge_t, depth, bulk), rtol, 0.0)
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
    cut = Cut(edge_t[0], cut_high, length, anchor)
    return plan_of(unit, loss, tilt, window._replace(high=high), cut)


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
    """The tilted windows that cover ℓ ≥ 0 down to FPR Φ(−z_floor) and TPR Φ(−z_delta).

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
