"""Batches in a fixed order and shuffled ones: published numbers, closed forms, enumeration and
simulation.
"""

import mpmath
import numpy as np
import pytest
from scipy.special import logsumexp

import jaxgdp
from jaxgdp import Deterministic, Shuffled, gdp, measure
from jaxgdp.mechanisms.shuffled_attack import log_below, slices


def delta(mechanism, epsilon, **others):
    return measure(mechanism, "delta", epsilon=np.asarray(epsilon, float), **others).brackets[
        "delta"
    ]


def test_fixed_order_is_gaussian():
    sigma, epochs = np.array([0.5, 1.0, 3.0]), np.array([1.0, 4.0, 10.0])
    found = measure(
        Deterministic(sigma, epochs), ("mu", "epsilon", "advantage"), delta=1e-5
    ).brackets
    mu = np.sqrt(epochs) / sigma
    assert (
        found["mu"].contains(mu).all()
        and found["epsilon"].contains(gdp.epsilon(delta=1e-5, mu=mu)).all()
    )
    assert np.all(found["advantage"].width < 1e-6)
    # Proposition 3.1 of Chua et al. 2024, and replacing a record: twice as much
    with mpmath.workdps(40):
        s, e = mpmath.mpf("0.35"), 4
        exact = mpmath.ncdf(1 / (2 * s) - s * e) - mpmath.exp(e) * mpmath.ncdf(-1 / (2 * s) - s * e)
    assert delta(Deterministic(0.35), 4.0).contains(float(exact))
    both = measure(Deterministic(2.0, 4), "mu", adjacency="replace_one").brackets["mu"]
    assert both.contains(2.0)


# σ, T, ε, δ of the best of the paper's events, or the bound that the paper prints
PUBLISHED = [
    (0.35, 1000, 1.0, 0.75315),
    (0.35, 1000, 4.0, 0.38341),
    (0.35, 1000, 8.0, 0.050066),
    (0.4, 10_000, 4.0, 0.226),
    (0.4, 10_000, 12.0, 7.47e-5),
    (0.8, 1000, 1.0, 0.0179478),
    (0.8, 1000, 4.0, 1.5958e-4),
    (1.0, 1000, 0.5, 0.00433),
    (1.0, 1000, 4.0, 4.38e-7),
]


@pytest.mark.parametrize("all_of_them", [False, pytest.param(True, marks=pytest.mark.nightly)])
def test_published_numbers(all_of_them):
    sigma, batches, epsilon, least = (np.array(column) for column in zip(*PUBLISHED, strict=True))
    found = delta(Shuffled(sigma, batches), epsilon)
    assert np.all(found.lower >= least * (1.0 - 2e-4)) and np.all(
        found.lower <= least * (1.0 + 1e-2)
    )
    assert np.all(found.upper >= least) and np.allclose(
        found.upper, gdp.delta(epsilon=epsilon, mu=1.0 / sigma), rtol=1e-6
    )
    for sigma, batches, rate, low, high in (
        (0.7, 1000, 1e-5, 6.528, 6.653),
        *(((0.5, 10_000, 1e-6, 10.994, 10.998),) if all_of_them else ()),
    ):
        epsilon = measure(Shuffled(sigma, batches), "epsilon", delta=rate).brackets["epsilon"]
        assert low <= epsilon.lower <= epsilon.upper <= high


def test_single_batch_is_a_fixed_order():
    found = measure(Shuffled([0.7, 2.0], 1), ("epsilon", "advantage"), delta=1e-6).brackets
    assert np.all(found["epsilon"].width < 1e-3 * found["epsilon"].upper)
    assert np.all(found["advantage"].width < 2e-3 * found["advantage"].upper)


@pytest.mark.parametrize(
    "sigma, batches, means",
    [(0.3, 7, (1.0, 2.0)), (1.0, 1000, (1.0, 2.0)), (20.0, 10**6, (0.0, 2.0))],
)
def test_masses_of_slices_are_as_exact_as_stated(sigma, batches, means):
    loss, log_p, error = slices(sigma, batches, means)
    assert error < 1e-9
    assert np.isclose(np.exp(logsumexp(log_p)), 1.0, rtol=1e-9)
    assert np.isclose(np.exp(logsumexp((log_p + loss)[log_p > -np.inf])), 1.0, rtol=1e-9)
    # a tail of slices is the event that the largest sum is beyond a threshold
    with mpmath.workdps(60):
        phi = lambda x: mpmath.erfc(-x / mpmath.sqrt(2)) / 2
        for c in (0.5 * sigma, 4.0 * sigma, 1.0 + 9.0 * sigma):
            exact = mpmath.log(phi((mpmath.mpf(c) - means[1]) / sigma)) + (
                batches - 1
            ) * mpmath.log(phi(mpmath.mpf(c) / sigma))
            ours = log_below(c, sigma, float(batches), means[1])
            assert abs(float(mpmath.mpf(float(ours)) / exact - 1)) < 1e-14 * 4


def hockey_stick(sigma, batches, epsilon, runs, rng):
    """Unbiased estimate of D(P₂‖P₁) at e^ε by simulation under P₂, and its standard error."""
    x = sigma * rng.standard_normal((runs, batches))
    x[:, 0] += 2.0
    log_ratio = logsumexp((4.0 * x - 4.0) / (2.0 * sigma**2), axis=1) - logsumexp(
        (2.0 * x - 1.0) / (2.0 * sigma**2), axis=1
    )
    gain = np.maximum(-np.expm1(np.minimum(epsilon - log_ratio, 0.0)), 0.0)
    return gain.mean(), gain.std() / np.sqrt(runs)


@pytest.mark.parametrize("every", [3, pytest.param(1, marks=pytest.mark.nightly)])
def test_no_more_than_the_pair_it_attacks_and_no_less_than_simulation_of_the_attack(every):
    rng = np.random.default_rng(13)
    settings = [(s, t, e) for s in (0.4, 0.6, 0.8, 1.2, 2.0) for t in (4, 40) for e in (0.1, 1.0)]
    settings = settings[::every]
    sigma, batches, epsilon = (np.array(column) for column in zip(*settings, strict=True))
    found = delta(Shuffled(sigma, batches), epsilon, rtol=1e-2)
    runs = 20_000
    for i, (s, t, e) in enumerate(settings):
        mean, error = hockey_stick(s, t, e, runs, rng)
        error += 1.0 / runs  # (what is too rare to be seen)
        assert found.lower[i] <= mean + 5.0 * error, settings[i]
        assert found.upper[i] >= mean - 5.0 * error, settings[i]
        # the event of the best threshold, simulated
        c = np.linspace(-s, 2.0 + 8.0 * s, 4001)
        with_record, without = (-np.expm1(log_below(c, s, float(t), m)) for m in (2.0, 1.0))
        best = c[np.argmax(with_record - np.exp(e) * without)]
        noise = s * rng.standard_normal((runs, t))
        rates = [np.mean(np.max(noise + m * np.eye(1, t), axis=1) >= best) for m in (2.0, 1.0)]
        room = 5.0 * (np.sqrt(rates[0] / runs) + np.exp(e) * np.sqrt(rates[1] / runs)) + 5.0 / runs
        assert found.lower[i] >= rates[0] - np.exp(e) * rates[1] - room, settings[i]


@pytest.mark.parametrize("adjacency, order", [("remove", 1.0), ("add", -1.0)])
def test_two_epochs_are_as_an_enumeration_of_the_attack_has_them(adjacency, order):
    sigma, batches, epsilon = 0.7, 20, 1.5
    loss, log_p, _ = slices(sigma, float(batches), (1.0, 2.0))
    p, q = np.exp(log_p), np.exp(log_p + loss)
    p, q = (p, q) if order > 0 else (q, p)
    exact = sum(
        np.sum(np.maximum(a * q - np.exp(epsilon) * b * p, 0.0)) for a, b in zip(q, p, strict=True)
    )
    found = delta(Shuffled(sigma, batches, 2), epsilon, adjacency=adjacency)
    assert 0.97 * exact <= found.lower <= exact * (1.0 + 1e-9)
    # one permutation for both epochs: means of two sums, of noise σ/√2
    once = delta(Shuffled(sigma, batches, 2, reshuffle=False), epsilon, adjacency=adjacency)
    same = delta(Shuffled(sigma / np.sqrt(2.0), batches), epsilon, adjacency=adjacency)
    assert np.isclose(once.lower, same.lower, rtol=1e-12) and np.isclose(
        once.upper, same.upper, rtol=1e-9
    )


def test_monotone_and_never_beyond_a_fixed_order():
    sigma = np.array([0.4, 0.6, 1.0, 2.0])
    by_noise = measure(Shuffled(sigma, 100), "epsilon").brackets["epsilon"]
    assert np.all(np.diff(by_noise.lower) < 0.0) and np.all(np.diff(by_noise.upper) < 0.0)
    by_batches = measure(Shuffled(0.7, [1, 10, 100, 1000]), "epsilon").brackets["epsilon"]
    assert np.all(np.diff(by_batches.lower) < 0.0) and np.ptp(by_batches.upper) == 0.0
    order = measure(Deterministic(sigma), "epsilon").brackets["epsilon"]
    assert np.all(by_noise.lower <= order.upper) and np.allclose(
        by_noise.upper, order.upper, rtol=1e-9
    )
    replaced = measure(Shuffled(1.0, 100), ("mu", "advantage"), adjacency="replace_one").brackets
    one = measure(Shuffled(1.0, 100), ("mu", "advantage")).brackets
    for name, bracket in one.items():
        assert bracket.lower < replaced[name].lower and bracket.upper < replaced[name].upper


def test_curves_and_compositions():
    curve = jaxgdp.tradeoff(Shuffled(0.6, 50), rtol=1e-2)
    one = measure(Shuffled(0.6, 50), ("epsilon", "advantage"), rtol=1e-2).brackets
    assert np.isclose(curve.epsilon(1e-5).lower, one["epsilon"].lower, rtol=1e-3)
    assert np.isclose(curve.advantage().lower, one["advantage"].lower, rtol=1e-3)
    alpha = np.array([1e-8, 1e-3, 0.3])
    beta = curve.beta(alpha)
    assert np.all(beta.lower <= beta.upper) and np.allclose(
        beta.lower, gdp.beta(fpr=alpha, mu=1.0 / 0.6), rtol=1e-4
    )
    warm = jaxgdp.compose([(jaxgdp.dpsgd(1.0, 0.05, 50), 1), (Shuffled(0.8, 20), 1)])
    mixed, alone = (
        measure(m, "epsilon", rtol=1e-2).brackets["epsilon"] for m in (warm, Shuffled(0.8, 20))
    )
    assert mixed.lower <= mixed.upper and mixed.upper > alone.upper


def test_reports_say_why_a_bracket_is_wide():
    found = jaxgdp.report(Shuffled(2.0, 20), rtol=1e-2)
    assert "Shuffled: the upper side, that of a fixed order, is loose" in found.status
    assert jaxgdp.report(Deterministic(2.0), rtol=1e-2).status == "ok"


@pytest.mark.parametrize(
    "build, message",
    [
        (lambda: Deterministic(0.0), "noise_multiplier must be a finite number > 0, got 0"),
        (lambda: Deterministic(1.0, 1.5), "num_epochs must be a whole number >= 1, got 1.5"),
        (lambda: Shuffled(1.0, 0), "num_batches must be a whole number >= 1, got 0"),
        (lambda: Shuffled(1.0, 10, 0), "num_epochs"),
        (lambda: Shuffled(1.0, 10, 1, 1), "reshuffle must be True or False, got 1"),
        (lambda: Shuffled([1.0, 2.0], [1, 2, 3]), "do not broadcast"),
    ],
)
def test_bad_input_is_refused_by_name(build, message):
    with pytest.raises(ValueError, match=message):
        build()


def test_attack_is_random_allocation_where_the_noise_is_large():
    """The data set whose other records are all zero makes of shuffled batches a random
    allocation.
    """
    asked = {"quantities": ("epsilon", "advantage"), "rtol": 1e-2}
    for epochs in (1, 3):
        shuffled = measure(Shuffled(4.0, 100, epochs), **asked).brackets
        allocated = measure(
            jaxgdp.compose([(jaxgdp.RandomAllocation(4.0, 100), epochs)]), **asked
        ).brackets
        for name, bracket in shuffled.items():
            assert 0.97 * allocated[name].lower <= bracket.lower <= bracket.upper, (name, epochs)
    # a fixed permutation has the means over epochs
    once = measure(Shuffled(4.0, 100, 4, reshuffle=False), **asked).brackets
    assert (
        once["advantage"].lower
        >= 0.97 * measure(jaxgdp.RandomAllocation(2.0, 100), **asked).brackets["advantage"].lower
    )


@pytest.mark.parametrize("adjacency", ["remove", "add"])
def test_curves_that_are_kept_have_the_attack_of_their_own_order(adjacency):
    batches = jaxgdp.Shuffled(0.8, 1000)
    found = jaxgdp.measure(batches, "epsilon", delta=1e-5, adjacency=adjacency).brackets["epsilon"]
    kept = jaxgdp.tradeoff(batches, adjacency=adjacency).epsilon(1e-5)
    assert kept.lower == pytest.approx(float(found.lower), rel=1e-6)
