"""The tilted window about one threshold: its tilt is the saddle point there, or that of a jump."""

from __future__ import annotations

from typing import NamedTuple

from ...numerics import namespace as xp
from ...numerics.shapes import Array, Bool, Float
from ..plan import Plan
from .cumulants import LossQuadrature, common_unit, composed, quadrature
from .tilts import at_depth, at_jump, at_threshold, at_zero, below_top, depths, tail_slope
from .windows import Cut, Piece, extra_depth, plan_of, window_of

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


class _Saddle(NamedTuple):
    """The saddle point of a threshold, no deeper than needed, with some room; shapes (sides,).

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
    groups: tuple, count: Array, threshold: Array, rtol: Array | float, reverse: Array
) -> LossQuadrature:
    """A quadrature that is deep enough for the rates at a threshold."""
    shallow = quadrature(groups, xp.full(count.shape, 30.0), reverse)
    value, _, square = (a[0] for a in composed(shallow, 0.5 + xp.zeros(reverse.shape)))
    fine = extra_depth(rtol, square)
    # how deep one step's tail matters follows from the depth of the threshold, and that from the
    # tails
    deepest = xp.maximum(40.0, -1.1 * value)
    for _ in range(2):
        loss = quadrature(groups, deepest + fine + xp.log(count), reverse)
        r_y = depths(loss, _saddle(loss, threshold).tilt).tpr
        deepest = xp.maximum(deepest, 0.5 * xp.max(r_y * r_y) + 3.0)
    return quadrature(groups, deepest + fine + xp.log(count), reverse)


class _ByJump(NamedTuple):
    """What takes one jump, composed apart, where that is the likeliest way; shapes (sides,).

    Attributes:
        likeliest: whether it is.
        left: whether several jumps lead there, or none does, and are left with the small steps.
        loss: with steps cut where they are of no use; nodes of shape (sides, components, nodes).
        tilt: for what takes a jump.
        neg_log_mass: −log of its mass about the threshold under that tilt.
    """

    likeliest: Array
    left: Array
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
    least, positive = xp.abs(share) * place, xp.maximum(place, 1e-9)
    stops = xp.where(
        place > 0.0, place + _BEYOND * bulk + 3.0 / tail_slope(uncut, least, positive), xp.inf
    )
    apart = uncut.cut(stops)
    by_jump, fainter, several, none = at_jump(apart, least, positive, tilt)
    jumps = (variance > _WIDEST * bulk**2) & (by_jump > 1.0) & (place > 0.0) & (share != 0.0)
    # (a single step with atoms is no composition: nothing is beside it)
    jumps = jumps & ((xp.sum(loss.uses) > 1.0) | (xp.max(loss.atomic) == 0.0))
    several = jumps & (none | (share < 0.0) & (several | (share <= -1.0)))
    return _ByJump(jumps & ~several, several, apart, by_jump, fainter)


def plan_threshold(
    groups: tuple,
    count: Float[Array, " components"],
    threshold: Float[Array, ""],
    rtol: float,
    share: Float[Array, ""],
    reverse: Bool[Array, " sides"],
) -> Plan:
    """The tilted window that resolves the neighbourhood of one threshold |ℓ|, for each side:
    the tilt is the saddle point there.

    Deeper than rates of 1e-325 relative accuracy means nothing, so the window stops at that depth.

    Args:
        groups: tuple of (stacked mechanism, counts), Gaussians collapsed; one setting.
        count: all counts in a row.
        threshold: privacy loss |ℓ| ≥ 0; a vertex is put there.
        rtol: relative accuracy.
        share: of the threshold, beyond which a step is a jump; where one jump is the likeliest way
            there, what takes one is composed apart. 0 for never; negative for only where no
            more than about one jump is expected under the tilt of the saddle point, −1 for nowhere.
        reverse: which sides are planned: False for the pair as it is, True for the swapped one. A
            side beside another one need be no deeper than that one.

    Returns:
        A :class:`Plan` with a leading axis of sides.

    Method: docs/method/tilting.md#saddle
    """
    uncut = _quadrature_about(groups, count, threshold, rtol, reverse)
    tilt0 = at_zero(uncut)
    spread = xp.sqrt(composed(uncut, tilt0)[2])
    # (a step that alone carries the sum past the threshold may as well stop there)
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
    piece = Piece(xp.stack([r_y, r_y]), xp.stack([place, place]), xp.stack([r_x, r_x]), bulk)
    # δ is a difference that is smaller than TPR by about the tilt
    fine = 0.25 * rtol / xp.maximum(tilt, 1.0)
    window = window_of(loss, tilt, piece, fine, xp.where(jumps, jump.neg_log_mass, 0.0))
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
    jump_from = xp.where(jumps, xp.abs(share) * place, xp.where(jump.left, -xp.inf, xp.inf))
    cut = Cut(cut_low, cut_high, 0.0 * tilt, anchor, jump_from)
    return plan_of(common_unit(groups), loss, tilt, window, cut)
