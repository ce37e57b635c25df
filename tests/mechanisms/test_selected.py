"""Private selection: both sides against enumeration, exact sums, published numbers and limits."""

import itertools

import mpmath
import numpy as np
import pytest
from scipy.special import ndtr, ndtri

import jaxgdp
from jaxgdp import runs
from jaxgdp.mechanisms import selection_tables
from jaxgdp.mechanisms.certified_curve import CertifiedCurve
from jaxgdp.mechanisms.runs import Step

LAWS = {
    "geometric": runs.Geometric(10.0),
    "logarithmic": runs.Logarithmic(9.8),
    "negative binomial": runs.NegativeBinomial(7.0, 0.5),
    "light tail": runs.NegativeBinomial(7.0, 30.0),
    "heavy tail": runs.NegativeBinomial(2.0, -0.5),
    "poisson": runs.Poisson(10.0),
    "fixed": runs.Fixed(6),
}
MEANS = (10.0, 9.8, 7.0, 7.0, 2.0, 10.0, 6.0)


def probabilities(law, most):
    """Pr[K = k] for k from 0 on, by definition, with the mean of a law solved for here."""
    mean = mpmath.mpf(str(float(getattr(law, "mean", 0.0) or 0.0)))
    if isinstance(law, runs.Poisson):
        return [mpmath.exp(-mean) * mean**k / mpmath.factorial(k) for k in range(most)]
    if isinstance(law, runs.Fixed):
        return [mpmath.mpf(k == int(law.number)) for k in range(most)]
    if isinstance(law, runs.Geometric):
        return [mpmath.mpf(0)] + [(1 - 1 / mean) ** (k - 1) / mean for k in range(1, most)]
    order = mpmath.mpf(0 if isinstance(law, runs.Logarithmic) else float(law.shape))

    def weights(rate):
        if order == 0:
            return lambda k: (1 - rate) ** k / k
        return lambda k: (1 - rate) ** k * mpmath.gamma(k + order) / mpmath.factorial(k)

    def own_mean(rate):
        if order == 0:
            return (1 - rate) / (rate * mpmath.log(1 / rate))
        return order * (1 - rate) / (rate * (1 - rate**order))

    low, high = mpmath.mpf("1e-6"), mpmath.mpf(1) - mpmath.mpf("1e-9")  # (the mean falls in γ)
    for _ in range(120):
        middle = (low + high) / 2
        low, high = (middle, high) if own_mean(middle) > mean else (low, middle)
    rate = high
    found = [mpmath.mpf(0)] + [weights(rate)(k) for k in range(1, most)]
    total = mpmath.fsum(found)
    return [each / total for each in found]


@pytest.mark.parametrize("name", LAWS)
def test_steps_of_generating_functions(name):
    """G(b) − G(a) and G′ by their series, to the rounding that tables allow for."""
    with mpmath.workdps(40):
        law = LAWS[name]
        chance = probabilities(law, 900)
        mean = mpmath.fsum(k * each for k, each in enumerate(chance))
        assert abs(mean - MEANS[list(LAWS).index(name)]) < 1e-5
        for a, b in [(0.0, 1e-9), (0.3, 0.3001), (0.2, 0.9), (0.75, 0.875), (0.5, 0.5 + 2.0**-40)]:
            exact = mpmath.fsum(
                each * (mpmath.mpf(b) ** k - mpmath.mpf(a) ** k) for k, each in enumerate(chance)
            )
            found = law.gain(Step(*map(np.asarray, (b - a, a, b, 1.0 - a, 1.0 - b))))
            assert abs(mpmath.mpf(float(found)) / exact - 1) < selection_tables.SELECTION, (a, b)
            slope = mpmath.fsum(
                k * each * mpmath.mpf(b) ** (k - 1) for k, each in enumerate(chance) if k
            )
            log_slope = float(law.log_slope(np.asarray(b), np.asarray(1.0 - b)))
            assert abs(mpmath.exp(log_slope) / slope - 1) < selection_tables.SELECTION


P = np.array([0.28, 0.22, 0.2, 0.18, 0.12])
Q = np.array([0.14, 0.17, 0.21, 0.25, 0.23])
EPSILONS = np.array([0.0, 0.3, 0.8, 1.5])


def enumerated(law, epsilon, p, q):
    """The largest δ(ε) over all orders of the outcomes, by sums of powers."""
    best = np.zeros(len(epsilon))
    chance = [float(each) for each in probabilities(law, 400)]
    power = np.polynomial.Polynomial(chance)
    for order in itertools.permutations(range(len(p))):
        low, high = (
            np.diff(power(np.append(0.0, np.cumsum(masses[list(order)])))) for masses in (p, q)
        )
        shown = np.maximum(high - np.exp(epsilon)[:, None] * low, 0.0).sum(axis=1)
        best = np.maximum(best, shown)
    return best


def check_enumerated(name):
    law = LAWS[name]
    search = jaxgdp.Selected(jaxgdp.FromPMFs(P, Q), law)
    for adjacency, pair in (("remove", (P, Q)), ("add", (Q, P))):
        curve = jaxgdp.tradeoff(search, adjacency=adjacency)
        found, best = curve.delta(EPSILONS), enumerated(law, EPSILONS, *pair)
        assert np.all(best <= found.upper * (1.0 + 1e-9) + 1e-15)
        assert np.all(found.lower <= found.upper)
        # (outcomes may be divided by coins, so that a score may show more than any of these)
        assert np.all(found.lower >= 0.6 * best)


def test_no_order_of_five_outcomes_shows_more():
    check_enumerated("geometric")


@pytest.mark.nightly
@pytest.mark.parametrize("name", LAWS)
def test_no_order_of_five_outcomes_shows_more_for_every_law(name):
    check_enumerated(name)


PUBLISHED = {  # base μ = 0.5, δ = 1e-5: brackets from the bound by e₁ and from an order of blocks
    "geometric": (2.9958, 3.1463),
    "logarithmic": (2.8262, 2.9307),
    "poisson": (3.8108, 4.2282),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_numbers(name):
    found = jaxgdp.epsilon(jaxgdp.Selected(jaxgdp.Gaussian(2.0), LAWS[name]), delta=1e-5)
    low, high = PUBLISHED[name]
    assert low <= found.lower <= found.upper <= high
    assert found.width <= 4e-3 * found.upper


def test_fixed_one_is_the_mechanism_itself():
    one = jaxgdp.Selected(jaxgdp.dpsgd(2.0, 0.1, 50), runs.Fixed(1))
    plain = jaxgdp.dpsgd(2.0, 0.1, 50)
    for name in ("epsilon", "mu", "advantage"):
        assert jaxgdp.measure(one, name)[name] == jaxgdp.measure(plain, name)[name]


def test_mean_next_to_one_tends_to_the_mechanism():
    found = jaxgdp.epsilon(
        jaxgdp.Selected(jaxgdp.Gaussian(2.0), runs.Geometric(1.0 + 1e-7)), delta=1e-5
    )
    exact = float(jaxgdp.gdp.epsilon(delta=1e-5, mu=0.5))
    assert found.lower <= found.upper and abs(found.upper - exact) < 1e-4 * exact
    assert abs(found.lower - exact) < 1e-3 * exact


@pytest.mark.nightly
def test_bounds_grow_with_the_mean_and_fall_with_the_noise():
    sigma, mean = np.array([[2.0], [3.0]]), np.array([2.0, 8.0])  # (one base is that of others)
    found = jaxgdp.epsilon(
        jaxgdp.Selected(jaxgdp.Gaussian(sigma), runs.Geometric(mean)), delta=1e-5
    )
    for side in found:
        assert np.all(np.diff(side, axis=0) < 0.0) and np.all(np.diff(side, axis=1) > 0.0)
    assert np.all(found.lower > jaxgdp.gdp.epsilon(delta=1e-5, mu=1.0 / sigma))


def test_tests_of_the_cells_are_reached():
    cells = selection_tables.achieved_cells(CertifiedCurve(jaxgdp.compose([jaxgdp.Gaussian(2.0)])))
    for low, high in (cells, (cells.high[::-1], cells.low[::-1])):
        fpr, tpr = np.cumsum(low[::-1]), np.cumsum(high[::-1])
        some = tpr < 0.9
        assert np.all(tpr[some] <= ndtr(ndtri(fpr[some]) + 0.5) * (1.0 + 1e-12))
    assert np.sum(cells.low) == pytest.approx(1.0, abs=1e-12)


def test_simulated_selection_is_within_both_sides():
    """Outputs above −0.2 by rising value, then those below, which have the best scores."""
    rng = np.random.default_rng(20261125)
    number, epsilon = 400_000, 0.7
    shares = {}
    for shift in (0.0, 0.5):
        k = rng.geometric(0.1, number)
        y = shift + rng.standard_normal(int(k.sum()))
        score = np.where(y > -0.2, y, 100.0 - y)
        best = np.maximum.reduceat(score, np.append(0, np.cumsum(k)[:-1]))
        shares[shift] = float(np.mean((best > 0.9) & (best < 50.0)))
    shown = shares[0.5] - np.exp(epsilon) * shares[0.0]
    room = 4.0 * np.sqrt(0.25 / number) * (1.0 + np.exp(epsilon))
    search = jaxgdp.Selected(jaxgdp.Gaussian(2.0), LAWS["geometric"])
    found = jaxgdp.delta(search, epsilon=epsilon)
    # more than one run ever shows, and no more than both sides say
    assert shown - room > jaxgdp.gdp.delta(epsilon=epsilon, mu=0.5)
    assert shown <= found.upper + room and found.lower > shown


@pytest.mark.parametrize(
    "make, said",
    [
        (lambda: jaxgdp.Selected(3.0, runs.Fixed(2)), "mechanism 0 must be one of"),
        (lambda: jaxgdp.Selected(jaxgdp.Gaussian(1.0), 10), "runs must be one of jaxgdp.runs"),
        (lambda: runs.Geometric(0.5), r"mean must be a number in \[1, 1e\+12\], got 0.5"),
        (lambda: runs.Poisson(0.0), r"mean must be in \(0, 1e\+12\], got 0"),
        (lambda: runs.NegativeBinomial(2.0, -1.0), r"shape must be in \(-1, 100\]"),
        (lambda: runs.Fixed(2.5), "number must be a whole number"),
        (
            lambda: jaxgdp.Selected(jaxgdp.Gaussian([1.0, 2.0]), runs.Fixed([1, 2, 3])),
            "shapes do not broadcast",
        ),
    ],
)
def test_bad_input_by_name(make, said):
    with pytest.raises(ValueError, match=said):
        make()


def test_faint_tails_are_not_dropped():
    """δ far below the smallest table entry is at infinity, and not zero."""
    search = jaxgdp.Selected(jaxgdp.Gaussian(2.0), LAWS["geometric"])
    curve = jaxgdp.tradeoff(search)
    assert curve.log_delta(40.0).upper > -1000.0 and np.isinf(curve.mu(0.0).upper)
    verdict = jaxgdp.bridge.identify(search)
    assert verdict.is_gdp and verdict.tail_mu == pytest.approx(0.5)


@pytest.mark.nightly
def test_noise_of_one_run_is_found_for_the_whole_search():
    target = jaxgdp.targets.EpsilonDelta(2.0, 1e-5)
    found = jaxgdp.calibrate(
        target, mechanism=jaxgdp.Selected(jaxgdp.Gaussian(1.0), LAWS["geometric"]), rtol=1e-2
    )
    search = jaxgdp.Selected(jaxgdp.Gaussian(found.value), LAWS["geometric"])
    assert 1.9 < jaxgdp.epsilon(search, delta=1e-5).upper <= 2.0
