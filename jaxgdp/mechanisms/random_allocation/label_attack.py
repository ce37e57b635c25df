"""An attack on a record that is used in k of t noisy steps: labels of the steps, added up.

The likelihood ratio is an elementary symmetric polynomial of the steps' own ratios V, and no sum.
But any statistic is an attack: here each step is labelled by log(1 − wq + wq·V), q = k/t, rounded
to a lattice, and the labels are added up (w = 1 is the likelihood ratio of Poisson sampling; with
the record, the best w is a little smaller). Without the record that sum is a t-fold convolution of
one law p; with it, whichever k steps are chosen, of t − k times p and k times q, the law of the
label of a step that uses the record.

Both are sums on a lattice (``jaxgdp.mechanisms.random_allocation.lattice_sum``).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from ...numerics.errors import ALLOCATION, UNIT
from ...pairs import table
from ...pairs.table import NOTHING, Table
from . import lattice_sum
from .lattice_sum import FINE, WIDTH, LatticeLaws, Sums
from .one_of_many import quadrature

_DEPTH = 14.0  # standard deviations of one step that are told apart
_WIDE = 0.5  # of a cell in z, above which it is a difference of normal probabilities
# relative error of the masses of a table, but for its ends, per standard deviation of its losses
_WELL = 1e-5
_MOST = 0.99  # P-mass that has to be known so well, else less accuracy is enough
_KEPT = 160.0  # losses of a table per standard deviation


def _difference(low: np.ndarray, high: np.ndarray):
    """Φ(high) − Φ(low) with relative accuracy."""
    flip = low > 0.0
    a, b = np.where(flip, -high, low), np.where(flip, -low, high)
    return ndtr(b) - ndtr(a)


def _masses(edges: np.ndarray, shift: float):
    """Normal probabilities of the cells between edges less ``shift``, the two ends open."""
    low, high = np.append(-np.inf, edges) - shift, np.append(edges, np.inf) - shift
    with np.errstate(invalid="ignore"):
        wide = ~(high - low < _WIDE)
    mass = _difference(low, high)
    _, parts = quadrature(np.where(wide, 0.0, low), np.where(wide, 0.1, high))
    return np.where(wide, mass, parts.sum(axis=1))


class Labels(NamedTuple):
    """Labels of one step.

    Attributes:
        lattice: labels, with the P-mass and the Q-mass of each, and the mean of V² in each under P
            over e^{1/σ²}.
        share: w·q.
        last: z from which on a step has the last label, which is as large as it should be for
            smaller z only.
    """

    lattice: LatticeLaws
    share: float
    last: float


def labels(sigma: float, number: int, selected: int, weight: float) -> Labels:
    """Labels log(1 − wq + wq·V) of one step, w = ``weight``, rounded to a lattice."""
    tau, share = 1.0 / sigma, weight * selected / number
    z = np.linspace(-10.0, 10.0 + tau, 4001)
    value = np.log1p(share * np.expm1(np.minimum(tau * z - 0.5 * tau**2, 700.0)))
    weights = [np.exp(-0.5 * (z - s) ** 2) for s in (0.0, tau)]
    means = [w @ value / w.sum() for w in weights]
    squares = [w @ (value - m) ** 2 / w.sum() for w, m in zip(weights, means, strict=True)]
    rest = number - selected
    spread = math.sqrt(number * squares[0])
    above = math.sqrt(rest * squares[0] + selected * squares[1])
    top = math.log1p(share * math.expm1(min(8.0 * tau + 0.5 * tau**2, 700.0)))
    low = number * means[0] - WIDTH * spread
    high = rest * means[0] + selected * means[1] + WIDTH * above + top
    first, size, step = lattice_sum.window(FINE * math.sqrt(squares[0]), low, high)
    bottom = math.floor(math.log1p(-share) / step) if share < 1.0 else math.floor(low / step)
    largest = math.log1p(share * math.expm1(min(_DEPTH * tau + 0.5 * tau**2, 700.0)))
    last = min(math.ceil(largest / step), bottom + size // 2)
    index = np.arange(bottom, last + 1)
    ratio = np.expm1((index[:-1] + 0.5) * step) / share
    with np.errstate(divide="ignore", invalid="ignore"):
        edges = sigma * np.log1p(ratio) + 0.5 * tau
    edges = np.where(ratio > -1.0, edges, -np.inf)
    masses = tuple(_masses(edges, shift) for shift in (0.0, tau, 2.0 * tau))
    return Labels(LatticeLaws(index, step, masses, first, size, spread), share, float(edges[-1]))


def attack_table(sigma: float, number: int, selected: int, weight: float = 1.0) -> Table:
    """A pair that the attack with labels log(1 − wq + wq·V) achieves, w = ``weight``.

    Method: docs/method/attack.md#family
    """
    lattice = labels(sigma, number, selected, weight).lattice
    mixtures = [[(0.0, (number, 0, 0))], [(0.0, (number - selected, selected, 0))]]
    (found,) = lattice_sum.sums(lattice, number, mixtures, [(0, 1)])
    return NOTHING if found is None else merged_table(found, number)


def merged_table(found: Sums, number: int) -> Table:
    """The table of the labels, from their laws without and with the record."""
    # what is not known well is merged with the ends of what is
    p, loss = found.masses[0], np.log(found.masses[1]) - np.log(found.masses[0])
    well = _WELL * min(math.sqrt(max(p @ loss**2 - (p @ loss) ** 2, 1e-8)), 1.0)
    run = np.zeros(0, np.int64)
    for level in (well, _WELL):
        known = np.flatnonzero(found.errors[:2].max(axis=0) < level)
        if p[run].sum() < _MOST and len(known):
            run = max(np.split(known, np.flatnonzero(np.diff(known) > 1) + 1), key=len)
    if not len(run):
        return NOTHING
    start = np.concatenate([[0], run[1:-1], [run[-1]]]) if len(run) > 1 else np.zeros(1, np.int64)
    masses, errors = (
        np.add.reduceat(a, start, axis=1)
        for a in (found.masses[:2], (found.masses * found.errors)[:2])
    )
    error = float((errors / masses).max()) + number * ALLOCATION + 64.0 * UNIT
    pair = table.from_masses(*masses, error)
    deviation = math.sqrt(max(pair.p @ pair.loss**2 - (pair.p @ pair.loss) ** 2, 1e-300))
    return table.merged(
        pair, table.grid(pair.loss, pair.p, min(deviation, 1.0) / _KEPT, 1.0 / _KEPT, 1.0 / _KEPT)
    )
