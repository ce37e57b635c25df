"""μ*: the tight Gaussian-DP parameter over a stated range of error rates, and d-approximate μ."""

from __future__ import annotations

from typing import Any

import jax

from ..accounting.curve import Curve, Points, both_sides, path, points, safe_log1m
from ..accounting.vertices import Vertices
from ..bracket import Bracket
from ..numerics import namespace as xp
from ..numerics.normal import argmax, log1mexp, log_sub, ndtri_exp, safe_log

_ROUNDOFF = 1e-12
_Z_ROUNDOFF = 1e-14  # relative error of a normal quantile, with room
_CONTRADICTION = 1e-9  # relative difference of the two sides that rounding may explain
_TESTS = 128  # tests of an attack whose μ is computed, per piece


def _quantiles(log_alpha, log_tpr, log_beta):
    """Φ⁻¹(α) and Φ⁻¹(TPR) of many points in one evaluation, TPR from the smaller of itself and FNR."""
    z_alpha, z = ndtri_exp(xp.stack([log_alpha, xp.minimum(log_tpr, log_beta)]))
    return z_alpha, xp.where(log_tpr < log_beta, z, -z)


def _difference(z_alpha, z_tpr, sign):
    """μ = Φ⁻¹(TPR) − Φ⁻¹(α), moved by its rounding error in the direction of ``sign``."""
    value = z_tpr - z_alpha + sign * _Z_ROUNDOFF * (xp.abs(z_tpr) + xp.abs(z_alpha))
    value = xp.where(xp.isnan(value), -xp.inf, value)
    # some TPR at FPR 0: no Gaussian curve allows that
    return xp.where((z_alpha == -xp.inf) & (z_tpr > -xp.inf), xp.inf, value)


def tpr_line(p: Points, log_fpr):
    """Upper bound on log TPR at one FPR: the lowest of the supporting lines with slopes e^{ℓ_k}."""
    log_delta = p.log_tpr + safe_log1m(xp.minimum(p.low + p.log_alpha - xp.maximum(p.log_tpr, -1e300), 0.0))
    value = xp.logaddexp(log_delta, p.low + log_fpr)
    return xp.min(xp.where(p.used & ((p.log_tpr > -xp.inf) | (p.log_alpha == -xp.inf)), value, 0.0))


def _alpha_line(p: Points, log_fnr):
    """Lower bound on log α at one FNR: the highest of the supporting lines with slopes e^{ℓ_k}."""
    value = log_sub(xp.logaddexp(p.log_alpha, p.log_beta - p.low), log_fnr - p.low)
    return xp.max(xp.where(p.used, value, -xp.inf))


def _with(p: Points, *extra):
    """The rates of a row of points, followed by single (log α, log TPR, log β) points."""
    rows = (p.log_alpha, p.log_tpr, p.log_beta)
    return tuple(
        xp.concatenate([row, xp.stack(more)]) for row, more in zip(rows, zip(*extra, strict=True), strict=True)
    )


def _upper_rates(p: Points, log_floor):
    """Rates of a dominating half-curve at which μ is evaluated: its vertices, and both ends of the range of rates."""
    log_tpr = tpr_line(p, log_floor)
    at_fpr = (log_floor, log_tpr, log1mexp(log_tpr))
    at_fnr = (_alpha_line(p, log_floor), log1mexp(log_floor), log_floor)
    return _with(p, at_fpr, at_fnr)


def _upper(p: Points, z_alpha, z_tpr, log_floor, z_floor):
    """Largest μ of a dominating half-curve over the range of rates, from the quantiles of ``_upper_rates``."""
    clamped = _difference(xp.maximum(z_alpha[:-2], z_floor), z_tpr[:-2], 1.0)
    everywhere = xp.max(xp.where(p.used, clamped, -xp.inf))
    plain = _difference(z_alpha, z_tpr, 1.0)
    # the middle of the curve is provably above the floor, or it is not
    visible = xp.max(xp.where(p.used, p.log_alpha, -xp.inf)) >= log_floor
    reached = xp.min(p.log_alpha) <= log_floor
    shown = xp.where(reached, xp.maximum(everywhere, plain[-2]), xp.inf)
    inside = p.used & (p.log_beta <= log_floor)
    mirrored = xp.maximum(xp.max(xp.where(inside, plain[:-2], -xp.inf)), plain[-1])
    covered = xp.max(xp.where(p.used, p.log_beta, -xp.inf)) >= log_floor
    hidden = xp.where(covered, xp.maximum(mirrored, everywhere), xp.inf)
    return xp.where(visible, shown, hidden)


def tpr_chord(p: Points, log_fpr):
    """(log TPR, log β) that the attack achieves at one FPR: chords between consecutive tests, a stricter test, or a laxer
    one obeyed only part of the time."""
    a, b = p.log_alpha[:-1], p.log_alpha[1:]
    inside = (b <= log_fpr) & (log_fpr < a) & p.used[:-1] & p.used[1:]
    top = xp.where(inside, a, 0.0)
    low = xp.where(inside, b, -1.0)
    share = xp.exp(log_fpr - top) - xp.exp(low - top)
    share = xp.clip(share / -xp.expm1(low - top), 0.0, 1.0)
    mix = lambda x: xp.logaddexp(x[:-1] + safe_log(share), x[1:] + safe_log(1.0 - share))  # noqa: E731
    k = argmax(xp.where(inside, mix(p.log_tpr), -xp.inf))
    tpr, beta = mix(p.log_tpr)[k], mix(p.log_beta)[k]
    stricter = p.used & (p.log_alpha <= log_fpr)
    j = argmax(xp.where(stricter, p.log_tpr, -xp.inf))
    # where every candidate has TPR 0, k and j point anywhere
    chord = inside[k] & (~stricter[j] | (tpr >= p.log_tpr[j]))
    log_tpr = xp.where(chord, tpr, xp.where(stricter[j], p.log_tpr[j], -xp.inf))
    log_beta = xp.where(chord, beta, xp.where(stricter[j], p.log_beta[j], 0.0))
    # rejecting when a test does, with probability α/α_k, has TPR_k·α/α_k; guessing at random is always possible
    laxer = p.used & (p.log_alpha >= log_fpr) & (p.log_alpha > -xp.inf)
    partly = xp.max(xp.where(laxer, p.log_tpr + (log_fpr - p.log_alpha), log_fpr))
    partly = xp.minimum(xp.maximum(partly, log_fpr), 0.0)
    better = partly > log_tpr
    return xp.where(better, partly, log_tpr), xp.where(better, log1mexp(partly), log_beta)


def _chord_to_end(p: Points, log_fpr):
    """(log TPR, log β) at one FPR of the chord from the strictest test above it to the last point, at α = 0."""
    above = p.used & (p.log_alpha > log_fpr)
    k = argmax(xp.where(above, -p.log_alpha, -xp.inf))
    share = xp.exp(xp.where(above[k], log_fpr - p.log_alpha[k], 0.0))
    mix = lambda x: xp.logaddexp(x[k] + safe_log(share), x[-1] + safe_log(1.0 - share))  # noqa: E731
    usable = above[k] & p.used[-1] & (p.log_alpha[-1] == -xp.inf)
    return xp.where(usable, mix(p.log_tpr), -xp.inf), xp.where(usable, mix(p.log_beta), 0.0)


def _tests(p: Points, number: int) -> Points:
    """So many of an attack's tests, spread evenly over the used ones: any of them will do."""
    last = p.used.shape[0] - 1
    first, last = argmax(p.used), last - argmax(p.used[::-1])
    chosen = first + ((last - first) * xp.linspace(0.0, 1.0, min(p.used.shape[0], number))).astype(int)
    return jax.tree.map(lambda a: a[chosen], p)


def _lower_rates(p: Points, tests: Points, log_floor):
    """Rates an attack achieves at which μ is evaluated: its tests, and chords between neighbours at the floor."""
    log_tpr, log_beta = tpr_chord(p, log_floor)
    end_tpr, end_beta = _chord_to_end(p, log_floor)
    better = end_tpr > log_tpr
    log_tpr, log_beta = xp.where(better, end_tpr, log_tpr), xp.where(better, end_beta, log_beta)
    return _with(tests, (log_floor, log_tpr, log_beta))


def _lower(tests: Points, z_alpha, z_tpr, log_floor, z_floor):
    """Largest μ that the attack shows over the range of rates, from the quantiles of ``_lower_rates``."""
    weaker = _difference(xp.maximum(z_alpha, z_floor), xp.minimum(z_tpr, -z_floor), -1.0)
    visible = xp.max(xp.where(xp.append(tests.used, True), weaker, -xp.inf))
    both = tests.used & (tests.log_alpha <= log_floor) & (tests.log_beta <= log_floor)
    plain = _difference(z_alpha[:-1], z_tpr[:-1], -1.0)
    return xp.maximum(visible, xp.max(xp.where(both, plain, -xp.inf)))


def mu(curve: Curve, log_floor) -> Bracket:
    """μ*(floor) = max Φ⁻¹(1 − α) − Φ⁻¹(β) over the curve's FPRs between the floor and f(floor) (Gomez 2025, Eq. 11).

    That is, over error rates that are both at least the floor (or both at most, where privacy is so weak that
    f(floor) lies below it). The mirrored curve has the same μ, so all adjacencies share this number. Never
    more than √Σ T/σ², the limit as the floor goes to 0, and never less than that of the exactly Gaussian parts.
    """
    z_floor = ndtri_exp(log_floor)
    above, below = (
        both_sides(*sides) for sides in ((curve.upper_plus, curve.upper_minus), (curve.lower_plus, curve.lower_minus))
    )
    dominating, attack = xp.vmap(points)(above), xp.vmap(points)(below)
    # μ changes slowly along a smooth curve, but not between two atoms of the loss
    number = _TESTS * below.used.shape[1] if below.top is None else attack.used.shape[1]
    tests = xp.vmap(lambda p: _tests(p, number))(attack)
    rates = (
        xp.vmap(lambda p: _upper_rates(p, log_floor))(dominating),
        xp.vmap(lambda p, some: _lower_rates(p, some, log_floor))(attack, tests),
    )
    z_alpha, z_tpr = _quantiles(*(xp.concatenate(column, axis=1) for column in zip(*rates, strict=True)))
    end = rates[0][0].shape[1]
    upper = xp.max(
        xp.vmap(lambda p, a, t: _upper(p, a, t, log_floor, z_floor))(dominating, z_alpha[:, :end], z_tpr[:, :end])
    )
    shown = xp.max(
        xp.vmap(lambda p, a, t: _lower(p, a, t, log_floor, z_floor))(tests, z_alpha[:, end:], z_tpr[:, end:])
    )

    def matters(log_alpha, log_tpr, log_beta):
        return (log_alpha >= log_floor) | (log_beta <= log_floor)

    upper = upper + xp.max(xp.vmap(lambda v: _gaps(v, matters))(above))
    cap = curve.tail_mu * (1.0 + 1e-14)
    upper = xp.maximum(xp.minimum(upper, cap), 0.0)
    shown = xp.maximum(shown, curve.shown_mu * (1.0 - 1e-14))
    # sides that contradict each other by more than rounding vouch for nothing
    sound = ~(shown > upper * (1.0 + _CONTRADICTION) + 1e-14)
    return Bracket(xp.where(sound, xp.clip(shown, 0.0, upper), 0.0), xp.where(sound, upper, xp.inf))


def _gaps(v: Vertices, matters, log_rest: Any = 0.0):
    """What μ may exceed that of all vertices by, in gaps between the FPRs that one piece and the next one reach.

    TPR is no more there than at the gap's upper end α₁, so μ is no more than there plus Φ⁻¹(α₁) − Φ⁻¹(α₂). Where pieces
    overlap, there are none; on a plateau between two atoms of the loss, there is rounding. ``matters`` tells from the rates at
    the upper end whether a gap lies within the range asked for.
    """
    if v.log_alpha.shape[0] == 1:
        return xp.zeros(())
    top = xp.max(xp.where(v.used, v.log_alpha, -xp.inf), axis=-1)[1:]
    k = xp.argmin(xp.where(v.used, v.log_alpha, xp.inf), axis=-1)[:-1, None]
    rates = (xp.take_along_axis(a[:-1], k, -1)[:, 0] for a in (v.log_alpha, v.log_tpr, v.log_beta))
    bottom, log_tpr, log_beta = (xp.where(xp.any(v.used[:-1], axis=-1), a, 0.0) for a in rates)
    gap = ~(top >= bottom) & matters(bottom, log_tpr, log_beta)
    ends = xp.stack([xp.where(gap, bottom, -1.0), xp.where(gap, top, -1.0)])
    z = ndtri_exp(xp.minimum(ends - log_rest, 0.0))
    return xp.max(xp.where(gap, z[0] - z[1] + 2.0 * _Z_ROUNDOFF * xp.abs(z[1]), 0.0))


def approximate_mu(curve: Curve, log_d) -> Bracket:
    """d-approximate μ: the smallest μ with f(α) ≥ (1 − d)·f_μ(α/(1 − d)) for all α, that is δ(ε) ≤ d + (1 − d)·δ_μ(ε).

    The maximum of Φ⁻¹((TPR − d)/(1 − d)) − Φ⁻¹(α/(1 − d)) over the vertices where TPR > d. It composes as √Σμ²
    with 1 − Π(1 − d_i).
    """
    log_rest = log1mexp(log_d)

    def best(p: Points, sign):
        excess = xp.where(p.log_tpr > log_d, p.log_tpr + log1mexp(xp.minimum(log_d - p.log_tpr, 0.0)), -xp.inf)
        tpr, beta = xp.minimum(excess - log_rest, 0.0), xp.minimum(p.log_beta - log_rest, 0.0)
        value = _difference(*_quantiles(p.log_alpha - log_rest, tpr, beta), sign)
        return xp.max(xp.where(p.used & (p.log_tpr > limit(p)), value, -xp.inf))

    def limit(p: Points):
        # mass at +∞ that equals d but for its own rounding counts as d
        return xp.where(p.log_alpha == -xp.inf, log_d + _ROUNDOFF, log_d)

    def upper(p: Points):
        reached = xp.any(p.used & (p.log_tpr <= limit(p)))
        return xp.where(reached, best(p, 1.0), xp.inf)

    above, below = (
        both_sides(*sides) for sides in ((curve.upper_plus, curve.upper_minus), (curve.lower_plus, curve.lower_minus))
    )
    high = xp.max(xp.vmap(lambda side: upper(points(side)))(above))

    def matters(log_alpha, log_tpr, log_beta):
        return log_tpr > log_d

    high = high + xp.max(xp.vmap(lambda side: _gaps(side, matters, log_rest))(above))
    low = xp.max(xp.vmap(lambda side: best(path(side), -1.0))(below))
    high = xp.maximum(xp.minimum(high, curve.tail_mu * (1.0 + 1e-14)), 0.0)
    return Bracket(xp.clip(low, 0.0, high), high)
