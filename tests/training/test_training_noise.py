"""Gaussian noise: its law, its tails, and how fine it is."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import kstest, norm

from jaxgdp.training import standard_normal
from jaxgdp.training.noise import pairs_from_words


@pytest.fixture(scope="module")
def sample():
    return np.asarray(
        jax.jit(lambda k: standard_normal(k, (2, 2**20)))(jax.random.key(3)), np.float64
    )


def test_law_is_standard_normal(sample):
    number = sample.size
    assert kstest(sample.reshape(-1), norm.cdf).pvalue > 1e-3
    for power, value in ((1, 0.0), (2, 1.0), (3, 0.0), (4, 3.0)):
        spread = np.sqrt((norm.moment(2 * power) - value**2) / number)
        assert abs(np.mean(sample**power) - value) < 4.5 * spread, power
    for bound in (3.0, 4.0, 4.5):
        for tail in (sample > bound, sample < -bound):
            expected = number * norm.sf(bound)
            assert abs(tail.sum() - expected) < 4.5 * np.sqrt(expected), bound


def test_numbers_are_independent_of_each_other(sample):
    # the two numbers of a pair are those of the two rows
    x, y = sample
    for a, b in ((x, y), (x**2, y**2), (np.abs(x) > 2, np.abs(y) > 2), (x[1:], x[:-1])):
        assert abs(np.corrcoef(a, b)[0, 1]) < 5.0 / np.sqrt(len(a))


def radii(words, dtype=np.float32):
    x, y = pairs_from_words(jnp.asarray(words, jnp.uint32), dtype)
    return np.hypot(np.asarray(x, np.float64), np.asarray(y, np.float64))


def test_tails_reach_as_far_as_the_bits_say():
    # Pr[r > t] = e^{−t²/2}: u is half of 0.w₁w₂w₃ when the lowest bit of the fourth word is set,
    # else its complement
    words = [
        [0, 0, 0, 1],
        [0, 0, 2**31, 1],
        [0, 1, 0, 1],
        [1, 0, 0, 1],
        [2**31, 0, 0, 1],
        [2**32 - 1] * 3 + [1],
    ]
    u = [2.0**-98, 2.0**-66, 2.0**-65, 2.0**-33, 0.25, 0.5]
    assert np.allclose(radii(words), np.sqrt(-2 * np.log(u)), rtol=1e-6)
    assert radii(words)[0] > 11.6
    words = [w[:3] + [0] for w in words]
    assert np.allclose(radii(words), np.sqrt(-2 * np.log1p(-np.array(u))), rtol=1e-6, atol=0.0)


def test_numbers_are_fine_everywhere(sample):
    # jax.random.normal has 8.4 million values in float32; among two million of ours hardly two are
    # equal
    assert len(np.unique(sample)) > 0.97 * sample.size
    ours = np.unique(np.abs(sample))
    assert ours[0] < 5e-6 and np.all(np.diff(ours[1000:2000]) < 1e-5)
    # near each axis the small number keeps its relative accuracy
    words = np.array([[2**31, 0, 0, 1 | (k << 4)] for k in range(8)], np.uint32)
    _, small = pairs_from_words(jnp.asarray(words), np.float32)
    exact = np.sqrt(-2 * np.log(0.25)) * np.sin(np.pi / 4 * (np.arange(8) + 0.5) * 2.0**-28)
    assert np.allclose(small, exact, rtol=1e-6, atol=0.0)


def test_shapes_and_types():
    assert standard_normal(jax.random.key(0), ()).shape == ()
    assert standard_normal(jax.random.key(0), (3, 0, 2)).shape == (3, 0, 2)
    assert standard_normal(jax.random.key(0), (7,)).dtype == jnp.float32
    with jax.enable_x64(True):
        wide = standard_normal(jax.random.key(0), (10_001,), jnp.float64)
        assert wide.dtype == jnp.float64 and np.any(
            np.asarray(wide) != np.asarray(wide, np.float32)
        )
        assert kstest(np.asarray(wide), norm.cdf).pvalue > 1e-3
