"""Lower bounds from many runs: closed forms, coverage by simulation, and a variant that must fail
the same test.
"""

import jax
import numpy as np
import pytest
from scipy.special import ndtr, ndtri
from scipy.stats import beta as beta_law

import jaxgdp
from jaxgdp import audit, gdp
from jaxgdp.audit import bands, thresholds
from jaxgdp.audit.many_runs import METHODS

REPETITIONS, RUNS, MU, DELTA = 2000, 200, 1.0, 1e-3


def gaussian_scores(seed, mu=MU, runs=RUNS):
    rng = np.random.default_rng(seed)
    return mu + rng.standard_normal((REPETITIONS, runs)), rng.standard_normal((REPETITIONS, runs))


def miss_test(missed, level):
    """Does a rate of misses exceed its level by more than chance? (four standard deviations)"""
    return np.mean(missed) > level + 4.0 * np.sqrt(level * (1.0 - level) / len(missed))


def optimistic(member, nonmember, confidence):
    """Best threshold, then Clopper-Pearson: what must not be done."""
    limits = -ndtri(bands.one_by_one(member.shape[-1], 0.5 * (1.0 - confidence)))[None]
    return thresholds.best(member, nonmember, limits, limits)[0]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("confidence", [0.95, 0.6])
def test_mu_is_covered(method, confidence):
    member, nonmember = gaussian_scores(1)
    bound = audit.mu_lower_bound(member, nonmember, confidence, method)
    assert bound.shape == (REPETITIONS,)
    assert not miss_test(bound > MU, 1.0 - confidence)
    assert np.median(bound) > 0.3 * MU  # and says something


def test_optimistic_variant_fails_the_same_test():
    member, nonmember = gaussian_scores(1)
    assert miss_test(optimistic(member, nonmember, 0.6) > MU, 0.4)
    # at 95 % it takes more runs to see
    rng = np.random.default_rng(8)
    member, nonmember = MU + rng.standard_normal((600, 2000)), rng.standard_normal((600, 2000))
    assert miss_test(optimistic(member, nonmember, 0.95) > MU, 0.05)
    assert not miss_test(audit.mu_lower_bound(member, nonmember) > MU, 0.05)


@pytest.mark.parametrize("method", METHODS)
def test_epsilon_and_advantage_are_covered(method):
    member, nonmember = gaussian_scores(2)
    epsilon = audit.epsilon_lower_bound(member, nonmember, DELTA, 0.6, method)
    advantage = audit.advantage_lower_bound(member, nonmember, 0.6, method)
    assert not miss_test(epsilon > gdp.epsilon(delta=DELTA, mu=MU), 0.4)
    assert not miss_test(advantage > gdp.advantage(mu=MU), 0.4)
    assert np.median(advantage) > 0.0 and np.median(epsilon) > 0.0


def test_whole_curve_is_covered_at_once():
    member, nonmember = gaussian_scores(3)
    limits = [
        audit.lower_bounds(a, b, 0.6) for a, b in zip(member[:400], nonmember[:400], strict=True)
    ]
    fpr = np.linspace(0.0, 1.0, 101)
    below = [np.any(found.fnr(fpr) < gdp.beta(fpr=fpr, mu=MU) * (1.0 - 1e-12)) for found in limits]
    assert not miss_test(np.array(below), 0.4)


def test_single_threshold_in_closed_form():
    member, nonmember = np.arange(1000) < 500, np.arange(1000) < 10
    bound = audit.mu_lower_bound(member, nonmember, method="threshold")
    a, b = beta_law.ppf(0.975, 11, 990), beta_law.ppf(0.975, 501, 500)
    assert bound == pytest.approx(2.010986, abs=5e-7)
    assert bound == pytest.approx(-ndtri(a) - ndtri(b), abs=1e-7)
    assert audit.from_counts(10, 1000, 500, 1000).mu == bound
    assert audit.from_counts(10, 1000, 500, 1000).epsilon(1e-5) == pytest.approx(
        np.log((1 - 1e-5 - b) / a), abs=1e-7
    )
    assert audit.from_counts(10, 1000, 500, 1000).delta(1.0) == pytest.approx(
        1.0 - b - np.e * a, abs=1e-8
    )


def test_all_thresholds_against_a_loop():
    rng = np.random.default_rng(4)
    member, nonmember = (
        np.round(rng.normal(0.7, 1.0, 150), 1),
        np.round(rng.normal(size=90), 1),
    )  # ties
    a, b = bands.simultaneous(90, 0.025), bands.simultaneous(150, 0.025)
    at = np.append(np.unique(np.concatenate([member, nonmember])), np.inf)
    points = [(a[np.sum(nonmember >= t)], b[np.sum(member < t)]) for t in at]
    limits = audit.lower_bounds(member, nonmember)
    assert limits.mu == pytest.approx(
        max(0.0, max(-ndtri(x) - ndtri(y) for x, y in points)), abs=1e-12
    )
    assert limits.advantage == pytest.approx(
        max(0.0, max(1.0 - x - y for x, y in points)), abs=1e-12
    )
    for delta in (0.0, 1e-3, 0.1):
        pairs = [((1.0 - delta - y) / x, (1.0 - delta - x) / y) for x, y in points]
        assert limits.epsilon(delta) == pytest.approx(np.log(max(1.0, np.max(pairs))), abs=1e-12)
        assert audit.epsilon_lower_bound(member, nonmember, delta) == pytest.approx(
            limits.epsilon(delta), abs=1e-12
        )
    for epsilon in (0.0, 0.3):
        pairs = [(1.0 - y - np.exp(epsilon) * x, 1.0 - x - np.exp(epsilon) * y) for x, y in points]
        assert limits.delta(epsilon) == pytest.approx(max(0.0, np.max(pairs)), abs=1e-12)
    # every point lies on or above the hull, which is convex
    fpr, fnr = np.array(points).T
    assert np.all(limits.fnr(fpr) <= fnr + 1e-12)
    grid = limits.fnr(np.linspace(0, 1, 501))
    assert np.all(np.diff(grid, 2) >= -1e-9) and grid[-1] == 0.0


def test_bounds_of_published_scores_are_above_a_union_bound_over_thresholds():
    quantiles = ndtri((np.arange(10_000) + 0.5) / 10_000)
    for shift, published in ((1.0, 0.8767), (2.0, 1.8586), (4.0, 3.7465)):
        bound = audit.mu_lower_bound(quantiles + shift, quantiles)
        assert published < bound < shift
        assert audit.mu_lower_bound(quantiles + shift, quantiles, method="split") < shift


def test_models_and_single_ones_agree():
    member, nonmember = gaussian_scores(5)
    for method in METHODS:
        many = audit.mu_lower_bound(member[:3].reshape(3, 1, RUNS), nonmember[:2], method=method)
        assert many.shape == (3, 2)
        for i in range(3):
            for j in range(2):
                assert many[i, j] == audit.mu_lower_bound(member[i], nonmember[j], method=method)
                assert many[i, j] == pytest.approx(
                    audit.lower_bounds(member[i], nonmember[j], method=method).mu, abs=1e-12
                )


def test_compiled_and_host_agree(monkeypatch):
    member, nonmember = (np.round(side[:12, :50], 1) for side in gaussian_scores(9))
    host = {
        method: audit.epsilon_lower_bound(member, nonmember, DELTA, 0.6, method)
        for method in ("bands", "split")
    }
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    for method, expected in host.items():
        np.testing.assert_array_equal(
            audit.epsilon_lower_bound(member, nonmember, DELTA, 0.6, method), expected
        )


def test_order_and_monotone_transformations_change_nothing():
    (member, *_), (nonmember, *_) = gaussian_scores(6)
    bound = audit.mu_lower_bound(member, nonmember)
    assert bound == audit.mu_lower_bound(member[::-1], np.sort(nonmember))
    assert bound == audit.mu_lower_bound(np.exp(member), np.exp(nonmember))
    assert bound == audit.mu_lower_bound(member.astype(np.float32), nonmember.astype(np.float32))
    # scores that differ by less than float32 can tell are told apart
    shift = 1.0 + 1e-12 * np.arange(200)
    assert audit.mu_lower_bound(shift + 200e-12, shift) > 3.0
    # scores the wrong way round prove nothing
    assert audit.mu_lower_bound(nonmember, member) == 0.0


@pytest.mark.parametrize("method", METHODS)
def test_scores_that_prove_nothing_give_zero(method):
    ones = np.ones(500)
    assert audit.mu_lower_bound(ones, ones, method=method) == 0.0
    assert audit.mu_lower_bound([1.0], [0.0], method=method) == 0.0
    assert (
        audit.mu_lower_bound(np.arange(4) + 10.0, np.arange(4.0), method=method, threshold=5.0)
        >= 0.0
    )
    assert audit.epsilon_lower_bound(ones, ones, 1e-5, method=method) == 0.0
    assert audit.advantage_lower_bound(ones, ones, method=method) == 0.0
    assert audit.lower_bounds(ones, ones, method=method).mu == 0.0


def test_few_scores_are_bounded_as_few_allow():
    # five of five and none of five: limits 1 − miss^(1/5) at best
    bound = audit.mu_lower_bound(np.ones(5), np.zeros(5), method="threshold")
    assert bound == pytest.approx(max(0.0, -2.0 * ndtri(1.0 - 0.025 ** (1 / 5))), abs=1e-7)
    assert audit.mu_lower_bound(np.ones(9), np.zeros(9)) < -2.0 * ndtri(1.0 - 0.025 ** (1 / 9))


def test_infinite_scores_keep_their_order():
    member, nonmember = np.full(100, np.inf), np.full(100, -np.inf)
    assert (
        audit.mu_lower_bound(member, nonmember)
        == audit.mu_lower_bound(np.ones(100), np.zeros(100))
        > 2.0
    )


def test_ties_are_not_told_apart():
    rng = np.random.default_rng(7)
    member, nonmember = rng.integers(0, 2, (2, 2000, 100))
    found = audit.mu_lower_bound(member.astype(float), nonmember.astype(float), 0.6)
    assert not miss_test(found > 0.0, 0.4)


@pytest.mark.parametrize(
    ("arguments", "settings", "words"),
    [
        (([], [1.0]), {}, "member_scores must hold at least one score"),
        (([1.0], []), {}, "nonmember_scores must hold at least one score"),
        (([1.0, np.nan], [1.0]), {}, "member_scores must hold no NaN, got 1 of 2"),
        ((["a"], [1.0]), {}, "member_scores must be an array of numbers"),
        (([1.0], [1.0]), {"method": "best"}, "method must be one of 'bands', 'split', 'threshold'"),
        (([1.0], [1.0]), {"confidence": 95}, "confidence must be one number in"),
        (([1.0], [1.0]), {"confidence": np.nan}, "confidence must be one number in"),
        ((np.ones((2, 5)), np.ones((3, 5))), {}, "leading shapes that broadcast"),
        (
            ([1.0], [1.0]),
            {"method": "threshold", "threshold": np.nan},
            "threshold must be one number",
        ),
    ],
)
def test_bad_scores_are_refused(arguments, settings, words):
    with pytest.raises(ValueError, match=words):
        audit.mu_lower_bound(*arguments, **settings)


def test_counts_that_are_refused():
    with pytest.raises(ValueError, match="false_positives must be at most 10"):
        audit.from_counts(11, 10, 0, 10)
    with pytest.raises(ValueError, match="whole number"):
        audit.from_counts(0.5, 10, 0, 10)


def test_bound_says_what_it_is():
    bound = audit.mu_lower_bound(np.arange(300) + 200.0, np.arange(300.0))
    assert isinstance(bound, float) and bound.side == "lower bound" and bound.confidence == 0.95
    assert str(bound).startswith("mu >= ") and "confidence 95 %" in str(bound)
    assert f"{bound:.2f}" == f"{float(bound):.2f}"
    assert jaxgdp.audit.Bound is audit.Bound and ndtr(bound) > 0.5
