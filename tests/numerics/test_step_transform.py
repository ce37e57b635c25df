"""φ − 1 of one step and the bound on its rounding, against 40 digits."""

import jax
import mpmath
import numpy as np
import pytest

from jaxgdp.numerics import transforms
from jaxgdp.numerics.errors import UNIT
from jaxgdp.numerics.step_transform import circular, step_transform, sums_after

RANDOM = np.random.default_rng(8)


def by_numpy(w, left, size):
    return step_transform(w, left, size)


def by_jax(w, left, size):
    with jax.enable_x64(True):
        found = jax.jit(step_transform, static_argnums=(1, 2))(w, left, size)
        return jax.tree.map(np.asarray, found)


def _laws():
    """Masses and the place of their centre: smooth, flat, far, tiny, next to none and alone."""
    j = np.arange(300) - 120
    yield np.exp(-0.5 * (j / 30.0) ** 2), 120
    yield RANDOM.exponential(size=300), 150
    yield np.where(j == 0, 1.0, 1e-9 * np.exp(-np.abs(j) / 50.0)), 120
    yield np.where(j == 0, 1.0, np.where(j == 179, 1e-6, 1e-300)), 120
    yield np.array([0.3, 0.7]), 0
    yield np.array([0.3, 0.7]), 1
    yield np.array([1.0]), 0


@pytest.mark.parametrize(
    "run, size", [(by_numpy, 64), (by_numpy, 1024), (by_jax, 512)], ids=["wound", "numpy", "jax"]
)
def test_transform_of_a_step_is_as_exact_as_stated(run, size):
    some = np.array([0, 1, 2, 5, size // 8, size // 2 - 1, size // 2])
    # (one shape is compiled)
    laws = [law for law in _laws() if run is by_numpy or (len(law[0]), law[1]) == (300, 120)]
    for mass, left in laws:
        w = mass / np.sum(mass)
        found = run(w[None], left, size)
        with mpmath.workdps(40):
            places = [n - left for n in range(len(w))]
            for k in some.tolist():
                exact = mpmath.fsum(
                    mpmath.mpf(p) * (mpmath.expjpi(mpmath.mpf(-2 * k * j) / size) - 1)
                    for p, j in zip(w.tolist(), places, strict=True)
                    if j != 0
                )
                number = mpmath.mpc(float(found.re[0, k]), float(found.im[0, k]))
                assert abs(number - exact) <= float(found.off[0, k])
        # (the bound is the smaller of two, and 0 at frequency 0)
        whole = np.sum(w) - w[left]
        assert found.off[0, 0] == 0.0 == found.re[0, 0] == found.im[0, 0]
        assert np.all(found.off <= 1.3 * transforms.one_output(size) * whole + 11.0 * UNIT * whole)


def test_bound_at_low_frequencies_is_that_of_small_numbers():
    """Of a bell of 30 points, the rounding of the lowest frequency is a hundred times less than
    that of the highest."""
    j = np.arange(4000) - 2000
    w = np.exp(-0.5 * (j / 30.0) ** 2)
    off = step_transform((w / np.sum(w))[None], 2000, 2**14).off[0]
    assert off[1] < 0.03 * off[-1] and np.all(np.diff(off) >= 0.0)


def test_sums_after_every_point_are_as_exact_as_their_additions():
    from fractions import Fraction

    for number in (0, 1, 7, 8, 9, 65, 600):
        terms = RANDOM.exponential(size=(2, number)) * 10.0 ** RANDOM.uniform(-8, 0, (2, number))
        found, additions = sums_after(terms)
        assert found.shape == terms.shape and additions <= 8 * (1 + np.log2(number + 1) / 3)
        for row, sums in zip(terms, found, strict=True):
            exact = Fraction(0)
            for k in range(number - 1, -1, -1):
                exact += Fraction(float(row[k]))
                error = abs(Fraction(float(sums[k])) - exact)
                assert error <= Fraction(additions) * Fraction(UNIT) * exact


def test_rows_wind_around_the_circle():
    row = RANDOM.integers(1, 9, (1, 50)).astype(float)
    for left in (0, 3, 16, 49):
        found = circular(row, left, 16)[0]
        exact = np.zeros(16)
        np.add.at(exact, (np.arange(50) - left) % 16, row[0])
        assert np.array_equal(found, exact)
