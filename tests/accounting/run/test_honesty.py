"""Both sides of every bracket are honest: random and extreme settings, nesting, symmetry,
batching.
"""

import dataclasses

import numpy as np
import pytest
from attack.nesting import TOLERANCES, apart, not_inside, random_settings, two_answers
from engine_run import run_engine

import jaxgdp
from jaxgdp.bracket import Status

SUMMARIES = ("mu", "regret", "advantage")


def answer(sigma, p, steps, rtol=1e-3, max_size=2**16, executor=None):
    return run_engine(
        jaxgdp.dpsgd(sigma, p, steps), SUMMARIES, rtol, max_size=max_size, executor=executor
    )


@pytest.mark.slow
@pytest.mark.parametrize("number", [100, pytest.param(300, marks=pytest.mark.nightly)])
def test_hundreds_of_random_settings(number):
    sigma, p, steps = random_settings(number, seed=0)
    found = answer(sigma, p, steps, max_size=2**14, executor="eager")
    for name, bracket in found.brackets.items():
        assert not np.any(np.isnan(bracket.lower)) and not np.any(np.isnan(bracket.upper)), name
        assert np.all(bracket.lower <= bracket.upper), name
        assert np.all(found.status[name] != Status.CONTRADICTION), name
    mu = found.brackets["mu"]
    assert np.all(mu.upper <= np.sqrt(steps) / sigma * (1 + 1e-12))
    assert np.all(mu.lower >= 0.0)
    # δ(0) of the Gaussian curve with the reported μ bounds the advantage
    assert np.all(
        found.brackets["advantage"].lower
        <= jaxgdp.gdp.delta(epsilon=0.0, mu=np.maximum(mu.upper, 1e-12)) + 1e-9
    )
    assert np.mean(found.status["mu"] == Status.OK) > 0.9  # at this cap on dense lattices


@pytest.mark.slow
@pytest.mark.parametrize("number", [8, pytest.param(14, marks=pytest.mark.nightly)])
def test_brackets_of_different_tolerance_agree_and_nest(number):
    # (two of them take minutes: ``make attack`` looks at such ones)
    sigma, p, steps = (np.delete(a, [2, 9])[: number - 2] for a in random_settings(14, seed=1))
    sigma, p, steps = (
        np.append(a, more)
        for a, more in ((sigma, [1.0, 0.5]), (p, [1.0, 1.0]), (steps, [100.0, 2000.0]))
    )
    coarse, fine = answers = two_answers(jaxgdp.dpsgd(sigma, p, steps))
    for found, rtol in zip(answers, TOLERANCES, strict=True):
        mu, reached = found.brackets["mu"], found.status["mu"] == Status.OK
        assert (
            np.array_equal(reached, mu.upper - mu.lower <= rtol * mu.upper)
            and np.mean(reached) > 0.7
        )
    assert not_inside(coarse, fine) == []
    assert np.mean(coarse.brackets["mu"].width > 2.0 * fine.brackets["mu"].width) > 0.5


@pytest.mark.slow
@pytest.mark.parametrize("number", [15, pytest.param(40, marks=pytest.mark.nightly)])
def test_single_levels_agree(number):
    """Brackets computed apart from each other hold the same numbers."""
    settings = random_settings(number, seed=2)
    assert apart(*(answer(*settings, rtol, max_size=2**14) for rtol in (2e-2, 2e-4))) == []


def test_whole_curves_nest():
    batch = jaxgdp.dpsgd([1.0, 4.0, 0.7], [0.01, 0.3, 1.0], [1000, 100, 10])
    coarse, fine = (jaxgdp.tradeoff(batch, rtol=rtol) for rtol in (1e-3, 1e-4))
    for found in (
        lambda c: c.mu(),
        lambda c: c.epsilon(1e-6),
        lambda c: c.log_beta(1e-30),
        lambda c: c.regret(),
    ):
        a, b = found(coarse), found(fine)
        assert np.all((a.lower <= b.lower) & (b.lower <= b.upper) & (b.upper <= a.upper))


def test_mu_found_with_a_curve_is_read_off_it():
    curve = jaxgdp.tradeoff(jaxgdp.compose([(jaxgdp.Laplace([3.0, 8.0]), 20)]))
    found, read = curve.mu(), dataclasses.replace(curve, _known={}).mu()
    assert np.all((read.lower <= found.lower) & (found.upper <= read.upper))
    assert np.allclose(found, read, rtol=curve.rtol)
    floors = np.array([[curve.fpr_floor], [0.1]])
    both, each = curve.mu(floors), curve.mu(0.1)
    assert (
        both.lower.shape == (2, 2)
        and np.all(both.lower[0] >= read.lower)
        and np.all(both.upper[1] == each.upper)
    )


def test_monotone_in_every_parameter():
    base = (2.0, 0.01, 1000.0)
    for axis, values, sign in (
        (0, [1.0, 2.0, 4.0], -1),
        (1, [0.003, 0.01, 0.03], 1),
        (2, [300.0, 1000.0, 3000.0], 1),
    ):
        columns = [np.full(3, v) for v in base]
        columns[axis] = np.array(values)
        mu = answer(*columns).brackets["mu"]
        assert np.all(sign * np.diff(mu.upper) > 0) and np.all(sign * np.diff(mu.lower) > 0)


def test_swapping_directions_changes_nothing():
    mechanism = jaxgdp.dpsgd(1.0, 0.02, 300)
    add, remove, both = (
        jaxgdp.tradeoff(mechanism, adjacency=a) for a in ("add", "remove", "add_remove")
    )
    assert np.allclose(add.mu(), remove.mu(), rtol=1e-12) and np.allclose(
        add.mu(), both.mu(), rtol=1e-12
    )
    assert np.allclose(add.advantage(), remove.advantage(), rtol=1e-12)
    # f and f⁻¹: the add curve at the remove curve's FNR gives back the FPR
    alpha = np.array([1e-4, 1e-2, 0.2])
    beta = remove.beta(alpha)
    back = add.beta(beta.upper)
    assert np.all(back.lower <= alpha * (1 + 1e-9))
    assert np.all(add.beta(beta.lower).upper >= alpha * (1 - 1e-9))
    # the symmetrised curve lies below both
    assert np.all(
        both.beta(alpha).lower <= np.minimum(remove.beta(alpha).upper, add.beta(alpha).upper)
    )


def test_curve_is_convex_and_its_own_inverse():
    curve = jaxgdp.tradeoff(jaxgdp.dpsgd(1.5, 0.05, 200))
    alpha = np.linspace(0.001, 0.999, 60)
    beta = curve.beta(alpha)
    slack = np.max(beta.upper - beta.lower)
    assert np.all(np.diff(beta.lower, 2) >= -4 * slack - 1e-12)
    again = curve.beta(np.clip(beta.midpoint, 0.0, 1.0))
    assert np.all(again.lower <= alpha + 4 * slack) and np.all(again.upper >= alpha - 4 * slack)


def test_batch_equals_loop():
    # (sums in another order differ by rounding; an exponential tilt lifts that to about 1e-8 at the
    # far end, and Δ is a small difference)
    sigma, p, steps = (
        np.array([1.0, 3.0, 2.0]),
        np.array([0.01, 0.1, 1.0]),
        np.array([1000.0, 100.0, 10.0]),
    )
    batch = answer(sigma, p, steps).brackets
    for i in range(3):
        one = answer(sigma[i : i + 1], p[i : i + 1], steps[i : i + 1]).brackets
        for name in batch:
            assert np.allclose(
                [batch[name].lower[i], batch[name].upper[i]],
                np.ravel(one[name]),
                rtol=1e-6,
                atol=1e-12,
            )


@pytest.mark.parametrize(
    ("sigma", "p", "steps"),
    [
        (0.3, 1e-6, 1),
        (200.0, 1e-6, 1),
        (0.3, 1.0, 1),
        (200.0, 1.0, 1e6),
        (0.3, 0.5, 1e6),
        (200.0, 1e-6, 1e6),
    ],
)
def test_extremes(sigma, p, steps):
    found = answer(np.array([sigma]), np.array([p]), np.array([steps]), max_size=2**14)
    mu = found.brackets["mu"]
    assert 0.0 <= mu.lower[0] <= mu.upper[0] <= np.sqrt(steps) / sigma * (1 + 1e-12)
    for bracket in found.brackets.values():
        assert np.all(np.isfinite(bracket.lower)) and np.all(np.isfinite(bracket.upper))


def test_heterogeneous_composition():
    """Gaussians and subsampled Gaussians together, batched; parts of one mechanism add up to it."""
    mixed = jaxgdp.compose(
        [(jaxgdp.SubsampledGaussian(2.0, 0.05), [100, 400]), (jaxgdp.Gaussian(5.0), 3)]
    )
    curve = jaxgdp.tradeoff(mixed)
    part = jaxgdp.tradeoff(jaxgdp.dpsgd(2.0, 0.05, [100, 400]))
    assert curve.shape == (2,)
    assert np.all(curve.mu().upper > part.mu().lower)
    assert np.all(curve.mu().lower >= np.sqrt(3) / 5.0 - 1e-3)
    split = jaxgdp.compose(
        [(jaxgdp.SubsampledGaussian(2.0, 0.05), 60), (jaxgdp.SubsampledGaussian(2.0, 0.05), 40)]
    )
    whole, parts = part.mu(), jaxgdp.tradeoff(split).mu()
    assert parts.lower <= whole.upper[0] and whole.lower[0] <= parts.upper
