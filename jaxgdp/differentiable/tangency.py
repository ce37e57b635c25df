"""Where each number touches the curve: every derivative is a weight times that of log δ(ε) at a few ε.

TPR(α) = min over ε of δ(ε) + e^ε·α, so by the envelope theorem ∂TPR(α) = ∂δ(ε*) at the slope e^{ε*} of the curve there; every
other number is a function of TPRs, a maximum over them, or an inverse of δ. What is needed besides is ε* itself, which is
interpolated between vertices, because an ε* that is off makes a derivative wrong to first order.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp

from ..accounting.curve import Curve, Points, log_delta_at, points, safe_log1m
from ..numerics.normal import LOG_SQRT_2PI, argmax, gaussian_delta, log1mexp, ndtri_exp


class Tangency(NamedTuple):
    """A number's derivative is Σ weight·∂log δ_side(ε) over its points, and ``slope`` times that of what it is asked at.

    Attributes:
        epsilon: points ε ≥ 0, shape (points,).
        weight: weights at them of both half-curves (plus, minus), shape (2, points).
        slope: derivative with respect to the query, as ``summaries.quantities`` has it.
    """

    epsilon: Any
    weight: Any
    slope: Any

    def padded(self, number: int) -> Tangency:
        """With so many points, those added without weight."""
        more = number - self.epsilon.shape[0]
        return Tangency(jnp.pad(self.epsilon, (0, more)), jnp.pad(self.weight, ((0, 0), (0, more))), self.slope)


class _Lines(NamedTuple):
    """Supporting lines of a half-curve at its thresholds."""

    epsilon: Any
    log_delta: Any
    step: Any
    usable: Any


def _peak(y, usable, k):
    """Where the parabola through y at k and its neighbours has its extremum, as a shift from k; 0 where one of them is unusable."""
    last = y.shape[0] - 1
    a, b, c = (y[jnp.clip(k + i, 0, last)] for i in (-1, 0, 1))
    inside = (k > 0) & (k < last) & usable[jnp.maximum(k - 1, 0)] & usable[jnp.minimum(k + 1, last)]
    bend = a - 2.0 * b + c
    inside = inside & jnp.isfinite(bend) & (jnp.abs(bend) > 0.0)
    shift = jnp.where(inside, 0.5 * (a - c) / jnp.where(inside, bend, 1.0), 0.0)
    return jnp.clip(shift, -1.0, 1.0)


def _at(values, k, shift):
    """Values between k and its neighbours, linearly."""
    last = values.shape[0] - 1
    there = values[jnp.clip(k + jnp.sign(shift).astype(int), 0, last)]
    return values[k] + jnp.abs(shift) * jnp.where(shift == 0.0, 0.0, there - values[k])


def _lines(p: Points, others) -> _Lines:
    epsilon = jnp.maximum(p.low, 0.0)
    reachable = jnp.maximum(p.log_tpr, -1e300)
    log_delta = p.log_tpr + safe_log1m(jnp.minimum(epsilon + p.log_alpha - reachable, 0.0))
    for other in others:
        log_delta = jnp.maximum(log_delta, log_delta_at(other, epsilon))
    return _Lines(epsilon, log_delta, p.high - p.low, p.used & (p.low >= -1e-12) & (log_delta > -jnp.inf))


def _log_density(z):
    return -0.5 * z * z - LOG_SQRT_2PI


def _one(side, epsilon, log_delta, log_weight, slope, sign=1.0) -> Tangency:
    """A single point: ∂number = sign·e^{log_weight}·∂δ_side(ε)."""
    weight = sign * jnp.exp(jnp.minimum(log_weight + log_delta, 700.0))
    weights = jnp.where(side == jnp.arange(2), weight, 0.0)
    return Tangency(epsilon[None], weights[:, None], slope)


class _Halves:
    """Both dominating half-curves of one setting, and questions about where they are."""

    def __init__(self, curve: Curve, symmetric: bool):
        self.symmetric = symmetric
        self.vertices = curve.upper_plus, curve.upper_minus
        self.points = tuple(points(v) for v in self.vertices)

    def log_fpr(self, side, epsilon):
        """log FPR of the threshold ε. A vertex has the slopes of the cell above it: its FPR is that of the cell's middle."""

        def along(p: Points):
            middle = jnp.where(p.used & jnp.isfinite(p.high), 0.5 * (p.low + p.high), jnp.inf)
            order = jnp.argsort(middle)
            return jnp.interp(epsilon, middle[order], jnp.maximum(p.log_alpha, -1e300)[order])

        return jnp.where(side == 0, *(along(p) for p in self.points))

    def larger(self, epsilon):
        """(side, log δ) of the larger direction at ε; the plus side alone where one direction is meant."""
        plus, minus = (log_delta_at(v, epsilon) for v in self.vertices)
        if not self.symmetric:
            return jnp.zeros((), int), plus
        return (minus > plus).astype(int), jnp.maximum(plus, minus)

    def tpr(self, log_fpr, side=None):
        """The line through the curve at one FPR: (side, ε*, log δ(ε*), mirrored, log TPR, log β).

        Slopes above one belong to TPR = δ + e^ε·α, those below to β = e^{−ε}·(1 − δ − α). ``side`` takes one half-curve by itself.
        """
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
                lines = _lines(self.points[s], others)
                if kind:
                    rest = jnp.log1p(-jnp.minimum(jnp.exp(lines.log_delta), 1.0 - 1e-16))
                    value = -(rest + safe_log1m(jnp.minimum(log_fpr - rest, 0.0)) - lines.epsilon)
                else:
                    value = jnp.logaddexp(lines.log_delta, lines.epsilon + log_fpr)
                value = jnp.where(lines.usable, value, jnp.inf)
                k = argmax(-value)
                shift = _peak(value, lines.usable, k)
                epsilon = jnp.maximum(lines.epsilon[k] + shift * lines.step[k], 0.0)
                log_tpr = log1mexp(-value[k]) if kind else jnp.minimum(value[k], 0.0)
                log_beta = -value[k] if kind else log1mexp(log_tpr)
                found.append((jnp.asarray(s), epsilon, jnp.asarray(kind), log_tpr, log_beta))
        which = argmax(-jnp.stack([f[3] for f in found]))
        s, epsilon, kind, log_tpr, log_beta = (jnp.stack(column)[which] for column in zip(*found, strict=True))
        if side is None and self.symmetric:
            s = self.larger(epsilon)[0]
        log_delta = jnp.where(s == 0, *(log_delta_at(v, epsilon) for v in self.vertices))
        return s, epsilon, log_delta, kind, log_tpr, log_beta


def _z_tpr(log_tpr, log_beta):
    """Φ⁻¹(TPR) from the smaller of TPR and FNR."""
    z = ndtri_exp(jnp.minimum(log_tpr, log_beta))
    return jnp.where(log_tpr < log_beta, z, -z)


def _mu(halves: _Halves, log_floor) -> Tangency:
    """Of the largest Φ⁻¹(TPR) − Φ⁻¹(α): at the floor, or inside."""
    found = []
    for side in (0, 1):
        p = halves.points[side]
        z_alpha, z_tpr = ndtri_exp(p.log_alpha), _z_tpr(p.log_tpr, p.log_beta)
        above = (p.log_alpha >= log_floor) & (p.log_beta >= log_floor)
        seen = above | ((p.log_alpha <= log_floor) & (p.log_beta <= log_floor))
        usable = p.used & seen & jnp.isfinite(z_alpha) & jnp.isfinite(z_tpr)
        value = jnp.where(usable, jnp.where(usable, z_tpr, 0.0) - jnp.where(usable, z_alpha, 0.0), -jnp.inf)
        k = argmax(value)
        middle = 0.5 * (p.low + jnp.where(jnp.isfinite(p.high), p.high, p.low))
        shift = _peak(value, usable, k)
        epsilon = jnp.maximum(_at(middle, k, shift), 0.0)
        z = _at(jnp.where(usable, z_tpr, 0.0), k, shift)
        log_delta = log_delta_at(halves.vertices[side], epsilon)
        inner = _one(side, epsilon, log_delta, -_log_density(z), jnp.zeros(()))
        found.append((value[k], inner))

        _, epsilon, log_delta, _, log_tpr, log_beta = halves.tpr(log_floor, side)
        visible = jnp.max(jnp.where(p.used, p.log_alpha, -jnp.inf)) >= log_floor
        z0, z1 = ndtri_exp(log_floor), _z_tpr(log_tpr, log_beta)
        gain = jnp.exp(log_floor + epsilon - _log_density(z1)) - jnp.exp(log_floor - _log_density(z0))
        found.append((jnp.where(visible, z1 - z0, -jnp.inf), _one(side, epsilon, log_delta, -_log_density(z1), gain)))
    return _best(found)


def _best(found) -> Tangency:
    """The tangency of the largest of several values."""
    which = argmax(jnp.stack([value for value, _ in found]))
    return Tangency(*(jnp.stack(column)[which] for column in zip(*(t for _, t in found), strict=True)))


def _approximate_mu(halves: _Halves, log_d) -> Tangency:
    log_rest, rest = log1mexp(log_d), -jnp.expm1(log_d)
    found = []
    for side in (0, 1):
        p = halves.points[side]
        above = p.used & (p.log_tpr > log_d)
        excess = jnp.where(
            above, p.log_tpr + log1mexp(jnp.minimum(log_d - jnp.where(above, p.log_tpr, 0.0), 0.0)), -1.0
        )
        log_tpr, log_beta = jnp.minimum(excess - log_rest, 0.0), jnp.minimum(p.log_beta - log_rest, 0.0)
        z_alpha, z_tpr = ndtri_exp(jnp.minimum(p.log_alpha - log_rest, 0.0)), _z_tpr(log_tpr, log_beta)
        usable = above & jnp.isfinite(z_alpha) & jnp.isfinite(z_tpr)
        z_alpha, z_tpr = jnp.where(usable, z_alpha, 0.0), jnp.where(usable, z_tpr, 0.0)
        value = jnp.where(usable, z_tpr - z_alpha, -jnp.inf)
        k = argmax(value)
        middle = 0.5 * (p.low + jnp.where(jnp.isfinite(p.high), p.high, p.low))
        shift = _peak(value, usable, k)
        epsilon = jnp.maximum(_at(middle, k, shift), 0.0)
        z1, z0 = _at(z_tpr, k, shift), _at(z_alpha, k, shift)
        # ∂/∂d of (TPR − d)/(1 − d) and of α/(1 − d), α and TPR held fixed; the query is log d
        slope = jnp.exp(log_d + p.log_alpha[k] - 2.0 * log_rest - _log_density(z0))
        slope = -jnp.exp(log_d + p.log_beta[k] - 2.0 * log_rest - _log_density(z1)) - slope
        log_delta = log_delta_at(halves.vertices[side], epsilon)
        found.append((value[k], _one(side, epsilon, log_delta, -_log_density(z1) - jnp.log(rest), slope)))
    return _best(found)


def _regret(halves: _Halves, log_floor, mu) -> Tangency:
    """Of max over ε of (δ_μ(ε) − δ(ε))/(1 + e^ε): μ's own tangency, and the ε of the maximum."""
    found = []
    for side in (0, 1):
        others = (halves.vertices[1 - side],) if halves.symmetric else ()
        lines = _lines(halves.points[side], others)
        growth = 1.0 + jnp.exp(jnp.minimum(lines.epsilon, 600.0))
        gap = (gaussian_delta(jnp.minimum(lines.epsilon, 600.0), mu) - jnp.exp(lines.log_delta)) / growth
        gap = jnp.where(lines.usable, gap, -jnp.inf)
        k = argmax(gap)
        epsilon = lines.epsilon[k] + _peak(gap, lines.usable, k) * lines.step[k]
        found.append((gap[k], jnp.maximum(epsilon, 0.0), jnp.asarray(side)))
    which = argmax(jnp.stack([f[0] for f in found]))
    epsilon, side = (jnp.stack([f[i] for f in found])[which] for i in (1, 2))
    if halves.symmetric:
        side = halves.larger(epsilon)[0]
    growth = 1.0 + jnp.exp(jnp.minimum(epsilon, 600.0))
    by_mu = jnp.exp(_log_density(epsilon / mu - 0.5 * mu)) / growth
    log_delta = jnp.where(side == 0, *(log_delta_at(v, epsilon) for v in halves.vertices))
    here, of_mu = _one(side, epsilon, log_delta, -jnp.log(growth), jnp.zeros(()), -1.0), _mu(halves, log_floor)
    joined = jnp.concatenate([here.weight, by_mu * of_mu.weight], axis=1)
    return Tangency(jnp.concatenate([here.epsilon, of_mu.epsilon]), joined, by_mu * of_mu.slope)


def _epsilon(halves: _Halves, log_d, epsilon) -> Tangency:
    """Of the inverse of δ: ∂ε = ∂δ/(e^ε·α) at fixed δ, with α the FPR of the threshold ε."""
    known = jnp.isfinite(epsilon) & (epsilon > 0.0)
    epsilon = jnp.where(known, epsilon, 0.0)
    side, log_delta = halves.larger(epsilon)
    log_alpha = halves.log_fpr(side, epsilon)
    log_weight = jnp.where(known, -epsilon - log_alpha, -jnp.inf)
    return _one(side, epsilon, log_delta, log_weight, jnp.where(known, -jnp.exp(log_d - epsilon - log_alpha), 0.0))


def tangency(name: str, curve: Curve, query, value, *, symmetric: bool) -> Tangency:
    """The tangency of one number (unbatched); ``query`` as in ``summaries.quantities``.

    ``value`` is the number itself, for "regret" the μ that is reported.
    """
    halves = _Halves(curve, symmetric)
    if name == "mu":
        return _mu(halves, query)
    if name == "approximate_mu":
        return _approximate_mu(halves, query)
    if name == "regret":
        return _regret(halves, query, value)
    if name == "epsilon":
        return _epsilon(halves, query, value)
    if name == "advantage":
        zero = jnp.zeros(())
        side, log_delta = halves.larger(zero)
        return _one(side, zero, log_delta, zero, zero)
    if name == "delta":
        side, log_delta = halves.larger(query)
        return _one(side, query, log_delta, jnp.zeros(()), -jnp.exp(query + halves.log_fpr(side, query)))
    if name == "bayes_risk":
        # π·α + (1 − π)·β is (1 − π)·(1 − δ(ε)) at e^ε = π/(1 − π), and the mirror image below one half
        rare = jnp.minimum(query, 1.0 - query)
        epsilon = jnp.abs(jnp.log(query) - jnp.log1p(-query))
        below = query < 0.5
        side, log_delta = halves.larger(epsilon)
        if not halves.symmetric:
            side = below.astype(int)
            log_delta = jnp.where(below, log_delta_at(halves.vertices[1], epsilon), log_delta)
        alpha = jnp.exp(halves.log_fpr(side, epsilon))
        slope = alpha * (1.0 + jnp.exp(epsilon)) - 1.0 + jnp.exp(log_delta)  # α − β
        return _one(side, epsilon, log_delta, jnp.log(rare), jnp.where(below, -slope, slope), -1.0)
    side, epsilon, log_delta, mirrored, log_tpr, log_beta = halves.tpr(query)
    log_weight = jnp.where(mirrored, -epsilon, 0.0)
    steep = jnp.exp(query + jnp.where(mirrored, -epsilon, epsilon))
    if name == "tpr":
        return _one(side, epsilon, log_delta, log_weight, steep)
    if name == "beta":
        return _one(side, epsilon, log_delta, log_weight, -steep, -1.0)
    if name == "log_tpr":
        return _one(side, epsilon, log_delta, log_weight - log_tpr, steep / jnp.exp(log_tpr))
    if name == "log_beta":
        return _one(side, epsilon, log_delta, log_weight - log_beta, -steep / jnp.exp(log_beta), -1.0)
    raise ValueError(f"unknown quantity {name!r}")
