"""The end of a half-curve: the largest composed loss, and the mass at +∞ beyond it."""

from __future__ import annotations

import functools
import operator

from ...mechanisms.composition import Groups
from ...numerics import namespace as xp
from ...numerics.errors import CURVE_END
from ...numerics.normal import log1mexp, log_sub, safe_log
from ...numerics.shapes import Array, Bool, Float
from .vertices import Vertices


def has_curve_end(groups: Groups) -> bool:
    """Whether a composition has a largest loss or mass at +∞ that is known of its class."""
    return any(mechanism.atomic or mechanism.ends() for mechanism, _ in groups)


def infinity_mass(
    log_not_at_infinity: Float[Array, ""],
    log_mass: Float[Array, " components"],
    uses: Float[Array, " components"],
) -> Float[Array, ""]:
    """log of the infinity mass, rounded up, from logs of what is left and of single uses.

    That of a single use is known as it is, with no rounding of ours; so one δ can be told from
    another.

    Method: docs/method/windows.md#infinity
    """
    some = log_mass > -xp.inf
    alone = xp.sum(xp.where(some, uses, 0.0)) <= 1.0
    rounded = xp.minimum(safe_log(-xp.expm1(log_not_at_infinity)) + CURVE_END, 0.0)
    return xp.where(alone, xp.max(log_mass), rounded)


def with_curve_end(
    above: Vertices,
    groups: Groups,
    log_infinity_mass: Float[Array, ""],
    reverse: Bool[Array, ""] | bool,
) -> Vertices:
    """Dominating vertices with what is known of the end of the curve."""
    if not has_curve_end(groups):
        return above
    if not any(m.ends() for m, _ in groups):
        return above._replace(top=xp.asarray(xp.inf), log_infinity_mass=log_infinity_mass)
    return _end_at(above, _largest(groups, reverse), log_infinity_mass)


def _largest(groups: Groups, reverse: Bool[Array, ""] | bool) -> Float[Array, ""]:
    """Largest composed loss, rounded up."""
    ends = [
        xp.sum(uses[:, None] * xp.vmap(lambda m: xp.stack(m.finite_loss_bounds()))(m), axis=0)
        for m, uses in groups
    ]
    low, high = functools.reduce(operator.add, ends)
    top = xp.where(reverse, -low, high)
    return top + CURVE_END * xp.abs(top)


def _end_at(v: Vertices, top: Float[Array, ""], log_infinity_mass: Float[Array, ""]) -> Vertices:
    """Dominating vertices of a mechanism with a composed loss of at most ``top``, or +∞.

    Beyond ``top`` α is 0 and TPR is the mass at +∞. δ(ε) is convex in e^ε, so from the last
    threshold t before, it lies below the chord from (e^t, δ(t)) to there: the vertex moves along
    its line of slope e^t to the chord's α, or to where TPR is 1 if that comes before.

    Method: docs/method/windows.md#infinity
    """
    t = v.threshold()
    last = (t < top) & (t + v.step >= top)
    tpr = xp.maximum(v.log_tpr, -1e300)
    ratio = xp.minimum(t + v.log_alpha - tpr, 0.0)
    log_delta = tpr + xp.log(-xp.expm1(ratio) + CURVE_END)
    gap = xp.where(last, xp.minimum(t - top, 0.0), -1.0)
    chord = log_sub(log_delta, log_infinity_mass) - xp.where(last, top, 0.0)
    chord = chord - safe_log(-xp.expm1(gap))
    # (no further than to where the line of slope e^top meets TPR 1)
    chord = xp.minimum(chord, log1mexp(log_infinity_mass) - xp.where(last, top, 0.0))
    before = xp.concatenate([xp.zeros((1,)), v.log_alpha[:-1]])
    log_alpha = xp.clip(chord, v.log_alpha, xp.maximum(before, v.log_alpha))
    moved = t + log_sub(log_alpha, v.log_alpha)
    log_tpr = xp.minimum(xp.logaddexp(v.log_tpr, moved) + CURVE_END, 0.0)
    # (a difference that may be of what is nearly equal)
    log_beta = log_sub(v.log_beta - CURVE_END, moved + CURVE_END) - CURVE_END
    beyond = t >= top
    pick = lambda here, past, other: xp.where(last, here, xp.where(beyond, past, other))
    return v._replace(
        log_alpha=pick(log_alpha, -xp.inf, v.log_alpha),
        log_tpr=pick(log_tpr, log_infinity_mass, v.log_tpr),
        log_beta=pick(log_beta, log1mexp(log_infinity_mass), v.log_beta),
        above_noise=v.above_noise | beyond,
        top=top,
        log_infinity_mass=log_infinity_mass,
    )
