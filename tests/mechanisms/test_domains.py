"""Unknown domains: thresholds and partition selection against exact sums and simulations."""

import itertools

import mpmath
import numpy as np
import pytest
from by_day import every_value, first
from mpmath import mpf

import jaxgdp

EPSILONS = [0.0, 0.5, 1.0, 2.0, 4.0]


def gaussian_delta(mu, epsilon):
    """δ_μ(ε) for any real ε."""
    if mu == 0:
        return max(1 - mpmath.exp(epsilon), mpf(0))
    return mpmath.ncdf(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * mpmath.ncdf(
        -mu / 2 - epsilon / mu
    )


def exact_profile(sigma, threshold, cells, epsilon, removed):
    """The largest over the number of new cells, by definition."""
    q = mpmath.ncdf(-(mpf(threshold) - 1) / mpf(sigma))
    found = []
    for new in range(cells + 1):
        a, mu = (1 - q) ** new, mpmath.sqrt(cells - new) / mpf(sigma)
        if removed:
            found.append(1 - a + a * gaussian_delta(mu, epsilon - mpmath.log(a)))
        else:
            found.append(gaussian_delta(mu, epsilon + mpmath.log(a)))
    return max(found)


@pytest.mark.parametrize(
    "sigma, threshold, cells", [(2.0, 12.0, 1), (2.0, 12.0, 4), (1.0, 2.5, 3), (0.3, 1.0, 2)]
)
def test_profile_of_thresholded_counts_is_exact(sigma, threshold, cells):
    with mpmath.workdps(40):
        counts = jaxgdp.ThresholdedGaussian(sigma, threshold, cells)
        for adjacency in ("remove", "add"):
            found = jaxgdp.delta(counts, epsilon=EPSILONS, adjacency=adjacency)
            for i, epsilon in enumerate(EPSILONS):
                exact = exact_profile(sigma, threshold, cells, mpf(epsilon), adjacency == "remove")
                assert found.lower[i] <= exact * (1 + mpf("1e-12")) + mpf("1e-300")
                assert exact <= found.upper[i] * (1 + mpf("1e-12"))
                assert found.upper[i] - found.lower[i] <= 5e-3 * exact + mpf("1e-12")


def test_profile_of_thresholded_laplace_counts_holds_the_exact_one():
    scale, threshold = 2.0, 25.0
    q = 0.5 * np.exp(-(threshold - 1.0) / scale)
    found = jaxgdp.delta(jaxgdp.ThresholdedLaplace(scale, threshold), epsilon=EPSILONS)
    laplace = np.maximum(-np.expm1(0.5 * (np.array(EPSILONS) - 1.0 / scale)), 0.0)
    exact = np.maximum(laplace, q)  # (one cell: it is known, or it is new)
    assert np.all(found.lower <= exact * (1.0 + 1e-9)) and np.all(exact <= found.upper)
    assert np.all(found.upper <= exact + 1.01 * q)


@pytest.mark.parametrize(
    "name, noise, threshold",
    [
        ("ThresholdedGaussian", 0.1, 0.0),
        ("ThresholdedGaussian", 1.0, -100.0),
        ("ThresholdedLaplace", 0.02, 0.0),
        ("ThresholdedLaplace", 1.0, -100.0),
        ("ThresholdedLaplace", 1e-6, 0.0),
    ],
)
def test_cells_that_are_nearly_always_published_tell_where_they_are_missing(name, noise, threshold):
    """One cell: the chance a of hiding it may be far below the rounding of 1 − a."""
    epsilon = 50.0
    with mpmath.workdps(60):
        away = (mpf(threshold) - 1) / mpf(noise)
        gaussian = name == "ThresholdedGaussian"
        hidden = mpmath.ncdf(away) if gaussian else mpmath.exp(away) / 2
        known = (
            gaussian_delta(1 / mpf(noise), mpf(epsilon))
            if gaussian
            else max(1 - mpmath.exp((epsilon - 1 / mpf(noise)) / 2), mpf(0))
        )
        exact = {"add": max(known, 1 - mpmath.exp(epsilon) * hidden)}
        exact["remove"] = max(known, 1 - hidden)
        for adjacency, truth in exact.items():
            counts = getattr(jaxgdp, name)(noise, threshold)
            found = jaxgdp.delta(counts, epsilon=epsilon, adjacency=adjacency)
            assert found.lower <= truth * (1 + mpf("1e-12"))
            assert truth <= found.upper * (1 + mpf("1e-12"))


def test_cells_far_above_the_threshold_tell_as_much_as_they_are_far():
    """ε of a missing cell is log(1/a) = 20001 + log 2, far beyond what noise of a count shows."""
    found = jaxgdp.epsilon(jaxgdp.ThresholdedLaplace(1.0, -2e4), delta=1e-5, adjacency="add")
    assert found.upper >= 20001.0 + np.log(2.0) - 1e-4


def test_cells_that_are_hardly_ever_missing_or_published_count():
    """Of cells that are nearly always published those that are missing tell from below, too; and
    one that is published with 4e-434295 leaves a δ that is no zero.
    """
    with mpmath.workdps(40):
        exact = float(mpmath.log1p(mpf("-1e-5")) - mpmath.log(mpmath.ncdf(-201)))
    asked = {"delta": 1e-5, "adjacency": "add"}
    found = jaxgdp.epsilon(jaxgdp.ThresholdedGaussian(1.0, -200.0), **asked)
    assert exact * (1.0 - 1e-9) <= found.lower <= exact <= found.upper
    faint = jaxgdp.delta(jaxgdp.ThresholdedLaplace(1.0, 60.0), epsilon=1.5)
    assert faint.lower <= 0.5 * np.exp(-59.0) <= faint.upper <= 0.5 * np.exp(-59.0) * (1.0 + 1e-9)
    seldom = jaxgdp.ThresholdedLaplace(1.0, 1e6)
    assert 0.0 < jaxgdp.delta(seldom, epsilon=2.0).upper < 1e-300
    with pytest.raises(ValueError, match="threshold must lie within 1e[+]150 times scale of 1"):
        jaxgdp.ThresholdedLaplace(1e-300, -1e300)


@pytest.mark.parametrize("name, threshold", [("Gaussian", -200.0), ("Laplace", -2e4)])
@pytest.mark.parametrize("cells", [1, 3])
def test_cells_far_above_the_threshold_are_answered_on_both_sides(name, threshold, cells):
    """D new cells are missing with a chance of a^D; counts of D known ones add a little."""
    away = mpf(threshold) - 1
    log_a = mpmath.log(mpmath.ncdf(away)) if name == "Gaussian" else away - mpmath.log(2)
    exact = float(-cells * log_a + mpmath.log1p(-mpf("1e-5")))
    counts = getattr(jaxgdp, f"Thresholded{name}")(1.0, threshold, cells)
    found = jaxgdp.epsilon(counts, delta=1e-5, adjacency="add")
    assert exact * (1.0 - 1e-9) <= found.lower <= exact * (1.0 + 1e-12)
    assert exact * (1.0 - 1e-12) <= found.upper <= exact + 10.0 * np.sqrt(cells)
    assert jaxgdp.epsilon(counts, delta=1e-5, adjacency="remove").lower == np.inf


@pytest.mark.parametrize(
    "counts",
    [
        jaxgdp.ThresholdedLaplace(1e-100, -1e49),
        jaxgdp.ThresholdedGaussian(1e-100, -1e49, 3),
        pytest.param(jaxgdp.ThresholdedGaussian(2.8e-199, 1.0, 7), marks=pytest.mark.nightly),
        jaxgdp.ThresholdedGaussian([1.0, 2.0, 1.0], [-200.0, 12.0, -30.0], [1, 5, 64]),
    ],
    ids=["far below", "far below a norm", "hardly any noise", "usual"],
)
def test_thresholds_beyond_doubles_give_no_warning(counts, recwarn):
    found = jaxgdp.epsilon(counts, delta=1e-5)
    assert np.all(found.lower <= found.upper)
    assert not [w for w in recwarn if issubclass(w.category, RuntimeWarning)]


def test_missing_cells_tell_more_than_counts_with_hardly_any_noise():
    """log(1/a) = 1/b + log 2 where the loss of a known count is at most 1/b."""
    counts = jaxgdp.ThresholdedLaplace(1e-3, 0.0)
    found = jaxgdp.epsilon(counts, delta=1e-5, adjacency="add")
    assert found.lower <= 1000.0 + np.log(2.0) - 1e-5 <= found.upper
    assert jaxgdp.epsilon(counts, delta=1e-5, adjacency="remove").upper == np.inf


def test_compositions_are_within_the_sums_of_their_parts():
    counts = jaxgdp.ThresholdedGaussian(4.0, 30.0, 2)
    found = jaxgdp.epsilon(jaxgdp.compose([(counts, 5), (jaxgdp.Laplace(10.0), 2)]), delta=1e-5)
    plain = jaxgdp.epsilon(
        jaxgdp.compose([(jaxgdp.Gaussian(4.0), 10), (jaxgdp.Laplace(10.0), 2)]), delta=1e-5
    )
    assert found.lower <= plain.upper and plain.lower <= found.upper * (1 + 1e-3)
    assert found.width <= 5e-3 * found.upper


def test_setting_has_the_same_numbers_beside_whichever_others():
    """(lower sides of more numbers of new cells are looked for where a bracket is wide alone)"""
    columns = [0.5, 1.0, 2.0, 8.0, 30.0], [3.0, 9.0, 9.0, 60.0, 200.0], [1, 2, 1, 1, 2]
    asked = {"delta": 1e-5, "fpr": 1e-3, "epsilon": 1.0}
    for name, argument in (("epsilon", "delta"), ("tpr", "fpr"), ("delta", "epsilon")):
        ask = getattr(jaxgdp, name)
        given = {argument: asked[argument]}
        together = ask(jaxgdp.ThresholdedGaussian(*columns), **given)
        for k, setting in enumerate(zip(*columns, strict=True)):
            alone = ask(jaxgdp.ThresholdedGaussian(*setting), **given)
            assert (alone.lower, alone.upper) == (together.lower[k], together.upper[k])


def test_thresholds_that_are_higher_show_less():
    found = jaxgdp.delta(jaxgdp.ThresholdedGaussian(2.0, [6.0, 8.0, 10.0], 2), epsilon=3.0)
    for side in found:
        assert np.all(np.diff(side) <= 0.0) and side[0] > side[2]


def test_simulated_thresholds_show_as_often_as_stated():
    rng = np.random.default_rng(7)
    sigma, threshold, cells, number = 2.0, 6.0, 3, 400_000
    counts = jaxgdp.ThresholdedGaussian(sigma, threshold, cells)
    shown = np.mean(np.any(1.0 + sigma * rng.standard_normal((number, cells)) >= threshold, axis=1))
    room = 5.0 * np.sqrt(shown / number)
    assert abs(shown - (1.0 - (1.0 - float(counts.shown())) ** cells)) < room
    # an event that has no chance without the record
    assert jaxgdp.delta(counts, epsilon=20.0, adjacency="remove").upper >= shown - room


@pytest.mark.parametrize(
    "epsilon, delta", first(2, [(1.0, 1e-6), (0.5, 0.3), (0.1, 1e-4), (3.0, 0.01)])
)
def test_probabilities_of_partition_selection(epsilon, delta):
    keys = jaxgdp.PartitionSelection(epsilon, delta)
    with mpmath.workdps(30):
        e, d, found = mpmath.exp(epsilon), mpf(delta), [mpf(0)]
        for _ in range(250):
            found.append(min(e * found[-1] + d, 1 - (1 - found[-1] - d) / e, mpf(1)))
    np.testing.assert_allclose(
        keys.probability(np.arange(251)), [float(x) for x in found], rtol=1e-12
    )
    # the exact profile of the worst number of users
    x = np.array([0.0, 0.5 * epsilon, epsilon, 2 * epsilon])
    with mpmath.workdps(30):
        shown = lambda e, a, b: max(b - e * a, 0) + max(1 - b - e * (1 - a), 0)
        pairs = [pair for a, b in itertools.pairwise(found) for pair in ((a, b), (b, a))]
        exact = [max(shown(mpmath.exp(at), a, b) for a, b in pairs) for at in x]
    bracket = jaxgdp.delta(keys, epsilon=x)
    for lower, upper, truth in zip(bracket.lower, bracket.upper, exact, strict=True):
        assert lower <= truth * (1 + mpf("1e-9")) and truth <= upper * (1 + mpf("1e-9"))
        assert lower >= 0.25 * truth


@pytest.mark.parametrize("epsilon, delta", first(2, [(5.0, 3e-18), (0.25, 1e-5), (1.0, 1e-300)]))
def test_each_order_of_a_key_shows_no_more_than_its_own_worst_number_of_users(epsilon, delta):
    """A key that is published for a new user alone tells; that it is not tells far less."""
    with mpmath.workdps(320):
        e, d, found = mpmath.exp(epsilon), mpf(delta), [mpf(0)]
        while len(found) < 2000 and found[-1] < 1:
            found.append(min(e * found[-1] + d, 1 - (1 - found[-1] - d) / e, mpf(1)))
        shown = lambda e, a, b: max(b - e * a, 0) + max(1 - b - e * (1 - a), 0)
        for adjacency, step in (("remove", 1), ("add", -1)):
            pairs = list(itertools.pairwise(found))
            for at in (0.0, 0.5 * epsilon, epsilon):
                exact = max(shown(mpmath.exp(at), *pair[::step]) for pair in pairs)
                bracket = jaxgdp.delta(
                    jaxgdp.PartitionSelection(epsilon, delta), epsilon=at, adjacency=adjacency
                )
                assert bracket.lower <= exact * (1 + mpf("1e-9"))
                assert exact <= bracket.upper * (1 + mpf("1e-12"))


@pytest.mark.parametrize(
    "epsilon, delta", every_value((0.1, 1.0, 50.0), (1e-300, 1e-17, 1e-6, 0.3))
)
def test_attacks_on_keys_stay_within_what_is_guaranteed(epsilon, delta):
    """(ε, δ) bounds every attack, however small δ is next to the rounding of a probability."""
    key = jaxgdp.PartitionSelection(epsilon, delta)
    assert jaxgdp.delta(key, epsilon=epsilon).contains(delta)
    fpr = np.array([1e-300, 1e-12, 0.1])
    most = np.minimum(np.exp(epsilon) * fpr + delta, 1.0) * (1.0 + 1e-12)
    assert np.all(jaxgdp.tpr(key, fpr=fpr).lower <= most)
    two = jaxgdp.PartitionSelection(epsilon, delta, max_keys=2)
    assert jaxgdp.delta(two, epsilon=2.0 * epsilon).lower <= 2.0 * delta


def test_truncated_geometric_noise_is_optimal_where_its_ends_divide_evenly():
    """Noise X with Pr[X = x] ∝ e^{−ε|x|}, |x| ≤ k, published where n + X > k."""
    epsilon, k = 0.7, 6
    masses = np.exp(-epsilon * np.abs(np.arange(-k, k + 1)))
    masses /= masses.sum()
    keys = jaxgdp.PartitionSelection(epsilon, float(masses[-1]))
    n = np.arange(2 * k + 2)
    published = np.array([masses[np.arange(-k, k + 1) + m > k].sum() for m in n])
    np.testing.assert_allclose(keys.probability(n), published, rtol=1e-12)


@pytest.mark.parametrize(
    "make, said",
    [
        (lambda: jaxgdp.ThresholdedGaussian(0.0, 3.0), "noise_multiplier must be"),
        (lambda: jaxgdp.ThresholdedGaussian(1.0, np.inf), "threshold must be a finite number"),
        (lambda: jaxgdp.ThresholdedLaplace(1.0, 3.0, 65), r"max_cells must be a whole number in"),
        (lambda: jaxgdp.ThresholdedLaplace(1.0, 3.0, 1, 2), "strict must be True or False"),
        (lambda: jaxgdp.PartitionSelection(0.0, 1e-6), r"epsilon must be in \[1e-6, 50\]"),
        (lambda: jaxgdp.PartitionSelection(1.0, 0.0), r"delta must be in \(0, 1\)"),
    ],
)
def test_bad_input_by_name(make, said):
    with pytest.raises(ValueError, match=said):
        make()
