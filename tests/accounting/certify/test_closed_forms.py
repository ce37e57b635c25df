"""Settings that need no lattice: which ones, and that kept curves say the same."""

import mpmath as mp
import numpy as np
import pytest

import jaxgdp
from tests.mechanisms_of_every_class import SETTINGS, element

ALL = ("mu", "advantage", "epsilon", "delta", "tpr", "beta", "bayes_risk", "approximate_mu")
LONG = ("FixedSize", "Shuffled", "TruncatedPoisson", "RandomAllocation")  # no closed form, and slow
SLOW = ("LastIterate",)  # whose law takes seconds
NOTHING = (
    jaxgdp.PureDP(0.0),
    jaxgdp.RandomizedResponse(0.0),
    jaxgdp.FromPMFs([0.5, 0.5], [0.5, 0.5]),
)


def exact_delta(epsilon, mu):
    epsilon, mu = mp.mpf(epsilon), mp.mpf(mu)
    tail = lambda z: mp.erfc(-z / mp.sqrt(2)) / 2
    return tail(mu / 2 - epsilon / mu) - mp.exp(epsilon) * tail(-mu / 2 - epsilon / mu)


@pytest.mark.parametrize("sigma", [1e-20, 1e-6, 1e-4, 0.05, 1.0, 30.0, 1e6, 1e20])
def test_gaussians_of_any_noise(sigma):
    run = jaxgdp.compose([(jaxgdp.Gaussian(sigma), 3), jaxgdp.dpsgd(2.0 * sigma, 1.0, 4)])
    found = jaxgdp.measure(run, (*ALL, "regret"), delta=1e-6, epsilon=0.0)
    assert found.lattice_size == 0 and found.worst == 0
    with mp.workdps(60):
        mu = 2 / mp.mpf(sigma)
        assert found.mu.lower <= mu <= found.mu.upper <= found.mu.lower * (1.0 + 1e-12)
        delta = exact_delta(0, mu)
        assert found.delta.lower <= delta <= found.delta.upper
        assert found.delta.upper - found.delta.lower <= 1e-11 * found.delta.upper
        if sigma >= 1e-6:
            ends = [exact_delta(e, mu) for e in found.epsilon]
            assert found.epsilon.upper == 0.0 or ends[1] <= mp.mpf(1e-6) <= ends[0]
    assert found.regret.upper <= 1e-12


def test_parts_that_reveal_nothing_do_not_count():
    alone = jaxgdp.Laplace(0.7)
    expected = jaxgdp.measure(alone, ALL)
    found = jaxgdp.measure(jaxgdp.compose([alone, *((part, 5) for part in NOTHING)]), ALL)
    assert found.lattice_size == 0
    for name in ALL:
        assert found[name] == expected[name]
    assert jaxgdp.measure(jaxgdp.compose([(alone, 2)]), "advantage").lattice_size > 0


@pytest.mark.parametrize("index", [0, pytest.param(1, marks=pytest.mark.nightly)])
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.nightly if name in SLOW or i % 3 else ())
        for i, name in enumerate(sorted(set(SETTINGS) - set(LONG)))
    ],
)
def test_kept_curves_agree(name, index):
    """One use of every class: a number and the same number of a kept curve meet."""
    mechanism = element(name, index)
    numbers, curve = jaxgdp.measure(mechanism, ALL), jaxgdp.tradeoff(mechanism)
    for quantity in ALL:
        one, other = numbers[quantity], curve.quantity(quantity)
        assert np.all(one.lower <= other.upper * (1.0 + 1e-11) + 1e-15), quantity
        assert np.all(other.lower <= one.upper * (1.0 + 1e-11) + 1e-15), quantity


def test_batches_are_as_single_settings():
    sigma, p = np.array([0.3, 2.0, 50.0]), np.array([0.01, 1.0, 1e-9])
    found = jaxgdp.measure(jaxgdp.dpsgd(sigma, p, [1, 7, 1]), ALL, adjacency="add")
    for i in range(3):
        own = jaxgdp.measure(jaxgdp.dpsgd(sigma[i], p[i], [1, 7, 1][i]), ALL, adjacency="add")
        for name in ALL:
            assert found[name].lower[i] == pytest.approx(own[name].lower, rel=1e-11, abs=1e-300)
            assert found[name].upper[i] == pytest.approx(own[name].upper, rel=1e-11, abs=1e-300)


def test_either_order_may_have_the_larger_losses():
    """Of (0.4, 0.6) and (0.9, 0.1) one order has losses up to log 2.25, the other up to log 6: both
    together have the TPR 6·FPR of the second one, below an FPR of 0.1, whichever comes first."""
    one, other = [0.4, 0.6], [0.9, 0.1]
    for pair in (jaxgdp.FromPMFs(one, other), jaxgdp.FromPMFs(other, one)):
        for fpr in (1e-3, 0.05, 0.0999):
            found = jaxgdp.measure(pair, ("tpr", "beta"), fpr=fpr)
            assert found.tpr.contains(6.0 * fpr) and found.beta.contains(1.0 - 6.0 * fpr)
            assert found.tpr.upper - found.tpr.lower < 1e-11 * found.tpr.upper
