"""Tests raised to what tests chosen at random between others reach: chords of the hull of all."""

from __future__ import annotations

import math

import numpy as np

from ...numerics.errors import LOGS
from ...numerics.normal import log1mexp, log_error
from ...numerics.shapes import Array

_MARGIN = 8.0  # times what the logs of a share may be off, by which it is taken down
_APART = 1e-9  # least difference of logs of FPRs of which a share is taken


def raised(log_alpha: Array, log_tpr: Array, log_beta: Array) -> tuple[Array, Array, Array]:
    """The rates of tests, each at least those of a test that is chosen at random from two others.

    With the probability λ it is the one of the larger FPR, where λ is no more than leaves the FPR
    as it was. Which two are taken steers only.

    Args:
        log_alpha: logs of FPRs, falling.
        log_tpr, log_beta: logs of TPRs from below, and of FNRs from above.

    Method: docs/method/limit.md#mixed-tests
    """
    # (from the test that never accuses anybody to the one that always does)
    alpha = np.concatenate([[-np.inf], log_alpha[::-1], [0.0]])
    tpr = np.concatenate([[-np.inf], log_tpr[::-1], [0.0]])
    beta = np.concatenate([[0.0], log_beta[::-1], [-np.inf]])
    hull = np.array(_hull(alpha.tolist(), tpr.tolist(), beta.tolist()))
    every = np.arange(len(alpha))
    place = np.clip(np.searchsorted(hull, every, side="right"), 1, len(hull) - 1)
    i, j = hull[place - 1], hull[place]
    with np.errstate(all="ignore"):
        gap = np.minimum(alpha - alpha[i], alpha[j] - alpha[i])
        # λ = (α − α_i)/(α_j − α_i); what α_i is rounded by matters as far as α_i does
        off = log_error(alpha, alpha[j]) + log_error(alpha, alpha[i], alpha[j]) / np.expm1(gap)
        share = log1mexp(alpha[i] - alpha) - log1mexp(alpha[i] - alpha[j])
        share = alpha - alpha[j] + share - _MARGIN * off
        mixed = (gap > _APART) & (alpha[j] > alpha) & np.isfinite(share)
        share = np.where(mixed, np.minimum(share, 0.0), -np.inf)
        other = log1mexp(share)
        seen = np.logaddexp(other + tpr[i], share + tpr[j])
        missed = np.logaddexp(other + beta[i], share + beta[j])
        seen = seen - log_error(seen, share) - LOGS
        missed = np.minimum(missed + log_error(missed, share) + LOGS, 0.0)
    tpr = np.where(mixed, np.fmax(tpr, seen), tpr)
    beta = np.where(mixed, np.fmin(beta, missed), beta)
    return log_alpha, tpr[1:-1][::-1], beta[1:-1][::-1]


def _hull(alpha: list[float], tpr: list[float], beta: list[float]) -> list[int]:
    """Places of the concave hull of (FPR, TPR), nearly."""
    kept: list[int] = []
    slopes: list[float] = []  # from each place that is kept to the next one
    for k in range(len(alpha)):
        while kept:
            i = kept[-1]
            gain = _log_difference(tpr[k], tpr[i])
            if max(tpr[i], tpr[k]) > max(beta[i], beta[k]):
                gain = _log_difference(beta[i], beta[k])
            slope = gain - _log_difference(alpha[k], alpha[i])
            slope = math.inf if math.isnan(slope) else slope
            if not slopes or slope < slopes[-1]:
                slopes.append(slope)
                break
            kept.pop()
            slopes.pop()
        kept.append(k)
    return kept


def _log_difference(high: float, low: float) -> float:
    """log(e^high − e^low), −∞ where it is none."""
    if not high > low:
        return -math.inf
    if low == -math.inf:
        return high
    return high + math.log(-math.expm1(low - high))
