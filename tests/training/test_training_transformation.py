"""Clipping, noise, averaging, counting and stopping, as an optax transformation."""

import pickle

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxgdp.training import (
    ExampleGradients,
    clipped_sum,
    per_example_gradients,
    poisson_sampler,
    privatize,
)

KEY = jax.random.key(7)


def gradients(number=6, seed=0):
    rng = np.random.default_rng(seed)
    scale = np.geomspace(0.01, 100.0, number)
    return {
        "w": jnp.asarray(scale[:, None, None] * rng.normal(size=(number, 4, 3)), jnp.float32),
        "b": jnp.asarray(scale[:, None] * rng.normal(size=(number, 3)), jnp.float32),
    }


def flat(tree, axis=0):
    return np.concatenate(
        [np.asarray(x, np.float64).reshape(x.shape[:axis] + (-1,)) for x in jax.tree.leaves(tree)],
        axis,
    )


def by_hand(tree, clip_norm, mask):
    rows = flat(tree, 1)
    norms = np.linalg.norm(rows, axis=1)
    return np.sum(rows * (np.minimum(1.0, clip_norm / norms) * mask)[:, None], axis=0)


def test_clipped_sum_is_that_of_a_loop_and_of_optax():
    g = gradients()
    mask = np.array([1, 1, 0, 1, 1, 0], bool)
    # each norm is cut a ten-thousandth short of the clipping norm
    assert np.allclose(
        flat(clipped_sum(g, 1.5, mask)), by_hand(g, 1.5 * (1 - 1e-4), mask), atol=1e-5
    )
    theirs, _ = optax.per_example_global_norm_clip(jax.tree.leaves(g), 1.5)
    assert np.allclose(flat(clipped_sum(g, 1.5, "all")), flat(theirs), atol=6 * 1.5 * 1e-4)


@pytest.mark.parametrize("size", [3, 1000, 300_000])
def test_no_gradient_moves_the_sum_by_more_than_the_clipping_norm(size):
    rng = np.random.default_rng(size)
    rows = np.stack(
        [
            np.ones(size),
            rng.normal(size=size),
            np.abs(rng.normal(size=size)) ** 4,
            1e15 * np.ones(size),
        ]
    )
    each = jax.vmap(lambda row: clipped_sum(row[None], 2.5, "all"))(jnp.asarray(rows, jnp.float32))
    norms = np.linalg.norm(np.asarray(each, np.float64), axis=1)
    assert np.all(norms <= 2.5) and norms[3] > 2.499


def test_padding_and_broken_gradients_leave_no_trace():
    g = gradients()
    mask = jnp.array([True, True, True, False, True, True])
    spoiled = jax.tree.map(lambda x: x.at[3].set(jnp.nan), g)
    assert np.array_equal(flat(clipped_sum(g, 1.0, mask)), flat(clipped_sum(spoiled, 1.0, mask)))
    # a real example whose gradient is not finite counts as zero, in all of its arrays
    for broken in (jnp.nan, jnp.inf, -jnp.inf):
        one = {"w": g["w"].at[3, 0, 0].set(broken), "b": g["b"]}
        assert np.array_equal(flat(clipped_sum(g, 1.0, mask)), flat(clipped_sum(one, 1.0, "all")))
    # finite, but with a norm beyond float32
    huge = jax.tree.map(lambda x: x.at[3].set(3e38), g)
    assert np.all(np.isfinite(flat(clipped_sum(huge, 1.0, "all"))))


def test_per_example_gradients_are_those_of_single_examples():
    loss = lambda w, x, y: jnp.sum((w @ x - y) ** 2)
    w, x, y = jnp.ones((2, 3)), jnp.arange(12.0).reshape(4, 3), jnp.arange(8.0).reshape(4, 2)
    losses, found = per_example_gradients(loss)(w, x, y, mask="all")
    found = found.gradients
    for i in range(4):
        value, gradient = jax.value_and_grad(loss)(w, x[i], y[i])
        assert np.allclose(found[i], gradient) and np.allclose(losses[i], value)


def test_noise_has_its_scale_and_the_mean_the_expected_batch_size():
    size, sigma, clip_norm, expected = 200_000, 3.0, 0.5, 40.0
    transformation = privatize(clip_norm, sigma, expected, KEY)
    g = {"a": jnp.zeros((5, size)), "b": jnp.ones((5, 4)) / 2.0 * 0.1}
    state = transformation.init(None)
    for mask in (jnp.ones(5, bool), jnp.arange(5) < 2, jnp.zeros(5, bool)):
        update, _ = transformation.update(ExampleGradients(g, mask), state)
        noise = np.asarray(update["a"], np.float64)
        # divided by 40 whatever the number of real examples
        assert abs(noise.std() / (sigma * clip_norm / expected) - 1.0) < 5.0 / np.sqrt(2 * size)
        assert abs(noise.mean()) < 5.0 * sigma * clip_norm / expected / np.sqrt(size)
        quiet, _ = privatize(clip_norm, 1e-9, expected, KEY).update(
            ExampleGradients(g, mask), state
        )
        assert np.allclose(quiet["b"], 0.05 * mask.sum() / expected, rtol=1e-5, atol=1e-9)


def test_noise_differs_between_steps_and_arrays_and_repeats_after_a_restart():
    transformation = privatize(1.0, 1.0, 1.0, KEY)
    g = {"a": jnp.zeros((2, 50)), "b": jnp.zeros((2, 50))}
    first, state = transformation.update(g, transformation.init(None), mask="all")
    second, _ = transformation.update(g, state, mask="all")
    again, _ = transformation.update(g, transformation.init(None), mask="all")
    parts = [np.asarray(x) for x in (first["a"], first["b"], second["a"], second["b"])]
    for i, j in ((0, 1), (0, 2), (1, 3), (1, 2), (0, 3)):
        assert not np.any(parts[i] == parts[j])
    assert np.array_equal(first["a"], again["a"]) and np.array_equal(first["b"], again["b"])


def train(transformation, steps, params, batch):
    def step(carry, _):
        params, state = carry
        rows = ExampleGradients(batch, jnp.array([True, False]))
        update, state = transformation.update(rows, state, params)
        return (optax.apply_updates(params, update), state), (params, state.spent)

    return jax.jit(lambda c: jax.lax.scan(step, c, None, length=steps))(
        (params, transformation.init(params))
    )


def test_transformation_stops_when_the_budget_is_spent_and_freezes_the_optimiser():
    params, batch = jnp.ones(3), jnp.ones((2, 3))
    transformation = privatize(1.0, 1.0, 2.0, KEY, max_steps=4, inner=optax.adam(0.1))
    (last, state), (history, spent) = train(transformation, 9, params, batch)
    assert int(state.step) == 4 and bool(state.spent) and spent.tolist() == [False] * 3 + [True] * 6
    assert np.array_equal(last, history[4]) and not np.any(history[3] == history[4])
    (_, four), _ = train(transformation, 4, params, batch)
    for a, b in zip(jax.tree.leaves(four.inner), jax.tree.leaves(state.inner), strict=True):
        assert np.array_equal(a, b)
    assert int(state.inner[0].count) == 4
    (same, none), _ = train(privatize(1.0, 1.0, 2.0, KEY, max_steps=0), 3, params, batch)
    assert np.array_equal(same, params) and int(none.step) == 0 and bool(none.spent)


def test_transformation_composes_in_a_chain_and_is_float32():
    chain = optax.chain(privatize(1.0, 1e-6, 4.0, KEY, max_steps=1), optax.scale(-2.0))
    params = jnp.zeros(3)
    state = chain.init(params)
    mask = jnp.array([True, True, False])
    update, state = chain.update(ExampleGradients(jnp.full((3, 3), 0.1), mask), state, params)
    assert update.dtype == jnp.float32 and np.allclose(update, -2.0 * 0.2 / 4.0, rtol=1e-4)
    update, state = chain.update(ExampleGradients(jnp.full((3, 3), 0.1), mask), state, params)
    assert np.all(np.asarray(update) == 0.0)
    half, _ = privatize(1.0, 1.0, 4.0, KEY).update(
        jnp.ones((2, 3), jnp.bfloat16), state[0], mask="all"
    )
    assert half.dtype == jnp.bfloat16


def test_schedules_and_choices_that_depend_on_the_data():
    rising = privatize(1.0, lambda step: 1e-9 + 1e9 * (step > 0), lambda step: 1.0 + step, KEY)
    g = jnp.full((2, 3), 0.1)
    first, state = rising.update(g, rising.init(None), mask="all")
    second, state = rising.update(g, state, mask="all")
    assert np.allclose(first, 0.2) and np.max(np.abs(second)) > 1e6
    third, state = rising.update(
        g, state, mask="all", noise_multiplier=1e-9, admitted=jnp.asarray(True)
    )
    assert np.allclose(third, 0.2 / 3.0) and int(state.step) == 3 and not bool(state.spent)
    for admitted in (False, True):  # once refused, never again
        update, state = rising.update(
            g, state, mask="all", noise_multiplier=1e-9, admitted=jnp.asarray(admitted)
        )
        assert np.all(np.asarray(update) == 0.0) and int(state.step) == 3 and bool(state.spent)


@pytest.mark.parametrize("last", [0.0, -1.0, np.nan])
def test_step_without_noise_releases_nothing(last):
    g = jnp.full((2, 3), 0.1)
    falling = privatize(1.0, lambda step: jnp.where(step < 2, 1e-9, last), 1.0, KEY)
    (_, state), (history, spent) = train(falling, 5, jnp.zeros(3), jnp.full((2, 3), 0.1))
    assert spent.tolist() == [False, False, True, True, True] and int(state.step) == 2
    assert np.any(history[1] != history[2]) and np.array_equal(history[2], history[4])
    # by name where it is known before tracing
    with pytest.raises(ValueError, match="noise_multiplier must be a finite number > 0"):
        falling.update(g, falling.init(jnp.zeros(3)), mask="all", noise_multiplier=last)


def test_many_runs_at_once_are_the_single_runs():
    g = jnp.linspace(-1.0, 1.0, 12).reshape(4, 3)

    def run(sigma, seed, steps):
        transformation = privatize(
            1.0, sigma, 4.0, jax.random.key(seed), max_steps=steps, inner=optax.sgd(0.1)
        )
        (params, state), _ = jax.lax.scan(
            lambda c, _: (
                (
                    optax.apply_updates(c[0], (u := transformation.update(g, c[1], mask="all"))[0]),
                    u[1],
                ),
                None,
            ),
            (jnp.zeros(3), transformation.init(jnp.zeros(3))),
            None,
            length=5,
        )
        return params, state.step

    sigmas, seeds, steps = jnp.array([0.5, 2.0]), jnp.array([3, 4]), jnp.array([2, 9])
    many = jax.jit(jax.vmap(run))(sigmas, seeds, steps)
    for i in range(2):
        one = run(float(sigmas[i]), int(seeds[i]), int(steps[i]))
        assert (
            np.allclose(many[0][i], one[0], atol=1e-6)
            and int(many[1][i]) == int(one[1]) == (2, 5)[i]
        )


def test_counters_keep_their_types_with_64_bit_on():
    with jax.enable_x64(True):
        params, batch = jnp.ones(3), jnp.ones((2, 3))
        transformation = privatize(1.0, 1.0, 2.0, KEY, max_steps=4, inner=optax.sgd(0.1))
        (last, state), _ = train(transformation, 9, params, batch)
        assert last.dtype == jnp.float64 and state.step.dtype == jnp.int32 and int(state.step) == 4


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("given", [False, True])
def test_gradients_that_are_averaged_already_are_refused(compiled, given):
    """Leading sizes agree, so as per-example gradients they would make a sum, and the clipping
    would clip nothing of a record.
    """
    params = {"w": jnp.ones((4, 3)), "b": jnp.ones((4,))}
    transformation = privatize(1.0, 1.0, 8.0, KEY, inner=optax.adam(0.1))
    state = transformation.init(params)
    update = jax.jit(transformation.update) if compiled else transformation.update
    arguments = (state, params) if given else (state,)
    with pytest.raises(
        ValueError, match=r"gradients\['b'\] must have shape \(examples, 4\).*got \(4,\)"
    ):
        update(params, *arguments)
    per_example = jax.tree.map(lambda x: jnp.ones((4, *x.shape)), params)
    for wrong in (
        {"w": per_example["w"], "b": jnp.ones((4, 1))},
        {"w": per_example["w"][:, None], "b": per_example["b"]},
    ):
        with pytest.raises(ValueError, match="must have shape"):
            update(ExampleGradients(wrong, "all"), *arguments)
    with pytest.raises(ValueError, match="gradients\\['c'\\] must belong to a parameter"):
        update(ExampleGradients({"c": per_example["b"]}, "all"), *arguments)
    ready, after = jax.jit(transformation.update)(ExampleGradients(per_example, "all"), *arguments)
    assert jax.tree.map(jnp.shape, ready) == {"w": (4, 3), "b": (4,)}
    assert jax.tree.structure(after) == jax.tree.structure(state)


def test_averaged_gradients_of_a_number_are_refused_in_a_chain():
    chain = optax.chain(privatize(1.0, 1.0, 8.0, KEY), optax.scale(-1.0))
    state = chain.init(jnp.ones(()))
    with pytest.raises(
        ValueError, match=r"must have shape \(examples,\), one entry per example, got \(\)"
    ):
        chain.update(jnp.ones(()), state, jnp.ones(()))
    assert jax.jit(chain.update)(ExampleGradients(jnp.ones(5), "all"), state)[0].shape == ()


def test_shapes_are_part_of_the_structure_and_no_array():
    params = {"w": jnp.ones((4, 3)), "b": jnp.ones((4,))}
    state = privatize(1.0, 1.0, 8.0, KEY).init(params)
    assert state.shapes.read() == {"['w']": (4, 3), "['b']": (4,)}
    assert len(jax.tree.leaves(state)) == 4 and all(
        isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(state)
    )
    assert pickle.loads(pickle.dumps(state.shapes)) == state.shapes
    other = privatize(1.0, 1.0, 8.0, KEY).init({"w": jnp.ones((4, 2)), "b": jnp.ones((4,))})
    assert jax.tree.structure(state) != jax.tree.structure(other)


@pytest.mark.parametrize(
    "key",
    [
        0,
        1.5,
        None,
        True,
        "key",
        np.zeros(2, np.int32),
        np.zeros(3, np.uint32),
        jax.random.split(KEY, 3),
        jnp.zeros(()),
    ],
)
def test_values_that_are_not_keys_are_refused_by_name(key):
    with pytest.raises(ValueError, match="key must be one JAX PRNG key"):
        privatize(1.0, 1.0, 8.0, key)
    with pytest.raises(ValueError, match="key must be one JAX PRNG key"):
        poisson_sampler(10, 1.0, max_steps=3).sample(key, 0)


def test_keys_of_every_kind_are_taken():
    for key in (
        KEY,
        jax.random.PRNGKey(3),
        np.asarray(jax.random.PRNGKey(3)),
        jax.random.key(3, impl="rbg"),
    ):
        transformation = privatize(1.0, 1.0, 8.0, key)
        update, _ = transformation.update(
            jnp.ones((2, 3)), transformation.init(jnp.ones(3)), mask="all"
        )
        assert update.shape == (3,) and np.all(np.isfinite(update))


@pytest.mark.parametrize(
    "bad, named",
    [
        ({"clip_norm": 0.0}, "clip_norm must be a finite number > 0, got 0"),
        ({"noise_multiplier": -1.0}, "noise_multiplier"),
        ({"noise_multiplier": np.nan}, "noise_multiplier"),
        ({"expected_batch_size": 0}, "expected_batch_size"),
        ({"max_steps": 2.5}, "max_steps"),
        ({"max_steps": -1}, "max_steps"),
    ],
)
def test_bad_arguments_are_named(bad, named):
    with pytest.raises(ValueError, match=named):
        privatize(
            **(
                {"clip_norm": 1.0, "noise_multiplier": 1.0, "expected_batch_size": 8.0, "key": KEY}
                | bad
            )
        )


@pytest.mark.parametrize(
    "tree, mask, named",
    [
        ({}, "all", "at least one array"),
        ([jnp.ones((2, 3), jnp.int32)], "all", "int32"),
        ([jnp.ones((2, 3)), jnp.ones((4, 3))], "all", "leading axis"),
        ([jnp.ones(())], "all", "leading axis"),
        ([jnp.ones((2, 3))], None, "mask must be given"),
        ([jnp.ones((2, 3))], jnp.ones(2), "mask must be an array of bool"),
        ([jnp.ones((2, 3))], jnp.ones(3, bool), r"mask must have shape \(2,\)"),
    ],
)
def test_bad_gradients_are_named(tree, mask, named):
    with pytest.raises(ValueError, match=named):
        clipped_sum(tree, 1.0, mask)
