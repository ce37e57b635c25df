"""Targets at one FPR: FNR, TPR, accuracy, precision, and success over a baseline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtri

from .. import gdp
from ..adjacency import Adjacency
from ..bracket import Bracket
from ..numerics.shapes import Array
from .base import DEEPEST, HIGHEST_FLOOR, Target, first


def rate_place(fpr: Array, fnr: Array) -> Array:
    return np.clip(np.minimum(fpr, fnr), DEEPEST, HIGHEST_FLOOR)


def tpr_without_noise(fpr: Array, detected: Array, adjacency: str) -> Array:
    relation = Adjacency(adjacency)
    if relation.symmetric:
        return np.minimum(detected + fpr, 1.0)
    if relation.swapped:
        return np.minimum(fpr / np.maximum(1.0 - detected, DEEPEST), 1.0)
    return detected + (1.0 - detected) * fpr


def mu_of_rates(fpr: Array, tpr: Array) -> Array:
    with np.errstate(divide="ignore"):
        return np.maximum(ndtri(np.clip(tpr, 0.0, 1.0)) - ndtri(fpr), 0.0)


@dataclass(frozen=True)
class FNR(Target):
    """FNR at least ``fnr`` for every attack with FPR at most ``fpr`` (Kulynych 2024, Eq. 18).

    Args:
        fnr: β* in (0, 1), any shape.
        fpr: α* in (0, 1).

    Raises:
        ValueError: a field is out of range, or α* + β* ≥ 1, which only infinite noise reaches.

    Example:
        >>> FNR(fnr=[0.7, 0.8], fpr=0.1).shape
        (2,)
    """

    fnr: Any
    fpr: Any

    quantity: ClassVar[str] = "beta"
    safe: ClassVar[str] = "lower"
    goal_field: ClassVar[str] = "fnr"
    option: ClassVar[str] = "fnr"
    meaning: ClassVar[str] = "FNR of every attack at --fpr"

    def _feasible(self) -> None:
        if np.any(bad := self.fnr + self.fpr >= 1.0):
            fnr, fpr = first(bad, self.fnr, self.fpr)
            raise ValueError(
                "fnr + fpr must be below 1 (guessing reaches 1, whatever the noise), got fnr"
                f" {fnr:g} and fpr {fpr:g}"
            )

    def parameters(self) -> dict[str, Any]:
        return {"fpr": self.fpr, "fpr_floor": 0.8 * rate_place(self.fpr, self.fnr)}

    def equivalent_mu(self, value: Array) -> Array:
        with np.errstate(divide="ignore"):
            return np.maximum(-ndtri(np.clip(value, 0.0, 1.0)) - ndtri(self.fpr), 0.0)

    def of_gaussian(self, mu: Array) -> Array:
        return gdp.beta(fpr=self.fpr, mu=mu)

    def place(self, mu: Array | None) -> Array:
        return rate_place(self.fpr, self.fnr)

    def without_noise(self, detected: Array, adjacency: str) -> Array:
        return 1.0 - tpr_without_noise(self.fpr, detected, adjacency)


@dataclass(frozen=True)
class TPR(Target):
    """TPR at most ``tpr`` for every attack with FPR at most ``fpr``; the same as an FNR of 1 − TPR.

    Args:
        tpr: in (0, 1), any shape.
        fpr: in (0, 1), below the TPR.

    Raises:
        ValueError: a field is out of range, or TPR ≤ FPR, which only infinite noise reaches.

    Example:
        >>> TPR(tpr=0.3, fpr=[0.01, 0.1]).shape
        (2,)
    """

    tpr: Any
    fpr: Any

    quantity: ClassVar[str] = "tpr"
    goal_field: ClassVar[str] = "tpr"
    option: ClassVar[str] = "tpr"
    meaning: ClassVar[str] = "TPR of every attack at --fpr"

    def _feasible(self) -> None:
        if np.any(bad := self.tpr <= self.fpr):
            tpr, fpr = first(bad, self.tpr, self.fpr)
            raise ValueError(
                f"tpr must be above fpr (guessing reaches it, whatever the noise), got tpr {tpr:g}"
                f" and fpr {fpr:g}"
            )

    def parameters(self) -> dict[str, Any]:
        return {"fpr": self.fpr, "fpr_floor": 0.8 * self.place(None)}

    def equivalent_mu(self, value: Array) -> Array:
        return mu_of_rates(self.fpr, value)

    def of_gaussian(self, mu: Array) -> Array:
        return gdp.tpr(fpr=self.fpr, mu=mu)

    def place(self, mu: Array | None) -> Array:
        return rate_place(self.fpr, 1.0 - self.tpr)

    def without_noise(self, detected: Array, adjacency: str) -> Array:
        return tpr_without_noise(self.fpr, detected, adjacency)


@dataclass(frozen=True)
class Accuracy(Target):
    """Accuracy of membership inference at an FPR, equal priors: ½·((1 − α) + (1 − β)).

    So β* = 2(1 − accuracy) − α. (Kulynych 2024, Table 1 prints 2(α − accuracy), which is negative.)

    Args:
        accuracy: in (½, 1 − α/2), any shape.
        fpr: α in (0, 1).

    Raises:
        ValueError: accuracy ≤ ½, which only infinite noise reaches, or ≥ 1 − α/2, which everything
            reaches.

    Example:
        >>> Accuracy(accuracy=0.6, fpr=0.1).shape
        ()
    """

    accuracy: Any
    fpr: Any

    quantity: ClassVar[str] = "beta"
    goal_field: ClassVar[str] = "accuracy"
    option: ClassVar[str] = "accuracy"
    meaning: ClassVar[str] = "accuracy of attacks at --fpr, with equal priors"

    def _feasible(self) -> None:
        if np.any(bad := self.accuracy <= 0.5):
            raise ValueError(
                "accuracy must be above 0.5 (guessing reaches it), got"
                f" {first(bad, self.accuracy)[0]:g}"
            )
        if np.any(bad := self.accuracy >= 1.0 - 0.5 * self.fpr):
            accuracy, fpr = first(bad, self.accuracy, self.fpr)
            raise ValueError(
                f"accuracy must be below 1 - fpr/2 = {1 - fpr / 2:g} (more is a target weaker than"
                f" no noise), got {accuracy:g}"
            )

    def parameters(self) -> dict[str, Any]:
        return {"fpr": self.fpr, "fpr_floor": 0.8 * self.place(None)}

    def read(self, bracket: Bracket) -> Bracket:
        return Bracket(*(1.0 - 0.5 * (self.fpr + side) for side in (bracket.upper, bracket.lower)))

    def equivalent_mu(self, value: Array) -> Array:
        return mu_of_rates(self.fpr, 2.0 * value - 1.0 + self.fpr)

    def of_gaussian(self, mu: Array) -> Array:
        return 1.0 - 0.5 * (self.fpr + gdp.beta(fpr=self.fpr, mu=mu))

    def place(self, mu: Array | None) -> Array:
        return rate_place(self.fpr, 2.0 * (1.0 - self.accuracy) - self.fpr)

    def without_noise(self, detected: Array, adjacency: str) -> Array:
        return 0.5 * (1.0 - self.fpr + tpr_without_noise(self.fpr, detected, adjacency))


@dataclass(frozen=True)
class Precision(Target):
    """Precision of membership inference at an FPR, for equal priors: TPR/(TPR + α) ≤ precision.

    So TPR* = α·v/(1 − v) for a precision of v.

    Args:
        precision: v in (½, 1/(1 + α)), any shape.
        fpr: α in (0, 1).

    Raises:
        ValueError: v ≤ ½, which only infinite noise reaches, or ≥ 1/(1 + α), which everything
            reaches.

    Example:
        >>> Precision(precision=0.8, fpr=0.1).shape
        ()
    """

    precision: Any
    fpr: Any

    quantity: ClassVar[str] = "tpr"
    goal_field: ClassVar[str] = "precision"
    option: ClassVar[str] = "precision"
    meaning: ClassVar[str] = "precision of attacks at --fpr, with equal priors"

    def _feasible(self) -> None:
        if np.any(bad := self.precision <= 0.5):
            raise ValueError(
                "precision must be above 0.5 (guessing reaches it), got"
                f" {first(bad, self.precision)[0]:g}"
            )
        if np.any(bad := self.precision >= 1.0 / (1.0 + self.fpr)):
            precision, fpr = first(bad, self.precision, self.fpr)
            raise ValueError(
                f"precision must be below 1/(1 + fpr) = {1 / (1 + fpr):g} (more is a target weaker"
                f" than no noise), got {precision:g}"
            )

    def _tpr(self, value: Array) -> Array:
        with np.errstate(divide="ignore"):
            return self.fpr * value / (1.0 - np.minimum(value, 1.0 / (1.0 + self.fpr)))

    def parameters(self) -> dict[str, Any]:
        return {"fpr": self.fpr, "fpr_floor": 0.8 * self.place(None)}

    def read(self, bracket: Bracket) -> Bracket:
        return Bracket(*(side / (side + self.fpr) for side in bracket))

    def equivalent_mu(self, value: Array) -> Array:
        return mu_of_rates(self.fpr, self._tpr(value))

    def of_gaussian(self, mu: Array) -> Array:
        tpr = gdp.tpr(fpr=self.fpr, mu=mu)
        return tpr / (tpr + self.fpr)

    def place(self, mu: Array | None) -> Array:
        return rate_place(self.fpr, np.maximum(1.0 - self._tpr(self.precision), DEEPEST))

    def without_noise(self, detected: Array, adjacency: str) -> Array:
        tpr = tpr_without_noise(self.fpr, detected, adjacency)
        return tpr / (tpr + self.fpr)


@dataclass(frozen=True)
class AttackSuccess(Target):
    """Success of re-identification, attribute inference or reconstruction: 1 − f(κ).

    κ is the success of the best attack without the output. With adjacency "add_remove"
    this covers attacks on either side of the curve; for the reconstruction of a record that is
    present only its removal matters, γ(κ) = sup{Q(E): P(E) ≤ κ} (Hayes et al. 2024), which
    ``adjacency="remove"`` computes and which never needs more noise.

    Args:
        success: in (0, 1), above the baseline, any shape.
        baseline: κ in (0, 1).

    Raises:
        ValueError: a field is out of range, or success ≤ baseline, which only infinite noise
            reaches.

    Example:
        >>> AttackSuccess(success=0.1, baseline=[0.01, 0.02]).shape
        (2,)
    """

    success: Any
    baseline: Any

    quantity: ClassVar[str] = "tpr"
    goal_field: ClassVar[str] = "success"
    option: ClassVar[str] = "success"
    meaning: ClassVar[str] = (
        "success of re-identification, attribute inference or reconstruction, at --baseline"
    )

    def _feasible(self) -> None:
        if np.any(bad := self.success <= self.baseline):
            success, baseline = first(bad, self.success, self.baseline)
            raise ValueError(
                "success must be above baseline (which is reached whatever the noise), got success"
                f" {success:g} and baseline {baseline:g}"
            )

    def parameters(self) -> dict[str, Any]:
        return {"fpr": self.baseline, "fpr_floor": 0.8 * self.place(None)}

    def equivalent_mu(self, value: Array) -> Array:
        return mu_of_rates(self.baseline, value)

    def of_gaussian(self, mu: Array) -> Array:
        return gdp.tpr(fpr=self.baseline, mu=mu)

    def place(self, mu: Array | None) -> Array:
        return rate_place(self.baseline, 1.0 - self.success)

    def without_noise(self, detected: Array, adjacency: str) -> Array:
        return tpr_without_noise(self.baseline, detected, adjacency)
