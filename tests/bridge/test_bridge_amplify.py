"""Clipping, rectifying and sampling: exact pairs by enumeration, and what the functions on data
really do.
"""

import math

import jax
import numpy as np
import pytest

import jaxgdp
from jaxgdp import bridge


def clipped_profile(epsilon, fpr, rate, losses, p):
    """δ of a finite pair whose ends are merged and rectified, by enumeration; whole atoms are
    merged, so ``fpr`` is a vertex.
    """
    q = p * np.exp(losses)
    top = np.cumsum(p[::-1])[::-1] <= fpr * (1 + 1e-12)
    bottom = np.cumsum(q) <= fpr * (1 + 1e-12)
    keep = ~(top | bottom)
    pairs = [(p[top].sum(), q[top].sum()), (p[bottom].sum(), q[bottom].sum())]
    rows = [((1 - rate) * a + rate / 2, (1 - rate) * b + rate / 2) for a, b in pairs]
    rows += [((1 - rate) * a, (1 - rate) * b) for a, b in zip(p[keep], q[keep], strict=True)]
    gamma = np.exp(epsilon)[:, None]
    a, b = np.array(rows).T
    return np.maximum(
        np.sum(np.maximum(b - gamma * a, 0.0), axis=1),
        np.sum(np.maximum(a - gamma * b, 0.0), axis=1),
    )


def binomial_pair(epsilon, uses):
    """Losses and P-masses of randomized response used a number of times."""
    k = np.arange(uses + 1)
    flip = 1.0 / (1.0 + math.exp(epsilon))
    weight = np.array([math.comb(uses, int(i)) for i in k], float)
    return epsilon * (2.0 * k - uses), weight * flip**k * (1 - flip) ** (uses - k)


@pytest.mark.parametrize("rate", [0.0, 0.1])
@pytest.mark.parametrize("number", [1, 3])
def test_bound_is_never_less_than_the_clipped_pair_itself(number, rate):
    losses, p = binomial_pair(0.4, 8)
    fpr = float(p[-number:].sum())
    found = bridge.clip_and_rectify(
        jaxgdp.compose([(jaxgdp.RandomizedResponse(0.4), 8)]), fpr, rate
    )
    at = np.linspace(0.0, 3.5, 29)
    exact = clipped_profile(at, fpr, rate, losses, p)
    assert np.all(found.profile(at) >= exact * (1 - 1e-12))
    if rate == 0.0:
        # and no more: the largest loss is that of the merged outputs
        np.testing.assert_allclose(found.profile(at), exact, rtol=2e-3, atol=1e-6)
        q = p * np.exp(losses)
        np.testing.assert_allclose(
            found.profile.epsilon[-1], math.log(q[-number:].sum() / fpr), rtol=1e-9
        )


def test_mass_at_infinity_is_mended():
    source = jaxgdp.ApproximateDP(1.0, 1e-3)
    assert bridge.identify(source).is_gdp is False
    by_clip = bridge.clip_and_rectify(source, 1e-2)
    by_coin = bridge.clip_and_rectify(source, 0.0, rate=0.01)
    for found in (by_clip, by_coin):
        verdict = bridge.identify(found.mechanism)
        assert verdict.is_gdp is True and verdict.tail_mu == 0.0 and verdict.fpr_floor == 0.0
        assert np.isfinite(found.mu.upper) and verdict.head_mu.lower <= found.mu.upper
        assert found.profile.infinite_mass == 0.0
    # the coin: with r = 0.01 the merged Q-mass δ meets r/2 of P-mass
    at = np.linspace(0.0, 2.0, 9)
    rows_p = [0.99 * x for x in (0.999 / (1 + math.exp(-1)), 0.999 / (1 + math.e))] + [
        0.005,
        0.005 + 0.99e-3,
    ]
    rows_q = [rows_p[1], rows_p[0], rows_p[3], rows_p[2]]
    exact = [
        sum(max(b - math.exp(e) * a, 0.0) for a, b in zip(rows_p, rows_q, strict=True)) for e in at
    ]
    assert np.all(by_coin.profile(at) >= np.array(exact) * (1 - 1e-12))
    # used again and again it stays Gaussian-DP, with more than the μ of one use
    twice = jaxgdp.tradeoff(jaxgdp.compose([(by_clip.mechanism, 2)]), rtol=3e-2).mu()
    assert by_clip.mu.lower < twice.upper and twice.lower <= by_clip.mu.upper * math.sqrt(2)


def test_utility_and_head():
    source = jaxgdp.Gaussian(1.0)
    found = bridge.clip_and_rectify(source, 1e-6)
    # what is clipped: 1e-6 at one end, TPR(1e-6) at the other
    tpr = float(jaxgdp.gdp.tpr(fpr=1e-6, mu=1.0))
    assert 1e-6 + tpr <= found.changed <= (1e-6 + tpr) * (1 + 1e-6)
    # Theorem 4.4: no more than the head μ
    assert found.mu.upper <= 1.0 + 2e-4
    assert bridge.clip_and_rectify(source, 0.05, rate=0.2).mu.upper < found.mu.upper


def test_bounds_on_outputs():
    a = bridge.clipped_fpr(jaxgdp.Laplace(2.0), -10.0, 20.0, query=(0.0, 10.0), sensitivity=0.5)
    np.testing.assert_allclose(a, 0.5 * math.exp(-20.0 / 1.0), rtol=1e-8)
    b = bridge.clipped_fpr(jaxgdp.Gaussian(3.0), -10.0, 12.0, query=(0.0, 10.0))
    np.testing.assert_allclose(b, 0.5 * math.erfc(20.0 / 3.0 / math.sqrt(2.0)), rtol=1e-8)
    # the least P-mass behind a bound over all answers in the range
    for query in (0.0, 4.0, 10.0):
        upper_tail, lower_tail = (
            0.5 * math.exp(-abs(x) / 2.0) for x in (16.0 - query, query + 6.0)
        )
        assert bridge.clipped_fpr(jaxgdp.Laplace(2.0), -6.0, 16.0, query=(0.0, 10.0)) <= min(
            upper_tail, lower_tail
        )


@pytest.mark.parametrize("rng", [np.random.default_rng(3), jax.random.key(3)], ids=["numpy", "jax"])
def test_outputs_are_really_clipped_and_coins_really_thrown(rng):
    values = np.concatenate([np.full(40_000, 0.25), [np.inf, -np.inf, np.nan, 7.0, -7.0]])
    shown = bridge.clip_and_rectify_outputs(values, -1.0, 2.0, 0.3, rng=rng)
    assert isinstance(shown, jax.Array) == (not isinstance(rng, np.random.Generator))
    shown = np.asarray(shown)
    assert set(np.unique(shown)) == {-1.0, 0.25, 2.0} and shown.shape == values.shape
    shares = [np.mean(shown[:40_000] == v) for v in (-1.0, 0.25, 2.0)]
    np.testing.assert_allclose(shares, [0.15, 0.7, 0.15], atol=5.5 * math.sqrt(0.21 / 40_000))
    plain = np.asarray(bridge.clip_and_rectify_outputs(values[-5:], -1.0, 2.0, rng=rng))
    assert plain.tolist() == [2.0, -1.0, 2.0, 2.0, -1.0]


def test_outputs_under_jit():
    run = jax.jit(
        lambda values, key: bridge.clip_and_rectify_outputs(values, 0.0, 1.0, 0.5, rng=key)
    )
    found = np.asarray(run(np.linspace(-2.0, 3.0, 64), jax.random.key(1)))
    assert found.min() == 0.0 and found.max() == 1.0 and np.any((found > 0.0) & (found < 1.0))


@pytest.mark.parametrize("rng", [np.random.default_rng(5), jax.random.key(5)], ids=["numpy", "jax"])
def test_samples_are_drawn(rng):
    mask = np.asarray(bridge.poisson_mask(50_000, 0.2, rng=rng))
    assert mask.dtype == bool and mask.shape == (50_000,)
    assert abs(mask.mean() - 0.2) < 5.5 * math.sqrt(0.16 / 50_000)
    assert np.asarray(bridge.poisson_mask(10, 1.0, rng=rng)).all()


@pytest.mark.parametrize("p", [0.5, 0.1])
def test_sampling_by_the_profile_and_exactly(p):
    found = bridge.subsample(jaxgdp.Laplace(1.0), p)
    assert isinstance(found.mechanism, jaxgdp.SubsampledLaplace)
    exact = jaxgdp.tradeoff(found.mechanism)
    at = np.linspace(0.0, 0.8, 9)
    delta = exact.delta(at)
    assert np.all(found.profile(at) >= delta.lower * (1 - 1e-9))
    np.testing.assert_allclose(found.profile(at), delta.upper, rtol=5e-3, atol=1e-6)
    assert found.mu.lower <= exact.mu(0.0).upper * (1 + 1e-9) and exact.mu(
        0.0
    ).lower <= found.mu.upper * (1 + 1e-9)
    # (Balle et al. 2020, Theorem 8), in closed form
    base = np.linspace(0.0, 1.0, 7)
    expected = p * -np.expm1(0.5 * (base - 1.0))
    np.testing.assert_allclose(
        found.profile(np.log1p(p * np.expm1(base))), expected, rtol=1e-3, atol=1e-9
    )


def test_sampling_of_what_has_no_form_of_its_own():
    source = jaxgdp.compose([(jaxgdp.RandomizedResponse(0.5), 3)])
    found = bridge.subsample(source, 0.25)
    losses, p = binomial_pair(0.5, 3)
    q = p * np.exp(losses)
    mixed = 0.75 * p + 0.25 * q
    at = np.linspace(0.0, 1.2, 13)
    exact = [
        max(np.sum(np.maximum(b - math.exp(e) * a, 0.0)) for a, b in ((p, mixed), (mixed, p)))
        for e in at
    ]
    assert np.all(found.profile(at) >= np.array(exact) * (1 - 1e-12))
    np.testing.assert_allclose(found.profile(at), exact, rtol=2e-3, atol=1e-6)
    assert found.mu.upper < bridge.identify(source).head_mu.lower
    # far in the tail of a Gaussian sampling does not help
    gaussian = bridge.subsample(jaxgdp.Gaussian(2.0), 0.1)
    assert isinstance(gaussian.mechanism, jaxgdp.SubsampledGaussian)
    np.testing.assert_allclose(gaussian.mu.upper, 0.5, rtol=1e-9)
    assert bridge.subsample(jaxgdp.ApproximateDP(1.0, 1e-4), 0.1).mu.upper == np.inf


def test_summary_compares_three_routes():
    found = bridge.summarize(jaxgdp.compose([(jaxgdp.PureDP(0.2), 50)]), deltas=[1e-2, 1e-5])
    np.testing.assert_allclose(
        found.by_parts, math.sqrt(50) * jaxgdp.gdp.mu_from_pure_dp(epsilon=0.2), rtol=1e-6
    )
    assert found.whole.fpr_floor == 0.0 and found.whole.head_mu.upper < found.by_parts
    assert np.all(found.exact.upper <= found.by_mu * (1 + 1e-6)) and np.all(
        found.by_mu <= found.by_parts_epsilon
    )
    header, rows = found.table()
    assert len(rows) == 2 and len(header) == len(rows[0]) and "by parts" in str(found)
    endless = bridge.summarize(
        jaxgdp.compose([(jaxgdp.ApproximateDP(0.2, 1e-9), 5)]), deltas=[1e-5]
    )
    assert (
        endless.by_parts == np.inf
        and endless.by_parts_epsilon[0] == np.inf
        and np.isfinite(endless.exact.upper[0])
    )


def test_bad_rates_of_clipping_are_refused():
    laplace = jaxgdp.Laplace(1.0)
    for call, words in (
        (lambda: bridge.clip_and_rectify(laplace, 0.0), "fpr or rate must be above 0"),
        (lambda: bridge.clip_and_rectify(jaxgdp.Gaussian(1.0), 0.0, 0.1), "unbounded"),
        (lambda: bridge.clip_and_rectify(laplace, 0.3), "fpr must be in"),
        (lambda: bridge.clip_and_rectify(lambda e: 0.1, 0.1), "source must be a scalar mechanism"),
        (
            lambda: bridge.clipped_fpr(jaxgdp.PureDP(1.0), 0.0, 1.0, (0.0, 1.0)),
            "as Laplace and Gaussian do",
        ),
        (lambda: bridge.clipped_fpr(laplace, 1.0, 0.0, (0.0, 1.0)), "in order"),
        (
            lambda: bridge.clip_and_rectify_outputs([0.0], 1.0, 0.0, rng=np.random.default_rng()),
            "lower must be below",
        ),
        (lambda: bridge.subsample(laplace, 0.0), "sampling_prob"),
        (lambda: bridge.subsample(jaxgdp.Laplace([1.0, 2.0]), 0.5), "scalar"),
    ):
        with pytest.raises(ValueError, match=words):
            call()


def test_amplified_mechanism_is_taken_wherever_a_mechanism_is():
    mended = bridge.clip_and_rectify(jaxgdp.ApproximateDP(1.0, 0.1), fpr=0.01)
    own = mended.mechanism
    for question in (
        lambda m: bridge.gdp_transformation(m, [0.0, 1.0], rtol=0.1),
        lambda m: bridge.tail_mu(m),
        lambda m: jaxgdp.measure(m, "advantage").brackets["advantage"],
        lambda m: jaxgdp.measure(
            jaxgdp.compose([(m, 2), jaxgdp.Gaussian(3.0)]), "advantage"
        ).brackets["advantage"],
        lambda m: jaxgdp.audit.as_claim(m).fnr(np.array([0.1])),
    ):
        np.testing.assert_array_equal(np.asarray(question(mended)), np.asarray(question(own)))
    # (1, 0.1)-DP clipped at FPR 0.01: the chord through (0.01, TPR) is steeper than e
    verdict = bridge.identify(mended)
    tpr = 0.1 + math.e * 0.01
    assert verdict.is_gdp and verdict.tail_mu == 0.0
    np.testing.assert_allclose(mended.profile.epsilon[-1], math.log(tpr / 0.01), rtol=1e-9)
