"""Derivatives of Gaussian noise without subsampling, in closed form: every number is a function of
μ = √(Σ T/σ²) and of its argument.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from ..bracket import Bracket
from ..mechanisms import Composition, SubsampledGaussian
from ..numerics import namespace as xp
from ..numerics.normal import LOG_SQRT_2PI, log_ndtr, ndtri_exp
from ..numerics.shapes import Array
from ..quantities.base import Quantity


class Partials(NamedTuple):
    """Derivatives of a number in μ and in its argument."""

    by_mu: Array
    by_argument: Array


def _density(z: Array) -> Array:
    return xp.exp(-0.5 * z * z - LOG_SQRT_2PI)


def _delta(mu: Array, epsilon: Array, found: Bracket) -> Partials:
    """∂δ/∂μ = φ(μ/2 − ε/μ), ∂δ/∂ε = −e^ε·Φ(−μ/2 − ε/μ)."""
    ratio = epsilon / mu
    by_epsilon = -xp.exp(epsilon + log_ndtr(-0.5 * mu - ratio))
    return Partials(_density(0.5 * mu - ratio), by_epsilon)


def _advantage(mu: Array, argument: Array, found: Bracket) -> Partials:
    return Partials(_density(0.5 * mu), xp.zeros_like(mu))


def _epsilon(mu: Array, delta: Array, found: Bracket) -> Partials:
    """∂ε = (φ(a)·∂μ − ∂δ)/(e^ε·Φ(b)), as φ(a) = e^ε·φ(b); 0 where ε is."""
    epsilon = found.upper
    ratio = epsilon / mu
    below = -0.5 * mu - ratio
    by_mu = xp.exp(-0.5 * below * below - LOG_SQRT_2PI - log_ndtr(below))
    by_delta = -xp.exp(-epsilon - log_ndtr(below))
    some = epsilon > 0.0
    return Partials(xp.where(some, by_mu, 0.0), xp.where(some, by_delta, 0.0))


def _tpr(mu: Array, fpr: Array, found: Bracket) -> Partials:
    """TPR = Φ(Φ⁻¹(α) + μ)."""
    z = ndtri_exp(xp.log(fpr))
    steep = xp.exp(-mu * (z + 0.5 * mu))  # φ(z + μ)/φ(z)
    return Partials(_density(z + mu), steep)


def _beta(mu: Array, fpr: Array, found: Bracket) -> Partials:
    return Partials(*(-by for by in _tpr(mu, fpr, found)))


def _log_tpr(mu: Array, fpr: Array, found: Bracket) -> Partials:
    rest = xp.exp(-log_ndtr(ndtri_exp(xp.log(fpr)) + mu))
    return Partials(*(by * rest for by in _tpr(mu, fpr, found)))


def _log_beta(mu: Array, fpr: Array, found: Bracket) -> Partials:
    rest = xp.exp(-log_ndtr(-ndtri_exp(xp.log(fpr)) - mu))
    return Partials(*(-by * rest for by in _tpr(mu, fpr, found)))


def _bayes_risk(mu: Array, prior: Array, found: Bracket) -> Partials:
    """R = π·Φ(−o/μ − μ/2) + (1 − π)·Φ(o/μ − μ/2) with o = log(π/(1 − π)), at its least."""
    odds = xp.log(prior) - xp.log1p(-prior)
    alpha, beta = (xp.exp(log_ndtr(-0.5 * mu + sign * odds / mu)) for sign in (-1.0, 1.0))
    return Partials(-prior * _density(0.5 * mu + odds / mu), alpha - beta)


def _mu(mu: Array, floor: Array, found: Bracket) -> Partials:
    return Partials(xp.zeros_like(mu) + 1.0, xp.zeros_like(mu))


_PARTIALS: dict[str, Callable[[Array, Array, Bracket], Partials]] = {
    "mu": _mu,
    "delta": _delta,
    "advantage": _advantage,
    "epsilon": _epsilon,
    "tpr": _tpr,
    "beta": _beta,
    "log_tpr": _log_tpr,
    "log_beta": _log_beta,
    "bayes_risk": _bayes_risk,
}


def is_closed(asked: Quantity, paired: Composition) -> bool:
    """Whether a number has derivatives in closed form: known without what is traced."""

    def unsampled(part: Any) -> bool:
        step = part.canonical()
        if type(step) is not SubsampledGaussian or isinstance(step.sampling_prob, Tracer):
            return False
        return bool(np.all(np.asarray(step.sampling_prob) == 1.0))

    return asked.name in _PARTIALS and all(unsampled(part) for part in paired.mechanisms)


def with_partials(
    found: Bracket, asked: Quantity, paired: Composition, argument: Array | float
) -> Bracket:
    """A bracket, both of whose sides have the derivatives of the number itself.

    Method: docs/method/derivatives.md#gaussian-derivatives
    """
    number = jnp.zeros(paired.shape)
    for part, count in zip(paired.mechanisms, paired.counts, strict=True):
        step = part.canonical()
        number = number + jnp.asarray(count, float) / jnp.asarray(step.noise_multiplier) ** 2
    mu, argument = jnp.sqrt(number), jnp.asarray(argument, float)
    fixed_mu, fixed = jax.lax.stop_gradient((mu, argument))
    by = _PARTIALS[asked.name](fixed_mu, fixed, jax.lax.stop_gradient(found))
    zero = by.by_mu * (mu - fixed_mu) + by.by_argument * (argument - fixed)
    return Bracket(found.lower + zero, found.upper + zero)
