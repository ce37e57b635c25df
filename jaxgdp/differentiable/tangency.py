"""Where each number touches the curve: every derivative is a weight times that of δ(ε) at a few ε.

TPR(α) = min over ε of δ(ε) + e^ε·α, so by the envelope theorem ∂TPR(α) = ∂δ(ε*) at the slope e^{ε*}
of the curve there; every other number is a function of TPRs, a maximum over them, or an inverse of
δ. What is needed besides is ε* itself, which is interpolated between vertices, because an ε* that
is off makes a derivative wrong to first order."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..accounting.certify.curve import Points, log_delta_at, points, safe_log1m
from ..accounting.certify.half_curve import ACROSS
from ..numerics import namespace as xp
from ..numerics.normal import LOG_SQRT_2PI, argmax, gaussian_delta, log1mexp, ndtri_exp, safe_log

# part of ε to both sides over which means are taken, where atoms move past it: what a small change
# of a parameter would see
_AROUND = 0.005
_TIE = 1e-11  # relative difference of what rounding alone sets apart


class Tangency(NamedTuple):
    """A number's derivative is Σ sign·e^{log_weight}·∂δ_side(ε) over its points, and ``slope``
    times that of what it is asked at.

    Attributes:
        epsilon: points ε ≥ 0, shape (points,).
        spread: how far around each of them a mean is taken, shape (points,).
        sign: of the weight at each, shape (points,).
        log_weight: log of its size for both half-curves (plus, minus), −∞ where there is none,
            shape (2, points).
        slope: derivative with respect to the query, of the quantity itself.
    """

    epsilon: Any
    spread: Any
    sign: Any
    log_weight: Any
    slope: Any


class _Lines(NamedTuple):
    """Supporting lines of a half-curve at its thresholds."""

    epsilon: Any
    log_delta: Any
    step: Any
    usable: Any


def _peak(y, usable, k):
    """Where y, at k the largest or smallest of its neighbours, has its extremum, as a shift from k
    (0 where one of them is unusable), and how much of the bend there is in the single point k.

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
    return xp.clip(shift, -1.0, 1.0), xp.where(inside, single, 1.0)


def _at(values, k, shift):
    """Values between k and its neighbours, linearly."""
    last = values.shape[0] - 1
    there = values[xp.clip(k + xp.sign(shift).astype(int), 0, last)]
    return values[k] + xp.abs(shift) * xp.where(shift == 0.0, 0.0, there - values[k])


def _lines(p: Points, others) -> _Lines:
    epsilon = xp.maximum(p.low, 0.0)
    reachable = xp.maximum(p.log_tpr, -1e300)
    log_delta = p.log_tpr + safe_log1m(xp.minimum(epsilon + p.log_alpha - reachable, 0.0))
    for other in others:
        log_delta = xp.maximum(log_delta, log_delta_at(other, epsilon))
    return _Lines(
        epsilon, log_delta, p.high - p.low, p.used & (p.low >= -1e-12) & (log_delta > -xp.inf)
    )


def _pick(candidates, which):
    """One of several values; ``which`` may be traced where they are constants."""
    return xp.take(xp.stack(candidates), which)


def _log_density(z):
    return -0.5 * z * z - LOG_SQRT_2PI


def _one(side, epsilon, log_weight, slope, sign: Any = 1.0, single: Any = 0.0) -> Tangency:
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


class _Halves:
    """Both half-curves of the dominating pair of one setting, and questions about where they
    are.
    """

    def __init__(self, vertices, symmetric: bool):
        self.symmetric = symmetric
        self.vertices = vertices
        self.points = tuple(points(v) for v in self.vertices)

    def log_fpr(self, side, epsilon):
        """log FPR of the threshold ε. A vertex has the slopes of the cell above it: its FPR is that
        of the cell's middle.
        """

        def along(p: Points):
            middle = xp.where(p.used & xp.isfinite(p.high), 0.5 * (p.low + p.high), xp.inf)
            order = xp.argsort(middle)
            row = xp.maximum(p.log_alpha, -1e300)[order]
            return xp.mean(xp.interp(epsilon * (1.0 + _AROUND * ACROSS), middle[order], row))

        return xp.where(side == 0, *(along(p) for p in self.points))

    def larger(self, epsilon):
        """(side, log δ) of the larger direction at ε; the plus side alone where one direction is
        meant.
        """
        plus, minus = (log_delta_at(v, epsilon) for v in self.vertices)
        if not self.symmetric:
            return xp.zeros((), int), plus
        return (minus > plus).astype(int), xp.maximum(plus, minus)

    def tpr(self, log_fpr, side=None):
        """The line through the curve at one FPR: (side, ε*, mirrored, log TPR, log β, single).

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
                lines = _lines(self.points[s], others)
                if kind:
                    rest = xp.log1p(-xp.minimum(xp.exp(lines.log_delta), 1.0 - 1e-16))
                    value = -(rest + safe_log1m(xp.minimum(log_fpr - rest, 0.0)) - lines.epsilon)
                else:
                    value = xp.logaddexp(lines.log_delta, lines.epsilon + log_fpr)
                value = xp.where(lines.usable, value, xp.inf)
                k = argmax(-value)
                shift, single = _peak(value, lines.usable, k)
                epsilon = xp.maximum(lines.epsilon[k] + shift * lines.step[k], 0.0)
                log_tpr = log1mexp(-value[k]) if kind else xp.minimum(value[k], 0.0)
                log_beta = -value[k] if kind else log1mexp(log_tpr)
                found.append((xp.asarray(s), epsilon, xp.asarray(kind), log_tpr, log_beta, single))
        which = argmax(-xp.stack([f[3] for f in found]))
        s, epsilon, kind, log_tpr, log_beta, single = (
            _pick(column, which) for column in zip(*found, strict=True)
        )
        if side is None and self.symmetric:
            s = self.larger(epsilon)[0]
        return s, epsilon, kind, log_tpr, log_beta, single


def _z_tpr(log_tpr, log_beta):
    """Φ⁻¹(TPR) from the smaller of TPR and FNR."""
    z = ndtri_exp(xp.minimum(log_tpr, log_beta))
    return xp.where(log_tpr < log_beta, z, -z)


def _slope(z_alpha, z_tpr, p: Points, value, usable, k):
    """log of the slope φ(z_TPR)/φ(z_α) of the Gaussian curve through a point, which touches the
    mechanism's curve there.

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


def _mu(halves: _Halves, log_floor) -> Tangency:
    """Of the largest Φ⁻¹(TPR) − Φ⁻¹(α): at the floor, or inside."""
    found = []
    for side in (0, 1):
        p = halves.points[side]
        z_alpha, z_tpr = ndtri_exp(p.log_alpha), _z_tpr(p.log_tpr, p.log_beta)
        above = (p.log_alpha >= log_floor) & (p.log_beta >= log_floor)
        seen = above | ((p.log_alpha <= log_floor) & (p.log_beta <= log_floor))
        usable = p.used & seen & xp.isfinite(z_alpha) & xp.isfinite(z_tpr)
        value = xp.where(
            usable, xp.where(usable, z_tpr, 0.0) - xp.where(usable, z_alpha, 0.0), -xp.inf
        )
        k = argmax(value)
        shift, single = _peak(value, usable, k)
        z0, z1 = (_at(xp.where(usable, z, 0.0), k, shift) for z in (z_alpha, z_tpr))
        epsilon = _slope(z0, z1, p, value, usable, k)
        inner = _one(side, epsilon, -_log_density(z1), xp.zeros(()), single=single)
        found.append((value[k], inner))

        _, epsilon, _, log_tpr, log_beta, single = halves.tpr(log_floor, side)
        visible = xp.max(xp.where(p.used, p.log_alpha, -xp.inf)) >= log_floor
        visible = visible & (xp.min(xp.where(p.used, p.log_alpha, 0.0)) <= log_floor)
        z0, z1 = ndtri_exp(log_floor), _z_tpr(log_tpr, log_beta)
        gain = xp.exp(log_floor + epsilon - _log_density(z1)) - xp.exp(log_floor - _log_density(z0))
        found.append(
            (
                xp.where(visible, z1 - z0, -xp.inf),
                _one(side, epsilon, -_log_density(z1), gain, single=single),
            )
        )
    return _best(found)


def _best(found) -> Tangency:
    """The tangency of the largest of several values."""
    which = argmax(xp.stack([value for value, _ in found]))
    return Tangency(*(_pick(column, which) for column in zip(*(t for _, t in found), strict=True)))


def _approximate_mu(halves: _Halves, log_d) -> Tangency:
    log_rest, rest = log1mexp(log_d), -xp.expm1(log_d)
    found = []
    for side in (0, 1):
        p = halves.points[side]
        above = p.used & (p.log_tpr > log_d)
        excess = xp.where(
            above,
            p.log_tpr + log1mexp(xp.minimum(log_d - xp.where(above, p.log_tpr, 0.0), 0.0)),
            -1.0,
        )
        log_tpr, log_beta = (
            xp.minimum(excess - log_rest, 0.0),
            xp.minimum(p.log_beta - log_rest, 0.0),
        )
        z_alpha, z_tpr = (
            ndtri_exp(xp.minimum(p.log_alpha - log_rest, 0.0)),
            _z_tpr(log_tpr, log_beta),
        )
        usable = above & xp.isfinite(z_alpha) & xp.isfinite(z_tpr)
        z_alpha, z_tpr = xp.where(usable, z_alpha, 0.0), xp.where(usable, z_tpr, 0.0)
        value = xp.where(usable, z_tpr - z_alpha, -xp.inf)
        k = argmax(value)
        shift, single = _peak(value, usable, k)
        z1, z0 = _at(z_tpr, k, shift), _at(z_alpha, k, shift)
        epsilon = _slope(z0, z1, p, value, usable, k)
        # ∂/∂d of (TPR − d)/(1 − d) and of α/(1 − d), α and TPR held fixed; the query is log d
        slope = xp.exp(log_d + p.log_alpha[k] - 2.0 * log_rest - _log_density(z0))
        slope = -xp.exp(log_d + p.log_beta[k] - 2.0 * log_rest - _log_density(z1)) - slope
        found.append(
            (value[k], _one(side, epsilon, -_log_density(z1) - xp.log(rest), slope, single=single))
        )
    return _best(found)


def _regret(halves: _Halves, log_floor, mu) -> Tangency:
    """Of max over ε of (δ_μ(ε) − δ(ε))/(1 + e^ε): μ's own tangency, and the ε of the maximum."""
    found = []
    for side in (0, 1):
        others = (halves.vertices[1 - side],) if halves.symmetric else ()
        lines = _lines(halves.points[side], others)
        growth = 1.0 + xp.exp(xp.minimum(lines.epsilon, 600.0))
        gap = (
            gaussian_delta(xp.minimum(lines.epsilon, 600.0), mu) - xp.exp(lines.log_delta)
        ) / growth
        gap = xp.where(lines.usable, gap, -xp.inf)
        k = argmax(gap)
        shift, single = _peak(gap, lines.usable, k)
        epsilon = lines.epsilon[k] + shift * lines.step[k]
        found.append((gap[k], xp.maximum(epsilon, 0.0), xp.asarray(side), single))
    which = argmax(xp.stack([f[0] for f in found]))
    epsilon, side, single = (_pick([f[i] for f in found], which) for i in (1, 2, 3))
    if halves.symmetric:
        side = halves.larger(epsilon)[0]
    growth = 1.0 + xp.exp(xp.minimum(epsilon, 600.0))
    by_mu = xp.exp(_log_density(epsilon / mu - 0.5 * mu)) / growth
    here, of_mu = (
        _one(side, epsilon, -xp.log(growth), xp.zeros(()), -1.0, single),
        _mu(halves, log_floor),
    )
    of_mu = of_mu._replace(log_weight=of_mu.log_weight + safe_log(by_mu))
    points = (
        xp.concatenate([getattr(t, name) for t in (here, of_mu)])
        for name in ("epsilon", "spread", "sign")
    )
    return Tangency(
        *points, xp.concatenate([here.log_weight, of_mu.log_weight], axis=1), by_mu * of_mu.slope
    )


def _epsilon(halves: _Halves, log_d, epsilon) -> Tangency:
    """Of the inverse of δ: ∂ε = ∂δ/(e^ε·α) at fixed δ, with α the FPR of the threshold ε."""
    known = xp.isfinite(epsilon) & (epsilon > 0.0)
    epsilon = xp.where(known, epsilon, 0.0)
    side, _ = halves.larger(epsilon)
    log_alpha = halves.log_fpr(side, epsilon)
    log_weight = xp.where(known, -epsilon - log_alpha, -xp.inf)
    return _one(
        side, epsilon, log_weight, xp.where(known, -xp.exp(log_d - epsilon - log_alpha), 0.0)
    )


def tangency(name: str, vertices, query, value, *, symmetric: bool) -> Tangency:
    """The tangency of one number (unbatched).

    Args:
        name: of the quantity.
        vertices: of both half-curves of the dominating pair, without allowance for errors.
        query: what it is asked at, as ``quantities`` has it.
        value: the number itself, for "regret" the μ that is reported.
        symmetric: whether the curve covers both orders of the pair.

    Raises:
        NotImplementedError: nobody has said where this quantity touches the curve; names it.
    """
    halves = _Halves(vertices, symmetric)
    if name == "mu":
        return _mu(halves, query)
    if name == "approximate_mu":
        return _approximate_mu(halves, query)
    if name == "regret":
        return _regret(halves, query, value)
    if name == "epsilon":
        return _epsilon(halves, query, value)
    if name == "advantage":
        zero = xp.zeros(())
        side, _ = halves.larger(zero)
        return _one(side, zero, zero, zero)
    if name == "delta":
        side, _ = halves.larger(query)
        return _one(side, query, xp.zeros(()), -xp.exp(query + halves.log_fpr(side, query)))
    if name == "bayes_risk":
        # π·α + (1 − π)·β is (1 − π)·(1 − δ(ε)) at e^ε = π/(1 − π), and the mirror image below one
        # half
        rare = xp.minimum(query, 1.0 - query)
        epsilon = xp.abs(xp.log(query) - xp.log1p(-query))
        below = query < 0.5
        side, log_delta = halves.larger(epsilon)
        if not halves.symmetric:
            side = below.astype(int)
            log_delta = xp.where(below, log_delta_at(halves.vertices[1], epsilon), log_delta)
        alpha = xp.exp(halves.log_fpr(side, epsilon))
        slope = alpha * (1.0 + xp.exp(epsilon)) - 1.0 + xp.exp(log_delta)  # α − β
        return _one(side, epsilon, xp.log(rare), xp.where(below, -slope, slope), -1.0)
    side, epsilon, mirrored, log_tpr, log_beta, single = halves.tpr(query)
    log_weight = xp.where(mirrored, -epsilon, 0.0)
    steep = xp.exp(query + xp.where(mirrored, -epsilon, epsilon))
    if name == "tpr":
        return _one(side, epsilon, log_weight, steep, single=single)
    if name == "beta":
        return _one(side, epsilon, log_weight, -steep, -1.0, single=single)
    if name == "log_tpr":
        return _one(side, epsilon, log_weight - log_tpr, steep / xp.exp(log_tpr), single=single)
    if name == "log_beta":
        return _one(
            side, epsilon, log_weight - log_beta, -steep / xp.exp(log_beta), -1.0, single=single
        )
    raise NotImplementedError(
        f"jaxgdp.differentiable does not know where {name!r} touches the curve"
    )
