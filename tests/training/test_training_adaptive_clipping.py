"""Noise of adaptive clipping against exact fractions."""

from fractions import Fraction

import numpy as np
import pytest

import jaxgdp
from jaxgdp.training import adaptive_clipping_noise, adaptive_clipping_sum_noise


def test_both_ways_are_on_the_safe_side_of_the_exact_noise():
    rng = np.random.default_rng(4)
    for _ in range(300):
        sigma = float(10.0 ** rng.uniform(-6, 6))
        count = 0.5 * sigma * float(1.0 + 10.0 ** rng.uniform(-9, 9))
        found = Fraction(float(adaptive_clipping_sum_noise(sigma, count)))
        spent = 1 / found**2 + 1 / (2 * Fraction(count)) ** 2
        assert spent <= 1 / Fraction(sigma) ** 2
        both = Fraction(float(adaptive_clipping_noise(sigma, count)))
        exact = 1 / Fraction(sigma) ** 2 + 1 / (2 * Fraction(count)) ** 2
        assert exact <= 1 / both**2 <= exact * (1 + Fraction(1, 10**14))


def test_sum_and_count_are_one_gaussian_mechanism():
    """Every record shows both: μ² adds up."""
    sigma = adaptive_clipping_noise(2.0, 1.5)
    found = jaxgdp.mu(jaxgdp.Gaussian(sigma))
    exact = np.hypot(1 / 2.0, 0.5 / 1.5)
    assert found.lower <= exact * (1 + 1e-14) and exact <= found.upper <= exact * (1 + 1e-11)


def test_noise_that_the_count_alone_exceeds_is_refused_by_name():
    with pytest.raises(ValueError, match="count_noise must be above noise_multiplier/2"):
        adaptive_clipping_sum_noise(2.0, 1.0)
    with pytest.raises(ValueError, match="sum_noise"):
        adaptive_clipping_noise(0.0, 1.0)
