"""Runs that are answered by their moments: very long ones, and those far from private."""

import time

import jax
import numpy as np
import pytest
from mechanisms_of_every_class import SETTINGS, composition
from mpmath import binomial, mp, mpf

import jaxgdp
from jaxgdp.accounting.question import Question
from jaxgdp.accounting.run import engine, without_lattice
from jaxgdp.accounting.run.executors import EAGER
from jaxgdp.quantities.registry import REGISTRY


def _by_moments(composition, quantity, value=None, adjacency="add_remove"):
    groups = tuple(
        (
            type(m)(**{n: np.reshape(getattr(m, n), (1, 1)) for n in m.given_fields()}),
            np.array([[float(n)]]),
        )
        for m, n in zip(composition.mechanisms, composition.counts, strict=True)
    )
    entry = REGISTRY[quantity]
    question = Question(
        1e-3,
        1e-10,
        adjacency,
        ((entry, value),),
        deepest=None if entry.rate is None else entry.rate(value),
    )
    found = without_lattice.answer(groups, np.array([0]), question).results[quantity]
    return float(found.lower[0]), float(found.upper[0])


def _delta(epsilon, uses, answer):
    """δ of randomised response, by enumeration."""
    e = mpf(epsilon)
    a = 1 / (1 + mp.exp(e))
    total = mpf(0)
    for k in range(uses + 1):
        loss = (2 * k - uses) * e
        if loss > answer:
            total += (
                binomial(uses, k) * a**k * (1 - a) ** (uses - k) * (mp.exp(loss) - mp.exp(answer))
            )
    return total


@pytest.mark.parametrize(
    "epsilon, uses, answer", [(0.1, 1, 0.0), (1.0, 3, 0.5), (0.02, 60, 0.3), (3.0, 40, 25.0)]
)
def test_few_uses_are_within_what_enumeration_has(epsilon, uses, answer):
    run = jaxgdp.compose([(jaxgdp.RandomizedResponse(epsilon), uses)])
    with mp.workdps(40):
        exact = float(_delta(epsilon, uses, mpf(answer)))
    low, high = _by_moments(run, "delta", answer)
    assert low * (1 - 1e-12) <= exact <= high * (1 + 1e-12)
    low, high = _by_moments(run, "epsilon", exact)
    assert low - 1e-9 <= answer <= high + 1e-9


@pytest.mark.parametrize(
    "setting, delta, epsilon, near",
    [
        # ε of Gaussian DP with μ² = p²·T·(e^{1/σ²} − 1), to which so many steps come near
        ((1.0, 1e-6, 10**12), 1e-5, 6.0071, 1e-4),
        ((1.0, 1e-7, 2**31), 1e-5, None, 2e-3),
        ((1.0, 1e-12, 10**15), 1e-5, None, 1e-3),
    ],
)
def test_long_runs_of_tiny_rates(setting, delta, epsilon, near):
    sigma, p, steps = setting
    mu = p * np.sqrt(steps * np.expm1(sigma**-2))
    limit = jaxgdp.gdp.epsilon(delta=delta, mu=mu)
    assert epsilon is None or limit == pytest.approx(epsilon, abs=1e-4)
    started = time.process_time()
    found = jaxgdp.measure(jaxgdp.dpsgd(*setting), "epsilon", delta=delta)
    assert time.process_time() - started < 3.0
    assert found.status["epsilon"] == 0
    assert found.epsilon.lower * (1 - near) <= limit <= found.epsilon.upper * (1 + near)


def test_lattices_and_moments_agree():
    run = jaxgdp.dpsgd(3.0, 3e-3, 2 * 10**6)
    for quantity, value in (("epsilon", 1e-6), ("tpr", 1e-3), ("mu", None)):
        argument = {REGISTRY[quantity].argument: value} if value else {}
        lattice = jaxgdp.measure(run, quantity, **argument)[quantity]
        low, high = _by_moments(run, quantity, value)
        assert low <= lattice.upper and lattice.lower <= high
        assert high - low <= 0.02 * high


@pytest.mark.filterwarnings("ignore:.*look swapped:UserWarning")
@pytest.mark.parametrize(
    "setting, quantity, argument, bounds",
    [
        ((0.05, 0.5, 10**6), "mu", {}, (14000.0, 14100.0)),
        ((0.01, 0.5, 10**6), "mu", {}, (70000.0, 71000.0)),
        ((0.5, 0.5, 10**6), "epsilon", {"delta": 1e-5}, (669000.0, 671000.0)),
        ((0.9, 0.01, 10**12), "mu", {}, (15300.0, 15400.0)),
        ((0.5, 0.5, 10**6), "tpr", {"fpr": 1e-9}, (1.0 - 1e-9, 1.0)),
        ((0.5, 0.5, 10**6), "delta", {"epsilon": 5.0}, (1.0 - 1e-9, 1.0)),
    ],
)
def test_work_is_bounded_however_far_from_private(setting, quantity, argument, bounds):
    started = time.process_time()
    found = jaxgdp.measure(jaxgdp.dpsgd(*setting), quantity, **argument)
    assert time.process_time() - started < 5.0
    low, high = found[quantity]
    assert bounds[0] <= low <= high <= bounds[1]
    assert high - low <= 2e-3 * high


def test_hardly_subsampled_runs_are_nearly_those_without_subsampling():
    """(far from private, with the answer known: μ = √T/σ without subsampling)"""
    found = jaxgdp.measure(jaxgdp.dpsgd(2.0, 1.0 - 1e-13, 10**6), "mu").mu
    assert 500.0 * (1 - 2e-3) <= found.lower <= 500.0
    assert found.upper >= 500.0 * (1 - 1e-6)


@pytest.mark.parametrize("name", sorted(SETTINGS))
def test_gaussian_parts_are_what_is_exactly_gaussian(name):
    # (discrete noise has the cumulants of a Gaussian, and is none; the lower side of a shuffled
    # epoch is of another law)
    row = jax.tree.map(lambda leaf: np.asarray(leaf)[:1], composition(name).stacked())
    with np.errstate(all="ignore"):
        sides = without_lattice._Sides(row, 0, 40.0, 64)
    exactly = name in ("Gaussian", "Deterministic")
    assert (sides.above.precision > 0.0) == (sides.below.precision > 0.0) == exactly


# (1 − δ of a δ of 1e-15 lost its digits where thresholds were taken off its log and added again)
DEEP = [
    ((18.647089285647393, 0.003037095913643153, 243312945), 3.1846573007146232e-15),
    ((0.05124818549663003, 4.23016004574753e-08, 10135909), 2.0189491908179028e-15),
    ((1.0, 1e-4, 20_000_000), 1e-13),
]


@pytest.mark.parametrize(("run", "delta"), DEEP)
def test_small_deltas_agree_with_a_lattice(run, delta):
    lower, upper = _by_moments(jaxgdp.dpsgd(*run), "epsilon", delta, "remove")
    entry = REGISTRY["epsilon"]
    question = Question(1e-3, 1e-10, "remove", ((entry, delta),), deepest=entry.rate(delta))
    groups = jax.tree.map(lambda leaf: np.asarray(leaf)[None], jaxgdp.dpsgd(*run).stacked())
    by_lattice = engine.Engine(groups, question, lambda done: None, 2**20, EAGER).answer()
    below, above = (float(np.squeeze(side)) for side in by_lattice.results["epsilon"])
    assert lower <= above and below <= upper
