"""Clipped sums in bounded memory: over micro-batches, parts of an update and devices, all equal."""

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxgdp.training import (
    ClippedGradients,
    ExampleGradients,
    clipped_gradients,
    per_example_gradients,
    poisson_sampler,
    privatize,
)

KEY = jax.random.key(2)


def loss(params, x, y):
    return jnp.sum(jnp.tanh(x @ params["w"]) * params["b"]) * y


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    params = {"w": jnp.asarray(rng.normal(size=(4, 3)), jnp.float32), "b": jnp.ones(3)}
    x, y = jnp.asarray(rng.normal(size=(26, 4)), jnp.float32), jnp.asarray(rng.normal(size=26))
    return params, x, y.astype(jnp.float32), jnp.asarray(rng.random(26) < 0.7)


def leaves(clipped):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(clipped)]


def test_sum_is_the_same_for_every_micro_batch(problem):
    params, x, y, mask = problem
    whole_losses, whole = clipped_gradients(loss, 0.5)(params, x, y, mask=mask)
    _, rows = per_example_gradients(loss)(params, x, y)
    flat = np.concatenate([np.reshape(g, (26, -1)) for g in jax.tree.leaves(rows.gradients)], 1)
    by_hand = np.sum(
        (flat * np.minimum(1.0, 0.5 / np.linalg.norm(flat, axis=1))[:, None])[mask], axis=0
    )
    found = np.concatenate([np.ravel(g) for g in jax.tree.leaves(whole.rounded())])
    assert np.allclose(found, by_hand, atol=26 * 0.5 * 2e-4)
    for size in (1, 4, 13, 25, 100):
        losses, total = jax.jit(clipped_gradients(loss, 0.5, size))(params, x, y, mask=mask)
        assert isinstance(total, ClippedGradients) and total.number == 26
        # (a program of another shape may round a gradient otherwise, by a unit or so)
        for one, other in zip(leaves(total), leaves(whole), strict=True):
            assert one.shape == other.shape
        assert np.allclose(losses, whole_losses, atol=1e-6)
        close = jax.tree.map(
            lambda a, b: np.allclose(a, b, atol=1e-5), total.rounded(), whole.rounded()
        )
        assert all(jax.tree.leaves(close))


def test_privatize_takes_sum_and_rows_alike(problem):
    params, x, y, mask = problem
    optimiser = privatize(0.5, 1.0, 10.0, KEY, inner=optax.sgd(1.0))
    state = optimiser.init(params)
    _, rows = per_example_gradients(loss)(params, x, y, mask=mask)
    _, total = clipped_gradients(loss, 0.5, 8)(params, x, y, mask=mask)
    _, bare = per_example_gradients(loss)(params, x, y)
    updates = [
        optimiser.update(rows, state, params),
        optimiser.update(total, state, params),
        optimiser.update(bare, state, params, mask=mask),
        optimiser.update(ExampleGradients(bare.gradients, mask), state),
    ]
    for update, after in updates:
        assert int(after.step) == 1
        same = jax.tree.map(lambda a, b: np.allclose(a, b, atol=1e-6), update, updates[0][0])
        assert all(jax.tree.leaves(same))


def test_accumulated_parts_are_one_update():
    rng = np.random.default_rng(3)
    data = rng.normal(size=(200, 3)).astype(np.float32)
    sampler = poisson_sampler(200, 0.2, max_steps=9, multiple_of=4)
    assert sampler.padded_size % 4 == 0
    gradient = jax.jit(clipped_gradients(lambda w, x: w @ x, 1.0))
    settings = {"key": KEY, "sampler": sampler, "inner": optax.adam(0.1), "max_steps": 2}
    whole, parts = (privatize(1.0, 1.0, **settings, accumulate=k) for k in (1, 4))
    params, state, split = jnp.zeros(3), whole.init(jnp.zeros(3)), parts.init(jnp.zeros(3))
    assert state.part == 0
    one, four = jax.jit(whole.update), jax.jit(parts.update)
    for number in range(12):
        batch = sampler.sample(jax.random.key(9), split.step)
        assert int(split.part) == number % 4
        part = batch.part(int(split.part), of=4)
        _, clipped = gradient(params, sampler.take(part, data), mask=part.mask)
        update, split = four(clipped, split, params)
        if number % 4 == 3:
            _, clipped = gradient(params, sampler.take(batch, data), mask=batch.mask)
            expected, state = one(clipped, state, params)
            # (sums are exact; the cosine of the noise is rounded by how XLA fuses a program)
            assert np.allclose(update, expected, atol=1e-6)
            assert (np.any(update) and number < 8) or not np.any(update)
            assert int(split.step) == int(state.step) and bool(split.spent) == bool(state.spent)
        else:
            assert not np.any(update)
    assert int(split.step) == 2 and bool(split.spent)


def test_parts_of_a_batch_are_the_batch():
    batch = poisson_sampler(50, 0.5, max_steps=3, multiple_of=6).sample(KEY, 0)
    parts = [batch.part(i, of=3) for i in range(3)]
    assert np.array_equal(np.concatenate([p.indices for p in parts]), batch.indices)
    assert np.array_equal(np.concatenate([p.mask for p in parts]), batch.mask)
    with pytest.raises(ValueError, match="of must divide the padded size"):
        batch.part(0, of=len(batch.mask) + 1)
    with pytest.raises(ValueError, match=r"number must be in \[0, 2\], got 3"):
        batch.part(3, of=3)


_FOUR_DEVICES = """
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, PartitionSpec as P
from jaxgdp.training import (
    ExampleGradients, Plan, clipped_gradients, per_example_gradients, poisson_sampler, privatize
)
assert len(jax.devices()) == 4 and not jax.config.jax_enable_x64
key, draw = jax.random.key(0), jax.random.split(jax.random.key(1), 4)
data = np.random.default_rng(0).normal(size=(4, 100, 3)).astype(np.float32)
sampler = poisson_sampler(100, 0.25, max_steps=10, multiple_of=8)  # of one device's share
params = jnp.zeros(3)

def part(draw, share, axis, clipping=True):
    batch = sampler.sample(draw, 3)
    gradient = clipped_gradients(lambda w, x: w @ x, 1.0, microbatch_size=8)
    rows = jnp.where(batch.mask[:, None], share[jnp.where(batch.mask, batch.indices, 0)], 0.0)
    optimiser = privatize(1.0, 0.5, key=key, sampler=sampler, axis_name=axis)
    if not clipping:
        gradient = per_example_gradients(lambda w, x: w @ x)
    _, clipped = gradient(params, rows, mask=batch.mask)
    return optimiser.update(clipped, optimiser.init(params), params)[0]

def sum_of(draw, share, axis):  # over all devices, without noise
    batch = sampler.sample(draw, 3)
    rows = jnp.where(batch.mask[:, None], share[jnp.where(batch.mask, batch.indices, 0)], 0.0)
    gradient = clipped_gradients(lambda w, x: w @ x, 1.0, microbatch_size=8)
    total = gradient(params, rows, mask=batch.mask)[1].total.over_devices(axis)
    return total.high, total.low

# the same batch on one device. Whole numbers are added without error, but a program of another
# shape may round the norm of a record otherwise, and with it each of its cut coordinates by a unit;
# and noise is a root times a cosine, rounded by how XLA fuses a program: hence 1e-6 below
batches = [sampler.sample(draw[i], 3) for i in range(4)]
rows = np.concatenate([np.asarray(sampler.take(b, d)) for b, d in zip(batches, data)])
mask = jnp.concatenate([b.mask for b in batches])
gradient = clipped_gradients(lambda w, x: w @ x, 1.0)
alone = privatize(1.0, 0.5, 4 * sampler.expected_batch_size, key)
total = gradient(params, rows, mask=mask)[1]
update, _ = alone.update(total, alone.init(params), params)
units = lambda high, low: np.asarray(high).astype(np.int64) * 2**16 + np.asarray(low)
exact, records = units(total.total.high, total.total.low), int(mask.sum())

mesh = Mesh(np.array(jax.devices()), ("data",))
split = {"mesh": mesh, "in_specs": (P("data"), P("data")), "out_specs": P()}
sums = [jax.jit(jax.shard_map(lambda k, d: sum_of(k[0], d[0], "data"), **split))(draw, data)]
mapped = jax.pmap(lambda k, d: sum_of(k, d, "data"), axis_name="data")(draw, data)
sums += [(mapped[0][i], mapped[1][i]) for i in range(4)]
assert all(np.max(np.abs(units(*one) - exact)) <= records for one in sums)
# the devices agree with each other to the last bit
assert all(np.array_equal(units(*one), units(*sums[1])) for one in sums[1:])
for clipping in (True, False):
    program = jax.shard_map(lambda k, d: part(k[0], d[0], "data", clipping), **split)
    sharded = jax.jit(program)(draw, data)
    assert np.allclose(sharded, update, atol=1e-6), (clipping, sharded, update)
mapped = jax.pmap(lambda k, d: part(k, d, "data"), axis_name="data")(draw, data)
assert all(np.allclose(m, update, atol=1e-6) for m in mapped), (mapped, update)

# rows that were clipped nowhere yet, and a plan that is looked up on each device
g, mask = jnp.linspace(-2.0, 3.0, 24).reshape(8, 3), jnp.arange(8) % 3 > 0
whole = privatize(1.0, 0.5, 4.0, key)
alone, _ = whole.update(ExampleGradients(g, mask), whole.init(params))
counts = np.arange(4, dtype=np.int32)
table = {"mu": counts.astype(np.float32)}, {"mu": counts.astype(np.float32) + 1}
plan = Plan(counts, *table, 1.0, 1.0, 3, 0.0, (), 0)

def step(g, mask):
    parts = privatize(1.0, 0.5, 4.0, key, axis_name="data")
    update, state = parts.update(ExampleGradients(g, mask), parts.init(params))
    return update, plan.at(state.step)["mu"].upper

update, upper = jax.jit(jax.shard_map(step, **split | {"out_specs": (P(), P())}))(g, mask)
assert np.allclose(update, alone, atol=1e-6) and float(upper) == 2.0
updates, uppers = jax.pmap(step, axis_name="data")(g.reshape(4, 2, 3), mask.reshape(4, 2))
assert all(np.allclose(u, alone, atol=1e-6) for u in updates) and uppers.tolist() == [2.0] * 4
"""


def test_four_devices_are_equal_to_one(flags_of_xla):
    environment = os.environ | {
        "XLA_FLAGS": f"--xla_force_host_platform_device_count=4 {flags_of_xla}",
        "JAX_PLATFORMS": "cpu",
    }
    found = subprocess.run(
        [sys.executable, "-c", _FOUR_DEVICES], capture_output=True, text=True, env=environment
    )
    assert found.returncode == 0, found.stderr


@pytest.mark.parametrize(
    "bad, named",
    [
        ({"clip_norm": 0.0}, "clip_norm must be a finite number > 0"),
        ({"microbatch_size": 0}, "microbatch_size"),
        ({"microbatch_size": 2.5}, "microbatch_size"),
    ],
)
def test_bad_settings_are_named(bad, named):
    with pytest.raises(ValueError, match=named):
        clipped_gradients(loss, **({"clip_norm": 1.0} | bad))


def test_batch_of_several_lengths_is_refused(problem):
    params, x, y, mask = problem
    with pytest.raises(ValueError, match="common leading axis"):
        clipped_gradients(loss, 1.0)(params, x, y[:-1], mask=mask)
