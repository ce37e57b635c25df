"""The curve of the Laplace mechanism (Dong et al. 2022, Section 4.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...bracket import Bracket
from ...numerics.errors import QUANTILE
from ...numerics.normal import ndtri_half_plus
from ...numerics.shapes import Array
from .base import KnownCurve, Middle, Rates, Tests, log1mexp, opened, together

_LOG_HALF = -0.6931471805599453


@dataclass(frozen=True)
class LaplaceCurve(KnownCurve):
    """Lap(0, b) against Lap(1, b), with L = 1/b its largest loss.

    δ(ε) = 1 − e^{−(L − ε)/2} for ε ≤ L. TPR is e^L·α up to α = e^{−L}/2, 1 − e^{−L}/(4α) up to α =
    ½, and 1 − e^{−L}(1 − α) beyond.

    Attributes:
        low, high: bounds on L, apart by its rounding.
    """

    low: Array
    high: Array

    def log_delta(self, order: int, epsilon: Array) -> Bracket:
        """log δ(ε), which grows with L."""
        with np.errstate(divide="ignore"):
            below, above = (
                opened(np.log(-np.expm1(np.minimum(0.5 * (epsilon - end), 0.0))))
                for end in (self.low, self.high)
            )
        return Bracket(below.lower, above.upper)

    def log_one_minus_delta(self, order: int, epsilon: Array) -> Bracket:
        """log(1 − δ(ε)) = (ε − L)/2."""
        below, above = (
            opened(np.minimum(0.5 * (epsilon - end), 0.0)) for end in (self.high, self.low)
        )
        return Bracket(below.lower, above.upper)

    def rates(self, orders: Sequence[int], log_fpr: Array) -> Rates:
        """The three pieces of the curve, whatever the order."""
        below, above = self._rates(log_fpr, self.low), self._rates(log_fpr, self.high)
        return together(
            Rates(
                Bracket(opened(below[0]).lower, opened(above[0]).upper),
                Bracket(opened(above[1]).lower, opened(below[1]).upper),
            )
        )

    def _rates(self, log_fpr: Array, largest: Array) -> tuple[Array, Array]:
        """log TPR and log FNR."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            rest = np.log(-np.expm1(log_fpr))
            middle = -largest + 2.0 * _LOG_HALF - log_fpr
            first = log_fpr <= _LOG_HALF - largest
            last = log_fpr >= _LOG_HALF
            log_beta = np.where(last, rest - largest, np.minimum(middle, 0.0))
            log_tpr = np.where(
                first, log_fpr + largest, np.log1p(-np.exp(np.minimum(log_beta, 0.0)))
            )
            log_beta = np.where(first, np.log1p(-np.exp(np.minimum(log_tpr, 0.0))), log_beta)
        return np.minimum(log_tpr, 0.0), np.minimum(log_beta, 0.0)

    def mu(self, log_floor: Array) -> Bracket:
        """μ = 2Φ⁻¹(1 − e^{−L/2}/2), in the middle of the curve (Liu et al. 2022).

        There both error rates are equal, so every range of FPRs holds it.
        """
        sides = []
        for largest, sign in ((self.low, -1.0), (self.high, 1.0)):
            half = 0.5 * largest
            found = 2.0 * ndtri_half_plus(-0.5 * np.expm1(-half), _LOG_HALF - half)
            sides.append(found * (1.0 + 4.0 * sign * QUANTILE))
        low, high, _ = np.broadcast_arrays(*sides, log_floor)
        return Bracket(low, high)

    def tests(self, order: int, number: int) -> Tests:
        """Tests of equally far thresholds v from 0 to L: α = e^{−(L + v)/2}/2, β = e^{−(L −
        v)/2}/2.
        """
        v = np.linspace(0.0, self.low, number)
        apart = self.high - self.low
        log_alpha = opened(_LOG_HALF - 0.5 * (self.low + v), apart)
        log_beta = opened(_LOG_HALF - 0.5 * (self.low - v), apart)
        log_tpr = Bracket(
            opened(log1mexp(log_beta.upper)).lower, opened(log1mexp(log_beta.lower)).upper
        )
        return Tests(v, log_alpha, log_tpr, log_beta)

    def middle(self) -> Middle:
        """Both are log(e^{−L/2}/2)."""
        rate = opened(_LOG_HALF - 0.5 * self.low, self.high - self.low)
        return Middle(rate, rate)

    def mu_of_sample(self, log_p: Array, log_floor: Array) -> None:
        """No closed form: the largest μ of a sampled Laplace curve lies inside."""

    def largest_loss(self, order: int) -> Array:
        """L."""
        return np.asarray(self.high)
