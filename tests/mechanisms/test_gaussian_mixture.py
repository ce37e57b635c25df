"""Mixtures of shifts against closed forms, exact binomials and simulation."""

import time

import mpmath
import numpy as np
import pytest
from scipy.stats import binom, norm

import jaxgdp
from jaxgdp.mechanisms.groups import binomial_weights, hypergeometric_weights
from tests.exact_mixtures import exact_delta


def of_user(sigma, prob, records):
    return jaxgdp.dpsgd(sigma, prob, 1, records_per_user=records).mechanisms[0]


PUBLISHED = [  # (σ, p, k, ε): δ of one step, removing
    (1.0, 0.01, 1, 1.0, 2.7320093e-9),
    (1.0, 0.01, 4, 1.0, 1.2322701e-5),
    (1.0, 0.01, 16, 1.0, 2.6954274e-3),
    (2.0, 0.05, 8, 0.5, 6.3573521e-3),
]


@pytest.mark.parametrize(("sigma", "prob", "records", "epsilon", "known"), PUBLISHED)
def test_one_step_of_a_user_in_both_orders(sigma, prob, records, epsilon, known):
    shifts, weights = np.arange(records + 1.0), binomial_weights(records, prob)
    mechanism = jaxgdp.GaussianMixture(sigma, shifts, weights)
    for order in ("remove", "add"):
        exact = exact_delta(sigma, shifts, weights, epsilon, order)
        found = jaxgdp.delta(mechanism, epsilon=epsilon, adjacency=order)
        assert found.lower <= exact <= found.upper and found.upper - found.lower <= 1e-3 * exact
        if order == "remove":
            np.testing.assert_allclose(exact, known, rtol=2e-8)


def test_one_record_is_the_subsampled_gaussian():
    run = jaxgdp.dpsgd([0.7, 2.0], [0.001, 0.3], [1000, 50], records_per_user=1)
    assert isinstance(run.mechanisms[0], jaxgdp.SubsampledGaussian)
    weights = np.array([[0.999, 0.001], [0.7, 0.3]])
    same = jaxgdp.compose([(jaxgdp.GaussianMixture([0.7, 2.0], [0.0, 1.0], weights), [1000, 50])])
    one, two = (jaxgdp.measure(each, ("mu", "epsilon", "advantage")) for each in (run, same))
    for name in ("mu", "epsilon", "advantage"):
        a, b = one[name], two[name]
        assert np.all(a.lower <= b.upper) and np.all(b.lower <= a.upper)
        assert np.all(np.abs(a.upper / b.upper - 1) < 1e-3)


def test_cells_are_those_of_the_subsampled_gaussian():
    ell = np.linspace(-0.02, 3.0, 2001)
    with np.errstate(all="ignore"):
        one = jaxgdp.SubsampledGaussian(1.0, 0.01).cells(ell, 2.0)
        two = jaxgdp.GaussianMixture(1.0, [0.0, 1.0], [0.99, 0.01]).cells(ell, 2.0)
    for name in ("log_x", "log_y", "up", "lost"):
        np.testing.assert_allclose(getattr(two, name), getattr(one, name), rtol=1e-11, atol=1e-13)


def test_hundred_steps_of_four_records():
    run = jaxgdp.dpsgd(1.0, 0.01, 100, records_per_user=4)
    found = jaxgdp.epsilon(run, delta=1e-5)
    # (dp_accounting's mixture event gives 3.2104)
    assert 3.2103 <= found.lower <= found.upper <= 3.2105


def test_users_with_all_records_in_every_step_weigh_k_times_as_much():
    run = jaxgdp.dpsgd(2.0, 1.0, 9, records_per_user=[1, 3])
    assert jaxgdp.mu(run).contains([1.5, 4.5]).all()
    certain = jaxgdp.GaussianMixture(2.0, [3.0], [1.0])
    assert jaxgdp.mu(jaxgdp.compose([(certain, 9)])).contains(4.5)


def test_rows_of_different_numbers_of_records_are_one_batch():
    together = jaxgdp.mu(jaxgdp.dpsgd(1.5, 0.02, 200, records_per_user=[1, 2, 5]))
    alone = [jaxgdp.mu(jaxgdp.dpsgd(1.5, 0.02, 200, records_per_user=k)) for k in (1, 2, 5)]
    for i, one in enumerate(alone):
        assert one.lower <= together.upper[i] and together.lower[i] <= one.upper
    assert np.all(np.diff(together.lower) > 0.0)


def test_shifts_that_count_for_nothing_change_nothing():
    plain = jaxgdp.GaussianMixture(1.0, [0.0, 1.0, 2.0], [0.81, 0.18, 0.01])
    more = jaxgdp.GaussianMixture(1.0, [2.0, 0.0, 1.0, 9.0], [0.01, 0.81, 0.18, 0.0])
    one, two = (jaxgdp.epsilon(jaxgdp.compose([(m, 20)]), delta=1e-6) for m in (plain, more))
    assert one.lower <= two.upper and two.lower <= one.upper
    nothing = jaxgdp.GaussianMixture(1.0, [0.0, 5.0], [1.0, 0.0])
    assert jaxgdp.mu(nothing).upper <= 1e-12


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ((1.0, [0.0, -1.0], [0.5, 0.5]), "shifts must be a finite number >= 0, got -1"),
        ((1.0, [0.0, 1.0], [1.5, -0.5]), "weights must be a finite number >= 0"),
        ((1.0, [0.0, 1.0], [0.5, 0.6]), "sum of weights"),
        ((1.0, [0.0, 1.0], [0.5, 0.25, 0.25]), "as many as shifts"),
        ((1.0, 1.0, 1.0), "shifts must have an axis"),
        ((0.0, [1.0], [1.0]), "noise_multiplier"),
        (([1.0, 2.0], [[1.0], [1.0], [1.0]], [1.0]), "broadcast"),
    ],
)
def test_bad_input_is_refused_by_name(fields, words):
    with pytest.raises(ValueError, match=words):
        jaxgdp.GaussianMixture(*fields)


@pytest.mark.parametrize("records", [0, 1.5, 257, [1, 2, 3]])
def test_records_out_of_range_are_refused_by_name(records):
    with pytest.raises(ValueError, match="records_per_user"):
        jaxgdp.dpsgd(1.0, [0.1, 0.2], 10, records_per_user=records)


def test_binomial_weights_are_rounded_once():
    for number, prob in ((4, 0.01), (64, 0.3), (16, 1.0 - 1e-13), (256, 1e-4)):
        with mpmath.workdps(60):
            p = mpmath.mpf(prob)
            exact = [mpmath.binomial(number, j) * p**j * (1 - p) ** (number - j)
                     for j in range(number + 1)]  # fmt: skip
        for found, each in zip(binomial_weights(number, prob), exact, strict=True):
            assert each < 1e-307 or abs(found - each) <= 1.2e-16 * each
    assert hypergeometric_weights(2, 2, 4) == (1 / 6, 4 / 6, 1 / 6)


def simulated_sides(sigma, shifts, weights, steps, epsilon, samples, rng):
    """δ(ε) of removing, 1 ± 5 standard errors, by simulation of the exact ratio."""
    tau, weights = np.asarray(shifts) / sigma, np.asarray(weights)
    loss = np.zeros(samples)
    for _ in range(steps):
        z = rng.standard_normal(samples) + tau[rng.choice(len(tau), samples, p=weights)]
        loss += np.log(np.exp(z[:, None] * tau - 0.5 * tau**2) @ weights)
    gain = np.maximum(-np.expm1(epsilon - loss), 0.0)
    return gain.mean() - 5 * gain.std() / samples**0.5, gain.mean() + 5 * gain.std() / samples**0.5


def test_composition_against_simulation():
    rng = np.random.default_rng(1)
    weights = binom.pmf(np.arange(4), 3, 0.1)
    low, high = simulated_sides(1.2, np.arange(4.0), weights, 12, 1.0, 100_000, rng)
    found = jaxgdp.delta(jaxgdp.dpsgd(1.2, 0.1, 12, 3), epsilon=1.0, adjacency="remove")
    assert found.upper >= low and found.lower <= high


@pytest.mark.nightly
def test_twenty_compositions_against_simulation():
    rng = np.random.default_rng(2)
    for _ in range(20):
        k = int(rng.integers(1, 7))
        shifts = np.append(0.0, rng.uniform(0.2, 3.0, k))
        weights = rng.dirichlet(np.full(k + 1, 0.5))
        sigma, steps = 10.0 ** rng.uniform(-0.2, 0.8), int(rng.integers(1, 30))
        mechanism = jaxgdp.GaussianMixture(sigma, shifts, weights)
        run = jaxgdp.compose([(mechanism, steps)])
        epsilon = float(jaxgdp.epsilon(run, delta=0.05, adjacency="remove").upper)
        found = jaxgdp.delta(run, epsilon=epsilon, adjacency="remove")
        low, high = simulated_sides(sigma, shifts, weights, steps, epsilon, 200_000, rng)
        assert found.upper >= low and found.lower <= high


@pytest.mark.nightly
def test_single_uses_of_any_noise_hold_the_truth():
    rng = np.random.default_rng(3)
    for _ in range(12):
        k = int(rng.integers(1, 6))
        shifts = np.append(0.0, 10.0 ** rng.uniform(-1.0, 1.0, k))
        weights = rng.dirichlet(np.full(k + 1, 0.3))
        sigma = 10.0 ** rng.uniform(-1.0, 1.5)
        epsilon = float(rng.choice([0.1, 1.0, 3.0]))
        mechanism = jaxgdp.GaussianMixture(sigma, shifts, weights)
        for order in ("remove", "add"):
            exact = exact_delta(sigma, shifts, weights, epsilon, order)
            found = jaxgdp.delta(mechanism, epsilon=epsilon, adjacency=order)
            assert found.lower <= exact + 1e-30 and exact <= found.upper


def test_last_shift_alone_bounds_every_rate():
    """μ at every FPR is that of the largest shift."""
    mechanism = jaxgdp.GaussianMixture(2.0, [0.0, 1.0, 3.0], [0.5, 0.4, 0.1])
    found = jaxgdp.measure(mechanism, "tpr", fpr=1e-9, adjacency="remove").tpr
    weights = np.array([0.5, 0.4, 0.1])
    exact = weights @ norm.sf(norm.isf(1e-9) - np.array([0.0, 0.5, 1.5]))
    assert found.contains(exact)


@pytest.mark.parametrize("sigma", [1e-6, 0.01])
def test_masses_hold_without_much_noise(sigma):
    """Masses of cells whose logs are of the order of 1/σ², with their own bounds."""
    shifts, weights = np.array([0.0, 1.0, 2.0]), np.array([0.81, 0.18, 0.01])
    mechanism, ell = jaxgdp.GaussianMixture(sigma, shifts, weights), np.array([-0.1, 0.0, 3.0])
    with np.errstate(all="ignore"):
        cells = mechanism.cells(ell, np.inf)
    assert abs(cells.log_x[1:-1].max()) < 1e12
    with mpmath.workdps(60):
        # (nothing but the shifts lies beyond 3, and nothing of them below)
        assert abs(np.exp(cells.log_y[-1]) - 0.19) <= 0.19 * 2.0**-53 * cells.roundoff[-1]
        total = mpmath.fsum(mpmath.exp(float(v)) for v in cells.log_y)
        assert abs(total - 1) <= 1e-3 and cells.roundoff[0] < 1e3


@pytest.mark.nightly
@pytest.mark.parametrize("sigma", [1e-6, 0.05, 1.0])
@pytest.mark.parametrize("prob", [1e-13, 0.01])
def test_every_corner_ends_soon_and_holds_one_use(sigma, prob):
    """Within ten seconds of CPU each, or a little more beside other work, and never wrong."""
    for records, uses in ((2, 1), (16, 1), (4, 100), (4, 10**6)):
        mechanism = of_user(sigma, prob, records)
        run = jaxgdp.compose([(mechanism, uses)])
        for name, given in (("delta", {"epsilon": 1.0}), ("epsilon", {"delta": 1e-5}), ("mu", {})):
            start = time.process_time()
            found = jaxgdp.measure(run, name, rtol=1e-3, adjacency="remove", **given)
            assert time.process_time() - start < 20.0
            wide = found[name].upper > found[name].lower * (1.0 + 1.1e-3) + 1e-12
            assert not wide or found.status[name] == 1
            if uses == 1 and name == "delta" and sigma < 100.0:
                weights = binomial_weights(records, prob)
                exact = exact_delta(sigma, np.arange(records + 1.0), weights, 1.0, "remove")
                assert found[name].lower <= exact * (1.0 + 1e-12) + 1e-300
                assert exact * (1.0 - 1e-12) <= found[name].upper + 1e-300
