"""Noisy maxima against enumeration, integrals in twenty digits, other classes and simulation."""

import itertools
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from mpmath import mpf
from scipy.stats import binom, norm

import jaxgdp
from jaxgdp.mechanisms import growth, maximum_laws

EPSILONS = np.array([0.0, 0.3, 0.8, 1.5])


def density(noise, x):
    """Of noise of scale 1."""
    return {
        "gaussian": lambda: mpmath.npdf(x),
        "laplace": lambda: mpmath.exp(-abs(x)) / 2,
        "exponential": lambda: mpmath.exp(-x) if x >= 0 else mpf(0),
    }[noise]()


def below(noise, x):
    """Its distribution function."""
    if noise == "gaussian":
        return mpmath.ncdf(x)
    if noise == "laplace":
        return mpmath.exp(x) / 2 if x < 0 else 1 - mpmath.exp(-x) / 2
    return 1 - mpmath.exp(-x) if x > 0 else mpf(0)


def law_in_digits(noise, scores):
    """Probability that each score is the largest, scale 1, by adaptive integration."""
    if noise == "gaussian":
        places = [mpf(x) for x in (-9, -2, 0, 2, 9)]
    else:
        start = max(scores) if noise == "exponential" else -45
        places = sorted({mpf(start), *(mpf(s) for s in scores if s >= start), mpf(3), mpf(50)})
    return [
        mpmath.quad(
            lambda x, i=i: (
                density(noise, x - scores[i])
                * mpmath.fprod(below(noise, x - s) for j, s in enumerate(scores) if j != i)
            ),
            places,
        )
        for i in range(len(scores))
    ]


@pytest.mark.parametrize("noise", ["gaussian", "laplace", "exponential"])
def test_laws_of_the_index_in_twenty_digits(noise):
    with mpmath.workdps(20):
        exact = law_in_digits(noise, [0.3, -1.2, 0.0])
    found = jaxgdp.NoisyMaximum(1.0, 3, noise).probabilities([0.3, -1.2, 0.0])
    for mine, truth in zip(found, exact, strict=True):
        assert abs(mine - truth) <= 1e-11 * truth
    # two groups, as attacks have them: here the second score alone against both others
    if noise != "exponential":
        with mpmath.workdps(20):
            alone = law_in_digits(noise, [-2.5, 0.0, 0.0])[0]
        mine = np.exp(maximum_laws.log_wins(noise, 1.0, 2.0, np.array(-2.5)))
        assert abs(mine - alone) <= 1e-11 * alone


def test_laws_of_many_candidates_are_those_of_a_sum_over_cells():
    """Far tails and a thousand candidates, against bounds that hold: sums over small cells."""
    x = np.linspace(-40.0, 40.0, 400_001)
    for group, others, ahead in ((500, 500, -0.5), (1, 999, -1.5), (1, 3, -9.0)):
        log_cdf = group * norm.logcdf(x)
        # (each difference of the smaller tails)
        mass = np.where(x[1:] > 0.0, -np.diff(-np.expm1(log_cdf)), np.diff(np.exp(log_cdf)))
        rest = np.exp(others * norm.logcdf(x + ahead))
        low, high = np.sum(mass * rest[:-1]), np.sum(mass * rest[1:])
        found = np.exp(maximum_laws.log_wins("gaussian", float(group), float(others), ahead))
        assert low * (1 - 1e-9) <= found <= high * (1 + 1e-9) and high < 1.01 * low


def permute_and_flip(weights):
    """Its law, by all orders of the candidates; weights are e^{−gap/b}, the largest of them 1."""
    number = len(weights)
    found = [Fraction(0)] * number
    for order in itertools.permutations(range(number)):
        left = Fraction(1)
        for i in order:
            found[i] += left * weights[i]
            left *= 1 - weights[i]
    total = Fraction(len(list(itertools.permutations(range(number)))))
    return [p / total for p in found]


@pytest.mark.parametrize("gaps", [(0, 0, 3), (0, 1, 2), (0, 1, 1, 5)])
def test_permute_and_flip_is_enumerated_in_fractions(gaps):
    weights = [Fraction(1, 2) ** gap for gap in gaps]
    exact = permute_and_flip(weights)
    choice = jaxgdp.NoisyMaximum(1.0 / np.log(2.0), len(gaps), "permute-and-flip")
    found = choice.probabilities(-np.array(gaps, float))
    np.testing.assert_allclose(found, [float(p) for p in exact], rtol=1e-11)
    assert sum(exact) == 1


def test_one_use_of_exponential_noise_is_that_of_laplace_noise():
    """The largest profile of two candidates, enumerated: it is reached, and never exceeded."""
    half = Fraction(1, 2)  # e^{−ε/2}: scores move by up to a gap of one halving each
    worst = {}
    for gap in range(-6, 7):
        laws = [
            permute_and_flip([half ** max(g, 0), half ** max(-g, 0)]) for g in (gap - 1, gap + 1)
        ]
        for factor in (Fraction(1), Fraction(2), Fraction(3)):
            lost = sum(max(q - factor * p, 0) for p, q in zip(*laws, strict=True))
            worst[factor] = max(worst.get(factor, 0), lost)
    choice = jaxgdp.NoisyMaximum(1.0 / np.log(2.0), 2, "permute-and-flip")
    found = jaxgdp.delta(choice, epsilon=[float(np.log(float(f))) for f in worst])
    laplace = jaxgdp.delta(
        jaxgdp.Laplace(0.5 / np.log(2.0)), epsilon=[float(np.log(float(f))) for f in worst]
    )
    for lower, upper, plain, exact in zip(*found, laplace.upper, worst.values(), strict=True):
        assert exact <= upper * (1 + 1e-12) and upper <= plain * (1 + 1e-9)
        assert lower >= float(exact) * (1 - 1e-12)
    # at equal factors 1 and at 3 gaps of whole halvings are the worst of all gaps
    assert found.upper[0] == pytest.approx(float(worst[Fraction(1)]), rel=1e-9)


def test_two_scores_with_normal_noise_are_a_gaussian():
    for scale, monotone, mu in ((2.0, False, 2 / 2**1.5), (1.0, True, 2**-0.5)):
        found = jaxgdp.delta(jaxgdp.NoisyMaximum(scale, 2, "gaussian", monotone), epsilon=EPSILONS)
        exact = jaxgdp.gdp.delta(epsilon=EPSILONS, mu=mu)
        assert np.all(found.lower <= exact) and np.all(exact <= found.upper * (1 + 1e-12))
        assert np.all(found.upper <= exact * (1 + 1e-3)) and np.all(found.lower >= 0.95 * exact)


@pytest.mark.parametrize("noise", ["gaussian", "laplace", "exponential"])
def test_no_scores_show_more_than_the_upper_side(noise):
    """Random scores of four candidates that move at random, all events."""
    rng = np.random.default_rng(5)
    for monotone in (False, True) if noise == "gaussian" else (False,):
        choice = jaxgdp.NoisyMaximum(1.7, 4, noise, monotone)
        upper = jaxgdp.delta(choice, epsilon=EPSILONS).upper
        scores = rng.normal(0.0, 2.0, (60, 4)) * rng.choice([0.0, 0.3, 1.0], (60, 1))
        moves = rng.choice([0.0, 1.0] if monotone else [-1.0, 1.0], (60, 4))
        p, q = choice.probabilities(scores), choice.probabilities(scores + moves)
        for law, other in ((p, q), (q, p)):
            shown = np.maximum(other[..., None] - np.exp(EPSILONS) * law[..., None], 0.0)
            assert np.all(np.sum(shown, axis=1) <= upper * (1 + 1e-9) + 1e-15)
    lower = jaxgdp.delta(choice, epsilon=EPSILONS).lower
    assert lower[0] >= 0.5 * upper[0] and np.all(lower <= upper)


@pytest.mark.parametrize("candidates", [2, 3, 10, 1000])
def test_growth_of_two_groups_is_below_the_lines(candidates):
    """The density of the difference, by central differences of its distribution function."""
    lines = growth.maximum_lines(candidates)
    for group in {1, candidates // 2, candidates - 1}:
        ahead = np.linspace(-6.0, 4.0, 9)
        step = 1e-4
        win = lambda d, m=group: np.exp(
            maximum_laws.log_wins("gaussian", float(m), float(candidates - m), d)
        )
        u, grows = win(ahead), (win(ahead + step) - win(ahead - step)) / (2 * step)
        likely = u > 0.5  # (the same event from the other side is among these)
        least = np.min(lines.slope[:, None] * u + lines.rest[:, None], axis=0)
        assert np.all((grows <= least * (1 + 1e-6)) | likely) and not np.all(likely)
    half = np.min(lines.slope * 0.5 + lines.rest)
    if candidates % 2 == 0:  # (reached in the middle)
        m = candidates // 2
        at = np.exp(maximum_laws.log_wins("gaussian", m, m, np.array([step, -step])))
        assert half == pytest.approx((at[0] - at[1]) / (2 * step), rel=1e-5)


def test_simulated_indices_have_the_stated_law():
    rng, number = np.random.default_rng(3), 200_000
    scores = np.array([0.5, 0.0, -1.0])
    draws = {
        "gumbel": rng.gumbel(size=(number, 3)),
        "exponential": rng.exponential(size=(number, 3)),
        "laplace": rng.laplace(size=(number, 3)),
        "gaussian": rng.standard_normal((number, 3)),
    }
    for noise, drawn in draws.items():
        counts = np.bincount(np.argmax(scores + 1.5 * drawn, axis=1), minlength=3)
        law = jaxgdp.NoisyMaximum(1.5, 3, noise).probabilities(scores)
        # Clopper-Pearson: neither tail of the stated law is below 1e-6
        assert np.all(binom.cdf(counts, number, law) > 1e-6), noise
        assert np.all(binom.sf(counts - 1, number, law) > 1e-6), noise


@pytest.mark.nightly
def test_uses_are_composed_between_an_attack_and_the_parts():
    for noise in ("gaussian", "exponential"):
        choices = jaxgdp.compose([(jaxgdp.NoisyMaximum(6.0, 5, noise), 6)])
        found = jaxgdp.epsilon(choices, delta=1e-5)
        one = jaxgdp.epsilon(jaxgdp.NoisyMaximum(6.0, 5, noise), delta=1e-5)
        assert one.upper < found.lower < found.upper < 6 * one.upper
    plain = jaxgdp.epsilon(jaxgdp.compose([(jaxgdp.Laplace(3.0), 6)]), delta=1e-5)
    assert found.upper == pytest.approx(plain.upper, rel=2e-3) and found.lower > 0.9 * plain.lower


def test_noisier_choices_and_fewer_candidates_show_less():
    for noise in ("gaussian", "laplace", "exponential"):
        found = jaxgdp.delta(jaxgdp.NoisyMaximum([1.0, 4.0], 6, noise), epsilon=0.2)
        assert np.all(np.diff(found.upper) < 0.0) and np.all(np.diff(found.lower) <= 0.0), noise
    more = jaxgdp.delta(jaxgdp.NoisyMaximum(3.0, [2, 5, 10**6], "gaussian"), epsilon=0.2)
    assert np.all(np.diff(more.upper) > 0.0) and np.all(np.diff(more.lower) > 0.0)
    half = jaxgdp.delta(jaxgdp.NoisyMaximum(2.0, 5, "gaussian"), epsilon=0.2)
    same = jaxgdp.delta(jaxgdp.NoisyMaximum(1.0, 5, "gaussian", monotone=True), epsilon=0.2)
    assert half.upper == same.upper and half.lower == same.lower


def test_choices_at_the_ends_of_their_range():
    one = jaxgdp.mu(jaxgdp.NoisyMaximum(0.1, 1, "gaussian"))
    assert (one.lower, one.upper) == (0.0, 0.0)
    for noise in ("gaussian", "laplace", "exponential"):
        faint = jaxgdp.advantage(jaxgdp.NoisyMaximum(1e6, 3, noise))
        assert 0.0 < faint.lower <= faint.upper < 2e-6, noise
        loud = jaxgdp.advantage(jaxgdp.NoisyMaximum(1e-6, 3, noise))
        assert 0.99 < loud.lower <= loud.upper <= 1.0, noise


@pytest.mark.parametrize(
    "make, said",
    [
        (lambda: jaxgdp.NoisyMaximum(0.0, 3), "scale must be"),
        (lambda: jaxgdp.NoisyMaximum(1.0, 1.5), "num_candidates must be a whole number"),
        (lambda: jaxgdp.NoisyMaximum(1.0, 3, "normal"), "noise must be one of 'gumbel'"),
        (lambda: jaxgdp.NoisyMaximum(1.0, 3, monotone=2), "monotone must be True or False"),
        (lambda: jaxgdp.NoisyMaximum(1.0, 3).probabilities([np.nan]), "scores must be a finite"),
        (lambda: jaxgdp.NoisyMaximum([1.0, 2.0], 3).probabilities([0.0]), "scale must be one"),
    ],
)
def test_choices_refuse_bad_input_by_name(make, said):
    with pytest.raises(ValueError, match=said):
        make()


@pytest.mark.parametrize("noise", ["gumbel", "gaussian"])
def test_many_uses_with_hardly_any_noise_have_brackets(noise):
    """Every loss is at most 2/b, so that ε of n uses is at most 2n/b for Gumbel noise."""
    run = jaxgdp.compose([(jaxgdp.NoisyMaximum(1e-6, 5, noise), 1_000_000_000)])
    found = jaxgdp.epsilon(run, delta=1e-5)
    assert 1e9 < found.lower <= found.upper
    assert noise != "gumbel" or found.upper <= 2e15 * (1.0 + 1e-9)
