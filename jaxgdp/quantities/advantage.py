"""η: the membership advantage."""

from __future__ import annotations

from .. import gdp
from ..accounting.certify.curve import Curve, log_delta_at, path
from ..bracket import Bracket
from ..numerics import namespace as xp
from ..numerics.shapes import Array
from . import overflow
from .base import Complement, Quantity
from .reading import known, unsampled
from .reading.profile import delta_achieved, probability
from .tangency import HalfCurves, Tangency, single_point


def read(curve: Curve, query: Array, *, symmetric: bool) -> Bracket:
    """η = max over α of 1 − α − f(α) = δ(0), shared by both directions (Kulynych 2024).

    Method: docs/method/reading.md#lines
    """
    zero = xp.zeros(())
    sides = [log_delta_at(side, zero) for side in (curve.upper_plus, curve.upper_minus)]
    upper = xp.minimum(xp.minimum(*sides), unsampled.log_delta(zero, curve.tail_mu, 1.0))
    lower = xp.maximum(
        *(delta_achieved(path(side), zero) for side in (curve.lower_plus, curve.lower_minus))
    )
    return probability(
        Bracket(xp.maximum(lower, unsampled.log_delta(zero, curve.gaussian_part_mu, -1.0)), upper)
    )


def tangency(
    halves: HalfCurves, query: Array, found: Bracket, given: Bracket | None = None
) -> Tangency:
    """δ(0) itself."""
    zero = xp.zeros(())
    side, _ = halves.larger(zero)
    return single_point(side, zero, zero, zero)


QUANTITY = Quantity(
    name="advantage",
    symbol="η",
    read=read,
    read_known=known.advantage,
    long_name="membership advantage",
    description="The largest difference of TPR and FPR of any attack.",
    threshold=lambda argument: 0.0,
    unit="probability",
    complement=Complement("bayes_risk", 2.0, (("prior", 0.5),)),
    extent=(0.0, 1.0),
    tangency=tangency,
    overflow=overflow.Overflow(shift=overflow.probability_raised),
    of_gaussian=lambda mu, argument: gdp.advantage(mu=mu),
    order=30,
)
