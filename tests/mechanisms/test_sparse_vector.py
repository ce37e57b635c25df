"""Sparse vectors against integrals in twenty digits, random streams and simulation."""

import mpmath
import numpy as np
import pytest
from mpmath import mpf
from scipy.stats import binom

import jaxgdp

EPSILONS = np.array([0.0, 0.2, 0.5, 0.9])


def pdf(noise, x, scale):
    if noise == "gaussian":
        return mpmath.npdf(x, 0, scale)
    return mpmath.exp(-abs(x) / scale) / (2 * scale)


def cdf(noise, x, scale):
    if noise == "gaussian":
        return mpmath.ncdf(x, 0, scale)
    return mpmath.exp(x / scale) / 2 if x < 0 else 1 - mpmath.exp(-x / scale) / 2


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_laws_of_a_stream_in_twenty_digits(noise):
    answers, one, two = [0.5, -1.0, 2.0], 1.5, 2.5
    search = jaxgdp.SparseVector(one, two, 3, noise=noise)
    found = search.probabilities(np.array(answers) + 7.0, threshold=7.0)
    with mpmath.workdps(20):
        places = sorted({mpf(0), *map(mpf, answers), *(mpf(x) for x in (-70, -9, 9, 70))})
        for k in range(4):
            exact = mpmath.quad(
                lambda x, k=k: (
                    pdf(noise, x, one)
                    * mpmath.fprod(cdf(noise, x - a, two) for a in answers[:k])
                    * (cdf(noise, answers[k] - x, two) if k < 3 else 1)
                ),
                places,
            )
            assert abs(found[k] - exact) <= 1e-11 * exact


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("monotone", [False, True])
def test_no_stream_shows_more_than_the_upper_side(noise, monotone):
    rng = np.random.default_rng(8)
    search = jaxgdp.SparseVector(2.0, 3.0, 6, noise=noise, monotone=monotone)
    found = jaxgdp.delta(search, epsilon=EPSILONS)
    best = np.zeros(len(EPSILONS))
    for _ in range(40):
        answers = rng.normal(rng.choice([-4.0, 0.0]), rng.choice([0.0, 3.0]), 6)
        moves = rng.choice([0.0, 1.0] if monotone else [-1.0, 1.0], 6)
        p, q = search.probabilities(answers), search.probabilities(answers + moves)
        assert p.sum() == pytest.approx(1.0, abs=1e-12)
        for law, other in ((p, q), (q, p)):
            shown = np.sum(np.maximum(other - np.exp(EPSILONS)[:, None] * law, 0.0), axis=1)
            best = np.maximum(best, shown)
    assert np.all(best <= found.upper * (1 + 1e-9) + 1e-15)
    assert np.all(found.lower <= found.upper) and found.lower[0] >= 0.5 * best[0]


def test_simulated_streams_have_the_stated_law():
    rng, number = np.random.default_rng(4), 200_000
    answers = np.array([-1.0, 0.5, 0.0, 2.0])
    for noise, draw in (("laplace", rng.laplace), ("gaussian", rng.normal)):
        level = draw(0.0, 1.5, (number, 1))
        above = answers + draw(0.0, 2.0, (number, 4)) >= level
        first = np.where(np.any(above, axis=1), np.argmax(above, axis=1), 4)
        counts = np.bincount(first, minlength=5)
        law = jaxgdp.SparseVector(1.5, 2.0, 4, noise=noise).probabilities(answers)
        assert np.all(binom.cdf(counts, number, law) > 1e-6), noise
        assert np.all(binom.sf(counts - 1, number, law) > 1e-6), noise


def test_sparse_vectors_with_laplace_noise_are_below_pure_dp():
    for cutoff, monotone, epsilon in ((1, False, 1.0), (3, True, 1.25)):
        search = jaxgdp.SparseVector(2.0, 4.0, 6, cutoff, monotone=monotone)
        above = jaxgdp.delta(search, epsilon=EPSILONS).upper
        pure = jaxgdp.delta(jaxgdp.PureDP(epsilon), epsilon=EPSILONS).upper
        assert np.all(above < pure)
        assert jaxgdp.epsilon(search, delta=1e-12).upper <= epsilon * (1 + 1e-12)


def test_thresholds_that_are_resampled_are_a_composition():
    rounds = jaxgdp.SparseVector(10.0, 20.0, 12, cutoff=4, resampled=True)
    found = jaxgdp.epsilon(rounds, delta=1e-5)
    plain = jaxgdp.epsilon(jaxgdp.compose([(jaxgdp.Laplace(5.0), 4)]), delta=1e-5)
    assert found.upper == pytest.approx(plain.upper, rel=2e-3) and 0.0 < found.lower < found.upper


@pytest.mark.nightly
def test_sparse_vectors_with_more_noise_show_less():
    for noise in ("laplace", "gaussian"):
        make = lambda one, two, n=16, c=1, noise=noise: jaxgdp.SparseVector(one, two, n, c, noise)
        for swept in (make([1.0, 4.0], 4.0, 3), make(2.0, [4.0, 8.0], 3)):
            assert np.diff(jaxgdp.delta(swept, epsilon=0.1).upper)[0] < 0.0, noise
        more = jaxgdp.delta(make(2.0, 8.0, 5, [1, 4]), epsilon=0.1)
        assert np.diff(more.upper)[0] > 0.0 or noise == "gaussian"
        assert np.diff(more.upper)[0] >= 0.0
    longer = jaxgdp.delta(make(2.0, 4.0, [1, 4, 10**9]), epsilon=0.1)
    assert np.all(np.diff(longer.upper) > 0.0) and longer.upper[-1] < 1.0


def test_one_query_with_normal_noise_is_a_gaussian():
    """A bit that compares one answer: the noises add up."""
    found = jaxgdp.delta(jaxgdp.SparseVector(3.0, 4.0, 1, noise="gaussian"), epsilon=EPSILONS)
    exact = jaxgdp.gdp.delta(epsilon=EPSILONS, mu=1.0 / 5.0)
    assert np.all(found.lower <= exact) and np.all(exact <= found.upper * (1 + 1e-12))
    assert np.all(found.upper <= exact * (1 + 2e-3) + 1e-9)


@pytest.mark.parametrize(
    "make, said",
    [
        (lambda: jaxgdp.SparseVector(0.0, 1.0, 3), "threshold_scale must be"),
        (lambda: jaxgdp.SparseVector(1.0, np.inf, 3), "query_scale must be"),
        (lambda: jaxgdp.SparseVector(1.0, 1.0, 0), "num_queries must be a whole number"),
        (lambda: jaxgdp.SparseVector(1.0, 1.0, 3, 0.5), "cutoff must be a whole number"),
        (lambda: jaxgdp.SparseVector(1.0, 1.0, 3, noise="gumbel"), "noise must be 'laplace' or"),
        (lambda: jaxgdp.SparseVector(1.0, 1.0, 3, resampled=1), "resampled must be True or"),
        (lambda: jaxgdp.SparseVector(1.0, 1.0, 3).probabilities(0.0), "answers must be one row"),
    ],
)
def test_sparse_vectors_refuse_bad_input_by_name(make, said):
    with pytest.raises(ValueError, match=said):
        make()
