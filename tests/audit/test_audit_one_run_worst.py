"""The exact worst case of one run: against programs over all mechanisms, and mechanisms that are
right as often as a curve allows."""

import itertools

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import linprog
from scipy.special import betainc, expit

from jaxgdp import audit
from jaxgdp.audit import independent_run_level, one_run_level, one_run_worst
from jaxgdp.audit.half_planes import HalfPlanes


def best_mechanism(m, r, v, slope, intercept):
    """The largest Pr[v of r guesses are right] of any mechanism {0,1}^m → guesses, by a program
    over all its probabilities, with every half-plane for every pair of neighbours."""
    inputs = list(itertools.product((0, 1), repeat=m))
    guesses = [
        dict(zip(chosen, bits, strict=True))
        for chosen in itertools.combinations(range(m), r)
        for bits in itertools.product((0, 1), repeat=r)
    ]
    both = itertools.product(range(len(inputs)), range(len(guesses)))
    place = {each: i for i, each in enumerate(both)}
    apart = lambda i, j: sum(a != b for a, b in zip(inputs[i], inputs[j], strict=True))
    pairs = [p for p in itertools.product(range(len(inputs)), repeat=2) if apart(*p) == 1]
    size = len(place) + len(pairs) * len(slope) * len(guesses)
    gain, rows, limits, extra = np.zeros(size), [], [], len(place)
    for (i, g), column in place.items():
        right = sum(inputs[i][k] == bit for k, bit in guesses[g].items())
        gain[column] = -(right >= v) / len(inputs)
    for (i, j), (s, c) in itertools.product(pairs, zip(slope, intercept, strict=True)):
        total = np.zeros(size)
        for g in range(len(guesses)):
            row = np.zeros(size)
            row[place[i, g]], row[place[j, g]], row[extra] = 1.0, -s, -1.0
            total[extra] = 1.0
            rows.append(row)
            limits.append(0.0)
            extra += 1
        rows.append(total)
        limits.append(c)
    whole = np.zeros((len(inputs), size))
    for (i, _), column in place.items():
        whole[i, column] = 1.0
    return -linprog(gain, np.array(rows), limits, whole, np.ones(len(inputs)), method="highs").fun


@pytest.mark.parametrize(
    ("m", "r", "v", "slope", "intercept"),
    [
        (2, 2, 2, [2.0], [0.05]),
        (2, 2, 1, [1.0, 2.0], [0.35, 0.05]),
        (2, 1, 1, [1.0, 2.0, 4.0], [0.3, 0.12, 0.0]),
        (3, 2, 2, [1.5, 4.0], [0.1, 0.01]),
        (3, 3, 2, [1.0, 3.0], [0.3, 0.0]),
        (3, 3, 3, [3.0], [0.02]),
    ],
)
def test_worst_case_is_what_the_best_of_all_mechanisms_does(m, r, v, slope, intercept):
    lines = HalfPlanes(np.array(slope), np.array(intercept), np.zeros((len(slope) - 1, 2)))
    exact = best_mechanism(m, r, v, slope, intercept)
    found = one_run_worst.worst_level(lines, m, r, v)
    assert exact - 1e-9 <= found <= exact + 1e-6


def one_loss_for_all(m, v, mu):
    """Pr[v of m right] of a mechanism whose curve is f_μ: one |privacy loss| is drawn and told, and
    every coin is told through randomised response with that loss."""
    density = lambda loss: np.exp(-((loss - mu**2 / 2) ** 2) / (2 * mu**2)) / mu
    both = lambda loss: (density(loss) + density(-loss)) / np.sqrt(2.0 * np.pi)
    right = lambda loss: both(loss) * betainc(v, m - v + 1.0, expit(loss))
    return quad(right, 0.0, mu**2 / 2 + 12.0 * mu, epsabs=1e-12, limit=400)[0]


def is_a_p_value(level, m, mu):
    return all(one_loss_for_all(m, v, mu) <= level(mu, m, m, v) for v in (12, 14, 16, 19))


@pytest.mark.parametrize("mu", [0.5, 1.0, 2.0])
def test_one_loss_for_all_canaries_stays_below_the_worst_case(mu):
    tight = lambda *arguments: one_run_level(*arguments, tight=True)
    assert is_a_p_value(tight, 20, mu) and is_a_p_value(one_run_level, 20, mu)
    # "no mechanism below a curve is right oftener than independent pairs are" is wrong
    assert not is_a_p_value(independent_run_level, 20, mu)


def test_any_multipliers_give_a_bound():
    slope, intercept = np.array([1.0, 2.0]), np.array([0.4, 0.1])
    best = one_run_worst.certificate(slope, intercept, 10, 10, 8).level(intercept)
    rng = np.random.default_rng(0)
    original = one_run_worst._solved
    try:
        for _ in range(20):
            one_run_worst._solved = lambda *_: (rng.normal(1.0, 2.0, 2), rng.normal(1, 2, (2, 10)))
            assert one_run_worst.certificate(slope, intercept, 10, 10, 8).level(intercept) >= best
    finally:
        one_run_worst._solved = original


@pytest.mark.parametrize(
    "numbers", [(30, 10, 9), pytest.param((200, 40, 38), marks=pytest.mark.nightly),
                pytest.param((100, 100, 75), marks=pytest.mark.nightly)]
)  # fmt: skip
def test_tight_bounds_gain_a_little(numbers):
    plain, tight = audit.one_run_mu(*numbers), audit.one_run_mu(*numbers, tight=True)
    assert plain <= tight <= 1.3 * plain
    # at the bound the level is met, and just above it is not
    at = lambda mu: one_run_level(mu, *numbers, tight=True)
    assert at(float(tight)) <= 0.0506 and at(1.03 * float(tight)) > 0.05


def test_tight_bounds_at_their_ends():
    assert audit.one_run_mu(30, 10, 0, tight=True) == audit.one_run_mu(1, 1, 1, tight=True) == 0.0
    assert one_run_level(1.0, 10, 5, 0, tight=True) == 1.0
    assert one_run_level(40.0, 10, 5, 5, tight=True) == 1.0
    # five fair coins
    assert one_run_level(0.0, 10, 5, 5, tight=True) == pytest.approx(2.0**-5, rel=1e-6)
