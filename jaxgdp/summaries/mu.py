"""μ*: the tight Gaussian-DP parameter over a stated range of error rates, and d-approximate μ."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from ..bracket import Bracket
from ..normal import argmax, log1mexp, log_sub, ndtri_exp, safe_log
from ..vertices import Vertices
from .curve import Curve, Points, both_sides, path, points, safe_log1m

_ROUNDOFF = 1e-12
_Z_ROUNDOFF = 1e-14  # relative error of a normal quantile, with room
_CONTRADICTION = 1e-9  # relative difference of the two sides that rounding may explain
_TESTS = 128  # tests of an attack whose μ is computed, per piece


def _quantiles(log_alpha, log_tpr, log_beta):
    """Φ⁻¹(α) and Φ⁻¹(TPR) of many points in one evaluation, TPR from the smaller of itself and FNR."""
    z_alpha, z = ndtri_exp(jnp.stack([log_alpha, jnp.minimum(log_tpr, log_beta)]))
    return z_alpha, jnp.where(log_tpr < log_beta, z, -z)


def _difference(z_alpha, z_tpr, sign):
    """μ = Φ⁻¹(TPR) − Φ⁻¹(α), moved by its rounding error in the direction of ``sign``."""
    value = z_tpr - z_alpha + sign * _Z_ROUNDOFF * (jnp.abs(z_tpr) + jnp.abs(z_alpha))
    value = jnp.where(jnp.isnan(value), -jnp.inf, value)
    # some TPR at FPR 0: no Gaussian curve allows that
    return jnp.where((z_alpha == -jnp.inf) & (z_tpr > -jnp.inf), jnp.inf, value)


def tpr_line(p: Points, log_fpr):
    """Upper bound on log TPR at one FPR: the lowest of the supporting lines with slopes e^{ℓ_k}."""
    log_delta = p.log_tpr + safe_log1m(jnp.minimum(p.low + p.log_alpha - jnp.maximum(p.log_tpr, -1e300), 0.0))
    value = jnp.logaddexp(log_delta, p.low + log_fpr)
    return jnp.min(jnp.where(p.used & ((p.log_tpr > -jnp.inf) | (p.log_alpha == -jnp.inf)), value, 0.0))


def _alpha_line(p: Points, log_fnr):
    """Lower bound on log α at one FNR: the highest of the supporting lines with slopes e^{ℓ_k}."""
    value = log_sub(jnp.logaddexp(p.log_alpha, p.log_beta - p.low), log_fnr - p.low)
    return jnp.max(jnp.where(p.used, value, -jnp.inf))


def _with(p: Points, *extra):
    """The rates of a row of points, followed by single (log α, log TPR, log β) points."""
    rows = (p.log_alpha, p.log_tpr, p.log_beta)
    return tuple(
        jnp.concatenate([row, jnp.stack(more)]) for row, more in zip(rows, zip(*extra, strict=True), strict=True)
    )


def _upper_rates(p: Points, log_floor):
    """Rates of a dominating half-curve at which μ is evaluated: its vertices, and both ends of the range of rates."""
    log_tpr = tpr_line(p, log_floor)
    at_fpr = (log_floor, log_tpr, log1mexp(log_tpr))
    at_fnr = (_alpha_line(p, log_floor), log1mexp(log_floor), log_floor)
    return _with(p, at_fpr, at_fnr)


def _upper(p: Points, z_alpha, z_tpr, log_floor, z_floor):
    """Largest μ of a dominating half-curve over the range of rates, from the quantiles of ``_upper_rates``."""
    clamped = _difference(jnp.maximum(z_alpha[:-2], z_floor), z_tpr[:-2], 1.0)
    everywhere = jnp.max(jnp.where(p.used, clamped, -jnp.inf))
    plain = _difference(z_alpha, z_tpr, 1.0)
    # the middle of the curve is provably above the floor, or it is not
    visible = jnp.max(jnp.where(p.used, p.log_alpha, -jnp.inf)) >= log_floor
    reached = jnp.min(p.log_alpha) <= log_floor
    shown = jnp.where(reached, jnp.maximum(everywhere, plain[-2]), jnp.inf)
    inside = p.used & (p.log_beta <= log_floor)
    mirrored = jnp.maximum(jnp.max(jnp.where(inside, plain[:-2], -jnp.inf)), plain[-1])
    covered = jnp.max(jnp.where(p.used, p.log_beta, -jnp.inf)) >= log_floor
    hidden = jnp.where(covered, jnp.maximum(mirrored, everywhere), jnp.inf)
    return jnp.where(visible, shown, hidden)


def tpr_chord(p: Points, log_fpr):
    """(log TPR, log β) that the attack achieves at one FPR: chords between consecutive tests, a stricter test, or a laxer
    one obeyed only part of the time."""
    a, b = p.log_alpha[:-1], p.log_alpha[1:]
    inside = (b <= log_fpr) & (log_fpr < a) & p.used[:-1] & p.used[1:]
    top = jnp.where(inside, a, 0.0)
    low = jnp.where(inside, b, -1.0)
    share = jnp.exp(log_fpr - top) - jnp.exp(low - top)
    share = jnp.clip(share / -jnp.expm1(low - top), 0.0, 1.0)
    mix = lambda x: jnp.logaddexp(x[:-1] + safe_log(share), x[1:] + safe_log(1.0 - share))  # noqa: E731
    k = argmax(jnp.where(inside, mix(p.log_tpr), -jnp.inf))
    tpr, beta = mix(p.log_tpr)[k], mix(p.log_beta)[k]
    stricter = p.used & (p.log_alpha <= log_fpr)
    j = argmax(jnp.where(stricter, p.log_tpr, -jnp.inf))
    # where every candidate has TPR 0, k and j point anywhere
    chord = inside[k] & (~stricter[j] | (tpr >= p.log_tpr[j]))
    log_tpr = jnp.where(chord, tpr, jnp.where(stricter[j], p.log_tpr[j], -jnp.inf))
    log_beta = jnp.where(chord, beta, jnp.where(stricter[j], p.log_beta[j], 0.0))
    # rejecting when a test does, with probability α/α_k, has TPR_k·α/α_k; guessing at random is always possible
    laxer = p.used & (p.log_alpha >= log_fpr) & (p.log_alpha > -jnp.inf)
    partly = jnp.max(jnp.where(laxer, p.log_tpr + (log_fpr - p.log_alpha), log_fpr))
    partly = jnp.minimum(jnp.maximum(partly, log_fpr), 0.0)
    better = partly > log_tpr
    return jnp.where(better, partly, log_tpr), jnp.where(better, log1mexp(partly), log_beta)


def _chord_to_end(p: Points, log_fpr):
    """(log TPR, log β) at one FPR of the chord from the strictest test above it to the last point, at α = 0."""
    above = p.used & (p.log_alpha > log_fpr)
    k = argmax(jnp.where(above, -p.log_alpha, -jnp.inf))
    share = jnp.exp(jnp.where(above[k], log_fpr - p.log_alpha[k], 0.0))
    mix = lambda x: jnp.logaddexp(x[k] + safe_log(share), x[-1] + safe_log(1.0 - share))  # noqa: E731
    usable = above[k] & p.used[-1] & (p.log_alpha[-1] == -jnp.inf)
    return jnp.where(usable, mix(p.log_tpr), -jnp.inf), jnp.where(usable, mix(p.log_beta), 0.0)


def _tests(p: Points, number: int) -> Points:
    """So many of an attack's tests, spread evenly over the used ones: any of them will do."""
    last = p.used.shape[0] - 1
    first, last = argmax(p.used), last - argmax(p.used[::-1])
    chosen = first + ((last - first) * jnp.linspace(0.0, 1.0, min(p.used.shape[0], number))).astype(int)
    return jax.tree.map(lambda a: a[chosen], p)


def _lower_rates(p: Points, tests: Points, log_floor):
    """Rates an attack achieves at which μ is evaluated: its tests, and chords between neighbours at the floor."""
    log_tpr, log_beta = tpr_chord(p, log_floor)
    end_tpr, end_beta = _chord_to_end(p, log_floor)
    better = end_tpr > log_tpr
    log_tpr, log_beta = jnp.where(better, end_tpr, log_tpr), jnp.where(better, end_beta, log_beta)
    return _with(tests, (log_floor, log_tpr, log_beta))


def _lower(tests: Points, z_alpha, z_tpr, log_floor, z_floor):
    """Largest μ that the attack shows over the range of rates, from the quantiles of ``_lower_rates``."""
    weaker = _difference(jnp.maximum(z_alpha, z_floor), jnp.minimum(z_tpr, -z_floor), -1.0)
    visible = jnp.max(jnp.where(jnp.append(tests.used, True), weaker, -jnp.inf))
    both = tests.used & (tests.log_alpha <= log_floor) & (tests.log_beta <= log_floor)
    plain = _difference(z_alpha[:-1], z_tpr[:-1], -1.0)
    return jnp.maximum(visible, jnp.max(jnp.where(both, plain, -jnp.inf)))


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
    dominating, attack = jax.vmap(points)(above), jax.vmap(points)(below)
    # μ changes slowly along a smooth curve, but not between two atoms of the loss
    number = _TESTS * below.used.shape[1] if below.top is None else attack.used.shape[1]
    tests = jax.vmap(lambda p: _tests(p, number))(attack)
    rates = (
        jax.vmap(lambda p: _upper_rates(p, log_floor))(dominating),
        jax.vmap(lambda p, some: _lower_rates(p, some, log_floor))(attack, tests),
    )
    z_alpha, z_tpr = _quantiles(*(jnp.concatenate(column, axis=1) for column in zip(*rates, strict=True)))
    end = rates[0][0].shape[1]
    upper = jnp.max(
        jax.vmap(lambda p, a, t: _upper(p, a, t, log_floor, z_floor))(dominating, z_alpha[:, :end], z_tpr[:, :end])
    )
    shown = jnp.max(
        jax.vmap(lambda p, a, t: _lower(p, a, t, log_floor, z_floor))(tests, z_alpha[:, end:], z_tpr[:, end:])
    )

    def matters(log_alpha, log_tpr, log_beta):
        return (log_alpha >= log_floor) | (log_beta <= log_floor)

    upper = upper + jnp.max(jax.vmap(lambda v: _gaps(v, matters))(above))
    cap = curve.tail_mu * (1.0 + 1e-14)
    upper = jnp.maximum(jnp.minimum(upper, cap), 0.0)
    shown = jnp.maximum(shown, curve.shown_mu * (1.0 - 1e-14))
    # sides that contradict each other by more than rounding vouch for nothing
    sound = ~(shown > upper * (1.0 + _CONTRADICTION) + 1e-14)
    return Bracket(jnp.where(sound, jnp.clip(shown, 0.0, upper), 0.0), jnp.where(sound, upper, jnp.inf))


def _gaps(v: Vertices, matters, log_rest: Any = 0.0):
    """What μ may exceed that of all vertices by, in gaps between the FPRs that one piece and the next one reach.

    TPR is no more there than at the gap's upper end α₁, so μ is no more than there plus Φ⁻¹(α₁) − Φ⁻¹(α₂). Where pieces
    overlap, there are none; on a plateau between two atoms of the loss, there is rounding. ``matters`` tells from the rates at
    the upper end whether a gap lies within the range asked for.
    """
    if v.log_alpha.shape[0] == 1:
        return jnp.zeros(())
    top = jnp.max(jnp.where(v.used, v.log_alpha, -jnp.inf), axis=-1)[1:]
    k = jnp.argmin(jnp.where(v.used, v.log_alpha, jnp.inf), axis=-1)[:-1, None]
    rates = (jnp.take_along_axis(a[:-1], k, -1)[:, 0] for a in (v.log_alpha, v.log_tpr, v.log_beta))
    bottom, log_tpr, log_beta = (jnp.where(jnp.any(v.used[:-1], axis=-1), a, 0.0) for a in rates)
    gap = ~(top >= bottom) & matters(bottom, log_tpr, log_beta)
    ends = jnp.stack([jnp.where(gap, bottom, -1.0), jnp.where(gap, top, -1.0)])
    z = ndtri_exp(jnp.minimum(ends - log_rest, 0.0))
    return jnp.max(jnp.where(gap, z[0] - z[1] + 2.0 * _Z_ROUNDOFF * jnp.abs(z[1]), 0.0))


def approximate_mu(curve: Curve, log_d) -> Bracket:
    """d-approximate μ: the smallest μ with f(α) ≥ (1 − d)·f_μ(α/(1 − d)) for all α, that is δ(ε) ≤ d + (1 − d)·δ_μ(ε).

    The maximum of Φ⁻¹((TPR − d)/(1 − d)) − Φ⁻¹(α/(1 − d)) over the vertices where TPR > d. It composes as √Σμ²
    with 1 − Π(1 − d_i).
    """
    log_rest = log1mexp(log_d)

    def best(p: Points, sign):
        excess = jnp.where(p.log_tpr > log_d, p.log_tpr + log1mexp(jnp.minimum(log_d - p.log_tpr, 0.0)), -jnp.inf)
        tpr, beta = jnp.minimum(excess - log_rest, 0.0), jnp.minimum(p.log_beta - log_rest, 0.0)
        value = _difference(*_quantiles(p.log_alpha - log_rest, tpr, beta), sign)
        return jnp.max(jnp.where(p.used & (p.log_tpr > limit(p)), value, -jnp.inf))

    def limit(p: Points):
        # mass at +∞ that equals d but for its own rounding counts as d
        return jnp.where(p.log_alpha == -jnp.inf, log_d + _ROUNDOFF, log_d)

    def upper(p: Points):
        reached = jnp.any(p.used & (p.log_tpr <= limit(p)))
        return jnp.where(reached, best(p, 1.0), jnp.inf)

    above, below = (
        both_sides(*sides) for sides in ((curve.upper_plus, curve.upper_minus), (curve.lower_plus, curve.lower_minus))
    )
    high = jnp.max(jax.vmap(lambda side: upper(points(side)))(above))

    def matters(log_alpha, log_tpr, log_beta):
        return log_tpr > log_d

    high = high + jnp.max(jax.vmap(lambda side: _gaps(side, matters, log_rest))(above))
    low = jnp.max(jax.vmap(lambda side: best(path(side), -1.0))(below))
    high = jnp.maximum(jnp.minimum(high, curve.tail_mu * (1.0 + 1e-14)), 0.0)
    return Bracket(jnp.clip(low, 0.0, high), high)
