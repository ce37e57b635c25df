"""Epsilon* of one model: by hand, against two Gaussians known exactly, compiled against host, and
what is refused.
"""

import jax
import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import log_ndtr, ndtr, ndtri

from jaxgdp import audit
from jaxgdp.audit import mixtures
from jaxgdp.audit.epsilon_star import of_mixtures


def by_hand(member, nonmember, delta):
    best = 1.0
    for tau in np.unique(np.concatenate([member, nonmember])):
        t, n = np.mean(nonmember <= tau), np.mean(member > tau)
        if 0.001 < t < 0.999 and 0.001 < n < 0.999:
            best = max(
                best,
                (1 - delta - n) / t,
                (1 - delta - t) / n,
                (n - delta) / (1 - t),
                (t - delta) / (1 - n),
            )
    return np.log(best)


@pytest.mark.parametrize("delta", [0.0, 1e-3, 0.1])
def test_empirical_by_hand(delta):
    rng = np.random.default_rng(0)
    member, nonmember = np.round(rng.gamma(2.0, 5.0, 700), 1), np.round(rng.gamma(3.0, 5.0, 450), 1)
    found = audit.epsilon_star(member, nonmember, delta)
    assert found == pytest.approx(by_hand(member, nonmember, delta), abs=1e-12)
    # the worse order is counted as well: losses of members that are larger
    assert audit.epsilon_star(nonmember, member, delta) == pytest.approx(
        by_hand(nonmember, member, delta), abs=1e-12
    )


def test_batches_are_compiled_and_agree_with_the_host(monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    rng = np.random.default_rng(1)
    member, nonmember = rng.gamma(2.0, 5.0, (12, 300)), rng.gamma(3.0, 5.0, 200)
    many = audit.epsilon_star(member, nonmember, 1e-3)
    assert many.shape == (12,)
    single = [audit.epsilon_star(row, nonmember, 1e-3) for row in member]
    np.testing.assert_allclose(many, single, rtol=0, atol=1e-12)


def true_epsilon_star(shift, delta):
    """max of log (Pr[N(shift, 1) ≥ τ] − δ)/Pr[N(0, 1) ≥ τ] over τ with both rates in (δ, 1 − δ);
    the rest by symmetry is the same.
    """
    ratio = lambda tau: -(np.log(max(ndtr(shift - tau) - delta, 1e-300)) - log_ndtr(-tau))
    ends = shift - 8.0, min(-ndtri(delta), shift + ndtri(1.0 - delta))
    return -minimize_scalar(ratio, bounds=ends, method="bounded", options={"xatol": 1e-10}).fun


@pytest.mark.parametrize(("shift", "delta"), [(0.5, 1e-3), (1.0, 1e-5), (3.0, 1e-5)])
def test_epsilon_star_of_two_gaussians_is_the_supremum(shift, delta):
    one = lambda mean: mixtures.Mixture(np.ones(1), np.array([mean]), np.ones(1))
    assert of_mixtures(one(shift), one(0.0), delta) == pytest.approx(
        true_epsilon_star(shift, delta), rel=1e-3
    )


def test_parametric_is_that_of_the_fitted_gaussians():
    rng = np.random.default_rng(2)
    # losses whose transformation is normal: inverse of logit(e^{−x})
    inverse = lambda phi: np.logaddexp(0.0, -phi)
    phi = np.clip(rng.normal(-1.2, 0.1, (2, 4000)) + np.array([[0.05], [0.0]]), -1.85, -0.55)
    ends = np.array([1.0, 2.0])
    member, nonmember = np.append(inverse(phi[0]), ends), np.append(inverse(phi[1]), ends)
    again = mixtures.transformed(member, nonmember)
    np.testing.assert_allclose(again[0][:-2], phi[0], atol=1e-12)
    found = audit.epsilon_star(member, nonmember, 1e-3, method="parametric")
    fits = [mixtures.Mixture(np.ones(1), np.array([x.mean()]), np.array([x.std()])) for x in again]
    assert found == pytest.approx(of_mixtures(*fits, 1e-3), abs=1e-12)
    assert found.side == "estimate" and "not a bound on the training mechanism" in str(found)
    low, high = audit.epsilon_star_interval(member, nonmember, 1e-3, method="parametric", draws=40)
    assert low < found < high and high - low < found


def test_same_distribution_is_near_zero_and_an_interval_shows_the_noise():
    rng = np.random.default_rng(3)
    losses = rng.gamma(2.0, 5.0, (2, 20_000))
    assert audit.epsilon_star(*losses, 1e-5, method="parametric") < 0.05
    low, high = audit.epsilon_star_interval(*losses[:, :500], 1e-5, draws=50)
    assert 0.0 <= low < audit.epsilon_star(*losses[:, :500], 1e-5) * 1.5 < high * 3.0


def test_classes_that_are_far_apart_are_not_called_private():
    member, nonmember = np.linspace(0.0, 1.0, 2000), np.linspace(2.0, 3.0, 2000)
    # no threshold has both rates inside (0.001, 0.999): what the smallest rates kept would say
    assert audit.epsilon_star(member, nonmember) == pytest.approx(np.log(0.999 / 0.001))
    # few records cannot say as much
    assert audit.epsilon_star(member[:20], nonmember[:20]) == pytest.approx(np.log(0.95 / 0.05))
    assert audit.epsilon_star(member, nonmember, method="parametric") > 6.0
    # the other way round, and where half of the others have a loss that no member has
    assert audit.epsilon_star(nonmember, member) == pytest.approx(np.log(0.999 / 0.001))
    half = np.repeat([0.0, 1.0], 1000)
    assert audit.epsilon_star(np.zeros(2000), half) == pytest.approx(np.log(0.5 / 0.001))
    assert audit.epsilon_star(half, np.zeros(2000)) == pytest.approx(np.log(0.5 / 0.001))


def test_constant_losses_are_zero():
    ones = np.ones(50)
    assert audit.epsilon_star(ones, ones[:10]) == audit.epsilon_star(ones[:10], ones) == 0.0
    assert (
        audit.epsilon_star(ones, ones) == audit.epsilon_star(ones, ones, method="parametric") == 0.0
    )


@pytest.mark.parametrize(
    ("arguments", "settings", "words"),
    [
        ((np.ones(9), np.ones(50)), {}, "member_losses must hold at least 10 losses"),
        ((np.ones(50), np.ones(9)), {}, "nonmember_losses must hold at least 10 losses"),
        ((np.ones(50), []), {}, "nonmember_losses must hold at least one score"),
        ((np.full(50, np.nan), np.ones(50)), {}, "no NaN, got 50 of 50"),
        ((np.full(50, np.inf), np.ones(50)), {}, "must be finite, got 50 infinite"),
        ((np.ones(50), np.ones(50)), {"delta": 0.5}, "delta must be one number in"),
        (
            (np.ones(50), np.ones(50)),
            {"method": "kde"},
            "method must be one of 'empirical', 'parametric'",
        ),
        ((np.ones((2, 50)), np.ones(50)), {"method": "parametric"}, "one model at a time"),
        (
            (np.arange(50.0), np.ones(50)),
            {"method": "parametric", "components": 21},
            "from 1 to 20",
        ),
    ],
)
def test_bad_arguments_of_epsilon_star_are_refused(arguments, settings, words):
    with pytest.raises(ValueError, match=words):
        audit.epsilon_star(*arguments, **settings)


def test_mixtures_and_their_fit():
    pytest.importorskip("sklearn")
    rng = np.random.default_rng(4)
    values = np.concatenate([rng.normal(-3.0, 0.5, 3000), rng.normal(2.0, 1.0, 1500)])
    found = mixtures.fit(values, components=2)
    np.testing.assert_allclose(found.means, [-3.0, 2.0], atol=0.1)
    np.testing.assert_allclose(found.deviations, [0.5, 1.0], atol=0.05)
    prob = np.array([1e-6, 0.1, 0.5, 0.9, 1.0 - 1e-6])
    np.testing.assert_allclose(found.below(found.quantile(prob)), prob, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.above(found.quantile(prob)), 1.0 - prob, rtol=1e-6)
    # one Gaussian is refuted, two are not
    assert mixtures.goodness_of_fit(values, 1) < 1e-6 < 0.01 < mixtures.goodness_of_fit(values, 2)
    with pytest.raises(ValueError, match="at least ten of 4500 values"):
        mixtures.goodness_of_fit(values, 1, num_samples=4495)
    one = mixtures.fit(values)
    assert one.means[0] == pytest.approx(values.mean()) and one.quantile(0.5) == pytest.approx(
        values.mean()
    )
    assert ndtri(one.below(values.mean() + values.std())) == pytest.approx(1.0)


def test_components_are_chosen_by_the_criterion(monkeypatch):
    pytest.importorskip("sklearn")
    monkeypatch.setattr(mixtures, "MOST", 4)
    rng = np.random.default_rng(5)
    values = np.concatenate([rng.normal(-3.0, 0.5, 800), rng.normal(3.0, 0.5, 800)])
    assert len(mixtures.fit(values, "bic").weights) == 2
    with pytest.raises(ValueError, match="'bic'"):
        mixtures.fit(values, "aic")


@pytest.mark.parametrize("method", ["empirical", "parametric"])
def test_epsilon_star_lies_inside_its_own_interval(method):
    rng = np.random.default_rng(3)
    for _ in range(5):
        member, nonmember = rng.gamma(2.0, 1.0, (2, 200))
        value = float(audit.epsilon_star(member, nonmember, method=method))
        low, high = audit.epsilon_star_interval(member, nonmember, method=method, draws=20)
        assert 0.0 <= low <= value <= high
