"""TPR: what an attacker reaches at a given FPR."""

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
    """1 − f(α) at the log of an FPR α."""
    return probability(error_rates(curve, query, symmetric=symmetric)[0])


def tangency(
    halves: HalfCurves, query: Array, found: Bracket, given: Bracket | None = None
) -> Tangency:
    """TPR itself, at the line through the curve at the FPR."""
    return at_fpr(halves, query).tangency()


QUANTITY = Quantity(
    name="tpr",
    symbol="TPR",
    read=read,
    read_known=known.tpr,
    long_name="largest true positive rate at the given FPR",
    description="The largest share of present records that an attack finds at the given FPR.",
    argument="fpr",
    default=options.FPR,
    check=open_unit,
    closed=True,
    query=log_rate,
    rate=identity,
    locate=threshold_of_fpr,
    unit="probability",
    complement=Complement("beta"),
    extent=(0.0, 1.0),
    tangency=tangency,
    overflow=overflow.Overflow(shift=overflow.probability_raised),
    reported=options.REPORT_FPRS,
    idle=identity,
    of_gaussian=lambda mu, fpr: gdp.tpr(fpr=fpr, mu=mu),
    order=60,
)
