"""Half of a trade-off curve: vertices with thresholds ℓ ≥ 0, certified on one side, in the log
domain.

The half-curve of (Q‖P) holds the slopes −e^ℓ, ℓ ≥ 0, of the trade-off curve of P against Q; the
half-curve of the swapped pair holds its other slopes, mirrored. Together they are the curve of the
mechanism."""

from __future__ import annotations

import functools
import operator
from typing import Any, NamedTuple

import jax
import numpy as np

from ...numerics import namespace as xp
from ...numerics.errors import CURVE_END, NEAR_ONE
from ...numerics.normal import log1mexp, log_sub, safe_log
from ...pairs.cells import reverse as reverse_cells
from ..plan import Plan
from . import discretisation, low_frequencies
from .convolution import compose_blocks, compose_jumps, tail_sums
from .derivative import dominating_change, fixed_but_for_ends
from .vertices import Vertices

_MERGED = 256.0  # many small steps are smooth: better than one large one
ACROSS = (np.arange(9.0) - 4.0) / 4.5  # equal steps, as parts of a spread to both sides
_NEVER = np.log(1e-9)  # … or where its FNR, guard included, is below this
_SHARP = 1e3  # an attack vertex is used where its rates exceed the guard by this factor


class Dense(NamedTuple):
    """A lattice on which every point of a step and every frequency is kept (static: decides the
    shapes of a program).

    Attributes:
        size: N, lattice points of the composed loss; a power of two.
        left, right: lattice points of one step below, and from, its centre; together at most N.
        block: M, lattice points between vertices.
        jumps: whether only what takes at least one jump (a step beyond ``Plan.jump``) is composed.
    """

    size: int
    left: int
    right: int
    block: int
    jumps: bool = False

    @property
    def offset(self):
        return np.arange(-self.left, self.right, dtype=float)

    @property
    def vertices(self) -> int:
        return self.size // self.block

    @property
    def widest(self) -> int:
        """Numbers in the largest row of an array."""
        return self.size

    def centre(self, plan: Plan):
        return plan.centre

    def in_step(self, h, unit, anchor):
        """h, or the next larger spacing with atoms at multiples of ``unit`` on vertices, or at
        least on lattice points; with the anchor on a lattice point, where there are none."""
        whole = xp.floor(unit / (h * self.block))
        fine = xp.floor(unit / h)
        parts = xp.where(whole >= 1.0, whole * self.block, fine)
        return xp.where(
            parts >= 1.0,
            unit / xp.maximum(parts, 1.0),
            xp.where(unit > 0.0, h, _reaching(h, anchor)),
        )

    def phase(self, h, unit, anchor):
        """Lattice points from a whole number of blocks to the anchor; none where atoms are on
        vertices.
        """
        return xp.where(unit > 0.0, 0.0, _phase(h, anchor, self.block))

    def compose(self, weights, count, start, tilt, h, plan: Plan, centre, shift, real_uses=False):
        shape = {"left": self.left, "size": self.size, "block": self.block}
        if not self.jumps:
            real = {"centre": centre} if real_uses else {}
            return compose_blocks(
                weights, count, start, tilt, h, plan.miss_low, plan.miss_high, **shape, **real
            )
        beyond = h * (centre[:, None] + self.offset) > plan.jump
        # (vertices below are not used, see ``_dominating_vertices``)
        lowest = plan.cut_low - 0.05 * plan.spread - 2.0 * h * self.block
        from_point = xp.floor(lowest / h) + shift - xp.sum(count * centre)
        return compose_jumps(
            weights,
            count,
            start,
            tilt,
            h,
            plan.miss_low,
            plan.miss_high,
            beyond,
            from_point,
            **shape,
        )


class Sparse(NamedTuple):
    """A lattice of any length of which only few points of a step, and the lowest frequencies, are
    used.

    Attributes:
        tables: its points and constant matrices (an argument of the program).
        vertices: vertices of a piece (static).
        product: whether its inverse transform is a matrix product (static).
    """

    tables: low_frequencies.Tables
    vertices: int
    product: bool = False

    @property
    def offset(self):
        return self.tables.offset

    @property
    def size(self):
        return self.tables.size

    @property
    def block(self):
        return self.tables.block

    @property
    def widest(self) -> int:
        """Numbers in the largest row of an array."""
        return max(self.tables.offset.size, 2 * self.vertices)

    def centre(self, plan: Plan):
        return plan.middle

    def in_step(self, h, unit, anchor):
        """h, or the next larger spacing with the anchor on a lattice point: what is smooth needs no
        particular one.
        """
        return _reaching(h, anchor)

    def phase(self, h, unit, anchor):
        """Lattice points from a whole number of blocks to the anchor."""
        return _phase(h, anchor, self.block)

    def compose(
        self, weights, count, start, tilt, h, plan: Plan, centre, shift, real_uses=False, sums=None
    ):
        # (few frequencies, at which log φ is a continuous branch: derivatives in the number of uses
        # are those of φ^T)
        return low_frequencies.compose(
            weights,
            count,
            start,
            tilt,
            h,
            plan.miss_low,
            plan.miss_high,
            self.tables,
            self.vertices,
            self.product,
            sums,
        )


def _reaching(h, anchor):
    """The next larger spacing of which the anchor is a whole multiple, where it is at least h."""
    parts = xp.floor(anchor / h)
    return xp.where(parts >= 1.0, anchor / xp.maximum(parts, 1.0), h)


def _phase(h, anchor, block):
    points = xp.round(anchor / h)
    return points - block * xp.floor(points / block)


def merge(groups):
    """Uses of one component that are exactly a fixed number of uses of another, merged (unbatched),
    and all counts in a row.
    """
    merged = tuple(
        xp.vmap(lambda m, c: m.merge(c, _MERGED))(mechanism, count) for mechanism, count in groups
    )
    return merged, xp.concatenate([count for _, count in merged])


def spacing(plan: Plan, grid):
    """h of a piece: the smallest that fits both the composed and the single-step window."""
    composed = (plan.high - plan.low) / (grid.size - 6 * grid.block)
    moved = grid.centre(plan) - plan.centre
    below = xp.max(plan.reach_low + moved) / (-grid.offset[0] - 2.0)
    above = xp.max(plan.reach_high - moved) / (grid.offset[-1] - 2.0)
    h = xp.maximum(composed, xp.maximum(below, above))
    return grid.in_step(h, plan.unit, plan.anchor)


def first_vertex(plan: Plan, grid, h):
    """Threshold of the first vertex in units of the distance between two: a whole number, but for
    the anchor's phase.

    Method: docs/method/blocks.md#thinning
    """
    phase = grid.phase(h, plan.unit, plan.anchor) / grid.block
    return xp.floor(plan.low / (h * grid.block) - phase) - 1.0 + phase


def _lattice_weights(groups, plan, h, grid, reverse, moving=False):
    """Tilted weights of every component, stacked: (dominating, attack P, attack Q); log(1 − mass at
    +∞) of the dominating pair on the lattice, of the mechanism and of the one attacked; and where
    the components are centred.

    ``moving``: the dominating pair has derivatives in the parameters.
    """
    offset = xp.asarray(grid.offset)
    centre = xp.round(grid.centre(plan) / h)
    between = xp.diff(offset)
    gap = xp.maximum(xp.append(between, 1.0), xp.append(1.0, between))
    results, at, infinity, exact, shown, masses = [], 0, 0.0, 0.0, 0.0, []
    for mechanism, uses in groups:
        here = slice(at, at + uses.shape[0])
        at += uses.shape[0]

        def one(m, c, v, end):
            ell = h * (c + offset)
            read = xp.where(reverse, -ell[::-1], ell)

            def oriented(cells):
                # (a conditional, so that the cells are worked out once and not again in whatever
                # reads them)
                cells = cells._replace(dropped=xp.zeros_like(cells.up))
                return xp.cond(
                    reverse,
                    lambda cells: reverse_cells(cells, read, end),
                    lambda cells: cells,
                    cells,
                )

            cells, change = m.cells(read, end), None
            if moving and xp.tree_is_jax(m):
                change = dominating_change(cells, m.atoms(read), read, end, plan.tilt, v, reverse)
                cells = fixed_but_for_ends(cells)
            cells = oriented(cells)
            upper, lost = discretisation.dominating_weights(cells, ell, gap, plan.tilt, v, change)
            member = m.lower_bound_member()
            seen = cells if member is m else oriented(member.cells(read, end))
            laws = upper, *discretisation.attack_weights(seen, ell, gap, plan.tilt)
            return laws, (lost, cells.log_q_plus, xp.exp(seen.log_q_plus))

        laws, (lost, log_mass, seen) = xp.vmap(one)(
            mechanism, centre[here], plan.scale[here], plan.end[here]
        )
        infinity = infinity + xp.sum(uses * xp.log1p(-xp.minimum(lost, 1.0 - 1e-16)))
        exact = exact + xp.sum(uses * xp.log1p(-xp.exp(log_mass)))
        masses.append((log_mass, uses))
        shown = shown + xp.sum(uses * xp.log1p(-seen))
        results.append(laws)
    exact = _mass_at_infinity(exact, *map(xp.concatenate, zip(*masses, strict=True)))
    laws = results[0] if len(results) == 1 else jax.tree.map(lambda *x: xp.concatenate(x), *results)
    return laws, (infinity, exact, shown), centre


def _mass_at_infinity(log_rest, log_mass, uses):
    """log of the mass at +∞, rounded up, from the log of what is left and the log masses of single
    uses.

    That of a single use is known as it is, with no rounding of ours; so one δ can be told from
    another.

    Method: docs/method/windows.md#infinity
    """
    some = log_mass > -xp.inf
    alone = xp.sum(xp.where(some, uses, 0.0)) <= 1.0
    rounded = xp.minimum(safe_log(-xp.expm1(log_rest)) + CURVE_END, 0.0)
    return xp.where(alone, xp.max(log_mass), rounded)


def step(groups, plan: Plan, grid, reverse):
    """One step of every component on the lattice: what :func:`half_curve` composes (unbatched;
    arguments as there).
    """
    return _lattice_weights(groups, plan, spacing(plan, grid), grid, reverse)


def half_curve(groups, count, plan: Plan, grid, reverse, bare=False, known=None):
    """Vertices of one piece from the dominating pair (upper side) and from the attack (lower side),
    unbatched.

    ``groups`` is a tuple of (stacked mechanism, counts), one entry per class, already merged;
    ``count`` all counts in a row. ``grid`` is a ``Dense`` or ``Sparse`` lattice. ``reverse`` swaps
    the pair (the half-curve of adding a record). ``bare`` adds the dominating vertices without
    their allowance for errors, where that leaves something: no bound, but the place to look for
    where a curve touches another one. ``known`` holds the steps (:func:`step`), and the frequencies
    of each of their laws (``spectrum.Sums``), where they were worked out before.

    Method: docs/method/blocks.md#halves
    """
    h = spacing(plan, grid)
    steps, sums = (step(groups, plan, grid, reverse), None) if known is None else known
    laws, (infinity, log_infinite, shown), centre = steps
    base = xp.sum(count * centre)
    width = h * grid.block
    first = first_vertex(plan, grid, h)
    # the labels' mean differs from the loss's: move the attack's window by as much
    label_mean = xp.sum(count * (laws[1].weight @ grid.offset + centre))
    shift = xp.round(label_mean - xp.sum(count * plan.centre) / h)
    tilts = xp.stack([plan.tilt, plan.tilt, plan.tilt - 1.0])
    shifts = xp.stack([xp.zeros(()), shift, shift])

    def run(weights, tilt, shift, sums=None):
        more = {} if sums is None else {"sums": sums}
        start = xp.round(first * grid.block) + shift + 1.0 - base
        return grid.compose(weights, count, start, tilt, h, plan, centre, shift, **more)

    stacked = jax.tree.map(lambda *x: xp.stack(x), *laws)
    composed = xp.vmap(lambda *law: run(*law).sound())(
        stacked, tilts, shifts, *([] if sums is None else [sums])
    )
    dominating, *attack = (jax.tree.map(lambda x: x[i], composed) for i in range(3))  # noqa: B023
    above = _dominating_vertices(dominating, plan, first, width, h, grid.size, infinity)
    log_certain = safe_log(-xp.expm1(shown)) - CURVE_END
    below = _attack_vertices(
        *attack, plan, first, shift / grid.block, width, h, grid.size, log_certain
    )
    if not any(m.atomic or m.bounded() for m, _ in groups):
        below = below._replace(top=None, log_infinite=None)
    if not bare:
        return _ended(above, groups, log_infinite, reverse), below
    exactly = dominating._replace(
        **{name: xp.zeros(()) for name in ("roundoff", "noise", "escaped")}
    )
    found = _dominating_vertices(exactly, plan, first, width, h, grid.size, infinity)
    found = found._replace(used=found.used & (above.log_alpha > -xp.inf))
    return (
        _ended(above, groups, log_infinite, reverse),
        below,
        _ended(found, groups, log_infinite, reverse),
    )


class Law(NamedTuple):
    """One step of every component of the dominating pair on a lattice, with derivatives in the
    mechanisms' parameters.

    Attributes:
        weight: tilted masses that sum to one, shape (components, n).
        log_total: log of what they were divided by, shape (components,).
        infinity: log(1 − mass at +∞) of the composition.
    """

    weight: Any
    log_total: Any
    infinity: Any


def dominating_law(groups, plan: Plan, grid, reverse) -> Law:
    """The dominating pair's steps (unbatched); arguments as in :func:`half_curve`. The lattice
    stays where it is: no derivative of ``plan`` is meant."""
    (law, *_), (infinity, *_), _ = _lattice_weights(
        groups, plan, spacing(plan, grid), grid, reverse, moving=True
    )
    return Law(law.weight, law.log_total, infinity)


def log_delta(law: Law, count, plan: Plan, grid, epsilon, spread):
    """log δ(ε) of the dominating pair composed of ``law``, without any allowance for rounding: for
    its derivatives (unbatched).

    Between two vertices δ is a straight line in e^ε, as everywhere on a half-curve. Its derivative
    in a parameter jumps where an atom moves past ε, so a mean is taken over the ε within
    ``spread``."""
    h = spacing(plan, grid)
    centre = xp.round(grid.centre(plan) / h)
    width = h * grid.block
    first = first_vertex(plan, grid, h)
    # (with a real number of uses the sum of centres moves and the window does not)
    start = xp.round(first * grid.block) + 1.0 - xp.sum(count * centre)
    none = xp.zeros_like(law.log_total)
    weights = discretisation.Weights(
        law.weight, law.log_total, none, none, none, none, none, xp.zeros_like(law.weight)
    )
    c = grid.compose(weights, count, start, plan.tilt, h, plan, centre, 0.0, real_uses=True)
    block = xp.arange(c.plain.shape[-1])
    epsilon = xp.maximum(epsilon + spread * ACROSS, 0.0)[:, None]
    k = xp.clip(xp.floor(epsilon / width) - first, 0.0, block[-1] - 1.0)
    base = width * (first + k)
    # P-masses of the thinned pair at the lower ends of the blocks, those above ε
    before = xp.where(block == 0, 0.0, xp.concatenate([c.split[-1:], c.split[:-1]]))
    mass = c.plain - c.split + xp.exp(plan.tilt * width) * before
    distance = width * (block - k)
    gain = xp.exp(xp.minimum((1.0 - plan.tilt) * distance, 700.0)) - xp.exp(
        epsilon - base - plan.tilt * distance
    )
    total = xp.sum(xp.where(block > k, mass * gain, 0.0), axis=1)
    finite = c.log_total + (1.0 - plan.tilt) * base[:, 0] + safe_log(total)
    return xp.sum(xp.logaddexp(finite, safe_log(-xp.expm1(law.infinity)))) / len(ACROSS)


def _ended(above: Vertices, groups, log_infinite, reverse) -> Vertices:
    """Dominating vertices with what is known of the end of the curve."""
    if not any(m.atomic or m.bounded() for m, _ in groups):
        return above
    if not any(m.bounded() for m, _ in groups):
        return above._replace(top=xp.asarray(xp.inf), log_infinite=log_infinite)
    return _end_at(above, _largest(groups, reverse), log_infinite)


def _largest(groups, reverse):
    """Largest composed loss, rounded up."""
    ends = [
        xp.sum(uses[:, None] * xp.vmap(lambda m: xp.stack(m.loss_bounds()))(m), axis=0)
        for m, uses in groups
    ]
    low, high = functools.reduce(operator.add, ends)
    top = xp.where(reverse, -low, high)
    return top + CURVE_END * xp.abs(top)


def _end_at(v: Vertices, top, log_infinite) -> Vertices:
    """The dominating vertices of a mechanism whose composed loss is at most ``top``, but for the
    mass at +∞.

    Beyond ``top`` α is 0 and TPR is the mass at +∞. δ(ε) is convex in e^ε, so from the last
    threshold t before, it lies below the chord from (e^t, δ(t)) to there: the vertex moves along
    its line of slope e^t to the chord's α.

    Method: docs/method/windows.md#infinity
    """
    t = v.threshold()
    last = (t < top) & (t + v.step >= top)
    tpr = xp.maximum(v.log_tpr, -1e300)
    ratio = xp.minimum(t + v.log_alpha - tpr, 0.0)
    log_delta = tpr + xp.log(-xp.expm1(ratio) + CURVE_END)
    gap = xp.where(last, xp.minimum(t - top, 0.0), -1.0)
    chord = log_sub(log_delta, log_infinite) - xp.where(last, top, 0.0) - safe_log(-xp.expm1(gap))
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
        log_tpr=pick(log_tpr, log_infinite, v.log_tpr),
        log_beta=pick(log_beta, log1mexp(log_infinite), v.log_beta),
        firm=v.firm | beyond,
        top=top,
        log_infinite=log_infinite,
    )


def _right_or_left(value_right, value_left, right, sign):
    """(log TPR, log β) from whichever of the two is summed without cancellation.

    Method: docs/method/tilting.md#tilt
    """
    # (moved by its own rounding towards the certified side: what is left to 1 may be as small as
    # that)
    tpr_right = xp.minimum(value_right + sign * NEAR_ONE, 0.0)
    beta_left = xp.minimum(value_left, 0.0)
    log_tpr = xp.where(right, tpr_right, log1mexp(beta_left))
    log_beta = xp.where(right, log1mexp(tpr_right), beta_left)
    return log_tpr, log_beta


def _dominating_vertices(c, plan, first, width, h, size, infinity) -> Vertices:
    """α from below and TPR from above at every block boundary of the dominating pair.

    Mass inside a block is split between the block's ends by connect-the-dots once more, so the
    thinned pair still dominates; with q = e^{−sMh}, α_k ∝ q·A_{k+1} + U_k and TPR_k ∝ A^Y_{k+1} +
    e^{Mh}·U_k.

    Method: docs/method/blocks.md#thinning
    """
    s = plan.tilt
    t = width * (first + xp.arange(c.plain.shape[-1]))
    p_guard, q_guard = c.guard(s, h, size), c.guard(xp.abs(s - 1.0), h, size) * xp.exp(width)
    y_blocks = c.plain + xp.expm1(width) * c.split
    after = lambda a: xp.pad(a[1:], (0, 1))
    low, high = c.log_total - c.roundoff, c.log_total + c.roundoff

    q = xp.exp(-s * width)
    alpha = q * after(tail_sums(c.plain, q)) + c.split - p_guard
    log_alpha = low - s * t + safe_log(alpha)
    firm = alpha > 10.0 * p_guard

    r = xp.exp(-xp.maximum(s - 1.0, 0.0) * width)
    tpr = r * after(tail_sums(y_blocks, r)) + xp.exp(width) * c.split + q_guard
    log_tpr = high - (s - 1.0) * t + safe_log(tpr)
    log_tpr = xp.logaddexp(log_tpr, safe_log(-xp.expm1(infinity)))

    # 1 − TPR from the left: everything up to t, and in block k the Q-mass left at its lower end
    decay = xp.exp(-xp.maximum(1.0 - s, 0.0) * width)
    left = tail_sums(y_blocks[::-1], decay)[::-1]
    before = xp.pad(left[:-1], (1, 0))
    beta = decay * before + (y_blocks - xp.exp(width) * c.split) - q_guard
    log_beta = low + (1.0 - s) * t + safe_log(beta)
    log_tpr, log_beta = _right_or_left(log_tpr, log_beta, s >= 1.0, 1.0)
    # neighbouring pieces overlap, so that together they hold a vertex near every point of the true
    # curve
    overlap = 0.05 * plan.spread + width
    used = (t >= plan.cut_low - overlap) & (t <= plan.cut_high + overlap)
    # (at ℓ = 0 the curve goes on with slope −1, along which μ only falls: of what is below, only
    # the vertex whose slopes hold 0 is needed, wherever an anchor puts it)
    used = used & (t > -(1.0 - 1e-9) * width)
    return Vertices(first, width, log_alpha, log_tpr, log_beta, used, firm)


def _attack_vertices(p_side, q_side, plan, first, shift, width, h, size, log_certain) -> Vertices:
    """α from above and TPR from below for the test 'sum of labels beyond the threshold'.

    Vertices are kept where the guard is a small part of both rates; every one of them is
    achievable. What is at +∞, with a mass of e^{log_certain}, is always rejected.

    Method: docs/method/attack.md#labels
    Method: docs/method/blocks.md#attack-vertices
    """
    s = plan.tilt
    p_guard, q_guard = p_side.guard(s, h, size), q_side.guard(xp.abs(s - 1.0), h, size)
    loss = width * (first + xp.arange(p_side.plain.shape[-1]))
    t = loss + width * shift
    q = xp.exp(-s * width)
    alpha = tail_sums(p_side.plain, q)
    used = alpha > _SHARP * p_guard
    alpha = alpha + p_guard
    log_alpha = p_side.log_total + p_side.roundoff - s * t + safe_log(alpha)

    r = xp.exp(-xp.maximum(s - 1.0, 0.0) * width)
    tpr = tail_sums(q_side.plain, r)
    right = s >= 1.0
    used = used & xp.where(right, tpr > _SHARP * q_guard, True)
    tpr = tpr - q_guard
    log_tpr = q_side.log_total - q_side.roundoff - (s - 1.0) * t + safe_log(tpr)
    log_tpr = xp.logaddexp(log_tpr, log_certain)
    decay = xp.exp(-xp.maximum(1.0 - s, 0.0) * width)
    left = tail_sums(q_side.plain[::-1], decay)[::-1]
    beta = decay * xp.pad(left[:-1], (1, 0))
    sharp = right | (beta > _SHARP * q_guard)
    beta = beta + q_guard
    log_beta = q_side.log_total + q_side.roundoff + (1.0 - s) * t + safe_log(beta)
    # (a test that hardly ever misses is as good as one that never does)
    used = used & (sharp | (log_beta < _NEVER))
    log_tpr, log_beta = _right_or_left(log_tpr, log_beta, right, -1.0)
    log_alpha = xp.minimum(log_alpha, 0.0)
    start = xp.where(plan.cut_low == 0.0, -0.1 * plan.spread - width, plan.cut_low)
    used = used & (loss >= start) & (loss < plan.cut_high)
    used = used & (log_tpr > log_alpha) & (log_alpha < 0.0)
    return Vertices(
        first, width, log_alpha, log_tpr, log_beta, used, used, xp.asarray(-xp.inf), log_certain
    )
