"""Shuffled reports: against all histograms of few users, sums by definition, and simulations."""

import itertools
from collections import defaultdict
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from mpmath import mpf
from scipy.stats import binom

import jaxgdp
from jaxgdp.pairs.binomial import binomial, sum_of_steps

EPSILONS = np.array([0.0, 0.1, 0.3, 0.7, 1.2])


def k_ary(epsilon, k):
    """Randomised response: laws of the answer by value."""
    ratio = np.exp(epsilon)
    return (np.ones((k, k)) + (ratio - 1.0) * np.eye(k)) / (ratio + k - 1.0)


def histograms(laws):
    """Probability of every multiset of answers."""
    found = {(0,) * len(laws[0]): 1}
    for law in laws:
        more = defaultdict(int)
        for counts, mass in found.items():
            for answer, chance in enumerate(law):
                changed = list(counts)
                changed[answer] += 1
                more[tuple(changed)] += mass * chance
        found = more
    return found


def most_shown(rows, users):
    """δ(ε) by definition, the largest of all values of all users."""
    most = np.zeros(len(EPSILONS))
    for others in itertools.combinations_with_replacement(range(len(rows)), users - 1):
        for i, j in ((0, 1), (1, 0)):
            first, second = (histograms([rows[x], *(rows[o] for o in others)]) for x in (i, j))
            p = np.array([first[h] for h in first])
            q = np.array([second[h] for h in first])
            shown = np.maximum(p - np.exp(EPSILONS)[:, None] * q, 0.0).sum(axis=1)
            most = np.maximum(most, shown)
    return most


@pytest.mark.parametrize("epsilon, users, k", [(0.5, 3, 2), (2.0, 3, 3), (4.0, 2, 4), (2.0, 1, 2)])
def test_every_value_of_every_user_shows_no_more(epsilon, users, k):
    rows = k_ary(epsilon, k)
    truth = most_shown(rows, users)
    for randomizer in (f"{k}-ary", "k-ary", "any", rows[:2]):
        found = jaxgdp.delta(jaxgdp.ShuffledReports(epsilon, users, randomizer), epsilon=EPSILONS)
        assert np.all(truth <= found.upper * (1.0 + 1e-9) + 1e-300)
        if not isinstance(randomizer, str) or randomizer not in ("any", "k-ary"):
            assert np.all(found.lower <= truth * (1.0 + 1e-9))
            assert found.lower[0] >= 0.7 * truth[0]


def exact_most_shown(rows, users):
    """:func:`most_shown` of laws in fractions, without any rounding but of e^ε in forty digits."""
    with mpmath.workdps(40):
        factors = [Fraction(str(mpmath.exp(mpf(float(x))))) for x in EPSILONS]
    most = [Fraction(0)] * len(EPSILONS)
    for others in itertools.combinations_with_replacement(range(len(rows)), users - 1):
        for i, j in ((0, 1), (1, 0)):
            first, second = (histograms([rows[x], *(rows[o] for o in others)]) for x in (i, j))
            for k, e in enumerate(factors):
                shown = sum(max(first[h] - e * second[h], 0) for h in first)
                most[k] = max(most[k], Fraction(shown))
    return most


def extreme_laws(rng, values, epsilon):
    """Laws that are multiples of one by 1 or by a ratio just below e^ε, at every answer, exactly;
    None where the vertex is degenerate.
    """
    from scipy.optimize import linprog

    ratio = Fraction(float(np.exp(epsilon))) * (1 - Fraction(1, 10**14))
    columns = list(itertools.product([Fraction(1), ratio], repeat=values))
    table = np.array(columns, float).T
    weights = linprog(rng.standard_normal(len(columns)), A_eq=table, b_eq=np.ones(values)).x
    some = [columns[k] for k in np.flatnonzero(weights > 1e-12)]
    if len(some) != values:
        return None
    # Cramer's rule
    rows = [[column[i] for column in some] for i in range(values)]
    whole = determinant(rows)
    if whole == 0:
        return None
    ones = lambda k: [[*row[:k], Fraction(1), *row[k + 1 :]] for row in rows]
    share = [determinant(ones(k)) / whole for k in range(values)]
    return [[w * c for w, c in zip(share, row, strict=True)] for row in rows]


def determinant(rows):
    """By its first row."""
    if len(rows) == 1:
        return rows[0][0]
    rest = lambda k: [[*row[:k], *row[k + 1 :]] for row in rows[1:]]
    return sum((-1) ** k * x * determinant(rest(k)) for k, x in enumerate(rows[0]))


@pytest.mark.nightly
def test_extreme_randomisers_show_no_more_than_clones():
    """All laws of an extreme randomiser are multiples of one, by 1 or e^ε, at every answer."""
    rng, seen = np.random.default_rng(0), 0
    for _ in range(70):
        values, users = int(rng.integers(2, 4)), int(rng.integers(1, 4))
        epsilon = float(rng.choice([0.2, 1.0, 2.0, 4.0]))
        rows = extreme_laws(rng, values, epsilon)
        if rows is None or min(map(min, rows)) <= 0:
            continue
        seen += 1
        found = jaxgdp.delta(jaxgdp.ShuffledReports(epsilon, users), epsilon=EPSILONS)
        truth = exact_most_shown(rows, users)
        for upper, exact in zip(found.upper, truth, strict=True):
            assert exact <= Fraction(float(upper)) * (1 + Fraction(1, 10**9))
        if rows[0] == rows[1]:
            continue
        # the pair as it is given, in doubles
        given = [[float(x) for x in row] for row in rows]
        stored = [[Fraction(x) / sum(map(Fraction, row)) for x in row] for row in given]
        pair = jaxgdp.ShuffledReports(epsilon, users, given[:2])
        lower = jaxgdp.delta(pair, epsilon=EPSILONS).lower
        for found_lower, exact in zip(lower, exact_most_shown(stored, users), strict=True):
            assert Fraction(float(found_lower)) <= exact * (1 + Fraction(1, 10**6))
    assert seen >= 8


@pytest.mark.parametrize("laws", [[[0.5, 0.5], [0.5 + 1e-13, 0.5 - 1e-13]],
                                  [[1.0 - 1e-15, 1e-15], [1.0 - 2e-15, 2e-15]]])  # fmt: skip
def test_nearly_equal_laws_of_a_report_show_their_difference(laws):
    first, second = ([Fraction(x) for x in law] for law in laws)
    first, second = ([x / sum(law) for x in law] for law in (first, second))
    shown = sum(max(b - a, 0) for a, b in zip(first, second, strict=True))
    alone = jaxgdp.ShuffledReports(1.0, 1, randomizer=laws)
    found = jaxgdp.delta(alone, epsilon=0.0)
    assert 0 < shown and Fraction(float(found.lower)) <= shown <= Fraction(float(found.upper))


def test_equal_laws_of_a_report_show_nothing():
    found = jaxgdp.advantage(jaxgdp.ShuffledReports(1.0, 10, [[0.5, 0.5], [0.5, 0.5]]))
    assert found.lower == 0.0 and found.upper < 1e-9


def by_definition(epsilon, users, at):
    """δ of the clones: (1/n)·E(u·a − v·b)₊, a and b multinomial; and of binary reports."""
    ratio, e = np.exp(epsilon), np.exp(at)
    count = np.arange(users)
    total = 0.0
    for clones in count:
        s = binom.pmf(np.arange(clones + 1), clones, 0.5)
        p = (ratio * np.append(s, 0.0) + np.append(0.0, s)) / (ratio + 1.0)
        chance = binom.pmf(clones, users - 1, 2.0 / (ratio + 1.0))
        total += chance * np.sum(np.maximum(p - e * p[::-1], 0.0))
    s = binom.pmf(count, users - 1, 1.0 / (ratio + 1.0))
    low, high = np.append(0.0, s), np.append(s, 0.0)
    p, q = ((ratio * a + b) / (ratio + 1.0) for a, b in ((high, low), (low, high)))
    return total, np.sum(np.maximum(p - e * q, 0.0))


@pytest.mark.parametrize("epsilon, users, at", [(1.0, 400, 0.2), (3.0, 60, 1.0), (0.2, 30, 0.1)])
def test_sides_are_those_of_the_definition(epsilon, users, at):
    clones, binary = by_definition(epsilon, users, at)
    found = jaxgdp.delta(jaxgdp.ShuffledReports(epsilon, users, "binary"), epsilon=at)
    assert clones <= found.upper * (1.0 + 1e-9) and found.upper <= clones * 1.002
    assert found.lower >= binary * 0.998


def test_public_example():
    """n = 10⁵, ε₀ = 4, δ = 10⁻⁶: from 4 to less than 0.12."""
    found = jaxgdp.epsilon(jaxgdp.ShuffledReports(4.0, 100_000), delta=1e-6)
    assert 0.1168 <= found.lower <= found.upper <= 0.1183


@pytest.mark.nightly
def test_reports_of_a_thousand_million_users():
    for randomizer in ("any", "16-ary", "binary"):
        found = jaxgdp.mu(jaxgdp.ShuffledReports(4.0, 10**9, randomizer))
        assert 0.0 < found.lower <= found.upper <= 1.5 * found.lower < 6e-4


def test_binomial_masses_have_their_digits():
    with mpmath.workdps(40):
        for number, prob in ((50, 0.3), (10**6, 0.018), (10**9, 0.5), (10**8, 1e-7)):
            law = binomial(number, prob)
            for i in {0, len(law.mass) // 3, int(np.argmax(law.mass))}:
                k, p = law.first + i, mpf(prob)
                log = mpmath.loggamma(number + 1) - mpmath.loggamma(k + 1)
                log += k * mpmath.log(p) + (number - k) * mpmath.log(1 - p)
                exact = mpmath.exp(log - mpmath.loggamma(number - k + 1))
                assert abs(law.mass[i] - exact) <= law.error * exact + mpf("1e-320")


def test_sums_of_steps_have_their_digits():
    number, each = 40, 0.07
    steps = sum_of_steps(number, each)
    with mpmath.workdps(30):
        r = mpf(each)
        for z in (0, 1, 17, 40):
            exact = mpmath.fsum(
                mpmath.binomial(number, b + z)
                * mpmath.binomial(number - b - z, b)
                * r ** (2 * b + z)
                * (1 - 2 * r) ** (number - 2 * b - z)
                for b in range((number - z) // 2 + 1)
            )
            assert abs(steps.mass[z] - exact) <= steps.error[0] * exact


def test_simulated_reports_show_no_more():
    rng, epsilon, users, number = np.random.default_rng(3), 1.0, 30, 200_000
    low = 1.0 / (np.exp(epsilon) + 1.0)
    others = rng.binomial(users - 1, low, (2, number))
    counts = others + (rng.random((2, number)) < np.array([[low], [1.0 - low]]))
    shown = np.mean(counts[1] >= 10) - np.mean(counts[0] >= 10)
    found = jaxgdp.advantage(jaxgdp.ShuffledReports(epsilon, users, "binary"))
    assert shown <= found.upper + 5.0 * np.sqrt(0.5 / number)


def test_more_users_and_less_noise_are_monotone():
    few = jaxgdp.advantage(jaxgdp.ShuffledReports(2.0, [10, 100, 1000, 3000, 5000]))
    weak = jaxgdp.advantage(jaxgdp.ShuffledReports([0.5, 1.0, 2.0], 50))
    for side in few:
        assert np.all(np.diff(side) < 0.0)
    for side in weak:
        assert np.all(np.diff(side) > 0.0)


def test_rare_losses_keep_their_digits():
    """Where hardly anybody covers a report, the sides meet: 1 − TPR of 2e-9."""
    found = jaxgdp.mu(jaxgdp.ShuffledReports(20.0, 10**6))
    assert found.lower <= found.upper <= found.lower * (1.0 + 1e-9)


@pytest.mark.parametrize(
    "given, said",
    [
        ((0.0, 10), r"epsilon must be in \[1e-6, 20\]"),
        ((1.0, 10.5), "num_users must be a whole number"),
        ((1.0, 2e9), "num_users must be a whole number"),
        ((1.0, 10, "1-ary"), "randomizer must be 'any'"),
        ((1.0, 10, [[0.5, 0.5], [0.9, 0.2]]), "laws that sum to 1"),
        ((1.0, 10, [[0.9, 0.1], [0.1, 0.9]]), "within a factor of e\\^epsilon"),
    ],
)
def test_bad_input_by_name(given, said):
    with pytest.raises(ValueError, match=said):
        jaxgdp.ShuffledReports(*given)
