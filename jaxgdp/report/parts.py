"""A release by its parts: shares, ρ, noise and μ of each, and what ρ alone would have said."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..bracket import Bracket
from ..conversions import epsilon_from_zcdp
from ..measure import measure
from ..mechanisms import Composition, DiscreteGaussian, Gaussian, compose
from ..mechanisms.base import Mechanism
from ..numerics.rounding import rounded_outward

if TYPE_CHECKING:
    from ..spec import Spec
    from .content import Report

_ROUNDING = 1e-13  # relative, of a sum of budgets: each has a few roundings


class Part(NamedTuple):
    """One part of a release.

    Attributes:
        name: as its description has it, or its type and number.
        share: of the whole budget; None where none was stated and ρ of the whole is not known.
        rho: ρ of all its uses together, rounded up; None where it has none.
        sigma: the noise parameter; None where there are several or none.
        mu: bracket of its own μ, at the FPR floor of the report.
    """

    name: str
    share: float | None
    rho: float | None
    sigma: float | None
    mu: Bracket


def rho_of(mechanism: Mechanism, count: Any = 1.0) -> float | None:
    """ρ of so many uses of a Gaussian or discrete Gaussian, s²/(2σ²) each, rounded up; else None.

    (Bun & Steinke 2016, Proposition 1.6; Canonne et al. 2020, Theorem 4.)

    Example:
        >>> import jaxgdp
        >>> round(rho_of(jaxgdp.DiscreteGaussian(2.0), 4), 12)
        0.5
    """
    if isinstance(mechanism, DiscreteGaussian):
        sigma, sensitivity = float(mechanism.sigma), float(mechanism.sensitivity)
    elif isinstance(mechanism, Gaussian):
        sigma, sensitivity = float(mechanism.noise_multiplier), 1.0
    else:
        return None
    return float(count) * 0.5 * (sensitivity / sigma) ** 2 * (1.0 + _ROUNDING)


def total_rho(composition: Composition) -> float | None:
    """ρ of a composition, rounded up, where every part of it has one; else None."""
    each = [
        rho_of(mechanism, count)
        for mechanism, count in zip(composition.mechanisms, composition.counts, strict=True)
    ]
    known = [rho for rho in each if rho is not None]
    return math.fsum(known) * (1.0 + _ROUNDING) if len(known) == len(each) else None


def parts_of(described: Spec | None, settings: dict[str, Any]) -> tuple[Part, ...]:
    """The parts of a description that names them or states budgets; none of others."""
    if described is None or not any(p.name or p.share or p.rho for p in described.parts):
        return ()
    made = [compose([(part.mechanism, part.count)]) for part in described.parts]
    how = {key: settings[key] for key in ("rtol", "fpr_floor", "adjacency")}
    mu = measure(made, "mu", **how)["mu"]
    budgets = [total_rho(own) for own in made]
    whole = None if None in budgets else math.fsum(b for b in budgets if b is not None)
    found = []
    for number, (part, own, rho) in enumerate(zip(described.parts, made, budgets, strict=True)):
        share = part.share
        if share is None and rho is not None and whole is not None:
            share = rho / whole
        sides = (np.float64(np.ravel(side)[number]) for side in mu)
        name = part.name or f"{number + 1}: {type(own.mechanisms[0]).__name__}"
        found.append(Part(name, share, rho, _sigma(own), Bracket(*sides)))
    return tuple(found)


def _sigma(composition: Composition) -> float | None:
    if len(composition.mechanisms) != 1:
        return None
    only: Any = composition.mechanisms[0]
    return float(getattr(only, only.noise_scale)) if only.noise_scale else None


def shown_rho(rho: float) -> str:
    """Six digits, rounded up but for the rounding of the noise that a budget became.

    Example:
        >>> shown_rho(1.0 + 1e-13), shown_rho(0.2000001)
        ('1', '0.200001')
    """
    return rounded_outward(rho * (1.0 - 1e-12), up=True)


def epsilon_by_rho(report: Report, delta: float) -> float | None:
    """ε at δ that follows from ρ alone (Canonne et al. 2020); None where there is no ρ."""
    if report.rho is None:
        return None
    return float(epsilon_from_zcdp(delta=delta, rho=report.rho))
