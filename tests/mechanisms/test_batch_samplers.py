"""Capped Poisson samples and fixed batches against exact enumeration of small data sets."""

import itertools
import math

import mpmath
import numpy as np
import pytest

import jaxgdp
from jaxgdp.mechanisms import TruncatedPoisson
from jaxgdp.numerics.errors import CAPPED

_Z = np.linspace(-14.0, 14.0, 6001)
# of a sum over the grid for an integral whose integrand has a corner: a quarter of a step squared,
# times its slope
_GRID = 1e-6


def _density(sums, sigma):
    """Density of the noisy sum on a grid, from a list of (probability, sum)."""
    found = np.zeros(len(_Z))
    for weight, total in sums:
        found += weight * np.exp(-0.5 * ((_Z - total) / sigma) ** 2)
    return found / (sigma * math.sqrt(2.0 * math.pi))


def _delta(with_record, without, epsilon):
    return float(np.maximum(with_record - math.exp(epsilon) * without, 0.0).sum() * (_Z[1] - _Z[0]))


def _capped(values, rate, batch):
    """(probability, sum) of every truncated Poisson batch."""
    sums = []
    for drawn in itertools.product((0, 1), repeat=len(values)):
        chosen = [x for x, d in zip(values, drawn, strict=True) if d]
        weight = rate ** len(chosen) * (1.0 - rate) ** (len(values) - len(chosen))
        kept = list(itertools.combinations(chosen, min(batch, len(chosen))))
        sums += [(weight / len(kept), sum(c)) for c in kept]
    return sums


def _fixed(values, batch):
    chosen = list(itertools.combinations(values, batch))
    return [(1.0 / len(chosen), sum(c)) for c in chosen]


def _others(number):
    rng = np.random.default_rng(2)
    return [
        [0.0] * number,
        [1.0] * number,
        [-1.0] * number,
        [(-1.0) ** i for i in range(number)],
        *rng.uniform(-1, 1, (4, number)),
    ]


@pytest.mark.parametrize(("rate", "batch"), [(0.6, 1), (0.5, 3)])
def test_no_data_set_shows_more_than_a_capped_sample_may(rate, batch):
    sigma, epsilons = 1.2, (0.0, 0.6)
    mechanism = jaxgdp.TruncatedPoisson(sigma, rate, batch, 5)
    for direction in ("remove", "add"):
        found = [
            jaxgdp.measure(mechanism, "delta", epsilon=e, adjacency=direction, rtol=0.02).brackets[
                "delta"
            ]
            for e in epsilons
        ]
        worst = np.zeros(len(epsilons))
        for others in _others(4):
            there, gone = (
                _density(_capped([1.0, *others], rate, batch), sigma),
                _density(_capped(others, rate, batch), sigma),
            )
            pair = (there, gone) if direction == "remove" else (gone, there)
            worst = np.maximum(worst, [_delta(*pair, e) for e in epsilons])
        for bracket, value in zip(found, worst, strict=True):
            assert bracket.upper >= value - _GRID
            assert bracket.lower <= value + _GRID


def test_cap_that_is_never_met_is_poisson_sampling():
    capped = jaxgdp.measure(
        jaxgdp.compose([(jaxgdp.TruncatedPoisson(1.5, 0.02, 500, 500), 300)]), "mu"
    ).brackets["mu"]
    plain = jaxgdp.measure(jaxgdp.dpsgd(1.5, 0.02, 300), "mu").brackets["mu"]
    assert capped.lower <= plain.upper and plain.lower <= capped.upper
    assert capped.upper - capped.lower <= 2e-3 * capped.upper


def test_batches_that_are_rarely_cut_cost_next_to_nothing():
    steps = jaxgdp.compose([(jaxgdp.TruncatedPoisson(1.0, 0.01, [160.0, 250.0], 10_000), 100)])
    found = jaxgdp.measure(steps, "epsilon", delta=1e-5, adjacency="remove").brackets["epsilon"]
    plain = jaxgdp.measure(
        jaxgdp.dpsgd(1.0, 0.01, 100), "epsilon", delta=1e-5, adjacency="remove"
    ).brackets["epsilon"]
    assert np.all(found.upper >= plain.lower) and np.all(found.lower <= plain.upper)
    assert np.all(found.upper <= 1.01 * plain.upper)


@pytest.mark.parametrize("batch", [1, 2, 4])
def test_no_data_set_shows_more_than_a_fixed_batch_may(batch):
    sigma, epsilons = 1.2, (0.0, 0.6)
    mechanism = jaxgdp.FixedSize(sigma, batch, 5)
    for adjacency, other in (("add_remove", 0.0), ("replace_one", -1.0)):
        worst = np.zeros(len(epsilons))
        for others in _others(4):
            pair = [_density(_fixed([x, *others], batch), sigma) for x in (1.0, other)]
            for a, b in (pair, pair[::-1]):
                worst = np.maximum(worst, [_delta(a, b, e) for e in epsilons])
        for epsilon, value in zip(epsilons, worst, strict=True):
            found = jaxgdp.measure(
                mechanism, "delta", epsilon=epsilon, adjacency=adjacency, rtol=1e-2
            ).brackets["delta"]
            assert found.lower <= value + _GRID and found.upper >= value - _GRID
            if adjacency == "replace_one":
                # all others opposite to the record: the bound is met
                assert found.upper <= value * (1.0 + 1e-2) + 1e-6


def test_whole_data_as_one_batch_is_the_gaussian_mechanism():
    for adjacency, mu in (("add_remove", 0.5), ("replace_one", 1.0)):
        found = jaxgdp.measure(jaxgdp.FixedSize(2.0, 7, 7), "mu", adjacency=adjacency).brackets[
            "mu"
        ]
        assert found.lower <= mu * (1.0 + 1e-9) and found.upper >= mu * (1.0 - 1e-9)
        assert found.upper - found.lower <= 1e-3 * mu


def test_fixed_batches_compose():
    steps = jaxgdp.compose([(jaxgdp.FixedSize(4.0, 50, 1000), 100)])
    found = jaxgdp.measure(steps, ("mu", "advantage"), adjacency="replace_one", rtol=1e-2)
    plain = jaxgdp.measure(jaxgdp.dpsgd(2.0, 0.05, 100), ("mu", "advantage"), rtol=1e-2)
    for name, bracket in found.brackets.items():
        assert (
            bracket.upper >= plain.brackets[name].lower
            and bracket.lower <= plain.brackets[name].upper
        )


@pytest.mark.parametrize(
    ("build", "named"),
    [
        (lambda: jaxgdp.TruncatedPoisson(1.0, 0.1, 11, 10), "batch_size"),
        (lambda: jaxgdp.TruncatedPoisson(1.0, 0.1, 1.5, 10), "batch_size"),
        (lambda: jaxgdp.TruncatedPoisson(1.0, 1.1, 5, 10), "sampling_prob"),
        (lambda: jaxgdp.TruncatedPoisson(-1.0, 0.1, 5, 10), "noise_multiplier"),
        (lambda: jaxgdp.FixedSize(1.0, 11, 10), "batch_size"),
        (lambda: jaxgdp.FixedSize(1.0, 5, 10.5), "dataset_size"),
        (lambda: jaxgdp.FixedSize(0.0, 5, 10), "noise_multiplier"),
        (
            lambda: jaxgdp.measure(
                jaxgdp.TruncatedPoisson(1.0, 0.1, 5, 10), "mu", adjacency="replace_one"
            ),
            "TruncatedPoisson",
        ),
    ],
)
def test_bad_input_is_refused_by_name(build, named):
    with pytest.raises(ValueError, match=named):
        build()


@pytest.mark.parametrize(
    ("size", "rate", "batch"),
    [(60_000, 0.01, 450), (10_000, 0.02, 120), (1000, 0.1, 40), (56, 0.5, 1)],
)
def test_parts_of_a_sample_that_is_nearly_always_cut_are_as_exact_as_stated(size, rate, batch):
    """Pr[X ≥ B] and Pr[X < B] for X ~ Bin(n − 1, q), by exact sums: neither is one less the
    other.
    """
    pair = TruncatedPoisson(10.0, rate, batch, size).canonical()
    with mpmath.workdps(50):
        q = mpmath.mpf(rate)
        rest = mpmath.fsum(
            mpmath.binomial(size - 1, k) * q**k * (1 - q) ** (size - 1 - k) for k in range(batch)
        )
        for found, exact in ((pair.rest, rest), (pair.cut, 1 - rest)):
            assert abs(mpmath.mpf(float(found)) / exact - 1) < CAPPED / 3
