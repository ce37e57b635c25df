"""Curves in closed form against 50 digits."""

from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from scipy.special import ndtri_exp

import jaxgdp
from jaxgdp.numerics.errors import GAIN
from jaxgdp.pairs.known_curves.base import reciprocal
from jaxgdp.pairs.known_curves.normal_gain import log_gain

ORDERS = {"remove": (0,), "add": (1,), "add_remove": (0, 1)}


def normal(z):
    return mp.erfc(-z / mp.sqrt(2)) / 2


def quantile(rate):
    """Φ⁻¹, by Newton's method from a double."""
    if rate > 0.5:
        return -quantile(1 - rate)
    z = mp.mpf(float(ndtri_exp(float(mp.log(rate)))))
    for _ in range(5):
        density = mp.exp(-z * z / 2) / mp.sqrt(2 * mp.pi)
        z -= normal(z) / density * mp.log(normal(z) / rate)
    return z


class Sampled:
    """One sampled Gaussian or Laplace, by definition: sums of tails at the threshold itself."""

    def __init__(self, noise, p, laplace):
        self.width, self.p, self.laplace = 1 / mp.mpf(float(noise)), mp.mpf(float(p)), laplace

    def tails(self, v):
        """P and Q₁ masses of likelihood ratios above e^v."""
        m = self.width
        if not self.laplace:
            return normal(-v / m - m / 2), normal(-v / m + m / 2)
        if v >= m:
            return mp.mpf(0), mp.mpf(0)
        if v < -m:
            return mp.mpf(1), mp.mpf(1)
        return mp.exp(-(v + m) / 2) / 2, 1 - mp.exp((v - m) / 2) / 2

    def tails_below(self, v):
        """P and Q₁ masses of likelihood ratios below e^v, without a difference."""
        m = self.width
        if self.laplace:
            a, b = self.tails(v)
            return 1 - a, mp.exp((v - m) / 2) / 2 if -m <= v < m else 1 - b
        return normal(v / m + m / 2), normal(v / m - m / 2)

    def masses(self, order, e):
        """Masses of the event {loss > ε} under the first law and under the second one."""
        p = self.p
        if order == 0:
            a, b = self.tails(mp.log(1 + mp.expm1(e) / p))
            return a, (1 - p) * a + p * b
        inner = 1 + mp.expm1(-e) / p
        if inner <= 0:
            return mp.mpf(0), mp.mpf(0)
        a, b = self.tails_below(mp.log(inner))
        return (1 - p) * a + p * b, a

    def delta(self, orders, e):
        e = mp.mpf(e)
        both = (self.masses(order, e) for order in orders)
        return max(max(q - mp.exp(e) * p, mp.mpf(0)) for p, q in both)

    def epsilon(self, orders, delta):
        low, high = mp.mpf(10) ** -30, mp.mpf(10) ** 16
        if self.delta(orders, 0) <= delta:
            return mp.mpf(0)
        for _ in range(160):
            middle = mp.sqrt(low * high)
            low, high = (low, middle) if self.delta(orders, middle) <= delta else (middle, high)
        return high

    def beta_removed(self, fpr):
        m, p = self.width, self.p
        if not self.laplace:
            found = normal(-quantile(fpr) - m)
        elif fpr <= mp.exp(-m) / 2:
            found = 1 - fpr * mp.exp(m)
        else:
            found = mp.exp(-m) / (4 * fpr) if fpr <= 0.5 else mp.exp(-m) * (1 - fpr)
        return (1 - p) * (1 - fpr) + p * found

    def beta(self, orders, fpr):
        if orders == (0,):
            return self.beta_removed(fpr)
        middle = self.tails(mp.mpf(0))[0]
        end = (1 - self.p) * (1 - middle) + self.p * middle
        if orders == (0, 1) and fpr <= middle:
            return self.beta_removed(fpr)
        if orders == (0, 1) and fpr < end:
            return middle + end - fpr
        low, high = mp.mpf(0), mp.mpf(1)
        for _ in range(120):
            x = (low + high) / 2
            low, high = (low, x) if self.beta_removed(x) <= fpr else (x, high)
        return high


def settings(number, seed):
    rng = np.random.default_rng(seed)
    for i in range(number):
        noise = 10 ** rng.uniform(-1.0, 2.0) if i % 3 else 10 ** rng.uniform(-3.0, 6.0)
        p = (10 ** rng.uniform(-13, 0), 1.0 - 10 ** rng.uniform(-13, -1), 1.0)[i % 5 % 3]
        yield i, noise, p, list(ORDERS)[rng.integers(3)], rng


def holds(bracket, truth, rtol=1e-10, atol=1e-300):
    assert bracket.lower <= truth <= bracket.upper, (bracket, mp.nstr(truth, 20))
    assert bracket.upper - bracket.lower <= rtol * abs(float(truth)) + atol, bracket


@pytest.mark.parametrize("laplace", [False, True])
def test_sampled_curves_hold_the_truth(laplace):
    kind = jaxgdp.SubsampledLaplace if laplace else jaxgdp.SubsampledGaussian
    with mp.workdps(60):
        for i, noise, p, adjacency, rng in settings(6, 7 + laplace):
            truth, orders = Sampled(max(noise, 0.01), p, laplace), ORDERS[adjacency]
            mechanism = kind(max(noise, 0.01), p)
            epsilon = 0.0 if i % 4 == 0 else 10 ** rng.uniform(-6, 2)
            delta = max(float(truth.delta(orders, 0)) * rng.uniform(0.01, 0.9), 1e-290)
            fpr = 10 ** rng.uniform(-8, -0.31)
            found = jaxgdp.measure(
                mechanism,
                ("delta", "epsilon", "advantage", "beta"),
                adjacency=adjacency,
                **{"epsilon": epsilon, "delta": delta, "fpr": fpr},
            )
            assert found.lattice_size == 0 and found.worst == 0
            holds(found.delta, truth.delta(orders, epsilon))
            holds(found.epsilon, truth.epsilon(orders, mp.mpf(delta)), 1e-9)
            holds(found.advantage, truth.delta((0,), 0))
            holds(found.beta, truth.beta(orders, mp.mpf(fpr)))


@pytest.mark.parametrize(
    ("sigma", "p", "floor"),
    [(1.5, 1e-3, 1e-10), (0.3, 1e-9, 1e-10), (0.2, 0.9, 1e-4), (1e4, 1e-13, 1e-20)],
)
def test_mu_of_one_sampled_gaussian(sigma, p, floor):
    found = jaxgdp.mu(jaxgdp.SubsampledGaussian(sigma, p), fpr_floor=floor)
    with mp.workdps(60):
        truth, low = Sampled(sigma, p, False), mp.mpf(floor)
        beta = truth.beta_removed(low)
        if beta >= low:
            exact = -quantile(beta) - quantile(low)
        else:
            fpr = truth.beta((1,), low)
            exact = -quantile(low) - quantile(fpr)
        holds(found, exact)


@pytest.mark.parametrize("number", [2, 7, 40])
def test_finite_pairs_hold_the_truth(number):
    rng = np.random.default_rng(number)
    p, q = (rng.dirichlet(np.full(number, 0.3)) + 1e-12 for _ in range(2))
    p, q = p / p.sum(), q / q.sum()
    exact_p, exact_q = (
        [Fraction(float(x)) / sum(map(Fraction, map(float, a))) for x in a] for a in (p, q)
    )
    with mp.workdps(60):
        losses = np.log(q / p)
        for epsilon in (0.0, 0.3, float(abs(losses).max()), float(np.median(np.abs(losses)))):
            for adjacency, orders in ORDERS.items():
                sides = [(exact_p, exact_q), (exact_q, exact_p)]
                growth = mp.exp(mp.mpf(epsilon))
                whole = lambda f: mp.mpf(f.numerator) / f.denominator
                truth = max(
                    mp.fsum(
                        max(whole(b) - growth * whole(a), 0) for a, b in zip(*sides[o], strict=True)
                    )
                    for o in orders
                )
                found = jaxgdp.delta(jaxgdp.FromPMFs(p, q), epsilon=epsilon, adjacency=adjacency)
                holds(found, truth, atol=5e-17)


def test_gain_of_a_shift():
    with mp.workdps(50):
        for z in (0.0, -0.3, -6.4, -37.0):
            for shift in (1e-9, 0.1, 0.9, 1.1, 7.0, 40.0):
                exact = mp.log(
                    (normal(mp.mpf(z) + shift) - normal(mp.mpf(z)))
                    / (mp.exp(-(mp.mpf(z) ** 2) / 2) / mp.sqrt(2 * mp.pi))
                )
                found = float(log_gain(np.array(z), np.array(shift)))
                room = GAIN + 4.0 * 1.1e-16 * (abs(float(exact)) + z * z)
                assert abs(found - exact) <= 0.5 * room, (z, shift)


def test_reciprocal_is_between_neighbours():
    for value in (3.0, 0.1, 1e-20, 1e20, 7.3e-300, 1024.0):
        low, high = reciprocal(value)
        assert Fraction(low) * Fraction(value) <= 1 <= Fraction(high) * Fraction(value)
        assert high == low or high == np.nextafter(low, np.inf)
