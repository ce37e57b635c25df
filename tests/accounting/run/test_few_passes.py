"""Numbers computed together, or for few steps, are as accurate as numbers computed alone, or for
many steps.

The odd constants of this file come from searches over random settings, of which neither script nor
seed was recorded; ``python -m tests.attack`` makes such searches today. Settings written with few
digits were chosen by hand.
"""

import numpy as np
import pytest

import jaxgdp

ALL = (
    "tpr",
    "delta",
    "advantage",
    "mu",
    "regret",
    "epsilon",
    "approximate_mu",
    "bayes_risk",
    "beta",
)


@pytest.mark.parametrize(
    "noise, rate, steps, at",
    [
        (
            1.92938,
            0.00161275,
            1229,
            {
                "fpr": 7.64718e-07,
                "epsilon": 0.0210399,
                "fpr_floor": 1.41632e-07,
                "delta": 1.19479e-10,
                "approximation": 3.26083e-05,
                "prior": 0.6089,
            },
        ),
        (
            0.578164,
            0.107404,
            2296,
            {
                "fpr": 1.46531e-05,
                "epsilon": 0.0192802,
                "fpr_floor": 3.09719e-05,
                "delta": 1.22219e-09,
                "approximation": 2.29693e-06,
                "prior": 0.1857,
            },
        ),
        (
            3.90701,
            0.00280098,
            146,
            {
                "fpr": 9.87643e-05,
                "epsilon": 0.0367541,
                "fpr_floor": 0.00404546,
                "delta": 2.4825e-12,
                "approximation": 2.53192e-09,
                "prior": 0.2492,
            },
        ),
    ],
)
def test_vertex_where_delta_is_asked_leaves_the_middle_of_the_curve_known(noise, rate, steps, at):
    """A lattice with a vertex at ε has, seldom, none at ℓ = 0: the slopes of the one below hold it
    then.
    """
    mechanism = jaxgdp.dpsgd(noise, rate, steps)
    found = jaxgdp.measure(mechanism, ALL, rtol=1e-3, adjacency="add", **at)
    assert all(found.status[name] == 0 for name in ALL), found.status
    alone = jaxgdp.measure(mechanism, "mu", rtol=1e-4, fpr_floor=at["fpr_floor"]).brackets["mu"]
    together = found.brackets["mu"]
    assert together.lower <= alone.upper and alone.lower <= together.upper


def test_mu_does_not_depend_on_the_delta_of_another_quantity():
    """Anchors all along a block of the lattice."""
    epsilon = np.geomspace(0.01, 0.05, 12)
    found = jaxgdp.measure(
        jaxgdp.dpsgd(np.full(12, 1.9), 0.0016, 1229),
        ("delta", "mu", "epsilon"),
        epsilon=epsilon,
        delta=1e-10,
    )
    assert np.all(found.status["mu"] == 0), found.brackets["mu"]


@pytest.mark.parametrize(
    "noise, rate, steps",
    [
        (2.377092, 0.097801, 107),
        (2.223752, 0.032646, 111),
        (1.906481, 0.432801, 119),
        (2.314409, 0.00184, 105),
        (1.178004, 0.000939, 121),
    ],
)
def test_few_steps_are_as_accurate_as_many(noise, rate, steps):
    found = jaxgdp.measure(jaxgdp.dpsgd(noise, rate, steps), ("mu", "regret"), rtol=1e-3)
    assert found.status["mu"] == 0 and found.status["regret"] == 0, found.brackets


def test_setting_that_is_sharper_than_one_level_asks_for_gets_the_next_ones():
    """Among accuracies that follow each other, the first pass may meet the second one, and not the
    third that was asked for.
    """
    finished = []
    mechanism = jaxgdp.dpsgd(
        np.array([0.5314327, 5.24, 1.35]),
        np.array([0.0011155, 0.0002115, 0.32]),
        np.array([1007.0, 107.0, 8030.0]),
    )
    once = jaxgdp.measure(mechanism, "advantage", rtol=1e-3).brackets["advantage"]
    assert np.any((once.width <= 1e-4 * once.upper) & (once.width > 1e-5 * once.upper))
    found = jaxgdp.measure(mechanism, "advantage", rtol=1e-5, progress=finished.append)
    assert np.all(found.status["advantage"] == 0) and sum(finished) == 3
    finer = found.brackets["advantage"]
    assert np.all((finer.lower >= once.lower) & (finer.upper <= once.upper))


@pytest.mark.parametrize(
    "noise, rate, steps, scale, laplaces, epsilon, answers, name, at",
    [
        (
            1.0705065,
            0.746276,
            140,
            14.91947,
            1,
            0.04410545,
            6,
            "epsilon",
            {"delta": 1.1838854695901386e-08},
        ),
        (
            0.6103098017577685,
            0.014569141698286998,
            1196,
            1.4406130778589146,
            3,
            0.014162458639090995,
            4,
            "tpr",
            {"fpr": 3.4018975977658384e-07},
        ),
    ],
)
def test_window_off_by_several_spreads_is_moved_until_it_holds_the_threshold(
    noise, rate, steps, scale, laplaces, epsilon, answers, name, at
):
    of = jaxgdp.mechanisms
    mechanism = jaxgdp.compose(
        [
            (of.SubsampledGaussian(noise, rate), steps),
            (of.Laplace(scale), laplaces),
            (of.RandomizedResponse(epsilon), answers),
        ]
    )
    found = jaxgdp.measure(mechanism, name, rtol=1e-3, **at)
    assert found.status[name] == 0, found.brackets
