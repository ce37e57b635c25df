"""Closed forms on both sides of a curve: Gaussian curves that it provably lies between.

No curve falls below that of the whole mechanism without subsampling (``Curve.tail_mu``), and none rises above that of the parts that
are exactly Gaussian (``Curve.shown_mu``), which an attacker can look at alone. Every function takes the GDP parameter of
such a curve and the side on which its rounding has to fall: 1.0 for above, −1.0 for below.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from ..normal import log_gaussian_delta, log_ndtr, ndtri_exp

_HALVINGS = 64
RISK_ERROR = 2e-14  # of ``bayes_risk``, absolute


def log_delta(epsilon, mu, side):
    """log δ_μ(ε) for ε ≥ 0, moved by its rounding error: for small μ it is a difference of nearly equal Mills ratios."""
    some = (mu > 0.0) & jnp.isfinite(mu)
    positive = jnp.where(some, mu, 1.0)
    error = 1e-12 + 4e-15 * (1.0 + epsilon / positive) / positive
    value = log_gaussian_delta(epsilon, positive) + side * error
    return jnp.where(some, value, jnp.where(mu > 0.0, 0.0, -jnp.inf))


def epsilon(log_d, mu, side):
    """ε with δ_μ(ε) = δ, by bisection; 0 where δ_μ(0) ≤ δ, and ∞ where μ is."""
    known = jnp.isfinite(mu)
    finite = jnp.where(known, mu, 1.0)
    top = finite * (finite / 2.0 + jnp.sqrt(jnp.maximum(-2.0 * log_d, 0.0)) + 1.0)

    def halve(_, ends):
        low, high = ends
        middle = 0.5 * (low + high)
        above = log_delta(middle, finite, side) > log_d
        return jnp.where(above, middle, low), jnp.where(above, high, middle)

    low, high = jax.lax.fori_loop(0, _HALVINGS, halve, (jnp.zeros_like(top), top))
    return jnp.where(known, jnp.where(side > 0.0, high, low), jnp.inf)


def error_rates(log_fpr, mu, side):
    """(log TPR, log FNR) at one FPR on the curve of μ: TPR moved towards ``side``, FNR away from it."""
    known = jnp.isfinite(mu)
    quantile, moved = ndtri_exp(log_fpr), jnp.where(known, mu, 0.0)
    z = -quantile - moved
    # the quantile's rounding (1e-14), seen through the log of a tail, and that of the log itself
    size = jnp.minimum(jnp.abs(z), 1e100)
    slack = 1e-12 + 2e-14 * (size + 1.0) * (size + jnp.minimum(jnp.abs(quantile), 1e100) + moved)
    log_tpr = jnp.where(known, log_ndtr(-z) + side * slack, 0.0)
    log_beta = jnp.where(known, log_ndtr(z) - side * slack, -jnp.inf)
    return jnp.minimum(log_tpr, 0.0), jnp.minimum(log_beta, 0.0)


def bayes_risk(prior, mu):
    """min over α of π·α + (1 − π)·f_μ(α), to ``RISK_ERROR``; π is the prior probability that the record is absent."""
    some = (mu > 0.0) & jnp.isfinite(mu) & (prior > 0.0) & (prior < 1.0)
    positive, inside = jnp.where(some, mu, 1.0), jnp.where(some, prior, 0.5)
    threshold = (jnp.log(inside) - jnp.log1p(-inside)) / positive
    log_alpha, log_beta = (log_ndtr(-sign * threshold - 0.5 * positive) for sign in (1.0, -1.0))
    risk = inside * jnp.exp(log_alpha) + (1.0 - inside) * jnp.exp(log_beta)
    return jnp.where(some, risk, jnp.where(jnp.isfinite(mu), jnp.minimum(prior, 1.0 - prior), 0.0))
