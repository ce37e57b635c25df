"""The certified head μ: closed forms, random black boxes, both directions of the certificate, and
how few evaluations it takes.
"""

import math

import numpy as np
import pytest
from by_day import first
from known_profiles import gaussian, laplace, laplace_mu, pure, pure_mu, random_pair
from scipy.special import ndtr

import jaxgdp
from jaxgdp import bridge, gdp
from jaxgdp.bridge.inversion import mu_of

SEED = 42


def counted(function):
    """A function and the list of what it was asked."""
    asked = []

    def box(epsilon):
        asked.append(epsilon)
        return function(epsilon)

    return box, asked


@pytest.mark.parametrize(
    ("box", "epsilon_max", "mu"),
    [
        (gaussian(1.0), 10.0, 1.0),
        (gaussian(0.02), 0.5, 0.02),
        (gaussian(6.0), 30.0, 6.0),
        (laplace(1.0), 3.0, laplace_mu(1.0)),
        (laplace(2.0), 0.4, laplace_mu(2.0)),
        *((pure(e), 1.5 * e, pure_mu(e)) for e in (0.5, 1.0, 2.0, 4.0)),
    ],
)
def test_closed_forms(box, epsilon_max, mu):
    found = bridge.head(box, epsilon_max)
    assert found.mu.lower <= mu <= found.mu.upper
    assert found.mu.width <= 1e-4 * found.mu.upper and found.status == "ok" and found.convex
    assert bridge.head_mu(box, epsilon_max) == found.mu


def test_published_numbers():
    assert [round(bridge.head_mu(jaxgdp.Laplace(b), 2.0).upper, 6) for b in (1.0, 2.0)] == [
        1.030064,
        0.561764,
    ]
    found = [bridge.head_mu(pure(e), 6.0).upper for e in (0.5, 1.0, 2.0, 4.0)]
    np.testing.assert_allclose(found, [0.623893, 1.232035, 2.357961, 4.194478], atol=1e-6)


def test_evaluations_are_few_and_searches_fewer():
    # a black box of 1 ms is measured to 1e-4 within a second if it is called fewer than 900 times
    for mu, epsilon_max in ((0.1, 2.0), (1.0, 10.0), (1.0, 20.0), (3.0, 10.0), (3.0, 60.0)):
        box, asked = counted(gaussian(mu))
        found = bridge.head(box, epsilon_max, rtol=1e-4)
        assert found.status == "ok" and found.mu.lower <= mu <= found.mu.upper <= mu * (
            1 + 1.0001e-4
        )
        assert len(asked) == len(set(asked)) == found.evaluations <= 900
        # between values the profile may be its chords, whose μ lies higher by the square of their
        # width in ε/μ over 8
        assert found.evaluations >= epsilon_max / mu / math.sqrt(8e-4)
        # Algorithm 1: O(log n) of them take a binary search
        assert found.searches <= 4.0 * math.log(found.evaluations)
    for other in (
        laplace(1.0),
        pure(1.0),
        lambda e: 1e-6 + (1 - 1e-6) * float(gdp.delta(epsilon=e, mu=1.0)),
    ):
        box, asked = counted(other)
        bridge.head(box, 10.0, rtol=1e-4)
        assert len(asked) <= 60


@pytest.mark.parametrize("epsilon_max", first(1, (2.0, 6.0, 10.0)))
def test_evaluations_of_a_run_are_few(epsilon_max):
    curve = jaxgdp.tradeoff(jaxgdp.dpsgd(1.0, 0.01, 1000), rtol=1e-3, fpr_floor=1e-60)
    box, asked = counted(lambda e: float(curve.delta(e).upper))
    bridge.head(box, epsilon_max, rtol=1e-4)
    assert len(asked) <= 60


def largest(epsilon, delta):
    """Bounds on the largest μ of points of a profile."""
    with np.errstate(divide="ignore"):
        low, high = mu_of(epsilon, np.log(delta), np.log1p(-delta))
    return np.max(low), np.max(high)


def test_random_black_boxes_hold_the_largest_value_on_a_fine_grid():
    rng = np.random.default_rng(SEED)
    for k in range(40):
        box, profile, _ = random_pair(rng)
        most = float(rng.uniform(0.2, 4.0))
        rtol = float(10.0 ** rng.uniform(-5, -1))
        found = bridge.head(box, most, rtol)
        fine = np.append(np.linspace(0.0, most, 2001), found.epsilon)
        low, high = largest(fine, profile(fine))
        assert found.mu.lower <= high * (1 + 1e-11) and low <= found.mu.upper, k
        assert found.status == "ok" and found.mu.width <= rtol * found.mu.upper


def test_random_functions_that_are_no_profiles():
    # steps, jumps and concave stretches: any function that does not increase
    rng = np.random.default_rng(SEED + 1)
    for k in range(20):
        edge = np.sort(rng.uniform(0.0, 3.0, 5))
        height = np.sort(10.0 ** rng.uniform(-6, -0.05, 6))[::-1]
        bend = float(rng.uniform(0.0, 0.4))

        def function(e, edge=edge, height=height, bend=bend):
            return height[np.searchsorted(edge, e, side="right")] * (1.0 - bend * (e / 3.0) ** 2)

        found = bridge.head(function, 3.0, 1e-3)
        fine = np.concatenate(
            [np.linspace(0.0, 3.0, 2001), edge, np.nextafter(edge, 0.0), [found.epsilon]]
        )
        low, high = largest(fine, function(fine))
        assert low <= found.mu.upper * (1 + 1e-12), k
        assert found.mu.lower <= high * (1 + 1e-10), k
        assert found.mu.width <= 1e-3 * found.mu.upper, k


def test_upper_side_holds_where_it_says():
    """δ ≤ δ_μ up to ε_max means f ≥ f_μ from the FPR on that is stated, whatever comes beyond."""
    rng = np.random.default_rng(SEED + 2)
    for _ in range(4):
        box, _, (p, q) = random_pair(rng)
        found = bridge.head(box, 0.6)
        alpha = np.geomspace(found.fpr_floor, 0.5, 15)
        true = jaxgdp.tradeoff(jaxgdp.FromPMFs(p, q)).beta(alpha)
        model = gdp.beta(fpr=alpha, mu=found.mu.upper)
        assert np.all(
            true.upper[model >= found.fpr_floor] >= model[model >= found.fpr_floor] * (1 - 1e-12)
        )
    # and not in general below it: mass at infinity shows there
    mixed = bridge.head(lambda e: 1e-3 + (1 - 1e-3) * float(gdp.delta(epsilon=e, mu=0.2)), 1.0)
    assert (
        abs(mixed.fpr_floor - ndtr(-0.5 * mixed.mu.upper - 1.0 / mixed.mu.upper))
        < 1e-9 * mixed.fpr_floor
    )
    assert 1.0 - 1e-3 < gdp.beta(fpr=1e-12, mu=mixed.mu.upper)


@pytest.mark.slow
@pytest.mark.parametrize("number", [80, pytest.param(200, marks=pytest.mark.nightly)])
def test_head_agrees_with_the_accountant_on_random_mechanisms(number):
    """Over all its ε the head of a profile in closed form is the μ that the composed lattices
    bracket.
    """
    rng = np.random.default_rng(SEED + 3)
    boxes = [random_pair(rng) for _ in range(number)]
    longest = max(len(p) for _, _, (p, _) in boxes)
    pairs = [[np.pad(side, (0, longest - len(side))) for side in pair] for _, _, pair in boxes]
    for start in range(0, number, 100):
        p, q = (np.array(side) for side in zip(*pairs[start : start + 100], strict=True))
        found = jaxgdp.measure(jaxgdp.FromPMFs(p, q), ("mu",), rtol=1e-2).brackets["mu"]
        for k, (box, _, (p, q)) in enumerate(boxes[start : start + 100]):
            head = bridge.head_mu(box, float(np.max(np.abs(np.log(q / p)))), rtol=1e-3)
            assert head.lower <= found.upper[k] * (1 + 1e-9) and found.lower[k] <= head.upper * (
                1 + 1e-9
            ), (p, q)


@pytest.mark.parametrize(
    "mechanism",
    [
        jaxgdp.Laplace(0.7),
        jaxgdp.PureDP(2.0),
        jaxgdp.Gaussian(1.3),
        jaxgdp.ApproximateDP(0.4, 1e-4),
        jaxgdp.compose([(jaxgdp.RandomizedResponse(0.5, 4), 6)]),
        jaxgdp.dpsgd(1.0, 0.1, 20),
    ],
    ids=lambda m: type(m).__name__,
)
def test_curve_holds_where_its_head_says(mechanism):
    curve = jaxgdp.tradeoff(mechanism, rtol=1e-2)
    for epsilon_max in (0.5, 3.0):
        found = bridge.head(curve, epsilon_max, rtol=3e-2)
        assert curve.mu(found.fpr_floor).lower <= found.mu.upper * (1 + 1e-9)
        values = bridge.gdp_transformation(curve, np.linspace(0.0, epsilon_max, 7))
        assert np.max(values.lower) <= found.mu.upper * (1 + 1e-9)
        assert found.mu.lower <= curve.mu(0.0).upper * (1 + 1e-9)


def test_order_is_preserved():
    rng = np.random.default_rng(SEED + 4)
    for _ in range(8):
        _, profile, _ = random_pair(rng)
        less, more = (
            bridge.head_mu(lambda e, k=k, h=profile: float(h(e)) * k, 2.0) for k in (0.7, 1.0)
        )
        assert less.lower <= more.upper and less.upper <= more.upper * (1 + 1e-4)


def test_degenerate_functions():
    assert bridge.head_mu(lambda e: 0.0, 5.0) == (0.0, 0.0)
    found = bridge.head(lambda e: 1.0, 5.0)
    assert found.mu == (np.inf, np.inf) and found.fpr_floor == 1.0
    # δ(0) = 1, so no finite μ holds at ε = 0, whatever comes after
    box, asked = counted(lambda e: math.exp(-e * e))
    assert bridge.head_mu(box, 5.0).lower == np.inf and asked == [0.0]
    only = bridge.head(gaussian(1.0), 0.0)
    assert only.mu.contains(1.0) and only.mu.width < 1e-9 and only.evaluations == 1
    flat = bridge.head_mu(lambda e: 1e-300, 700.0)
    exact = bridge.gdp_transformation(lambda e: 1e-300, 700.0)
    assert (
        flat.lower <= exact.upper and exact.lower <= flat.upper and flat.width <= 1e-4 * flat.upper
    )
    far = bridge.head_mu(bridge.refine(1e4, 0.0), 1e4)
    assert far.contains(gdp.mu_from_pure_dp(epsilon=1e4)) and far.width <= 1e-4 * far.upper


def test_function_with_rounding_of_its_own_is_no_increase():
    def noisy(epsilon):
        a, b = 0.5 - epsilon, -0.5 - epsilon
        return float(max(ndtr(a) - math.exp(epsilon) * ndtr(b), 0.0))

    found = bridge.head(noisy, 5.0)
    assert found.mu.lower <= 1.0 * (1 + 1e-9) and found.mu.upper >= 1.0 and found.status == "ok"


def test_evaluations_that_are_too_few_are_reported():
    found = bridge.head(gaussian(1.0), 10.0, max_evaluations=100)
    assert found.mu.contains(1.0) and found.mu.width > 1e-4 and found.evaluations <= 100
    words = found.status.split()
    assert found.status.startswith("wider than rtol: about ") and "100 were allowed" in found.status
    needed = int(words[words.index("about") + 1])
    enough = bridge.head(gaussian(1.0), 10.0, max_evaluations=3 * needed)
    assert enough.status == "ok" and enough.evaluations <= 3 * needed


@pytest.mark.parametrize("epsilon", [0.3, 2.9])
def test_refusals_name_the_epsilon(epsilon):
    def raising(e):
        if e > epsilon:
            raise OverflowError("math range error")
        return 0.3

    with pytest.raises(ValueError, match=r"raised OverflowError at epsilon = "):
        bridge.head_mu(raising, 3.0)
    with pytest.raises(ValueError, match=r"got nan at epsilon = "):
        bridge.head_mu(lambda e: math.nan if e > epsilon else 0.3, 3.0)
    with pytest.raises(
        ValueError, match=r"must not increase, got 0\.3 at epsilon = .* and 0\.4 at epsilon = "
    ):
        bridge.head_mu(lambda e: 0.4 if e > epsilon else 0.3, 3.0)


def test_arguments():
    for epsilon_max in (-1.0, np.nan, np.inf, [1.0]):
        with pytest.raises(ValueError, match="epsilon_max"):
            bridge.head_mu(laplace(1.0), epsilon_max)
    with pytest.raises(ValueError, match="rtol"):
        bridge.head_mu(laplace(1.0), 1.0, rtol=0.0)
    with pytest.raises(ValueError, match="scalar"):
        bridge.head_mu(jaxgdp.Laplace([1.0, 2.0]), 1.0)
