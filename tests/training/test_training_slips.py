"""Slips that would void the privacy of a run: each is refused with what to do, or does no harm.

The page docs/guides/mistakes.md names them one by one, and the tests here by the same headings."""

import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from scipy.stats import ks_2samp

import jaxgdp
from jaxgdp.training import (
    ExampleGradients,
    allocation_sampler,
    clipped_gradients,
    per_example_gradients,
    plan_budget,
    poisson_sampler,
    privatize,
    shuffle_sampler,
)

KEY = jax.random.key(3)
PAGE = Path(__file__).parents[2] / "docs" / "guides" / "mistakes.md"


def loss(w, x):
    return w @ x


@pytest.fixture(scope="module")
def sampler():
    return poisson_sampler(1000, 0.05, max_steps=100)


@pytest.fixture(scope="module")
def claimed():
    """The advantage of one step that is claimed."""
    return float(jaxgdp.measure(jaxgdp.dpsgd(1.0, 0.05, 1), "advantage")["advantage"].upper)


@pytest.fixture(scope="module")
def plan(sampler):
    return plan_budget(1.0, sampler=sampler, quantities="mu", every=100)


def released(slip, records, number=200):
    """Released sums along the first axis in one step of noise multiplier 1, for so many draws.

    Only record 0 has a gradient, along the first axis; with ``records`` 0 it is not in the data. A
    ``slip`` is made on purpose, by words that say what is not true.
    """
    sampler = poisson_sampler(1500 if slip == "sampler" else 1000, 0.05, max_steps=100)
    optimiser = privatize(1.0, 1.0, sampler.expected_batch_size, KEY)
    last = {"sampler": 999}.get(slip, 0)
    data = jnp.zeros((1000, 3)).at[last, 0].set(float(records))

    def one(key):
        batch = sampler.sample(key, 0)
        rows, mask = sampler.take(batch, data) if slip is None else None, batch.mask
        if slip == "mask":  # padding repeats record 0, as it did, and counts
            rows, mask = data[jnp.where(mask, batch.indices, 0)], "all"
        if slip == "sampler":  # an index beyond the data is that of the last record in JAX
            rows = data[batch.indices]
        if slip == "divided":  # by a norm that the record decides on: no clipped sum at all
            rows, mask = 100.0 * data[:1], "all"
            _, total = clipped_gradients(lambda w, x: w @ x, 1.0)(jnp.zeros(3), rows, mask=mask)
            rows = jax.tree.map(lambda part: 5 * part, total)
        rows = rows if slip == "divided" else ExampleGradients(rows, mask)
        update, _ = optimiser.update(rows, optimiser.init(jnp.zeros(3))._replace(key=key))
        return update[0] * sampler.expected_batch_size

    return np.asarray(jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(records), number)))


def advantage_bounds(slip):
    """The Kolmogorov distance of outputs with and without the record, with probability 1 − 1e-6."""
    found = ks_2samp(released(slip, 0), released(slip, 1)).statistic
    away = 2.0 * np.sqrt(np.log(4e6) / (2.0 * 200))
    return found - away, found + away


# -- the mask


def test_mask_that_is_forgotten_is_demanded(sampler):
    optimiser = privatize(1.0, 1.0, key=KEY, sampler=sampler)
    state = optimiser.init(jnp.zeros(3))
    rows = jnp.ones((sampler.padded_size, 3))
    _, gradients = per_example_gradients(loss)(jnp.zeros(3), rows)
    for given in (rows, gradients, jnp.ones((4, 3))):
        for transformation in (optimiser, privatize(1.0, 1.0, 50.0, KEY)):
            with pytest.raises(ValueError, match="mask must be given: mask=batch.mask"):
                transformation.update(given, state)
    with pytest.raises(ValueError, match="mask must be given"):
        clipped_gradients(loss, 1.0)(jnp.zeros(3), rows)
    # the word that says that there is no padding is not believed where there is
    for said in (ExampleGradients(rows, "all"), clipped_sum_of(rows, "all")):
        with pytest.raises(ValueError, match="batches of this sampler are padded"):
            optimiser.update(said, state)


def clipped_sum_of(rows, mask):
    return clipped_gradients(loss, 1.0)(jnp.zeros(3), rows, mask=mask)[1]


def test_padding_points_outside_the_data_and_reads_as_zeros(sampler):
    host, device = np.arange(1.0, 1001.0), jnp.arange(1.0, 1001.0)
    for other in (sampler, shuffle_sampler(1000, 300), allocation_sampler(1000, 4, max_steps=4)):
        batch = jax.jit(other.sample)(KEY, 3)
        indices, mask = np.asarray(batch.indices), np.asarray(batch.mask)
        assert other.pads and not mask.all()
        assert np.all(indices[~mask] == 1000) and np.all(indices[mask] < 1000)
        for data in (host, device):
            rows = other.take(batch, data)
            assert isinstance(rows, np.ndarray) == (data is host)
            assert np.array_equal(rows, np.where(mask, indices + 1.0, 0.0))
        with pytest.raises(IndexError):
            host[batch.indices]
    rows, labels = jax.jit(lambda b: other.take(b, host, device))(batch)
    assert np.array_equal(rows, labels)


@pytest.mark.parametrize(
    "slip",
    [
        None,
        "mask",
        pytest.param("sampler", marks=pytest.mark.nightly),
        pytest.param("divided", marks=pytest.mark.nightly),
    ],
)
def test_slips_that_can_still_be_made_refute_the_claim(slip, claimed):
    lower, _ = advantage_bounds(slip)
    assert (lower > claimed) == (slip is not None)


def test_mask_that_is_not_bool_is_refused(sampler):
    rows = jnp.ones((sampler.padded_size, 3))
    for mask in (jnp.ones(sampler.padded_size), np.arange(sampler.padded_size), [1] * 128):
        with pytest.raises(ValueError, match="mask must be an array of bool"):
            clipped_gradients(loss, 1.0)(jnp.zeros(3), rows, mask=mask)
    with pytest.raises(ValueError, match="mask must be an array of bool or 'all', got 'none'"):
        clipped_gradients(loss, 1.0)(jnp.zeros(3), rows, mask="none")
    with pytest.raises(ValueError, match="mask must be given once"):
        mask = jnp.ones(4, bool)
        gradients = ExampleGradients(jnp.ones((4, 3)), mask)
        privatize(1.0, 1.0, 4.0, KEY).update(gradients, None_state(), mask=mask)


def None_state():
    return privatize(1.0, 1.0, 4.0, KEY).init(jnp.zeros(3))


# -- rows that are no examples


def test_means_of_several_examples_are_refused(sampler):
    optimiser = privatize(1.0, 1.0, key=KEY, sampler=sampler)
    state = optimiser.init(jnp.zeros(3))
    groups = sampler.padded_size // 4
    means, mask = jnp.ones((groups, 3)), jnp.ones(groups, bool)
    for given in ({"mask": mask}, {"mask": "all"}):
        with pytest.raises(ValueError, match="rows a batch, got .*clipped_gradients"):
            optimiser.update(means, state, **given)
    with pytest.raises(ValueError, match="rows may be means of several examples"):
        privatize(1.0, 1.0, 50.0, KEY).update(means, state, mask=mask)


def test_sum_that_was_clipped_elsewhere_is_refused(sampler):
    optimiser = privatize(1.0, 1.0, key=KEY, sampler=sampler)
    total, _ = optax.per_example_global_norm_clip([jnp.ones((8, 3))], 1.0)
    with pytest.raises(ValueError, match="a sum clipped elsewhere"):
        optimiser.update(total, optimiser.init([jnp.zeros(3)]))
    rows, mask = jnp.ones((sampler.padded_size, 3)), jnp.ones(sampler.padded_size, bool)
    _, other = clipped_gradients(loss, 2.0)(jnp.zeros(3), rows, mask=mask)
    with pytest.raises(ValueError, match="clip_norm must be that of privatize, 1, got .* 2"):
        optimiser.update(other, optimiser.init(jnp.zeros(3)))


def test_sum_clipped_to_another_traced_norm_does_no_harm():
    """Sums are in units of their own clipping norm, and so is the noise."""

    @jax.jit
    def update(norm):
        _, total = clipped_gradients(loss, norm)(jnp.zeros(3), jnp.full((2, 3), 9.0), mask="all")
        optimiser = privatize(1.0, 1e-9, 1.0, KEY)
        return optimiser.update(total, optimiser.init(jnp.zeros(3)))[0]

    assert np.linalg.norm(update(1000.0)) <= 2.0 and np.linalg.norm(update(1e-3)) <= 2.0


@pytest.mark.parametrize("gradients", ["plain", "typed"])
def test_multi_steps_around_is_refused(gradients):
    around = optax.MultiSteps(privatize(1.0, 1.0, 8.0, KEY), 4)
    with pytest.raises(ValueError, match=r"must not be inside optax.MultiSteps.*accumulate=k"):
        around.init(jnp.zeros(3))
    chained = optax.MultiSteps(optax.chain(privatize(1.0, 1.0, 8.0, KEY), optax.sgd(0.1)), 4)
    with pytest.raises(ValueError, match=r"must not be inside optax.MultiSteps.*accumulate=k"):
        jax.jit(chained.init)(jnp.zeros(3))


def test_multi_steps_inside_is_refused_and_behind_it_counts_every_noisy_gradient():
    multi = optax.MultiSteps(optax.sgd(1.0), 4)
    for inner in (multi.gradient_transformation(), optax.chain(optax.clip(1.0), multi)):
        with pytest.raises(ValueError, match=r"inner must not hold optax.MultiSteps.*accumulate=k"):
            privatize(1.0, 1.0, 8.0, KEY, inner=inner).init(jnp.zeros(3))
    chain = optax.chain(privatize(1.0, 1.0, 8.0, KEY), multi.gradient_transformation())
    state = chain.init(jnp.zeros(3))
    for _ in range(4):
        _, state = chain.update(jnp.ones((2, 3)), state, jnp.zeros(3), mask="all")
    assert int(state[0].step) == 4


# -- the sampler, the plan, the divisor


def test_sampler_over_another_number_of_records_is_refused():
    sampler = poisson_sampler(1500, 0.05, max_steps=10)
    batch = sampler.sample(KEY, 0)
    for data in (np.zeros((1000, 2)), jnp.zeros((1000, 2)), {"x": np.zeros(1500), "y": np.ones(9)}):
        with pytest.raises(ValueError, match="must have the sampler's 1500 records"):
            sampler.take(batch, data)


def test_number_drawn_is_refused_as_expected_batch_size(sampler):
    batch = sampler.sample(KEY, 0)

    @jax.jit
    def inside(mask):
        privatize(1.0, 1.0, mask.sum(), KEY)

    with pytest.raises(ValueError, match="batch.mask.sum.., depends on who is in the data"):
        inside(batch.mask)
    for known_sampler in ({}, {"sampler": sampler}):
        with pytest.raises(ValueError, match="got an array of JAX, .* depends on who is in"):
            privatize(1.0, 1.0, batch.mask.sum() + 0.5, KEY, **known_sampler)
    with pytest.raises(ValueError, match="expected_batch_size is that of the sampler, 50, got"):
        privatize(1.0, 1.0, int(batch.mask.sum()) + 0.5, KEY, sampler=sampler)
    with pytest.raises(ValueError, match="expected_batch_size is that of the sampler"):
        privatize(1.0, 1.0, lambda step: 50.0, KEY, sampler=sampler)
    with pytest.raises(ValueError, match="must be given where no sampler is"):
        privatize(1.0, 1.0, key=KEY)


def test_plan_hands_on_its_noise_and_sampler(plan, sampler):
    optimiser = plan.privatize(2.0, KEY, max_steps=70, inner=optax.sgd(1.0))
    state = optimiser.init(jnp.zeros(30_000))
    assert int(state.max_steps) == 70
    nothing = ExampleGradients(
        jnp.zeros((sampler.padded_size, 30_000)), sampler.sample(KEY, 0).mask
    )
    update, _ = jax.jit(optimiser.update)(nothing, state)
    expected = plan.noise_multiplier * 2.0 / sampler.expected_batch_size
    assert abs(np.std(update) / expected - 1.0) < 5.0 / np.sqrt(2 * 30_000)
    with pytest.raises(ValueError, match="max_steps must be at most the plan's 100, got 101"):
        plan.privatize(1.0, KEY, max_steps=101)
    with pytest.raises(
        ValueError, match="max_steps must be at most the 100 steps that the sampler"
    ):
        privatize(1.0, 1.0, key=KEY, sampler=sampler, max_steps=101)


def test_plan_of_another_sampler_is_refused(plan):
    for other in (shuffle_sampler(1000, 50), poisson_sampler(1000, 0.04, max_steps=100)):
        with pytest.raises(ValueError, match="sampler must be the one that the plan was made for"):
            plan.privatize(1.0, KEY, sampler=other)
    short = poisson_sampler(1000, 0.05, max_steps=50, padded_size=300)
    with pytest.raises(ValueError, match="made for all 100 steps"):
        plan.privatize(1.0, KEY, sampler=short)
    by_rate = plan_budget(1.0, 0.05, 100, "mu", every=100)
    with pytest.raises(ValueError, match="the plan was made for a rate"):
        by_rate.privatize(1.0, KEY)


def test_batch_drawn_anew_for_every_part_is_refused(sampler):
    split = poisson_sampler(1000, 0.05, max_steps=100, multiple_of=4)
    optimiser = privatize(1.0, 1.0, key=KEY, sampler=split, accumulate=4)
    state = optimiser.init(jnp.zeros(3))
    rows = jnp.ones((split.padded_size, 3))
    with pytest.raises(ValueError, match="rows a batch in 4 parts"):
        optimiser.update(ExampleGradients(rows, jnp.ones(len(rows), bool)), state)
    with pytest.raises(ValueError, match="accumulate must divide .* multiple_of=5"):
        privatize(1.0, 1.0, key=KEY, sampler=poisson_sampler(7, 1.0, 9), accumulate=5)


# -- keys


def test_same_key_for_batches_and_noise_does_no_harm():
    """Bits of the batch and of the noise come from different folds of the key."""
    sampler = poisson_sampler(3, 0.5, max_steps=1000, padded_size=3)
    optimiser = privatize(1.0, 1.0, key=KEY, sampler=sampler)
    start = optimiser.init(jnp.zeros(3))

    def one(step):
        batch = sampler.sample(KEY, step)
        nothing = ExampleGradients(jnp.zeros((3, 3)), batch.mask)
        noise, _ = optimiser.update(nothing, start._replace(step=step))
        return noise * sampler.expected_batch_size, jnp.zeros(4).at[batch.indices].max(batch.mask)

    noise, drawn = jax.jit(jax.vmap(one))(jnp.arange(1000, dtype=jnp.int32))
    joined = np.corrcoef(np.concatenate([noise, drawn[:, :3]], axis=1).T)
    assert np.max(np.abs(joined - np.eye(6))) < 5.0 / np.sqrt(1000)


def test_same_key_at_every_step_draws_other_batches(sampler):
    first, second = (sampler.sample(KEY, step).indices for step in (0, 1))
    assert not np.array_equal(first, second)
    with pytest.warns(DeprecationWarning, match=r"sample\(key, step\), with the key of the run"):
        old = sampler.sample(jax.random.fold_in(KEY, 1))
    assert np.array_equal(old.indices, second)
    with pytest.raises(ValueError, match="step must be an integer"):
        sampler.sample(KEY, 0.5)


# -- models and dtypes


def test_model_passed_whole_is_refused():
    for whole in ({"w": jnp.ones(3), "f": jnp.tanh}, {"w": jnp.ones(3), "n": jnp.uint32(1)}):
        for gradients in (per_example_gradients(loss), clipped_gradients(loss, 1.0)):
            with pytest.raises(ValueError, match="split the parameters off the model"):
                gradients(whole, jnp.ones((2, 3)), mask="all")
        with pytest.raises(ValueError, match="split the parameters off the model"):
            privatize(1.0, 1.0, 2.0, KEY).init(whole)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_short_floats_do_no_harm(dtype):
    """They are summed as whole numbers like others: 6e4 in float16 is not far from infinity."""
    for scale in (1e-4, 1.0, 6e4):
        rows = jnp.full((1000, 3), scale, dtype)
        gradients = ExampleGradients(rows, "all")
        optimiser = privatize(1.0, 1e-9, 1.0, KEY)
        update, _ = optimiser.update(gradients, optimiser.init(jnp.zeros(3, dtype)))
        norm = 1000.0 * min(np.sqrt(3.0) * float(jnp.asarray(scale, dtype)), 1.0)
        assert update.dtype == dtype
        assert abs(np.linalg.norm(np.asarray(update, np.float64)) / norm - 1.0) < 1e-2


def test_every_test_of_a_slip_is_named_on_the_page_of_mistakes():
    named = set(re.findall(r"`(test_\w+)`", PAGE.read_text(encoding="utf-8")))
    here = set(re.findall(r"^def (test_\w+)", Path(__file__).read_text(encoding="utf-8"), re.M))
    here.discard("test_every_test_of_a_slip_is_named_on_the_page_of_mistakes")
    assert here == named
