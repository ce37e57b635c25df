"""The inverse transform by products: what it gives, and the rounding that is allowed for it."""

from __future__ import annotations

import jax
import mpmath
import numpy as np
import pytest

import jaxgdp
from jaxgdp.accounting.experimental import matrix_transform
from jaxgdp.numerics.errors import FFT, TWIDDLE, UNIT

RANDOM = np.random.default_rng(4)


def exactly(re, im, length):
    """Σ by long doubles of the definition; their rounding is a thousandth of what is measured."""
    k, m = np.arange(len(re)), np.arange(length)
    weight = np.where(k == 0, 1.0, 2.0).astype(np.longdouble) / length
    turns = (np.outer(m, k) % length).astype(np.longdouble) / length
    angle = 2.0 * np.longdouble("3.14159265358979323846264338327950288") * turns
    return np.cos(angle) @ (weight * re) - np.sin(angle) @ (weight * im)


@pytest.mark.parametrize(
    "frequencies, length", [(128, 512), (128, 256), (96, 1024), (1, 4), (4, 8)]
)
@pytest.mark.parametrize("decay", [0.0, 8.0])
@pytest.mark.parametrize("run", ["numpy", "jax"])
def test_products_are_the_inverse_transform_to_the_rounding_allowed(
    frequencies, length, decay, run
):
    size = np.exp(-decay * np.linspace(0.0, 1.0, frequencies) ** 2)
    re, im = size * RANDOM.standard_normal((2, frequencies))
    im[0] = 0.0
    if run == "jax":
        with jax.enable_x64(True):
            found = np.asarray(jax.jit(matrix_transform.inverse, static_argnums=2)(re, im, length))
    else:
        found = matrix_transform.inverse(re, im, length)
    padded = np.pad(re + 1j * im, (0, length // 2 + 1 - frequencies))
    np.testing.assert_allclose(
        found, np.fft.irfft(padded, length), rtol=0, atol=1e-13 * np.max(np.abs(found))
    )
    off = float(np.sqrt(np.sum((found - exactly(re, im, length)) ** 2)))
    # the norm that the error model uses: √(2·Σ|S|²/L)
    norm = np.sqrt(2.0 * np.sum(re**2 + im**2) / length)
    assert off <= matrix_transform.rounding(frequencies, length) * UNIT * norm


def test_rounding_allowed_is_a_worst_case_and_no_fantasy():
    """Random spectra stay below it, by no more than its counts and roots explain; an FFT is
    better.
    """
    frequencies, length = 1024, 2048
    re, im = RANDOM.standard_normal((2, frequencies))
    off = np.sqrt(np.sum((matrix_transform.inverse(re, im, length) - exactly(re, im, length)) ** 2))
    allowed = (
        matrix_transform.rounding(frequencies, length)
        * UNIT
        * np.sqrt(2.0 * np.sum(re**2 + im**2) / length)
    )
    assert 1e-4 * allowed < off < allowed
    assert matrix_transform.rounding(frequencies, length) > FFT * np.log2(length)


def test_waves_are_as_exact_as_said():
    worst = 0.0
    for rows, columns, period in ((64, 32, 2048), (128, 128, 128), (7, 64, 512)):
        with mpmath.workdps(30):
            for wave, exact in zip(
                matrix_transform._turns(rows, columns, period),
                (mpmath.cos, mpmath.sin),
                strict=True,
            ):
                for j, k in RANDOM.integers(0, (rows, columns), (60, 2)):
                    worst = max(
                        worst,
                        abs(
                            float(
                                mpmath.mpf(float(wave[j, k]))
                                - exact(2 * mpmath.pi * int(j * k) / period)
                            )
                        ),
                    )
    assert 0.1 * UNIT < worst <= TWIDDLE * UNIT


def test_brackets_by_products_agree_with_the_others(monkeypatch):
    """Run by NumPy, so that nothing is compiled: the arithmetic is the same."""
    from jaxgdp.accounting.run import eager, executors, grids, stages

    batch = jaxgdp.dpsgd([1.0, 4.0, 2.0], [0.05, 0.2, 0.02], [1000, 400, 3000])
    asked = {"quantities": ("mu", "epsilon"), "rtol": 1e-2}
    plain = jaxgdp.measure(batch, **asked, executor="eager")

    class EagerProducts(executors.Eager):
        sparse = 0

        def half(self, groups, plans, reverse, tables, shape):
            if tables is not None:
                self.sparse += 1
            grid = grids.grid_of(shape, tables, product=True)
            one = lambda g, p: stages.half(g, p, grid, np.bool_(reverse))
            return eager._looped(one)(groups, plans)

    mine = EagerProducts()
    monkeypatch.setitem(executors.BY_NAME, "eager", mine)
    other = jaxgdp.measure(batch, **asked, executor="eager")
    assert mine.sparse > 0
    for name, bracket in plain.brackets.items():
        found = other.brackets[name]
        assert np.all(
            np.maximum(found.lower, bracket.lower) <= np.minimum(found.upper, bracket.upper)
        )
        assert np.all(found.width <= 1.25 * bracket.width) and np.all(other.status[name] == 0)
