"""What a user can ask for: the risk that is accepted, as frozen dataclasses of scalars or arrays.

Every target names a quantity of :func:`jaxgdp.measure`, which side of its bracket is safe, and the μ of the Gaussian curve that just
meets it: nearly linear in the noise on logarithmic axes, so that a solver needs few evaluations. μ only steers; whether a target is
met is decided by the quantity itself.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtr, ndtri

from . import gdp
from .bracket import Bracket
from .validation import broadcast, checked, floor_rate, nonnegative, open_unit, positive

_DEEPEST = 1e-300
_HIGHEST_FLOOR = 0.45


def _first(condition, *arrays):
    """The elements at the first place where the condition holds."""
    condition, *arrays = np.broadcast_arrays(condition, *arrays)
    return tuple(array[condition].flat[0] for array in arrays)


class Target:
    """What all targets share.

    Attributes:
        quantity: name of the quantity of ``measure`` that decides.
        safe: "upper" if the quantity must not exceed the goal, "lower" if it must not fall below.
        goal_field: the field that holds the goal.
    """

    quantity: ClassVar[str]
    safe: ClassVar[str] = "upper"
    goal_field: ClassVar[str]

    def __post_init__(self):
        values = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        for name, value in values.items():
            values[name] = self._checked(name, value)
        broadcast(**values)
        for name, value in values.items():
            object.__setattr__(self, name, value)
        self._feasible()

    def _checked(self, name, value):
        return open_unit(name, value)

    def _feasible(self):
        """Raise where no noise, or any noise, meets the target whatever the mechanism."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Broadcast shape of the fields."""
        return np.broadcast_shapes(*(np.shape(getattr(self, f.name)) for f in dataclasses.fields(self)))

    @property
    def goal(self):
        """The accepted value of :meth:`read`."""
        return getattr(self, self.goal_field)

    def flat(self, shape) -> Target:
        """The same with one-dimensional fields, broadcast to a shape."""
        fields = {f.name: np.broadcast_to(getattr(self, f.name), shape).reshape(-1) for f in dataclasses.fields(self)}
        return self._unchecked(fields)

    def take(self, rows) -> Target:
        """Some elements of a flat target."""
        return self._unchecked({f.name: getattr(self, f.name)[rows] for f in dataclasses.fields(self)})

    def _unchecked(self, fields):
        new = object.__new__(type(self))
        for name, value in fields.items():
            object.__setattr__(new, name, value)
        return new

    def parameters(self) -> dict[str, Any]:
        """What ``measure`` has to be told beside the name of the quantity."""
        return {}

    def read(self, bracket: Bracket) -> Bracket:
        """The target's own quantity from that of ``measure``."""
        return bracket

    def meets(self, own: Bracket):
        """Whether the safe side of :meth:`read` meets the goal."""
        return own.upper <= self.goal if self.safe == "upper" else own.lower >= self.goal

    def violates(self, own: Bracket):
        """Whether the other side already breaks the goal, so that no accountant could show that it is met."""
        return own.lower > self.goal if self.safe == "upper" else own.upper < self.goal

    def equivalent_mu(self, value):
        """μ of the Gaussian curve whose quantity has this value; ∞ or 0 where there is none."""
        raise NotImplementedError

    def of_gaussian(self, mu):
        """The target's own quantity of the Gaussian curve f_μ."""
        raise NotImplementedError

    def gaussian_mu(self):
        """The largest μ whose Gaussian curve meets the target."""
        return self.equivalent_mu(self.goal)

    def place(self, mu):
        """FPR of the point of f_μ that decides, on the half of the curve with FPR ≤ FNR."""
        raise NotImplementedError

    def without_noise(self, detected, adjacency):
        """The quantity of a run that shows whether the record was sampled, which happens with probability ``detected``."""
        raise NotImplementedError

    def describe(self) -> str:
        """The target in words, of a scalar one."""
        parts = [f"{f.name} {float(getattr(self, f.name)):g}" for f in dataclasses.fields(self)]
        return f"{type(self).__name__}({', '.join(parts)})"


def _rate_place(fpr, fnr):
    return np.clip(np.minimum(fpr, fnr), _DEEPEST, _HIGHEST_FLOOR)


def _tpr_without_noise(fpr, detected, adjacency):
    if adjacency == "remove":
        return detected + (1.0 - detected) * fpr
    if adjacency == "add":
        return np.minimum(fpr / np.maximum(1.0 - detected, _DEEPEST), 1.0)
    return np.minimum(detected + fpr, 1.0)


def _mu_of_rates(fpr, tpr):
    with np.errstate(divide="ignore"):
        return np.maximum(ndtri(np.clip(tpr, 0.0, 1.0)) - ndtri(fpr), 0.0)


def _mu_of_profile(epsilon, delta):
    inside = (delta > _DEEPEST) & (delta < 1.0 - 1e-15)
    mu = gdp.mu_from_epsilon_delta(epsilon, np.where(inside, delta, 0.5))
    return np.where(inside, mu, np.where(delta >= 0.5, np.inf, 0.0))


@dataclass(frozen=True)
class Mu(Target):
    """μ* ≤ μ over FPRs from the floor to f(floor).

    Args:
        mu: > 0, any shape. fpr_floor: in [1e-300, 0.5).

    Raises:
        ValueError: a field is out of range, or shapes do not broadcast.

    Example:
        >>> Mu(mu=[0.5, 1.0]).shape
        (2,)
    """

    mu: Any
    fpr_floor: Any = 1e-10

    quantity: ClassVar[str] = "mu"
    goal_field: ClassVar[str] = "mu"

    def _checked(self, name, value):
        return positive(name, value) if name == "mu" else floor_rate(name, value)

    def parameters(self):
        return {"fpr_floor": self.fpr_floor}

    def equivalent_mu(self, value):
        return value

    def of_gaussian(self, mu):
        return mu

    def place(self, mu):
        return self.fpr_floor

    def without_noise(self, detected, adjacency):
        return _mu_of_rates(self.fpr_floor, np.minimum(detected + self.fpr_floor, 1.0))


@dataclass(frozen=True)
class ApproximateMu(Target):
    """d-approximate μ-GDP, that is δ(ε) ≤ d + (1 − d)·δ_μ(ε) for all ε.

    Args:
        mu: > 0, any shape. d: in (0, 1).

    Raises:
        ValueError: a field is out of range, or shapes do not broadcast.

    Example:
        >>> ApproximateMu(mu=1.0, d=1e-6).shape
        ()
    """

    mu: Any
    d: Any = 1e-10

    quantity: ClassVar[str] = "approximate_mu"
    goal_field: ClassVar[str] = "mu"

    def _checked(self, name, value):
        return positive(name, value) if name == "mu" else open_unit(name, value)

    def parameters(self):
        return {"d": self.d, "fpr_floor": np.clip(self.place(self.mu), _DEEPEST, _HIGHEST_FLOOR)}

    def equivalent_mu(self, value):
        return value

    def of_gaussian(self, mu):
        """f_μ is d-approximately ν-GDP for the smallest ν whose curve, shrunk by 1 − d, lies below f_μ."""
        return _approximate_mu_of_gaussian(mu, self.d)

    def gaussian_mu(self):
        low, high = self.mu, self.mu + 1e-300
        while np.any(short := self.of_gaussian(high) < self.mu):
            high = np.where(short, 2.0 * high, high)
        for _ in range(60):
            middle = 0.5 * (low + high)
            met = self.of_gaussian(middle) <= self.mu
            low, high = np.where(met, middle, low), np.where(met, high, middle)
        return low

    def place(self, mu):
        return ndtr(ndtri(self.d) - mu)

    def without_noise(self, detected, adjacency):
        return np.where(detected <= self.d, 0.0, np.inf)


def _approximate_mu_of_gaussian(mu, d):
    """max over α with TPR > d of Φ⁻¹(1 − α/(1 − d)) − Φ⁻¹(β/(1 − d)), by golden-section search over Φ⁻¹(α)."""
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
class EpsilonDelta(Target):
    """(ε, δ)-DP: the quantity is ε at δ, which must not exceed the target's.

    Args:
        epsilon: ε ≥ 0 in nats, any shape. delta: δ in (0, 1).

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

    def _checked(self, name, value):
        return nonnegative(name, value) if name == "epsilon" else open_unit(name, value)

    def parameters(self):
        return {"delta": self.delta, "fpr_floor": self.place(self.gaussian_mu())}

    def equivalent_mu(self, value):
        finite = np.isfinite(value)
        return np.where(finite, _mu_of_profile(np.where(finite, value, 1.0), self.delta), np.inf)

    def of_gaussian(self, mu):
        return gdp.epsilon(self.delta, mu)

    def place(self, mu):
        return np.clip(ndtr(-mu / 2.0 - self.epsilon / mu), _DEEPEST, _HIGHEST_FLOOR)

    def without_noise(self, detected, adjacency):
        with np.errstate(divide="ignore"):
            rare = np.maximum(np.log1p(-self.delta) - np.log1p(-detected), 0.0)
        return rare if adjacency == "add" else np.where(detected <= self.delta, 0.0, np.inf)


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

    def _checked(self, name, value):
        valid = "in (0, 1) (0 needs infinite noise, 1 is weaker than no noise)"
        return checked(name, value, valid, lambda a: (a > 0.0) & (a < 1.0))

    def parameters(self):
        return {"fpr_floor": 0.6 * np.clip(self.place(self.equivalent_mu(self.advantage)), _DEEPEST, _HIGHEST_FLOOR)}

    def equivalent_mu(self, value):
        return np.where(value < 1.0, gdp.mu_from_advantage(np.minimum(value, 1.0 - 1e-16)), np.inf)

    def of_gaussian(self, mu):
        return gdp.advantage(mu)

    def place(self, mu):
        return ndtr(-mu / 2.0)

    def without_noise(self, detected, adjacency):
        return detected


@dataclass(frozen=True)
class FNR(Target):
    """FNR at least ``fnr`` for every attack with FPR at most ``fpr``: f(α*) ≥ β* (Kulynych 2024, Eq. 18).

    Args:
        fnr: β* in (0, 1), any shape. fpr: α* in (0, 1).

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

    def _feasible(self):
        if np.any(bad := self.fnr + self.fpr >= 1.0):
            fnr, fpr = _first(bad, self.fnr, self.fpr)
            raise ValueError(
                f"fnr + fpr must be below 1 (guessing reaches 1, whatever the noise), got fnr {fnr:g} and fpr {fpr:g}"
            )

    def parameters(self):
        return {"fpr": self.fpr, "fpr_floor": 0.8 * _rate_place(self.fpr, self.fnr)}

    def equivalent_mu(self, value):
        with np.errstate(divide="ignore"):
            return np.maximum(-ndtri(np.clip(value, 0.0, 1.0)) - ndtri(self.fpr), 0.0)

    def of_gaussian(self, mu):
        return gdp.beta(self.fpr, mu)

    def place(self, mu):
        return _rate_place(self.fpr, self.fnr)

    def without_noise(self, detected, adjacency):
        return 1.0 - _tpr_without_noise(self.fpr, detected, adjacency)


@dataclass(frozen=True)
class TPR(Target):
    """TPR at most ``tpr`` for every attack with FPR at most ``fpr``; the same as an FNR of 1 − TPR.

    Args:
        tpr: in (0, 1), any shape. fpr: in (0, 1), below the TPR.

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

    def _feasible(self):
        if np.any(bad := self.tpr <= self.fpr):
            tpr, fpr = _first(bad, self.tpr, self.fpr)
            raise ValueError(f"tpr must be above fpr (guessing reaches it, whatever the noise), got tpr {tpr:g} and fpr {fpr:g}")

    def parameters(self):
        return {"fpr": self.fpr, "fpr_floor": 0.8 * self.place(None)}

    def equivalent_mu(self, value):
        return _mu_of_rates(self.fpr, value)

    def of_gaussian(self, mu):
        return gdp.tpr(self.fpr, mu)

    def place(self, mu):
        return _rate_place(self.fpr, 1.0 - self.tpr)

    def without_noise(self, detected, adjacency):
        return _tpr_without_noise(self.fpr, detected, adjacency)


@dataclass(frozen=True)
class Accuracy(Target):
    """Accuracy of membership inference at an FPR, for equal priors: ½·((1 − α) + (1 − β)) ≤ accuracy.

    So β* = 2(1 − accuracy) − α. (Kulynych 2024, Table 1 prints 2(α − accuracy), which is negative.)

    Args:
        accuracy: in (½, 1 − α/2), any shape. fpr: α in (0, 1).

    Raises:
        ValueError: accuracy ≤ ½, which only infinite noise reaches, or ≥ 1 − α/2, which everything reaches.

    Example:
        >>> Accuracy(accuracy=0.6, fpr=0.1).shape
        ()
    """

    accuracy: Any
    fpr: Any

    quantity: ClassVar[str] = "beta"
    goal_field: ClassVar[str] = "accuracy"

    def _feasible(self):
        if np.any(bad := self.accuracy <= 0.5):
            raise ValueError(f"accuracy must be above 0.5 (guessing reaches it), got {_first(bad, self.accuracy)[0]:g}")
        if np.any(bad := self.accuracy >= 1.0 - 0.5 * self.fpr):
            accuracy, fpr = _first(bad, self.accuracy, self.fpr)
            raise ValueError(
                f"accuracy must be below 1 - fpr/2 = {1 - fpr / 2:g} (more is a target weaker than no noise), got {accuracy:g}"
            )

    def parameters(self):
        return {"fpr": self.fpr, "fpr_floor": 0.8 * self.place(None)}

    def read(self, bracket):
        return Bracket(*(1.0 - 0.5 * (self.fpr + side) for side in (bracket.upper, bracket.lower)))

    def equivalent_mu(self, value):
        return _mu_of_rates(self.fpr, 2.0 * value - 1.0 + self.fpr)

    def of_gaussian(self, mu):
        return 1.0 - 0.5 * (self.fpr + gdp.beta(self.fpr, mu))

    def place(self, mu):
        return _rate_place(self.fpr, 2.0 * (1.0 - self.accuracy) - self.fpr)

    def without_noise(self, detected, adjacency):
        return 0.5 * (1.0 - self.fpr + _tpr_without_noise(self.fpr, detected, adjacency))


@dataclass(frozen=True)
class Precision(Target):
    """Precision (positive predictive value) of membership inference at an FPR, for equal priors: TPR/(TPR + α) ≤ precision.

    So TPR* = α·v/(1 − v) for a precision of v.

    Args:
        precision: v in (½, 1/(1 + α)), any shape. fpr: α in (0, 1).

    Raises:
        ValueError: v ≤ ½, which only infinite noise reaches, or ≥ 1/(1 + α), which everything reaches.

    Example:
        >>> Precision(precision=0.8, fpr=0.1).shape
        ()
    """

    precision: Any
    fpr: Any

    quantity: ClassVar[str] = "tpr"
    goal_field: ClassVar[str] = "precision"

    def _feasible(self):
        if np.any(bad := self.precision <= 0.5):
            raise ValueError(f"precision must be above 0.5 (guessing reaches it), got {_first(bad, self.precision)[0]:g}")
        if np.any(bad := self.precision >= 1.0 / (1.0 + self.fpr)):
            precision, fpr = _first(bad, self.precision, self.fpr)
            raise ValueError(
                f"precision must be below 1/(1 + fpr) = {1 / (1 + fpr):g} (more is a target weaker than no noise), "
                f"got {precision:g}"
            )

    def _tpr(self, value):
        return self.fpr * value / (1.0 - np.minimum(value, 1.0 / (1.0 + self.fpr)))

    def parameters(self):
        return {"fpr": self.fpr, "fpr_floor": 0.8 * self.place(None)}

    def read(self, bracket):
        return Bracket(*(side / (side + self.fpr) for side in bracket))

    def equivalent_mu(self, value):
        return _mu_of_rates(self.fpr, self._tpr(value))

    def of_gaussian(self, mu):
        tpr = gdp.tpr(self.fpr, mu)
        return tpr / (tpr + self.fpr)

    def place(self, mu):
        return _rate_place(self.fpr, np.maximum(1.0 - self._tpr(self.precision), _DEEPEST))

    def without_noise(self, detected, adjacency):
        tpr = _tpr_without_noise(self.fpr, detected, adjacency)
        return tpr / (tpr + self.fpr)


@dataclass(frozen=True)
class BayesRisk(Target):
    """Error probability of every attacker at least ``bayes_risk``: min over α of π·α + (1 − π)·f(α).

    Args:
        bayes_risk: in (0, min(π, 1 − π)), any shape. prior: π in (0, 1), the probability that the record is absent.

    Raises:
        ValueError: a field is out of range, or the risk is not below min(π, 1 − π), that of guessing.

    Example:
        >>> BayesRisk(bayes_risk=0.4).shape
        ()
    """

    bayes_risk: Any
    prior: Any = 0.5

    quantity: ClassVar[str] = "bayes_risk"
    safe: ClassVar[str] = "lower"
    goal_field: ClassVar[str] = "bayes_risk"

    def _feasible(self):
        guess = np.minimum(self.prior, 1.0 - self.prior)
        if np.any(bad := self.bayes_risk >= guess):
            risk, prior = _first(bad, self.bayes_risk, self.prior)
            raise ValueError(
                f"bayes_risk must be below min(prior, 1 - prior) = {min(prior, 1 - prior):g}, the risk of guessing, got {risk:g}"
            )

    def _profile(self, value):
        """The point (ε, δ) of the profile that decides: R = min(π, 1 − π)·(1 − δ(|log(π/(1 − π))|))."""
        rare = np.minimum(self.prior, 1.0 - self.prior)
        return np.log1p(-rare) - np.log(rare), 1.0 - value / rare

    def parameters(self):
        return {"prior": self.prior, "fpr_floor": 0.8 * self.place(self.equivalent_mu(self.bayes_risk))}

    def equivalent_mu(self, value):
        return _mu_of_profile(*self._profile(value))

    def of_gaussian(self, mu):
        return gdp.bayes_risk(self.prior, mu)

    def place(self, mu):
        epsilon, _ = self._profile(self.bayes_risk)
        return np.clip(ndtr(-mu / 2.0 - epsilon / mu), _DEEPEST, _HIGHEST_FLOOR)

    def without_noise(self, detected, adjacency):
        absent, present = self.prior, 1.0 - self.prior
        if adjacency == "remove":
            return np.minimum(present * (1.0 - detected), absent)
        if adjacency == "add":
            return np.minimum(absent * (1.0 - detected), present)
        return np.minimum(absent, present) * (1.0 - detected)


@dataclass(frozen=True)
class AttackSuccess(Target):
    """Success of re-identification, attribute inference or reconstruction: 1 − f(κ) ≤ success, at baseline κ.

    κ is the success of the best attack that does not see the output. With adjacency "add_remove" this covers
    attacks on either side of the curve; for the reconstruction of a record that is present only its removal matters, γ(κ) = sup{Q(E): P(E) ≤ κ}
    (Hayes et al. 2024), which ``adjacency="remove"`` computes and which never asks for more noise.

    Args:
        success: in (0, 1), above the baseline, any shape. baseline: κ in (0, 1).

    Raises:
        ValueError: a field is out of range, or success ≤ baseline, which only infinite noise reaches.

    Example:
        >>> AttackSuccess(success=0.1, baseline=[0.01, 0.02]).shape
        (2,)
    """

    success: Any
    baseline: Any

    quantity: ClassVar[str] = "tpr"
    goal_field: ClassVar[str] = "success"

    def _feasible(self):
        if np.any(bad := self.success <= self.baseline):
            success, baseline = _first(bad, self.success, self.baseline)
            raise ValueError(
                f"success must be above baseline (which is reached whatever the noise), got success {success:g} and "
                f"baseline {baseline:g}"
            )

    def parameters(self):
        return {"fpr": self.baseline, "fpr_floor": 0.8 * self.place(None)}

    def equivalent_mu(self, value):
        return _mu_of_rates(self.baseline, value)

    def of_gaussian(self, mu):
        return gdp.tpr(self.baseline, mu)

    def place(self, mu):
        return _rate_place(self.baseline, 1.0 - self.success)

    def without_noise(self, detected, adjacency):
        return _tpr_without_noise(self.baseline, detected, adjacency)


@dataclass(frozen=True)
class Regret(Target):
    """Regret Δ of reporting μ* (at the floor) in place of the whole curve, at most the target (Gomez 2025).

    Δ does not fall steadily with the noise. See :func:`jaxgdp.calibrate` for what is returned.

    Args:
        regret: in (0, ½), any shape. fpr_floor: in [1e-300, 0.5).

    Raises:
        ValueError: a field is out of range, or shapes do not broadcast.

    Example:
        >>> Regret(regret=0.01).shape
        ()
    """

    regret: Any
    fpr_floor: Any = 1e-10

    quantity: ClassVar[str] = "regret"
    goal_field: ClassVar[str] = "regret"

    def _checked(self, name, value):
        if name == "fpr_floor":
            return floor_rate(name, value)
        return checked(name, value, "in (0, 0.5)", lambda a: (a > 0.0) & (a < 0.5))

    def parameters(self):
        return {"fpr_floor": self.fpr_floor}

    def equivalent_mu(self, value):
        """The regret itself: no Gaussian curve has any."""
        return value

    def surely(self) -> Mu:
        """A μ below which the regret is met whatever the curve: Δ ≤ ½·δ_μ(0) = Φ(μ/2) − ½."""
        return Mu(2.0 * ndtri(0.5 + self.regret) * (1.0 - 1e-12), self.fpr_floor)

    def of_gaussian(self, mu):
        return np.zeros(np.broadcast_shapes(np.shape(mu), self.shape))


TARGETS = (Mu, ApproximateMu, EpsilonDelta, Advantage, FNR, TPR, Accuracy, Precision, BayesRisk, AttackSuccess, Regret)
__all__ = [target.__name__ for target in TARGETS]
