"""The profile that statements imply: the lower hull in exact arithmetic is the oracle."""

import math

import mpmath
import numpy as np
import pytest

from jaxgdp import bridge, gdp, tradeoff
from jaxgdp.mechanisms import ApproximateDP

SEED = 14


def implied(epsilon, delta, at):
    """The largest profile below the statements, by 60 digits: the best of Theorem 2.1 for each, and
    of every chord between two.
    """
    with mpmath.workdps(60):
        gamma = [mpmath.exp(mpmath.mpf(e)) for e in epsilon]
        value = [mpmath.mpf(d) for d in delta]
        # the statements, their mirror images, and h(0) = 1
        points = [(mpmath.mpf(0), mpmath.mpf(1)), *zip(gamma, value, strict=True)]
        points += [(1 / g, 1 - (1 - d) / g) for g, d in zip(gamma, value, strict=True)]
        x = mpmath.exp(mpmath.mpf(at))
        best = mpmath.mpf(1)
        for g, d in points:
            if g <= x:
                best = min(best, d)
        for g, d in points:
            for k, e in points:
                if g <= x <= k and g < k:
                    best = min(best, (d * (k - x) + e * (x - g)) / (k - g))
        return best


def random_statements(rng):
    number = int(rng.integers(1, 7))
    epsilon = np.round(10.0 ** rng.uniform(-3, 1.3, number), 6)
    if rng.random() < 0.3:
        epsilon[0] = 0.0
    if rng.random() < 0.3:
        epsilon[-1] = epsilon[0] * (1.0 + 1e-12)
    delta = 10.0 ** rng.uniform(-20, 0, number)
    if rng.random() < 0.2:
        delta[0] = rng.choice([0.0, 1.0])
    return epsilon, delta


def test_profile_is_the_hull_in_exact_arithmetic():
    rng = np.random.default_rng(SEED)
    for _ in range(60):
        epsilon, delta = random_statements(rng)
        profile = bridge.refine(epsilon, delta)
        for at in (*rng.uniform(-1.0, 1.2 * max(epsilon) + 0.1, 3), *epsilon[:2]):
            exact = implied(epsilon, delta, float(at))
            found = profile(float(at))
            assert (
                float(exact * (1 - mpmath.mpf(10) ** -15))
                <= found
                <= float(exact * (1 + mpmath.mpf(10) ** -13))
            ), (epsilon, delta, at)


def test_theorem_2_1():
    epsilon, delta = 1.7, 1e-3
    below = np.linspace(0.0, 1.7, 9)
    expected = delta + (1 - delta) * (math.exp(epsilon) - np.exp(below)) / (1 + math.exp(epsilon))
    np.testing.assert_allclose(bridge.refine(epsilon, delta)(below), expected, rtol=1e-14)


def test_refined_is_never_above_what_was_given_and_refines_to_itself():
    rng = np.random.default_rng(SEED + 1)
    for _ in range(200):
        epsilon, delta = random_statements(rng)
        profile = bridge.refine(epsilon, delta)
        assert np.all(profile(epsilon) <= delta)
        grid = np.unique(np.concatenate([epsilon, rng.uniform(0.0, 20.0, 20)]))
        again = bridge.refine(grid, profile(grid))
        np.testing.assert_allclose(again(epsilon), profile(epsilon), rtol=1e-13)
        assert np.all(again(grid) <= profile(grid))
        corners = bridge.refine(profile.epsilon, profile.delta)
        np.testing.assert_array_equal(corners.epsilon, profile.epsilon)
        np.testing.assert_array_equal(corners(grid), profile(grid))


def test_order_is_preserved():
    rng = np.random.default_rng(SEED + 2)
    at = np.linspace(0.0, 20.0, 41)
    for _ in range(100):
        epsilon, delta = random_statements(rng)
        more = np.minimum(delta * 10.0 ** rng.uniform(0.0, 2.0, len(delta)), 1.0)
        assert np.all(
            bridge.refine(epsilon, delta)(at) <= bridge.refine(epsilon, more)(at) * (1 + 1e-13)
        )


def test_true_profile_is_left_alone_at_its_points_and_convex_between():
    grid = np.linspace(0.0, 6.0, 25)
    profile = bridge.refine(grid, lambda e: gdp.delta(epsilon=e, mu=1.3))
    np.testing.assert_array_equal(profile(grid), gdp.delta(epsilon=grid, mu=1.3))
    fine = np.linspace(-6.0, 6.0, 1201)
    assert np.all(profile(fine) >= gdp.delta(epsilon=fine, mu=1.3) * (1 - 1e-12))
    gamma, value = np.exp(fine), profile(fine)
    slopes = np.diff(value) / np.diff(gamma)
    assert (
        np.all(np.diff(slopes) >= -1e-9) and np.all(slopes <= 0.0) and np.all(slopes >= -1.0 - 1e-9)
    )
    # its own mirror image
    half = fine[600:]
    np.testing.assert_allclose(profile(-half), 1 - np.exp(-half) * (1 - profile(half)), atol=1e-13)


def test_mechanism_of_the_statements_has_that_profile():
    profile = bridge.refine([2.0, 0.5, 1.0], [1e-6, 0.2, 0.05])
    at = np.array([0.0, 0.3, 0.5, 0.8, 1.5, 4.0])
    found = tradeoff(profile.mechanism).delta(at)
    assert np.all(found.lower <= profile(at) * (1 + 1e-12)) and np.all(
        found.upper >= profile(at) * (1 - 1e-12)
    )
    np.testing.assert_allclose(found.upper, profile(at), rtol=1e-3)
    alone = tradeoff(ApproximateDP(1.0, 1e-3)).delta(at)
    one = bridge.refine(1.0, 1e-3)(at)
    assert np.all(alone.lower <= one * (1 + 1e-12)) and np.all(one * (1 - 1e-12) <= alone.upper)


def test_profile_far_beyond_doubles():
    profile = bridge.refine([1e4, 1e300], [1e-300, 0.0])
    at = np.array([0.0, 9999.0, 1e4, 1e5, 1e300])
    found = profile(at)
    assert found[0] == 1.0 and found[2] == 1e-300 and 0.0 < found[3] <= 1e-300 and found[4] == 0.0
    # 1 − 1/e, and 1 − δ keeps its digits where δ is 1
    assert abs(found[1] - (1 - math.exp(-1))) < 1e-14
    exact = math.log(2) - 1e4
    assert exact * (1 + 1e-13) <= profile.log_one_minus_delta(0.0) <= exact
    mu = bridge.gdp_transformation(profile, 0.0)
    assert (
        mu.lower <= mu.upper < np.inf
        and abs(mu.upper / gdp.mu_from_pure_dp(epsilon=1e4) - 1) < 1e-9
    )


@pytest.mark.parametrize(
    ("epsilon", "delta", "words"),
    [
        ([1.0, -1.0], 0.1, "epsilon must be a finite number >= 0, got -1"),
        ([1.0, np.inf], 0.1, "epsilon"),
        ([1.0], 1.5, "delta must be in"),
        ([1.0], np.nan, "delta must be in"),
        ([[1.0]], 0.1, "one axis"),
        ([1.0, 2.0], [0.1, 0.1, 0.1], "broadcast"),
        ([], [], "at least one value"),
        ([1.0, 2.0], lambda e: np.nan if e > 1.5 else 0.1, r"got nan at epsilon = 2\.0"),
    ],
)
def test_bad_statements_are_refused(epsilon, delta, words):
    with pytest.raises(ValueError, match=words):
        bridge.refine(epsilon, delta)
