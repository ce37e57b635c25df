"""The GDP transformation: closed forms, its order, and what trade-off curves say by another way."""

import math

import mpmath
import numpy as np
import pytest
from by_day import first
from known_profiles import gaussian, laplace, pure, random_pair
from mechanisms_of_every_class import SETTINGS, element
from scipy.special import ndtri

import jaxgdp
from jaxgdp import bridge, gdp
from jaxgdp.bridge.inversion import mu_of

SEED = 41


def exact_delta(epsilon, mu):
    """δ_μ(ε) by 60 digits."""
    e, m = mpmath.mpf(epsilon), mpmath.mpf(mu)
    return mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)


def test_inverse_of_the_gaussian_profile_by_60_digits():
    rng = np.random.default_rng(SEED)
    with mpmath.workdps(60):
        for _ in range(40):
            mu, epsilon = 10.0 ** rng.uniform(-6, 1.5), 10.0 ** rng.uniform(-6, 2)
            delta = exact_delta(epsilon, mu)
            if not 1e-300 < delta:
                continue
            low, high = mu_of(epsilon, float(mpmath.log(delta)), float(mpmath.log1p(-delta)))
            assert low <= mu <= high and high - low <= 4e-11 * mu, (epsilon, mu)


def test_constant_for_gaussians_down_to_1e_300():
    for mu in (1e-3, 0.5, 1.0, 4.0, 8.0):
        epsilon = mu * np.linspace(0.0, 36.0, 25)
        found = bridge.gdp_transformation(gaussian(mu), epsilon)
        assert np.all(found.contains(mu)) and np.all(found.width <= 1e-9 * mu)
    found = bridge.gdp_transformation(jaxgdp.Gaussian(0.5), [0.0, 1.0, 100.0, 1e4])
    assert np.all(found.contains(2.0)) and np.all(found.width < 1e-9)


def test_transformation_at_zero_is_the_advantage():
    found = bridge.gdp_transformation(lambda epsilon: 0.25, 0.0)
    assert found.lower <= -2.0 * ndtri(0.375) <= found.upper


def test_ends():
    found = bridge.gdp_transformation(
        lambda epsilon: 1.0 if epsilon < 1.0 else 0.0, [0.0, 0.5, 1.0, 1e300]
    )
    assert found.lower.tolist() == [np.inf, np.inf, 0.0, 0.0] and found.upper.tolist() == [
        np.inf,
        np.inf,
        0.0,
        0.0,
    ]
    tiny = bridge.gdp_transformation(lambda epsilon: 1e-300, [0.0, 1.0, 700.0, 1e10])
    assert np.all(tiny.width <= 1e-9 * tiny.upper) and np.all(np.diff(tiny.lower) > 0.0)
    with mpmath.workdps(700):
        for mu, epsilon in zip(tiny.midpoint[:3], (0.0, 1.0, 700.0), strict=True):
            assert abs(exact_delta(epsilon, mu) / mpmath.mpf("1e-300") - 1) < 1e-7


def test_laplace_and_pure_dp():
    for scale in (1.0, 2.0):
        epsilon = np.linspace(0.0, 1.2 / scale, 13)
        ours = bridge.gdp_transformation(laplace(scale), epsilon)
        theirs = bridge.gdp_transformation(jaxgdp.Laplace(scale), epsilon)
        assert np.all(ours.lower <= theirs.upper + 1e-12) and np.all(
            theirs.lower <= ours.upper + 1e-12
        )
        assert round(float(ours.upper[0]), 6) == {1.0: 1.030064, 2.0: 0.561764}[scale]
        assert np.all(np.diff(ours.midpoint) <= 0.0) and ours.upper[-1] == 0.0
    found = bridge.gdp_transformation(pure(1.0), 0.0)
    assert found.lower <= gdp.mu_from_pure_dp(epsilon=1.0) <= found.upper


def test_transformation_keeps_order():
    rng = np.random.default_rng(SEED + 1)
    epsilon = np.linspace(0.0, 2.5, 11)
    for _ in range(15):
        _, profile, _ = random_pair(rng)
        less, more = (
            bridge.gdp_transformation(lambda e, k=k, h=profile: float(h(e)) * k, epsilon)
            for k in (0.5, 1.0)
        )
        assert np.all(less.upper <= more.upper) and np.all(less.lower <= more.lower)


# whose curves take seconds each: by day only their heads are asked, in test_bridge_identify
LONG = {
    *("FixedSize", "LastIterate", "PartitionSelection", "Shuffled", "ThresholdedLaplace"),
    "TruncatedPoisson",
}


@pytest.mark.parametrize("both", [False, pytest.param(True, marks=pytest.mark.nightly)])
@pytest.mark.parametrize(
    "name", first(len(SETTINGS) - len(LONG), sorted(SETTINGS, key=LONG.__contains__))
)
def test_every_class_agrees_with_its_profile(name, both):
    """Of one setting; nightly of two in one batch."""
    mechanism = SETTINGS[name][0] if both else element(name, 1)
    epsilon = np.array([[0.0], [0.4], [1.5], [9.0]])
    curve = jaxgdp.tradeoff(mechanism)
    found, delta = bridge.gdp_transformation(curve, epsilon), curve.delta(epsilon)
    assert found.lower.shape == np.broadcast_shapes((4, 1), curve.shape)
    low, high = (gdp.delta(epsilon=epsilon, mu=np.minimum(side, 50.0)) for side in found)
    assert np.all(low <= delta.upper * (1 + 1e-9)) and np.all(delta.lower <= high * (1 + 1e-9))
    # nowhere above the μ of all rates
    assert np.all(found.lower <= curve.mu(0.0).upper * (1 + 1e-9))


def test_random_pairs_against_their_own_profile():
    rng = np.random.default_rng(SEED + 2)
    for _ in range(8):
        box, _, (p, q) = random_pair(rng)
        epsilon = rng.uniform(0.0, 2.0, 4)
        ours = bridge.gdp_transformation(box, epsilon)
        theirs = bridge.gdp_transformation(jaxgdp.FromPMFs(p, q), epsilon)
        assert np.all(ours.lower <= theirs.upper * (1 + 1e-9) + 1e-12)
        assert np.all(theirs.lower <= ours.upper * (1 + 1e-9) + 1e-12)


def raises(epsilon):
    if epsilon > 2.0:
        raise RuntimeError("no table so far out")
    return 0.1


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (raises, r"the profile raised RuntimeError at epsilon = 3\.0: no table so far out"),
        (lambda e: math.nan if e > 2.0 else 0.1, r"in \[0, 1\], got nan at epsilon = 3\.0"),
        (lambda e: -1e-17 if e > 2.0 else 0.1, r"got -1e-17 at epsilon = 3\.0"),
        (lambda e: 1.5, r"got 1\.5 at epsilon = 0\.0"),
        (lambda e: "a lot", r"must return a number, got 'a lot' at epsilon = 0\.0"),
        (
            lambda e: 0.1 + 0.01 * e,
            r"must not increase, got 0\.1 at epsilon = 0\.0 and 0\.13 at epsilon = 3\.0",
        ),
    ],
)
def test_black_boxes_that_are_refused(function, words):
    with pytest.raises(ValueError, match=words):
        bridge.gdp_transformation(function, [0.0, 3.0])


def test_transformation_refuses_other_bad_input():
    with pytest.raises(ValueError, match="source must be a mechanism"):
        bridge.gdp_transformation(3.0, 1.0)
    with pytest.raises(ValueError, match="epsilon must be a finite number >= 0, got -1"):
        bridge.gdp_transformation(jaxgdp.Laplace(1.0), -1.0)
