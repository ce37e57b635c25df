"""Cells of N(0, 1) against a mixture of shifted normal laws: edges, masses and shares."""

from __future__ import annotations

from typing import NamedTuple

from ..numerics import namespace as xp
from ..numerics.errors import CELL, EDGE, FAR, FAR_CELL, SHARE, UNIT
from ..numerics.shapes import Array
from ..pairs.cells import Cells, exp_error, left_over
from ..pairs.mixture import log_mixture, log_unmixed
from .subsampled_gaussian import NARROW, hermite_difference, hermite_series, log_normal_mass

_NEWTON = 24  # most steps; the last ones change nothing
_WEIGHT = 8.0  # units, of a weight that its author has rounded, and of what all weights sum to


class Shifts(NamedTuple):
    """A law of shifts in standard deviations (unbatched).

    Attributes:
        tau: shifts that are not 0, shape (shifts,); 1 in place of those that do not count.
        log_w: log of their weights over ``prob``; −∞ for those that do not count.
        prob: probability of a shift that is not 0.
        log_prob, log_rest: its log, and that of what is left.
        smallest, largest: of the shifts that count, 0 where there is none.
    """

    tau: Array
    log_w: Array
    prob: Array
    log_prob: Array
    log_rest: Array
    smallest: Array
    largest: Array


def shifts_of(tau: Array, weights: Array) -> Shifts:
    """The law of shifts, from shifts in standard deviations and weights that sum to about 1."""
    moved = (tau > 0.0) & (weights > 0.0)
    some, rest = xp.sum(xp.where(moved, weights, 0.0)), xp.sum(xp.where(moved, 0.0, weights))
    total = some + rest
    any_moved, any_rest = some > 0.0, rest > 0.0
    log_some = xp.log(xp.where(any_moved, some, 1.0))
    log_rest = xp.where(any_rest, xp.log(xp.where(any_rest, rest, 1.0) / total), -xp.inf)
    prob = xp.where(any_rest, some / total, 1.0)
    log_prob = xp.where(
        prob > 0.5,
        xp.log1p(-xp.where(any_rest, xp.minimum(rest / total, 0.5), 0.0)),
        log_some - xp.log(total),
    )
    log_w = xp.where(moved, xp.log(xp.where(moved, weights, 1.0)) - log_some, -xp.inf)
    return Shifts(
        xp.where(moved, tau, 1.0),
        log_w,
        xp.where(any_moved, prob, 1.0),
        xp.where(any_moved, log_prob, 0.0),
        log_rest,
        xp.where(any_moved, xp.min(xp.where(moved, tau, xp.inf)), 0.0),
        xp.max(xp.where(moved, tau, 0.0)),
    )


def loss_of_output(law: Shifts, z: Array) -> Array:
    """ℓ = log(w_0 + Σ w_i·e^{τ_i·z − τ_i²/2}) at outputs z in standard deviations."""
    log_ratio = xp.full_like(z, -xp.inf)
    for i in range(law.tau.shape[0]):
        tau = law.tau[i]
        log_ratio = xp.logaddexp(log_ratio, law.log_w[i] + tau * (z - 0.5 * tau))
    return _mixed(law, log_ratio)


def _mixed(law: Shifts, log_ratio: Array) -> Array:
    """log(rest + prob·e^{log_ratio}), to units of itself where losses are small."""
    most = xp.logaddexp(law.log_rest, law.log_prob + log_ratio)
    steep = (law.prob > 0.5) & (log_ratio < xp.log1p(-0.5 / xp.maximum(law.prob, 0.75)))
    return xp.where(steep, most, log_mixture(law.prob, xp.where(steep, 0.0, log_ratio)))


def _unmixed(law: Shifts, ell: Array) -> Array:
    """The log-likelihood ratio of the shifts alone where the loss is ℓ: −∞ at and below log w_0."""
    fall = law.log_rest - ell
    inside = fall < 0.0
    most = ell - law.log_prob + xp.log(-xp.expm1(xp.where(inside, fall, -1.0)))
    steep = (law.prob > 0.5) & (ell <= xp.log1p(-0.5 * law.prob))
    near = log_unmixed(law.prob, xp.where(steep, 0.0, ell))
    return xp.where(steep, xp.where(inside, most, -xp.inf), near)


class Edges(NamedTuple):
    """Outputs, in standard deviations, at the points of a lattice.

    Attributes:
        u: outputs, −∞ below the smallest loss and +∞ beyond the end.
        log_ratio: the log-likelihood ratio of the shifts alone that they belong to.
        off: bound on how far off an output is, in units.
        open_steps: the part of it that Newton's method has left over, in units.
        size: bound on the rounding of the ratio at an output, in units.
    """

    u: Array
    log_ratio: Array
    off: Array
    open_steps: Array
    size: Array


def find_edges(law: Shifts, ell: Array, end: Array | float) -> Edges:
    """Outputs of the losses ``ell`` by Newton's method.

    The log-likelihood ratio v(z) is a convex and increasing function of the output z. From a point
    on the right of its root, Newton's method comes down to it without crossing it. The point is the
    smallest of the roots that single shifts have: v is at least as large as the term of each.

    Method: docs/method/dominating.md#mixtures
    """
    log_ratio = _unmixed(law, ell)
    before = xp.concatenate([xp.full((1,), -xp.inf), ell[:-1]])
    real = (log_ratio > -xp.inf) & (before < end)
    v = xp.where(real, log_ratio, 0.0)
    number = law.tau.shape[0]

    def of_one(i: Array | int, z: Array):
        tau, log_w = law.tau[i], law.log_w[i]
        counts = log_w > -xp.inf
        return tau, xp.where(counts, log_w, 0.0), counts, 0.5 * tau

    def start(i: Array | int, z: Array):
        tau, log_w, counts, half = of_one(i, z)
        return xp.where(counts, xp.minimum(z, (v - log_w) / tau + half), z)

    z = xp.fori_loop(0, number, start, xp.full_like(v, 1e300))
    z = xp.where(z < 1e300, z, 0.0)

    def moments(z: Array):
        def add(i: Array | int, state: tuple):
            excess, slope, size = state
            tau, log_w, counts, half = of_one(i, z)
            # (the weights sum to one: what they are off by counts times e^x − 1)
            weight = xp.where(counts, xp.exp(log_w), 0.0)
            x = xp.minimum(tau * (z - half) - v, 700.0 - log_w)
            place = tau * (xp.abs(z) + half) + xp.abs(v)
            near = xp.abs(x) < 0.5
            one = xp.where(counts, xp.exp(log_w + x), 0.0)
            more = xp.where(near, weight * xp.expm1(xp.where(near, x, 0.0)), one - weight)
            off = 4.0 * (place * one + xp.abs(log_w) * xp.abs(more)) + (8.0 + number) * xp.abs(more)
            return excess + more, slope + tau * one, size + xp.where(counts, off, 0.0)

        zero = xp.zeros_like(z)
        excess, slope, size = xp.fori_loop(0, number, add, (zero, zero, zero))
        total = xp.maximum(1.0 + excess, 1e-300)
        log_total = xp.log1p(xp.maximum(excess, -0.999))
        log_total = xp.where(total > 1e-3, log_total, xp.log(total))
        return log_total, xp.maximum(slope / total, 1e-300), size / total

    def step(_: Array | int, state: tuple):
        z, _ = state
        excess, slope, _ = moments(z)
        moved = z - excess / slope
        return moved, xp.abs(moved - z) <= 2.0 * UNIT * xp.abs(moved)

    z, _ = xp.fori_loop(
        0, _NEWTON, step, (z, xp.zeros_like(z) > 0.0), lambda state: xp.all(state[1])
    )
    excess, slope, size = moments(z)
    left = xp.maximum(xp.abs(excess) / UNIT - size, 0.0) / slope
    off = size / slope + left + 2.0 * xp.abs(z)
    u = xp.where(before >= end, xp.inf, xp.where(real, z, -xp.inf))
    keep = lambda a: xp.where(real, a, 0.0)
    return Edges(u, log_ratio, keep(off), keep(left), keep(size))


class _Spans(NamedTuple):
    """The cells as intervals of the output, n + 1 of them."""

    u: Array
    middle: Array
    width: Array
    narrow: Array
    bounded: Array
    w: Array
    m: Array


def _spans(law: Shifts, u: Array) -> _Spans:
    inf = xp.full((1,), xp.inf)
    a, b = xp.concatenate([-inf, u]), xp.concatenate([u, inf])
    bounded = xp.isfinite(a) & xp.isfinite(b)
    width = xp.where(bounded, xp.where(bounded, b, 0.0) - xp.where(bounded, a, 0.0), xp.inf)
    middle = xp.where(bounded, 0.5 * (xp.where(bounded, a, 0.0) + xp.where(bounded, b, 0.0)), 0.0)
    reach = 1.0 + xp.maximum(xp.abs(middle), xp.abs(middle - law.largest))
    narrow = bounded & (width * reach < NARROW) & (0.5 * width * law.largest < NARROW)
    w, m = xp.where(narrow, width, 0.1), xp.where(narrow, middle, 0.0)
    return _Spans(u, middle, width, narrow, bounded, w, m)


class _Shifted(NamedTuple):
    """What the shifts make of the cells.

    Attributes:
        log_y1: log mass of each cell under the shifts that are not 0.
        depth: units of its rounding, a mean over the shifts.
        above, whole: of narrow cells, the P-mass that goes up and all, times the change of the
            ratio over the cell.
    """

    log_y1: Array
    depth: Array
    above: Array
    whole: Array


def _shifted(law: Shifts, spans: _Spans, series: Array, top: Array) -> _Shifted:
    w, m = spans.w, spans.m

    def add(i: Array | int, state: tuple):
        log_y1, depth, above, whole = state
        tau, log_w = law.tau[i], law.log_w[i]
        counts = log_w > -xp.inf
        weight = xp.where(counts, log_w, 0.0)
        log_mass = log_normal_mass(
            spans.u - tau, spans.narrow, w, m - tau, hermite_series(m - tau, w)
        )
        empty = ~counts | (log_mass == -xp.inf)
        log_mass = xp.where(empty, 0.0, log_mass)
        size = xp.abs(weight) + xp.abs(log_mass)
        size = size + FAR_CELL * xp.maximum(xp.abs(log_mass) - FAR, 0.0)
        one = xp.where(empty, -xp.inf, weight + log_mass)
        total = xp.logaddexp(log_y1, one)
        at = xp.where(total == -xp.inf, 0.0, total)
        depth = depth * xp.exp(xp.minimum(log_y1 - at, 0.0)) + size * xp.exp(
            xp.minimum(one - at, 0.0)
        )
        drop = xp.expm1(-0.5 * w * tau)
        excess = hermite_difference(m, m - tau, w) / (1.0 + series)
        scale = xp.where(
            counts, xp.exp(xp.minimum(weight + tau * (m - 0.5 * tau) - top, 700.0)), 0.0
        )
        return (
            total,
            depth,
            above + scale * (excess - drop),
            whole - scale * drop * (2.0 + drop) / (1.0 + drop),
        )

    zero = xp.zeros_like(m)
    state = (zero - xp.inf, zero, zero, zero)
    return _Shifted(*xp.fori_loop(0, law.tau.shape[0], add, state))


def mixture_cells(law: Shifts, ell: Array, end: Array | float) -> Cells:
    """Cells between the points ``ell``; see ``GaussianMixture.cells``.

    Method: docs/method/dominating.md#mixtures
    """
    edges = find_edges(law, ell, end)
    u, log_r = edges.u, edges.log_ratio
    spans = _spans(law, u)
    narrow, bounded = spans.narrow, spans.bounded
    series = hermite_series(spans.m, spans.w)
    log_x = log_normal_mass(u, narrow, spans.w, spans.m, series)
    lo, hi = log_r[:-1], log_r[1:]
    finite_hi = xp.where(hi > -xp.inf, hi, 0.0)
    zero = xp.zeros((1,))
    shifted = _shifted(law, spans, series, xp.concatenate([zero, finite_hi, zero]))

    empty = (log_x == -xp.inf) | (shifted.log_y1 == -xp.inf)
    log_rho = xp.where(empty, 0.0, shifted.log_y1 - xp.where(empty, 0.0, log_x))
    log_ratio = _mixed(law, log_rho)
    log_y = _mixture_masses(law, log_x, shifted.log_y1, log_ratio)

    some = (shifted.whole > 0.0)[1:-1]
    narrow_up = shifted.above[1:-1] / xp.where(some, shifted.whole[1:-1], 1.0)
    inside = lo > -xp.inf
    fall = -xp.expm1(
        xp.minimum(xp.where(law.log_rest > -xp.inf, ell[:-1] - law.log_rest, 0.0), 0.0)
    )
    below = -fall * xp.exp(
        xp.clip(xp.maximum(law.log_rest, -1e300) - law.log_prob - finite_hi, -700.0, 700.0)
    )
    r_lo = xp.where(inside, xp.exp(xp.where(inside, lo, 0.0) - finite_hi), below)
    rho = xp.exp(xp.minimum(log_rho[1:-1] - finite_hi, 0.0))
    wide_up = (rho - r_lo) / xp.where(r_lo < 1.0, 1.0 - r_lo, 1.0)
    up = xp.where(narrow[1:-1] & some, narrow_up, wide_up)
    up = xp.where(empty[1:-1], 1.0, xp.clip(up, 0.0, 1.0))
    before = xp.concatenate([xp.full((1,), -xp.inf), ell[:-1]])
    opened = (ell[:-1] >= end) & (before[:-1] < end)
    up = xp.where(opened, 0.0, up)

    jitter = _jitter(law, spans, edges)
    depth = _depth(law, log_x, shifted, log_rho, log_ratio)
    roundoff = CELL + _WEIGHT + law.tau.shape[0] + exp_error(depth)
    lost, lost_error = (
        xp.max(xp.where(opened, one, 0.0))
        for one in left_over(log_x[1:-1], log_y[1:-1], ell[:-1], roundoff[1:-1])
    )
    gap = xp.where(inside & (hi > -xp.inf), xp.where(inside, finite_hi - lo, 1.0), 1.0)
    steep = -xp.expm1(-xp.where(narrow[1:-1] | ~bounded[1:-1], 1.0, xp.clip(gap, 1e-300, 1.0)))
    rounded = SHARE + 2.0 * xp.maximum(edges.size[1:], edges.size[:-1])
    wide = (2.0 * (roundoff + jitter)[1:-1] + rounded) / steep
    split = xp.where(narrow[1:-1], rounded, wide)
    split = xp.where(opened, 0.0, split)
    return Cells(log_x, log_y, up, lost, lost_error, roundoff, jitter, share_error=split)


def _mixture_masses(law: Shifts, log_x: Array, log_y1: Array, log_ratio: Array) -> Array:
    """Log Q-masses y = w_0·x + prob·y₁: by their ratio to x, or as a sum where x is tiny, so that
    no digits are lost where both logarithms are huge."""
    rest = xp.where(law.log_rest > -xp.inf, law.log_rest + log_x, -xp.inf)
    added = xp.logaddexp(rest, law.log_prob + log_y1)
    return xp.where(log_x < -FAR, added, log_x + log_ratio)


def _depth(law: Shifts, log_x: Array, shifted: _Shifted, log_rho: Array, log_ratio: Array) -> Array:
    """Units that logarithms of both masses are off by: that of the Q-mass is a mean of the errors
    of its two parts, so a part that is next to nothing brings next to no error."""
    of_x = xp.abs(log_x) + FAR_CELL * xp.maximum(xp.abs(log_x) - FAR, 0.0)
    of_x = xp.where(log_x == -xp.inf, 0.0, of_x)
    empty = (log_x == -xp.inf) | (shifted.log_y1 == -xp.inf)
    share = xp.where(empty, 0.0, xp.exp(xp.minimum(law.log_prob + log_rho - log_ratio, 0.0)))
    shown = xp.where(share > 0.0, share * (shifted.depth + xp.abs(log_rho)), 0.0)
    by_ratio = (1.0 - share) * of_x + shown + 2.0 * xp.abs(log_ratio)
    log_y1 = xp.where(empty, 0.0, shifted.log_y1)
    shown = xp.where(share > 0.0, share * (shifted.depth + xp.abs(log_y1)), 0.0)
    by_sum = (1.0 - share) * 2.0 * of_x + 2.0 * shown
    return xp.maximum(of_x, xp.where(log_x < -FAR, by_sum, by_ratio))


def _jitter(law: Shifts, spans: _Spans, edges: Edges) -> Array:
    """Units that a cell's masses may be off because of its edges.

    Narrow cells are exact for the edges as they are: only what Newton's method has left over
    counts there. Wide cells feel each edge's rounding separately; an unbounded one, by up to 1 +
    |u| times its mass."""
    zero = xp.zeros((1,))
    both = lambda a: xp.concatenate([zero, a]) + xp.concatenate([a, zero])
    off, left = both(edges.off), both(edges.open_steps)
    finite_u = xp.where(xp.isfinite(edges.u), xp.abs(edges.u), 0.0)
    place = xp.maximum(xp.concatenate([zero, finite_u]), xp.concatenate([finite_u, zero]))
    reach = 1.0 + place + law.largest
    width = xp.where(spans.bounded, spans.width, 1.0)
    steepest = 1.0 / xp.clip(width, 1e-3, 1.0) + xp.minimum(reach, 8.0)
    wide = (EDGE + off) * steepest
    narrow = left / xp.where(spans.narrow, spans.width, 1.0)
    return xp.where(
        spans.narrow, narrow, xp.where(spans.bounded, wide, off * xp.minimum(reach, 8.0))
    )
