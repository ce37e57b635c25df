"""The mean of the likelihood ratios of t steps, from above and from below, whatever one step is.

U = (V_1 + … + V_t)/t, with V the likelihood ratio of one step: sums of V on a lattice that coarsens
by octaves (``dyadic_sum``), by doubling. From above mass moves apart with its mean kept, from below
labels are merged, and the Q-mass of each label is carried beside its P-mass.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...numerics.errors import UNIT
from ...pairs import table
from ...pairs.table import Table
from . import dyadic_sum

_NEGLIGIBLE = 1e-45  # mass that may go to the infinities in one go
_FAINT = 1e-304  # mass that has lost no digits where sums of products underflow
_CORE = 512  # K, points of the finest level on either side
_OCTAVE = 256  # M, points per octave; half of it where the sum is very wide
_FINE = 90.0  # points per standard deviation of the body
LEAST = 100.0  # −log of the probability that no sum is smaller than what the lattice resolves
_COARSEST = 1.0 / 192.0  # most between the losses of a table
_KEPT = 160.0  # of its losses per standard deviation of the body


class Moments(NamedTuple):
    """What the layout of sums of V follows from.

    Attributes:
        mean, variance: of one V without the few largest among all steps.
        inner: its variance without some more of them; > 0.
        least: the smallest sum that matters; > 0.
    """

    mean: float
    variance: float
    inner: float
    least: float


@dataclass(frozen=True)
class SumLayout:
    """How sums of V are laid out: in multiples of 1/scale, so that powers of two are the spacings
    wanted; in these units mean and variance of one V without jumps, variance without the larger
    ones, and the smallest sum that matters."""

    number: int
    scale: float
    mean: float
    variance: float
    inner: float
    least: float

    @classmethod
    def of(cls, number: int, law: Moments) -> SumLayout:
        """The layout for the sum of ``number`` of a law."""
        spacing = math.sqrt(law.inner * number) / _FINE
        scale = 2.0 ** math.ceil(math.log2(spacing)) / spacing * (1.0 + 1e-9)
        squared = scale**2
        return cls(
            number,
            scale,
            scale * law.mean,
            squared * law.variance,
            squared * law.inner,
            scale * law.least,
        )

    @property
    def octave(self) -> int:
        """M, points per octave."""
        ratio = math.sqrt(self.variance / self.number) / self.mean
        return _OCTAVE // 2 if ratio * _OCTAVE > 2.0 * _FINE else _OCTAVE

    def layout(self, terms: int) -> dyadic_sum.Layout:
        """Points for a sum of so many V: around 0 while it varies by much, else around its mean."""
        share = math.sqrt(terms / self.number)
        body = math.sqrt(self.inner * terms) / _FINE
        small = self.least * share / self.octave
        narrow = math.sqrt(self.variance / self.number) / self.mean * _OCTAVE < _FINE
        ratio = math.sqrt(self.variance / terms) / self.mean
        apart = ratio * _OCTAVE < _FINE  # from 0
        finest = small if not narrow else body if apart else max(body, small)
        exponent = math.floor(math.log2(finest))
        if not apart:
            return dyadic_sum.Layout(0.0, exponent, self.octave, _CORE)
        # 0 is kept a point as long as the sum may be near it
        centre = terms * self.mean
        coarse = exponent if ratio < 0.05 else max(exponent, math.floor(math.log2(centre)) - 7)
        return dyadic_sum.Layout(
            math.ldexp(round(math.ldexp(centre, -coarse)), coarse), exponent, self.octave, _CORE
        )

    def kept(self, found: Table) -> np.ndarray:
        """The losses at which a table is kept."""
        body = math.sqrt(self.inner / self.number) / self.mean
        return table.grid(found.loss, found.p, min(body, 1.0) / _KEPT, _COARSEST, 1.0 / _KEPT)


class Sum(NamedTuple):
    """A sum of ``terms`` of V: its law, with the P-mass at 0, and what is lost.

    Attributes:
        law: of the sums that are not 0.
        zero: P-mass of the sum 0, as it is.
        minus: P-mass at 0 from now on, whatever else is added; ``plus``: mean (in the units of the
            sums) at ∞.
        terms: their number.
    """

    law: dyadic_sum.Law
    zero: float = 0.0
    minus: float = 0.0
    plus: float = 0.0
    terms: int = 1


def place(layout: dyadic_sum.Layout, values: np.ndarray, p: np.ndarray, error: float):
    """Masses at values ≥ 0 on a layout, with means kept, and the mass at 0: what lies below the
    smallest point above 0 goes to that point and to 0, be 0 a point or not.
    """
    first = layout.first_above_zero()
    near = values < first
    share = values[near] / first
    zero = float(np.sum(p[near] * ((first - values[near]) / first)))
    rest = np.append(values[~near], first), np.append(p[~near], float(np.sum(p[near] * share)))
    some = rest[1] > 0.0
    error += (4.0 + np.count_nonzero(near)) * UNIT
    return dyadic_sum.spread(layout, rest[0][some], rest[1][None, some], error, 0.0), zero


def dominating_mean(plan: SumLayout, start: Sum) -> Table:
    """A pair that dominates, in both directions, that of the mean of V of many steps.

    Args:
        plan: the layout.
        start: the law of one V, on ``plan.layout(1)``.

    Method: docs/method/dominating.md#one-of-many
    """
    number = plan.number

    def join(a: Sum, b: Sum, terms: int) -> Sum:
        s, masses, error, _ = dyadic_sum.add(a.law, b.law)
        p, zero = masses[0], a.zero * b.zero
        for one, other in ((a, b), (b, a)):  # (0 in one of them)
            if one.zero > 0.0:
                values, (mass,) = other.law.flat()
                s, p = np.append(s, values), np.append(p, one.zero * mass)
        p, minus, plus = _trimmed(s, p, terms * plan.scale, _NEGLIGIBLE * terms / number)
        some = p > 0.0
        law, near = place(plan.layout(terms), s[some], p[some], error + 2.0 * UNIT)
        lost = plan.scale * (a.minus * (terms - a.terms) + b.minus * a.terms)
        minus, plus = minus + a.minus + b.minus, plus + a.plus + b.plus + lost
        return Sum(law, zero + near, minus, plus, terms)

    total = dyadic_sum.power(start, number, join)
    s, (p,) = total.law.flat()
    whole = number * plan.scale
    near = s > 0.5 * whole
    loss = np.where(near, np.log1p(np.where(near, s - whole, 0.0) / whole), np.log(s / whole))
    minus = total.minus + total.zero
    found = Table(loss, p, p * (s / whole), minus, total.plus / whole, total.law.error)
    return table.dominating(found, plan.kept(found))


def _trimmed(s: np.ndarray, p: np.ndarray, mean: float, tolerance: float):
    """Masses without the far ends: low ones go to 0 and ∞, high ones to the last point kept.

    Returns:
        The masses, the P-mass at 0 and the mean (in the units of s) at ∞.
    """
    order = np.argsort(s, kind="stable")
    if s[order[0]] < 0.0:
        raise ArithmeticError("a sum of positive terms has left the lattice")
    p = p.copy()
    low = order[: np.searchsorted(np.cumsum(p[order]), tolerance)]
    minus, plus = float(p[low].sum()), float((p * s)[low].sum())
    p[low] = 0.0
    upward = order[::-1]
    high = int(np.searchsorted(np.cumsum((p * s)[upward]), tolerance * mean))
    if high:
        kept = upward[high]
        ends = upward[:high]
        plus += float((p * s)[ends].sum())
        p[kept] += p[ends].sum()
        p[ends] = 0.0
    return p, minus, plus


def _without_faint(p: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same with outputs that may have lost digits to underflow taken for the commonest one,
    which is a test like any other.
    """
    faint = np.minimum(p, q) < _FAINT
    most = int(np.argmax(p))
    if faint[most]:
        return p, q
    p, q = p.copy(), q.copy()
    for masses in (p, q):
        masses[most] += np.sum(masses[faint])
        masses[faint] = 0.0
    return p, q


def attack_mean(plan: SumLayout, law: dyadic_sum.Law) -> Table:
    """A pair that an attack on one of many steps achieves: labels of the steps, added up.

    Args:
        plan: the layout.
        law: labels of one step, on ``plan.layout(1)``, with the P-mass and the Q-mass of each.

    Method: docs/method/dominating.md#one-of-many
    """
    number = plan.number

    def join(a: Sum, b: Sum, terms: int) -> Sum:
        s, masses, *errors = dyadic_sum.add(a.law, b.law)
        # labels far up are one label
        upward = np.argsort(-s, kind="stable")
        high = int(np.searchsorted(np.cumsum(masses[1][upward]), _NEGLIGIBLE * terms))
        if high:
            s[upward[:high]] = s[upward[high]]
        return Sum(dyadic_sum.spread(plan.layout(terms), s, masses, *errors), terms=terms)

    total = dyadic_sum.power(Sum(law), number, join)
    _, (p, q) = total.law.flat()
    found = table.from_masses(
        *_without_faint(p, q / number), total.law.error + 2.0 * UNIT, total.law.apart + 2.0 * UNIT
    )
    return table.merged(found, plan.kept(found))
