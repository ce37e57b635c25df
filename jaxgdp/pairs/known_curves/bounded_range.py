"""The curve of one mechanism of bounded range (Dong, Durfee & Rogers 2020)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...bracket import Bracket
from ...numerics.errors import QUANTILE
from ...numerics.normal import ndtri_half_plus
from ...numerics.shapes import Array
from .base import KnownCurve, Rates, Tests, log1mexp, opened, together


@dataclass(frozen=True)
class BoundedRangeCurve(KnownCurve):
    """The worst of all pairs whose losses lie in some interval of length L.

    δ(ε) = (1 − e^{(ε − L)/2})²/(1 − e^{−L}) for ε ≤ L: an interval [t − L, t] reaches it at t = (L
    + ε)/2. The pair on its ends has the odds e^L·α/(1 − α) of a true positive, whatever t, and
    every α is that of some t.

    Attributes:
        low, high: bounds on L, apart by its rounding.
    """

    low: Array
    high: Array

    def log_delta(self, order: int, epsilon: Array) -> Bracket:
        """log δ(ε), which grows with L."""
        below, above = (self._log_delta(epsilon, end) for end in (self.low, self.high))
        return Bracket(below.lower, above.upper)

    def _log_delta(self, epsilon: Array, largest: Array) -> Bracket:
        some = np.asarray(largest) > 0.0
        half = np.minimum(0.5 * (epsilon - largest), 0.0)
        with np.errstate(divide="ignore"):
            found = 2.0 * np.log(-np.expm1(half)) - _log_rest(largest)
        return opened(np.where(some, found, -np.inf))

    def log_one_minus_delta(self, order: int, epsilon: Array) -> Bracket:
        """log of e^{(ε − L)/2}·((1 − e^{(ε − L)/2}) + (1 − e^{−(ε + L)/2}))/(1 − e^{−L})."""
        below, above = (self._log_one_minus(epsilon, end) for end in (self.high, self.low))
        return Bracket(below.lower, above.upper)

    def _log_one_minus(self, epsilon: Array, largest: Array) -> Bracket:
        less, more = np.minimum(0.5 * (epsilon - largest), 0.0), -0.5 * (epsilon + largest)
        with np.errstate(divide="ignore"):
            found = less + np.log(-np.expm1(less) - np.expm1(more)) - _log_rest(largest)
        return opened(np.where(less < 0.0, np.minimum(found, 0.0), 0.0))

    def rates(self, orders: Sequence[int], log_fpr: Array) -> Rates:
        """Odds of a true positive of e^L·α/(1 − α), whatever the order."""
        log_odds = log_fpr - log1mexp(log_fpr)
        low, high = log_odds + self.low, log_odds + self.high
        # (a log of odds is off by the rounding of its terms)
        room = 8.0 * (np.abs(log_fpr) + np.abs(self.high)) * np.finfo(float).eps
        tpr = Bracket(-_softplus(-low), -_softplus(-high))
        beta = Bracket(-_softplus(high), -_softplus(low))
        return together(
            Rates(
                *(
                    Bracket(opened(a.lower, room).lower, opened(a.upper, room).upper)
                    for a in (tpr, beta)
                )
            )
        )

    def mu(self, log_floor: Array) -> Bracket:
        """μ = −2Φ⁻¹(1/(1 + e^{L/2})), where both error rates are equal."""
        sides = []
        for largest, sign in ((self.low, -1.0), (self.high, 1.0)):
            half = 0.5 * largest
            found = 2.0 * ndtri_half_plus(0.5 * np.tanh(0.5 * half), -_softplus(half))
            sides.append(found * (1.0 + 4.0 * sign * QUANTILE))
        low, high, _ = np.broadcast_arrays(*sides, log_floor)
        return Bracket(low, high)

    def tests(self, order: int, number: int) -> Tests:
        """Tests of equally far thresholds v from 0 to L: α = e^{−(L + v)/2}·(1 − e^{(v − L)/2})/(1
        − e^{−L}), and β the same at −v.
        """
        v = np.linspace(0.0, self.low, number)
        apart = self.high - self.low
        log_alpha, log_beta = (opened(self._log_rate(at), apart) for at in (v, -v))
        log_tpr = Bracket(
            opened(log1mexp(log_beta.upper)).lower, opened(log1mexp(log_beta.lower)).upper
        )
        return Tests(v, log_alpha, log_tpr, log_beta)

    def _log_rate(self, v: Array) -> Array:
        with np.errstate(divide="ignore"):
            beyond = np.log(-np.expm1(np.minimum(0.5 * (v - self.low), 0.0)))
        return beyond - 0.5 * (self.low + v) - _log_rest(self.low)

    def largest_loss(self, order: int) -> Array:
        """L."""
        return np.asarray(self.high)


def _log_rest(largest: Array) -> Array:
    """log(1 − e^{−L})."""
    with np.errstate(divide="ignore"):
        return np.log(-np.expm1(-np.asarray(largest)))


def _softplus(x: Array) -> Array:
    """log(1 + e^x)."""
    return np.logaddexp(0.0, x)
