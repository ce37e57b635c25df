"""The released sum, without its noise, moves by at most the clipping norm when a record changes.

The oracle is arithmetic in whole numbers and in float64 on the host, which shares no code with what
is tested."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgdp.training import ExampleGradients, clipped_sum, privatize
from jaxgdp.training.exact_sums import MOST_EXAMPLES, ExactSum, sum_of_clipped, whole_and_fraction
from jaxgdp.training.transformation import noisy_mean

KEY = jax.random.key(1)
SPECIAL = [0.0, -0.0, 1e-45, 1e-38, 1e-20, 1e-7, 1.0, -1.0, 1e4, 1e18, 3e38, np.inf, np.nan]


def in_units(total):
    """A sum as Python integers; the arrays of it one after the other."""
    high, low = (np.concatenate([np.ravel(x) for x in jax.tree.leaves(t)]) for t in total)
    assert np.all((low >= 0) & (low < 2**16))
    return high.astype(object) * 2**16 + low.astype(object)


def norm(units):
    return float(sum(int(u) ** 2 for u in units)) ** 0.5 / 2**24


def adversary(rng, rows, shapes, dtype):
    """Gradients that all point the same way, or nearly, or whose entries are extreme."""
    kind = rng.integers(4)
    size = sum(int(np.prod(shape)) for shape in shapes)
    if kind == 0:
        flat = np.ones((rows, size)) * 10.0 ** rng.uniform(-30, 30)
    elif kind == 1:
        flat = np.abs(rng.normal(size=(rows, size))) ** rng.uniform(0.1, 20)
    elif kind == 2:
        flat = rng.choice(SPECIAL, size=(rows, size))
    else:
        flat = rng.normal(size=(rows, size)) * 10.0 ** rng.uniform(-10, 10, size=(rows, 1))
    parts = np.split(flat, np.cumsum([int(np.prod(shape)) for shape in shapes])[:-1], axis=1)
    with np.errstate(over="ignore"):
        leaves = [
            jnp.asarray(p.reshape(rows, *s)).astype(dtype)
            for p, s in zip(parts, shapes, strict=True)
        ]
    return leaves


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_record_moves_the_sum_by_at_most_one_clipping_norm(dtype):
    rng = np.random.default_rng(sum(map(ord, dtype)))
    # (few shapes, so that few programs are compiled)
    summed = jax.jit(sum_of_clipped)
    largest = 0.0
    for number in range(334):
        rows, shapes = [(3, [(7,)]), (9, [(300, 2), ()]), (200, [(5,), (2, 3)])][number % 3]
        leaves = adversary(rng, rows, shapes, dtype)
        clip_norm = jnp.float32(10.0 ** rng.uniform(-6, 6))
        keep = jnp.asarray(rng.random(rows) < 0.9)
        one = int(rng.integers(rows))
        without, with_record = (
            in_units(summed(leaves, clip_norm, keep.at[one].set(is_in))) for is_in in (False, True)
        )
        moved = norm(with_record - without)
        assert moved < 1.0
        largest = max(largest, moved)
    # the bound is not met by making every gradient smaller
    assert largest > 0.999


def test_sum_is_that_of_whole_numbers_whatever_the_order():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(3000, 5)).astype(np.float32) * np.geomspace(1e-3, 1e3, 3000)[:, None]
    rows = rows.astype(np.float32)
    exact = rows.astype(np.float64)
    exact *= np.minimum(1.0, (1 - 1e-4) / np.linalg.norm(exact, axis=1))[:, None]
    summed = jax.jit(lambda rows: sum_of_clipped([rows], 1.0, jnp.ones(3000, bool)))
    found = in_units(summed(rows))
    assert np.all(np.abs(found.astype(float) / 2**24 - exact.sum(0)) < 3000 * 2.0**-22)
    assert np.array_equal(found, in_units(summed(rows[rng.permutation(3000)])))
    parts = [
        sum_of_clipped([rows[i : i + 1000]], 1.0, jnp.ones(1000, bool)) for i in (0, 1000, 2000)
    ]
    assert np.array_equal(found, in_units(parts[0] + parts[1] + parts[2]))


def test_whole_and_fraction_are_exact():
    rng = np.random.default_rng(1)
    ends = [0, 1, -1, 2**23 - 1, 2**23, -(2**23), 2**24, (2**23 - 1) << 24, -((2**23 - 1) << 24)]
    units = np.array(ends + list(rng.integers(-(2**46), 2**46, 2000)))
    high, low = jnp.asarray(units >> 16, jnp.int32), jnp.asarray(units & 0xFFFF, jnp.int32)
    whole, fraction = (np.asarray(x, float) for x in whole_and_fraction(high, low, jnp.float32))
    assert np.array_equal(whole * 2**24 + fraction * 2**24, units.astype(float))
    assert np.all((fraction >= -0.5) & (fraction < 0.5))


def test_rounding_comes_after_the_noise():
    """2²⁰ examples, and one more or less: float32 next to 2²⁰ has steps of 1/8, so that what is
    released at noise 1/100 shows whether a sum was rounded before.
    """
    from jaxgdp.training import ClippedGradients

    def released(units):
        total = ExactSum(jnp.full(4000, units >> 16), jnp.full(4000, units & 0xFFFF))
        clipped = ClippedGradients(total, 1.0, 2**20, True, ("float32",))
        return np.asarray(noisy_mean(clipped, KEY, 1.0, 0.4, 1.0), float)

    # a hundredth of a clipping norm moves the mean of the released numbers by as much
    units = 2**44
    moved = released(units + 2**24 // 100).mean() - released(units).mean()
    assert abs(moved - 0.01) < 0.003


def test_sum_in_one_float_leaves_room_for_its_rounding():
    summed = jax.jit(lambda mask: clipped_sum(jnp.ones((2**16, 1)), 0.7, mask)[0])
    sums = np.array([float(summed(jnp.arange(2**16) >= out)) for out in range(9)])
    # (float32 is 2⁻⁸ apart there)
    assert np.all(-np.diff(sums) <= 0.7) and np.all(-np.diff(sums) > 0.66)


@pytest.mark.nightly
@pytest.mark.parametrize("rows", [10**5, 10**6, 2**20 + 1])
@pytest.mark.parametrize("size", [1, 3, 40])
def test_record_of_a_million_moves_the_sum_by_at_most_one_clipping_norm(rows, size):
    rng = np.random.default_rng(rows + size)
    summed = jax.jit(sum_of_clipped)
    for leaf in (
        np.ones((rows, size)),
        rng.normal(size=(rows, size)) + 5.0,
        1e-3 * rng.random((rows, size)),
    ):
        leaf = jnp.asarray(leaf, jnp.float32)
        every = jnp.ones(rows, bool)
        total = in_units(summed([leaf], 1.0, every))
        for one in (0, rows // 2, rows - 1):
            assert norm(total - in_units(summed([leaf], 1.0, every.at[one].set(False)))) < 1.0
        moved = jnp.roll(leaf, 12345, axis=0)  # the others may all change their places
        assert np.array_equal(total, in_units(summed([moved], 1.0, every)))


@pytest.mark.nightly
@pytest.mark.parametrize("size", [2**24 + 1, 2**26])
def test_norms_of_many_coordinates_are_not_underestimated(size):
    """A sum in one float32 stalls at 2²⁴ equal terms, and the norm would be too small."""
    for leaf in (jnp.full((1, size), 0.1), jnp.full((1, size), 1e-3)):
        high, low = jax.jit(sum_of_clipped)([leaf], 1.0, jnp.ones(1, bool))
        units = np.asarray(high[0], float) * 2**16 + np.asarray(low[0], float)
        assert np.linalg.norm(units) <= 2**24
        # at most one unit a coordinate is cut away
        assert np.linalg.norm(units + 1) >= 0.9998 * 2**24


def test_more_examples_than_there_is_room_for_are_refused():
    optimiser = privatize(1.0, 1.0, 1.0, KEY)
    rows = jax.ShapeDtypeStruct((MOST_EXAMPLES + 1, 1), jnp.float32)
    state = optimiser.init(jnp.zeros(1))
    with pytest.raises(ValueError, match="at most 8388607 examples in one update, got 8388608"):
        jax.eval_shape(lambda g: optimiser.update(ExampleGradients(g, "all"), state), rows)
