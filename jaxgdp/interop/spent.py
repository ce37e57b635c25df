"""Privacy spent so far, as counts of mechanisms, and the safe side of every number about it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from .. import gdp, options
from ..conversions import advantage_from_zcdp, beta_from_zcdp, delta_from_zcdp, epsilon_from_zcdp
from ..measure import measure
from ..mechanisms import (
    ApproximateDP,
    Composition,
    DiscreteLaplace,
    ExponentialMechanism,
    FromPMFs,
    Gaussian,
    Laplace,
    NoisyMaximum,
    PureDP,
    RandomAllocation,
    RandomizedResponse,
    Selected,
    SubsampledGaussian,
    SubsampledLaplace,
    compose,
)
from ..mechanisms.base import Mechanism
from ..mechanisms.runs import Geometric, Logarithmic, NegativeBinomial, Poisson
from ..numerics.errors import CLOSED_FORM, SHORT
from ..numerics.shapes import Array, ArrayLike
from ..numerics.validation import closed_unit, floor_rate
from ..quantities.registry import named
from .safe_sides import MuAndRegret, mu_and_regret, plain, safe_side
from .zcdp import zcdp_mechanism

_UP = 1.0 + CLOSED_FORM  # room for the rounding of a closed form


def permute_and_flip(epsilon: float) -> NoisyMaximum:
    """Permute-and-flip at ε: its law is that of noisy maximum with exponential noise (Ding et al.
    2021), for any number of candidates from two on.
    """
    return NoisyMaximum(2.0 / epsilon, 2, "permute-and-flip")


_STATED = (
    PureDP,
    ApproximateDP,
    ExponentialMechanism,
    permute_and_flip,
)  # whose ε and δ are what was stated
_FEW = 64  # of which the mass at infinity is a rational number
# a mechanism's class (or what makes one) and its fields, all hashable
Use = tuple[Callable[..., Mechanism], tuple[Any, ...]]


@dataclass(frozen=True)
class Spent:
    """Uses of mechanisms on one data set, immutable; every method answers with the safe side.

    All pairs are (record absent, record present) of one neighbouring relation and count in both
    orders.

    Attributes:
        uses: (class, fields) → number of uses.
        rho, xi: total of mechanisms known only to be (ξ, ρ)-zCDP.
        non_private: something was released without any privacy.
    """

    uses: Mapping[Use, int] = field(default_factory=dict)
    rho: float = 0.0
    xi: float = 0.0
    non_private: bool = False

    def plus(self, other: Spent, count: int = 1) -> Spent:
        """With ``count`` times another spending on top."""
        uses = dict(self.uses)
        if count:
            for use, times in other.uses.items():
                uses[use] = uses.get(use, 0) + times * count
        lost = self.non_private or (other.non_private and count > 0)
        return Spent(uses, self.rho + count * other.rho, self.xi + count * other.xi, lost)

    @property
    def nothing(self) -> bool:
        """Whether nothing was released that depends on the data."""
        return not self.uses and self.rho == 0.0 and self.xi == 0.0 and not self.non_private

    def mechanism(self) -> Composition:
        """The composition.

        Raises:
            ValueError: nothing was spent, or something was released without privacy: no composition
                stands for that.
        """
        if self.nothing:
            raise ValueError("nothing was spent so far: there is no mechanism to return")
        if self.non_private:
            raise ValueError(
                "a non-private event was composed: no mechanism with finite privacy loss stands"
                " for it"
            )
        parts: list[tuple[Any, int]] = [
            (kind(*fields), times) for (kind, fields), times in self.uses.items()
        ]
        if self.rho or self.xi:
            parts.append((zcdp_mechanism(self.rho, self.xi), 1))
        return compose(parts)

    def _gaussian_mu(self) -> float | None:
        """μ where everything is Gaussian noise without subsampling, else None."""
        if self.rho or self.xi or any(kind is not Gaussian for kind, _ in self.uses):
            return None
        return (
            math.sqrt(sum(times / fields[0] ** 2 for (_, fields), times in self.uses.items())) * _UP
        )

    @property
    def _zcdp_alone(self) -> bool:
        """Whether everything is known only as zCDP, whose numbers have closed forms."""
        return not self.uses and not self.non_private and self.rho > 0.0

    def pure_epsilon(self) -> float:
        """ε(0): the largest loss of either order, ∞ where there is none."""
        return self.finite_epsilon() if self.infinite_mass() == 0.0 else math.inf

    def finite_epsilon(self) -> float:
        """The largest finite loss of either order, beyond which δ is ``infinite_mass``; ∞ where
        there is none. Guarantees that were stated add up exactly."""
        if self.non_private or self.rho or self.xi:
            return math.inf
        stated = [(times, fields) for (kind, fields), times in self.uses.items() if kind in _STATED]
        total = above(sum((times * Fraction(fields[0]) for times, fields in stated), Fraction(0)))
        others = [
            times * _largest_loss(kind, fields)
            for (kind, fields), times in self.uses.items()
            if kind not in _STATED
        ]
        return (total + sum(others)) * _UP if others else total

    def infinite_mass(self) -> float:
        """Probability of an infinite loss, δ(∞), the larger of both orders."""
        if self.non_private:
            return 1.0
        if self._zcdp_alone and self.xi == 0.0:
            return 0.0
        masses = [(times, _infinite_masses(*use)) for use, times in self.uses.items()]
        if all(kind in _STATED for kind, _ in self.uses) and not (self.rho or self.xi):
            shown = [(times, one) for times, (one, _) in masses if one > 0.0]
            if sum(times for times, _ in shown) <= _FEW:
                kept = math.prod(
                    ((1 - Fraction(one)) ** times for times, one in shown), start=Fraction(1)
                )
                return above(1 - kept)
        if self.rho or self.xi:
            last = float(np.min(zcdp_mechanism(self.rho, self.xi).deltas))
            masses.append((1, (last, last)))
        logs = [sum(times * np.log1p(-both[i]) for times, both in masses) for i in (0, 1)]
        return float(min(-math.expm1(min(logs)) * _UP, 1.0)) if masses else 0.0

    def epsilon(self, delta: ArrayLike, rtol: float = options.RTOL) -> float:
        """Smallest ε ≥ 0 known to have δ(ε) ≤ δ: an upper bound.

        Args:
            delta: δ in [0, 1].

        Raises:
            ValueError: δ is out of range.
        """
        delta = float(closed_unit("target_delta", delta))
        if self.non_private:
            return math.inf
        if self.nothing or delta == 1.0:
            return 0.0
        pure = self.finite_epsilon() if self.infinite_mass() <= delta else math.inf
        if delta == 0.0 or pure == 0.0:
            return pure
        mu = self._gaussian_mu()
        if mu is not None:
            return float(gdp.epsilon(delta=delta, mu=mu)) * _UP
        if self._zcdp_alone:
            return (self.xi + float(epsilon_from_zcdp(delta=delta, rho=self.rho))) * _UP
        return min(safe_side(self.mechanism(), "epsilon", rtol=rtol, delta=delta), pure)

    def delta(self, epsilon: ArrayLike, rtol: float = options.RTOL) -> float:
        """δ(ε), an upper bound; below ε = 0 by δ(ε) = 1 − e^ε·(1 − δ(−ε)), which holds for the
        larger of both orders.

        Args:
            epsilon: ε in nats, any number or ±∞.

        Raises:
            ValueError: ε is not a number.
        """
        epsilon = float(np.asarray(epsilon))
        if math.isnan(epsilon):
            raise ValueError("target_epsilon must be a number, got nan")
        if self.non_private:
            return 1.0
        if epsilon < 0.0:
            return min(-math.expm1(epsilon) + math.exp(epsilon) * self.delta(-epsilon, rtol), 1.0)
        if self.nothing:
            return 0.0
        if epsilon >= self.finite_epsilon() or epsilon == math.inf:
            return self.infinite_mass()
        mu = self._gaussian_mu()
        if mu is not None:
            return min(float(gdp.delta(epsilon=epsilon, mu=mu)) * (1.0 + 1e-9), 1.0)
        if self._zcdp_alone:
            beyond = (epsilon - self.xi * _UP) * (1.0 - SHORT)
            last = float(delta_from_zcdp(epsilon=max(beyond, 0.0), rho=self.rho))
            # (δ is convex in e^ε, and 1 at e^ε = 0)
            return (
                min(1.0 - math.exp(min(beyond, 0.0)) * (1.0 - last) + SHORT, 1.0)
                if beyond < 0.0
                else last
            )
        return safe_side(self.mechanism(), "delta", rtol=rtol, epsilon=epsilon)

    def tpr(self, fpr: ArrayLike, rtol: float = options.RTOL) -> Any:
        """Largest TPR of any attack at an FPR, an upper bound.

        Args:
            fpr: in [0, 1], any shape.

        Returns:
            Array of that shape, or a float for a number.
        """
        return self._rates("tpr", fpr, rtol)

    def beta(self, fpr: ArrayLike, rtol: float = options.RTOL) -> Any:
        """Least FNR of any attack at an FPR, a lower bound.

        Args:
            fpr: in [0, 1], any shape.

        Returns:
            Array of that shape, or a float for a number.
        """
        return self._rates("beta", fpr, rtol)

    def _rates(self, quantity: str, fpr: ArrayLike, rtol: float) -> Any:
        rates = closed_unit("fpr", fpr)
        flat = rates.reshape(-1)
        if self.non_private:
            tpr, fnr = np.ones_like(flat), np.zeros_like(flat)
        else:
            tpr, fnr = flat.copy(), 1.0 - flat
            zero, inner = flat == 0.0, (flat > 0.0) & (flat < 1.0) & (not self.nothing)
            tpr[zero] = self.infinite_mass()
            fnr[zero] = np.maximum(1.0 - tpr[zero] - SHORT, 0.0)
            if np.any(inner):
                tpr[inner], fnr[inner] = self._inner_rates(flat[inner], rtol)
        return plain((tpr if named(quantity).grows else fnr).reshape(rates.shape))

    def _inner_rates(self, fpr: Array, rtol: float) -> tuple[Array, Array]:
        """Largest TPR and least FNR at FPRs between 0 and 1."""
        mu = self._gaussian_mu()
        if mu is not None:
            tpr, fnr = gdp.tpr(fpr=fpr, mu=mu), gdp.beta(fpr=fpr, mu=mu)
            return np.minimum(tpr * (1.0 + 1e-9), 1.0), fnr * (1.0 - 1e-9)
        if self._zcdp_alone and self.xi == 0.0:
            fnr = beta_from_zcdp(fpr=fpr, rho=self.rho)
            return np.minimum(1.0 - fnr + SHORT, 1.0), fnr
        found = measure(self.mechanism(), ("tpr", "beta"), rtol=rtol, fpr=fpr).brackets
        return found["tpr"].upper, found["beta"].lower

    def mu_and_regret(
        self, fpr_floor: float = options.FPR_FLOOR, rtol: float = options.RTOL
    ) -> MuAndRegret:
        """μ at FPRs down to the floor and the regret of reporting it, both upper bounds.

        Args:
            fpr_floor: in [1e-300, 0.5).

        Raises:
            ValueError: the floor is out of range.
        """
        floor = float(floor_rate("fpr_floor", fpr_floor))
        if self.non_private:
            return MuAndRegret(math.inf, 0.0)
        if self.nothing:
            return MuAndRegret(0.0, 0.0)
        mu = self._gaussian_mu()
        if mu is not None:
            return MuAndRegret(mu, CLOSED_FORM)
        return mu_and_regret(self.mechanism(), floor, rtol=rtol)

    def advantage(self, rtol: float = options.RTOL) -> float:
        """η = max TPR − FPR = δ(0), an upper bound."""
        if self._zcdp_alone and self.xi == 0.0:
            return float(advantage_from_zcdp(rho=self.rho))
        return self.delta(0.0, rtol)


def best_of(
    uses: tuple[tuple[Use, int], ...], rho: float, xi: float, mean: float, shape: float
) -> Mechanism:
    """The best of several runs, each of which spends the same, as a kind of use.

    Args:
        uses, rho, xi: what one run spends, as :class:`Spent` has it, the former as pairs.
        mean: of the number of runs.
        shape: η of its law: 0 logarithmic, 1 geometric, ∞ Poisson, else negative binomial.
    """
    run = Spent(dict(uses), rho, xi).mechanism()
    if shape == math.inf:
        return Selected(run, Poisson(mean))
    laws = {0.0: Logarithmic, 1.0: Geometric}
    return Selected(run, laws[shape](mean) if shape in laws else NegativeBinomial(mean, shape))


def one_of_many(use: Use, num_steps: float) -> Mechanism:
    """One of many steps, drawn at random, each of which would be one use, as a kind of use."""
    kind, fields = use
    return RandomAllocation(mechanism=kind(*fields), num_steps=num_steps)


def above(value: Fraction) -> float:
    """The least double that is not below a rational number.

    Example:
        >>> above(Fraction(1, 3)) * 3 >= 1, above(Fraction(3)) == 3.0
        (True, True)
    """
    found = float(value)
    return found if Fraction(found) >= value else math.nextafter(found, math.inf)


def _largest_loss(kind: Callable[..., Mechanism], fields: tuple[Any, ...]) -> float:
    """Largest finite loss of one use in either order, ∞ where there is none."""
    if kind in (Gaussian, SubsampledGaussian):
        return math.inf
    if kind in (Laplace, DiscreteLaplace):
        return 1.0 / fields[0]
    if kind is SubsampledLaplace:
        # (the other order's, −log(1 − p + p·e^{−1/b}), is smaller)
        scale, p = fields
        return (
            1.0 / scale
            if p == 1.0
            else float(np.logaddexp(math.log1p(-p), math.log(p) + 1.0 / scale))
        )
    if kind in (*_STATED, RandomizedResponse):
        return float(fields[0])
    if kind is FromPMFs:
        p, q = (np.asarray(a) for a in fields)
        inside = (p > 0.0) & (q > 0.0)
        if not np.any(inside):
            return 0.0
        return float(np.max(np.abs(np.log(q[inside]) - np.log(p[inside]))))
    return math.inf


def _infinite_masses(
    kind: Callable[..., Mechanism], fields: tuple[Any, ...]
) -> tuple[float, float]:
    """Masses of outputs that are possible only with the record, and only without it, in one use."""
    if kind is ApproximateDP:
        return float(fields[1]), float(fields[1])
    if kind is one_of_many:  # (at most those of a step)
        return _infinite_masses(*fields[0])
    if kind is best_of:
        # (the best is one of the runs: at most so many times that of a run)
        uses, rho, xi, mean, _ = fields
        one = min(Spent(dict(uses), rho, xi).infinite_mass() * mean * _UP, 1.0)
        return one, one
    if kind is FromPMFs:
        p, q = (np.asarray(a) for a in fields)
        return math.fsum(q[p == 0.0]), math.fsum(p[q == 0.0])
    return 0.0, 0.0
