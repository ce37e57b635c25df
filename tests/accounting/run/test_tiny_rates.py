"""Runs with next to no privacy loss in a step, and many steps: composed laws that are normal to
many digits.

By the central limit theorem the composition tends to Gaussian DP of μ = p·√(T·(e^{1/σ²} − 1))
(Bu et al. 2020, Theorem 5), and the advantage to 2Φ(μ/2) − 1; what the limit leaves over is of the
relative order 1/√T here.
"""

import time

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


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("setting", "epsilon", "adjacency", "bounds"),
    [
        # (brackets of curves on twice as many points, which take twice the time)
        ((2.1638, 1.16e-7, 88287672), 0.179, "remove", (2.1466e-209, 2.1498e-209)),
        ((0.16802, 8.2e-9, 1011577), 292.0, "remove", (1.64325e-82, 1.64593e-82)),
        ((1.2694, 2.6e-7, 3084018), 5.84, "add_remove", (5.8916e-154, 5.9044e-154)),
        ((1.1265, 1.3e-9, 6283982), 4.69, "add_remove", (6.1585e-175, 6.1712e-175)),
    ],
)
def test_work_is_bounded_for_tiny_deltas_of_rare_steps(setting, epsilon, adjacency, bounds):
    started = time.thread_time()
    found = jaxgdp.delta(jaxgdp.dpsgd(*setting), epsilon=epsilon, adjacency=adjacency)
    assert time.thread_time() - started < 12.0
    assert found.lower <= bounds[1] and bounds[0] <= found.upper
    assert found.width <= 1e-2 * found.upper


def delta_by_transform(sigma, p, steps, epsilon, tilt, most, h):
    """δ of removing a record, by one FFT of the Q-law of a step, tilted and shared by the points
    beside each loss; losses of a step beyond ``most`` hardly happen.
    """
    x = np.linspace(-12.0 * sigma, 30.0 * sigma, 2_000_001)
    loss = np.log1p(p * np.expm1((x - 0.5) / sigma**2))
    log_q = loss - 0.5 * (x / sigma) ** 2 + np.log((x[1] - x[0]) / (sigma * np.sqrt(2.0 * np.pi)))
    above = loss[loss < most] - np.log1p(-p)
    mass, place = np.exp(log_q[loss < most] + tilt * above), above / h
    point, size = np.floor(place).astype(int), 2 ** int(np.ceil(np.log2(4.0 * most / h)))
    share = place - point
    law = np.bincount(point, mass * (1.0 - share), size)
    law += np.bincount(point + 1, mass * share, size)
    total = np.sum(law)
    composed = np.fft.irfft(np.fft.rfft(law / total) ** steps, size)
    place = h * np.arange(size)
    ell = place + steps * np.log1p(-p)
    tail = (ell > epsilon) & (ell < 2.0 * most)
    terms = composed * np.exp(-tilt * place) * -np.expm1(np.minimum(epsilon - ell, 0.0))
    return np.sum(terms[tail]) * total**steps


@pytest.mark.parametrize(
    ("setting", "epsilon", "by"),
    [
        (
            (1.9122351379993892, 2.6113547822675904e-4, 313),
            0.19518007574910365,
            (290.0, 0.33, 2e-6),
        ),
        ((0.8245477252859529, 2.4350113972784951e-4, 2000), 2.8263166180876342, (10.0, 4.83, 1e-5)),
    ],
)
def test_small_deltas_that_lattices_leave_wide_are_looked_at_again(setting, epsilon, by):
    """Against a transform in doubles, good to 1e-5 at tilts that have the tail well above its
    rounding.
    """
    found = jaxgdp.measure(
        jaxgdp.dpsgd(*setting), "delta", epsilon=epsilon, adjacency="remove", executor="eager"
    )
    lower, upper = found["delta"]
    assert found.status["delta"] == 0 and upper <= 1.001 * lower
    exact = delta_by_transform(*setting, epsilon, *by)
    assert lower <= exact * (1.0 + 1e-4) and exact * (1.0 - 1e-4) <= upper
