"""Runs with next to no privacy loss in a step, and many steps: composed laws that are normal to
many digits.

By the central limit theorem the composition tends to Gaussian DP of μ = p·√(T·(e^{1/σ²} − 1))
(Bu et al. 2020, Theorem 5), and the advantage to 2Φ(μ/2) − 1; what the limit leaves over is of the
relative order 1/√T here.
"""

import numpy as np
import pytest
from scipy.special import ndtr

import jaxgdp

RUNS = [
    (7.339, 6.19e-9, 69_285_800),
    (17.708, 6.456e-8, 139_888_370),
    (3.1495, 4.39e-8, 250_650_877),
    (1.0, 1e-6, 10**12),
]


def limit(sigma, p, steps):
    return p * np.sqrt(steps * np.expm1(sigma**-2.0))


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("adjacency", ["add", "remove"])
def test_tiny_rates_are_as_accurate_as_asked(run, adjacency):
    found = jaxgdp.measure(
        jaxgdp.dpsgd(*run), ("mu", "advantage"), adjacency=adjacency, executor="eager"
    )
    mu = limit(*run)
    for name, wanted in (("mu", mu), ("advantage", 2.0 * ndtr(0.5 * mu) - 1.0)):
        lower, upper = found[name]
        assert found.status[name] == 0, name
        assert lower * (1.0 - 1e-3) <= wanted <= upper * (1.0 + 1e-3), (name, lower, upper, wanted)
