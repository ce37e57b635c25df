"""Closed forms on both sides of a curve: Gaussian curves that it provably lies between.

No curve falls below that of the whole mechanism without subsampling (``Curve.tail_mu``), and none
rises above that of the parts that are exactly Gaussian (``Curve.gaussian_part_mu``), which an
attacker can use alone. Every function takes the GDP parameter of such a curve and the side on which
its rounding has to fall: 1.0 for above, −1.0 for below."""

from __future__ import annotations

from ...numerics import namespace as xp
from ...numerics.errors import CLOSED_LOG_DELTA, CLOSED_RATES
from ...numerics.normal import log_gaussian_delta, log_ndtr, ndtri_exp
from ...numerics.once import once
from ...numerics.shapes import Array

_PARTS, _ROUNDS = 33, 13  # so many parts in every round: 64 halvings in all


def log_delta(epsilon: Array, mu: Array | float, side: float) -> Array:
    """log δ_μ(ε) for ε ≥ 0, moved by its rounding error.

    Method: docs/method/reading.md#closed
    """
    some = (mu > 0.0) & xp.isfinite(mu)
    positive = xp.where(some, mu, 1.0)
    own, cancelled, spread = CLOSED_LOG_DELTA
    # (of a small μ, how far apart the slopes are that it lies between)
    error = own + xp.minimum(
        cancelled * (1.0 + epsilon / positive) / positive, spread + 4.0 * positive
    )
    value = log_gaussian_delta(epsilon, positive) + side * error
    return xp.where(some, value, xp.where(mu > 0.0, 0.0, -xp.inf))


@once
def epsilon(
    log_d: Array, mu: Array | float, side: float, most: Array | float = float("inf")
) -> Array:
    """ε with δ_μ(ε) = δ, by a search in equal parts; 0 where δ_μ(0) ≤ δ, and ∞ where μ is, or where
    it is not certainly below ``most``, so that nobody needs it.
    """
    known = xp.isfinite(mu)
    bounded = known & xp.isfinite(most)
    at = xp.where(bounded, most, 0.0)
    known = known & ~(bounded & (log_delta(at, xp.where(known, mu, 1.0), side) > log_d))
    finite = xp.where(known, mu, 1.0)
    top = finite * (finite / 2.0 + xp.sqrt(xp.maximum(-2.0 * log_d, 0.0)) + 1.0)
    top = xp.where(known, top, 0.0)

    share = xp.arange(1.0, _PARTS) / _PARTS

    def narrow(_, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = ends
        at = low[..., None] + (high - low)[..., None] * share
        within = ~(log_delta(at, finite, side) > log_d)
        # the first point that is certainly past the root, and the one before it
        first = xp.where(xp.any(within, axis=-1), xp.argmax(within, axis=-1), _PARTS - 1)
        ends = xp.concatenate([low[..., None], at, high[..., None]], axis=-1)
        take = lambda k: xp.take_along_axis(ends, k[..., None], -1)[..., 0]
        return take(first), take(first + 1)

    done = lambda ends: ends[1] <= ends[0]  # (as where no part is Gaussian)
    low, high = xp.fori_loop(0, _ROUNDS, narrow, (xp.zeros_like(top), top), done)
    return xp.where(known, xp.where(side > 0.0, high, low), xp.inf)


def error_rates(log_fpr: Array, mu: Array | float, side: float) -> tuple[Array, Array]:
    """(log TPR, log FNR) at one FPR on the curve of μ: TPR towards ``side``, FNR away.

    Method: docs/method/reading.md#closed
    """
    known = xp.isfinite(mu)
    quantile, moved = ndtri_exp(log_fpr), xp.where(known, mu, 0.0)
    z = -quantile - moved
    # the quantile's rounding (1e-14), seen through the log of a tail, and that of the log itself
    size = xp.minimum(xp.abs(z), 1e100)
    own, turned = CLOSED_RATES
    slack = own + turned * (size + 1.0) * (size + xp.minimum(xp.abs(quantile), 1e100) + moved)
    log_tpr = xp.where(known, log_ndtr(-z) + side * slack, 0.0)
    log_beta = xp.where(known, log_ndtr(z) - side * slack, -xp.inf)
    return xp.minimum(log_tpr, 0.0), xp.minimum(log_beta, 0.0)


def bayes_risk(prior: Array, mu: Array | float):
    """min over α of π·α + (1 − π)·f_μ(α), to ``errors.CLOSED_RISK``."""
    some = (mu > 0.0) & xp.isfinite(mu) & (prior > 0.0) & (prior < 1.0)
    positive, inside = xp.where(some, mu, 1.0), xp.where(some, prior, 0.5)
    threshold = (xp.log(inside) - xp.log1p(-inside)) / positive
    log_alpha, log_beta = (log_ndtr(-sign * threshold - 0.5 * positive) for sign in (1.0, -1.0))
    risk = inside * xp.exp(log_alpha) + (1.0 - inside) * xp.exp(log_beta)
    return xp.where(some, risk, xp.where(xp.isfinite(mu), xp.minimum(prior, 1.0 - prior), 0.0))
