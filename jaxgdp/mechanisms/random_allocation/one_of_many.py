"""The likelihood ratio of a record that is used in one of t noisy steps, from above and from below.

Without the record every step outputs N(0, σ²); with it one step, chosen evenly, outputs N(1, σ²).
The likelihood ratio is U = (V_1 + … + V_t)/t, where V = e^{z/σ − 1/(2σ²)} is that of one step, and
its law without the record determines everything: δ(ε) = E(U − e^ε)₊ in one direction and E(1 −
e^ε·U)₊ in the other, expectations of convex functions of U. So

- moving mass of V, or of a sum, apart with its mean kept only raises them (from above:
  :func:`dominating_table`);
- a coarser observation, here the sum of labels of the V, only lowers them (from
  below: :func:`attack_table`): that is data processing, whatever the labels are. Beside the P-mass
  of each label its Q-mass is carried, the mean of U there.

Both are of second order in the spacing, and both stay what they are under composition.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from ...numerics.errors import ALLOCATION, UNIT
from ...pairs import table
from ...pairs.table import Table
from . import dyadic_sum

_DEPTH = 14.0  # standard deviations of one step that a table reaches to: beyond, there is 1e-44
_NEGLIGIBLE = 1e-45  # mass that may go to the infinities in one go
_CORE = 512  # K, points of the finest level on either side
_OCTAVE = 256  # M, points per octave; half of it where the sum is very wide
_FINE = 90.0  # points per standard deviation of the body
_LEAST = 100.0  # −log of the probability that no sum is smaller than what the lattice resolves
_COARSEST = 1.0 / 192.0  # most between the losses of a table
_KEPT = 160.0  # of its losses per standard deviation of the body
_GAUSS = np.polynomial.legendre.leggauss(12)
_NODES = np.concatenate([0.25 + 0.25 * _GAUSS[0], 0.75 + 0.25 * _GAUSS[0]])  # on (0, 1)
_WEIGHTS = np.tile(0.25 * _GAUSS[1], 2)


@dataclass(frozen=True)
class _SumLayout:
    """How sums of V are laid out: in multiples of 1/scale, so that powers of two are the spacings
    wanted; in these units mean and variance of one V without jumps, variance without the larger
    ones, and the smallest sum that matters."""

    sigma: float
    number: int
    scale: float
    mean: float
    variance: float
    inner: float
    least: float

    @classmethod
    def of(cls, sigma: float, number: int):
        tau = 1.0 / sigma

        # the body is what one expects without the few largest among all steps
        def body(jumps: float):
            cut = -ndtri(min(jumps / number, 0.4))
            moments = [math.exp(0.5 * j * (j - 1) * tau**2) * ndtr(cut - j * tau) for j in range(3)]
            return moments[1] / moments[0], moments[2] / moments[0]

        (mean, square), (inner, inner_square) = body(0.1), body(10.0)
        low = -math.expm1(-_LEAST / number)
        z = -ndtri(low) if low < 0.5 else ndtri(math.exp(-_LEAST / number))
        least = math.exp(tau * z - 0.5 * tau**2)
        variance, inner = square - mean**2, inner_square - inner**2
        spacing = math.sqrt(inner * number) / _FINE
        scale = 2.0 ** math.ceil(math.log2(spacing)) / spacing * (1.0 + 1e-9)
        return cls(
            sigma, number, scale, scale * mean, scale**2 * variance, scale**2 * inner, scale * least
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

    def kept(self, found: Table):
        """The losses at which a table is kept."""
        body = math.sqrt(self.inner / self.number) / self.mean
        return table.grid(found.loss, found.p, min(body, 1.0) / _KEPT, _COARSEST, 1.0 / _KEPT)

    def points(self):
        """Points of the law of one V, from 0 to beyond its depth."""
        tau = 1.0 / self.sigma
        layout = self.layout(1)
        values = layout.between(0.0, self.scale * math.exp(_DEPTH * tau + 0.5 * tau**2))
        return layout, values if values[0] == 0.0 else np.append(0.0, values)

    def normal(self, values: np.ndarray):
        """z where V is so many units."""
        with np.errstate(divide="ignore"):
            return self.sigma * np.log(values / self.scale) + 0.5 / self.sigma


def quadrature(low: np.ndarray, high: np.ndarray):
    """Nodes in intervals of z, and their normal masses: a composite Gauss rule."""
    width = high - low
    z = low[:, None] + width[:, None] * _NODES
    return z, _WEIGHTS * width[:, None] * np.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)


def dominating_table(sigma: float, number: int) -> Table:
    """A pair that dominates that of a record in one of ``number`` steps, in both directions."""
    plan = _SumLayout.of(sigma, number)
    layout, v = plan.points()
    z, tau = plan.normal(v), 1.0 / sigma
    node, mass = quadrature(z[1:-1], z[2:])
    gap = v[2:] - v[1:-1]
    up = np.sum(mass * np.expm1((node - z[1:-1, None]) * tau) * (v[1:-1] / gap)[:, None], axis=1)
    down = np.sum(mass * -np.expm1((node - z[2:, None]) * tau) * (v[2:] / gap)[:, None], axis=1)
    p = np.zeros(len(v))
    p[1:-1] += down
    p[2:] += up
    first = ndtr(z[1] - tau) * plan.scale / v[1]
    p[1] += first
    p[0] += max(ndtr(z[1]) - first, 0.0)
    # beyond the last point: the P-mass stays there, all Q-mass goes to +∞
    p[-1] += ndtr(-z[-1])
    start = _Sum(
        dyadic_sum.spread(layout, v, p[None], ALLOCATION, 0.0),
        0.0,
        plan.scale * float(ndtr(tau - z[-1])),
    )

    def join(a: _Sum, b: _Sum, terms: int) -> _Sum:
        s, masses, error, _ = dyadic_sum.add(a.law, b.law)
        p, minus, plus = _trimmed(s, masses[0], terms * plan.scale, _NEGLIGIBLE * terms / number)
        some = p > 0.0
        law = dyadic_sum.spread(plan.layout(terms), s[some], p[None, some], error, 0.0)
        other = terms - a.terms
        lost = plan.scale * (a.minus * other + b.minus * a.terms)
        minus, plus = minus + a.minus + b.minus, plus + a.plus + b.plus + lost
        return _Sum(law, minus, plus, terms)

    total = _power(start, number, join)
    s, (p,) = total.law.flat()
    empty = s <= 0.0
    minus = total.minus + float(p[empty].sum())
    if np.any(s < 0.0):
        raise ArithmeticError("a sum of positive terms has left the lattice")
    s, p = s[~empty], p[~empty]
    whole = number * plan.scale
    near = s > 0.5 * whole
    loss = np.where(near, np.log1p(np.where(near, s - whole, 0.0) / whole), np.log(s / whole))
    found = Table(loss, p, p * (s / whole), minus, total.plus / whole, total.law.error)
    return table.dominating(found, plan.kept(found))


class _Sum(NamedTuple):
    law: dyadic_sum.Law
    minus: float = 0.0
    plus: float = 0.0
    terms: int = 1


def _power(start: _Sum, number: int, join: Callable):
    """The sum of ``number`` independent terms, by doubling."""
    total, terms = start, 1
    for bit in bin(number)[3:]:
        terms *= 2
        total = join(total, total, terms)
        if bit == "1":
            terms += 1
            total = join(total, start, terms)
    return total


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


def attack_table(sigma: float, number: int) -> Table:
    """A pair that an attack on a record in one of ``number`` steps achieves: rounded V."""
    plan = _SumLayout.of(sigma, number)
    layout, v = plan.points()
    tau = 1.0 / sigma
    z = plan.normal(0.5 * (v[1:] + v[:-1]))
    node, mass = quadrature(z[:-1], z[1:])
    inside = np.sum(mass, axis=1), np.sum(mass * np.exp((node - 0.5 * tau) * tau), axis=1)
    ends = (ndtr(z[0]), ndtr(-z[-1])), (ndtr(z[0] - tau), ndtr(tau - z[-1]))
    masses = np.stack(
        [np.concatenate([[a], m, [b]]) for m, (a, b) in zip(inside, ends, strict=True)]
    )
    start = _Sum(dyadic_sum.spread(layout, v, masses, ALLOCATION, 2.0 * ALLOCATION))

    def join(a: _Sum, b: _Sum, terms: int) -> _Sum:
        s, masses, *errors = dyadic_sum.add(a.law, b.law)
        # labels far up are one label
        upward = np.argsort(-s, kind="stable")
        high = int(np.searchsorted(np.cumsum(masses[1][upward]), _NEGLIGIBLE * terms))
        if high:
            s[upward[:high]] = s[upward[high]]
        return _Sum(dyadic_sum.spread(plan.layout(terms), s, masses, *errors), terms=terms)

    total = _power(start, number, join)
    _, (p, q) = total.law.flat()
    found = table.from_masses(
        p, q / number, total.law.error + 2.0 * UNIT, total.law.apart + 2.0 * UNIT
    )
    return table.merged(found, plan.kept(found))
