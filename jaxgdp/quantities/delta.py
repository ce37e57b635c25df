"""δ(ε): the privacy profile."""

from __future__ import annotations

from .. import gdp, options
from ..accounting.certify.curve import Curve
from ..bracket import Bracket
from ..numerics import namespace as xp
from ..numerics.shapes import Array
from ..numerics.validation import nonnegative
from . import overflow
from .base import Quantity, identity
from .reading import known
from .reading.profile import log_delta, probability
from .tangency import HalfCurves, Tangency, single_point


def read(curve: Curve, query: Array, *, symmetric: bool) -> Bracket:
    """δ(ε) = Pr[Y > ε] − e^ε·Pr[X > ε], the larger direction for the symmetrised curve."""
    return probability(log_delta(curve, query, symmetric=symmetric))


def tangency(
    halves: HalfCurves, query: Array, found: Bracket, given: Bracket | None = None
) -> Tangency:
    """δ(ε) itself, at ε; ∂δ/∂ε = −e^ε·α with α the FPR of the threshold ε."""
    side, _ = halves.larger(query)
    slope = -xp.exp(query + halves.log_fpr(side, query))
    return single_point(side, query, xp.zeros(()), slope)


QUANTITY = Quantity(
    name="delta",
    symbol="δ",
    read=read,
    read_known=known.delta,
    long_name="delta at the given epsilon",
    description="The smallest δ for which the mechanism is (ε, δ)-differentially private.",
    argument="epsilon",
    default=options.EPSILON,
    check=nonnegative,
    threshold=identity,
    worse_of_orders=True,
    unit="probability",
    extent=(0.0, 1.0),
    reach=lambda epsilon: (options.FPR_FLOOR, None),
    tangency=tangency,
    overflow=overflow.Overflow(shift=overflow.probability_raised),
    reported=(),
    of_gaussian=lambda mu, epsilon: gdp.delta(epsilon=epsilon, mu=mu),
    order=50,
)
