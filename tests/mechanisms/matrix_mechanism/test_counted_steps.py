"""A random number of steps: laws by enumeration, brackets against simulation of the exact ratio."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

import jaxgdp
from jaxgdp.mechanisms.matrix_mechanism import counts
from jaxgdp.mechanisms.matrix_mechanism.strategy import matrix
from jaxgdp.participation import BMinSep
from tests.mechanisms.matrix_mechanism.test_random_positions import coin


def participations(steps, separation, prob):
    """Every admissible set of steps with its probability, for a record that may enter at once."""
    p = Fraction(prob)
    for bits in itertools.product((0, 1), repeat=steps):
        weight, free = Fraction(1), 0
        for i, bit in enumerate(bits):
            if i < free:
                weight *= 1 - bit
            else:
                weight *= p if bit else 1 - p
                free = i + separation if bit else free
        if weight:
            yield np.array(bits, float), weight


@pytest.mark.parametrize(("steps", "separation", "prob"), [(7, 2, 0.25), (6, 1, 0.5), (8, 5, 0.75)])
def test_law_of_counts_is_that_of_an_enumeration(steps, separation, prob):
    exact = [Fraction(0)] * (-(-steps // separation) + 1)
    for bits, weight in participations(steps, separation, prob):
        exact[int(bits.sum())] += weight
    found = counts.law_of_counts(steps, separation, prob)
    np.testing.assert_allclose(found, [float(x) for x in exact], rtol=1e-14, atol=0.0)


def test_groups_of_counts_are_on_their_sides():
    """Tails of numbers that are taken for a neighbour, above and below the exact ones."""
    law = counts.law_of_counts(400, 2, 0.3)
    tail = np.cumsum(law[::-1])[::-1]
    sides = [counts._with_tails(np.arange(len(law)) * 1.0, law, 1e-12, up) for up in (True, False)]
    for (shifts, weights), sign in zip(sides, (1.0, -1.0), strict=True):
        assert len(shifts) <= counts.MOST_COUNTS and abs(weights.sum() - 1.0) < 1e-12
        own = np.array([weights[shifts >= k].sum() for k in range(len(law))])
        assert np.all(sign * (own[1:] - tail[1:]) >= -1e-300)
        # (by no more than a group: of 201 numbers, six at most)
        moved = np.pad(tail, 6, constant_values=(1.0, 0.0))
        near = moved[: len(tail)] if sign > 0.0 else moved[12:]
        assert np.all(sign * (near[1:] - own[1:]) >= -1e-9)


@pytest.mark.parametrize(
    ("column", "separation", "prob", "sigma"),
    [([1.0, 0.5], 2, 0.2, 1.0), ([1.0], 1, 0.1, 0.8), ([1.0, 0.7, 0.4], 2, 0.5, 2.0)],
)
def test_brackets_hold_simulations_of_the_exact_ratio(column, separation, prob, sigma):
    steps, samples, rng = 9, 60_000, np.random.default_rng(1)
    c = matrix(column, steps)
    sets, weights = zip(*participations(steps, separation, prob), strict=True)
    moved = np.array(sets) @ c.T / sigma
    weights = np.array([float(w) for w in weights])
    run = jaxgdp.MatrixMechanism(column, sigma, BMinSep(separation, prob), num_steps=steps)
    absent = rng.standard_normal((samples, steps))
    present = absent + moved[rng.choice(len(weights), samples, p=weights)]
    ratio = lambda y: np.exp(y @ moved.T - 0.5 * (moved**2).sum(axis=1)) @ weights
    for epsilon in (0.1, 0.7):
        for order, y, sign in (("remove", present, -1.0), ("add", absent, 1.0)):
            low, high = coin(np.maximum(1.0 - np.exp(epsilon) * ratio(y) ** sign, 0.0), rng)
            found = jaxgdp.delta(run, epsilon=epsilon, adjacency=order)
            assert found.lower <= high and found.upper >= low, (order, found, low, high)


def test_sampling_counts():
    """Narrower than as if nothing were sampled, by far where records hardly ever enter."""
    fixed = jaxgdp.MatrixMechanism(
        [1.0, 0.5], 4.0, jaxgdp.participation.MinSeparation(20, 5), num_steps=100
    )
    sampled = jaxgdp.MatrixMechanism([1.0, 0.5], 4.0, BMinSep(20, 0.002), num_steps=100)
    first = jaxgdp.SubsampledGaussian(4.0, 0.002 / (1.0 + 19.0 * 0.002))
    one, two, least = (jaxgdp.epsilon(m, delta=1e-5) for m in (fixed, sampled, first))
    assert two.upper < 0.1 * one.lower and two.lower > 3.0 * least.upper
