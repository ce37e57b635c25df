"""Random positions: certified brackets against simulation of the exact likelihood ratio."""

import numpy as np
import pytest
from scipy.stats import beta

import jaxgdp
from jaxgdp.mechanisms.matrix_mechanism import banded_below, chains, markov_above, positions
from jaxgdp.mechanisms.matrix_mechanism.strategy import gram, matrix, modes
from jaxgdp.participation import BallsInBins, RandomShift

COLUMN = np.array([1.0, 0.5, 0.25, 0.125])
COLUMN = COLUMN / np.linalg.norm(COLUMN)


def simulated(covariance, epsilon, samples=200_000, seed=0):
    """(low, high) of δ(ε) of removing and of adding, each right with probability 1 − 1e-9.

    δ is the mean of (1 − c/L)₊ with the record and of (1 − c·L)₊ without it, numbers in [0, 1]: a
    coin that falls with such a probability has the same mean, and its count an exact interval
    (Clopper & Pearson 1934)."""
    rng = np.random.default_rng(seed)
    number = len(covariance)
    root = np.linalg.cholesky(covariance + 1e-13 * np.eye(number)).T
    absent = rng.standard_normal((samples, number)) @ root
    present = absent + covariance[rng.integers(number, size=samples)]
    c, found = np.exp(epsilon), []
    for u, sign in ((present, -1.0), (absent, 1.0)):
        ratio = np.exp(u - 0.5 * np.diag(covariance)).mean(axis=1)
        found.append(coin(np.maximum(1.0 - c * ratio**sign, 0.0), rng))
    return found


def coin(gain, rng):
    """An interval for a mean of numbers in [0, 1] that is right with probability 1 − 1e-9."""
    samples = len(gain)
    heads = int(np.count_nonzero(rng.random(samples) < gain))
    low = beta.ppf(5e-10, heads, samples - heads + 1) if heads else 0.0
    return low, beta.isf(5e-10, heads + 1, samples - heads)


def held(mechanism, covariance, epsilon, seed=0):
    for order, (low, high) in zip(
        ("remove", "add"), simulated(covariance, epsilon, seed=seed), strict=True
    ):
        found = jaxgdp.delta(mechanism, epsilon=epsilon, adjacency=order)
        assert found.lower <= high and found.upper >= low, (order, found, low, high)
    return found


def covariance(mechanism):
    c = matrix(mechanism.strategy, mechanism.num_steps)
    return gram(modes(c, int(mechanism.participation.cycle))) / mechanism.noise_multiplier**2


@pytest.fixture(scope="module")
def published():
    """C, σ = 6, 100 steps, cycle 10 (jax_privacy's example of Monte Carlo accounting)."""
    return jaxgdp.MatrixMechanism(COLUMN, 6.0, BallsInBins(10), num_steps=100)


def test_published_example_is_within_its_bracket(published):
    found = jaxgdp.delta(published, epsilon=0.3, adjacency="remove")
    assert 0.0138 <= found.lower <= 0.0225 <= found.upper <= 0.0247
    held(published, covariance(published), 0.3)


def test_small_delta_is_bracketed(published):
    """Where simulation does not get: between no amplification and random allocation."""
    found = jaxgdp.epsilon(published, delta=1e-6)
    alone = jaxgdp.epsilon(jaxgdp.RandomAllocation(6.0 / 10**0.5, 10), delta=1e-6)
    fixed = jaxgdp.epsilon(jaxgdp.Gaussian(6.0 / 10**0.5), delta=1e-6)
    assert alone.lower <= found.upper < fixed.lower and 1.0 < found.lower < found.upper < 1.3


def test_random_shift_of_each_record_is_balls_in_bins(published):
    other = jaxgdp.MatrixMechanism(COLUMN, 6.0, RandomShift(10), num_steps=100)
    one, two = (jaxgdp.mu(each) for each in (published, other))
    assert tuple(one) == tuple(two)


def test_columns_that_do_not_overlap_are_random_allocation():
    run = jaxgdp.MatrixMechanism([1.0], 2.0, BallsInBins(20), num_steps=60)
    same = jaxgdp.RandomAllocation(2.0 / 3**0.5, 20)
    one, two = (jaxgdp.measure(m, ("mu", "epsilon"), delta=1e-5) for m in (run, same))
    for name in ("mu", "epsilon"):
        np.testing.assert_allclose([*one[name]], [*two[name]], rtol=1e-9)
    assert one.epsilon.upper <= 1.002 * one.epsilon.lower


def test_composed_with_other_mechanisms(published):
    run = jaxgdp.compose([(published, 2), (jaxgdp.Gaussian(5.0), 1)])
    found, one = jaxgdp.mu(run), jaxgdp.mu(published)
    assert one.upper < found.upper and found.lower >= 0.2 * (1 - 1e-9)
    assert found.upper <= np.sqrt(2 * 10 / 36 + 1 / 25)


def test_chain_holds_simulations_of_its_own_law():
    uneven = chains.anchored(gram(modes(matrix(COLUMN, 18), 6)) / 9.0)
    assert uneven is not None and np.ptp(np.diagonal(uneven.covariance, 1)) > 0.0
    for chain in (
        chains.geometric(0.4, 0.5, 5, circle=False),
        chains.geometric(0.4, 0.5, 5, circle=True),
        chains.geometric(0.1, 0.9, 4, circle=True),
        uneven,
    ):
        exact = chain.covariance
        call = markov_above.law(chain, 0.3, markov_above.CALL)
        put = markov_above.law(chain, 0.3, markov_above.PUT)
        for epsilon in (0.0, 0.3, 1.0):
            (low, high), (other, most) = simulated(exact, epsilon)
            c = np.exp(epsilon)
            assert low <= call.call(np.array([c]))[0] <= 1.1 * high + 1e-4
            assert other <= put.put(np.array([1 / c]))[0] * c <= 1.1 * most + 1e-4


def test_attack_is_below_simulations_of_its_own_law():
    alpha = np.tile([0.5, 0.3, 0.1], (6, 1))
    alpha[5, 1:] = alpha[4, 2] = 0.0
    table = banded_below.attack_table(alpha, 8)
    exact = banded_below.banded_gram(alpha)
    for epsilon in (0.0, 0.3):
        (_, high), (_, most) = simulated(exact, epsilon)
        c = np.exp(epsilon)
        assert 0.6 * high - 1e-4 <= np.maximum(table.q - c * table.p, 0.0).sum() <= high
        assert 0.6 * most - 1e-4 <= np.maximum(table.p - c * table.q, 0.0).sum() <= most


def test_simpler_matrices_are_on_their_sides_in_every_entry():
    rng = np.random.default_rng(3)
    for _ in range(20):
        number, n = int(rng.integers(3, 12)), int(rng.integers(12, 40))
        c = matrix(np.append(1.0, rng.uniform(0.0, 1.0, 3)), n)
        full = gram(modes(c, number)) / 9.0
        found = chains.candidates(full)
        assert len(found) >= 2
        for chain in found:
            exact = chain.covariance
            assert np.all(exact >= full) and np.linalg.eigvalsh(exact).min() > -1e-12
            assert np.all(np.diag(exact) == exact[0, 0]) or np.ptp(np.diag(exact)) < 1e-12
            # (it is the chain that it is followed as: given two values the rest is independent)
            for i, j in [(1, 3), (1, number - 1), (0, 2)] if number > 3 else []:
                known = [j - 1, 0] if chain.remembers else [j - 1]
                if i in known:
                    continue
                between = exact[np.ix_(known, known)]
                share = np.linalg.solve(between, exact[known, j])
                assert abs(exact[i, j] - share @ exact[known, i]) < 1e-12
        own = np.zeros((number, 4))
        for j, m in np.ndindex(number, 4):
            own[j, m] = c[j + m, j] if j + m < n else 0.0
        for most in (2, 3, 4):
            alpha = banded_below.coefficients(full, own[:, : min(4, number)], min(most, number))
            assert np.all(banded_below.banded_gram(alpha) <= full + 1e-15)


@pytest.mark.nightly
def test_brackets_widen_with_every_entry():
    """δ of the pair grows with each entry: tables of larger matrices lie above those of smaller."""
    rng = np.random.default_rng(4)
    c = matrix([1.0, 0.6, 0.2], 9)
    small = gram(modes(c, 3)) / 36.0
    for _ in range(4):
        i, j = rng.integers(0, 3, 2)
        large = small.copy()
        large[i, j] += 0.02
        large[j, i] = large[i, j]
        if np.linalg.eigvalsh(large).min() < 0.0:
            continue
        below = positions._below(small, np.eye(3) * 1e-3)
        above = positions._above(large)
        for epsilon in (0.1, 0.4):
            high = np.maximum(above.q - np.exp(epsilon) * above.p, 0.0).sum() + above.q_plus
            assert high >= np.maximum(below.q - np.exp(epsilon) * below.p, 0.0).sum()
            assert high >= simulated(small, epsilon)[0][0]


def test_noise_out_of_range_is_refused_by_name():
    with pytest.raises(ValueError, match="noise_multiplier must be from"):
        jaxgdp.mu(jaxgdp.MatrixMechanism([1.0, 0.5], 0.01, BallsInBins(4), num_steps=8))


@pytest.mark.nightly
def test_brackets_hold_simulations_of_the_exact_ratio():
    """Twenty settings: strategies, cycles, epochs, noise."""
    rng = np.random.default_rng(5)
    for seed in range(20):
        cycle, epochs = int(rng.integers(2, 16)), int(rng.integers(1, 6))
        number = int(rng.integers(1, 6))
        column = np.append(1.0, np.sort(rng.uniform(0.0, 1.0, number - 1))[::-1])
        steps = max(cycle * epochs + int(rng.integers(0, cycle)), number, cycle)
        sigma = float(np.linalg.norm(column) * np.sqrt(epochs) * 10.0 ** rng.uniform(-0.2, 0.6))
        mechanism = jaxgdp.MatrixMechanism(column, sigma, BallsInBins(cycle), num_steps=steps)
        exact = covariance(mechanism)
        for epsilon in (0.1, 0.5, 1.5):
            held(mechanism, exact, epsilon, seed)
