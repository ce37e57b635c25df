"""One run with many canaries: published numbers, 40 digits, exhaustive games, and coverage by
simulation.
"""

import jax
import mpmath
import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.special import ndtr, ndtri

import jaxgdp
from jaxgdp import audit, gdp
from jaxgdp.audit.one_run import least_mass, one_run_level


@pytest.mark.parametrize(
    ("numbers", "epsilon"),
    [((1000, 600, 600), 5.270399), ((100, 100, 100), 3.490216), ((1000, 1000, 750), 0.976367)],
)
def test_published_epsilons(numbers, epsilon):
    assert audit.one_run_epsilon(*numbers, 1e-5, 0.95) == pytest.approx(epsilon, abs=1e-6)


@pytest.mark.parametrize("numbers", [(1000, 600, 600), (50, 40, 31), (1000, 1000, 750)])
def test_p_value_with_40_digits(numbers):
    m, r, v = numbers
    epsilon = audit.one_run_epsilon(*numbers, 1e-5, 0.95)
    with mpmath.workdps(40):
        q = 1 / (1 + mpmath.e ** (-mpmath.mpf(float(epsilon))))
        chance = [mpmath.binomial(r, k) * q**k * (1 - q) ** (r - k) for k in range(r + 1)]
        within = [mpmath.fsum(chance[v - i : v]) / i for i in range(1, v + 1)]
        p = mpmath.fsum(chance[v:]) + 2 * m * mpmath.mpf(10) ** -5 * max(within)
    assert float(p) == pytest.approx(audit.one_run_p_value(m, r, v, float(epsilon), 1e-5), rel=1e-9)
    # the refuted side of the root
    assert 0.05 * (1 - 1e-9) < float(p) <= 0.05 * (1 + 1e-11)


def test_pure_dp_is_a_binomial():
    assert audit.one_run_p_value(20, 10, 10, 0.0) == pytest.approx(2.0**-10)
    assert audit.one_run_epsilon(10, 10, 10, 0.0) == pytest.approx(
        -np.log(0.05 ** (-1 / 10) - 1.0), rel=1e-9
    )
    assert audit.one_run_epsilon(10, 10, 5, 0.0) == audit.one_run_epsilon(10, 10, 0, 0.0) == 0.0


def test_published_mu():
    assert audit.one_run_mu(1000, 200, 190, 0.95) == pytest.approx(0.908054, abs=1e-6)
    assert audit.one_run_mu(1000, 200, 100) == audit.one_run_mu(10, 1, 1) == 0.0


def test_recursion_is_the_least_mass_of_the_program():
    """The recursion solves min Σp with H_k ≥ f(1 − R_{k+1}), Pr[right ≥ v] = τ: against linear
    programs by tangents of f.
    """
    m, r, v, tau, mu = 40, 12, 10, 0.3, 0.6
    found = least_mass(lambda right, _: ndtr(ndtri(right) - mu), m, r, v, tau, enough=np.inf)[0]
    at = np.geomspace(1e-6, 1.0 - 1e-9, 400)
    value = gdp.beta(fpr=1.0 - at, mu=mu)
    # slope of R ↦ f(1 − R): e^ℓ with ℓ the privacy loss there
    slope = np.exp(mu * (ndtri(at) - mu / 2.0))
    j = np.arange(r + 1.0)
    rows, right_side = [], []
    for k in range(v):
        # H_k ≥ value + slope·(R_{k+1} − at) for every tangent
        wrong, right = np.where(j >= k, (r - j) / m, 0.0), np.where(j >= k + 1, j / m, 0.0)
        rows.append(slope[:, None] * right - wrong)
        right_side.append(slope * at - value)
    rows.append(-np.where(j >= v, 1.0, 0.0)[None])
    right_side.append([-tau])
    least = linprog(
        np.ones(r + 1), np.concatenate(rows), np.concatenate(right_side), method="highs"
    ).fun
    # tangents allow a little more than f does, on their grid
    assert least <= found * (1.0 + 1e-9) and found == pytest.approx(least, rel=2e-3)


def randomised_response(m, epsilon, repetitions, seed):
    """Each coin is told truthfully with probability e^ε/(1 + e^ε): the worst mechanism under
    ε-DP.
    """
    rng = np.random.default_rng(seed)
    return rng.binomial(m, 1.0 / (1.0 + np.exp(-epsilon)), repetitions)


def cached(function, counts):
    table = {int(v): function(int(v)) for v in np.unique(counts)}
    return np.array([table[int(v)] for v in counts])


def refused(values, truth, level):
    return np.mean(values > truth) > level + 4.0 * np.sqrt(level * (1.0 - level) / len(values))


def test_epsilon_is_covered_and_the_level_is_nearly_used():
    right = randomised_response(100, 1.0, 2000, 0)
    values = cached(lambda v: audit.one_run_epsilon(100, 100, v, 0.0, 0.6), right)
    assert not refused(values, 1.0, 0.4)
    assert np.mean(values > 1.0) > 0.25
    # one guess more than there was is too optimistic
    assert refused(
        cached(lambda v: audit.one_run_epsilon(100, 100, min(v + 3, 100), 0.0, 0.6), right),
        1.0,
        0.4,
    )


def gaussian_game(m, r, mu, repetitions, seed):
    """Each canary's coin is seen through the noise of a μ-GDP mechanism of its own; the surest r
    guesses are made.
    """
    rng = np.random.default_rng(seed)
    included = rng.random((repetitions, m)) < 0.5
    scores = mu * (included - 0.5) + rng.standard_normal((repetitions, m))
    order = np.argsort(scores, axis=1)
    out, inside = order[:, : r // 2], order[:, m - r // 2 :]
    take = np.take_along_axis
    return np.sum(~take(included, out, 1), axis=1) + np.sum(take(included, inside, 1), axis=1)


@pytest.mark.parametrize(("m", "r"), [(100, 100), (200, 40)])
def test_mu_is_covered(m, r):
    right = gaussian_game(m, r, 1.0, 2000, 1)
    values = cached(lambda v: audit.one_run_mu(m, r, v, 0.6), right)
    assert not refused(values, 1.0, 0.4)
    assert np.median(values) > 0.2
    # counting only the guesses that were made, as if the others had not been canaries at all, is
    # too optimistic
    if r < m:
        wrong = cached(lambda v: audit.one_run_mu(r, r, v, 0.6), right)
        assert refused(wrong, 1.0, 0.4)


def test_certified_curve_is_the_null_on_its_safe_side():
    gaussian = audit.one_run_level(0.8, 300, 60, 57)
    certified = audit.one_run_level(jaxgdp.Gaussian(noise_multiplier=1.0 / 0.8), 300, 60, 57)
    mu = audit.one_run_mu(300, 60, 57, 0.95)
    assert audit.one_run_level(float(mu), 300, 60, 57) == pytest.approx(0.05, rel=2e-3)
    # looked up between knots from below: a little harder to refute, never easier
    assert gaussian <= certified * (1.0 + 1e-9) and certified == pytest.approx(gaussian, rel=0.02)


def test_knots_stay_below_the_curve():
    for claim in (1.0, (1.0, 1e-3)):
        stated = audit.as_claim(claim)
        lower = stated.swapped(0.4)
        right = np.random.default_rng(0).uniform(0.0, 0.4, 300)
        truth = np.asarray(stated.fnr(1.0 - right).upper)
        found = lower(right)
        assert np.all(found <= truth + 1e-12)
        assert np.max(truth - found) < 3e-3


def test_claim_of_epsilon_and_delta_by_its_curve():
    # f-DP with the curve of (ε, δ) knows no more than Steinke's theorem at δ = 0: the same binomial
    level = audit.one_run_level((0.5, 0.0), 80, 80, 60)
    assert level >= audit.one_run_p_value(80, 80, 60, 0.5) * (1.0 - 1e-6)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((10, 11, 5, 0.0), "num_guesses must be at most num_canaries = 10, got 11"),
        ((10, 5, 6, 0.0), "at most num_guesses = 5"),
        ((10, 5, -1, 0.0), "num_correct must be a whole number >= 0"),
        ((10, 0, 0, 0.0), "num_guesses must be a whole number >= 1"),
        ((10, 5, 2.5, 0.0), "num_correct must be a whole number"),
        ((10, 5, 2, 1.0), r"delta must be in \[0, 1\)"),
        ((10, 5, 2, 0.0, 1.0), "confidence must be one number"),
        ((10, 5, np.nan, 0.0), "num_correct must be"),
    ],
)
def test_bad_counts_of_guesses_are_refused(arguments, words):
    with pytest.raises(ValueError, match=words):
        audit.one_run_epsilon(*arguments)
    with pytest.raises(ValueError, match="num_guesses must be at most"):
        audit.one_run_mu(10, 11, 5)


def test_many_settings_at_once_are_those_one_by_one():
    m, r, v = np.array([1000, 1000, 100, 100, 10]), [200, 600, 100, 60, 1], [190, 420, 90, 60, 1]
    found = audit.one_run_mus(m, r, v)
    for each, *numbers in zip(found, m, r, v, strict=True):
        assert each <= audit.one_run_mu(*numbers) * (1.0 + 1e-9)
        assert each == pytest.approx(float(audit.one_run_mu(*numbers)), rel=1e-6)
    with pytest.raises(ValueError, match="num_correct at most num_guesses"):
        audit.one_run_mus(10, 5, [3, 6])


def test_levels_of_many_settings_at_once():
    m, r, v = np.array([1000, 500, 300]), [200, 200, 60], [190, 190, 57]
    found = audit.one_run_levels(1.0, m, r, v)
    for level, *numbers in zip(found, m, r, v, strict=True):
        assert level == pytest.approx(one_run_level(1.0, *numbers), rel=5e-3)
        # the μ that the same guesses refute at that level: by the exact curve, never less
        assert 1.0 <= audit.one_run_mu(*numbers, 1.0 - level) < 1.003
    assert audit.one_run_levels(1.0, 10, 5, [0, 2]).tolist() == [1.0, 1.0]


def test_levels_are_p_values_of_a_true_claim():
    right = gaussian_game(60, 30, 1.5, 3000, 2)
    table = audit.one_run_levels(1.5, 60, 30, np.arange(31))
    optimistic = audit.one_run_levels(1.5, 30, 30, np.arange(31))
    too_often = lambda values: any(refused(-values, -a, a) for a in (0.05, 0.2, 0.5))
    assert not too_often(table[right])
    # as if there had been no canaries but those that were guessed
    assert too_often(optimistic[right] / 2.0)


def test_guesses_are_counted_inside_of_compiled_functions():
    rng = np.random.default_rng(3)
    scores, included = rng.integers(0, 9, (4, 50)) * 1.0, rng.random((4, 50)) < 0.5
    one = lambda s, i: audit.correct_guesses(s, i, [1, 7, 50])
    compiled = jax.jit(jax.vmap(one))(scores.astype(np.float32), included)
    assert np.array_equal(compiled, one(scores, included))


def test_guesses_of_many_seeds_are_counted_at_once():
    rng = np.random.default_rng(0)
    scores, included = rng.integers(0, 5, (3, 40)) * 1.0, rng.random((3, 40)) < 0.5
    numbers = np.array([1, 2, 7, 40])
    found = audit.correct_guesses(scores, included, numbers)
    for row, s, i in zip(found, scores, included, strict=True):
        assert row.tolist() == [audit.count_right(audit.guess(s, r), i) for r in numbers]


def test_shift_between_members_and_others_is_taken_off():
    """Memberships with odds e^±γ given the records, told truthfully by an ε-DP release: the bound
    holds, and without the shift taken off it does not."""
    epsilon, gamma, rng = 0.5, 1.0, np.random.default_rng(0)
    tilted = rng.random((2000, 100)) < 0.5  # what the record alone says
    member = rng.random((2000, 100)) < np.where(tilted, 1.0, np.exp(-gamma)) / (
        1.0 + np.exp(-gamma)
    )
    told = np.where(rng.random((2000, 100)) < 1.0 / (1.0 + np.exp(-epsilon)), member, ~member)
    # guesses where both agree; the number of guesses is fixed: the first 40 of them
    agree = told == tilted
    right = np.array([np.sum((told == member)[i][agree[i]][:40]) for i in range(2000)])
    bound = cached(lambda v: audit.zero_run_epsilon(100, 40, v, gamma, 0.6), right)
    assert not refused(bound, epsilon, 0.4) and np.mean(bound > epsilon) > 0.2
    assert refused(
        cached(lambda v: audit.zero_run_epsilon(100, 40, v, 0.0, 0.6), right), epsilon, 0.4
    )
    assert "if membership odds given the records" in str(audit.zero_run_epsilon(100, 40, 40, 1.0))


def test_best_of_several_numbers_of_guesses_is_covered():
    rng, numbers = np.random.default_rng(1), np.array([10, 40, 100, 200])
    included = rng.random((600, 200)) < 0.5
    scores = 0.5 * included + rng.standard_normal((600, 200))
    right = audit.correct_guesses(scores, included, numbers)
    best = audit.one_run_mus(200, numbers, right, 1.0 - 0.4 / 4).max(axis=1)
    assert not refused(best, 0.5, 0.4)
    one = audit.one_run_mu_of_several(scores[0], included[0], numbers, 0.6)
    assert float(one) == pytest.approx(best[0])
    # as if the others had not been canaries at all: too optimistic
    assert refused(audit.one_run_mus(numbers, numbers, right, 0.6).max(axis=1), 0.5, 0.4)


def test_number_of_guesses_chosen_on_another_run_is_covered():
    """By the test without room to spare: chosen on another run it holds, on the same one not."""
    numbers = np.array([4, 12, 40])
    level = np.ones((3, 41))
    for i, r in enumerate(numbers):
        level[i, : r + 1] = [audit.independent_run_level(1.0, 40, int(r), v) for v in range(r + 1)]
    rng = np.random.default_rng(4)
    included = rng.random((2, 3000, 40)) < 0.5
    scores = included - 0.5 + rng.standard_normal(included.shape)
    order = np.argsort(-np.abs(scores), axis=-1)
    right = np.cumsum(np.take_along_axis((scores > 0) == included, order, -1), axis=-1)
    values = np.stack([level[i][right[..., r - 1]] for i, r in enumerate(numbers)])
    best = np.argmin(values, axis=0)
    of = lambda choice: np.take_along_axis(values[:, 1], choice[None], axis=0)[0]
    assert not refused(-of(best[0]), -0.2, 0.2) and refused(-of(best[1]), -0.2, 0.2)
    chosen = audit.best_num_guesses(2.0 * scores[0, 0], included[0, 0])
    assert 1 <= chosen <= 40 and audit.best_num_guesses([0.0], [True]) == 1
