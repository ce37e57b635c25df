"""Tilted lattice masses and their total, against exact ones."""

import mpmath
import numpy as np
import pytest
from mpmath import mpf

from jaxgdp import SubsampledGaussian
from jaxgdp.accounting.certify.discretisation import (
    _of_both_totals,
    _total_of_dominating,
    attack_weights,
    dominating_weights,
)
from jaxgdp.numerics.errors import UNIT
from jaxgdp.pairs.cells import Cells, reverse

SEED, DIGITS = 20261125, 50


class Exact:
    """Exact masses of the cells of a lattice: P = N(0, σ²), Q = (1 − p)·P + p·N(1, σ²)."""

    def __init__(self, mechanism, ell):
        sigma, p = (mpf(float(a)) for a in (mechanism.noise_multiplier, mechanism.sampling_prob))
        self.ell = [mpf(float(value)) for value in ell]

        def output(loss):
            ratio = 1 + mpmath.expm1(loss) / p
            return sigma * mpmath.log(ratio) + 1 / (2 * sigma) if ratio > 0 else -mpmath.inf

        self.edges = [-mpmath.inf, *(output(loss) for loss in self.ell), mpmath.inf]
        pairs = list(zip(self.edges[:-1], self.edges[1:], strict=True))
        self.x = [self._mass(a, b) for a, b in pairs]
        more = [self._mass(a - 1 / sigma, b - 1 / sigma) for a, b in pairs]
        self.y = [(1 - p) * x + p * y for x, y in zip(self.x, more, strict=True)]

    @staticmethod
    def _mass(a, b):
        return mpmath.ncdf(-a) - mpmath.ncdf(-b) if a > 0 else mpmath.ncdf(b) - mpmath.ncdf(a)

    def swapped(self):
        """Of the swapped pair, on the lattice read backwards."""
        other = object.__new__(Exact)
        other.ell = [-loss for loss in self.ell[::-1]]
        other.x, other.y = self.y[::-1], self.x[::-1]
        return other

    def up(self, cell):
        """The share of the P-mass of an interior cell that goes to its upper end."""
        low, high = (mpmath.exp(self.ell[cell - 1 + end]) for end in (0, 1))
        return (self.y[cell] / self.x[cell] - low) / (high - low) if self.x[cell] > 0 else mpf(1)

    def log_total(self, s):
        """log Σ m·e^{sℓ} of the P-masses that connect-the-dots leaves at the points."""
        n = len(self.ell)
        share = [self.up(cell) if 0 < cell < n else mpf(1) for cell in range(n)] + [mpf(0)]
        masses = [
            (self.x[c] if c else min(self.y[0] * mpmath.exp(-self.ell[0]), self.x[0])) * share[c]
            + self.x[c + 1] * (1 - share[c + 1])
            for c in range(n)
        ]
        return self._log_sum(masses, s)

    def attack_log_totals(self, s):
        """The same of the labels' P- and Q-masses, tilted by s and s − 1."""
        labelled = lambda a: [*a[:-2], a[-2] + a[-1]]
        return self._log_sum(labelled(self.x), s), self._log_sum(labelled(self.y), s - 1)

    def _log_sum(self, masses, s):
        return mpmath.log(
            sum(m * mpmath.exp(s * loss) for m, loss in zip(masses, self.ell, strict=True))
        )


def random_step(rng):
    """A step and a lattice about its loss; some cells hold nearly everything, some hardly any."""
    sigma = float(np.exp(rng.uniform(np.log(0.3), np.log(1e3))))
    p = float(np.exp(rng.uniform(np.log(1e-10), 0.0)))
    h = min(p / sigma, 1.0) * float(np.exp(rng.uniform(np.log(1e-2), np.log(20.0))))
    ell = h * np.arange(-int(rng.integers(3, 12)), int(rng.integers(3, 25)), dtype=float)
    return SubsampledGaussian(sigma, p), h, ell


def cells_of(mechanism, ell) -> Cells:
    """Cells by NumPy."""
    with np.errstate(all="ignore"):
        return mechanism.cells(ell, np.inf)


@pytest.mark.parametrize("index", range(24))
def test_masses_of_cells_of_every_width_are_as_exact_as_stated(index):
    # (a cell nearly as wide as a series serves was off by 8,000 units: its terms ended too early)
    mechanism, _, ell = random_step(np.random.default_rng([SEED, index]))
    cells = cells_of(mechanism, ell)
    with mpmath.workdps(DIGITS):
        exact = Exact(mechanism, ell)
        for cell in range(1, len(ell)):
            # (masses are those between edges as rounded)
            low, high = exact.edges[cell], exact.edges[cell + 1]
            far = 1 + abs(high if low == -mpmath.inf else max(low, high, key=abs))
            edge = 4 * far * (far + 1 / (high - low))
            allowed = UNIT * (cells.roundoff[cell] + cells.jitter[cell] + edge)
            for found, mass in ((cells.log_x, exact.x[cell]), (cells.log_y, exact.y[cell])):
                if mass > mpf(10) ** -200:
                    error = abs(mpmath.expm1(mpf(float(found[cell])) - mpmath.log(mass)))
                    assert error <= allowed, (mechanism, cell, float(error / UNIT))


@pytest.mark.parametrize("index", range(12))
def test_share_of_a_cell_is_as_exact_as_stated(index):
    mechanism, _, ell = random_step(np.random.default_rng([SEED, index]))
    cells = cells_of(mechanism, ell)
    with mpmath.workdps(DIGITS):
        exact = Exact(mechanism, ell)
        for found, of in ((cells, exact), (reverse(cells, ell), exact.swapped())):
            allowed = np.broadcast_to(found.share_error, len(ell) - 1)
            for cell in range(1, len(ell)):
                if of.x[cell] > mpf(10) ** -200:
                    error = abs(mpf(float(found.up[cell - 1])) - of.up(cell))
                    assert error <= UNIT * allowed[cell - 1], (mechanism, cell)


@pytest.mark.parametrize("index", range(24))
def test_log_of_the_total_is_as_exact_as_stated(index):
    rng = np.random.default_rng([SEED, index, 1])
    mechanism, h, ell = random_step(rng)
    s = float(rng.uniform(0.0, 1.0) if index % 2 else rng.uniform(0.0, 3.0) / (4.0 * h))
    cells, gap = cells_of(mechanism, ell), np.ones(len(ell))
    swapped = reverse(cells, ell)._replace(dropped=np.zeros(len(ell) - 1))
    with mpmath.workdps(DIGITS), np.errstate(all="ignore"):
        exact = Exact(mechanism, ell)
        for mine, own, of in ((cells, ell, exact), (swapped, -ell[::-1], exact.swapped())):
            upper, _ = dominating_weights(mine, own, gap, s, 0.0, sums_to_one=True)
            lower = attack_weights(mine, own, gap, s, sums_to_one=True)
            wanted = (of.log_total(mpf(s)), *of.attack_log_totals(mpf(s)))
            for found, log_total in zip((upper, *lower), wanted, strict=True):
                error = abs(mpf(float(found.log_total)) - log_total)
                assert error <= found.roundoff, (mechanism, s, float(error), found.roundoff)


@pytest.mark.parametrize(
    "index", [*range(4), *(pytest.param(i, marks=pytest.mark.nightly) for i in range(4, 300))]
)
def test_total_by_both_masses_is_as_exact_as_stated(index):
    rng = np.random.default_rng([SEED, index, 2])
    mechanism, h, ell = random_step(rng)
    s = float(np.exp(rng.uniform(np.log(1e-4), np.log(10.0)))) / h
    s = min(s, 300.0 / float(np.max(np.abs(ell))))
    cells, gap = cells_of(mechanism, ell), np.ones(len(ell))
    swapped = reverse(cells, ell)._replace(dropped=np.zeros(len(ell) - 1))
    with mpmath.workdps(DIGITS), np.errstate(all="ignore"):
        exact = Exact(mechanism, ell)
        for mine, own, of in ((cells, ell, exact), (swapped, -ell[::-1], exact.swapped())):
            weights, lost = dominating_weights(mine, own, gap, s, 0.0)
            below, mass = _masses(mine, own)
            total = _total_of_dominating(mine, below, mass)._replace(at_infinity=lost)
            found = _of_both_totals(weights, total, own, np.float64(s))
            error = abs(mpf(float(found.value)) - of.log_total(mpf(s)))
            assert error <= found.error, (mechanism, h, s, float(error), found.error)


@pytest.mark.parametrize("sigma, s", [(0.02, 0.995), (0.02, 0.3), (0.05, 1.02), (0.03, -0.1)])
def test_total_of_large_losses_is_as_exact_as_stated(sigma, s):
    # (losses beyond what exponentials of doubles hold)
    mechanism = SubsampledGaussian(sigma, 0.18)
    ell = np.concatenate([np.arange(-4.0, 12.0), 24.0 * np.arange(1.0, 100.0)])
    cells, gap = cells_of(mechanism, ell), np.ones(len(ell))
    swapped = reverse(cells, ell)._replace(dropped=np.zeros(len(ell) - 1))
    with mpmath.workdps(DIGITS), np.errstate(all="ignore"):
        exact = Exact(mechanism, ell)
        for mine, own, of in ((cells, ell, exact), (swapped, -ell[::-1], exact.swapped())):
            weights, lost = dominating_weights(mine, own, gap, s, 0.0)
            below, mass = _masses(mine, own)
            total = _total_of_dominating(mine, below, mass)._replace(at_infinity=lost)
            by_both = _of_both_totals(weights, total, own, np.float64(s))
            upper, _ = dominating_weights(mine, own, gap, s, 0.0, sums_to_one=True)
            for value, bound in (by_both, (upper.log_total, upper.roundoff)):
                error = abs(mpf(float(value)) - of.log_total(mpf(s)))
                assert error <= bound, (mechanism, s, float(error), bound)


def _masses(cells, ell):
    """What connect-the-dots takes from the cell below the first point, and leaves at each."""
    below = np.append(min(cells.log_y[0] - ell[0], cells.log_x[0]), cells.log_x[1:-1])
    share = np.concatenate([[1.0], cells.up, [0.0]])
    stays = 1.0 - share[1:] - np.append(cells.dropped + np.zeros(len(ell) - 1), 0.0)
    return below[0], np.exp(below) * share[:-1] + np.exp(cells.log_x[1:]) * stays


def test_total_of_a_step_of_many_is_known_beyond_its_splits():
    # (shares that connect-the-dots rounds may all be off to one side: T = 4e6 makes 2e-8 of that)
    mechanism, ell = SubsampledGaussian(94.5, 2.4e-8), 2.5e-11 * np.arange(-120.0, 121.0)
    upper, _ = dominating_weights(
        cells_of(mechanism, ell), ell, np.ones(241), 1e7, 0.0, sums_to_one=True
    )
    assert upper.roundoff < 2.0 * UNIT


def test_total_of_a_tiny_step_is_known_far_better_than_its_masses():
    mechanism, ell = SubsampledGaussian(7.0, 1e-9), 1e-10 * np.arange(-30.0, 31.0)
    upper, _ = dominating_weights(
        cells_of(mechanism, ell), ell, np.ones(61), 0.5, 0.0, sums_to_one=True
    )
    assert upper.roundoff < 1e-6 * UNIT
