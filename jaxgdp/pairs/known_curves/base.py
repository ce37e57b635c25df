"""What is known of a trade-off curve in closed form.

Everything is elementwise in NumPy: fields of a curve and arguments are arrays that broadcast. An
*order* is 0 for the pair as it is, Q against P (a record removed), and 1 for the swapped one (a
record added)."""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple, TypeVar, cast

import jax
import numpy as np

from ...bracket import Bracket
from ...numerics.errors import LOG, LOGS, UNIT
from ...numerics.shapes import Array

REMOVE, ADD = 0, 1
_Own = TypeVar("_Own", bound="KnownCurve")


class Rates(NamedTuple):
    """Both error rates at one FPR, each a bracket of logs."""

    log_tpr: Bracket
    log_beta: Bracket


class Middle(NamedTuple):
    """Error rates of the test that rejects where the loss is more than 0, brackets of logs."""

    log_alpha: Bracket
    log_beta: Bracket


class Tests(NamedTuple):
    """Tests that reject where the loss is large, in the order of growing thresholds.

    Attributes:
        threshold: privacy loss above which a test rejects, to its rounding.
        log_alpha, log_tpr, log_beta: rates of each test, brackets of logs.
    """

    threshold: Array
    log_alpha: Bracket
    log_tpr: Bracket
    log_beta: Bracket


def opened(log_value: Array, error: Array | float = 0.0) -> Bracket:
    """A log of a probability with its rounding on both sides.

    Args:
        log_value: the log, of a few elementary functions of numbers of that size.
        error: what else it may be off by.

    Method: docs/method/known.md#rounding
    """
    finite = np.where(np.isfinite(log_value), np.abs(log_value), 0.0)
    room = LOGS + LOG * UNIT * finite + error
    # (next to 1 a log is known to its own digits, and not to those of 1)
    return Bracket(log_value - room, np.minimum(log_value + room, 0.0))


def reciprocal(value: float) -> Bracket:
    """1/x of a double, with the neighbour on the side that its rounding went.

    Example:
        >>> reciprocal(4.0), reciprocal(3.0).width > 0.0
        (Bracket(lower=0.25, upper=0.25), True)

    Method: docs/method/known.md#rounding
    """
    found = 1.0 / float(value)
    if not math.isfinite(found) or found == 0.0:
        return Bracket(min(found, sys.float_info.max), math.inf) if found else Bracket(0.0, 5e-324)
    over = Fraction(found) * Fraction(float(value)) - 1
    lower = found if over <= 0 else math.nextafter(found, 0.0)
    upper = found if over >= 0 else math.nextafter(found, math.inf)
    return Bracket(lower, upper)


def log1mexp(log_value: Array) -> Array:
    """log(1 − e^a) for a ≤ 0 on the host."""
    a = np.minimum(log_value, 0.0)
    near = a > -0.6931471805599453
    with np.errstate(divide="ignore"):
        return np.where(
            near,
            np.log(-np.expm1(np.where(near, a, -1.0))),
            np.log1p(-np.exp(np.where(near, -1.0, a))),
        )


def log_one_minus(log_value: Bracket) -> Bracket:
    """log(1 − e^a) of a bracketed a."""
    low, high = log1mexp(log_value.upper), log1mexp(log_value.lower)
    return Bracket(opened(low).lower, opened(high).upper)


def together(rates: Rates) -> Rates:
    """Each rate with the help of the other one: next to 1 a rate has lost the digits of its log."""
    tpr, beta = rates
    own = 2.0 * LOGS
    by_beta = Bracket(log1mexp(beta.upper) * (1.0 + own), log1mexp(beta.lower) * (1.0 - own))
    by_tpr = Bracket(log1mexp(tpr.upper) * (1.0 + own), log1mexp(tpr.lower) * (1.0 - own))
    return Rates(narrower(tpr, by_beta), narrower(beta, by_tpr))


def narrower(one: Bracket, other: Bracket) -> Bracket:
    """What two brackets of one number have in common."""
    return Bracket(np.maximum(one.lower, other.lower), np.minimum(one.upper, other.upper))


class KnownCurve:
    """One pair, or a batch of pairs, of which the error rates are known in closed form.

    Attributes:
        batched: whether fields are arrays over a batch, so that many pairs are one.
        trailing: how many last axes of a field belong to one pair.
        size: numbers that one evaluation takes, about.
    """

    batched = True
    trailing = 0

    @property
    def size(self) -> int:
        """How many numbers an evaluation takes."""
        return 1

    def log_delta(self, order: int, epsilon: Array) -> Bracket:
        """log δ(ε) for ε ≥ 0, the hockey-stick divergence."""
        raise NotImplementedError

    def log_one_minus_delta(self, order: int, epsilon: Array) -> Bracket:
        """log(1 − δ(ε)) for ε ≥ 0."""
        raise NotImplementedError

    def rates(self, orders: Sequence[int], log_fpr: Array) -> Rates | None:
        """Error rates at an FPR: of one order, or of the convex hull of both; None where there is
        no closed form.
        """
        return None

    def mu(self, log_floor: Array) -> Bracket | None:
        """Largest μ over FPRs from the floor to f(floor); None where there is no closed form."""
        return None

    def tests(self, order: int, number: int) -> Tests:
        """Tests of growing thresholds from 0 on, that reach to the end of the curve or beyond all
        rates of interest.
        """
        raise NotImplementedError

    def largest_loss(self, order: int) -> Array:
        """Largest loss of an order, rounded up; ∞ where there is none."""
        return np.asarray(np.inf)

    def log_infinity_mass(self, order: int) -> Array | float:
        """log of the mass beyond the largest loss, as it was given: one δ can be told from
        another.
        """
        return -np.inf

    def expanded(self: _Own) -> _Own:
        """The same with a new last axis, along which there are several arguments of each pair."""
        done = {}
        for field in dataclasses.fields(cast(Any, self)):
            value = getattr(self, field.name)
            inner = isinstance(value, KnownCurve)
            at = -1 - self.trailing
            done[field.name] = value.expanded() if inner else np.expand_dims(value, at)
        return cast(_Own, dataclasses.replace(cast(Any, self), **done))


@jax.tree_util.register_static
@dataclass(frozen=True, eq=False)
class OrientedCurve:
    """A known curve in the order that an adjacency takes its pair in.

    Attributes:
        curve: of the pair as it is.
        swapped: whether the first order is that of adding a record.

    For JAX it has no leaves: compiled programs do not read it.
    """

    curve: KnownCurve
    swapped: bool

    @property
    def first(self) -> int:
        """The order that is taken alone where both do not count."""
        return ADD if self.swapped else REMOVE

    def orders(self, symmetric: bool) -> tuple[int, ...]:
        """The orders that count."""
        return (REMOVE, ADD) if symmetric else (self.first,)

    def log_delta(self, epsilon: Array, *, symmetric: bool) -> Bracket:
        """log δ(ε), the larger one of the orders that count."""
        found = [self.curve.log_delta(order, epsilon) for order in self.orders(symmetric)]
        return Bracket(*(np.max(side, axis=0) for side in zip(*found, strict=True)))

    def log_one_minus_delta(self, epsilon: Array, *, symmetric: bool) -> Bracket:
        """log(1 − δ(ε)), the smaller one of the orders that count."""
        found = [self.curve.log_one_minus_delta(order, epsilon) for order in self.orders(symmetric)]
        return Bracket(*(np.min(side, axis=0) for side in zip(*found, strict=True)))

    def end(self, log_delta: Array, *, symmetric: bool) -> Array:
        """The largest loss where δ is no less than the mass beyond it, else ∞."""
        found = [
            np.where(
                np.asarray(self.curve.log_infinity_mass(order)) <= log_delta,
                self.curve.largest_loss(order),
                np.inf,
            )
            for order in self.orders(symmetric)
        ]
        return np.max(found, axis=0)

    def expanded(self) -> OrientedCurve:
        """With a new last axis, where there is a batch."""
        curve = self.curve.expanded() if self.curve.batched else self.curve
        return OrientedCurve(curve, self.swapped)


def stacked(curves: Sequence[Any]) -> Any:
    """Curves of one class as one batch."""
    first = curves[0]
    done = {}
    for field in dataclasses.fields(first):
        values = [getattr(curve, field.name) for curve in curves]
        inner = isinstance(values[0], KnownCurve)
        done[field.name] = stacked(values) if inner else np.stack([np.asarray(v) for v in values])
    return dataclasses.replace(first, **done)
