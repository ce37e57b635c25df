"""Privacy loss distributions of dp_accounting, both ways."""

import math

import numpy as np
import pytest

import jaxgdp

pytest.importorskip("dp_accounting", reason="the extra 'interop' is not installed")

from dp_accounting.pld import common, privacy_loss_distribution

from jaxgdp.interop.dominating import dominating_pair
from jaxgdp.interop.dp_accounting import from_pld, to_pld
from jaxgdp.mechanisms.finite_pair import FinitePair

EPSILON = np.linspace(0.0, 3.0, 31)


def profile(pair: FinitePair, epsilon, swapped=False):
    """δ(ε) of a finite pair by its definition."""
    p, q = np.exp(pair.log_p), np.exp(pair.log_q)
    if swapped:
        p, q = q, p
    beyond = math.exp(pair.log_p_minus if swapped else pair.log_q_plus)
    return np.array([beyond + np.maximum(q - math.exp(e) * p, 0.0).sum() for e in epsilon])


def mass(pair: FinitePair):
    return [
        np.exp(a).sum() + math.exp(b)
        for a, b in ((pair.log_p, pair.log_p_minus), (pair.log_q, pair.log_q_plus))
    ]


def pld_of(mechanism, **kwargs):
    return from_pld(mechanism(**kwargs)).mechanisms[0]


CASES = {
    "infinite mass": privacy_loss_distribution.from_privacy_parameters(
        common.DifferentialPrivacyParameters(1.0, 0.1), 1e-2
    ),
    "laplace": privacy_loss_distribution.from_laplace_mechanism(
        1.0, value_discretization_interval=1e-2
    ),
    "sampled laplace": privacy_loss_distribution.from_laplace_mechanism(
        1.0, value_discretization_interval=1e-2, sampling_prob=0.2
    ),
    "gaussian": privacy_loss_distribution.from_gaussian_mechanism(
        1.0, value_discretization_interval=1e-2
    ),
    "sampled gaussian, composed": privacy_loss_distribution.from_gaussian_mechanism(
        1.0, value_discretization_interval=1e-2, sampling_prob=0.2
    ).self_compose(20),
    "buckets": privacy_loss_distribution.from_laplace_mechanism(
        1.0, value_discretization_interval=1e-2, sampling_prob=0.2, use_connect_dots=False
    ),
    "special response": privacy_loss_distribution.from_randomized_response(
        0.5, 3, neighboring_relation=privacy_loss_distribution.NeighborRel.REPLACE_SPECIAL
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_distribution_keeps_its_profile_and_its_infinite_mass(name):
    pld = CASES[name]
    pair = from_pld(pld).mechanisms[0]
    assert np.allclose(mass(pair), 1.0, atol=1e-12)
    theirs = np.asarray(pld.get_delta_for_epsilon(EPSILON))
    ours = np.maximum(profile(pair, EPSILON), profile(pair, EPSILON, swapped=True))
    # (at 0 both orders have the same δ: the smaller of two bounds holds for both)
    assert np.all(ours[1:] >= theirs[1:] - 1e-12)
    assert ours[0] <= theirs[0] + 1e-12
    assert np.allclose(ours[1:], theirs[1:], rtol=1e-3, atol=1e-12)
    infinite = float(pld.get_delta_for_epsilon(math.inf))
    assert math.isclose(
        max(math.exp(pair.log_q_plus), math.exp(pair.log_p_minus)),
        infinite,
        rel_tol=1e-9,
        abs_tol=1e-14,
    )


def test_infinite_mass_reaches_the_answers():
    mechanism = from_pld(CASES["infinite mass"])
    # losses were rounded up to multiples of 0.01, and 1 is one of them
    assert math.isclose(mechanism.mechanisms[0].loss_bounds()[1], 1.0, rel_tol=1e-12)
    found = jaxgdp.measure(jaxgdp.compose([(mechanism, 2)]), "delta", epsilon=2.5).brackets["delta"]
    assert found.lower <= 0.19 * (1 + 1e-9) and 0.19 * (1 - 1e-9) <= found.upper < 0.19 * (1 + 1e-6)


def test_optimistic_and_foreign_objects_are_refused():
    optimistic = privacy_loss_distribution.from_laplace_mechanism(
        1.0, pessimistic_estimate=False, value_discretization_interval=0.1
    )
    with pytest.raises(ValueError, match="optimistic"):
        from_pld(optimistic)
    with pytest.raises(ValueError, match="PrivacyLossDistribution"):
        from_pld({"loss": 1.0})
    half = privacy_loss_distribution.PrivacyLossDistribution.create_from_rounded_probability(
        {0: 0.5}, 0.0, 0.1
    )
    with pytest.raises(ValueError, match="sum"):
        from_pld(half)


def test_mechanism_as_a_distribution_dominates_it_in_both_orders():
    step = jaxgdp.ApproximateDP(epsilon=0.5, delta=0.01)
    pld = to_pld(jaxgdp.compose([(step, 2)]), value_discretization_interval=0.05)
    # exact: losses −1, 0, 1 or infinite
    r = 1.0 / (1.0 + math.exp(-0.5))
    both = 0.99**2 * np.array([(1 - r) ** 2, 2 * r * (1 - r), r**2])
    loss = np.array([-1.0, 0.0, 1.0])
    infinite = 1.0 - 0.99**2
    exact = np.array(
        [infinite + np.sum(both * np.maximum(1.0 - np.exp(e - loss), 0.0)) for e in EPSILON]
    )
    theirs = np.asarray(pld.get_delta_for_epsilon(EPSILON))
    assert np.all(theirs >= exact * (1.0 - 1e-12)) and np.allclose(theirs, exact, rtol=1e-6)
    assert math.isclose(float(pld.get_delta_for_epsilon(math.inf)), infinite, rel_tol=1e-9)
    again = from_pld(pld).mechanisms[0]
    assert np.all(profile(again, EPSILON) >= exact * (1.0 - 1e-12)) and np.allclose(
        profile(again, EPSILON), exact, rtol=1e-6
    )
    with pytest.raises(ValueError, match="batch"):
        to_pld(jaxgdp.ApproximateDP(epsilon=[0.5, 0.6], delta=0.01))
    with pytest.raises(ValueError, match="value_discretization_interval"):
        to_pld(step, value_discretization_interval=0.0)


def test_asymmetric_mechanism_keeps_its_two_orders_apart():
    # one use of the sampled pair: adding is the milder order
    p, q = np.array([0.75, 0.25]), np.array([0.5, 0.5])
    pair = dominating_pair(jaxgdp.FromPMFs(p, q), spacing=0.01).mechanism()
    for swapped, (a, b) in ((False, (p, q)), (True, (q, p))):
        exact = np.array([np.maximum(b - math.exp(e) * a, 0.0).sum() for e in EPSILON])
        ours = profile(pair, EPSILON, swapped)
        assert np.all(ours >= exact * (1.0 - 1e-12)) and np.allclose(ours, exact, atol=2e-3)
    assert np.allclose(mass(pair), 1.0, atol=1e-9)
