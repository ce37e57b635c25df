"""The rates that an attacker can reach: TPR and FNR at a given FPR, from both sides of a curve."""

from __future__ import annotations

import functools

import numpy as np

from ...accounting.certify.curve import (
    Curve,
    Points,
    log_delta_at,
    log_intercept,
    log_one_minus_delta_at,
    path,
    points,
    safe_log1m,
)
from ...accounting.certify.vertices import Vertices
from ...bracket import Bracket
from ...numerics import namespace as xp
from ...numerics.errors import LOGS
from ...numerics.normal import argmax, log1mexp, log_error
from ...numerics.once import once
from ...numerics.shapes import Array
from . import unsampled
from .chords import tpr_chord


@once
def _lines(p: Points, others: tuple[Vertices, ...]):
    """Supporting lines of a half-curve at its own thresholds: ε, log δ(ε), log(1 − δ(ε)).

    ``others`` are half-curves that must be dominated too; at each ε the larger δ counts.
    """
    epsilon = xp.maximum(p.low, 0.0)
    log_delta = log_intercept(epsilon, p.log_alpha, p.log_tpr)
    log_one_minus_delta = xp.logaddexp(p.log_beta, epsilon + p.log_alpha)
    log_one_minus_delta = log_one_minus_delta - log_error(log_one_minus_delta, epsilon, p.log_alpha)
    for other in others:
        rival = log_delta_at(other, epsilon)
        log_one_minus_delta = xp.minimum(
            log_one_minus_delta, log_one_minus_delta_at(other, epsilon)
        )
        log_delta = xp.maximum(log_delta, rival)
    usable = p.used & (p.low >= -1e-12)
    return epsilon, log_delta, log_one_minus_delta, usable


def _certified(
    upper_lines: tuple[Array, ...], lower_lines: tuple[Array, ...], log_fpr: Array
) -> tuple[Array, Array]:
    """(log TPR, log β) no attacker can beat at one FPR.

    Slopes above one: TPR ≤ δ + e^ε·α. Slopes below one: β ≥ e^{−ε}·(1 − δ − α).
    """
    epsilon, log_delta, log_one_minus_delta, usable = upper_lines
    log_tpr = xp.min(xp.where(usable, xp.logaddexp(log_delta, epsilon + log_fpr), 0.0))
    # (next to FPR 1 a rest is a difference of what is nearly equal: it is as small as its rounding
    # allows)
    ratio = xp.minimum(epsilon + log_fpr - log_one_minus_delta + log_error(epsilon, log_fpr), 0.0)
    log_beta = xp.max(xp.where(usable, log_one_minus_delta + safe_log1m(ratio), -xp.inf))
    epsilon, log_delta, log_one_minus_delta, usable = lower_lines
    mirrored = (
        log_one_minus_delta
        + safe_log1m(xp.minimum(log_fpr - log_one_minus_delta + log_error(log_fpr), 0.0))
        - epsilon
    )
    log_beta = xp.maximum(log_beta, xp.max(xp.where(usable, mirrored, -xp.inf)))
    # each rate also bounds the other; next to 1 the log of a TPR is as small as its rounding, which
    # 1 − TPR must not take for an FNR
    log_tpr = xp.minimum(log_tpr + log_error(log_tpr, log_fpr), 0.0)
    log_beta = xp.maximum(log_beta, safe_log1m(log_tpr))
    log_beta = log_beta - log_error(log_beta)
    log_tpr = xp.minimum(log_tpr, log1mexp(log_beta - log_error(log_beta)))
    return log_tpr, log_beta


@once
def _mirror(p: Points) -> Points:
    """The attack against the swapped pair: error rates change places."""
    return Points(
        -p.high[::-1],
        -p.low[::-1],
        p.log_beta[::-1],
        log1mexp(p.log_alpha)[::-1],
        p.log_alpha[::-1],
        p.used[::-1],
    )


@once
def _middle(one: Points, other: Points) -> Points:
    """The test of two half-curves that gains most over guessing, and it mirrored: between these
    two the envelope of both orders has the slope −1.
    """
    rows = Points(*(xp.concatenate([a, b]) for a, b in zip(one, other, strict=True)))
    missed = xp.exp(rows.log_alpha) + xp.exp(rows.log_beta)
    k = argmax(xp.where(rows.used, -missed, -xp.inf))
    test = Points(*(a[k][None] for a in rows))
    both = Points(*(xp.concatenate(pair) for pair in zip(_mirror(test), test, strict=True)))
    # (tests are in the order of falling FPRs)
    first = xp.where(both.log_alpha[0] >= both.log_alpha[1], 0, 1)
    return Points(*(a[xp.stack([first, 1 - first])] for a in both))


@once
def error_rates(curve: Curve, log_fpr: Array, *, symmetric: bool) -> tuple[Bracket, Bracket]:
    """log TPR and log FNR at one FPR, each a bracket.

    The upper TPR and the lower FNR belong to the dominating pair; the other sides are achieved by
    the attack.

    Method: docs/method/adjacency.md#symmetrisation
    Method: docs/method/reading.md#lines
    """
    plus, minus = points(curve.upper_plus), points(curve.upper_minus)
    if symmetric:
        lines = _lines(plus, (curve.upper_minus,))
        tpr_high, beta_low = _certified(lines, lines, log_fpr)
    else:
        tpr_high, beta_low = _certified(_lines(plus, ()), _lines(minus, ()), log_fpr)
    # never more than without subsampling
    tpr_most, beta_least = unsampled.error_rates(log_fpr, curve.tail_mu, 1.0)
    tpr_high, beta_low = _together(
        xp.minimum(tpr_high, tpr_most), xp.maximum(beta_low, beta_least), 1.0
    )

    attack, other = path(curve.lower_plus), path(curve.lower_minus)
    candidates = [tpr_chord(attack, log_fpr), tpr_chord(_mirror(other), log_fpr)]
    if symmetric:
        candidates += [tpr_chord(other, log_fpr), tpr_chord(_mirror(attack), log_fpr)]
        candidates += [tpr_chord(_middle(attack, other), log_fpr)]
    tpr_shown, beta_shown = unsampled.error_rates(log_fpr, curve.gaussian_part_mu, -1.0)
    tpr_low, beta_high = (
        xp.max(xp.stack([c[0] for c in candidates])),
        xp.min(xp.stack([c[1] for c in candidates])),
    )
    tpr_low = xp.maximum(tpr_low - log_error(tpr_low, log_fpr), tpr_shown)
    beta_high = xp.minimum(xp.minimum(beta_high + log_error(beta_high), 0.0), beta_shown)
    tpr_low, beta_high = _together(tpr_low, beta_high, -1.0)
    # (a TPR whose log is no double is still below 1)
    tpr_low = xp.minimum(tpr_low, -np.finfo(float).tiny)
    return Bracket(tpr_low, tpr_high), Bracket(beta_low, beta_high)


def _together(log_tpr: Array, log_beta: Array, side: float) -> tuple[Array, Array]:
    """Bounds on both rates (TPR from above for side 1.0, from below for −1.0), each with the help
    of the other: next to 1 a rate has lost the digits of its log, and the other has them all."""
    tpr, beta = log1mexp(log_beta) * (1.0 - side * LOGS), log1mexp(log_tpr) * (1.0 + side * LOGS)
    if side > 0.0:
        return xp.minimum(log_tpr, tpr), xp.maximum(log_beta, beta)
    return xp.maximum(log_tpr, tpr), xp.minimum(log_beta, beta)


def threshold_of_fpr(
    curve: Curve, log_fpr: Array, found: Bracket | None = None, *, symmetric: bool
) -> Array:
    """|ℓ| at which the dominating pair has an FPR, interpolated log-linearly: an estimate.

    FPRs from the curve's middle on belong to slopes below one, the mirrored half: there the FPR of
    one order is the FNR of the other. Of both orders the one counts whose losses are larger there.
    """
    plus, minus = points(curve.upper_plus), points(curve.upper_minus)
    right, left = ((plus, minus), (plus, minus)) if symmetric else ((plus,), (minus,))
    found_at = [_crossing(p, p.log_alpha, log_fpr) for p in right]
    found_at += [_crossing(p, -p.log_beta, -log_fpr) for p in left]
    return functools.reduce(xp.maximum, found_at, xp.zeros(()))


def _crossing(p: Points, falling: Array, value: Array) -> Array:
    """Threshold at which a rate that falls along the vertices has a value; 0 where it starts below,
    the last where it ends above.
    """
    rate = xp.maximum(falling, -1e300)
    before = p.used & (rate >= value)
    start = xp.max(xp.where(before, p.low, 0.0))
    after = p.used & (rate <= value) & (p.low >= start)
    end = xp.min(xp.where(after, p.low, xp.inf))
    high = xp.min(xp.where(before & (p.low >= start), rate, xp.inf))
    low = xp.max(xp.where(after & (p.low <= end), rate, -xp.inf))
    inside = xp.isfinite(end) & xp.isfinite(high) & xp.isfinite(low) & (high > low)
    share = xp.where(inside, (high - value) / xp.where(inside, high - low, 1.0), 0.0)
    return start + xp.where(inside, share * (xp.where(inside, end, 0.0) - start), 0.0)
