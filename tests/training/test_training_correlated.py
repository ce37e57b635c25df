"""Plans of matrix mechanisms, against closed forms and against runs of a single band."""

import numpy as np
import pytest
from scipy.stats import norm

import jaxgdp
from jaxgdp.participation import BallsInBins, CyclicPoisson, MinSeparation
from jaxgdp.training import plan_budget

ROOT = [1.0, 0.5, 0.375, 0.3125]


def test_fixed_steps_have_the_norm_of_their_first_rows():
    mechanism = jaxgdp.MatrixMechanism(ROOT, 5.0, MinSeparation(6, 3), num_steps=20)
    plan = plan_budget(mechanism=mechanism, quantities="mu", every=1)
    for step in range(21):
        total = np.zeros(step)
        for start in (0, 6, 12):
            for lag, value in enumerate(ROOT):
                if start + lag < step:
                    total[start + lag] += value
        found, exact = plan.at(step)["mu"], float(np.linalg.norm(total)) / 5.0
        assert found.lower <= exact * (1.0 + 1e-12) and exact <= found.upper * (1.0 + 1e-12)
        assert found.upper - found.lower <= 1e-6


def test_one_band_is_a_plan_of_dp_sgd():
    mechanism = jaxgdp.MatrixMechanism([1.0], 1.5, CyclicPoisson(0.02, 1), num_steps=150)
    own = plan_budget(mechanism=mechanism, quantities=("mu", "epsilon"), every=75)
    other = plan_budget(1.5, 0.02, 150, ("mu", "epsilon"), every=75)
    for step in (75, 150):
        for name in ("mu", "epsilon"):
            one, two = own.at(step)[name], other.at(step)[name]
            assert one.lower <= two.upper and two.lower <= one.upper
            np.testing.assert_allclose(one.upper, two.upper, rtol=2e-3)
    assert own.max_steps_within(mu=float(own.at(75)["mu"].upper)) >= 75


def test_less_steps_than_groups_take_part_once():
    mechanism = jaxgdp.MatrixMechanism(ROOT, 2.0, CyclicPoisson(0.3, 4), num_steps=12)
    plan = plan_budget(mechanism=mechanism, quantities="delta", every=1, epsilon=0.1)
    for step in (1, 2, 3):
        norm = float(np.linalg.norm(ROOT[:step]))
        exact = jaxgdp.delta(jaxgdp.SubsampledGaussian(2.0 / norm, 0.3), epsilon=0.1)
        found = plan.at(step)["delta"]
        assert found.lower <= exact.upper and exact.lower <= found.upper
        np.testing.assert_allclose(found.upper, exact.upper, rtol=2e-3)


def test_parts_of_a_cycle_count_as_a_whole_one():
    mechanism = jaxgdp.MatrixMechanism([1.0], 2.0, BallsInBins(4), num_steps=10)
    plan = plan_budget(mechanism=mechanism, quantities="mu", every=1, rtol=1e-2)
    whole = {k: jaxgdp.mu(plan.composition(k)) for k in (4, 8, 10)}
    for step, before, after in ((3, None, 4), (4, 4, 4), (5, 4, 8), (9, 8, 10), (10, 10, 10)):
        found = plan.at(step)["mu"]
        assert found.upper >= whole[after].lower * (1.0 - 1e-6)
        assert found.upper <= whole[after].upper * (1.0 + 1e-2)
        assert found.lower <= (0.0 if before is None else whole[before].upper * (1.0 + 1e-6))


def test_plan_of_correlated_noise_refuses_the_rest_by_name():
    mechanism = jaxgdp.MatrixMechanism([1.0], 2.0, MinSeparation(4, 2), num_steps=8)
    plan = plan_budget(mechanism=mechanism, quantities="mu")
    with pytest.raises(ValueError, match="MatrixMechanism has no noise of its own"):
        plan.privatize(1.0, None)
    with pytest.raises(ValueError, match="noise_multiplier must not be given with a mechanism"):
        plan_budget(2.0, mechanism=mechanism)
    with pytest.raises(ValueError, match="mechanism must be a MatrixMechanism, got Gaussian"):
        plan_budget(mechanism=jaxgdp.Gaussian(1.0))
    several = jaxgdp.MatrixMechanism([1.0], [1.0, 2.0], MinSeparation(4, 2), num_steps=8)
    with pytest.raises(ValueError, match="mechanism must have one noise_multiplier"):
        plan_budget(mechanism=several)
    with pytest.raises(ValueError, match="noise_multiplier must"):
        plan_budget(sampling_prob=0.1, max_steps=10)


@pytest.mark.parametrize(
    "target", [jaxgdp.targets.Mu(0.5), jaxgdp.targets.Advantage(0.2)], ids=["mu", "advantage"]
)
def test_noise_of_a_strategy_meets_its_target(target):
    """One group, sampled for certain: a Gaussian whose noise is known."""
    mechanism = jaxgdp.MatrixMechanism(ROOT, 1.0, MinSeparation(5, 4), num_steps=20)
    found = jaxgdp.calibrate(target, mechanism=mechanism, rtol=1e-4)
    mu = 0.5 if target.quantity == "mu" else float(2.0 * norm.ppf(0.6))
    exact = 2.0 * float(np.linalg.norm(ROOT)) / mu
    assert exact * (1.0 - 1e-9) <= found.value <= exact * (1.0 + 2e-4)
