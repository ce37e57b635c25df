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

import numpy as np
from scipy.special import ndtr, ndtri

from ...numerics.errors import ALLOCATION
from ...pairs.table import Table
from . import dyadic_sum
from .mean_of_steps import LEAST, Moments, Sum, SumLayout, attack_mean, dominating_mean, place

_DEPTH = 14.0  # standard deviations of one step that a table reaches to: beyond, there is 1e-44
_GAUSS = np.polynomial.legendre.leggauss(12)
_NODES = np.concatenate([0.25 + 0.25 * _GAUSS[0], 0.75 + 0.25 * _GAUSS[0]])  # on (0, 1)
_WEIGHTS = np.tile(0.25 * _GAUSS[1], 2)


def _moments(sigma: float, number: int) -> Moments:
    """Of the log-normal V = e^{z/σ − 1/(2σ²)}."""
    tau = 1.0 / sigma

    # the body is what one expects without the few largest among all steps
    def body(jumps: float):
        cut = -ndtri(min(jumps / number, 0.4))
        moments = [math.exp(0.5 * j * (j - 1) * tau**2) * ndtr(cut - j * tau) for j in range(3)]
        return moments[1] / moments[0], moments[2] / moments[0]

    (mean, square), (inner, inner_square) = body(0.1), body(10.0)
    low = -math.expm1(-LEAST / number)
    z = -ndtri(low) if low < 0.5 else ndtri(math.exp(-LEAST / number))
    least = math.exp(tau * z - 0.5 * tau**2)
    return Moments(mean, square - mean**2, inner_square - inner**2, least)


class _Points:
    """Points of the law of one V, from 0 to beyond its depth, and z there."""

    def __init__(self, sigma: float, number: int):
        self.sigma, self.plan = sigma, SumLayout.of(number, _moments(sigma, number))
        tau = 1.0 / sigma
        self.layout = self.plan.layout(1)
        top = self.plan.scale * math.exp(_DEPTH * tau + 0.5 * tau**2)
        values = self.layout.between(0.0, top)
        self.values = values if values[0] == 0.0 else np.append(0.0, values)

    def normal(self, values: np.ndarray) -> np.ndarray:
        """z where V is so many units."""
        with np.errstate(divide="ignore"):
            return self.sigma * np.log(values / self.plan.scale) + 0.5 / self.sigma


def quadrature(low: np.ndarray, high: np.ndarray):
    """Nodes in intervals of z, and their normal masses: a composite Gauss rule."""
    width = high - low
    z = low[:, None] + width[:, None] * _NODES
    return z, _WEIGHTS * width[:, None] * np.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)


def dominating_table(sigma: float, number: int) -> Table:
    """A pair that dominates that of a record in one of ``number`` steps, in both directions.

    Method: docs/method/dominating.md#one-of-many
    """
    points = _Points(sigma, number)
    plan, v, tau = points.plan, points.values, 1.0 / sigma
    z = points.normal(v)
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
    law, zero = place(points.layout, v, p, ALLOCATION)
    start = Sum(law, zero, 0.0, plan.scale * float(ndtr(tau - z[-1])))
    return dominating_mean(plan, start)


def attack_table(sigma: float, number: int) -> Table:
    """A pair that an attack on a record in one of ``number`` steps achieves: rounded V."""
    points = _Points(sigma, number)
    v, tau = points.values, 1.0 / sigma
    z = points.normal(0.5 * (v[1:] + v[:-1]))
    node, mass = quadrature(z[:-1], z[1:])
    inside = np.sum(mass, axis=1), np.sum(mass * np.exp((node - 0.5 * tau) * tau), axis=1)
    ends = (ndtr(z[0]), ndtr(-z[-1])), (ndtr(z[0] - tau), ndtr(tau - z[-1]))
    masses = np.stack(
        [np.concatenate([[a], m, [b]]) for m, (a, b) in zip(inside, ends, strict=True)]
    )
    law = dyadic_sum.spread(points.layout, v, masses, ALLOCATION, 2.0 * ALLOCATION)
    return attack_mean(points.plan, law)
