"""Numbers read off so far out that nothing is left there: without a lattice, and never where there
is more."""

import jax
import numpy as np
import pytest

import jaxgdp
from jaxgdp.accounting.certify import closed_forms, jump_sides
from jaxgdp.accounting.certify.curve import GaussianParts
from jaxgdp.accounting.question import Question
from jaxgdp.accounting.run import routes
from jaxgdp.adjacency import Adjacency
from jaxgdp.quantities.registry import REGISTRY

# σ, p, T, ε, adjacency: nothing is left there, but lattices had to show it
NOTHING = [
    (29.3, 2.9e-7, 23992, 23.6, "remove"),
    (1.29, 0.031, 2, 119.7, "remove"),
    (8.2, 5.7e-7, 661, 310.0, "add_remove"),
    (2.1, 2e-8, 145040, 40.0, "add"),
    (16.0, 1.2e-9, 769174, 1.48, "add"),
    # (not for want of jumps: sums of losses are never as large)
    (4.39, 1.12e-9, 115386393, 0.702, "add_remove"),
    (3.69, 2.48e-5, 712353, 3.457, "remove"),
    (13.03, 0.005, 37, 0.674, "remove"),
    (2.53, 2.53e-8, 979680174, 18.56, "remove"),
    (22.361, 0.020392, 2, 0.10489, "remove"),
]


def _answer(run, name, at, adjacency):
    groups = jax.tree.map(lambda a: np.asarray(a, float)[None], run.stacked())
    question = Question(1e-3, 1e-10, Adjacency.checked(adjacency), ((REGISTRY[name], at),))
    return routes.answer(groups, question)


@pytest.mark.parametrize("sigma, p, steps, epsilon, adjacency", NOTHING)
def test_delta_far_out_is_nothing_without_a_lattice(sigma, p, steps, epsilon, adjacency):
    run = jaxgdp.dpsgd(sigma, p, steps)
    found = _answer(run, "delta", epsilon, adjacency)
    assert found.executors[0] == "none"
    assert found.results["delta"].lower[0] <= 0.0 <= found.results["delta"].upper[0] <= 1e-300
    assert jaxgdp.measure(run, "delta", epsilon=epsilon, adjacency=adjacency).status["delta"] == 0


def test_delta_far_out_of_some_settings_leaves_others_as_they_are():
    epsilon = np.array([30.0, 0.5, 40.0])
    run = jaxgdp.dpsgd(np.array([20.0, 1.0, 2.0]), np.array([1e-7, 0.01, 1e-8]), 1000)
    found = jaxgdp.measure(run, "delta", epsilon=epsilon, executor="eager").delta
    alone = jaxgdp.measure(jaxgdp.dpsgd(1.0, 0.01, 1000), "delta", epsilon=0.5, executor="eager")
    assert found.upper[0] <= 1e-300 and found.upper[2] <= 1e-300
    assert (found.lower[1], found.upper[1]) == (alone.delta.lower, alone.delta.upper)


def test_delta_of_both_orders_is_that_of_removing_where_adding_shows_nothing():
    """Within the largest loss of adding a record, but 48 deviations out: that alone took a curve
    and a lattice in vain, and its upper side was 6e-100.
    """
    run = jaxgdp.dpsgd(2.96301, 6.8096e-5, 100459)
    both, removing = (_answer(run, "delta", 0.3586, order) for order in ("add_remove", "remove"))
    low, high = both.results["delta"].lower[0], both.results["delta"].upper[0]
    assert (low, high) == (removing.results["delta"].lower[0], removing.results["delta"].upper[0])
    assert 5e-147 < low <= high <= 1.001 * low
    some = jaxgdp.measure(run, "delta", epsilon=[0.3586, 0.05], adjacency="add_remove").delta
    assert some.upper[1] <= 1.001 * some.lower[1]
    assert some.lower[0] == low and 1e-15 < some.lower[1] <= some.upper[1]


def test_curve_far_out_holds_its_bound_from_the_threshold_on_and_nothing_before():
    parts = GaussianParts(np.asarray(np.inf), np.asarray(0.0))
    curve = jump_sides.far_out(3.0, (-800.0, -900.0), parts)
    for epsilon, most in ((2.9, 1.0), (3.0, 1e-300), (7.0, 1e-300)):
        question = Question(1e-3, 1e-10, Adjacency.ADD_REMOVE, ((REGISTRY["delta"], epsilon),))
        upper = closed_forms.read([curve], question)["delta"].upper[0]
        assert upper <= most and (most < 1.0 or upper == 1.0)


def test_curve_in_the_other_order_keeps_its_largest_losses():
    parts = GaussianParts(np.asarray(np.inf), np.asarray(0.0), np.inf, 0.25)
    curve = closed_forms.oriented(jump_sides.far_out(9.0, (0.0, 0.0), parts), Adjacency.ADD)
    assert (curve.largest_plus, curve.largest_minus) == (0.25, np.inf)
    question = Question(1e-3, 1e-10, Adjacency.ADD, ((REGISTRY["delta"], 0.25),))
    assert closed_forms.read([curve], question)["delta"].upper[0] == 0.0
