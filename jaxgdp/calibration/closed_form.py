"""Calibration of the Gaussian mechanism without a search (Kulynych 2024, Corollaries B.3 and B.4).

T uses with noise σ are exactly (c·√T/σ)-GDP, c = 1, or 2 for replacing a record, so the noise is
c·√T/μ with μ the largest whose Gaussian curve meets the target: 2Φ⁻¹((1 + η)/2) for an advantage,
Φ⁻¹(1 − α) − Φ⁻¹(β) for an FNR at an FPR, and so on."""

from __future__ import annotations

import numpy as np

from ..bracket import Bracket
from ..numerics.errors import CLOSED_MU
from ..targets import Target
from .families import Unknown
from .solver import Solved
from .status import EVERY, NONE, OK


def gaussian_bracket(target: Target, mu: np.ndarray) -> Bracket:
    """The target's own quantity of f_μ, opened by its rounding error."""
    with np.errstate(over="ignore"):
        sides = [
            np.broadcast_to(target.of_gaussian(mu * (1.0 + s * CLOSED_MU)), np.shape(mu))
            for s in (-1.0, 1.0)
        ]
    return Bracket(np.minimum(*sides), np.maximum(*sides))


def solve(target: Target, unknown: Unknown, per_unit: np.ndarray, tolerance: float) -> Solved:
    """The calibration of Gaussian mechanisms with μ = per_unit/σ, or per_unit·√T (all arrays flat).

    Args:
        target: flat.
        unknown: the noise multiplier, a scale or the number of steps.
        per_unit: μ at the value 1.
        tolerance: relative step.
    """
    mu = target.gaussian_mu() * (1.0 - 4.0 * CLOSED_MU)
    power = -1.0 if unknown.sign > 0 else 0.5
    with np.errstate(over="ignore"):
        wanted = (mu / per_unit) ** (1.0 / power)
    value = np.clip(np.floor(wanted) if unknown.whole else wanted, unknown.low, unknown.high)
    achieved = gaussian_bracket(target, per_unit * value**power)
    rejected = unknown.less_private(value, tolerance)
    beyond = gaussian_bracket(target, per_unit * rejected**power)
    met = target.meets(achieved)
    status = np.where(met, np.where(rejected == value, EVERY, OK), NONE)
    # a target below the smallest step, or above the largest, has nothing on the other side
    nothing = np.full(len(value), np.nan)
    lost, open_ended = status == NONE, status == EVERY
    value, rejected = (
        np.where(lost, np.nan, value),
        np.where(lost, unknown.most_private, np.where(open_ended, np.nan, rejected)),
    )
    blank = lambda bracket, where: Bracket(*(np.where(where, nothing, side) for side in bracket))
    refused = Bracket(
        *(np.where(lost, low, high) for low, high in zip(achieved, beyond, strict=True))
    )
    none = np.zeros(len(value), np.int64)
    return Solved(
        value, blank(achieved, lost), rejected, blank(refused, open_ended), status, none, none
    )
