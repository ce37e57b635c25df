"""Each order of a pair for itself: runs of large steps, of which one order has losses of hundreds
of nats and the other one hardly any."""

from __future__ import annotations

import numpy as np
import pytest
from attack import rounded
from mpmath import log1p, mpf

import jaxgdp

# σ, p, T, δ and the pessimistic and optimistic sides of dp_accounting 0.6 (PLD accountant, removing
# a record decides)
LARGE_STEPS = [
    (0.2, 0.01, 100, 1e-5, 74.92, 75.0971),
    (0.2, 0.1, 100, 1e-5, 271.60, 271.991),
    (0.2, 0.01, 200, 1e-5, 98.95, 99.8543),
    (0.2, 0.01, 100, 1e-6, 86.25, 86.6963),
    (0.25, 0.091, 19, 1e-8, 90.92, 90.9811),
]


@pytest.mark.parametrize("sigma, p, steps, delta, optimistic, pessimistic", LARGE_STEPS)
def test_epsilon_of_large_steps_is_narrow_in_every_order(
    sigma, p, steps, delta, optimistic, pessimistic
):
    run = jaxgdp.dpsgd(sigma, p, steps)
    for adjacency in ("add_remove", "remove"):
        found = jaxgdp.measure(run, "epsilon", delta=delta, adjacency=adjacency)
        assert found.status["epsilon"] == 0
        assert found.epsilon.lower <= pessimistic and found.epsilon.upper >= optimistic
    added = jaxgdp.measure(run, "epsilon", delta=delta, adjacency="add")
    assert added.status["epsilon"] == 0
    assert added.epsilon.upper <= -steps * np.log1p(-p) * (1.0 + 1e-12)


def test_epsilon_falls_as_noise_grows():
    noise = np.array([0.18, 0.19, 0.195, 0.2, 0.205])
    found = jaxgdp.measure(jaxgdp.dpsgd(noise, 0.01, 100), "epsilon", delta=1e-5)
    assert np.all(np.diff(found.epsilon.upper) < 0.0)
    # by dp_accounting, as above
    np.testing.assert_allclose(found.epsilon.upper, [96.5, 84.9, 79.8, 75.1, 70.7], rtol=2e-3)


@pytest.mark.parametrize("rate, steps", [(0.01, 100), (0.3, 7), (1e-6, 5000)])
def test_delta_of_adding_is_0_from_the_largest_loss_on(rate, steps):
    run, largest = jaxgdp.dpsgd(0.2, rate, steps), -steps * log1p(-mpf(rate))
    beyond = jaxgdp.measure(run, "delta", epsilon=float(largest) * (1 + 1e-12), adjacency="add")
    assert (beyond.delta.lower, beyond.delta.upper) == (0.0, 0.0)
    below = jaxgdp.measure(run, "delta", epsilon=float(largest) * 0.97, adjacency="add")
    assert below.delta.upper > 0.0
    (most,) = (part.largest_losses()[1] for part in (jaxgdp.SubsampledGaussian(0.2, rate),))
    assert steps * mpf(float(most)) * (1 + mpf(2e-13)) >= largest


def test_pair_that_is_not_sampled_has_no_largest_loss():
    assert np.all(np.isinf(jaxgdp.SubsampledGaussian(1.0, 1.0).largest_losses()))


def _settings(number):
    random = np.random.default_rng(34)
    for _ in range(number):
        sigma, p = random.uniform(0.25, 0.6), 10.0 ** random.uniform(-2.5, -0.4)
        yield sigma, p, int(random.integers(2, 30)), random.uniform(0.5, 12.0)


@pytest.mark.parametrize("sigma, p, steps, epsilon", list(_settings(6)))
def test_both_orders_are_the_worse_of_each(sigma, p, steps, epsilon):
    """Truth by losses rounded to a grid in both directions, composed without a transform."""
    run = jaxgdp.dpsgd(sigma, p, steps)
    orders = [
        jaxgdp.measure(run, "delta", epsilon=epsilon, adjacency=adjacency).delta
        for adjacency in ("remove", "add", "add_remove")
    ]
    below, above = rounded.pair(sigma, p, steps, 60.0, 6000)
    below, above = below.symmetrised().delta(epsilon), above.symmetrised().delta(epsilon)
    assert orders[2].lower <= above * (1 + 1e-9) and orders[2].upper >= below * (1 - 1e-9)
    worse = max(orders[0].lower, orders[1].lower), max(orders[0].upper, orders[1].upper)
    assert worse[0] <= orders[2].upper and orders[2].lower <= worse[1]
    for order in orders:
        assert order.upper - order.lower <= 1e-3 * order.upper + 1e-300


@pytest.mark.parametrize("rtol", [0.03, pytest.param(1e-3, marks=pytest.mark.nightly)])
def test_vertices_too_far_apart_for_a_double_say_nothing(rtol):
    # a record is in some step but for a probability of 3e-5, and one step then shows 41,600 nats
    run = jaxgdp.dpsgd(0.00346428, 50 / 1279, 260)
    found = jaxgdp.measure(
        run, "epsilon", delta=1e-5, adjacency="remove", rtol=rtol, executor="eager"
    )
    assert found["epsilon"].upper >= 1e4
