"""Is it Gaussian-DP, with which μ, and from which rate on: every class of mechanism, statements,
and functions.
"""

import math

import numpy as np
import pytest
from by_day import some
from known_profiles import gaussian, laplace, laplace_mu, pure
from mechanisms_of_every_class import SETTINGS, element

import jaxgdp
from jaxgdp import bridge, gdp

# class → (μ_t of the second of its settings, whether it is Gaussian-DP), from the definitions of
# the mechanisms
TAILS = {
    "SubsampledGaussian": 1 / 2.0,
    "Gaussian": 1 / 5.0,
    "LastIterate": None,
    "MatrixMechanism": np.sqrt(4 * 1.25) / 4.0,
    "GaussianMixture": 2 / 3.0,
    "Laplace": 0.0,
    "SubsampledLaplace": 0.0,
    "DiscreteGaussian": 1 / 8.0,
    "DiscreteLaplace": 0.0,
    "RandomizedResponse": 0.0,
    "PureDP": 0.0,
    "ApproximateDP": np.inf,
    "ExponentialMechanism": 0.0,
    "FromPMFs": np.inf,
    "FromProfile": 0.0,
    "FromDensities": 0.0,
    "Deterministic": np.sqrt(4.0) / 5.0,
    "Shuffled": np.sqrt(2.0) / 0.8,
    "Selected": 0.0,
    "ThresholdedGaussian": np.inf,
    "ThresholdedLaplace": np.inf,
    "PartitionSelection": np.inf,
    "DrawnBatchSize": 1.0,
    "ShuffledReports": 0.0,
    "NoisyMaximum": np.sqrt(0.9) / 2,
    "SparseVector": 0.0,
    "RandomAllocation": 1 / 2.0,
    # (only what dominates them is known)
    "TruncatedPoisson": None,
    "FixedSize": None,
}


def second(name):
    """The second setting of a class, unbatched."""
    return element(name, 1)


def test_table_has_every_class():
    assert set(TAILS) == set(SETTINGS)


@pytest.mark.parametrize("name", some(3, sorted(SETTINGS), 2))
def test_every_class(name):
    verdict = bridge.identify(second(name))
    if TAILS[name] is None:
        assert (
            verdict.tail_mu is None
            and verdict.is_gdp is True
            and np.isnan(bridge.tail_mu(second(name)))
        )
        assert np.isfinite(verdict.everywhere.upper) and name in verdict.reason
        return
    assert verdict.tail_mu is not None
    np.testing.assert_allclose(verdict.tail_mu, TAILS[name], rtol=1e-14)
    assert verdict.is_gdp is bool(np.isfinite(TAILS[name]))
    assert np.isfinite(verdict.everywhere.upper) == verdict.is_gdp
    assert 0.0 < verdict.head_mu.lower <= verdict.head_mu.upper < np.inf
    assert (verdict.fpr_floor == 0.0) == (verdict.head_mu.upper == verdict.everywhere.upper)
    # Theorem 3.3: no smaller μ holds at every rate
    assert verdict.everywhere.upper >= verdict.tail_mu * (1 - 1e-12)
    assert verdict.reason and verdict.claim in str(verdict)


def test_compositions_add_squares():
    mixed = jaxgdp.compose(
        [
            (jaxgdp.Gaussian(2.0), 3),
            (jaxgdp.SubsampledGaussian(1.0, 0.01), 5),
            (jaxgdp.Laplace(3.0), 9),
        ]
    )
    np.testing.assert_allclose(bridge.tail_mu(mixed), math.sqrt(3 / 4 + 5), rtol=1e-14)
    assert bridge.tail_mu(jaxgdp.compose([mixed, jaxgdp.ApproximateDP(0.1, 1e-30)])) == np.inf
    assert bridge.tail_mu(
        jaxgdp.compose([mixed, jaxgdp.ApproximateDP(0.1, 0.0)])
    ) == bridge.tail_mu(mixed)
    np.testing.assert_allclose(
        bridge.tail_mu(jaxgdp.DiscreteGaussian(60.0, 16)), 16 / 60, rtol=1e-14
    )


def test_limit_is_the_limit():
    """ε/√(−2 log δ(ε)) of the closed profile far out, in the log domain."""
    from jaxgdp.numerics import gaussian_profile

    for mu in (0.1, 2.0):
        epsilon = mu * np.array([1e3, 1e5])
        ratio = epsilon / np.sqrt(-2.0 * gaussian_profile.log_delta(epsilon, np.full(2, mu)))
        assert np.all(np.abs(ratio / mu - 1.0) < [2e-3 + mu / 1e3, 2e-5 + mu / 1e5])
    curve = jaxgdp.tradeoff(jaxgdp.SubsampledGaussian(0.5, 0.1))
    epsilon = np.array([30.0, 60.0, 70.0])
    found = epsilon / np.sqrt(-2.0 * curve.log_delta(epsilon).upper)
    assert np.all(np.diff(np.abs(found - 2.0)) < 0.0) and abs(found[-1] - 2.0) < 0.2


def test_subsampled_gaussian_holds_above_the_floor_only():
    run = jaxgdp.dpsgd(noise_multiplier=9.4, sampling_prob=16384 / 50_000, num_steps=2000)
    verdict = bridge.identify(run)
    assert verdict.is_gdp and verdict.fpr_floor == 1e-10
    assert verdict.head_mu.lower <= 1.56695 <= verdict.head_mu.upper
    assert verdict.tail_mu is not None
    np.testing.assert_allclose(
        (verdict.tail_mu, *verdict.everywhere), math.sqrt(2000) / 9.4, rtol=1e-12
    )
    assert "sampling does not help" in verdict.reason and "1e-10" in verdict.claim


def test_statements():
    some = bridge.identify(bridge.refine([1.0, 2.0], [1e-5, 1e-9]))
    assert some.is_gdp is False and some.tail_mu == np.inf and some.fpr_floor <= 1e-10
    one = bridge.identify(jaxgdp.FromProfile([1.0, 2.0], [1e-5, 1e-9]))
    assert one.is_gdp is False and one.head_mu.lower <= some.head_mu.upper
    whole = bridge.identify(bridge.refine([1.0, 2.0], [1e-5, 0.0]))
    assert whole.is_gdp is True and whole.tail_mu == 0.0 and whole.fpr_floor == 0.0
    pair = jaxgdp.tradeoff(jaxgdp.FromProfile([1.0, 2.0], [1e-5, 0.0])).mu(0.0)
    assert whole.head_mu.lower <= pair.upper and pair.lower <= whole.head_mu.upper
    nothing = bridge.identify(bridge.refine(1.0, 1.0))
    assert nothing.is_gdp is False and nothing.head_mu.upper == np.inf


def test_functions():
    known = bridge.identify(gaussian(1.0))
    assert known.is_gdp is None and known.tail_mu is None and known.head_mu.contains(1.0)
    assert 0.0 < known.fpr_floor <= 1e-10 and "does not tell the tail" in known.reason
    for box, mu in ((laplace(1.0), laplace_mu(1.0)), (pure(1.0), gdp.mu_from_pure_dp(epsilon=1.0))):
        found = bridge.identify(box)
        assert found.is_gdp is True and found.tail_mu == 0.0 and found.fpr_floor == 0.0
        assert found.head_mu.lower <= mu <= found.head_mu.upper
    constant = bridge.identify(lambda e: 1e-5)
    assert (
        constant.is_gdp is None and constant.everywhere.upper == np.inf and "145" in constant.reason
    )
    perfect = bridge.identify(lambda e: 0.0)
    assert perfect.is_gdp is True and perfect.head_mu == (0.0, 0.0)


def test_function_that_is_no_profile_is_refined_first():
    found = bridge.identify(lambda e: math.exp(-e * e))
    assert "refine" in found.reason and found.head_mu.lower == 0.0
    # statements taken from it imply no less than all of it does: a finer set of them, from below
    grid = np.linspace(0.0, 12.0, 20001)
    implied = bridge.head_mu(bridge.refine(grid, np.exp(-grid * grid)), 12.0)
    assert implied.lower * (1 - 1e-2) <= found.head_mu.upper <= implied.upper * 1.02
    # every statement is met by the mechanism that has exactly what they imply, so its μ is not
    # above
    assert found.head_mu.upper >= implied.lower * (1 - 1e-4)


def test_function_that_overflows_far_out_is_no_error():
    found = bridge.identify(
        lambda e: float(gdp.delta(epsilon=e, mu=1.0)) if e < 25.0 else math.exp(1e4)
    )
    assert found.head_mu.contains(1.0)


def test_arguments():
    with pytest.raises(ValueError, match="scalar"):
        bridge.identify(jaxgdp.Laplace([1.0, 2.0]))
    with pytest.raises(ValueError, match="fpr_floor"):
        bridge.identify(laplace(1.0), fpr_floor=0.7)
    with pytest.raises(ValueError, match="must not increase"):
        bridge.identify(lambda e: min(0.1 * e, 1.0))
    with pytest.raises(ValueError, match="scalar"):
        bridge.tail_mu(jaxgdp.Gaussian([1.0, 2.0]))


def test_replacing_a_record_is_another_pair():
    curve = jaxgdp.tradeoff(jaxgdp.Gaussian(2.0), adjacency="replace_one")
    found = bridge.identify(curve)
    np.testing.assert_allclose((found.head_mu.upper, found.tail_mu or 0.0), 1.0, rtol=1e-9)
    with pytest.raises(ValueError, match="adjacency of the curve"):
        bridge.subsample(curve, 0.5)
    with pytest.raises(ValueError, match="adjacency of the curve"):
        bridge.clip_and_rectify(jaxgdp.tradeoff(jaxgdp.Laplace(2.0), adjacency="add"), 0.1)


# classes of which another example is identified above, and whose verdicts take seconds
LONG = {
    *("TruncatedPoisson", "Selected", "DrawnBatchSize", "LastIterate", "FixedSize", "Shuffled"),
    "ThresholdedLaplace",
}


@pytest.mark.slow
@pytest.mark.parametrize("left_out", [LONG, pytest.param(set(), marks=pytest.mark.nightly)])
def test_documented_table_has_every_mechanism_and_its_numbers(monkeypatch, left_out):
    from jaxgdp.bridge import verdicts

    shown = {type(m).__name__ for m in verdicts.examples().values()} | {"SubsampledGaussian"}
    public = {name for name in jaxgdp.mechanisms.__all__ if name[0].isupper()} - {"Mechanism"}
    assert shown >= public and left_out <= set(SETTINGS)
    listed = set(verdicts.examples())
    short = {k: m for k, m in verdicts.examples().items() if type(m).__name__ not in left_out}
    monkeypatch.setattr(verdicts, "examples", lambda: short)
    found = verdicts.verdicts()
    monkeypatch.setattr(
        verdicts, "verdicts", lambda: found
    )  # the table is made of these: not worked out again
    text = verdicts.markdown()
    pure, half = gdp.mu_from_pure_dp(epsilon=1.0), gdp.mu_from_pure_dp(epsilon=0.5)
    # (whether some μ holds everywhere, μ_t, the least μ at every rate), in closed form
    known = {
        "Gaussian(2)": (True, 0.5, 0.5),
        "SubsampledGaussian(1, 0.1)": (True, 1.0, 1.0),
        "GaussianMixture(1, 2 records at 0.1)": (True, 2.0, 2.0),
        "LastIterate(1, 0.05, 4 steps)": (True, 0.0, None),
        "MatrixMechanism(3 bands, 1, cyclic)": (True, math.sqrt(4 * 1.390625), None),
        "dpsgd(9.4, 0.32768, 2000)": (True, math.sqrt(2000) / 9.4, math.sqrt(2000) / 9.4),
        "Deterministic(2, 4 epochs)": (True, 1.0, 1.0),
        "Shuffled(1, 100 batches)": (True, 1.0, None),
        "RandomAllocation(1, 100 steps)": (True, 1.0, None),
        "RandomAllocation(Laplace(1), 100 steps)": (True, 0.0, None),
        "TruncatedPoisson(1, 0.02, 30 of 1000)": (True, 0.0, None),
        "FixedSize(1, 20 of 1000)": (True, 0.0, None),
        "DiscreteGaussian(2)": (True, 0.5, None),
        "Laplace(1)": (True, 0.0, laplace_mu(1.0)),
        "SubsampledLaplace(1, 0.1)": (True, 0.0, None),
        "DiscreteLaplace(1)": (True, 0.0, pure),
        "RandomizedResponse(1)": (True, 0.0, pure),
        "PureDP(1)": (True, 0.0, pure),
        "ApproximateDP(1, 1e-6)": (False, np.inf, np.inf),
        "ExponentialMechanism(1)": (True, 0.0, half),
        "FromPMFs, same outputs": (True, 0.0, None),
        "FromPMFs, one output of Q only": (False, np.inf, np.inf),
        "FromProfile, last δ = 0": (True, 0.0, None),
        "FromProfile, last δ = 1e-6": (False, np.inf, np.inf),
        "FromDensities, nothing missing": (True, 0.0, None),
        "Selected(Gaussian(2), Geometric(10))": (True, 0.5, None),
        "DrawnBatchSize(1, 0.1 of 50)": (True, 1.0, None),
        "ShuffledReports(1, 1000 users)": (True, 0.0, None),
        "NoisyMaximum(2, 10 candidates, gaussian)": (True, math.sqrt(0.9), None),
        "NoisyMaximum(2, 10 candidates, permute-and-flip)": (True, 0.0, None),
        "SparseVector(2, 4, 20 queries)": (True, 0.0, None),
        "SparseVector(2, 4, 20 queries, gaussian)": (True, 0.0, None),
        "ThresholdedGaussian(2, 12)": (False, np.inf, np.inf),
        "ThresholdedLaplace(2, 25)": (False, np.inf, np.inf),
        "PartitionSelection(1, 1e-6)": (False, np.inf, np.inf),
    }
    assert listed == set(known) and set(found) == set(short)
    for name in found:
        holds, tail, mu = known[name]
        verdict = found[name]
        assert verdict.is_gdp is holds and f"| {name} |" in text, name
        np.testing.assert_allclose(verdict.tail_mu or 0.0, tail, rtol=1e-12)
        if mu is not None:
            low, high = verdict.everywhere.lower, verdict.everywhere.upper
            assert low * (1 - 1e-9) <= mu <= high * (1 + 1e-9) and (
                np.isinf(mu) or high - low <= 2e-3 * mu
            ), name


@pytest.mark.parametrize("mechanism", [jaxgdp.PureDP(0.0), jaxgdp.RandomizedResponse(0.0, 3)])
def test_perfect_privacy(mechanism):
    # (at floor 0 the upper side was −∞, which was taken for a contradiction)
    everywhere = jaxgdp.tradeoff(mechanism).mu(0.0)
    assert everywhere.lower == 0.0 and 0.0 <= everywhere.upper <= 1e-14
    found = bridge.identify(mechanism)
    assert (
        found.is_gdp is True
        and found.tail_mu == 0.0
        and found.fpr_floor == 0.0
        and found.head_mu.upper <= 1e-14
    )
    head = bridge.head_mu(mechanism, 1.0)
    assert head.lower == 0.0 and head.upper <= 1e-14
