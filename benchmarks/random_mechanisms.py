"""Random mechanisms of every class, for benchmarks."""

from __future__ import annotations

import numpy as np

import jaxgdp


def log_uniform(rng, low: float, high: float) -> float:
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def _pmfs(rng):
    p, q = rng.dirichlet(np.ones(4)), rng.dirichlet(np.ones(4))
    if rng.random() < 0.3:
        p = np.append(p, 0.0)
        q = np.append(0.99 * q, 0.01)
    return jaxgdp.FromPMFs(p, q)


def _densities(rng):
    x, scale = np.linspace(-12.0, 13.0, 101), rng.uniform(1.0, 3.0)
    return jaxgdp.FromDensities.normalized(x, -np.abs(x) / scale, -np.abs(x - 1.0) / scale)


# class → (a mechanism, the largest number of its uses)
CLASSES = {
    "SubsampledGaussian": lambda r: (
        jaxgdp.SubsampledGaussian(log_uniform(r, 0.6, 20.0), log_uniform(r, 1e-3, 0.9)),
        3000,
    ),
    "Gaussian": lambda r: (jaxgdp.Gaussian(log_uniform(r, 0.5, 50.0)), 100),
    "Laplace": lambda r: (jaxgdp.Laplace(log_uniform(r, 1.0, 30.0)), 30),
    "SubsampledLaplace": lambda r: (
        jaxgdp.SubsampledLaplace(log_uniform(r, 0.7, 5.0), log_uniform(r, 1e-2, 0.9)),
        50,
    ),
    "DiscreteGaussian": lambda r: (jaxgdp.DiscreteGaussian(log_uniform(r, 2.0, 10.0)), 20),
    "DiscreteLaplace": lambda r: (jaxgdp.DiscreteLaplace(log_uniform(r, 1.0, 8.0)), 20),
    "RandomizedResponse": lambda r: (jaxgdp.RandomizedResponse(log_uniform(r, 0.1, 2.0)), 20),
    "PureDP": lambda r: (jaxgdp.PureDP(log_uniform(r, 0.05, 1.0)), 20),
    "ApproximateDP": lambda r: (
        jaxgdp.ApproximateDP(log_uniform(r, 0.05, 1.0), log_uniform(r, 1e-12, 1e-6)),
        20,
    ),
    "ExponentialMechanism": lambda r: (jaxgdp.ExponentialMechanism(log_uniform(r, 0.1, 1.0)), 10),
    "RandomAllocation": lambda r: (
        jaxgdp.RandomAllocation(log_uniform(r, 1.0, 4.0), int(r.integers(5, 40))),
        2,
    ),
    "TruncatedPoisson": lambda r: (
        jaxgdp.TruncatedPoisson(log_uniform(r, 0.9, 3.0), log_uniform(r, 0.01, 0.1), 120, 1000),
        60,
    ),
    "FixedSize": lambda r: (
        jaxgdp.FixedSize(log_uniform(r, 2.0, 5.0), int(r.integers(10, 60)), 1000),
        6,
    ),
    "FromPMFs": lambda r: (_pmfs(r), 5),
    "FromProfile": lambda r: (
        jaxgdp.FromProfile([0.0, 0.5, 1.0], [0.2, 0.1, float(r.choice([0.0, 0.01]))]),
        4,
    ),
    "FromDensities": lambda r: (_densities(r), 6),
    "Deterministic": lambda r: (
        jaxgdp.Deterministic(log_uniform(r, 1.5, 6.0), int(r.integers(2, 9))),
        7,
    ),
    "Shuffled": lambda r: (
        jaxgdp.Shuffled(log_uniform(r, 0.5, 2.5), int(r.integers(10, 200)), 1),
        2,
    ),
}
SLOW = (
    "RandomAllocation",
    "TruncatedPoisson",
    "FixedSize",
    "Shuffled",
)  # one of these in a composition, at most
