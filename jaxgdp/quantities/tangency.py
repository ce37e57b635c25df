"""Tangency of a quantity to the curve: its derivative is a weight times that of δ(ε) at a few ε.

TPR(α) = min over ε of δ(ε) + e^ε·α, so by the envelope theorem ∂TPR(α) = ∂δ(ε*) at the slope e^{ε*}
of the curve there; every other quantity is a function of TPRs, a maximum over them, or an inverse
of δ. Besides, ε* itself is needed; it is interpolated between vertices, because an ε* that is off
makes a derivative wrong to first order.

Each quantity's own file declares where it touches the curve (``Quantity.tangency``), by functions
of this file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..accounting.certify.curve import Points, log_delta_at, points, safe_log1m
from ..accounting.certify.differentiable_law import ACROSS
from ..accounting.certify.vertices import Vertices
from ..numerics import namespace as xp
from ..numerics.normal import LOG_SQRT_2PI, argmax, log1mexp, ndtri_exp
from ..numerics.shapes import Array

# part of ε to both sides over which means are taken, where atoms move past it: what a small change
# of a parameter would see
_AROUND = 0.005
_TIE = 1e-11  # relative difference of what rounding alone sets apart


class Tangency(NamedTuple):
    """A number's derivative: Σ sign·e^{log_weight}·∂δ_side(ε), and ``slope`` times its argument's.

    Attributes:
        epsilon: points ε ≥ 0, shape (points,).
        spread: how far around each of them a mean is taken, shape (points,).
        sign: of the weight at each, shape (points,).
        log_weight: log of its size for both half-curves (plus, minus), −∞ where there is none,
            shape (2, points).
        slope: derivative with respect to the query, as ``Quantity.query`` makes it.
    """

    epsilon: Array
    spread: Array
    sign: Array
    log_weight: Array
    slope: Array


class Lines(NamedTuple):
    """Supporting lines of a half-curve at its thresholds, one number for each vertex.

    Attributes:
        epsilon: threshold, at least 0.
        log_delta: log δ(ε).
        step: distance to the next threshold.
        usable: whether the line counts.
    """

    epsilon: Array
    log_delta: Array
    step: Array
    usable: Array


class Peak(NamedTuple):
    """Where a row of numbers has its extremum, as a shift from a place; and how much of the bend
    there is in the single point at that place, in [0, 1].
    """

    shift: Array
    single: Array


class Touch(NamedTuple):
    """The line through a curve at one FPR.

    Attributes:
        side: 0 for the plus side of the pair, 1 for the minus side.
        epsilon: threshold ε*.
        mirrored: whether β = e^{−ε}·(1 − δ − α) holds there instead of TPR = δ + e^ε·α.
        log_tpr: log of TPR.
        log_beta: log of FNR.
        single: as in :class:`Peak`.
    """

    side: Array
    epsilon: Array
    mirrored: Array
    log_tpr: Array
    log_beta: Array
    single: Array


class RateTangency(NamedTuple):
    """A touch at one FPR; log of the weight of ∂δ(ε*) in ∂TPR; and ∂TPR/∂(log FPR)."""

    touch: Touch
    log_weight: Array
    slope: Array

    def tangency(
        self, log_scale: Array | float = 0.0, slope: Array | None = None, sign: float = 1.0
    ) -> Tangency:
        """That of sign·TPR, or of a function of it.

        Args:
            log_scale: log of the derivative of the function in TPR.
            slope: of the function in log FPR; None for sign·TPR itself.
            sign: of the derivative of the function in TPR.
        """
        touch = self.touch
        slope = sign * self.slope if slope is None else slope
        return single_point(
            touch.side, touch.epsilon, self.log_weight + log_scale, slope, sign, touch.single
        )


def peak(y: Array, usable: Array, k: Array) -> Peak:
    """Where y, extremal at k among its neighbours, has its extremum (0 if one is unusable).

    Where y is smooth that is the extremum of the parabola through the three. Where the loss has a
    large atom y has a corner, which moves with the atom, and so does the extremum: its derivative
    is the mean of those on both sides of the corner, weighted with the slopes towards the other
    side. The parabola's shift, doubled, gives that mean. How much of the bend is in a single point
    decides between the two."""
    last = y.shape[0] - 1
    place = [k + i for i in range(-2, 3)]
    far_a, a, b, c, far_c = (y[xp.clip(i, 0, last)] for i in place)
    far = usable[xp.maximum(k - 2, 0)] & usable[xp.minimum(k + 2, last)] & (k > 1) & (k < last - 1)
    inside = (k > 0) & (k < last) & usable[xp.maximum(k - 1, 0)] & usable[xp.minimum(k + 1, last)]
    bend = a - 2.0 * b + c
    inside = inside & xp.isfinite(bend) & (xp.abs(bend) > _TIE * xp.abs(b))
    bend = xp.where(inside, bend, 1.0)
    beside = (xp.abs(far_a - 2.0 * a + b) + xp.abs(b - 2.0 * c + far_c)) / (2.0 * xp.abs(bend))
    single = xp.where(far & inside & xp.isfinite(beside), 1.0 - xp.clip(beside, 0.0, 1.0), 0.0)
    shift = xp.where(inside, 0.5 * (a - c) / bend, 0.0) * (1.0 + single)
    # (between two atoms nothing bends)
    return Peak(xp.clip(shift, -1.0, 1.0), xp.where(inside, single, 1.0))


def between(values: Array, k: Array, shift: Array) -> Array:
    """Values between k and its neighbours, linearly."""
    last = values.shape[0] - 1
    there = values[xp.clip(k + xp.sign(shift).astype(int), 0, last)]
    return values[k] + xp.abs(shift) * xp.where(shift == 0.0, 0.0, there - values[k])


def lines_of(p: Points, others: Sequence[Vertices]) -> Lines:
    """The supporting lines of a half-curve; at each ε the largest δ of it and ``others`` counts."""
    epsilon = xp.maximum(p.low, 0.0)
    reachable = xp.maximum(p.log_tpr, -1e300)
    log_delta = p.log_tpr + safe_log1m(xp.minimum(epsilon + p.log_alpha - reachable, 0.0))
    for other in others:
        log_delta = xp.maximum(log_delta, log_delta_at(other, epsilon))
    return Lines(
        epsilon, log_delta, p.high - p.low, p.used & (p.low >= -1e-12) & (log_delta > -xp.inf)
    )


def pick(candidates: Sequence[Any], which: Array) -> Array:
    """One of several values; ``which`` may be traced where they are constants."""
    return xp.take(xp.stack(candidates), which)


def log_density(z: Array) -> Array:
    """log φ(z)."""
    return -0.5 * z * z - LOG_SQRT_2PI


def single_point(
    side: Array | int,
    epsilon: Array,
    log_weight: Array,
    slope: Array,
    sign: float = 1.0,
    single: Array | float = 0.0,
) -> Tangency:
    """A single point: ∂number = sign·e^{log_weight}·∂δ_side(ε).

    A mean over ε is taken as far as atoms lie close together: not where ``single``.
    """
    log_weights = xp.where(side == xp.arange(2), log_weight, -xp.inf)
    return Tangency(
        epsilon[None],
        ((1.0 - single) * _AROUND * epsilon)[None],
        sign * xp.ones((1,)),
        log_weights[:, None],
        slope,
    )


class HalfCurves:
    """Both half-curves of the dominating pair of one setting, and questions about where they are.

    Args:
        vertices: of both half-curves, without allowance for errors.
        symmetric: whether the curve covers both orders of the pair.
    """

    def __init__(self, vertices: tuple[Vertices, Vertices], symmetric: bool):
        self.symmetric = symmetric
        self.vertices = vertices
        self.points = tuple(points(v) for v in self.vertices)

    def log_fpr(self, side: Array, epsilon: Array) -> Array:
        """log FPR of the threshold ε; a vertex has that of the middle of the cell above."""

        def along(p: Points) -> Array:
            middle = xp.where(p.used & xp.isfinite(p.high), 0.5 * (p.low + p.high), xp.inf)
            order = xp.argsort(middle)
            row = xp.maximum(p.log_alpha, -1e300)[order]
            return xp.mean(xp.interp(epsilon * (1.0 + _AROUND * ACROSS), middle[order], row))

        return xp.where(side == 0, *(along(p) for p in self.points))

    def larger(self, epsilon: Array) -> tuple[Array, Array]:
        """(side, log δ) of the larger direction at ε; the plus side where one is meant."""
        plus, minus = (log_delta_at(v, epsilon) for v in self.vertices)
        if not self.symmetric:
            return xp.zeros((), int), plus
        return (minus > plus).astype(int), xp.maximum(plus, minus)

    def tpr(self, log_fpr: Array, side: int | None = None) -> Touch:
        """The line through the curve at one FPR.

        Slopes above one belong to TPR = δ + e^ε·α, those below to β = e^{−ε}·(1 − δ − α). ``side``
        takes one half-curve by itself."""
        if side is not None:
            direct = mirrored = (side,)
        elif self.symmetric:
            direct = mirrored = (0, 1)
        else:
            direct, mirrored = (0,), (1,)
        found = []
        for kind, sides in ((False, direct), (True, mirrored)):
            for s in sides:
                if kind and side is not None:
                    continue
                others = (self.vertices[1 - s],) if self.symmetric and side is None else ()
                lines = lines_of(self.points[s], others)
                if kind:
                    rest = xp.log1p(-xp.minimum(xp.exp(lines.log_delta), 1.0 - 1e-16))
                    value = -(rest + safe_log1m(xp.minimum(log_fpr - rest, 0.0)) - lines.epsilon)
                else:
                    value = xp.logaddexp(lines.log_delta, lines.epsilon + log_fpr)
                value = xp.where(lines.usable, value, xp.inf)
                k = argmax(-value)
                shift, single = peak(value, lines.usable, k)
                epsilon = xp.maximum(lines.epsilon[k] + shift * lines.step[k], 0.0)
                log_tpr = log1mexp(-value[k]) if kind else xp.minimum(value[k], 0.0)
                log_beta = -value[k] if kind else log1mexp(log_tpr)
                found.append(
                    Touch(xp.asarray(s), epsilon, xp.asarray(kind), log_tpr, log_beta, single)
                )
        which = argmax(-xp.stack([touch.log_tpr for touch in found]))
        best = Touch(*(pick(column, which) for column in zip(*found, strict=True)))
        if side is None and self.symmetric:
            best = best._replace(side=self.larger(best.epsilon)[0])
        return best


def tpr_quantile(log_tpr: Array, log_beta: Array) -> Array:
    """Φ⁻¹(TPR) from the smaller of TPR and FNR."""
    z = ndtri_exp(xp.minimum(log_tpr, log_beta))
    return xp.where(log_tpr < log_beta, z, -z)


def touching_slope(
    z_alpha: Array, z_tpr: Array, p: Points, value: Array, usable: Array, k: Array
) -> Array:
    """log of the slope φ(z_TPR)/φ(z_α) of the Gaussian curve through a point of the curve.

    A curve's corner has a range of slopes. Vertices between two atoms are the same point and share
    it; at the last vertex that counts the Gaussian curve crosses, and the curve's own slope is in
    the middle of its range."""
    last = value.shape[0] - 1
    between = (k > 0) & (k < last) & usable[xp.maximum(k - 1, 0)] & usable[xp.minimum(k + 1, last)]
    same = p.used & (xp.abs(value - value[k]) <= _TIE * xp.abs(value[k]))
    low = xp.min(xp.where(same, p.low, p.low[k]))
    high = xp.max(xp.where(same & xp.isfinite(p.high), p.high, p.low[k]))
    touching = xp.clip(0.5 * (z_alpha - z_tpr) * (z_alpha + z_tpr), low, high)
    middle = 0.5 * (p.low[k] + xp.where(xp.isfinite(p.high[k]), p.high[k], p.low[k]))
    return xp.maximum(xp.where(between, touching, middle), 0.0)


def largest(found: Sequence[tuple[Array, Tangency]]) -> Tangency:
    """The tangency of the largest of several values."""
    which = argmax(xp.stack([value for value, _ in found]))
    return Tangency(*(pick(column, which) for column in zip(*(t for _, t in found), strict=True)))


def at_fpr(halves: HalfCurves, log_fpr: Array) -> RateTangency:
    """Where the curve is touched at one FPR, with the weights of TPR there."""
    touch = halves.tpr(log_fpr)
    log_weight = xp.where(touch.mirrored, -touch.epsilon, 0.0)
    steep = xp.exp(log_fpr + xp.where(touch.mirrored, -touch.epsilon, touch.epsilon))
    return RateTangency(touch, log_weight, steep)
