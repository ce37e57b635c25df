"""Verdicts: what is refuted, by which side of a certified curve, and how often a true claim is."""

import json

import numpy as np
import pytest
from scipy.special import ndtri

import jaxgdp
from jaxgdp import audit, gdp

QUANTILES = ndtri((np.arange(2000) + 0.5) / 2000)
CURVE = jaxgdp.tradeoff(
    jaxgdp.dpsgd(noise_multiplier=1.0, sampling_prob=0.1, num_steps=20), fpr_floor=1e-6
)


def attack(claim, rng, runs):
    """Scores of the best attack on a curve: the inverse of its own trade-off curve."""
    if isinstance(claim, float):
        return rng.standard_normal(runs) + claim, rng.standard_normal(runs)
    # SubsampledGaussian, 20 steps: sums of privacy losses of the two outputs
    loss = lambda x: np.log1p(0.1 * np.expm1(x - 0.5)).sum(axis=1)
    noise = rng.standard_normal((2, runs, 20))
    return loss(noise[0] + (rng.random((runs, 20)) < 0.1)), loss(noise[1])


def test_claim_is_refuted_by_more_than_it_allows_and_not_by_as_much():
    assert audit.verdict(1.0, QUANTILES + 1.5, QUANTILES).refuted
    assert not audit.verdict(1.0, QUANTILES + 1.0, QUANTILES).refuted
    assert audit.verdict((0.5, 1e-5), QUANTILES + 1.5, QUANTILES).refuted
    assert not audit.verdict((8.0, 1e-5), QUANTILES + 1.0, QUANTILES).refuted
    assert audit.verdict(jaxgdp.Gaussian(noise_multiplier=1.0), QUANTILES + 1.5, QUANTILES).refuted
    assert not audit.verdict(CURVE, *attack(CURVE, np.random.default_rng(0), 2000)).refuted
    assert audit.verdict(CURVE, QUANTILES + 2.0, QUANTILES).refuted


def test_curve_is_refuted_where_no_single_epsilon_or_mu_would_be():
    """The claim is the mechanism's own curve: between what its μ and what its (ε, δ) allow."""
    mu, epsilon = float(CURVE.mu().upper), float(CURVE.epsilon(1e-5).upper)
    scores = QUANTILES + 0.93 * mu, QUANTILES
    assert audit.verdict(CURVE, *scores).points is not None
    assert (
        not audit.verdict(mu, *scores).refuted
        and not audit.verdict((epsilon, 1e-5), *scores).refuted
    )


def test_safe_side_of_the_bracket_decides():
    limits = audit.lower_bounds(QUANTILES + 1.5, QUANTILES)
    between = audit.Claim(
        "between",
        lambda alpha: jaxgdp.Bracket(np.zeros_like(alpha), np.ones_like(alpha) * (1 - alpha)),
        None,
    )
    assert not audit.verdict(between, QUANTILES + 1.5, QUANTILES).refuted
    # exactly at the limit: not refuted; a hair below: refuted
    for mu, refuted in (
        (float(limits.mu) * (1 + 1e-9), False),
        (float(limits.mu) * (1 - 1e-6), True),
    ):
        assert audit.verdict(mu, QUANTILES + 1.5, QUANTILES).refuted is refuted


@pytest.mark.parametrize("claim", [1.0, CURVE], ids=["mu", "curve"])
def test_true_claims_are_refuted_no_oftener_than_the_level_allows(claim):
    rng, repetitions = np.random.default_rng(5), 400
    stated = audit.as_claim(claim)
    # asked at many points once
    grid = np.concatenate([[0.0], np.geomspace(1e-4, 1.0, 60)])
    side = np.asarray(stated.fnr(grid).lower)
    quick = audit.Claim(
        "quick", lambda a: jaxgdp.Bracket(side[np.searchsorted(grid, a)], np.ones_like(a)), None
    )
    refuted = [
        audit.verdict(quick, *attack(claim, rng, 150), confidence=0.8).refuted
        for _ in range(repetitions)
    ]
    assert np.mean(refuted) <= 0.2 + 4.0 * np.sqrt(0.16 / repetitions)


def test_text_and_json():
    found = audit.verdict(1.0, QUANTILES + 2.0, QUANTILES)
    assert str(found).startswith(
        "A BUG IS PROVEN: 1-GDP is refuted at confidence 95 % (bands; an attack has FPR <= "
    )
    data = json.loads(found.to_json())
    assert data["refuted"] is True and data["mu_lower_bound"] == pytest.approx(
        float(found.mu_lower)
    )
    assert len(data["points"]["fpr_limit"]) == len(found.points.fpr_limit)
    a, b = found.points.fpr_limit[found.worst], found.points.fnr_limit[found.worst]
    assert b < gdp.beta(fpr=a, mu=1.0) == pytest.approx(found.details["demanded"])
    fine = audit.verdict(CURVE, QUANTILES, QUANTILES)
    assert str(fine).startswith(
        "consistent: SubsampledGaussian(noise_multiplier = 1, sampling_prob = 0.1) x 20 "
    )
    json.loads(fine.to_json())


def test_single_run():
    rng = np.random.default_rng(6)
    included = rng.random(1000) < 0.5
    scores = 3.0 * included + rng.standard_normal(1000)
    found = audit.one_run_verdict(0.3, scores, included, 200)
    assert found.refuted and found.details["level"] < 0.05 and "guesses right" in found.line
    json.loads(found.to_json())
    assert not audit.one_run_verdict(3.0, scores, included, 200).refuted
    assert not audit.one_run_verdict(CURVE, rng.standard_normal(1000), included, 200).refuted
    assert found.mu_lower == audit.one_run_mu(1000, 200, found.details["num_correct"])


@pytest.mark.parametrize(
    ("claim", "words"),
    [
        ("strong", "claim must be a mechanism, a curve, a number mu, or a pair"),
        (-1.0, "claim must be a finite number >= 0"),
        ((1.0, 1.0), r"delta must be in \[0, 1\)"),
        (jaxgdp.Gaussian(noise_multiplier=np.array([1.0, 2.0])), "one mechanism, got a batch"),
        (jaxgdp.tradeoff(jaxgdp.Gaussian(1.0), adjacency="add", rtol=0.1), "both orders"),
    ],
)
def test_claims_that_are_refused(claim, words):
    with pytest.raises(ValueError, match=words):
        audit.verdict(claim, QUANTILES, QUANTILES)


def test_members_that_are_no_truth_values_are_refused():
    with pytest.raises(ValueError, match="truth value for each"):
        audit.one_run_verdict(1.0, [0.1, 0.2], [0.5, 1.0], 1)
    with pytest.raises(ValueError, match="at most the number of scores"):
        audit.one_run_verdict(1.0, [0.1, 0.2], [0, 1], 3)


def test_limits_by_names_of_the_version_before():
    limits = audit.from_counts(10, 100, 20, 100)
    with pytest.warns(DeprecationWarning, match="Limits.alpha is deprecated: write Limits.fpr"):
        assert limits.alpha is limits.fpr_limit
    with pytest.warns(DeprecationWarning, match="Limits.empirical_beta is deprecated"):
        assert limits.empirical_beta[0] == 0.2


def test_verdicts_of_one_run_have_their_confidence_together():
    """Of ten verdicts at 95 % together each has 99.5 %: p = 0.01 refutes alone, not among ten."""
    coins = np.arange(10) % 2 == 0
    scores = np.where(coins, 1.0, -1.0) * np.arange(1.0, 11.0)
    alone = audit.one_run_verdict((1e-9, 0.0), scores, coins, 7)
    assert alone.refuted and alone.details["level"] == pytest.approx(0.5**7, rel=1e-3)
    among = audit.one_run_verdict((1e-9, 0.0), scores, coins, 7, num_verdicts=10)
    assert not among.refuted and among.confidence == pytest.approx(0.995)
    assert audit.verdict(1.0, scores, scores - 0.1, num_verdicts=10).confidence == among.confidence
