"""Bounds on the rounding of sums and of powers of a spectrum, against exact arithmetic."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest

from jaxgdp.accounting.certify import block_sums, convolution, discretisation
from jaxgdp.accounting.certify.composed import Window
from jaxgdp.accounting.certify.discretisation import Weights
from jaxgdp.numerics.errors import UNIT

RANDOM = np.random.default_rng(5)


@pytest.mark.parametrize("length", [32, 1024, 4096])
@pytest.mark.parametrize("fall", [0.0, 1e-4, 0.03, 2.0, 90.0])
def test_tail_sums_are_as_exact_as_their_units(length, fall):
    """Blocks that grow nearly as fast as factors fall, so that far ones decide as near ones do."""
    ratio = -fall
    for steep in (0.0, 0.9 * min(fall, 0.15), -0.1):
        blocks = RANDOM.uniform(0.5, 1.0, length) * np.exp(steep * np.arange(length))
        found = block_sums.tail_sums(blocks, np.float64(ratio))
        room = UNIT * float(block_sums.tail_units(length, np.float64(ratio)))
        with mpmath.workdps(30):
            factor, exact = mpmath.exp(mpmath.mpf(ratio)), mpmath.mpf(0)
            for k in range(length - 1, -1, -1):
                exact = mpmath.mpf(blocks[k]) + factor * exact
                if k % 37 == 0:
                    assert abs(mpmath.mpf(found[k]) / exact - 1) <= room + mpmath.mpf(10) ** -300


def test_block_sums_are_as_exact_as_their_units():
    size, block = 1024, 64
    masses = RANDOM.uniform(0.0, 1.0, size)
    spectrum = np.fft.rfft(masses)
    masses = np.fft.irfft(spectrum, size)
    for fall in (0.0, 1.0, 40.0):
        h = np.float64(0.01)
        tilt = np.float64(fall) / (block * h)
        plain, split = block_sums.block_sums(spectrum, tilt, h, size, block)
        room = UNIT * float(block_sums.block_units(block, tilt * h * block))
        # (another transform than NumPy's may be behind it: its rounding, of the size of all)
        room_of_transform = 1e-13
        with mpmath.workdps(30):
            s, width = mpmath.mpf(float(tilt)), mpmath.mpf(float(h))
            for k in range(0, size // block, 5):
                terms = [
                    (mpmath.mpf(masses[k * block + i - 1]), mpmath.exp(-s * i * width), i)
                    for i in range(1, block + 1)
                ]
                whole = mpmath.expm1(block * width)
                exact = mpmath.fsum(m * d for m, d, _ in terms)
                shared = mpmath.fsum(m * d * mpmath.expm1(i * width) / whole for m, d, i in terms)
                for one, true in ((plain[k], exact), (split[k], shared)):
                    assert abs(mpmath.mpf(float(one)) - true) <= room * true + room_of_transform


def test_defects_hold_what_sums_lack_to_one():
    for number in (2, 33, 700):
        w = RANDOM.dirichlet(np.full(number, 0.1), 3) * (1.0 + 1e-13 * RANDOM.normal(size=(3, 1)))
        exact = [abs(1 - sum(map(Fraction, row.tolist()))) for row in w]
        found = [discretisation.sum_defect(row) for row in w]
        assert np.all(np.array(found) >= np.array(exact, float))


def _exact_composition(w, left, size, uses):
    """Masses of the composition on the circle, by a transform in 60 digits."""
    law = [mpmath.mpf(0)] * size
    for j, mass in enumerate(w.tolist()):
        law[(j - left) % size] += mpmath.mpf(mass)
    roots = [mpmath.expjpi(mpmath.mpf(-2 * k) / size) for k in range(size)]
    phi = [mpmath.fsum(law[j] * roots[j * k % size] for j in range(size)) for k in range(size)]
    powers = [value**uses for value in phi]
    return [
        mpmath.re(mpmath.fsum(powers[k] / roots[j * k % size] for k in range(size))) / size
        for j in range(size)
    ]


@pytest.mark.parametrize("uses", [1.0, 3.0, 1e5, 1e13])
@pytest.mark.parametrize("off", [0.0, 1e-12, 1e-6])
def test_composed_masses_are_off_by_no_more_than_their_noise(uses, off):
    """Masses that do not add up to one, and a spectrum that vanishes somewhere, up to numbers of
    uses at which nothing is left of the first order.
    """
    size, left = 32, 8
    window = Window(*(np.float64(v) for v in (-8.0, 0.0, 0.1, 1.0, 1.0)))
    for spread in (0.3, 3.0):
        w = np.exp(-0.5 * (np.arange(-left, left) / spread) ** 2)
        w = w / np.sum(w) * (1.0 + off)
        zero, defect = np.zeros(1), np.atleast_1d(discretisation.sum_defect(w))
        weights = Weights(
            w[None], zero, zero, zero, zero, zero, zero, np.zeros((1, 2 * left)), defect
        )
        with np.errstate(over="ignore"):  # (of what escapes)
            found = convolution.compose_blocks(
                weights, np.array([uses]), window, left=left, size=size, block=1
            )
        # (a factor that all masses share is in the roundoff of log M, which was not asked for here)
        shared = np.expm1(min(float(uses * defect[0]), 600.0))
        with mpmath.workdps(60):
            exact = _exact_composition(w, left, size, int(uses))
            # (the window's first point is the first of all)
            exact = [exact[(j - 8) % size] for j in range(size)]
            error = mpmath.sqrt(
                mpmath.fsum(
                    (mpmath.mpf(float(a)) - b) ** 2 for a, b in zip(found.plain, exact, strict=True)
                )
            )
            scale = mpmath.sqrt(mpmath.fsum(b**2 for b in exact))
            assert error <= float(found.noise) + shared * scale
