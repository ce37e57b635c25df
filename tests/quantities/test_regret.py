"""Regret: randomized response has a closed form, and the bisection of Gomez 2025, Algorithm 2
agrees.
"""

import numpy as np
import pytest

import jaxgdp
from jaxgdp.accounting.certify.curve import Curve
from jaxgdp.accounting.certify.vertices import Vertices
from jaxgdp.quantities.regret import regret


def two_point_curve(epsilon):
    """Randomized response: one vertex for slopes e^{−ε} … e^{ε}, then the end of the curve."""
    alpha = 1.0 / (1.0 + np.exp(epsilon))
    half = Vertices(
        first=np.array([-0.5]),
        step=np.array([2.0 * epsilon]),
        log_alpha=np.array([[np.log(alpha), -np.inf]]),
        log_tpr=np.array([[np.log1p(-alpha), -np.inf]]),
        log_beta=np.array([[np.log(alpha), 0.0]]),
        used=np.array([[True, True]]),
        above_noise=np.array([[True, True]]),
    )
    return Curve(half, half, half, half, np.asarray(np.inf))


def algorithm_2(f, mu, grid=4001):
    """Smallest κ with f(α + κ) − κ ≤ f_μ(α) for all α of a fine grid, by bisection (a test oracle
    only).
    """
    alpha = np.linspace(0.0, 1.0, grid)
    low, high = np.zeros(grid), np.ones(grid)
    for _ in range(60):
        middle = 0.5 * (low + high)
        fits = f(np.minimum(alpha + middle, 1.0)) - middle <= jaxgdp.gdp.beta(fpr=alpha, mu=mu)
        low, high = np.where(fits, low, middle), np.where(fits, middle, high)
    return float(high.max())


def test_randomized_response():
    with np.errstate(all="ignore"):
        mu = float(jaxgdp.gdp.mu_from_pure_dp(epsilon=1.0))
        found = regret(two_point_curve(1.0), jaxgdp.Bracket(mu, mu), symmetric=True)
        assert float(found.lower) == pytest.approx(0.0575464, abs=5e-8)
        assert float(found.upper) == pytest.approx(0.0575464, abs=5e-8)
        assert found.lower <= found.upper

    def f(alpha):
        return np.maximum(np.maximum(1 - np.e * alpha, 0), np.exp(-1) * (1 - alpha))

    assert algorithm_2(f, mu) == pytest.approx(0.0575464, abs=2e-5)


def test_bisection_agrees_on_a_real_mechanism():
    curve = jaxgdp.tradeoff(jaxgdp.dpsgd(2.0, 0.1, 400))
    found, mu = curve.regret(), float(curve.mu().upper)
    grid = np.linspace(0.0, 1.0, 301)
    beta = curve.beta(grid)
    for side, check in ((beta.lower, found.upper), (beta.upper, found.lower)):
        other = algorithm_2(lambda a, side=side: np.interp(a, grid, side), mu)
        assert other == pytest.approx(float(check), abs=8e-4)
    assert 0.0130 < found.lower <= found.upper < 0.0134


def test_no_regret_for_a_gaussian():
    found = jaxgdp.tradeoff(jaxgdp.Gaussian(1.0)).regret()
    assert 0.0 <= found.lower <= found.upper < 2e-4


@pytest.mark.parametrize("order", ["add", "remove", "add_remove"])
def test_no_regret_of_a_gaussian_curve(order):
    """Exact lower side 0, and an upper side that is what μ is known to, at every size of μ, with no
    curve read; a finite difference of the profile says that its slope is no more than that."""
    runs = jaxgdp.dpsgd(
        np.array([1e-9, 0.03, 0.5, 5.0, 1e4]), np.ones(5), np.array([1.0, 9, 4, 7, 2])
    )
    found = jaxgdp.measure(runs, ("mu", "regret"), adjacency=order)
    assert np.all(found.brackets["regret"].lower == 0.0)
    assert np.all(found.brackets["regret"].upper <= 1e-13)
    mu, epsilon = np.geomspace(1e-3, 12.0, 40)[:, None], np.linspace(0.0, 60.0, 121)
    step = 1e-4 * mu
    more = jaxgdp.gdp.delta(epsilon=epsilon, mu=mu + step) - jaxgdp.gdp.delta(
        epsilon=epsilon, mu=mu
    )
    bound = step * np.exp(-(mu**2) / 8.0) / np.sqrt(8.0 * np.pi)
    assert np.all(more / (1.0 + np.exp(epsilon)) <= bound * (1.0 + 1e-9) + 1e-16)


def test_no_regret_bound_is_below_a_breakpoint_search():
    """One direction alone can only have a larger gap than the symmetrised curve."""
    mechanism = jaxgdp.dpsgd(1.0, 0.05, 50)
    both = jaxgdp.tradeoff(mechanism).regret()
    for adjacency in ("add", "remove"):
        assert jaxgdp.tradeoff(mechanism, adjacency=adjacency).regret().upper >= both.lower - 1e-9


@pytest.mark.parametrize(
    ("sigma", "rate", "steps"),
    [(1.0, 0.2613, 2000), (0.5, 0.096, 2000), (0.75, 0.48, 400), (3.0, 0.86, 2000)],
)
def test_regret_never_exceeds_the_error_of_an_attacker(sigma, rate, steps):
    # shifted by its fixed point α* = f(α*), a curve lies below every other one; α* is the Bayes
    # risk at prior ½
    grid = jaxgdp.sweep(sigma, rate, steps, quantities=("mu", "regret"))
    risk = jaxgdp.tradeoff(jaxgdp.dpsgd(sigma, rate, steps)).bayes_risk(prior=0.5)
    assert float(grid.regret.item()) <= 2.0 * float(risk.upper)
