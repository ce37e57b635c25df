"""Calibration: safe at the answer, not safe one step further, right against closed forms and an
independent second look.
"""

import json
import math

import numpy as np
import pytest
from scipy.special import ndtr, ndtri
from scipy.stats import norm

import jaxgdp
from jaxgdp import targets
from jaxgdp.calibration import STATUS, standard_epsilon, worst_case_gap
from jaxgdp.calibration.saddlepoint import approximate_mu

TOLERANCE = 1e-3


def gaussian_delta(epsilon, mu):
    """Balle and Wang 2018, Theorem 8, by scipy's distribution functions."""
    return norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)


# target, and the exact μ of the Gaussian mechanism that just meets it
GAUSSIAN = [
    (targets.Mu(0.7), 0.7),
    (targets.Advantage(0.2), 2 * norm.ppf(0.6)),
    (targets.FNR(0.7, 0.1), norm.ppf(0.9) - norm.ppf(0.7)),
    (targets.FNR(0.1, 0.7), norm.ppf(0.3) - norm.ppf(0.1)),
    (targets.TPR(0.3, 1e-3), norm.ppf(0.3) - norm.ppf(1e-3)),
    (targets.Accuracy(0.6, 0.1), norm.ppf(0.9) - norm.ppf(0.7)),  # β = 2·0.4 − 0.1
    (targets.Precision(0.75, 0.1), norm.ppf(0.3) - norm.ppf(0.1)),  # TPR = 0.1·3
    (targets.BayesRisk(0.4), 2 * norm.ppf(0.6)),
    (targets.AttackSuccess(0.1, 0.01), norm.ppf(0.1) - norm.ppf(0.01)),
    (targets.EpsilonDelta(1.0, gaussian_delta(1.0, 0.8)), 0.8),
    (targets.EpsilonDelta(0.0, gaussian_delta(0.0, 0.8)), 0.8),
    (targets.BayesRisk(0.2 * (1 - gaussian_delta(math.log(4.0), 0.8)), 0.8), 0.8),
    (targets.BayesRisk(0.2 * (1 - gaussian_delta(math.log(4.0), 0.8)), 0.2), 0.8),
]
NAMES = [target.describe() for target, _ in GAUSSIAN]


def safe_here_and_not_there(found, where=()):
    """The two promises of every calibration with status 0."""
    kind = found.target.safe
    goal = np.broadcast_to(found.target.goal, found.value.shape)
    if kind == "upper":
        assert np.all(found.achieved.upper <= goal) and np.all(
            found.rejected_achieved.upper > goal
        ), where
    else:
        assert np.all(found.achieved.lower >= goal) and np.all(
            found.rejected_achieved.lower < goal
        ), where
    assert np.all(found.status <= 1), [STATUS[int(code)] for code in np.unique(found.status)]


@pytest.mark.parametrize(("target", "mu"), GAUSSIAN, ids=NAMES)
def test_closed_form_of_the_gaussian_mechanism(target, mu):
    found = jaxgdp.calibrate(target, num_steps=[1, 9])
    assert np.all(found.closed_form) and np.all(found.iterations == 0)
    assert np.allclose(found.value, np.sqrt([1, 9]) / mu, rtol=1e-9)
    assert np.allclose(found.rejected, found.value / (1 + TOLERANCE), rtol=1e-12)
    safe_here_and_not_there(found)
    twice = jaxgdp.calibrate(target, num_steps=9, adjacency="replace_one")
    assert np.allclose(twice.value, 2 * 3 / mu, rtol=1e-9)


@pytest.mark.parametrize(("target", "mu"), GAUSSIAN, ids=NAMES)
def test_search_finds_the_closed_form(target, mu):
    found = jaxgdp.calibrate(target, mechanism=lambda scale: jaxgdp.Gaussian(scale))
    assert not found.closed_form and found.evaluations > 0
    safe_here_and_not_there(found)
    # never below the truth; above it by a tolerance step and the width of a bracket at most
    assert 1.0 <= found.value * mu <= (1 + TOLERANCE) * (1 + TOLERANCE)
    assert found.rejected >= found.value / (1 + TOLERANCE) * (1 - 1e-12)


def test_gaussian_steps():
    target = targets.FNR([0.7, 0.8, 0.85], 0.1)
    mu = norm.ppf(0.9) - norm.ppf([0.7, 0.8, 0.85])
    found = jaxgdp.calibrate(target, noise_multiplier=20.0, solve_for="num_steps")
    exact = np.floor((20.0 * mu) ** 2)
    assert np.array_equal(found.value, exact) and np.array_equal(found.rejected, exact + 1)
    safe_here_and_not_there(found)
    assert jaxgdp.calibrate(
        target, noise_multiplier=0.5, solve_for="num_steps", infeasible="flag"
    ).status.tolist() == [4, 4, 4]


def test_approximate_mu_of_the_gaussian_mechanism():
    d = 1e-4
    found = jaxgdp.calibrate(targets.ApproximateMu(0.7, d))
    mu = 1.0 / float(found.value)
    z = np.linspace(-2.0, 6.0, 400_001)
    alpha, beta = ndtr(-z), ndtr(z - mu)
    with np.errstate(invalid="ignore"):
        value = -ndtri(np.minimum(alpha / (1 - d), 1.0)) - ndtri(np.minimum(beta / (1 - d), 1.0))
    assert np.nanmax(value[beta < 1 - d]) == pytest.approx(0.7, rel=1e-6)
    assert mu > 0.7  # d buys something


def test_dpsgd_targets_against_a_second_look():
    """One answer for every kind of target, measured again with narrower brackets; FNR of 0.7 is
    where others stop at 0.6995.
    """
    asked = {
        "advantage": targets.Advantage([0.05, 0.3]),
        "beta": targets.FNR(0.7, 0.1),
        "epsilon": targets.EpsilonDelta(1.0, 1e-5),
        "mu": targets.Mu(0.8, 1e-5),
    }
    found = {
        name: jaxgdp.calibrate(target, sampling_prob=0.01, num_steps=1000)
        for name, target in asked.items()
    }
    for name, one in found.items():
        safe_here_and_not_there(one, name)
        assert np.all(one.evaluations > 0) and np.all(one.iterations <= 4), name
        step = one.value / one.rejected
        assert np.all((step > 1.0) & (step <= (1 + TOLERANCE) * (1 + 1e-12))), name
    sigma = np.concatenate(
        [np.ravel(v) for one in found.values() for v in (one.value, one.rejected)]
    )
    run = jaxgdp.dpsgd(sigma, 0.01, 1000)
    again = jaxgdp.measure(
        run, tuple(asked), rtol=5e-4, fpr_floor=1e-5, fpr=0.1, delta=1e-5
    ).brackets
    at = 0
    for name, one in found.items():
        number = one.value.size
        accepted, rejected = (slice(at, at + number), slice(at + number, at + 2 * number))
        goal = np.ravel(np.broadcast_to(one.target.goal, one.value.shape))
        low, high = again[name]
        # what was measured again overlaps what is claimed, and says the same
        claimed, refused = (
            (np.ravel(side) for side in one.achieved),
            (np.ravel(side) for side in one.rejected_achieved),
        )
        for (claim_low, claim_high), rows in ((claimed, accepted), (refused, rejected)):
            assert np.all(low[rows] <= claim_high) and np.all(claim_low <= high[rows]), name
        if one.target.safe == "upper":
            assert np.all(low[accepted] <= goal) and np.all(high[rejected] > goal * (1 - 1e-3)), (
                name
            )
        else:
            assert np.all(high[accepted] >= goal) and np.all(low[rejected] < goal * (1 + 1e-3)), (
                name
            )
        at += 2 * number


def test_steps_and_rates_of_dpsgd():
    target = targets.TPR([0.2, 0.3], 0.1)
    steps = jaxgdp.calibrate(
        target, sampling_prob=0.01, noise_multiplier=1.0, solve_for="num_steps"
    )
    safe_here_and_not_there(steps)
    assert np.all(steps.value == np.floor(steps.value)) and np.all(steps.value > 100)
    assert np.all(
        steps.rejected - steps.value <= np.maximum(np.floor(TOLERANCE * steps.value), 1.0)
    )
    rates = jaxgdp.calibrate(
        target, num_steps=1000, noise_multiplier=1.0, solve_for="sampling_prob"
    )
    safe_here_and_not_there(rates)
    assert np.all(rates.rejected <= rates.value * (1 + TOLERANCE) * (1 + 1e-12))
    # more steps, or a higher rate, for a weaker target; and the noise for those steps is the noise
    # that was given
    assert np.all(np.diff(steps.value) > 0) and np.all(np.diff(rates.value) > 0)
    back = jaxgdp.calibrate(target, sampling_prob=0.01, num_steps=steps.value)
    assert np.all(np.abs(back.value - 1.0) < 5e-3)


def test_rate_of_one_is_an_answer():
    found = jaxgdp.calibrate(
        targets.Advantage(0.3), num_steps=1000, noise_multiplier=100.0, solve_for="sampling_prob"
    )
    assert found.value == 1.0 and found.status == 3 and np.isnan(found.rejected)
    assert found.achieved.upper <= 0.3 and found.achieved.contains(
        jaxgdp.gdp.advantage(mu=np.sqrt(1000) / 100)
    )


def test_search_ends_on_the_safe_side_where_another_does_not():
    """riskcal 1.5.1 answers 0.48146820068359375 for an FNR of at least 0.7 at FPR 0.1, p = 0.001, T
    = 10,000.
    """
    found = jaxgdp.calibrate(targets.FNR(0.7, 0.1), sampling_prob=0.001, num_steps=10_000)
    safe_here_and_not_there(found)
    there = jaxgdp.measure(
        jaxgdp.dpsgd(0.48146820068359375, 0.001, 10_000), "beta", fpr=0.1, fpr_floor=0.05
    ).brackets["beta"]
    assert there.upper < 0.7 <= found.achieved.lower
    assert 0.48146820068359375 < found.value < 0.4825


def test_many_targets_in_one_call():
    """Targets, rates and steps broadcast; every element is what it would be alone."""
    fpr = np.array([0.01, 0.05, 0.1])[:, None, None]
    tpr = np.linspace(0.15, 0.5, 5)[:, None]
    p = np.array([0.005, 0.01])
    done = []
    found = jaxgdp.calibrate(
        targets.FNR(1.0 - tpr, fpr), sampling_prob=p, num_steps=1000, progress=done.append
    )
    assert found.value.shape == (3, 5, 2) and sum(done) == 30
    safe_here_and_not_there(found)
    assert np.all(found.status == 0)
    assert np.mean(found.evaluations) < 5
    # more noise for a smaller TPR, for one that has to hold at a larger FPR, and for a higher rate
    assert np.all(np.diff(found.value, axis=1) < 0) and np.all(np.diff(found.value, axis=0) > 0)
    assert np.all(np.diff(found.value, axis=2) > 0)
    assert np.mean(found.proved_tight) > 0.5
    alone = jaxgdp.calibrate(targets.FNR(1.0 - tpr[2, 0], 0.05), sampling_prob=0.01, num_steps=1000)
    assert alone.value == pytest.approx(found.value[1, 2, 1], rel=1.5 * TOLERANCE)


def test_thousands_of_closed_forms():
    eta = np.linspace(0.01, 0.9, 5000)
    found = jaxgdp.calibrate(targets.Advantage(eta[:, None]), num_steps=[1, 4])
    assert found.value.shape == (5000, 2)
    assert np.allclose(found.value, [1.0, 2.0] / (2 * norm.ppf((1 + eta) / 2))[:, None], rtol=1e-9)
    safe_here_and_not_there(found)


def test_composition_with_a_common_scale():
    parts = [(jaxgdp.Gaussian(3.0), 10), (jaxgdp.Laplace(8.0), 3)]
    target = targets.Advantage([0.1, 0.3])
    found = jaxgdp.calibrate(target, mechanism=jaxgdp.compose(parts))
    safe_here_and_not_there(found)
    by_hand = jaxgdp.calibrate(
        target,
        mechanism=lambda s: jaxgdp.compose(
            [(jaxgdp.Gaussian(3.0 * s), 10), (jaxgdp.Laplace(8.0 * s), 3)]
        ),
    )
    assert np.array_equal(found.value, by_hand.value)
    assert found.solve_for == "scale"
    with pytest.raises(ValueError, match="RandomizedResponse"):
        jaxgdp.calibrate(target, mechanism=jaxgdp.RandomizedResponse(1.0))


def test_composition_of_gaussians_has_a_closed_form():
    parts = jaxgdp.compose([(jaxgdp.Gaussian(3.0), 10), (jaxgdp.Gaussian([4.0, 5.0]), 2)])
    found = jaxgdp.calibrate(targets.FNR(0.7, 0.1), mechanism=parts)
    mu = np.sqrt(10 / 9 + 2 / np.array([16.0, 25.0]))
    assert np.all(found.closed_form) and found.solve_for == "scale"
    assert np.allclose(found.value, mu / (norm.ppf(0.9) - norm.ppf(0.7)), rtol=1e-9)
    safe_here_and_not_there(found)


def test_tolerance_is_what_it_says():
    target = targets.FNR(0.8, 0.1)
    fine = jaxgdp.calibrate(target, sampling_prob=0.01, num_steps=1000, rtol=1e-4)
    coarse = jaxgdp.calibrate(target, sampling_prob=0.01, num_steps=1000, rtol=2e-2)
    for found, tolerance in ((fine, 1e-4), (coarse, 2e-2)):
        safe_here_and_not_there(found)
        assert found.value / found.rejected <= (1 + tolerance) * (1 + 1e-12)
    assert 1 / (1 + 2e-4) <= coarse.value / fine.value <= 1.03


def test_single_direction_never_needs_more_noise():
    target = targets.AttackSuccess(0.3, [0.05, 0.1])
    both, remove, add = (
        jaxgdp.calibrate(target, sampling_prob=0.01, num_steps=1000, adjacency=adjacency)
        for adjacency in ("add_remove", "remove", "add")
    )
    for found in (both, remove, add):
        safe_here_and_not_there(found)
    assert np.all(remove.value <= both.value * (1 + TOLERANCE)) and np.all(add.value < both.value)


def test_regret_is_met_from_the_answer_on():
    target = targets.Regret(0.01)
    found = jaxgdp.calibrate(target, sampling_prob=0.01, num_steps=1000, rtol=1e-2)
    safe_here_and_not_there(found)
    above = jaxgdp.measure(
        jaxgdp.dpsgd(found.value * np.geomspace(1.0, 40.0, 12), 0.01, 1000), "regret"
    ).brackets["regret"]
    assert np.all(above.lower <= 0.01)
    # Δ ≤ Φ(μ/2) − ½ for every curve
    mu = jaxgdp.measure(jaxgdp.dpsgd(found.value, 0.01, 1000), "mu").brackets["mu"]
    assert found.achieved.upper <= ndtr(mu.upper / 2) - 0.5


def pair_curve(p, q, alpha):
    """f(α) of two finite distributions by Neyman and Pearson: the outcomes in the order of their
    likelihood ratio.
    """
    with np.errstate(divide="ignore"):
        order = np.argsort(-np.where(p > 0, q / np.where(p > 0, p, 1.0), np.inf))
    fpr, tpr = np.append(0.0, np.cumsum(p[order])), np.append(0.0, np.cumsum(q[order]))
    return 1.0 - np.interp(
        alpha, fpr[1:] if p[order[0]] == 0 else fpr, tpr[1:] if p[order[0]] == 0 else tpr
    )


@pytest.mark.parametrize("eta", [0.05, 0.5, 0.8])
def test_cost_of_advantage_calibration(eta):
    """Proposition 3.6 against the curves of the two mechanisms of its proof, outcome by outcome."""
    delta = 1e-5
    epsilon = float(standard_epsilon(eta, delta))
    assert (math.exp(epsilon) - 1 + 2 * delta) / (math.exp(epsilon) + 1) == pytest.approx(
        eta, rel=1e-12
    )
    up = math.exp(epsilon) / (1 + math.exp(epsilon))
    p = np.array([0.0, (1 - delta) * (1 - up), (1 - delta) * up, delta])
    plain = np.array([0.0, (1 - eta) / 2, (1 - eta) / 2, eta])
    alpha = np.linspace(0.0, (1 - eta) / 2, 21)
    gap = pair_curve(p, p[::-1], alpha) - pair_curve(plain, plain[::-1], alpha)
    assert np.allclose(worst_case_gap(eta, alpha, delta), gap, atol=1e-12)
    assert np.allclose(
        gap, (eta - delta) + 2 * alpha * (eta - delta) / (eta - 1), atol=1e-12
    )  # as printed, Eq. 15
    rest = np.linspace((1 - eta) / 2, 1.0, 21)
    assert np.allclose(
        worst_case_gap(eta, rest, delta),
        pair_curve(p, p[::-1], rest) - pair_curve(plain, plain[::-1], rest),
        atol=1e-12,
    )


def test_cost_comes_with_the_result():
    found = jaxgdp.calibrate(targets.Advantage([0.1, 0.3]))
    cost = found.cost
    mu = 2 * norm.ppf(np.array([1.1, 1.3]) / 2)[:, None]
    assert cost.tpr.upper.shape == (2, 3)
    exact = norm.cdf(norm.ppf(cost.fpr) + mu)
    assert np.all(cost.tpr.lower <= exact * (1 + 1e-9)) and np.all(
        exact * (1 - 1e-9) <= cost.tpr.upper
    )
    assert np.allclose(cost.worst_case, worst_case_gap(found.target.advantage[:, None], cost.fpr))
    # no mechanism of this advantage exceeds the generic one
    assert np.all(cost.tpr.upper <= cost.fpr + found.target.advantage[:, None])
    assert "worst-case" in str(jaxgdp.calibrate(targets.Advantage(0.1)))
    assert jaxgdp.calibrate(targets.Mu(1.0)).cost is None


def test_guess_is_good():
    """The saddle-point approximation is exact for Gaussians and close for DP-SGD."""
    groups = jaxgdp.compose([(jaxgdp.Gaussian(np.array([2.0, 5.0])), 4)]).stacked()
    assert np.allclose(
        approximate_mu(groups, ndtri([0.01, 0.2]), by_threshold=False), [1.0, 0.4], rtol=1e-3
    )
    assert np.allclose(
        approximate_mu(groups, np.array([0.5, 0.1]), by_threshold=True), [1.0, 0.4], rtol=1e-3
    )


def test_dict_is_plain_and_complete():
    found = jaxgdp.calibrate(
        targets.Advantage([0.1, 0.99999]),
        sampling_prob=[1.0, 1e-3],
        num_steps=[1, 10],
        infeasible="flag",
    )
    told = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert told["status"] == [0, 3] and set(told["meaning"]) == {"0", "3"}
    assert told["value"] == [float(found.value[0]), None] and told["target"]["advantage"] == [
        0.1,
        0.99999,
    ]
    assert told["achieved"]["upper"][0] <= 0.1 < told["rejected_achieved"]["upper"][0]
    assert told["cost"]["tpr"]["upper"][1] == [None, None, None]
