"""Bad input to a calibration is named before anything is compiled; what cannot be had is said by
name.
"""

import jax
import numpy as np
import pytest

import jaxgdp
from jaxgdp import targets
from jaxgdp.calibration import STATUS, standard_epsilon, worst_case_gap

GOAL = targets.Advantage(0.1)
BAD_TARGETS = [
    (lambda: targets.Advantage(0.0), r"advantage must be in \(0, 1\)"),
    (lambda: targets.Advantage(-0.1), "advantage"),
    (lambda: targets.Advantage(1.0), "weaker than no noise"),
    (lambda: targets.Advantage([0.1, np.nan]), "advantage"),
    (lambda: targets.Advantage("small"), "advantage"),
    (lambda: targets.Advantage([]), "advantage"),
    (lambda: targets.Mu(0.0), "mu must be"),
    (lambda: targets.Mu(np.inf), "mu must be"),
    (lambda: targets.Mu(1.0, 0.5), "fpr_floor"),
    (lambda: targets.ApproximateMu(1.0, 0.0), "approximation must be"),
    (lambda: targets.EpsilonDelta(-1.0, 1e-5), "epsilon"),
    (lambda: targets.EpsilonDelta(1.0, 0.0), "delta"),
    (lambda: targets.EpsilonDelta(1.0, 1.0), "delta"),
    (lambda: targets.EpsilonDelta([1.0, 2.0], [1e-5, 1e-6, 1e-7]), "shapes"),
    (lambda: targets.FNR(0.0, 0.1), "fnr"),
    (lambda: targets.FNR(0.5, 1.0), "fpr"),
    (lambda: targets.FNR(0.9, 0.2), r"fnr \+ fpr must be below 1 .* got fnr 0.9 and fpr 0.2"),
    (lambda: targets.FNR([0.5, 0.8], 0.2), r"fnr 0.8 and fpr 0.2"),
    (lambda: targets.TPR(0.1, 0.1), "tpr must be above fpr"),
    (lambda: targets.Accuracy(0.5, 0.1), "accuracy must be above 0.5"),
    (lambda: targets.Accuracy(0.95, 0.1), "weaker than no noise"),
    (lambda: targets.Precision(0.5, 0.1), "precision must be above 0.5"),
    (lambda: targets.Precision(0.92, 0.1), "weaker than no noise"),
    (lambda: targets.BayesRisk(0.5), "bayes_risk must be below"),
    (lambda: targets.BayesRisk(0.25, 0.2), "= 0.2, the risk of guessing"),
    (lambda: targets.BayesRisk(0.1, 1.0), "prior"),
    (lambda: targets.AttackSuccess(0.01, 0.02), "success must be above baseline"),
    (lambda: targets.Regret(0.5), "regret"),
]
BAD_CALLS = [
    (lambda: jaxgdp.calibrate(0.1), "target must be one of jaxgdp.targets"),
    (lambda: jaxgdp.calibrate(GOAL, sampling_prob=0.0), "sampling_prob"),
    (lambda: jaxgdp.calibrate(GOAL, sampling_prob=1.5), "sampling_prob"),
    (lambda: jaxgdp.calibrate(GOAL, sampling_prob=np.nan), "sampling_prob"),
    (lambda: jaxgdp.calibrate(GOAL, sampling_prob=0.1, num_steps=0), "num_steps"),
    (lambda: jaxgdp.calibrate(GOAL, sampling_prob=0.1, num_steps=2.5), "num_steps"),
    (
        lambda: jaxgdp.calibrate(targets.Advantage([0.1, 0.2]), sampling_prob=[0.1, 0.2, 0.3]),
        "shapes do not broadcast",
    ),
    (lambda: jaxgdp.calibrate(GOAL, rtol=0.0), "rtol"),
    (lambda: jaxgdp.calibrate(GOAL, rtol=0.5), "rtol"),
    (lambda: jaxgdp.calibrate(GOAL, adjacency="swap"), "adjacency"),
    (
        lambda: jaxgdp.calibrate(GOAL, sampling_prob=0.1, adjacency="replace_one"),
        "adjacency .* SubsampledGaussian",
    ),
    (lambda: jaxgdp.calibrate(GOAL, solve_for="sigma"), "solve_for"),
    (
        lambda: jaxgdp.calibrate(GOAL, noise_multiplier=1.0),
        "noise_multiplier is what is solved for",
    ),
    (lambda: jaxgdp.calibrate(GOAL, solve_for="num_steps"), "noise_multiplier must be given"),
    (
        lambda: jaxgdp.calibrate(GOAL, noise_multiplier=-1.0, solve_for="num_steps"),
        "noise_multiplier",
    ),
    (
        lambda: jaxgdp.calibrate(targets.Regret(0.01), noise_multiplier=1.0, solve_for="num_steps"),
        "regret",
    ),
    (lambda: jaxgdp.calibrate(GOAL, infeasible="ignore"), "infeasible"),
    (lambda: jaxgdp.calibrate(GOAL, mechanism=1.0), "mechanism"),
    (lambda: jaxgdp.calibrate(GOAL, mechanism=lambda scale: 1.0), "mechanism"),
    (lambda: jaxgdp.calibrate(GOAL, mechanism=lambda scale: jaxgdp.Gaussian(1.0)), "shape"),
    (
        lambda: jaxgdp.calibrate(GOAL, sampling_prob=0.1, mechanism=jaxgdp.Gaussian),
        "sampling_prob must not be given",
    ),
    (lambda: jaxgdp.calibrate(GOAL, mechanism=jaxgdp.Gaussian, black_box=len), "not both"),
    (lambda: jaxgdp.calibrate(GOAL, mechanism=jaxgdp.PureDP(1.0)), "PureDP"),
    (lambda: jaxgdp.calibrate(GOAL, black_box=1.0), "black_box"),
    (lambda: jaxgdp.calibrate(GOAL, black_box=lambda scale: 1.0), "black_box must return"),
    (lambda: jaxgdp.calibrate(GOAL, black_box=lambda scale: lambda epsilon: 2.0), "delta"),
    (
        lambda: jaxgdp.calibrate(
            GOAL, black_box=lambda scale: jaxgdp.BlackBox(epsilon=lambda d: -1.0)
        ),
        "epsilon",
    ),
    (lambda: jaxgdp.calibrate(GOAL, black_box=len, adjacency="remove"), "adjacency"),
    (lambda: jaxgdp.calibrate(targets.Regret(0.01), black_box=len), "Regret"),
    (lambda: jaxgdp.BlackBox(), "give delta"),
    (lambda: jaxgdp.BlackBox(delta=len, epsilon=len), "not both"),
    (lambda: jaxgdp.BlackBox(delta=1.0), "callable"),
    (lambda: jaxgdp.BlackBox(delta=lambda e: 0.1, grid=[-1.0]), "grid"),
    (lambda: jaxgdp.BlackBox(epsilon=lambda d: 0.1, grid=[0.0]), "grid"),
    (lambda: worst_case_gap(1e-6, 0.1, 1e-5), "advantage must be above delta"),
    (lambda: standard_epsilon(0.1, 0.0), "delta"),
]


@pytest.fixture
def no_compilation(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("compiled before the input was checked")

    monkeypatch.setattr(jax.stages.Lowered, "compile", refuse)


@pytest.mark.parametrize(("call", "named"), BAD_TARGETS + BAD_CALLS)
def test_bad_input_is_named(call, named, no_compilation):
    with pytest.raises(ValueError, match=named):
        call()


def test_weaker_than_no_noise_is_told_before_compiling(no_compilation):
    """Without noise DP-SGD shows no more than whether the record was sampled: advantage 1 − (1 −
    p)^T, TPR that plus α.
    """
    shown = 1.0 - 0.999**10
    for target in (
        targets.Advantage(shown * 1.001),
        targets.TPR(0.1 + shown * 1.001, 0.1),
        targets.FNR(0.9 - shown * 1.001, 0.1),
        targets.BayesRisk(0.5 * (1.0 - shown * 1.001)),
        targets.EpsilonDelta(1.0, shown * 1.001),
        targets.Mu(9.0, 1e-10),
    ):
        with pytest.raises(ValueError, match="target weaker than no noise"):
            jaxgdp.calibrate(target, sampling_prob=0.001, num_steps=10)
    with pytest.raises(ValueError, match="target weaker than no noise"):
        jaxgdp.calibrate(targets.Regret(0.01), sampling_prob=1.0, num_steps=10)


def test_impossible_targets_are_flagged_and_leave_the_rest_alone():
    target = targets.Advantage([0.2, 0.02, 0.1])
    found = jaxgdp.calibrate(
        target, sampling_prob=[1.0, 1e-3, 1.0], num_steps=[1, 10, 4], infeasible="flag"
    )
    assert found.status.tolist() == [0, 3, 0] and "every parameter" in STATUS[3]
    assert (
        np.isnan(found.value[1])
        and np.isnan(found.achieved.upper[1])
        and np.isnan(found.rejected[1])
    )
    assert np.allclose(
        found.value[[0, 2]],
        [
            1.0 / jaxgdp.gdp.mu_from_advantage(advantage=0.2),
            2.0 / jaxgdp.gdp.mu_from_advantage(advantage=0.1),
        ],
    )
    assert (
        np.isnan(found.cost.tpr.upper[1]).all() and not np.isnan(found.cost.tpr.upper[[0, 2]]).any()
    )
    with pytest.raises(ValueError, match="no num_steps meets it"):
        jaxgdp.calibrate(targets.Advantage(0.01), noise_multiplier=1.0, solve_for="num_steps")


def test_floor_that_other_parts_set_cannot_be_met():
    """A composition that leaves a risk no noise of the scaled part removes."""
    fixed = lambda s: jaxgdp.compose(
        [(jaxgdp.Gaussian(s), 1), (jaxgdp.Gaussian(np.broadcast_to(2.0, np.shape(s))), 1)]
    )
    with pytest.raises(ValueError, match="no scale was found that meets it, up to"):
        jaxgdp.calibrate(targets.Mu(0.4), mechanism=fixed)
    found = jaxgdp.calibrate(targets.Mu([0.4, 0.6]), mechanism=fixed, infeasible="flag")
    assert found.status.tolist() == [4, 0]
    assert found.value[1] == pytest.approx(1.0 / np.sqrt(0.6**2 - 0.5**2), rel=5e-3)
    assert found.value[1] >= 1.0 / np.sqrt(0.6**2 - 0.5**2)
