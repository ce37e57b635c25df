"""μ*: the tight Gaussian-DP parameter over a stated range of error rates."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import options
from ..accounting.certify.curve import Curve, Points, both_sides, points
from ..bracket import Bracket
from ..numerics import namespace as xp
from ..numerics.errors import COMPOSED_MU
from ..numerics.normal import argmax, log1mexp, ndtri_exp
from ..numerics.shapes import Array
from ..numerics.validation import floor_rate
from . import overflow
from .base import Quantity, log_rate
from .reading import known
from .reading.chords import alpha_chord, alpha_line, chord_to_end, some_tests, tpr_chord, tpr_line
from .reading.quantiles import (
    close_rates,
    difference,
    from_the_middle,
    mu_in_gaps,
    quantiles,
    without_silent_pieces,
)
from .tangency import (
    HalfCurves,
    Tangency,
    between,
    largest,
    log_density,
    peak,
    single_point,
    touching_slope,
    tpr_quantile,
)

_TESTS = 128  # tests of an attack whose μ is computed, per piece


def _with(p: Points, *extra: tuple[Array, Array, Array]) -> tuple[Array, ...]:
    """The rates of a row of points, followed by single (log α, log TPR, log β) points."""
    rows = (p.log_alpha, p.log_tpr, p.log_beta)
    return tuple(
        xp.concatenate([row, xp.stack(more)])
        for row, more in zip(rows, zip(*extra, strict=True), strict=True)
    )


def _upper_rates(p: Points, log_floor: Array) -> tuple[Array, ...]:
    """Rates of a dominating half-curve at which μ is evaluated: vertices and both ends.

    If its vertices end before the range does, the line of the last one holds up to there.
    """
    k = xp.arange(p.used.shape[0])
    last = p.used & (k == xp.max(xp.where(p.used, k, -1)))
    reached, covered = (
        xp.min(p.log_alpha) <= log_floor,
        xp.max(xp.where(p.used, p.log_beta, -xp.inf)) >= log_floor,
    )
    at_fpr = (log_floor, *tpr_line(p._replace(used=xp.where(reached, p.used, last)), log_floor))
    log_alpha = alpha_line(p._replace(used=xp.where(covered, p.used, last)), log_floor)
    return _with(p, at_fpr, (log_alpha, log1mexp(log_floor), log_floor))


def _upper(
    p: Points,
    z_alpha: Array,
    z_tpr: Array,
    close: Array,
    other_ends: Array,
    log_floor: Array,
    z_floor: Array,
) -> Array:
    """Largest μ of a dominating half-curve over the range of rates (``_upper_rates``).

    ``close``: bounds on μ where rates are nearly the same (``close_rates``).
    ``other_ends``: μ at the ends with the least FPR and the least FNR, from the lines of the other
    half. If this half's thresholds grow towards an end, the lines of either half hold there.

    Method: docs/method/mu.md#floor
    """
    clamped = difference(xp.maximum(z_alpha[:-2], z_floor), z_tpr[:-2], 1.0)
    inner = p.log_alpha >= log_floor
    clamped = xp.where(inner, xp.minimum(clamped, close[:-2]), clamped)
    everywhere = xp.max(xp.where(p.used, clamped, -xp.inf))
    plain = xp.minimum(difference(z_alpha, z_tpr, 1.0), close)
    # the middle of the curve is provably above the floor, or it is not
    visible = xp.max(xp.where(p.used, p.log_alpha, -xp.inf)) >= log_floor
    first = argmax(p.used)
    visible = visible | (p.log_beta[first] > log_floor)
    outer = xp.minimum(plain[-2:], xp.where(other_ends > -xp.inf, other_ends, xp.inf))
    # (beyond the FNR floor the range ends where a line of the curve reaches it)
    past = p.used & (p.log_beta < log_floor)
    within = xp.max(xp.where(p.used & ~past, clamped, -xp.inf))
    shown = xp.maximum(xp.maximum(within, outer[0]), xp.where(xp.any(past), plain[-1], -xp.inf))
    inside = p.used & (p.log_beta <= log_floor)
    mirrored = xp.maximum(xp.max(xp.where(inside, plain[:-2], -xp.inf)), outer[1])
    known = xp.where(visible, shown, xp.maximum(mirrored, everywhere))
    return xp.where(from_the_middle(p), known, xp.inf)


def _lower_rates(p: Points, tests: Points, log_floor: Array) -> tuple[Array, ...]:
    """Rates an attack achieves at which μ is evaluated: tests, and chords at both ends."""
    log_tpr, log_beta = tpr_chord(p, log_floor)
    end_tpr, end_beta = chord_to_end(p, log_floor)
    log_tpr, log_beta = xp.maximum(log_tpr, end_tpr), xp.minimum(log_beta, end_beta)
    at_fnr, tpr_at_fnr = alpha_chord(p, log_floor)
    return _with(tests, (log_floor, log_tpr, log_beta), (at_fnr, tpr_at_fnr, log_floor))


def _lower(
    tests: Points,
    rates: tuple[Array, ...],
    z_alpha: Array,
    z_tpr: Array,
    close: Array,
    log_floor: Array,
    z_floor: Array,
) -> Array:
    """Largest μ that the attack achieves over the range of rates (``_lower_rates``).

    Method: docs/method/mu.md#floor
    """
    used = xp.append(tests.used, xp.asarray([True, True]))
    weaker = difference(xp.maximum(z_alpha, z_floor), xp.minimum(z_tpr, -z_floor), -1.0)
    log_alpha, _, log_beta = rates
    within = (log_alpha >= log_floor) & (log_beta >= log_floor)
    weaker = xp.where(within, xp.maximum(weaker, close), weaker)
    visible = xp.max(xp.where(used, weaker, -xp.inf))
    # (a test with both rates at most the floor is one of the range where there are such)
    both = used & (log_alpha <= log_floor) & (log_beta <= log_floor)
    plain = xp.maximum(difference(z_alpha, z_tpr, -1.0), close)
    return xp.maximum(visible, xp.max(xp.where(both, plain, -xp.inf)))


def mu(curve: Curve, log_floor: Array) -> Bracket:
    """μ*(floor) = max Φ⁻¹(1 − α) − Φ⁻¹(β) over FPRs from the floor to f(floor) (Gomez 2025).

    That is, over error rates that are both at least the floor (or both at most, where privacy is so
    weak that f(floor) lies below it). The mirrored curve has the same μ, so all adjacencies share
    this number. Never more than √Σ T/σ², the limit as the floor goes to 0, and never less than that
    of the exactly Gaussian parts.

    Method: docs/method/mu.md#floor
    """
    z_floor = ndtri_exp(log_floor)
    above, below = (
        both_sides(curve.upper_plus, curve.upper_minus),
        both_sides(curve.lower_plus, curve.lower_minus),
    )
    above = xp.vmap(without_silent_pieces)(above)
    dominating: Any = xp.vmap(points)(above)
    attack: Any = xp.vmap(points)(below)
    # μ changes slowly along a smooth curve, but not between two atoms of the loss
    number = _TESTS * below.used.shape[1] if below.top is None else attack.used.shape[1]
    tests = xp.vmap(lambda p: some_tests(p, number))(attack)
    rates = (
        xp.vmap(lambda p: _upper_rates(p, log_floor))(dominating),
        xp.vmap(lambda p, some: _lower_rates(p, some, log_floor))(attack, tests),
    )
    columns = [xp.concatenate(column, axis=1) for column in zip(*rates, strict=True)]
    z_alpha, z_tpr = quantiles(*columns)
    close = close_rates(columns, z_alpha, z_tpr)
    end = rates[0][0].shape[1]
    of_lines = z_alpha[:, :end], z_tpr[:, :end]
    # (that of the other order's line: both of its ends change places)
    other_ends = xp.minimum(difference(*of_lines, 1.0), close.upper[:, :end])[::-1, -2:][:, ::-1]
    upper = xp.max(
        xp.vmap(lambda p, a, t, c, other: _upper(p, a, t, c, other, log_floor, z_floor))(
            dominating, *of_lines, close.upper[:, :end], other_ends
        )
    )
    shown = xp.max(
        xp.vmap(lambda p, of_tests, a, t, c: _lower(p, of_tests, a, t, c, log_floor, z_floor))(
            tests, rates[1], z_alpha[:, end:], z_tpr[:, end:], close.lower[:, end:]
        )
    )

    def matters(log_alpha: Array, log_tpr: Array, log_beta: Array) -> Array:
        return (log_alpha >= log_floor) | (log_beta <= log_floor)

    # (where nothing tells P from Q no rate between 0 and 1 is left at floor 0)
    upper = xp.maximum(upper, 0.0)
    upper = xp.maximum(upper, xp.max(xp.vmap(lambda v: mu_in_gaps(v, matters))(above)))
    upper = xp.minimum(upper, curve.tail_mu * (1.0 + COMPOSED_MU))
    return Bracket(xp.maximum(shown, curve.gaussian_part_mu * (1.0 - COMPOSED_MU)), upper)


def read(curve: Curve, query: Array, *, symmetric: bool) -> Bracket:
    """:func:`mu`, which all orders of the pair share."""
    return mu(curve, query)


def mu_tangency(halves: HalfCurves, log_floor: Array) -> Tangency:
    """Where Φ⁻¹(TPR) − Φ⁻¹(α) is largest, at the floor or inside: ∂μ = ∂δ(ε*)/φ(Φ⁻¹(TPR))."""
    found = []
    for side in (0, 1):
        p = halves.points[side]
        z_alpha, z_tpr = ndtri_exp(p.log_alpha), tpr_quantile(p.log_tpr, p.log_beta)
        above = (p.log_alpha >= log_floor) & (p.log_beta >= log_floor)
        seen = above | ((p.log_alpha <= log_floor) & (p.log_beta <= log_floor))
        usable = p.used & seen & xp.isfinite(z_alpha) & xp.isfinite(z_tpr)
        value = xp.where(
            usable, xp.where(usable, z_tpr, 0.0) - xp.where(usable, z_alpha, 0.0), -xp.inf
        )
        k = argmax(value)
        shift, single = peak(value, usable, k)
        z0, z1 = (between(xp.where(usable, z, 0.0), k, shift) for z in (z_alpha, z_tpr))
        epsilon = touching_slope(z0, z1, p, value, usable, k)
        inner = single_point(side, epsilon, -log_density(z1), xp.zeros(()), single=single)
        found.append((value[k], inner))

        touch = halves.tpr(log_floor, side)
        visible = xp.max(xp.where(p.used, p.log_alpha, -xp.inf)) >= log_floor
        visible = visible & (xp.min(xp.where(p.used, p.log_alpha, 0.0)) <= log_floor)
        z0, z1 = ndtri_exp(log_floor), tpr_quantile(touch.log_tpr, touch.log_beta)
        gain = xp.exp(log_floor + touch.epsilon - log_density(z1)) - xp.exp(
            log_floor - log_density(z0)
        )
        found.append(
            (
                xp.where(visible, z1 - z0, -xp.inf),
                single_point(side, touch.epsilon, -log_density(z1), gain, single=touch.single),
            )
        )
    return largest(found)


def tangency(
    halves: HalfCurves, query: Array, found: Bracket, given: Bracket | None = None
) -> Tangency:
    """:func:`mu_tangency`."""
    return mu_tangency(halves, query)


QUANTITY = Quantity(
    name="mu",
    symbol="μ",
    read=read,
    read_known=known.mu,
    long_name="Gaussian-DP parameter over FPRs from the floor to f(floor)",
    description=(
        "The Gaussian mechanism N(μ, 1) against N(0, 1) is at least as easy to attack at every FPR"
        " from the floor to f(floor)."
    ),
    argument="fpr_floor",
    default=options.FPR_FLOOR,
    check=floor_rate,
    query=log_rate,
    rounding=1e-14,
    tangency=tangency,
    overflow=overflow.Overflow(shift=overflow.mu),
    of_gaussian=lambda mu, floor: mu,
    share_of_mu=np.ones_like,
    of_all_rates=True,
    sharp_beyond=0.9,
    order=10,
)
