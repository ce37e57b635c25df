"""Shuffled and allocated batches: what is drawn, and plans that know by which sampler."""

import jax
import numpy as np
import pytest

from jaxgdp import Deterministic, measure
from jaxgdp.training import allocation_sampler, plan_budget, poisson_sampler, shuffle_sampler
from jaxgdp.training.epochs import AllocationSampler

KEY = jax.random.key(7)


def epoch(sampler, start, key=KEY):
    """Records of each batch of one epoch."""
    steps = start + np.arange(sampler.num_batches)
    batch = jax.jit(jax.vmap(sampler.sample, (None, 0)))(key, steps)
    assert not np.any(batch.overflowed)
    return [np.asarray(i)[np.asarray(m)] for i, m in zip(batch.indices, batch.mask, strict=True)]


def test_every_record_is_in_one_shuffled_batch_an_epoch():
    sampler = shuffle_sampler(dataset_size=50, batch_size=8)
    first, second = epoch(sampler, 0), epoch(sampler, sampler.num_batches)
    for batches in (first, second):
        assert sorted(np.concatenate(batches).tolist()) == list(range(50))
        assert [len(b) for b in batches] == [8] * 6 + [2]
    assert not np.array_equal(first[0], second[0])
    once = shuffle_sampler(50, 8, reshuffle=False)
    assert all(
        np.array_equal(a, b)
        for a, b in zip(epoch(once, 0), epoch(once, once.num_batches), strict=True)
    )
    # every place is as likely: χ² over 7 batches, 50 records, many keys
    keys = jax.random.split(KEY, 3000)
    inside = jax.vmap(lambda k: (sampler.sample(k, 0).indices == 3).any())(keys)
    assert abs(np.mean(inside) - 8 / 50) < 5 * np.sqrt(0.16 * 0.84 / 3000)


@pytest.mark.parametrize("selected", [1, 3])
def test_every_record_is_in_k_allocated_batches_alike_and_on_its_own(selected):
    n, t = 40, 5
    sampler = allocation_sampler(n, t, max_steps=100, num_selected=selected)
    counts = np.bincount(np.concatenate(epoch(sampler, 10)), minlength=n)
    assert np.all(counts == selected)
    keys = jax.random.split(KEY, 3000)
    batch = jax.vmap(lambda k: sampler.sample(k, 12))(keys)
    chosen = np.zeros((3000, n))
    rows, columns = np.nonzero(np.asarray(batch.mask))
    chosen[rows, np.asarray(batch.indices)[rows, columns]] = 1.0
    rate = selected / t
    assert np.all(np.abs(chosen.mean(0) - rate) < 5 * np.sqrt(rate * (1 - rate) / 3000))
    assert np.max(np.abs(np.corrcoef(chosen.T) - np.eye(n))) < 5.5 / np.sqrt(3000)


def test_allocated_batch_that_does_not_fit_is_emptied():
    sampler = AllocationSampler(100, 2, 1, padded_size=50, overflow=0.5, max_steps=1)
    batch = jax.vmap(lambda k: sampler.sample(k, 0))(jax.random.split(KEY, 300))
    over, sizes = np.asarray(batch.overflowed), np.asarray(batch.mask).sum(1)
    assert 80 < over.sum() < 220 and np.all(sizes[over] == 0) and np.all(sizes[~over] > 0)


def test_part_of_an_epoch_is_bounded_by_all_and_by_none_of_it():
    sampler = shuffle_sampler(100, 10)
    plan = plan_budget(1.0, max_steps=25, sampler=sampler, quantities=("mu", "beta"), fpr=0.1)
    assert plan.steps.tolist() == [0, 10, 20, 25]
    mu = measure(Deterministic(1.0, [1, 2, 3]), "mu").brackets["mu"].upper
    for step, epochs in ((1, 1), (10, 1), (11, 2), (20, 2), (25, 3)):
        assert np.isclose(plan.at(step)["mu"].upper, mu[epochs - 1], rtol=1e-5)
    assert plan.at(9)["mu"].lower == 0.0 and plan.at(10)["mu"].lower > 0.0
    assert plan.at(25)["mu"].lower == plan.at(20)["mu"].lower
    assert plan.at(9)["beta"].upper == np.float32(0.9) or plan.at(9)["beta"].upper >= 0.9
    assert plan.max_steps_within(mu=1.5) == 20 and plan.max_steps_within(mu=0.5) == 0


def test_plan_refuses_another_sampler():
    made = shuffle_sampler(100, 10)
    plan = plan_budget(2.0, max_steps=10, sampler=made, quantities="mu")
    assert plan.check(made) is made and plan.check(shuffle_sampler(200, 20)).num_batches == 10
    others = (
        poisson_sampler(100, 0.1, 10),
        allocation_sampler(100, 10, 10),
        shuffle_sampler(100, 20),
        shuffle_sampler(100, 10, reshuffle=False),
        object(),
    )
    for other in others:
        with pytest.raises(
            ValueError,
            match=r"sampler must be the one that the plan was made for, \('shuffled', 10, True\)",
        ):
            plan.check(other)
    poisson = poisson_sampler(1000, 1.0, 10)
    assert plan_budget(2.0, 1.0, 10, "mu").check(poisson) is poisson
    with pytest.raises(ValueError, match="for all 10 steps of the plan, got one for 5"):
        plan_budget(2.0, 1.0, 10, "mu").check(poisson_sampler(1000, 1.0, 5))
    loose = poisson_sampler(1000, 0.1, 10, overflow=1e-4)
    with pytest.raises(
        ValueError, match="overflow with a probability of at most the plan's 0, got"
    ):
        plan_budget(8.0, 0.1, 1, "mu").check(loose)


@pytest.mark.parametrize(
    "call, message",
    [
        (
            lambda: shuffle_sampler(10, 11),
            r"batch_size must be a whole number in \[1, 10\], got 11",
        ),
        (lambda: shuffle_sampler(10, 2.5), "batch_size"),
        (lambda: shuffle_sampler(10, 2, reshuffle=1), "reshuffle must be True or False, got 1"),
        (
            lambda: allocation_sampler(10, 4, 3, 5),
            r"num_selected must be a whole number in \[1, 4\], got 5",
        ),
        (lambda: allocation_sampler(10, 4.5, 3), "num_batches"),
        (lambda: allocation_sampler(100, 4, 3, padded_size=20), "padded_size must overflow"),
        (lambda: plan_budget(1.0), "sampling_prob and max_steps must be given"),
        (
            lambda: plan_budget(1.0, 0.1, 5, sampler=shuffle_sampler(10, 2)),
            "sampling_prob and overflow are those",
        ),
        (lambda: plan_budget(1.0, sampler=shuffle_sampler(10, 2)), "max_steps must be given"),
        (
            lambda: plan_budget(1.0, sampler="shuffled", max_steps=2),
            "sampler must be one of jaxgdp.training's",
        ),
        (
            lambda: plan_budget(1.0, sampler=allocation_sampler(10, 4, 3), max_steps=4),
            "at most the 3 steps",
        ),
        (
            lambda: plan_budget(
                1.0, sampler=shuffle_sampler(10, 2), max_steps=9, quantities="regret"
            ),
            "regret",
        ),
        (lambda: shuffle_sampler(10, 2).sample(KEY, 0.5), "step must be an integer"),
    ],
)
def test_bad_input_is_refused_by_name(call, message):
    with pytest.raises(ValueError, match=message):
        call()
