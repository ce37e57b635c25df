"""A claim about a mechanism, as a trade-off curve that is never above the true one."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import gdp
from ..adjacency import Adjacency
from ..bracket import Bracket
from ..conversions import beta_from_zcdp, delta_from_zcdp
from ..mechanisms import Composition, Mechanism, compose
from ..mechanisms.base import AccountedBy
from ..numerics.shapes import ArrayLike
from ..numerics.validation import checked, nonnegative
from ..tradeoff import TradeoffCurve, tradeoff
from .half_planes import HalfPlanes, of_curve, of_profile
from .swapped import Swapped, swapped

_KNOTS = 240  # of a certified curve, for the one-run recursion
_SMALLEST = 1e-9
_FLOOR = 1e-9  # of certified curves: well below the rates an audit can count


@dataclass(frozen=True)
class Claim:
    """A claim on privacy; build it with :func:`as_claim`.

    Attributes:
        text: the claim in words.
        fnr: function of FPRs → :class:`jaxgdp.Bracket` of the least FNR it allows. An attack whose
            FNR is below the lower side refutes it.
        mu: bracket of the μ claimed, where there is one number.
        fpr_floor: smallest FPR at which that μ holds, 0 where it is every one; None without a μ.
        profile: function of ε ≥ 0 → an upper bound on δ(ε), where one is known; else sequential
            audits take what ``fnr`` says.
        epsilons: corners of the profile.
    """

    text: str
    fnr: Callable[[np.ndarray], Bracket]
    mu: Bracket | None = None
    fpr_floor: float | None = None
    profile: Callable[[np.ndarray], np.ndarray] | None = None
    epsilons: tuple[float, ...] = ()

    def half_planes(self) -> HalfPlanes:
        """Half-planes of rates that hold every pair the claim allows, for sequential audits."""
        if self.profile is None:
            return of_curve(lambda fpr: np.asarray(self.fnr(fpr).lower, float))
        return of_profile(self.profile, self.epsilons)

    def tabulated(self, points: int = 200) -> Claim:
        """The same claim as a table: for hundreds of audits against one certified curve.

        Between two FPRs of the table the answer is that of the larger one, where the claim demands
        less: nothing is refuted that was not before.

        Args:
            points: FPRs in the table, closest near 0 and 1.

        Example:
            >>> tabulated = as_claim(1.0).tabulated().fnr(np.array([0.1]))
            >>> float(tabulated.lower[0]) <= float(gdp.beta(fpr=0.1, mu=1.0))
            True
        """
        half = np.geomspace(1e-7, 0.5, points // 2)
        grid = np.concatenate([[0.0], half, 1.0 - half[-2::-1], [1.0]])
        side = self.fnr(grid)
        lower, upper = np.asarray(side.lower, float), np.asarray(side.upper, float)

        def fnr(fpr: ArrayLike):
            after = np.searchsorted(grid, np.asarray(fpr, float), side="left")
            before = np.searchsorted(grid, np.asarray(fpr, float), side="right") - 1
            return Bracket(lower[after], upper[before])

        return dataclasses.replace(self, fnr=fnr)

    def swapped(self, most: float) -> Swapped:
        """R ↦ a cheap lower bound on f(1 − R) for R in [0, ``most``].

        Args:
            most: largest R requested, in (0, 1].
        """
        knots = np.concatenate([[0.0], np.geomspace(_SMALLEST, most, _KNOTS - 1)])
        side = self.fnr(1.0 - knots)
        return swapped(knots, np.asarray(side.lower, float), np.asarray(side.upper, float))


def _gaussian(mu: float) -> Claim:
    def fnr(fpr: ArrayLike):
        beta = gdp.beta(fpr=fpr, mu=mu)
        return Bracket(beta * (1.0 - 1e-11), np.minimum(beta * (1.0 + 1e-11), 1.0))

    def profile(epsilon: np.ndarray):
        return np.asarray(gdp.delta(epsilon=epsilon, mu=mu)) * (1.0 + 1e-11)

    return Claim(f"{mu:.6g}-GDP", fnr, Bracket(mu, mu), 0.0, profile)


def _approximate(epsilon: float, delta: float) -> Claim:
    def fnr(fpr: ArrayLike):
        fpr = np.asarray(fpr, float)
        first = 1.0 - delta - np.exp(epsilon) * fpr
        second = np.exp(-epsilon) * (1.0 - delta - fpr)
        beta = np.maximum(np.maximum(first, second), 0.0)
        return Bracket(np.maximum(beta - 1e-15, 0.0), beta)

    def profile(at: np.ndarray):
        # below ε the largest of TPR − e^at·FPR is at the corner, where 1 − TPR = FPR
        corner = (1.0 - delta) / (1.0 + np.exp(epsilon))
        return np.where(at < epsilon, 1.0 - corner - np.exp(at) * corner, delta)

    return Claim(f"({epsilon:.6g}, {delta:.6g})-DP", fnr, profile=profile, epsilons=(epsilon,))


def zero_concentrated(rho: float) -> Claim:
    """The claim of ρ-zero-concentrated differential privacy.

    Args:
        rho: ρ ≥ 0.

    Returns:
        A :class:`Claim`, by the sharpest known bounds on its curve.

    Example:
        >>> zero_concentrated(0.5).text
        '0.5-zCDP'
    """
    rho = float(nonnegative("rho", rho))
    fnr = lambda fpr: Bracket(
        np.asarray(beta_from_zcdp(fpr=fpr, rho=rho)), 1.0 - np.asarray(fpr, float)
    )
    profile = lambda epsilon: np.asarray(delta_from_zcdp(epsilon=epsilon, rho=rho))
    return Claim(f"{rho:.6g}-zCDP", fnr, profile=profile)


def _curve(curve: TradeoffCurve, text: str) -> Claim:
    if curve.shape != ():
        raise ValueError(f"claim must be one mechanism, got a batch of shape {curve.shape}")
    if not Adjacency(curve.adjacency).symmetric:
        raise ValueError(
            f"claim must cover both orders of the data sets, got adjacency {curve.adjacency!r}"
        )
    return Claim(
        text,
        lambda fpr: curve.beta(np.asarray(fpr, float)),
        curve.mu(),
        curve.fpr_floor,
        lambda epsilon: np.asarray(curve.delta(epsilon=np.asarray(epsilon, float)).upper),
    )


def as_claim(claim: Any) -> Claim:
    """Any way of stating a claim, as a :class:`Claim`.

    Args:
        claim: a mechanism or composition (its certified curve is worked out), a
            :class:`jaxgdp.TradeoffCurve`, a number μ > 0, a pair (ε, δ), a
            :class:`jaxgdp.spec.Spec`, or a :class:`Claim`.

    Raises:
        ValueError: none of these, out of range, or a batch of mechanisms.

    Example:
        >>> as_claim(1.5).text, as_claim((1.0, 1e-5)).text
        ('1.5-GDP', '(1, 1e-05)-DP')
    """
    if isinstance(claim, Claim):
        return claim
    if isinstance(claim, TradeoffCurve):
        return _curve(claim, _named(claim.mechanism))
    if isinstance(claim, Mechanism | Composition | AccountedBy):
        return _curve(tradeoff(claim, fpr_floor=_FLOOR), _named(claim))
    if hasattr(claim, "mechanism") and hasattr(claim, "settings"):
        curve = tradeoff(
            claim.mechanism,
            fpr_floor=_FLOOR,
            adjacency=claim.settings.get("adjacency", "add_remove"),
        )
        return _curve(curve, claim.title or claim.source)
    if isinstance(claim, int | float | np.number | np.ndarray) and np.ndim(claim) == 0:
        return _gaussian(float(nonnegative("claim", claim)))
    if isinstance(claim, tuple | list) and len(claim) == 2:
        epsilon = float(nonnegative("epsilon", claim[0]))
        return _approximate(
            epsilon,
            float(checked("delta", claim[1], "in [0, 1)", lambda a: (a >= 0.0) & (a < 1.0))),
        )
    raise ValueError(
        "claim must be a mechanism, a curve, a number mu, or a pair (epsilon, delta), got"
        f" {claim!r}"
    )


def _named(mechanism: Mechanism | Composition | AccountedBy) -> str:
    if not isinstance(mechanism, Composition):
        mechanism = compose([(mechanism, 1)])
    texts = []
    for part, count in zip(mechanism.mechanisms, mechanism.counts, strict=True):
        given = part.given().items()
        fields = ", ".join(f"{name} = {_value(value)}" for name, value in given)
        uses = f" x {int(np.max(count))}" if np.max(count) > 1 else ""
        texts.append(f"{type(part).__name__}({fields}){uses}")
    return " + ".join(texts)


def _value(value: Any) -> str:
    """A field of a mechanism in words: numbers, how many there are, or what kind of thing it is."""
    array = np.asarray(value) if isinstance(value, int | float | np.generic | np.ndarray) else None
    if array is None and hasattr(value, "shape") and hasattr(value, "dtype"):
        array = np.asarray(value)
    if array is not None and array.dtype.kind in "biuf":
        return f"{float(array):.6g}" if array.ndim == 0 else f"<{array.size} values>"
    if isinstance(value, Composition | Mechanism):
        return _named(value)
    return str(value)
