"""Targets on the whole trade-off curve: μ, d-approximate μ, regret."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtr, ndtri

from .. import options
from ..deprecation import renamed_fields
from ..numerics.errors import CLOSED_FORM
from ..numerics.shapes import Array
from ..numerics.validation import checked, floor_rate, open_unit, positive
from .base import DEEPEST, HIGHEST_FLOOR, Target
from .rates import mu_of_rates


@dataclass(frozen=True)
class Mu(Target):
    """μ* ≤ μ over FPRs from the floor to f(floor).

    Args:
        mu: > 0, any shape.
        fpr_floor: in [1e-300, 0.5).

    Raises:
        ValueError: a field is out of range, or shapes do not broadcast.

    Example:
        >>> Mu(mu=[0.5, 1.0]).shape
        (2,)
    """

    mu: Any
    fpr_floor: Any = options.FPR_FLOOR

    quantity: ClassVar[str] = "mu"
    goal_field: ClassVar[str] = "mu"
    option: ClassVar[str] = "mu"
    meaning: ClassVar[str] = "μ over FPRs from --fpr-floor on"

    def _checked(self, name: str, value: Any) -> Any:
        return positive(name, value) if name == self.goal_field else floor_rate(name, value)

    def parameters(self) -> dict[str, Any]:
        return {"fpr_floor": self.fpr_floor}

    def equivalent_mu(self, value: Array) -> Array:
        return value

    def of_gaussian(self, mu: Array) -> Array:
        return mu

    def place(self, mu: Array) -> Array:
        return self.fpr_floor

    def without_noise(self, detected: Array, adjacency: str) -> Array:
        return mu_of_rates(self.fpr_floor, np.minimum(detected + self.fpr_floor, 1.0))


@renamed_fields(d="approximation")
@dataclass(frozen=True)
class ApproximateMu(Target):
    """d-approximate μ-GDP, that is δ(ε) ≤ d + (1 − d)·δ_μ(ε) for all ε.

    Args:
        mu: > 0, any shape.
        approximation: d, in (0, 1).

    Raises:
        ValueError: a field is out of range, or shapes do not broadcast.

    Example:
        >>> ApproximateMu(mu=1.0, approximation=1e-6).shape
        ()
    """

    mu: Any
    approximation: Any = options.APPROXIMATION

    quantity: ClassVar[str] = "approximate_mu"
    goal_field: ClassVar[str] = "mu"
    option: ClassVar[str] = "approximate_mu"
    meaning: ClassVar[str] = "d-approximate μ, d in --approximation"

    def _checked(self, name: str, value: Any) -> Any:
        return positive(name, value) if name == self.goal_field else open_unit(name, value)

    def parameters(self) -> dict[str, Any]:
        floor = np.clip(self.place(self.mu), DEEPEST, HIGHEST_FLOOR)
        return {"approximation": self.approximation, "fpr_floor": floor}

    def equivalent_mu(self, value: Array) -> Array:
        return value

    def of_gaussian(self, mu: Array) -> Array:
        """f_μ is d-approximately ν-GDP for the least ν whose curve, shrunk, lies below f_μ."""
        return _approximate_mu_of_gaussian(mu, self.approximation)

    def gaussian_mu(self) -> Array:
        low, high = self.mu, self.mu + 1e-300
        while np.any(short := self.of_gaussian(high) < self.mu):
            high = np.where(short, 2.0 * high, high)
        for _ in range(60):
            middle = 0.5 * (low + high)
            met = self.of_gaussian(middle) <= self.mu
            low, high = np.where(met, middle, low), np.where(met, high, middle)
        return low

    def place(self, mu: Array) -> Array:
        return ndtr(ndtri(self.approximation) - mu)

    def without_noise(self, detected: Array, adjacency: str) -> Array:
        return np.where(detected <= self.approximation, 0.0, np.inf)


def _approximate_mu_of_gaussian(mu: Array, d: Array) -> Array:
    """max Φ⁻¹(1 − α/(1 − d)) − Φ⁻¹(β/(1 − d)) over α with TPR > d, by golden sections."""
    mu, d = np.broadcast_arrays(np.asarray(mu, float), d)
    rest = 1.0 - d

    def value(z):  # z = Φ⁻¹(1 − α)
        alpha, beta = ndtr(-z), ndtr(z - mu)
        with np.errstate(invalid="ignore"):
            found = -ndtri(np.minimum(alpha / rest, 1.0)) - ndtri(np.minimum(beta / rest, 1.0))
        return np.where(beta < rest, found, -np.inf)

    low, high = mu / 2.0, mu - ndtri(d)  # (β < 1 − d beyond the second)
    ratio = (np.sqrt(5.0) - 1.0) / 2.0
    for _ in range(90):
        a, b = high - ratio * (high - low), low + ratio * (high - low)
        left = value(a) >= value(b)
        low, high = np.where(left, low, a), np.where(left, b, high)
    return np.maximum(value(0.5 * (low + high)), 0.0)


@dataclass(frozen=True)
class Regret(Target):
    """Regret Δ of reporting μ* (at the floor) for the whole curve, at most the target.

    Δ does not fall steadily with the noise. See :func:`jaxgdp.calibrate` for what is returned.

    Args:
        regret: in (0, ½), any shape.
        fpr_floor: in [1e-300, 0.5).

    Raises:
        ValueError: a field is out of range, or shapes do not broadcast.

    Example:
        >>> Regret(regret=0.01).shape
        ()
    """

    regret: Any
    fpr_floor: Any = options.FPR_FLOOR

    quantity: ClassVar[str] = "regret"
    goal_field: ClassVar[str] = "regret"
    option: ClassVar[str] = "regret"
    meaning: ClassVar[str] = "regret of reporting μ"

    def _checked(self, name: str, value: Any) -> Any:
        if name == "fpr_floor":
            return floor_rate(name, value)
        return checked(name, value, "in (0, 0.5)", lambda a: (a > 0.0) & (a < 0.5))

    def parameters(self) -> dict[str, Any]:
        return {"fpr_floor": self.fpr_floor}

    def equivalent_mu(self, value: Array) -> Array:
        """The regret itself: no Gaussian curve has any."""
        return value

    def surely(self) -> Mu:
        """A μ below which the regret is met whatever the curve: Δ ≤ ½·δ_μ(0) = Φ(μ/2) − ½."""
        return Mu(2.0 * ndtri(0.5 + self.regret) * (1.0 - CLOSED_FORM), self.fpr_floor)

    def of_gaussian(self, mu: Array) -> Array:
        return np.zeros(np.broadcast_shapes(np.shape(mu), self.shape))
