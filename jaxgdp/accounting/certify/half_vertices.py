"""Vertices of one piece from block sums: error rates at every boundary, certified on one side."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...numerics import namespace as xp
from ...numerics.errors import NEAR_ONE, UNIT
from ...numerics.normal import log1mexp, safe_log
from ...numerics.shapes import Array, Bool, Float
from ..plan import Plan
from .block_sums import tail_sums, tail_units
from .composed import Composed
from .lattice import Placement
from .vertices import Vertices

# (a test that hardly ever misses, guard included)
_WIDEST = 600.0  # distance of vertices, in nats, whose exponential is a double with room
_NEGLIGIBLE_LOG_FNR = np.log(1e-9)
_MIN_SIGNAL_TO_GUARD = (
    1e3  # an attack vertex is used where its rates exceed the guard by this factor
)


_EXPONENT = 4.0  # units of s·t, for each unit of it: two products, and two sums with it


class _Sides(NamedTuple):
    """Logs of the decay over one block of P-masses, of Q-masses to the right and of Q-masses to the
    left, and what the normalisation of sums of each is off by, absolute, at every vertex.
    """

    p: Float[Array, ""]
    right: Float[Array, ""]
    left: Float[Array, ""]
    p_error: Float[Array, " vertices"]
    q_error: Float[Array, " vertices"]


def _sides(
    s: Float[Array, ""],
    width: Float[Array, ""],
    t: Float[Array, " vertices"],
    block_error: Array | float,
) -> _Sides:
    """Decays and errors of sums at thresholds t under the tilt s, of block sums that have an error
    of their own.

    Method: docs/method/rounding.md#sums
    """
    p, right, left = -s * width, -xp.maximum(s - 1.0, 0.0) * width, xp.minimum(s - 1.0, 0.0) * width
    number = t.shape[-1]
    sums = tail_units(number, p), xp.maximum(tail_units(number, right), tail_units(number, left))
    errors = (
        block_error + UNIT * (units + _EXPONENT * xp.abs(tilt * t))
        for units, tilt in zip(sums, (s, s - 1.0), strict=True)
    )
    return _Sides(p, right, left, *errors)


def right_or_left(
    value: Float[Array, " vertices"], right: Bool[Array, ""], sign: float
) -> tuple[Float[Array, " vertices"], Float[Array, " vertices"]]:
    """(log TPR, log β) from whichever of the two is summed without cancellation.

    Args:
        value: log TPR where ``right``, else log β.
        right: which of them it is.
        sign: of the certified side of TPR.

    Method: docs/method/tilting.md#tilt
    """
    # (moved by its own rounding towards the certified side: what is left to 1 may be as small as
    # that)
    value = xp.minimum(value + xp.where(right, sign * NEAR_ONE, 0.0), 0.0)
    other = log1mexp(value)
    return xp.where(right, value, other), xp.where(right, other, value)


def dominating_vertices(
    c: Composed, plan: Plan, place: Placement, log_not_at_infinity: Float[Array, ""]
) -> Vertices:
    """α from below and TPR from above at every block boundary of the dominating pair.

    Mass inside a block is split between the block's ends by connect-the-dots once more, so the
    thinned pair still dominates; with q = e^{−sMh}, α_k ∝ q·A_{k+1} + U_k and TPR_k ∝ A^Y_{k+1} +
    e^{Mh}·U_k.

    Args:
        c: the composed pair.
        plan, place: of the piece.
        log_not_at_infinity: log(1 − mass at +∞) of the pair on the lattice.

    Method: docs/method/blocks.md#thinning
    """
    s, width = plan.tilt, place.width
    t = place.thresholds(c.plain.shape[-1])
    p_guard = c.guard(s, place.h, place.size)
    q_guard = c.guard(xp.abs(s - 1.0), place.h, place.size) * xp.exp(width)
    y_blocks = c.plain + xp.expm1(width) * c.split
    after = lambda a: xp.pad(a[1:], (0, 1))
    sides = _sides(s, width, t, c.sums)

    alpha = xp.exp(sides.p) * after(tail_sums(c.plain, sides.p)) + c.split - p_guard
    log_alpha = c.log_total - c.roundoff - sides.p_error - s * t + safe_log(alpha)
    above_noise = alpha > 10.0 * p_guard

    r, q_error = xp.exp(sides.right), c.roundoff + sides.q_error
    tpr = r * after(tail_sums(y_blocks, sides.right)) + xp.exp(width) * c.split + q_guard

    # 1 − TPR from the left: everything up to t, and in block k the Q-mass left at its lower end
    left = tail_sums(y_blocks[::-1], sides.left)[::-1]
    before = xp.pad(left[:-1], (1, 0))
    # (plain − split is known to the rounding of plain)
    beta = xp.exp(sides.left) * before + (c.plain - c.split) - q_guard
    beta = beta - 2.0 * c.sums * xp.abs(c.plain)
    right = s >= 1.0
    log_value = c.log_total + xp.where(right, q_error, -q_error) + (1.0 - s) * t
    log_value = log_value + safe_log(xp.where(right, tpr, beta))
    at_infinity = xp.where(right, safe_log(-xp.expm1(log_not_at_infinity)), -xp.inf)
    log_tpr, log_beta = right_or_left(xp.logaddexp(log_value, at_infinity), right, 1.0)
    # (vertices so far apart that e^width is no double, or a rate that is no number, say nothing)
    silent = xp.isnan(log_alpha + log_tpr + log_beta) | (width > _WIDEST)
    log_alpha, log_beta = (xp.where(silent, -xp.inf, a) for a in (log_alpha, log_beta))
    log_tpr = xp.where(silent, 0.0, log_tpr)
    used = _used_of_dominating(plan, t, width)
    return Vertices(place.first, width, log_alpha, log_tpr, log_beta, used, above_noise)


def _used_of_dominating(
    plan: Plan, t: Float[Array, " vertices"], width: Float[Array, ""]
) -> Bool[Array, " vertices"]:
    """Neighbouring pieces overlap: together they have a vertex near every point of the curve."""
    overlap = 0.05 * plan.spread + width
    used = (t >= plan.cut_low - overlap) & (t <= plan.cut_high + overlap)
    # (at ℓ = 0 the curve goes on with slope −1, along which μ only falls: of what is below, only
    # the vertex whose slopes hold 0 is needed, wherever an anchor puts it)
    return used & (t > -(1.0 - 1e-9) * width)


def attack_vertices(
    p_side: Composed,
    q_side: Composed,
    plan: Plan,
    place: Placement,
    shift: Float[Array, ""],
    log_certain: Float[Array, ""],
) -> Vertices:
    """α from above and TPR from below for the test 'sum of labels beyond the threshold'.

    Vertices are kept where the guard is a small part of both rates; every one of them is
    achievable. Outcomes at +∞, with a mass of e^{log_certain}, are always rejected. ``shift`` is
    how far the window of the labels is from that of the losses, in blocks.

    Method: docs/method/attack.md#labels
    Method: docs/method/blocks.md#attack-vertices
    """
    s, width = plan.tilt, place.width
    p_guard = p_side.guard(s, place.h, place.size)
    q_guard = q_side.guard(xp.abs(s - 1.0), place.h, place.size)
    loss = place.thresholds(p_side.plain.shape[-1])
    t = loss + width * shift
    sides = _sides(s, width, t, xp.maximum(p_side.sums, q_side.sums))
    alpha = tail_sums(p_side.plain, sides.p)
    used = alpha > _MIN_SIGNAL_TO_GUARD * p_guard
    alpha = alpha + p_guard
    log_alpha = p_side.log_total + p_side.roundoff + sides.p_error - s * t + safe_log(alpha)

    q_error = q_side.roundoff + sides.q_error
    tpr = tail_sums(q_side.plain, sides.right)
    right = s >= 1.0
    used = used & xp.where(right, tpr > _MIN_SIGNAL_TO_GUARD * q_guard, True)
    tpr = tpr - q_guard
    left = tail_sums(q_side.plain[::-1], sides.left)[::-1]
    beta = xp.exp(sides.left) * xp.pad(left[:-1], (1, 0))
    clear = right | (beta > _MIN_SIGNAL_TO_GUARD * q_guard)
    beta = beta + q_guard
    log_value = q_side.log_total + xp.where(right, -q_error, q_error) + (1.0 - s) * t
    log_value = log_value + safe_log(xp.where(right, tpr, beta))
    # (a test that hardly ever misses is as good as one that never does)
    used = used & (clear | (log_value < _NEGLIGIBLE_LOG_FNR))
    log_value = xp.logaddexp(log_value, xp.where(right, log_certain, -xp.inf))
    log_tpr, log_beta = right_or_left(log_value, right, -1.0)
    log_alpha = xp.minimum(log_alpha, 0.0)
    start = xp.where(plan.cut_low == 0.0, -0.1 * plan.spread - width, plan.cut_low)
    used = used & (loss >= start) & (loss < plan.cut_high)
    used = used & (log_tpr > log_alpha) & (log_alpha < 0.0)
    top = xp.asarray(-xp.inf)
    return Vertices(place.first, width, log_alpha, log_tpr, log_beta, used, used, top, log_certain)
