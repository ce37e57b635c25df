"""The Gaussian curve f_μ, and normal probabilities with their rounding on both sides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...bracket import Bracket
from ...numerics import gaussian_profile
from ...numerics.errors import CLOSED_FORM, QUANTILE, QUANTILE_AT_ZERO, UNIT
from ...numerics.normal import log_ndtr, ndtri_exp
from ...numerics.shapes import Array
from .base import KnownCurve, Middle, Rates, Tests, opened, together
from .normal_gain import mu_of_share

_REACH = 39.0  # standard deviations beyond which every rate is below 1e-320


def quantile(log_rate: Array) -> Bracket:
    """Φ⁻¹(e^a), with its rounding."""
    z = ndtri_exp(np.asarray(log_rate, float))
    room = QUANTILE * np.abs(np.where(np.isfinite(z), z, 0.0)) + QUANTILE_AT_ZERO
    return Bracket(z - room, z + room)


def log_tail(z: Bracket) -> Bracket:
    """log Φ(z) of a bracketed z."""
    with np.errstate(divide="ignore", under="ignore", over="ignore"):
        return Bracket(opened(log_ndtr(z.lower)).lower, opened(log_ndtr(z.upper)).upper)


def shifted(z: Bracket, by: Bracket) -> Bracket:
    """z + μ, rounded outward."""
    low, high = z.lower + by.lower, z.upper + by.upper
    size = lambda a: 2.0 * UNIT * np.where(np.isfinite(a), np.abs(a), 0.0)
    return Bracket(low - size(low), high + size(high))


@dataclass(frozen=True)
class GaussianCurve(KnownCurve):
    """N(0, 1) against N(μ, 1): any composition of Gaussian mechanisms is one of these.

    Attributes:
        low, high: bounds on μ > 0, apart by its rounding.
    """

    low: Array
    high: Array

    def log_delta(self, order: int, epsilon: Array) -> Bracket:
        """log δ_μ(ε), which grows with μ."""
        with np.errstate(all="ignore"):
            epsilon, low, high = np.broadcast_arrays(epsilon, self.low, self.high)
            sides = (
                opened(gaussian_profile.log_delta(epsilon, m), CLOSED_FORM) for m in (low, high)
            )
            below, above = sides
        return Bracket(below.lower, above.upper)

    def log_one_minus_delta(self, order: int, epsilon: Array) -> Bracket:
        """log(1 − δ_μ(ε)), which falls with μ."""
        with np.errstate(all="ignore"):
            epsilon, low, high = np.broadcast_arrays(epsilon, self.low, self.high)
            sides = (
                opened(gaussian_profile.log_one_minus_delta(epsilon, m), CLOSED_FORM)
                for m in (high, low)
            )
            below, above = sides
        return Bracket(below.lower, above.upper)

    def rates(self, orders: Sequence[int], log_fpr: Array) -> Rates:
        """TPR = Φ(Φ⁻¹(α) + μ), whatever the order."""
        z = shifted(quantile(log_fpr), Bracket(self.low, self.high))
        return together(Rates(log_tail(z), log_tail(Bracket(-z.upper, -z.lower))))

    def mu(self, log_floor: Array) -> Bracket:
        """μ at every FPR."""
        low, high, _ = np.broadcast_arrays(self.low, self.high, log_floor)
        return Bracket(low, high)

    def tests(self, order: int, number: int) -> Tests:
        """Tests equally far apart in standard deviations: at u beyond the middle the threshold is
        u·μ, α = Φ(−μ/2 − u) and β = Φ(u − μ/2).
        """
        mu = 0.5 * (self.low + self.high)
        u = np.linspace(0.0, 0.5 * mu + _REACH, number)
        half = Bracket(0.5 * self.low, 0.5 * self.high)
        minus = lambda b: Bracket(-b.upper, -b.lower)
        log_alpha = log_tail(shifted(Bracket(-u, -u), minus(half)))
        log_tpr = log_tail(shifted(Bracket(-u, -u), half))
        log_beta = log_tail(shifted(Bracket(u, u), minus(half)))
        log_tpr, log_beta = together(Rates(log_tpr, log_beta))
        return Tests(u * mu, log_alpha, log_tpr, log_beta)

    def middle(self) -> Middle:
        """Both are log Φ(−μ/2)."""
        rate = log_tail(Bracket(-0.5 * self.high, -0.5 * self.low))
        return Middle(rate, rate)

    def mu_of_sample(self, log_p: Array, log_floor: Array) -> Bracket:
        """μ at an FPR of (1 − p)·N(0, 1) + p·N(μ, 1) against N(0, 1)."""
        return mu_of_share(quantile(log_floor), Bracket(self.low, self.high), log_p)
