"""A profile known only as a function, against mechanisms whose answers are known."""

import numpy as np
import pytest
from by_day import every_value
from scipy.stats import norm

import jaxgdp
from jaxgdp import targets
from jaxgdp.gdp import delta as gaussian_delta
from jaxgdp.gdp import epsilon as gaussian_epsilon

TARGETS = [
    targets.Mu(0.7, 1e-6),
    targets.ApproximateMu(0.7, 1e-5),
    targets.EpsilonDelta(1.0, 1e-5),
    targets.Advantage(0.2),
    targets.FNR(0.7, 0.1),
    targets.FNR(0.1, 0.7),
    targets.TPR(0.12, 0.1),
    targets.Accuracy(0.6, 0.1),
    targets.Precision(0.8, 0.1),
    targets.BayesRisk(0.3),
    targets.BayesRisk(0.1, 0.8),
    targets.AttackSuccess(0.1, 0.03),
]


def box(kind, sigma, **settings):
    if kind == "delta":
        return jaxgdp.BlackBox(
            delta=lambda epsilon: gaussian_delta(epsilon=epsilon, mu=1.0 / sigma), **settings
        )
    return jaxgdp.BlackBox(
        epsilon=lambda delta: gaussian_epsilon(delta=delta, mu=1.0 / sigma), **settings
    )


@pytest.mark.parametrize(
    ("target", "kind"),
    every_value(TARGETS, ("delta", "epsilon")),
    ids=lambda t: t if isinstance(t, str) else t.describe(),
)
def test_gaussian_profile_brackets_the_truth(kind, target):
    """Coarse or refined, the bracket holds the truth; refined, it is as narrow as asked."""
    for mu in (0.3, 1.7):
        truth = float(target.of_gaussian(mu))
        profile = box(kind, 1.0 / mu)
        coarse = profile.read(target)
        assert coarse.lower - 1e-12 <= truth <= coarse.upper + 1e-12
        fine = profile.refine(target, 1e-3)
        assert fine.lower - 1e-12 <= truth <= fine.upper + 1e-12
        assert coarse.lower - 1e-9 <= fine.lower and fine.upper <= coarse.upper + 1e-9
        ends = sorted(float(target.equivalent_mu(np.asarray(side))) for side in fine)
        assert ends[1] - ends[0] <= 1.01e-3 * mu
        assert profile.calls < 400


@pytest.mark.parametrize("kind", ["delta", "epsilon"])
@pytest.mark.parametrize("target", TARGETS[2:5] + TARGETS[-3:], ids=lambda t: t.describe())
def test_calibrated_gaussian_is_the_closed_form(kind, target):
    exact = jaxgdp.calibrate(target)
    found = jaxgdp.calibrate(target, black_box=lambda sigma: box(kind, sigma))
    assert found.status == 0
    assert exact.value * (1 - 1e-9) <= found.value <= exact.value * (1 + 2.5e-3)
    assert found.rejected * (1 + 1e-3) >= found.value * (1 - 1e-12)
    goal = float(target.goal)
    if target.safe == "upper":
        assert found.achieved.upper <= goal < found.rejected_achieved.upper
    else:
        assert found.achieved.lower >= goal > found.rejected_achieved.lower


def test_bare_function_and_many_targets():
    fnr = np.array([0.6, 0.8])
    found = jaxgdp.calibrate(
        targets.FNR(fnr, 0.1),
        black_box=lambda sigma: lambda epsilon: gaussian_delta(epsilon=epsilon, mu=1.0 / sigma),
    )
    assert np.allclose(found.value, 1.0 / (norm.ppf(0.9) - norm.ppf(fnr)), rtol=2.5e-3)
    cost = jaxgdp.calibrate(
        targets.Advantage(0.2), black_box=lambda sigma: box("delta", sigma)
    ).cost
    exact = norm.cdf(norm.ppf(cost.fpr) + 2 * norm.ppf(0.6))
    assert np.all(cost.tpr.upper >= exact * 0.999) and np.all(cost.tpr.upper <= exact + 0.02)


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.describe())
def test_upper_bound_stays_on_the_safe_side(target):
    """A function that is no profile, only above one: the answer is safe, and nothing is claimed
    about the other side.
    """
    loose = jaxgdp.BlackBox(
        delta=lambda e: min(
            1.0, 1.2 * gaussian_delta(epsilon=e, mu=0.5) * (1 + 0.1 * np.sin(9 * e))
        ),
        exact=False,
    )
    bracket, truth = loose.read(target), float(target.of_gaussian(0.5))
    assert bracket.upper >= truth if target.safe == "upper" else bracket.lower <= truth
    assert bracket.lower <= truth <= bracket.upper


def test_pure_dp_is_exact():
    """ε-DP: δ(ε) = (e^ε₀ − e^ε)/(1 + e^ε₀), whose hull two points give (Kairouz et al. 2015)."""
    big = 1.0
    pure = jaxgdp.BlackBox(
        delta=lambda e: max(0.0, (np.exp(big) - np.exp(e)) / (1 + np.exp(big))), grid=[0.0, big]
    )
    eta = (np.exp(big) - 1) / (np.exp(big) + 1)
    assert pure.read(targets.Advantage(0.5)).upper == pytest.approx(eta, rel=1e-12)
    assert pure.read(targets.TPR(0.5, 0.1)).upper == pytest.approx(0.1 * np.e, rel=1e-12)
    assert pure.read(targets.Mu(1.0)).upper == pytest.approx(
        jaxgdp.gdp.mu_from_pure_dp(epsilon=big), rel=1e-9
    )
    assert pure.read(targets.EpsilonDelta(1.0, 1e-5)).upper <= big


@pytest.mark.parametrize("kind", ["delta", "epsilon"])
def test_pessimism_bounds_the_gap_everywhere(kind):
    """The grid's own statement, against the true profile between its points."""
    ask = np.linspace(0.0, 6.0, 301)
    before = np.inf
    for number in (5, 20, 80):
        grid = (
            np.linspace(0.0, 6.0, number) if kind == "delta" else np.geomspace(1e-8, 0.38, number)
        )
        profile = box(kind, 1.0, grid=grid)
        on_grid = [profile.read(targets.BayesRisk(1e-3, 1.0 / (1.0 + np.exp(-e)))) for e in ask]
        rare = 1.0 / (1.0 + np.exp(ask))
        high = np.array([1.0 - b.lower / r for b, r in zip(on_grid, rare, strict=True)])
        gap = high - gaussian_delta(epsilon=ask, mu=1.0)
        assert np.all(gap >= -1e-12) and np.max(gap) <= profile.pessimism * (1 + 1e-9)
        assert profile.pessimism < before
        before = profile.pessimism
    assert before < 2e-2


def test_black_box_becomes_a_mechanism_to_compose():
    profile = box("delta", 2.0, grid=np.linspace(0.0, 4.0, 60))
    mechanism = profile.mechanism
    assert isinstance(mechanism, jaxgdp.FromProfile) and profile.calls == 60
    measured = jaxgdp.measure(mechanism, "tpr", fpr=0.1, fpr_floor=0.05).brackets
    assert measured["tpr"].upper == pytest.approx(
        float(profile.read(targets.TPR(0.5, 0.1)).upper), rel=2e-3
    )
