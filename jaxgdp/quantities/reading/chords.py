"""The TPR that an attack achieves at one FPR, from its tests and mixtures of them, and the TPR that
no attack can exceed, from supporting lines.
"""

from __future__ import annotations

import jax

from ...accounting.certify.curve import Points, log_intercept
from ...numerics import namespace as xp
from ...numerics.errors import UNIT
from ...numerics.normal import argmax, log1mexp, log_error, log_sub, safe_log
from ...numerics.shapes import Array


def tpr_line(p: Points, log_fpr: Array) -> tuple[Array, Array]:
    """Upper bound on log TPR, lower on log β, at one FPR: the lowest supporting line.

    Next to 1 the log of a TPR is as small as its rounding, so β comes from lines of its own.

    Method: docs/method/mu.md#floor
    """
    value = xp.logaddexp(log_intercept(p.low, p.log_alpha, p.log_tpr), p.low + log_fpr)
    log_tpr = xp.min(
        xp.where(p.used & ((p.log_tpr > -xp.inf) | (p.log_alpha == -xp.inf)), value, 0.0)
    )
    log_tpr = xp.minimum(log_tpr + log_error(log_tpr, log_fpr), 0.0)
    whole = xp.logaddexp(p.log_beta, p.low + p.log_alpha)
    rest = log_sub(
        whole - log_error(whole, p.low, p.log_alpha), p.low + log_fpr + log_error(p.low, log_fpr)
    )
    log_beta = xp.max(xp.where(p.used, rest, -xp.inf))
    return log_tpr, xp.maximum(log1mexp(log_tpr), log_beta - log_error(log_beta))


def alpha_line(p: Points, log_fnr: Array) -> Array:
    """Lower bound on log α at one FNR: the highest of the supporting lines with slopes e^{ℓ_k}.

    Method: docs/method/mu.md#floor
    """
    whole = xp.logaddexp(p.log_alpha, p.log_beta - p.low)
    value = log_sub(
        whole - log_error(whole, p.low, p.log_beta), log_fnr - p.low + log_error(p.low, log_fnr)
    )
    log_alpha = xp.max(xp.where(p.used, value, -xp.inf))
    return log_alpha - log_error(log_alpha)


def tpr_chord(p: Points, log_fpr: Array) -> tuple[Array, Array]:
    """(log TPR, log β) that the attack achieves at one FPR: chords between consecutive tests, a
    stricter test, or a laxer one obeyed only part of the time.

    Method: docs/method/attack.md#labels
    """
    # (the FPR and those of the tests are known to a few units of their logs: one that is not
    # certainly stricter is laxer)
    own = log_error(log_fpr) - log_error()
    certain = p.log_alpha + own <= log_fpr
    inside = certain[1:] & ~certain[:-1] & p.used[:-1] & p.used[1:]
    # (FPRs fall along the tests but for where pieces overlap: the first chord across the FPR, and
    # the last)
    k = xp.stack([argmax(inside), inside.shape[0] - 1 - argmax(inside[::-1])])
    crossed = inside[k]
    top = xp.where(crossed, p.log_alpha[k], 0.0)
    low = xp.where(crossed, p.log_alpha[k + 1], -1.0)
    share = xp.exp(log_fpr - top) - xp.exp(low - top)
    # (a difference of rates, known to a few units: a little less of the laxer test has an FPR that
    # is certainly not above)
    size = own + log_error(top)
    share = xp.clip((share - size) / -xp.expm1(low - top) - 4.0 * UNIT, 0.0, 1.0)
    mix = lambda x: xp.logaddexp(x[k] + safe_log(share), x[k + 1] + safe_log(1.0 - share))
    # rejecting when a test does, with probability α/α_k, has TPR_k·α/α_k; guessing at random is
    # always possible
    stricter, laxer = p.used & certain, p.used & ~certain & (p.log_alpha > -xp.inf)
    partly = xp.max(xp.where(laxer, p.log_tpr + (log_fpr - p.log_alpha), log_fpr))
    partly = xp.minimum(xp.maximum(partly - own, log_fpr), 0.0)
    # (the best of each rate for itself: where all TPRs are 1 to the last digit only the FNRs tell
    # tests apart)
    log_tpr = (
        xp.max(xp.where(crossed, mix(p.log_tpr), -xp.inf)),
        xp.max(xp.where(stricter, p.log_tpr, -xp.inf)),
    )
    log_beta = (
        xp.min(xp.where(crossed, mix(p.log_beta), 0.0)),
        xp.min(xp.where(stricter, p.log_beta, 0.0)),
    )
    return xp.maximum(xp.maximum(*log_tpr), partly), xp.minimum(
        xp.minimum(*log_beta), log1mexp(partly - own)
    )


def chord_to_end(p: Points, log_fpr: Array) -> tuple[Array, Array]:
    """(log TPR, log β) at one FPR of the chord from the strictest test above to α = 0."""
    own = log_error(log_fpr)
    above = p.used & (p.log_alpha > log_fpr + own)
    k = argmax(xp.where(above, -p.log_alpha, -xp.inf))
    share = xp.maximum(xp.exp(xp.where(above[k], log_fpr - p.log_alpha[k], 0.0)) * (1.0 - own), 0.0)
    mix = lambda x: xp.logaddexp(x[k] + safe_log(share), x[-1] + safe_log(1.0 - share))
    usable = above[k] & p.used[-1] & (p.log_alpha[-1] == -xp.inf)
    return xp.where(usable, mix(p.log_tpr), -xp.inf), xp.where(usable, mix(p.log_beta), 0.0)


def alpha_chord(p: Points, log_fnr: Array) -> tuple[Array, Array]:
    """(log α, log TPR) that the attack achieves at one FNR, on a chord between two tests.

    The mirrored curve's :func:`tpr_chord`, of these two tests alone.

    Method: docs/method/mu.md#floor
    """
    within = p.used & (p.log_beta + log_error(log_fnr) <= log_fnr)
    last = within.shape[0] - 1 - argmax(within[::-1])
    beyond = p.used & (xp.arange(within.shape[0]) > last)
    two = xp.stack([xp.where(xp.any(beyond), argmax(beyond), last), last])
    log_alpha, log_beta = p.log_alpha[two], p.log_beta[two]
    used = xp.any(within) & p.used[two]
    log_tpr, log_alpha = tpr_chord(
        Points(p.low[two], p.high[two], log_beta, log1mexp(log_alpha), log_alpha, used), log_fnr
    )
    return log_alpha, log1mexp(log_fnr)


def some_tests(p: Points, number: int) -> Points:
    """So many of an attack's tests, spread evenly over the used ones: any of them will do."""
    last = p.used.shape[0] - 1
    first, last = argmax(p.used), last - argmax(p.used[::-1])
    chosen = first + ((last - first) * xp.linspace(0.0, 1.0, min(p.used.shape[0], number))).astype(
        int
    )
    return jax.tree.map(lambda a: a[chosen], p)
