"""The certified curve that every quantity is read off: both halves, from above and from below."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import numpy as np

from ...mechanisms.composition import Groups
from ...numerics import namespace as xp
from ...numerics.errors import CURVE_END
from ...numerics.normal import argmax, log1mexp, log_error
from ...numerics.once import once
from ...numerics.shapes import Array, Bool, Float
from ...pairs.known_curves import OrientedCurve
from .vertices import Vertices


class Curve(NamedTuple):
    """Both sides of both half-curves of one setting (unbatched), and what is known beyond them.

    ``plus`` holds slopes −e^ℓ, ℓ ≥ 0, of the trade-off curve of (P, Q) (a record removed),
    ``minus`` those of the swapped pair (a record added). Vertices of the dominating pair bound
    privacy loss from above, those of the attack from below.

    Attributes:
        upper_plus, upper_minus: vertices of the dominating pair.
        lower_plus, lower_minus: error rates the attack achieves.
        tail_mu: a μ that holds at every FPR, √Σ T/σ² for Gaussians: the whole mechanism without
            subsampling; ∞ where none does.
        gaussian_part_mu: √Σ T/σ² of the parts that are exactly Gaussian: what an attacker reaches
            who looks at nothing else.
        largest_plus, largest_minus: a loss that each order never exceeds, not even at +∞; ∞ where
            none is known.
        known: the curve in closed form, where that is known; it stays on the host.

    Method: docs/method/blocks.md#halves
    Method: docs/method/reading.md#largest
    """

    upper_plus: Vertices
    upper_minus: Vertices
    lower_plus: Vertices
    lower_minus: Vertices
    tail_mu: Float[Array, ""] | float
    gaussian_part_mu: Float[Array, ""] | float = 0.0
    largest_plus: Float[Array, ""] | float = np.inf
    largest_minus: Float[Array, ""] | float = np.inf
    known: OrientedCurve | None = None

    def swapped(self) -> Curve:
        """The curve of the other order."""
        return self._replace(
            upper_plus=self.upper_minus,
            upper_minus=self.upper_plus,
            lower_plus=self.lower_minus,
            lower_minus=self.lower_plus,
            largest_plus=self.largest_minus,
            largest_minus=self.largest_plus,
            known=None,
        )


class Points(NamedTuple):
    """Vertices of a half-curve in one row: thresholds, log error rates; unused ones at (1, 0)."""

    low: Float[Array, " vertices"]
    high: Float[Array, " vertices"]
    log_alpha: Float[Array, " vertices"]
    log_tpr: Float[Array, " vertices"]
    log_beta: Float[Array, " vertices"]
    used: Bool[Array, " vertices"]


class GaussianParts(NamedTuple):
    """The Gaussian curves that a curve lies between, and its largest losses; see :class:`Curve`."""

    tail_mu: Float[Array, ""]
    gaussian_part_mu: Float[Array, ""]
    largest_plus: Float[Array, ""] | float = np.inf
    largest_minus: Float[Array, ""] | float = np.inf

    def swapped(self) -> GaussianParts:
        """Those of the other order."""
        return self._replace(largest_plus=self.largest_minus, largest_minus=self.largest_plus)


def gaussian_parts(groups: Groups) -> GaussianParts:
    """Both of one setting, of which the uses are as they were stated.

    Method: docs/method/reading.md#closed
    Method: docs/method/reading.md#largest
    """
    sums = [
        (
            xp.sum(count * xp.vmap(lambda m: m.tail_precision())(mechanism)),
            xp.sum(count * xp.vmap(lambda m: m.gaussian_part_precision())(mechanism)),
        )
        for mechanism, count in groups
    ]
    largest = [
        tuple(
            xp.sum(xp.where(count > 0.0, count * most, 0.0))
            for most in xp.vmap(lambda m: m.largest_losses())(mechanism)
        )
        for mechanism, count in groups
    ]
    return GaussianParts(
        *(xp.sqrt(sum(parts)) for parts in zip(*sums, strict=True)),
        *(sum(parts) * (1.0 + CURVE_END) for parts in zip(*largest, strict=True)),
    )


def both_sides(plus: Any, minus: Any) -> Any:
    """Two halves on a leading axis: what is done to both is written into a program once."""
    return jax.tree.map(lambda *sides: xp.stack(sides), plus, minus)


@once
def points(v: Vertices) -> Points:
    """Pieces laid end to end, and the end of the curve at α = 0 if the vertices reach it."""
    t = v.threshold()
    used = v.used
    rates = [
        xp.where(used, a, unused)
        for a, unused in zip((v.log_alpha, v.log_tpr, v.log_beta), (0.0, -xp.inf, 0.0), strict=True)
    ]
    if v.top is None:
        return Points(*(a.reshape(-1) for a in (t, v.slopes_end(), *rates, used)))
    top, log_infinity_mass = (xp.reshape(a, (-1,))[0] for a in (v.top, v.log_infinity_mass))
    # (where no loss is above 0 the end is all there is)
    reached = (xp.max(xp.where(used, v.slopes_end(), -xp.inf)) >= top) | (
        (top <= 0.0) & (top > -xp.inf)
    )
    last = xp.where(xp.isfinite(top), xp.maximum(top, 0.0), xp.max(xp.where(used, t, 0.0)))

    def flat(a: Array, end: Array | float) -> Array:
        return xp.append(a.reshape(-1), end)

    return Points(
        flat(t, last),
        flat(v.slopes_end(), xp.inf),
        flat(rates[0], xp.where(reached, -xp.inf, 0.0)),
        flat(rates[1], xp.where(reached, log_infinity_mass, -xp.inf)),
        flat(rates[2], xp.where(reached, log1mexp(log_infinity_mass), 0.0)),
        flat(used, reached),
    )


@once
def path(v: Vertices) -> Points:
    """The attack's tests in order, unused ones replaced by the used one before (or the first)."""
    p = points(v)
    k = xp.arange(p.used.shape[0])
    k = xp.where(p.used, k, -1)
    k = xp.cummax(k)
    k = xp.where(k < 0, argmax(p.used), k)
    return Points(*(a[k] for a in p))


def log_delta_at(v: Vertices, epsilon: Array) -> Array:
    """log δ(ε), the hockey-stick divergence, of a dominating half-curve, for ε ≥ 0 of any shape.

    Every vertex has δ(ε) ≥ TPR_k − e^ε·α_k, with equality for the one whose slope range holds e^ε,
    so that vertex is used; where pieces overlap, the smaller of their bounds. Beyond the
    last vertex its TPR bounds δ, and beyond the largest loss only the mass at +∞ is left.

    Method: docs/method/reading.md#lines
    """
    shape, e = xp.shape(epsilon), xp.reshape(epsilon, (-1,))

    def piece(one: Vertices) -> Array:
        k, inside = one.within(e)
        inside = inside & one.used[k]
        # the threshold and ε may differ in the last digit: δ is continuous, allow for as much
        return xp.where(inside, log_intercept(e, one.log_alpha[k], one.log_tpr[k]), 0.0)

    best = xp.min(xp.vmap(piece)(v._replace(top=None, log_infinity_mass=None)), axis=0)
    reach = xp.max(xp.where(v.used, v.threshold(), -xp.inf))
    last = xp.min(xp.where(v.used, v.log_tpr, 0.0))
    best = xp.minimum(best, xp.where(e >= reach, last, 0.0))
    if v.top is None:
        return best.reshape(shape)
    top, log_infinity_mass = (xp.reshape(a, (-1,))[0] for a in (v.top, v.log_infinity_mass))
    # no loss is above the largest one: δ(ε) ≤ δ(top) + 1 − e^{ε − top}; and no δ is below the mass
    # at +∞, whatever the vertex before says
    beyond = safe_log1m(xp.minimum(e - top, 0.0))
    best = xp.maximum(best, log_infinity_mass)
    return xp.minimum(best, xp.logaddexp(log_infinity_mass, beyond)).reshape(shape)


def log_one_minus_delta_at(v: Vertices, epsilon: Array) -> Array:
    """Lower bound on log(1 − δ(ε)) of a dominating half-curve, accurate where δ(ε) is next to 1.

    The vertex whose slope range holds e^ε has 1 − δ(ε) = β_k + e^ε·α_k; of pieces that overlap the
    larger bound counts, and where no vertex reaches, what δ(ε) itself says.

    Method: docs/method/reading.md#lines
    """
    shape, e = xp.shape(epsilon), xp.reshape(epsilon, (-1,))

    def piece(one: Vertices) -> Array:
        k, inside = one.within(e)
        value = xp.logaddexp(one.log_beta[k], e + one.log_alpha[k])
        return xp.where(
            inside & one.used[k], value - log_error(value, e, one.log_alpha[k]), -xp.inf
        )

    rest = xp.max(xp.vmap(piece)(v._replace(top=None, log_infinity_mass=None)), axis=0)
    # (a log next to 0 is known to its absolute rounding, which 1 − δ(ε) may be as small as)
    rest = xp.maximum(rest, log1mexp(xp.minimum(log_delta_at(v, e) + log_error(), 0.0)))
    if v.log_infinity_mass is not None:
        # beyond the largest loss δ(ε) is the mass at +∞, whatever the vertex before says
        rest = xp.minimum(rest, log1mexp(xp.reshape(v.log_infinity_mass, (-1,))[0]))
    return xp.minimum(rest, 0.0).reshape(shape)


def log_intercept(threshold: Array, log_alpha: Array, log_tpr: Array, side: float = 1.0) -> Array:
    """log(TPR − e^ε·α), the line of slope e^ε through a test at FPR 0, from above (``side`` 1.0).

    The rates differ by a share that may be as small as the rounding of their logs.

    Method: docs/method/reading.md#lines
    """
    some = log_tpr > -xp.inf
    value = xp.where(some, log_tpr, 0.0)
    ratio = xp.minimum(threshold + log_alpha - value, 0.0) - side * log_error(threshold, log_alpha)
    return xp.where(
        some, xp.minimum(value + safe_log1m(ratio) + side * log_error(value), 0.0), -xp.inf
    )


def safe_log1m(log_ratio: Array) -> Array:
    """log(1 − e^{log_ratio}) with −inf at 0."""
    inside = log_ratio < 0.0
    gap = xp.where(inside, log_ratio, -1.0)
    return xp.where(inside, xp.log(-xp.expm1(gap)), -xp.inf)
