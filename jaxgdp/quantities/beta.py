"""β: the trade-off curve itself."""

from __future__ import annotations

from .. import gdp, options
from ..accounting.certify.curve import Curve
from ..bracket import Bracket
from ..numerics.shapes import Array
from ..numerics.validation import open_unit
from . import overflow
from .base import Complement, Quantity, identity, log_rate
from .reading import known
from .reading.profile import probability
from .reading.rates import error_rates, threshold_of_fpr
from .tangency import HalfCurves, Tangency, at_fpr


def read(curve: Curve, query: Array, *, symmetric: bool) -> Bracket:
    """f(α) at the log of an FPR α."""
    return probability(error_rates(curve, query, symmetric=symmetric)[1])


def tangency(
    halves: HalfCurves, query: Array, found: Bracket, given: Bracket | None = None
) -> Tangency:
    """1 − TPR, at the line through the curve at the FPR."""
    return at_fpr(halves, query).tangency(sign=-1.0)


QUANTITY = Quantity(
    name="beta",
    symbol="β",
    read=read,
    read_known=known.beta,
    long_name="least false negative rate at the given FPR",
    description="The smallest share of present records that every attack misses at the given FPR.",
    argument="fpr",
    default=options.FPR,
    check=open_unit,
    closed=True,
    query=log_rate,
    rate=identity,
    locate=threshold_of_fpr,
    safe_side="lower",
    unit="probability",
    complement=Complement("tpr"),
    extent=(0.0, 1.0),
    tangency=tangency,
    overflow=overflow.Overflow(shift=overflow.probability_lowered),
    reported=(),
    idle=lambda fpr: 1.0 - fpr,
    of_gaussian=lambda mu, fpr: gdp.beta(fpr=fpr, mu=mu),
    order=70,
)
