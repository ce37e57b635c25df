"""A record moves the exact sum by at most the clipping norm, by every path that a sum is made on.

The oracle is arithmetic in whole numbers on the host; gradients are an adversary's."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgdp.training import ExampleGradients, clipped_gradients, privatize, standard_normal
from jaxgdp.training.exact_sums import sum_of_clipped
from tests.training.test_training_exact_sums import adversary, in_units, norm

pytestmark = pytest.mark.nightly
ROWS, SHAPES = 24, [(5,), (2, 3)]
PATHS = ("micro-batches", "parts", "devices", "rows")


def loss(params, rows):
    """Its gradient is the row itself."""
    return sum((w * x).sum() for w, x in zip(params, rows, strict=True))


def _by_parts(leaves, clip_norm, keep):
    """What ``privatize`` has accumulated before the last part."""
    optimiser = privatize(clip_norm, 1.0, 8.0, jax.random.key(0), accumulate=4)
    params = [jnp.zeros(leaf.shape[1:], leaf.dtype) for leaf in leaves]
    state = optimiser.init(params)
    for i in range(3):
        part = slice(8 * i, 8 * i + 8)
        rows = ExampleGradients([leaf[part] for leaf in leaves], keep[part])
        _, state = optimiser.update(rows, state, params)
    return state.accumulated.total


def _by_devices(leaves, clip_norm, keep):
    """Four devices, by the axis that ``pmap`` and ``shard_map`` have."""
    cut = [leaf.reshape(4, 6, *leaf.shape[1:]) for leaf in leaves]
    one = lambda rows, keep: sum_of_clipped(rows, clip_norm, keep).over_devices("data")
    total = jax.vmap(one, axis_name="data")(cut, keep.reshape(4, 6))
    return jax.tree.map(lambda leaf: leaf[0], total)


def _by_micro_batches(leaves, clip_norm, keep):
    params = [jnp.zeros(leaf.shape[1:], leaf.dtype) for leaf in leaves]
    return clipped_gradients(loss, clip_norm, 5)(params, leaves, mask=keep)[1].total


SUMS = {
    "micro-batches": _by_micro_batches,
    "parts": _by_parts,
    "devices": _by_devices,
    "rows": sum_of_clipped,
}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "float64"])
def test_record_moves_the_sum_by_at_most_the_clipping_norm_on_every_path(dtype, path):
    rng = np.random.default_rng(sum(map(ord, dtype + path)))
    with jax.enable_x64(dtype == "float64"):
        summed, largest = jax.jit(SUMS[path]), 0.0
        for _ in range(1000):
            leaves = adversary(rng, ROWS, SHAPES, dtype)
            clip_norm = jnp.asarray(10.0 ** rng.uniform(-6, 6), dtype if "64" in dtype else None)
            keep = jnp.asarray(rng.random(ROWS) < 0.9)
            one = int(rng.integers(ROWS))
            without, with_record = (
                in_units(summed(leaves, clip_norm, keep.at[one].set(is_in)))
                for is_in in (False, True)
            )
            moved = norm(with_record - without)
            assert moved < 1.0
            largest = max(largest, moved)
            # and the same sum as by every other path, to the last unit
            other = in_units(sum_of_clipped(leaves, clip_norm, keep.at[one].set(True)))
            assert np.max(np.abs(with_record - other)) <= ROWS
    assert largest > 0.999


def test_record_of_a_million_moves_the_sum_of_micro_batches_by_at_most_the_clipping_norm():
    rows = jnp.ones((10**6, 1))
    gradient = clipped_gradients(lambda w, x: w @ x, 0.7, microbatch_size=1000)
    summed = jax.jit(lambda mask: gradient(jnp.zeros(1), rows, mask=mask)[1].total)
    every = jnp.ones(10**6, bool)
    total = in_units(summed(every))
    for one in (0, 123_456, 10**6 - 1):
        assert 0.999 < norm(total - in_units(summed(every.at[one].set(False)))) < 1.0


@pytest.mark.parametrize("batch, microbatch_size", [(37, None), (64, 16), (61, 8)])
def test_record_has_the_same_gradient_wherever_it_stands_in_a_batch(batch, microbatch_size):
    """What the proof assumes of a compiled program: a record that is put in moves others on."""
    rng = np.random.default_rng(batch)
    params = {
        "kernel": jnp.asarray(rng.normal(size=(3, 3, 1, 4)), jnp.float32),
        "dense": jnp.asarray(rng.normal(size=(4 * 16, 10)), jnp.float32),
    }

    def entropy(params, image, label):
        x = jax.lax.conv_general_dilated(
            image[None],
            params["kernel"],
            (2, 2),
            "SAME",
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
        )
        return -jax.nn.log_softmax(jnp.tanh(x).reshape(-1) @ params["dense"])[label]

    images = rng.normal(size=(batch, 8, 8, 1)).astype(np.float32)
    labels, mask = rng.integers(10, size=batch), rng.random(batch) < 0.8
    gradient = clipped_gradients(entropy, 1.0, microbatch_size)
    summed = jax.jit(lambda x, y, keep: gradient(params, x, y, mask=keep)[1].total)
    total = in_units(summed(images, labels, mask))
    for order in (np.roll(np.arange(batch), 1), *(rng.permutation(batch) for _ in range(5))):
        assert np.array_equal(total, in_units(summed(images[order], labels[order], mask[order])))


@pytest.mark.parametrize("sigma", [0.5, 1.0, 30.0])
def test_noise_that_is_released_has_the_scale_that_is_accounted_for(sigma):
    """The noise of a million coordinates, in one update of each of several keys."""
    params = jnp.zeros(10**6)
    variances = []
    for seed in range(4):
        optimiser = privatize(0.3, sigma, 8.0, jax.random.key(seed))
        nothing = ExampleGradients(jnp.zeros((2, 10**6)), "all")
        update, _ = optimiser.update(nothing, optimiser.init(params), params)
        noise = np.asarray(update, np.float64) * 8.0 / 0.3
        assert abs(noise.mean()) < 5.0 * sigma / 1e3
        variances.append(np.mean(noise**2) / sigma**2)
    # (the relative standard error of a variance is √(2/N))
    assert abs(np.mean(variances) - 1.0) < 5.0 * np.sqrt(2.0 / 4e6)
    reference = np.asarray(standard_normal(jax.random.key(9), (10**6,)), np.float64)
    assert abs(np.mean(np.abs(reference) > 4.0) - 6.334e-5) < 5.0 * np.sqrt(6.334e-5 / 1e6)
