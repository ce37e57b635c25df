"""Mixtures of shifts that are far apart, against quadratures and enumerations."""

import itertools
import math

import jax
import numpy as np
import pytest
from mpmath import mp, mpf

import jaxgdp
from jaxgdp.accounting.certify import closed_forms, far_shifts
from jaxgdp.accounting.certify.curve import gaussian_parts
from jaxgdp.accounting.certify.far_shifts.law import atoms
from jaxgdp.accounting.question import Question
from jaxgdp.accounting.run import by_far_shifts, routes
from jaxgdp.accounting.run.rows import take
from jaxgdp.accounting.steer import far_plan
from jaxgdp.numerics.precision import with_float64
from jaxgdp.quantities.registry import REGISTRY
from tests.exact_uses import delta_of_uses


@with_float64
def _curve(run):
    """Both sides, whatever steering thinks of the run."""
    groups = jax.tree.map(lambda a: a[None], run.stacked())
    question = Question(1e-3, 1e-10, "add_remove", ((REGISTRY["mu"], None),))
    far = by_far_shifts._far(groups, 0)
    near = by_far_shifts._near(groups, 0, far, question, routes.answer)
    with np.errstate(all="ignore"):
        draws = atoms(far)
        at = far_plan.thresholds(far, draws, near)
        return far_shifts.both_sides(far, draws, near, at, gaussian_parts(take(groups, 0)))


# (shifts in deviations, weights): found by a random search over gaps and sizes
SETTINGS = [
    ([0.0, 0.5, 10.0], [0.9, 0.05, 0.05]),
    ([0.0, 1e-3, 30.0, 41.0], [0.5, 0.2, 0.2, 0.1]),
    ([0.2, 8.5], [0.7, 0.3]),
    ([0.0, 3.4e-3, 6.2e-3, 17.7, 46.0, 56.9], [3e-5, 0.133, 2.6e-4, 0.842, 6.7e-3, 0.0173]),
    ([0.0, 17.8, 18.85], [0.9886, 0.0111, 3e-4]),
    ([0.0, 0.0, 20.0, 20.0], [0.4, 0.3, 0.2, 0.1]),
    ([1.5, 12.0], [1e-9, 1.0]),
]


# each by day in one order, and nightly in the other one
@pytest.mark.parametrize(
    ("shifts", "weights", "adjacency"),
    [
        pytest.param(*setting, order, marks=() if by_day else pytest.mark.nightly)
        for i, setting in enumerate(SETTINGS)
        for order, by_day in (("remove", i % 2 == 0), ("add", i % 2 == 1))
    ],
)
def test_two_uses_are_within_both_sides(shifts, weights, adjacency):
    weights = np.array(weights) / np.sum(weights)
    curve = _curve(jaxgdp.compose([(jaxgdp.GaussianMixture(1.0, shifts, weights), 2)]))
    none = -2.0 * math.log(np.sum(weights[np.array(shifts) <= 1.5]))
    for epsilon in (0.0, 0.01, 3.0, 40.0, none, none + 0.01, 0.9 * shifts[-1] ** 2):
        question = Question(1e-3, 1e-10, adjacency, ((REGISTRY["delta"], epsilon),))
        with np.errstate(all="ignore"):
            oriented = closed_forms.oriented(curve, question.adjacency)
            found = closed_forms.read([oriented], question)["delta"]
        exact = delta_of_uses(1.0, shifts, weights, 2, epsilon, adjacency)
        assert found.lower[0] <= exact * (1.0 + 1e-8) + 1e-14, epsilon
        assert exact * (1.0 - 1e-8) - 1e-14 <= found.upper[0], epsilon


def test_far_shifts_of_different_sizes_are_as_accurate_as_asked():
    for sigma, uses in ((1.0, 2), (1.0, 10), (100.0, 10), (1.0, 1000)):
        mechanism = jaxgdp.GaussianMixture(sigma, [0.0, 1e-3, 1e3], [0.9, 0.05, 0.05])
        run = jaxgdp.compose([(mechanism, uses)])
        found = jaxgdp.measure(run, ("epsilon", "delta"), delta=1e-6, epsilon=1.0)
        assert not np.any(found["epsilon"].upper > found["epsilon"].lower * 1.001)
        assert not np.any(found["delta"].upper > found["delta"].lower * 1.001)
        # (the near shift is never told at ε = 1)
        jumps = float(-mp.expm1(uses * mp.log(mpf("0.95"))))
        told = 1.0 - 2.0 * float(mp.erfc(1e3 / sigma / mp.sqrt(8)) / 2)
        assert jumps * told * (1.0 - 1e-3) <= found["delta"].upper
        assert found["delta"].lower <= jumps * (1.0 + 1e-9)


def test_laws_of_far_steps_are_those_of_enumeration():
    tau, w = np.array([0.0, 12.0, 13.0, 40.0]), np.array([0.6, 0.2, 0.15, 0.05])
    draws = atoms(far_shifts.split(1.0, tau, w, 4.0))
    exact: dict[float, float] = {}
    for drawn in itertools.product(range(4), repeat=4):
        total = float(np.sum(tau[list(drawn)] ** 2))
        exact[total] = exact.get(total, 0.0) + float(np.prod(w[list(drawn)]))
    del exact[0.0]
    order = sorted(exact)
    np.testing.assert_allclose(np.sort(draws.high), order, rtol=1e-9)
    masses = np.exp(draws.log_mass[np.argsort(draws.high)])
    np.testing.assert_allclose(masses, [exact[s] for s in order], rtol=1e-6)
    assert np.all(draws.low <= draws.high) and np.all(draws.own <= draws.shown)


def test_many_kinds_of_far_shifts_are_bounded_together():
    tau = np.append(0.0, 20.0 * np.arange(1, 30))
    far = far_shifts.split(1.0, tau, np.append(0.9, np.full(29, 0.1 / 29)), 3.0)
    assert len(far.low) == 8 and np.all(far.low <= far.high)
    np.testing.assert_allclose(np.exp(far.log_own).sum(), 0.1)


@pytest.mark.parametrize("rare", [1e-13, 3e-13])
def test_steps_that_nearly_all_have_the_shift_keep_the_digits_of_the_rest(rare):
    weights = [rare, 1.0 - rare]
    run = jaxgdp.compose([(jaxgdp.GaussianMixture(0.01, [0.0, 1.0], weights), 2)])
    found = jaxgdp.beta(run, fpr=1e-9, adjacency="remove")
    none = (mpf(weights[0]) / (mpf(weights[0]) + mpf(weights[1]))) ** 2 * (1 - mpf("1e-9"))
    assert found.lower <= float(none) * (1.0 + 1e-12) and float(none) <= found.upper * (1 + 1e-12)
    assert found.upper <= found.lower * (1.0 + 1e-3)
