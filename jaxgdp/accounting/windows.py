"""Where to look: tilts and lattice windows from Chernoff bounds on the composed privacy loss.

Nothing here is part of a certificate. A poor tilt or a tight window makes a bracket wide, never wrong: the mass
that a window misses is bounded again from the lattice masses themselves (``convolution``).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..mechanisms.base import Mechanism
from ..numerics import namespace as xp

_MARGIN = 0.05  # how far past the asked depth, in standard deviations, the pieces reach


class Loss(NamedTuple):
    """Quadrature of each component's privacy loss, ready for cumulants.

    Attributes:
        loss, log_weight: nodes, shape (components, nodes).
        precision: 1/σ² of components that are exactly Gaussian, else 0, shape (components,).
        count: number of uses, shape (components,).
        bottom, top: ends of each component's loss under P, ∓∞ where there are none, shape (components,).
        atomic: 1 for components whose law never gets smooth, else 0, shape (components,).
        bounded: whether any class of mechanisms has such ends (static).
        reverse: whether the pair is swapped (Q against P); static where it matters for shapes of code, never traced.
    """

    loss: Any
    log_weight: Any
    precision: Any
    count: Any
    bottom: Any
    top: Any
    atomic: Any
    bounded: bool
    reverse: Any

    def support(self):
        """Smallest and largest composed loss, in the direction of the pair."""
        low, high = self.count @ self.bottom, self.count @ xp.minimum(self.top, xp.max(self.loss, axis=-1))
        return xp.where(self.reverse, -high, low), xp.where(self.reverse, -low, high)


def cumulants(loss: Loss, s):
    """K, K', K'' of each component's loss at s, K(s) = log E_P e^{s·ℓ}; shapes (components,).

    ``s`` is one tilt for all, or one for each component. The swapped pair has K(1 − s).
    """
    s = xp.where(loss.reverse, 1.0 - s, s)
    s = xp.asarray(s)
    exponent = loss.log_weight + s[..., None] * loss.loss
    top = xp.max(exponent, axis=-1, keepdims=True)
    weight = xp.exp(exponent - top)
    total = xp.sum(weight, axis=-1)
    mean = xp.sum(weight * loss.loss, axis=-1) / total
    square = xp.sum(weight * (loss.loss - mean[:, None]) ** 2, axis=-1) / total
    value = top[:, 0] + xp.log(total)
    exact = loss.precision > 0.0
    value = xp.where(exact, 0.5 * s * (s - 1.0) * loss.precision, value)
    mean = xp.where(exact, (s - 0.5) * loss.precision, mean)
    square = xp.where(exact, loss.precision, square)
    return value, xp.where(loss.reverse, -mean, mean), xp.maximum(square, 1e-300)


def composed(loss: Loss, s):
    """Λ, Λ', Λ'' of the composed loss at s."""
    return tuple(xp.sum(loss.count * k) for k in cumulants(loss, s))


def _smooth(loss: Loss, s, target):
    """Medians of the tilted steps, and the frequency ω above which |φ|^T falls below about e^{−target}.

    T·log|φ(ω)| is near −T·E min(0.4·(ω·distance to the median)², 1), whatever the shape of the steps; ω is huge where T is too
    small to get there.
    """
    sign = xp.where(loss.reverse, 1.0 - s, s)
    exponent = loss.log_weight + sign * loss.loss
    weight = xp.exp(exponent - xp.max(exponent, axis=-1, keepdims=True))
    weight = weight / xp.sum(weight, axis=-1, keepdims=True)
    at = xp.argmax(xp.cumsum(weight, axis=-1) >= 0.5, axis=-1)
    median = xp.take_along_axis(loss.loss, at[:, None], -1)
    exact = loss.precision > 0.0
    median = xp.where(exact[:, None], (sign - 0.5) * loss.precision[:, None], median)
    square = (loss.loss - median) ** 2
    total = xp.sqrt(composed(loss, s)[2])

    def halve(_, bounds):
        low, high = bounds
        middle = 0.5 * (low + high)
        speed = 0.4 * xp.exp(2.0 * middle)
        decay = xp.sum(weight * xp.minimum(speed * square, 1.0), axis=-1)
        decay = xp.where(exact, xp.minimum(speed * loss.precision, 1.0), decay)
        enough = (loss.count * (1.0 - loss.atomic)) @ decay >= target
        return xp.where(enough, low, middle), xp.where(enough, middle, high)

    ends = (-xp.log(total), 35.0 - xp.log(total))
    high = xp.fori_loop(0, 12, halve, ends)[1]
    median = median[:, 0]
    return xp.where(loss.reverse, -median, median), xp.exp(high)


def _depths(loss: Loss, s):
    """Saddle-point depths of α and of 1 − β at tilt s, in standard deviations, and Λ''.

    α ≈ Φ(−r_X) and TPR ≈ Φ(−r_Y), with r_X² = 2(sΛ' − Λ) and r_Y² = 2((s − 1)Λ' − Λ), the sign of s − 1.
    """
    value, mean, square = composed(loss, s)
    r_x = xp.sqrt(xp.maximum(2.0 * (s * mean - value), 1e-30))
    r_y = xp.sign(s - 1.0) * xp.sqrt(xp.maximum(2.0 * ((s - 1.0) * mean - value), 0.0))
    return r_x, r_y, mean, square


def _solve(loss: Loss, low, target, of_y):
    """The tilt above ``low`` at which r_X (or r_Y, where ``of_y``) equals ``target``.

    Newton steps in log s alternate with halvings of a bracket: with heavy tails depth jumps at some s, and beyond it Newton
    alone would creep.
    """

    def step(i, state):
        s, below, above = state
        r_x, r_y, _, square = _depths(loss, s)
        near = xp.abs(r_y) < 1e-6
        slope_y = xp.where(near, xp.sqrt(square), (s - 1.0) * square / xp.where(near, 1.0, r_y))
        error = xp.where(of_y, r_y, r_x) - target
        slope = xp.where(of_y, slope_y, s * square / r_x)
        below, above = xp.where(error < 0.0, s, below), xp.where(error < 0.0, above, s)
        newton = s * xp.exp(xp.clip(-error / xp.maximum(s * slope, 1e-300), -30.0, 30.0))
        trusted = (newton > below) & (newton < above) & (i % 2 == 0)
        return xp.where(trusted, newton, xp.sqrt(below * above)), below, above

    scale = xp.sqrt(composed(loss, low)[2])
    start = xp.where(of_y, 1.0 + xp.abs(target) / scale, target / scale)
    low = xp.maximum(low, 1e-3)
    start = xp.maximum(start, low * (1.0 + 1e-6))
    return xp.fori_loop(0, 20, step, (start, low, 64.0 * start))[0]


def _ceiling(loss: Loss, tilt0):
    """The tilt at which the mean is next to the largest composed loss: a stronger one would see nothing else.

    ∞ where losses are unbounded. Next to: by a fiftieth of the standard deviation at ``tilt0``.
    """
    top = loss.support()[1]
    near = 0.02 * xp.sqrt(composed(loss, tilt0)[2])
    end = xp.log(1e4 / near)

    def halve(_, bounds):
        low, high = bounds
        middle = 0.5 * (low + high)
        below = top - composed(loss, xp.exp(middle))[1] > near
        return xp.where(below, middle, low), xp.where(below, high, middle)

    found = xp.exp(xp.fori_loop(0, 30, halve, (xp.log(tilt0), xp.maximum(end, 1.0)))[1])
    return xp.where(xp.isfinite(top), found, xp.inf)


def _ends(loss: Loss, z_floor, z_delta):
    """Tilts and depths at ℓ = 0 and at the far end; there also the threshold, and the standard deviation at ℓ = 0."""
    tilt0 = xp.asarray(0.5)
    for _ in range(4):
        _, mean, square = composed(loss, tilt0)
        tilt0 = xp.clip(tilt0 - mean / square, 0.05, 0.95)
    value0, _, square0 = composed(loss, tilt0)
    r_0 = xp.sqrt(xp.maximum(-2.0 * value0, 1e-30))
    hidden = r_0 >= z_floor
    target = xp.where(hidden, -z_floor + _MARGIN, z_floor + _MARGIN)
    tilt_end = _solve(loss, tilt0, target, hidden)
    if z_delta is not None:
        tilt_end = xp.maximum(tilt_end, _solve(loss, tilt0, z_delta + _MARGIN, xp.asarray(True)))
    if loss.bounded:
        tilt_end = xp.minimum(tilt_end, _ceiling(loss, tilt0))
    depth, _, threshold, _ = _depths(loss, tilt_end)
    return tilt0, r_0, tilt_end, xp.maximum(depth, r_0 + 1e-3), threshold, xp.sqrt(square0)


def _gentle(loss: Loss, faintest, low, high, depth, threshold):
    """The smallest tilt in [low, high] under which the density at a piece's far end is still e^{−faintest}, or as high as goes.

    A stronger tilt would serve that end better, but where single large steps take over from many small ones it
    fills the window with them.
    """

    def halve(_, bounds):
        below, above = bounds
        middle = xp.sqrt(below * above)
        value, mean, square = composed(loss, middle)
        enough = (0.5 * depth**2 - middle * threshold + value <= faintest) | (mean >= threshold) | (square > widest)
        return xp.where(enough, below, middle), xp.where(enough, middle, above)

    widest = 1.5 * composed(loss, low)[2]
    low, high = xp.fori_loop(0, 10, halve, (low, high))
    return xp.where(composed(loss, high)[2] > widest, low, high)


def _least(bound, gaussian):
    """Smallest value of a Chernoff bound over offsets a > 0, and where: a coarse search, then a finer one.

    ``gaussian`` is the best offset for a normal loss; with heavy tails the best one is far below it.
    """
    top = xp.log(2.0 * gaussian)
    bottom = xp.minimum(xp.log(0.05), top - 4.0)

    def search(low, high, number):
        share = xp.arange(number).reshape((number,) + (1,) * xp.ndim(gaussian)) / (number - 1)
        offsets = xp.exp(low + share * (high - low))
        values = xp.vmap(bound)(offsets)
        k = xp.argmin(values, axis=0, keepdims=True)
        best = xp.take_along_axis(values, k, 0)[0]
        return best, xp.take_along_axis(offsets, k, 0)[0], (high - low) / (number - 1)

    first, at, gap = search(bottom, top, 14)
    second, fine, _ = search(xp.log(at) - gap, xp.log(at) + gap, 8)
    return xp.minimum(first, second), xp.where(second < first, fine, at)


class Plan(NamedTuple):
    """Tilt and windows of one piece of a half-curve.

    Attributes:
        tilt: s, the exponential tilt under which the piece is composed.
        low, high: window of the composed loss.
        miss_low, miss_high: tilt offsets a > 0 whose Chernoff bounds certify the mass outside the window.
        scale: log of the single-step normalisation at that tilt, shape (components,).
        centre: single-step tilted mean of each component, shape (components,).
        reach_low, reach_high: how far below and above its centre each component's single-step window extends.
        end: single-step loss beyond which the tail is not resolved, shape (components,).
        cut_low, cut_high: thresholds between which the piece's vertices are used.
        spread: standard deviation of the tilted composed loss.
        middle: single-step tilted median of each component, shape (components,).
        smooth: a length (in nats) over which the composed law is smooth; steps of this size hardly blur it.
        bandwidth: frequency (per nat) above which nothing is left of the composed law.
        length: standard deviations of depth the piece covers; far above 12 its ends lose accuracy.
        unit: length of which every composed atom is a whole multiple, 0 where there is none.
    """

    tilt: Any
    low: Any
    high: Any
    miss_low: Any
    miss_high: Any
    scale: Any
    centre: Any
    reach_low: Any
    reach_high: Any
    end: Any
    cut_low: Any
    cut_high: Any
    spread: Any
    middle: Any
    smooth: Any
    bandwidth: Any
    length: Any
    unit: Any

    @classmethod
    def blank(cls, shape: tuple[int, ...], components: int) -> Plan:
        """A plan of the right shapes that plans nothing: what takes it compiles, and its results mean nothing."""
        each = ("scale", "centre", "reach_low", "reach_high", "end", "middle")
        return cls(**{name: np.ones(shape + (components,) * (name in each)) for name in cls._fields})


def _loss(groups, depth, reverse) -> Loss:
    """Quadrature of every component's loss; ``depth`` per component (see ``loss_nodes``)."""
    nodes, weights, precision, counts, ends, atomic, at = [], [], [], [], [], [], 0
    for mechanism, count in groups:
        here = slice(at, at + count.shape[0])
        at += count.shape[0]
        loss, weight = xp.vmap(lambda m, d: m.loss_nodes(d))(mechanism, depth[here])
        nodes.append(loss)
        weights.append(weight)
        precision.append(xp.vmap(lambda m: m.gaussian_precision())(mechanism))
        counts.append(count)
        ends.append(xp.vmap(lambda m: xp.stack(m.loss_bounds()))(mechanism))
        atomic.append(xp.full(count.shape, float(mechanism.atomic)))
    join = xp.concatenate
    most = max(loss.shape[-1] for loss in nodes)
    # fewer nodes: repeat the last one without weight
    short = [((0, 0), (0, most - loss.shape[-1])) for loss in nodes]
    nodes = [xp.pad(loss, wide, mode="edge") for loss, wide in zip(nodes, short, strict=True)]
    weights = [xp.pad(w, wide, constant_values=-xp.inf) for w, wide in zip(weights, short, strict=True)]
    bottom, top = xp.moveaxis(join(ends), -1, 0)
    bounded = any(m.bounded() for m, _ in groups)
    return Loss(
        join(nodes),
        join(weights),
        join(precision),
        join(counts),
        bottom,
        top,
        join(atomic),
        bounded,
        xp.asarray(reverse),
    )


def _common_unit(groups):
    """Greatest common divisor of the units of all atoms (unbatched), by Euclid with room for rounding; 0 where there are none."""
    units = [xp.vmap(lambda m: m.loss_unit())(m) for m, _ in groups if type(m).loss_unit is not Mechanism.loss_unit]
    if not units:
        return xp.zeros(())
    units = xp.concatenate(units)
    largest = xp.max(units)

    def divide(_, pair):
        a, b = pair
        rest = a - b * xp.round(a / xp.where(b > 0.0, b, 1.0))
        rest = xp.where(xp.abs(rest) > 1e-12 * largest, xp.abs(rest), 0.0)
        return xp.where(b > 0.0, b, a), xp.where(b > 0.0, rest, 0.0)

    def include(k, common):
        pair = xp.maximum(common, units[k]), xp.minimum(common, units[k])
        return xp.fori_loop(0, 24, divide, pair)[0]

    common = xp.fori_loop(0, units.shape[0], include, xp.zeros(()))
    return xp.where(common > 1e-6 * largest, common, 0.0)


def plan_piece(groups, count, z_floor, z_delta, rtol, faintest, seen, reverse, piece, pieces) -> Plan:
    """One of the tilted windows that cover thresholds ℓ ≥ 0 down to FPR Φ(−z_floor) and TPR Φ(−z_delta) (unbatched).

    Where both error rates at ℓ = 0 are already below the floor (almost no privacy), the mirrored end is covered
    instead: out to FNR Φ(−z_floor). ``z_delta`` None asks for nothing beyond the floor. Windows miss a tilted mass small
    enough for a relative accuracy ``rtol`` of μ at the ends of a piece.

    Args:
        groups: tuple of (stacked mechanism, counts), merged.
        count: all counts in a row.
        faintest: −log of the smallest density, under its tilt, at which a piece is used (for a composed loss of order one).
        seen: (threshold, log FPR there) at which the curve was seen to be deep enough, or (inf, 0); for one piece. Where
            single large steps take over, the Chernoff bounds used here look much too far.
    """
    # how deep one step's tail matters: below the smallest rate asked for, and below both rates in the curve's middle
    shallow = _loss(groups, xp.full(count.shape, 30.0), reverse)
    value, _, square = composed(shallow, xp.asarray(0.5))
    asked = 0.5 * (z_floor if z_delta is None else xp.maximum(z_floor, z_delta)) ** 2 + 3.0
    deepest = xp.maximum(asked, -1.1 * value)
    fine = 10.0 - xp.log(rtol) - 0.5 * xp.log(xp.minimum(square, 1.0))
    loss = _loss(groups, deepest + fine + xp.log(count), reverse)
    # μ is a difference of quantiles: a small one needs that much more accurate rates
    faintest = xp.maximum(faintest + 0.5 * xp.log(xp.minimum(square, 1.0)), 4.0)

    def shorten(_, longest):
        cut = loss._replace(loss=xp.minimum(loss.loss, longest))
        tilt0, _, _, _, threshold, spread = _ends(cut, z_floor, z_delta)
        room = 12.0 * spread + xp.maximum(-composed(cut, xp.zeros(()))[1], 0.0)
        return xp.minimum(longest, xp.where(xp.isfinite(seen[0]), seen[0], threshold) + room)

    # a step that alone carries the sum past every threshold asked for may as well stop there: its P-mass stays at that point and
    # its other Q-mass goes to the atom at infinity. Exponential tilting needs this where such steps are the likeliest way
    # there: it would fill the window with steps beyond.
    longest = xp.fori_loop(0, 2, shorten, xp.asarray(xp.inf))
    loss = loss._replace(loss=xp.minimum(loss.loss, longest))
    tilt0, r_0, tilt_end, r_end, _, _ = _ends(loss, z_floor, z_delta)

    depth = r_0 + (r_end - r_0) * (piece + xp.arange(2.0)) / pieces
    solved = xp.vmap(lambda d: _solve(loss, tilt0, d, xp.asarray(False)))(depth)
    is_first, is_last = piece == 0, piece == pieces - 1
    boundary = xp.where(xp.stack([is_first, is_last]), xp.stack([tilt0, tilt_end]), solved)
    _, edge_y, edge_t, _ = xp.vmap(lambda s: _depths(loss, s))(boundary)
    threshold, log_alpha = seen
    bottom, top = loss.support()
    saturated = is_last & (tilt_end >= _ceiling(loss, tilt0)) if loss.bounded else xp.asarray(False)
    known = (pieces == 1) & xp.isfinite(threshold) & (threshold < top)
    edge_t = xp.stack([xp.where(is_first, 0.0, edge_t[0]), xp.where(known, threshold, edge_t[1])])
    edge_t = xp.at_set(edge_t, 1, xp.where(saturated, top, edge_t[1]))
    depth = xp.at_set(depth, 1, xp.where(known, xp.sqrt(xp.maximum(-2.0 * log_alpha, 1e-30)), depth[1]))
    tilt = _gentle(loss, faintest, boundary[0], boundary[1], depth[1], edge_t[1])
    tilt = xp.where(boundary[1] > 1.0, xp.maximum(tilt, 1.0), tilt)
    bulk = xp.sqrt(composed(loss, tilt0)[2])

    def window(s, y_low, y_high, ends, reach):
        single, mean, square = cumulants(loss, s)
        value, spread = loss.count @ single, xp.sqrt(loss.count @ square)
        # −log of the tilted density at the piece's ends: r²/2 − s·t + Λ, for a normal loss an eighth of length²
        faint = xp.maximum(xp.max(0.5 * reach**2 - s * ends + value), 0.0)
        # … and between them, where single large steps take over from many small ones, it is fainter still
        jumps = 12.0 * xp.clip(xp.log(spread / bulk), 0.0, 2.0)
        keep = 8.0 - xp.log(rtol) + xp.minimum(faint, 200.0) + jumps - xp.log(xp.minimum(spread, 1.0))
        # one step: keep all but e^{−keep}/T of the tilted mass; Q-mass beyond goes to the atom at infinity,
        # so it must also stay far below the TPR and FNR of this piece
        miss = keep + xp.log(loss.count)
        deep = miss + 0.5 * xp.maximum(y_low**2, y_high**2) + 3.0
        last = xp.where(loss.reverse, -loss.loss[:, 0], loss.loss[:, -1])
        start = xp.where(loss.reverse, -loss.loss[:, -1], loss.loss[:, 0])
        bounded = loss.precision == 0.0

        def composed_high(a):
            return (loss.count @ cumulants(loss, s + a)[0] - value + keep) / a

        def composed_low(a):
            return (loss.count @ cumulants(loss, s - a)[0] - value + keep) / a

        def single_high(a):
            up = cumulants(loss, s + a)[0]
            beyond = s + a - 1.0
            atom = xp.where(beyond > 0.0, (up + deep) / xp.where(beyond > 0.0, beyond, 1.0), xp.inf)
            return xp.maximum((up - single + miss) / a, atom)

        def single_low(a):
            # mass below the window is lumped at its edge: a bound on all of it needs s − a ≤ 0
            return xp.where(a >= s, (cumulants(loss, s - a)[0] - single + miss) / a, xp.inf)

        most, each = xp.sqrt(2.0 * keep) / spread, xp.sqrt(2.0 * deep / square)
        high, miss_high = _least(composed_high, most)
        low, miss_low = _least(composed_low, most)
        above, _ = _least(single_high, each)
        below, _ = _least(single_low, each)
        below = xp.minimum(below, (miss - single) / s)
        above = xp.where(bounded, xp.minimum(above, last), above)
        below = xp.where(bounded, xp.minimum(below, -start), below)
        target = 1.15 * (keep + 8.0)
        middle, bandwidth = _smooth(loss, s, target)
        smooth = xp.sqrt(target / 0.4) / bandwidth
        return (
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

    low, high, miss_low, miss_high, scale, centre, reach_low, reach_high, spread, *typical = window(
        tilt, edge_y[0], edge_y[1], edge_t, depth
    )
    # no further than the composed loss reaches, with room for an attack's labels, which may lie a little beyond
    room = 0.03 * (top - bottom)
    low, high = xp.maximum(low, bottom - room), xp.minimum(high, top + room)
    low = xp.minimum(low, edge_t[0] - 0.01 * spread)
    high = xp.maximum(high, edge_t[1] + 0.01 * spread)
    # a little beyond the depth asked for, so that it is reached whatever the rounding of the lattice
    # (where single large steps matter the depths above are rough, so go further)
    beyond = 0.1 + 0.5 * xp.clip(xp.log(spread / bulk), 0.0, 1.0)
    cut_high = edge_t[1] + xp.where(is_last, beyond, 0.0) * spread
    high = xp.maximum(high, cut_high + 0.1 * spread)
    end = xp.where(loss.precision > 0.0, xp.inf, loss.loss[:, -1])
    length = (r_end - r_0) / pieces
    if loss.bounded:
        # next to the largest loss the law narrows fast, and the tilt that serves the far end may lose sight of the near one
        near = 0.5 * depth[0] ** 2 - tilt * edge_t[0] + composed(loss, tilt)[0]
        length = xp.maximum(length, xp.sqrt(8.0 * xp.maximum(near, 0.0)))
    unit = _common_unit(groups)
    return Plan(
        tilt, low, high, miss_low, miss_high, scale, centre, reach_low, reach_high, end, edge_t[0], cut_high, spread,
        *typical, length, unit,
    )  # fmt: skip
