"""Both sides of a black box's readings against profiles whose every quantity is known at 40
digits.
"""

import mpmath as mp
import numpy as np
import pytest
from by_day import first
from exact_profiles import DIGITS, Gaussian, Laplace, Responses, quantile, truth

import jaxgdp
from jaxgdp import gdp, targets


@pytest.fixture(autouse=True)
def digits():
    with mp.workdps(DIGITS):
        yield


def holds(bracket, exact):
    slack = mp.mpf(10) ** -25  # of the exact number
    return bracket.lower <= exact * (1 + slack) and exact * (1 - slack) <= bracket.upper


def box(curve, **settings):
    return jaxgdp.BlackBox(
        delta=lambda epsilon: float(curve.delta(mp.mpf(float(epsilon)))), **settings
    )


@pytest.mark.parametrize(
    ("mu", "floor"),
    [
        (13.0, 1e-10),
        (5.0, 0.1),
        (3.0, 0.1),
        (8.0, 0.45),
        (40.0, 1e-10),
        (0.01, 0.49),
        (1.0, 1e-100),
    ],
)
def test_mu_where_little_privacy_is_left_or_the_floor_is_extreme(mu, floor):
    """f(floor) may lie far below the floor: the range of rates is then from f(floor) to the
    floor.
    """
    profile = jaxgdp.BlackBox(
        delta=lambda epsilon: gdp.delta(epsilon=epsilon, mu=mu), absolute_error=0.0
    )
    coarse, fine = (
        profile.read(targets.Mu(1.0, floor)),
        profile.refine(targets.Mu(1.0, floor), 3e-2),
    )
    assert coarse.lower <= mu <= coarse.upper and fine.lower <= mu <= fine.upper
    assert coarse.lower <= fine.lower * (1 + 1e-12) and fine.upper <= coarse.upper * (1 + 1e-12)
    assert mu == 40.0 or fine.upper - fine.lower <= 3e-2 * fine.upper
    same = {"exact": False, "grid": profile.epsilons}
    loose = jaxgdp.BlackBox(delta=lambda epsilon: gdp.delta(epsilon=epsilon, mu=mu), **same).read(
        targets.Mu(1.0, floor)
    )
    assert loose.lower == 0.0 and mu <= loose.upper <= fine.upper * (1 + 1e-9)


@pytest.mark.parametrize("infeasible", ["raise", "flag"])
def test_calibration_to_a_high_floor_asks_for_the_noise_it_takes(infeasible):
    found = jaxgdp.calibrate(
        targets.Mu(3.0, fpr_floor=0.1),
        black_box=lambda sigma: lambda epsilon: gdp.delta(epsilon=epsilon, mu=1.0 / sigma),
        rtol=1e-2,
        infeasible=infeasible,
    )
    assert 1.0 / 3.0 <= found.value <= 1.02 / 3.0 and found.achieved.upper <= 3.0


def test_points_next_to_each_other_do_not_make_a_slope():
    """Points a last digit apart in e^ε, with values that are right to 1e-16: what a chord between
    them says is rounding.
    """
    curve, rng = Gaussian(0.026), np.random.default_rng(3)
    for fpr in (0.02, 0.3):
        exact = truth(curve, targets.TPR(0.5, fpr))
        # beside the γ that decides
        epsilon = float(curve.mu * (-quantile(mp.mpf(fpr)) - curve.mu / 2))
        near = 0.9 * epsilon + 2.2e-16 * np.arange(-6, 7)
        for _ in range(20):
            noise = 1.0 + 1e-16 / 5e-4 * rng.uniform(-1.0, 1.0, 40)
            values = iter(noise)
            profile = jaxgdp.BlackBox(
                delta=lambda e, values=values: float(curve.delta(mp.mpf(float(e)))) * next(values),
                grid=[0.0, *near, 0.02, 0.1],
            )
            assert holds(profile.read(targets.TPR(0.5, fpr)), exact)


def test_refining_keeps_its_points_apart():
    for target in (targets.TPR(0.5, 0.02), targets.BayesRisk(0.01, 0.49)):
        for mu in (1e-7, 0.026, 3.0):
            profile = jaxgdp.BlackBox(
                delta=lambda epsilon, mu=mu: gdp.delta(epsilon=epsilon, mu=mu)
            )
            profile.refine(target, 1e-9)
            epsilon = profile.epsilons
            assert np.all(np.diff(epsilon) >= 0.9e-5 * epsilon[1:])
            assert holds(profile.read(target), truth(Gaussian(mu), target))


def test_function_that_is_no_profile_says_nothing_from_below():
    """Not convex by more than its error: there is no profile that it could be."""
    values = {0.0: 0.3, 0.5: 0.29, 1.0: 0.05, 2.0: 0.01}
    bent = jaxgdp.BlackBox(delta=values.__getitem__, grid=list(values))
    for target in (targets.Advantage(0.2), targets.EpsilonDelta(1.0, 0.02), targets.Mu(1.0, 0.01)):
        assert bent.read(target).lower == 0.0 < bent.read(target).upper
    smooth = jaxgdp.BlackBox(delta=(values | {0.5: 0.15}).__getitem__, grid=list(values))
    assert smooth.read(targets.Advantage(0.2)).lower > 0.25


def test_mass_at_infinity_is_compared_exactly():
    shown = 0.1
    profile = box(Responses([1.0], [1.0], shown), error=0.0, grid=[0.0, 1.0])
    assert profile.deltas[-1] == shown
    assert profile.read(targets.EpsilonDelta(1.0, shown)).upper == pytest.approx(1.0, rel=1e-12)
    assert np.isfinite(profile.read(targets.ApproximateMu(1.0, shown)).upper)
    less = shown * (1.0 - 5e-13)
    assert profile.read(targets.EpsilonDelta(1.0, less)).upper == np.inf
    assert profile.read(targets.ApproximateMu(1.0, less)).upper == np.inf
    assert profile.read(targets.Mu(1.0, 1e-12)).upper >= float(
        truth(Responses([1.0], [1.0], shown), targets.Mu(1.0, 1e-12))
    )


def _random_curve(rng):
    kind = rng.integers(4)
    if kind < 2:
        return Gaussian(10.0 ** rng.uniform(-2.0, 1.6))
    if kind == 2:
        return Laplace(10.0 ** rng.uniform(-3.0, 1.5))
    number = int(rng.integers(1, 5))
    shown = 0.0 if rng.random() < 0.5 else 10.0 ** rng.uniform(-14.0, -0.3)
    return Responses(10.0 ** rng.uniform(-3.0, 1.3, number), rng.uniform(0.01, 1.0, number), shown)


def _random_target(rng, number):
    deep = (
        10.0 ** rng.uniform(-300.0, -0.31)
        if rng.random() < 0.4
        else 10.0 ** rng.uniform(-12.0, -0.31)
    )
    x, y = (deep, deep) if rng.random() < 0.5 else (deep, rng.uniform(0.01, 0.98))
    middle = y + 0.5 * (1.0 - y)
    makers = (
        lambda: targets.Mu(1.0, x),
        lambda: targets.ApproximateMu(1.0, x),
        lambda: targets.EpsilonDelta(1.0, x),
        lambda: targets.Advantage(0.2),
        lambda: targets.BayesRisk(1e-3 * min(y, 1.0 - y), y),
        lambda: targets.FNR(1e-3 * (1.0 - y), y),
        lambda: targets.TPR(middle, y),
        lambda: targets.Accuracy(0.5 + 0.25 * (1.0 - y), y),
        lambda: targets.Precision(0.7 if y < 1e-15 else 0.5 * (0.5 + 1.0 / (1.0 + y)), y),
        lambda: targets.AttackSuccess(middle, y),
    )
    return makers[number % len(makers)]()


@pytest.mark.parametrize("seed", first(2, range(4)))
def test_random_profiles_and_targets(seed):
    """Read, refined, and as a mere upper bound on other points."""
    rng = np.random.default_rng(seed)
    for number in range(20):
        curve, target = _random_curve(rng), _random_target(rng, number)
        settings = {"absolute_error": rng.choice([0.0, 1e-15])}
        if rng.random() < 0.3:
            settings["grid"] = np.sort(
                rng.choice([1.0, 5.0, 20.0]) * rng.random(rng.integers(1, 9))
            )
        exact, profile = truth(curve, target), box(curve, **settings)
        readings = [profile.read(target)]
        if number % 3 == 0:
            readings.append(profile.refine(target, 1e-2))
        readings.append(box(curve, exact=False, grid=profile.epsilons).read(target))
        for reading in readings:
            assert holds(reading, exact), (vars(curve), target, reading, exact)
