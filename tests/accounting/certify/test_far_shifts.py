"""Mixtures of shifts that are far apart, against quadratures and enumerations."""

import itertools
import math
import sys

import jax
import numpy as np
import pytest
from by_day import every_value
from mpmath import mp, mpf
from scipy.special import ndtr

import jaxgdp
from jaxgdp.accounting.certify import closed_forms, far_shifts
from jaxgdp.accounting.certify.far_shifts.law import atoms
from jaxgdp.accounting.certify.far_shifts.tables import between, profiles_of, rates_at, rates_of
from jaxgdp.accounting.certify.normal_curve import Profile, lines
from jaxgdp.accounting.question import Question
from jaxgdp.accounting.run import by_far_shifts, routes
from jaxgdp.accounting.run.running_brackets import RunningBrackets
from jaxgdp.quantities.registry import REGISTRY
from tests.exact_uses import delta_of_uses


def _curve(run):
    """Both sides, whatever steering thinks of the run."""
    groups = jax.tree.map(lambda a: a[None], run.stacked())
    question = Question(1e-3, 1e-10, "add_remove", (), 1e-12, keep=True)
    found = RunningBrackets(1, question)
    by_far_shifts.narrow(groups, 0, question, found, routes.answer)
    return found.curves[0]


def _delta(curve, epsilon, adjacency):
    question = Question(1e-3, 1e-10, adjacency, ((REGISTRY["delta"], epsilon),))
    with np.errstate(all="ignore"):
        oriented = closed_forms.oriented(curve, question.adjacency)
        return closed_forms.read([oriented], question)["delta"]


DIGITS = 60

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
        found = _delta(curve, epsilon, adjacency)
        exact = delta_of_uses(1.0, shifts, weights, 2, epsilon, adjacency)
        assert found.lower[0] <= exact * (1.0 + 1e-8) + 1e-14, epsilon
        assert exact * (1.0 - 1e-8) - 1e-14 <= found.upper[0], epsilon


@pytest.mark.nightly
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


# (σ or shifts and weights of what is used twice, and ε of the randomized response beside it)
BESIDE = [
    (0.1, 0.3, 1.0),
    (0.07, 1e-3, 0.2),
    (0.04, 0.999, 5.0),
    (([0.0, 0.5, 10.0], [0.9, 0.05, 0.05]), None, 1.0),
    (([0.0, 17.8, 18.85], [0.9886, 0.0111, 3e-4]), None, 2.5),
    (([1.5, 12.0, 30.0], [1e-3, 0.99, 0.009]), None, 1.0),
]


@pytest.mark.parametrize(("setting", "adjacency"), every_value(BESIDE, ("remove", "add")))
def test_far_shifts_beside_a_randomized_response_are_within_both_sides(setting, adjacency):
    noise, prob, answer = setting
    if prob is None:
        (shifts, weights), sigma = noise, 1.0
        mechanism = jaxgdp.GaussianMixture(1.0, shifts, np.array(weights) / np.sum(weights))
    else:
        shifts, weights, sigma = [0.0, 1.0], [1.0 - prob, prob], noise
        mechanism = jaxgdp.SubsampledGaussian(noise, prob)
    curve = _curve(jaxgdp.compose([(mechanism, 2), (jaxgdp.RandomizedResponse(answer), 1)]))
    none, largest = -2.0 * math.log(weights[0]), shifts[-1] / sigma
    honest = math.exp(answer) / (1.0 + math.exp(answer))
    for epsilon in (0.0, 0.3, none, none + answer, 40.0, 0.5 * largest**2, 0.9 * largest**2):
        found = _delta(curve, epsilon, adjacency)
        # (δ of both is that of the uses at ε less the loss of the response, on average)
        exact = sum(
            mass * delta_of_uses(sigma, shifts, weights, 2, epsilon - loss, adjacency)
            for mass, loss in ((honest, answer), (1.0 - honest, -answer))
        )
        assert found.lower[0] <= exact * (1.0 + 1e-8) + 1e-13, epsilon
        assert exact * (1.0 - 1e-8) - 1e-13 <= found.upper[0], epsilon


def _binomial(epsilon, uses):
    """Losses and P-masses of so many randomized responses."""
    honest = 1.0 / (1.0 + math.exp(-epsilon))
    each = range(uses + 1)
    mass = [math.comb(uses, k) * honest**k * (1.0 - honest) ** (uses - k) for k in each]
    return np.array([(2 * k - uses) * epsilon for k in each]), np.array(mass)


@pytest.mark.parametrize("knots", [5, 9, 40])
def test_laws_of_others_lie_on_both_sides_of_theirs(knots):
    loss, mass = _binomial(0.7, 4)
    question = Question(1e-3, 1e-10, "add_remove", (), 1e-12, keep=True)
    runs = [(jaxgdp.RandomizedResponse(0.7), 4.0)]
    curve = by_far_shifts._curve(runs, question, routes.answer)
    with np.errstate(all="ignore"):
        found = far_shifts.others(curve, np.linspace(-2.9, 2.9, knots), 30)
    delta = lambda at, masses, t: np.sum(masses * -np.expm1(np.minimum(t - at, 0.0)))
    for t in np.linspace(-3.0, 3.0, 25):
        exact = delta(loss, mass, t)
        above = delta(found.loss, np.exp(found.log_mass), t) + np.exp(found.log_infinity)
        sure = 1.0 - np.sum(np.exp(found.log_sure + np.minimum(t - found.loss, 0.0)))
        below = delta(found.shown, np.exp(found.log_shown), t)
        most = delta(found.shown, np.exp(found.log_shown_most), t)
        assert below - 1e-15 <= exact <= above + 1e-15 and exact <= sure + 1e-15
        # (tests are those of the response itself, so that their law is, too)
        assert below >= exact - 1e-9 and most >= below
        assert above <= exact + (0.12 if knots == 5 else 0.03)
    np.testing.assert_allclose(np.exp(found.log_mass).sum(), 1.0, rtol=1e-9)
    np.testing.assert_allclose(np.exp(found.log_shown).sum(), 1.0, rtol=1e-9)


def _random_law(rng, size):
    """Losses of both signs and logs of their Q-masses, of which the P-masses add up to 1 at most;
    None where they do not.
    """
    near = rng.uniform(0.0, 3.0, 3) + rng.uniform(-1.0, 1.0) * size
    loss = np.sort(np.append(rng.uniform(-1.0, 1.0, 3) * size, near))
    mass = -rng.uniform(0.0, 1.0, 6) * rng.choice([1.0, 30.0, 1e4])
    mass = np.minimum(np.where(loss < 0.0, loss, mass), loss - 3.0)
    mass[-1] = 0.0
    rest = np.logaddexp.reduce(mass[:-1])
    mass[-1] = np.log(-np.expm1(rest)) if rest < 0.0 else -np.inf
    return (loss, mass) if loss[-1] > 4.0 and mass[-1] > -40.0 else None


def test_laws_of_others_hold_whatever_a_rounding_of_their_losses_is(monkeypatch):
    # (δ and 1 − δ at knots from many digits, of losses that doubles round by nats and less)
    module = sys.modules[far_shifts.others.__module__]
    rng, number = np.random.default_rng(0), 0
    for size in 10.0 ** rng.uniform(0.0, 13.0, 80):
        law = _random_law(rng, size)
        if law is None:
            continue
        number += 1
        loss = [mpf(float(a)) for a in law[0]]
        mass = [mp.exp(mpf(float(a))) for a in law[1]]
        mass = [m / sum(mass) for m in mass]
        knots = np.append(rng.choice(law[0], 4, False), rng.uniform(-1.2, 1.2, 6) * size)
        knots = np.unique(np.append(knots, law[0][:3] + rng.uniform(-3.0, 3.0, 3)))

        def rest(t, losses=loss, masses=mass):
            return sum(m * min(mpf(1), mp.exp(t - a)) for a, m in zip(losses, masses, strict=True))

        def delta(t, losses=loss, masses=mass):
            pairs = zip(losses, masses, strict=True)
            return sum(m * (1 - mp.exp(t - a)) for a, m in pairs if a > t) + mpf(0)

        log_rest, log_delta = np.zeros((2, len(knots)))
        for k, t in enumerate(map(mpf, map(float, knots))):
            left, shown = rest(t), delta(t)
            small = -max(float(shown), 1e-290 if shown else 0.0)
            log_rest[k] = small if shown < 1e-20 else float(mp.log(left))
            log_delta[k] = 0.0 if left < mpf(10) ** -40 else -np.inf
            if shown > 0 and log_delta[k] < 0.0:
                log_delta[k] = float(mp.log(shown))
        profile = Profile(log_delta, log_rest * (1.0 + 3e-16))
        monkeypatch.setattr(module, "profile_at", lambda *_, profile=profile: profile)
        with np.errstate(all="ignore"):
            at, above, sure, end = module._dominating(None, knots)
        at, above, sure = ([mpf(float(x)) for x in a] for a in (at, above, sure))
        for t in map(mpf, map(float, np.append(knots, knots + rng.uniform(-2.0, 2.0)))):
            least = rest(t, at, [mp.exp(x) for x in sure])
            most = delta(t, at, [mp.exp(x) for x in above]) + mp.exp(mpf(end))
            assert least <= rest(t) * (1 + mpf("1e-14")), (size, t)
            assert most >= delta(t) * (1 - mpf("1e-14")), (size, t)
    assert number > 20


def test_deltas_below_all_doubles_are_not_taken_for_none():
    t = np.array([0.0, 1.0, 2.0])
    with np.errstate(all="ignore"):
        found = lines(t, Profile(np.array([-1.0, -8e3, -9e3]), np.array([-0.5, 0.0, 0.0])))
    np.testing.assert_array_equal(found.log_delta[found.t == 2.0], [-9e3])


def test_tables_bound_what_lies_between_their_places():
    draws = atoms(far_shifts.split(0.1, np.array([0.0, 1.0]), np.array([0.8, 0.2]), 6.0))
    deviation = np.sqrt(draws.high)
    t = np.random.default_rng(3).uniform(-40.0, 400.0, 200)
    with np.errstate(all="ignore"):
        every = profiles_of(draws, deviation, draws.shown, np.sort(t))
        some = profiles_of(draws, deviation, draws.shown, np.linspace(-20.0, 300.0, 50))
        found, tests = between(some, np.sort(t)), rates_of(draws, np.linspace(-20.0, 300.0, 50))
        seen, missed, false = rates_at(tests, np.sort(t))
    assert np.all(found.log_delta >= every.log_delta - 1e-12)
    assert np.all(found.log_rest <= every.log_rest + 1e-12)
    size, number = np.arange(1, 7), np.array([math.comb(6, j) for j in range(1, 7)])
    mass = number * 0.8 ** (6 - size) * 0.2**size
    term = (6 - size) * np.log(0.8) + size * np.log(0.2)
    place = (term - np.sort(t)[:, None]) / (10.0 * np.sqrt(size))
    with_it = np.sum(mass * ndtr(5.0 * np.sqrt(size) + place), axis=-1)
    without = np.sum(number * ndtr(-5.0 * np.sqrt(size) + place), axis=-1)
    assert np.all(np.exp(seen) <= with_it * (1.0 + 1e-9))
    assert np.all(np.exp(missed) >= (1.0 - 0.8**6 - with_it) * (1.0 - 1e-9) - 1e-15)
    assert np.all(np.exp(false) >= np.minimum(without, 1.0) * (1.0 - 1e-9))


def test_steps_of_hardly_any_noise_beside_others_only_reveal_the_record():
    runs = [(jaxgdp.SubsampledGaussian(1e-7, 0.5), 3), (jaxgdp.RandomizedResponse(1.0), 1)]
    honest = 1.0 / (1.0 + math.exp(-1.0))
    shown = 1.0 - 0.5**3
    found = jaxgdp.measure(
        jaxgdp.compose(runs),
        ("tpr", "advantage", "delta"),
        fpr=0.1,
        epsilon=0.5,
        adjacency="remove",
    )
    # (with the record: seen, or the response; without it: the response alone)
    exact = {
        "tpr": shown + (1.0 - shown) * 0.1 * math.e,
        "advantage": max(shown, shown + (1.0 - shown) * honest - (1.0 - honest)),
        "delta": max(shown, shown + (1.0 - shown) * honest - math.exp(0.5) * (1.0 - honest)),
    }
    for name, value in exact.items():
        assert found[name].lower <= value * (1.0 + 1e-9), name
        assert value * (1.0 - 1e-9) <= found[name].upper, name
        assert found[name].upper <= found[name].lower * (1.0 + 1e-5), name


def test_two_kinds_of_steps_of_hardly_any_noise_are_as_accurate_as_asked():
    runs = [(jaxgdp.SubsampledGaussian(1e-7, 0.5), 3), (jaxgdp.SubsampledGaussian(1e-5, 0.01), 10)]
    found = jaxgdp.measure(jaxgdp.compose(runs), ("advantage", "epsilon"), delta=1e-5)
    told = 1.0 - 0.5**3 * 0.99**10
    assert found["advantage"].lower <= told <= found["advantage"].upper + 1e-12
    assert found["advantage"].upper <= found["advantage"].lower + 1e-4
    # (three jumps of the first kind, each 10⁷ deviations, decide all of ε)
    assert found["epsilon"].lower <= 1.5e14 * (1.0 + 1e-3)
    assert found["epsilon"].upper <= found["epsilon"].lower * (1.0 + 1e-3)


def test_leaks_beside_steps_of_hardly_any_noise_lie_at_infinity():
    runs = [(jaxgdp.SubsampledGaussian(0.02, 0.3), 2), (jaxgdp.ApproximateDP(1.0, 1e-4), 3)]
    run = jaxgdp.compose(runs)
    leak = -math.expm1(3.0 * math.log1p(-1e-4))
    assert jaxgdp.epsilon(run, delta=1e-5).lower == np.inf
    assert np.isfinite(jaxgdp.epsilon(run, delta=1e-3).upper)
    # (adding: no jump shows that the record is there, and far out only leaks do)
    found = jaxgdp.delta(run, epsilon=2950.0, adjacency="add")
    assert found.lower <= leak * (1.0 + 1e-12) and leak <= found.upper * (1.0 + 1e-12)
    assert found.upper <= found.lower * (1.0 + 1e-6)


def test_curves_of_steps_of_hardly_any_noise_are_kept():
    steps = jaxgdp.SubsampledGaussian(1e-5, 0.01), 10
    alone = jaxgdp.compose([steps])
    beside = jaxgdp.compose([steps, (jaxgdp.RandomizedResponse(1.0), 1)])
    shown, honest = 1.0 - 0.99**10, 1.0 / (1.0 + math.exp(-1.0))
    for run, exact in ((alone, shown), (beside, shown + (1 - shown) * honest - (1 - honest))):
        found = jaxgdp.tradeoff(run).advantage()
        assert found.lower <= exact * (1.0 + 1e-9) and exact <= found.upper * (1.0 + 1e-9)
        assert found.upper <= found.lower * (1.0 + 1e-3)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("sigma", "prob", "uses"), [(1e-200, 0.1, 5), (1e-155, 1e-12, 10**12)])
def test_noise_whose_square_is_no_double_is_answered_without_a_warning(sigma, prob, uses):
    step = jaxgdp.SubsampledGaussian(sigma, prob), uses
    for other in (jaxgdp.Laplace(1.0), jaxgdp.ApproximateDP(0.1, 1e-300)):
        found = jaxgdp.measure(jaxgdp.compose([step, (other, 3)]), ("mu", "approximate_mu"))
        # (the test whether some step has the record finds as many as have one, and raises false
        # alarms far more seldom than in 10⁻¹⁰ of all cases, from which on μ counts)
        told = -math.expm1(uses * math.log1p(-prob))
        least = math.sqrt(2.0) * (mp.erfinv(2.0 * told - 1.0) + mp.erfinv(1.0 - mpf("2e-10")))
        assert found["mu"].upper >= float(least) > 6.0 and np.all(
            found["approximate_mu"].lower <= found["approximate_mu"].upper
        )


@pytest.mark.filterwarnings("error")
def test_others_that_tell_all_beyond_doubles_leave_no_other_test():
    run = [(jaxgdp.SubsampledGaussian(0.05, 0.2), 30), (jaxgdp.Gaussian(1e-200), 1)]
    found = jaxgdp.measure(jaxgdp.compose(run), ("mu", "beta"), fpr=1e-3)
    assert found["mu"].lower <= 1e200 * (1.0 + 1e-9) and 1e200 <= found["mu"].upper
    assert found["beta"].lower == 0.0
