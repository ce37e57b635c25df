"""Roots of unity of transforms: the transform of a single 1 holds them, against ball arithmetic."""

import jax
import numpy as np
import pytest

from jaxgdp.numerics import namespace as xp
from jaxgdp.numerics.compiling import Program
from jaxgdp.numerics.errors import UNIT
from jaxgdp.proof.balls import precision

flint = pytest.importorskip("flint")
ROOT = 3.0  # units of a root, as docs/method/limits.md has them


def _roots(size):
    """cos and sin of all multiples of a turn over ``size``, each as a double and what it lacks."""
    rows = np.empty((size, 4))
    with precision(120):
        eighth = [flint.arb.sin_cos_pi_fmpq(flint.fmpq(2 * k, size)) for k in range(size // 8 + 1)]
        parts = np.array([[_split(c), _split(s)] for s, c in eighth])
    for turn in range(4):
        for k in range(size // 4):
            c, s = parts[k] if k <= size // 8 else parts[size // 4 - k][::-1]
            for _ in range(turn):
                c, s = -s, c
            rows[turn * (size // 4) + k] = *c, *s
    return rows


def _split(ball):
    high = float(ball.mid())
    return high, float(ball - high)


def _worst(transform, size, place, roots):
    """Largest error of the outputs of a 1 at ``place``, in units."""
    one = np.zeros(size)
    one[place] = 1.0
    found = np.asarray(transform(one))
    exact = roots[place * np.arange(size // 2 + 1) % size * (len(roots) // size)]
    real = (found.real - exact[:, 0]) - exact[:, 1]
    imaginary = (found.imag + exact[:, 2]) + exact[:, 3]
    return np.max(np.hypot(real, imaginary)) / UNIT


def _by_program(x):
    with jax.enable_x64(True):
        return np.asarray(Program(xp.rfft)(x))


def _check(largest, roots):
    for size in (2**k for k in range(3, largest + 1)):
        for place in (2**k for k in range(size.bit_length() - 1)):
            for transform in (xp.rfft, np.fft.rfft):
                assert _worst(transform, size, place, roots) <= ROOT


def test_roots_of_unity_lie_in_balls():
    roots = _roots(2**12)
    _check(12, roots)
    for size in (2**8, 2**12):
        for place in (1, 2, size // 8):
            assert _worst(_by_program, size, place, roots) <= ROOT


@pytest.mark.nightly
def test_roots_of_unity_of_long_transforms_lie_in_balls():
    """XLA has some lengths by products of two roots: both and the product may be off."""
    roots = _roots(2**18)
    _check(18, roots)
    for size in (2**k for k in range(13, 19)):
        for place in (1, 2, 64, size // 8):
            assert _worst(_by_program, size, place, roots) <= 2.0 * ROOT + 3.0
