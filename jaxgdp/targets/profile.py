"""Targets on the privacy profile: (ε, δ), advantage, Bayes risk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtr

from .. import gdp, options
from ..adjacency import Adjacency
from ..numerics.shapes import Array
from ..numerics.validation import checked, nonnegative
from .base import DEEPEST, HIGHEST_FLOOR, Target, first


def _mu_of_profile(epsilon: Array, delta: Array) -> Array:
    inside = (delta > 0.0) & (delta < 1.0 - 1e-15)
    mu = gdp.mu_from_epsilon_delta(epsilon=epsilon, delta=np.where(inside, delta, 0.5))
    return np.where(inside, mu, np.where(delta >= 0.5, np.inf, 0.0))


@dataclass(frozen=True)
class EpsilonDelta(Target):
    """(ε, δ)-DP: the quantity is ε at δ, which must not exceed the target's.

    Args:
        epsilon: ε ≥ 0 in nats, any shape.
        delta: δ in (0, 1).

    Raises:
        ValueError: a field is out of range, or shapes do not broadcast.

    Example:
        >>> EpsilonDelta(epsilon=[1.0, 2.0], delta=1e-5).shape
        (2,)
    """

    epsilon: Any
    delta: Any

    quantity: ClassVar[str] = "epsilon"
    goal_field: ClassVar[str] = "epsilon"
    option: ClassVar[str] = "epsilon"
    meaning: ClassVar[str] = "ε at --delta, in nats"

    def _checked(self, name: str, value: Any) -> Any:
        if name == self.goal_field:
            return nonnegative(name, value)
        valid = (
            "in (0, 1) (0 needs bounded losses, which Gaussian noise never has, 1 is met by any)"
        )
        return checked(name, value, valid, lambda a: (a > 0.0) & (a < 1.0))

    def parameters(self) -> dict[str, Any]:
        return {"delta": self.delta, "fpr_floor": self.place(self.gaussian_mu())}

    def equivalent_mu(self, value: Array) -> Array:
        finite = np.isfinite(value)
        return np.where(finite, _mu_of_profile(np.where(finite, value, 1.0), self.delta), np.inf)

    def of_gaussian(self, mu: Array) -> Array:
        return gdp.epsilon(delta=self.delta, mu=mu)

    def place(self, mu: Array) -> Array:
        with np.errstate(divide="ignore"):
            return np.clip(ndtr(-mu / 2.0 - self.epsilon / mu), DEEPEST, HIGHEST_FLOOR)

    def without_noise(self, detected: Array, adjacency: str) -> Array:
        with np.errstate(divide="ignore"):
            rare = np.maximum(np.log1p(-self.delta) - np.log1p(-detected), 0.0)
        return (
            rare if Adjacency(adjacency).swapped else np.where(detected <= self.delta, 0.0, np.inf)
        )


@dataclass(frozen=True)
class Advantage(Target):
    """Membership advantage η = max TPR − FPR at most the target (Kulynych 2024, Eq. 13).

    Args:
        advantage: η in (0, 1), any shape.

    Raises:
        ValueError: η ≤ 0 (only infinite noise has none) or η ≥ 1 (which everything has).

    Example:
        >>> Advantage(0.1).shape
        ()
    """

    advantage: Any

    quantity: ClassVar[str] = "advantage"
    goal_field: ClassVar[str] = "advantage"
    option: ClassVar[str] = "advantage"
    meaning: ClassVar[str] = "membership advantage, the largest TPR - FPR"

    def _checked(self, name: str, value: Any) -> Any:
        valid = "in (0, 1) (0 needs infinite noise, 1 is weaker than no noise)"
        return checked(name, value, valid, lambda a: (a > 0.0) & (a < 1.0))

    def parameters(self) -> dict[str, Any]:
        return {
            "fpr_floor": (
                0.6
                * np.clip(self.place(self.equivalent_mu(self.advantage)), DEEPEST, HIGHEST_FLOOR)
            )
        }

    def equivalent_mu(self, value: Array) -> Array:
        return np.where(
            value < 1.0, gdp.mu_from_advantage(advantage=np.minimum(value, 1.0 - 1e-16)), np.inf
        )

    def of_gaussian(self, mu: Array) -> Array:
        return gdp.advantage(mu=mu)

    def place(self, mu: Array) -> Array:
        return ndtr(-mu / 2.0)

    def without_noise(self, detected: Array, adjacency: str) -> Array:
        return detected


@dataclass(frozen=True)
class BayesRisk(Target):
    """Error probability of every attacker at least ``bayes_risk``: min of π·α + (1 − π)·f(α).

    Args:
        bayes_risk: in (0, min(π, 1 − π)), any shape.
        prior: π in (0, 1), the probability that the record is absent.

    Raises:
        ValueError: a field is out of range, or the risk is not below min(π, 1 − π), that of
            guessing.

    Example:
        >>> BayesRisk(bayes_risk=0.4).shape
        ()
    """

    bayes_risk: Any
    prior: Any = options.PRIOR

    quantity: ClassVar[str] = "bayes_risk"
    safe: ClassVar[str] = "lower"
    goal_field: ClassVar[str] = "bayes_risk"
    option: ClassVar[str] = "bayes_risk"
    meaning: ClassVar[str] = "least error probability at --prior"

    def _feasible(self) -> None:
        guess = np.minimum(self.prior, 1.0 - self.prior)
        if np.any(bad := self.bayes_risk >= guess):
            risk, prior = first(bad, self.bayes_risk, self.prior)
            raise ValueError(
                f"bayes_risk must be below min(prior, 1 - prior) = {min(prior, 1 - prior):g}, the"
                f" risk of guessing, got {risk:g}"
            )

    def _profile(self, value: Array) -> tuple[Array, Array]:
        """The point (ε, δ) that decides: R = min(π, 1 − π)·(1 − δ(|log(π/(1 − π))|))."""
        rare = np.minimum(self.prior, 1.0 - self.prior)
        return np.log1p(-rare) - np.log(rare), 1.0 - value / rare

    def parameters(self) -> dict[str, Any]:
        return {
            "prior": self.prior,
            "fpr_floor": 0.8 * self.place(self.equivalent_mu(self.bayes_risk)),
        }

    def equivalent_mu(self, value: Array) -> Array:
        return _mu_of_profile(*self._profile(value))

    def of_gaussian(self, mu: Array) -> Array:
        return gdp.bayes_risk(prior=self.prior, mu=mu)

    def place(self, mu: Array) -> Array:
        epsilon, _ = self._profile(self.bayes_risk)
        return np.clip(ndtr(-mu / 2.0 - epsilon / mu), DEEPEST, HIGHEST_FLOOR)

    def without_noise(self, detected: Array, adjacency: str) -> Array:
        absent, present = self.prior, 1.0 - self.prior
        relation = Adjacency(adjacency)
        if relation.symmetric:
            return np.minimum(absent, present) * (1.0 - detected)
        if relation.swapped:
            return np.minimum(absent * (1.0 - detected), present)
        return np.minimum(present * (1.0 - detected), absent)
