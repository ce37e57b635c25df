"""δ(ε): the privacy profile."""

from __future__ import annotations

from .. import gdp, options
from ..accounting.certify.curve import Curve
from ..bracket import Bracket
from ..numerics.validation import nonnegative
from .base import Quantity, identity
from .reading.profile import log_delta, probability


def read(curve: Curve, query, *, symmetric: bool) -> Bracket:
    """δ(ε) = Pr[Y > ε] − e^ε·Pr[X > ε], the larger direction for the symmetrised curve."""
    return probability(log_delta(curve, query, symmetric=symmetric))


QUANTITY = Quantity(
    name="delta",
    symbol="δ",
    read=read,
    long_name="delta at the given epsilon",
    description="The smallest δ for which the mechanism is (ε, δ)-differentially private.",
    argument="epsilon",
    default=options.EPSILON,
    check=nonnegative,
    threshold=identity,
    unit="probability",
    extent=(0.0, 1.0),
    reported=(),
    of_gaussian=lambda mu, epsilon: gdp.delta(epsilon=epsilon, mu=mu),
    order=50,
)
