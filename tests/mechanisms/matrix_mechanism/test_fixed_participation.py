"""Matrix mechanisms without random positions: enumeration, closed forms, DP-SGD, bad input."""

import itertools

import numpy as np
import pytest

import jaxgdp
from jaxgdp.mechanisms.matrix_mechanism.separation import squared_sensitivity
from jaxgdp.mechanisms.matrix_mechanism.strategy import matrix
from jaxgdp.participation import (
    BallsInBins,
    BMinSep,
    CyclicPoisson,
    MinSeparation,
    RandomShift,
    Single,
    parsed,
)


def enumerated(c, separation, most):
    """The largest ‖Σ s_i·C e_i‖² over all sets and signs."""
    best = 0.0
    for size in range(1, most + 1):
        for steps in itertools.combinations(range(len(c)), size):
            if all(b - a >= separation for a, b in itertools.pairwise(steps)):
                for signs in itertools.product((1.0, -1.0), repeat=size - 1):
                    total = c[:, list(steps)] @ np.array([1.0, *signs])
                    best = max(best, float(total @ total))
    return best


def test_sensitivity_is_that_of_an_enumeration():
    rng = np.random.default_rng(0)
    met = 0
    for trial in range(30):
        n = int(rng.integers(4, 9))
        c = np.tril(rng.uniform(0.0 if trial % 3 else -1.0, 1.0, (n, n))) + np.eye(n)
        if trial % 2:
            c = np.tril(np.triu(c, -2))  # three bands
        separation, most = int(rng.integers(1, 4)), int(rng.integers(1, 4))
        exact = enumerated(c, separation, most)
        found = squared_sensitivity(c, separation, most, toeplitz=False)
        assert found.lower <= exact * (1 + 1e-12) and exact <= found.upper * (1 + 1e-12)
        met += found.upper <= found.lower * (1 + 1e-12)
    assert met >= 10


def test_decreasing_toeplitz_coefficients_have_evenly_spaced_steps():
    for coefficients in ([1.0, 0.5, 0.375, 0.3125, 0.2734], [1.0, 1.0, 1.0], [3.0, 0.1]):
        c = matrix(coefficients, 9)
        for separation, most in ((2, 3), (3, 2), (1, 4)):
            found = squared_sensitivity(c, separation, most, toeplitz=True)
            np.testing.assert_allclose(found.lower, enumerated(c, separation, most), rtol=1e-14)
            assert found.lower == found.upper


def test_one_band_is_dp_sgd():
    run = jaxgdp.MatrixMechanism([1.0], [1.0, 2.0], CyclicPoisson(0.1, cycle=1), num_steps=50)
    one, two = (jaxgdp.mu(each) for each in (run, jaxgdp.dpsgd([1.0, 2.0], 0.1, 50)))
    np.testing.assert_allclose(one.upper, two.upper, rtol=1e-12)
    identity = jaxgdp.MatrixMechanism(np.eye(30), 3.0, MinSeparation(10, 3))
    assert jaxgdp.mu(identity).contains(3**0.5 / 3.0)


def test_tree_has_the_root_of_its_depth():
    """A binary tree over 8 leaves: every leaf is in 4 nodes, one for each level."""
    levels = [np.kron(np.eye(8 >> k), np.ones((1, 1 << k))) for k in range(4)]
    tree = np.concatenate(levels)
    c = np.linalg.cholesky((tree.T @ tree)[::-1, ::-1])[::-1, ::-1].T  # CᵀC = TᵀT
    c = np.tril(c)
    np.testing.assert_allclose(c.T @ c, tree.T @ tree, atol=1e-12)
    found = jaxgdp.mu(jaxgdp.MatrixMechanism(c, 5.0, Single()))
    assert found.lower <= 2.0 / 5.0 * (1 + 1e-12) and 2.0 / 5.0 <= found.upper * (1 + 1e-12)


def test_equal_columns_of_a_cycle_are_one_subsampled_gaussian():
    c = np.array([1.0, 0.5, 0.25])
    run = jaxgdp.MatrixMechanism(c, 2.0, CyclicPoisson(0.2, 3), num_steps=12)
    norm = np.sqrt(c @ c)
    # (the first group: columns 0, 3, 6, 9, none of them cut)
    same = jaxgdp.dpsgd(2.0 / norm, 0.2, 4)
    one, two = (jaxgdp.epsilon(each, delta=1e-6) for each in (run, same))
    np.testing.assert_allclose([*one], [*two], rtol=1e-12)


def test_cut_columns_count_for_what_is_left_of_them():
    c = np.array([1.0, 0.5, 0.25])
    run = jaxgdp.MatrixMechanism(c, 2.0, CyclicPoisson(0.2, 3), num_steps=10)
    norms = [np.sqrt(c @ c)] * 3 + [1.0]
    same = jaxgdp.compose([jaxgdp.SubsampledGaussian(2.0 / n, 0.2) for n in norms])
    one, two = (jaxgdp.mu(each) for each in (run, same))
    np.testing.assert_allclose([*one], [*two], rtol=1e-9)


def test_groups_of_which_none_is_the_worst_are_bracketed():
    rng = np.random.default_rng(1)
    c = np.tril(np.triu(rng.uniform(0.1, 1.0, (12, 12)), -1)) + np.eye(12)
    run = jaxgdp.MatrixMechanism(c, 2.0, CyclicPoisson(0.3, 2))
    norms = np.sqrt((c * c).sum(axis=0))
    each = [
        jaxgdp.mu(jaxgdp.compose([jaxgdp.SubsampledGaussian(2.0 / n, 0.3) for n in norms[j::2]]))
        for j in (0, 1)
    ]
    found = jaxgdp.mu(run)
    assert found.upper >= max(one.lower for one in each)
    assert found.lower <= max(one.upper for one in each)
    assert found.upper <= 1.2 * found.lower


def test_two_thousand_steps_and_sixty_four_bands():
    c = np.cumprod(np.append(1.0, 1.0 - 0.5 / np.arange(1.0, 64.0)))
    fixed = jaxgdp.MatrixMechanism(c, 4.0, MinSeparation(64, 20), num_steps=2000)
    sampled = jaxgdp.MatrixMechanism(c, 4.0, CyclicPoisson(0.1, 64), num_steps=2000)
    squared = float(c @ c) * 20
    assert jaxgdp.mu(fixed).contains(np.sqrt(squared) / 4.0)
    assert 0.0 < jaxgdp.mu(sampled).upper < 0.5 * jaxgdp.mu(fixed).lower


BAD = [
    (dict(strategy=[[1.0, 0.5], [0.0, 1.0]]), "lower triangular"),
    (dict(strategy=[[1.0, 0.0, 0.0], [1.0, 1.0, 0.0]]), "square"),
    (dict(strategy=[[0.0, 0.0], [1.0, 1.0]]), "0 on its diagonal"),
    (dict(strategy=[1.0, 0.5]), "num_steps must be given"),
    (dict(strategy=[1.0, 0.5, 0.2], num_steps=2), "at most num_steps = 2"),
    (dict(strategy=np.eye(3), num_steps=4), "num_steps must be that of the strategy"),
    (dict(strategy=[1.0, np.nan], num_steps=3), "strategy must be finite numbers"),
    (dict(strategy=[[1e200]]), "column of strategy must be from 1e-100 to 1e.100"),
    (dict(strategy=np.diag([1.0, 1e-200])), "column of strategy .* got 1e-200"),
    (dict(participation="Everyone()"), "participation must be one of"),
    (dict(participation=CyclicPoisson(0.1, 2)), "at most cycle = 2 bands"),
    (dict(participation=CyclicPoisson(0.1, 20)), "cycle must be at most the number of steps"),
    (dict(participation=BallsInBins(20)), "cycle must be at most the number of steps"),
    (dict(strategy=[1.0, -0.5], participation=BallsInBins(4)), "no negative entry for BallsInBins"),
    (dict(strategy=[1.0, -0.5], participation=RandomShift(4)), "no negative entry for RandomShift"),
    (dict(strategy=[1.0, -0.5], participation=BMinSep(4, 0.1)), "no negative entry for BMinSep"),
    (dict(noise_multiplier=0.0), "noise_multiplier"),
]


@pytest.mark.parametrize(("fields", "words"), BAD, ids=[words for _, words in BAD])
def test_bad_input_is_refused_by_name(fields, words):
    usual = {
        "strategy": [1.0, 0.5, 0.25],
        "noise_multiplier": 2.0,
        "participation": Single(),
        "num_steps": 12,
    }
    given = usual | fields
    if "strategy" in fields and "num_steps" not in fields and "participation" not in fields:
        del given["num_steps"]
    if fields.get("strategy") is not None and np.ndim(fields["strategy"]) == 2:
        given.setdefault("num_steps", None)
    with pytest.raises(ValueError, match=words):
        jaxgdp.MatrixMechanism(**given)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: MinSeparation(0, 1), "separation must be one whole number"),
        (lambda: MinSeparation(2, 1.5), "max_participations must be one whole number"),
        (lambda: CyclicPoisson(1.5, 2), "sampling_prob"),
        (lambda: CyclicPoisson(0.5, [2, 3]), "cycle must be one number"),
        (lambda: parsed("BallsInBins(rows=3)"), "must name cycle"),
        (lambda: parsed("BallsInBins(cycle=many)"), "is not NAME=NUMBER"),
    ],
)
def test_participations_out_of_range_are_refused_by_name(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_participations_are_read_back_from_their_text():
    for each in (Single(), MinSeparation(3, 4), CyclicPoisson(1 / 3, 8), BMinSep(8, 0.1)):
        assert parsed(str(each)) == each


def test_equal_numbers_of_two_participations_are_two_mechanisms():
    """Stacking tells mechanisms apart by their leaves; these have the same ones."""
    a = jaxgdp.MatrixMechanism([1.0], 2.0, MinSeparation(1, 2), num_steps=4)
    b = jaxgdp.MatrixMechanism([1.0], 2.0, CyclicPoisson(1.0, 2), num_steps=4)
    both = jaxgdp.mu(jaxgdp.compose([a, b]))
    assert both.contains(np.sqrt(2 / 4 + 2 / 4))
    c = jaxgdp.MatrixMechanism([1.0], 2.0, MinSeparation(1, 4), num_steps=4)
    assert jaxgdp.mu(jaxgdp.compose([a, c])).contains(np.sqrt(2 / 4 + 4 / 4))


def test_replacing_a_record_halves_the_noise_without_sampling_only():
    fixed = jaxgdp.MatrixMechanism([1.0, 0.5], 2.0, Single(), num_steps=4)
    assert jaxgdp.mu(fixed, adjacency="replace_one").contains(2 * np.sqrt(1.25) / 2.0)
    sampled = jaxgdp.MatrixMechanism([1.0, 0.5], 2.0, CyclicPoisson(0.1, 2), num_steps=4)
    with pytest.raises(ValueError, match="adjacency must be one of"):
        jaxgdp.mu(sampled, adjacency="replace_one")


def test_noise_for_a_target_is_found():
    run = jaxgdp.MatrixMechanism([1.0, 0.5], 1.0, CyclicPoisson(0.1, 4), num_steps=40)
    found = jaxgdp.calibrate(jaxgdp.targets.Mu(0.2), mechanism=run)
    scaled = jaxgdp.MatrixMechanism([1.0, 0.5], float(found.value), CyclicPoisson(0.1, 4), 40)
    assert jaxgdp.mu(scaled).upper <= 0.2 <= 1.01 * jaxgdp.mu(scaled).lower
