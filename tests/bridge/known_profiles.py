"""Privacy profiles in closed form, with the largest value of their GDP transformation."""

import math

import numpy as np
from scipy.special import ndtri

from jaxgdp import gdp


def laplace(scale):
    """δ(ε) = 1 − exp((ε − 1/b)/2) for ε ≤ 1/b (Balle et al. 2020, Theorem 3)."""
    return lambda epsilon: max(0.0, -math.expm1(0.5 * (epsilon - 1.0 / scale)))


def laplace_mu(scale):
    """Where both error rates are equal, ½·e^{−1/(2b)}."""
    return -2.0 * ndtri(0.5 * math.exp(-0.5 / scale))


def pure(epsilon0):
    """Binary randomized response: δ(ε) = (e^{ε₀} − e^ε)/(1 + e^{ε₀}) (Liu et al. 2022, Section
    5.1).
    """
    return lambda epsilon: max(0.0, -math.expm1(epsilon - epsilon0) / (1.0 + math.exp(-epsilon0)))


def pure_mu(epsilon0):
    return -2.0 * ndtri(1.0 / (1.0 + math.exp(epsilon0)))


def gaussian(mu):
    return lambda epsilon: float(gdp.delta(epsilon=epsilon, mu=mu))


def random_pair(rng):
    """A black box from a random pair on a few outputs, symmetrised, and the profile it was made
    from.

    Losses between −3 and 3; the profile is max over both orders of Σ (q − e^ε·p)₊.
    """
    number = int(rng.integers(2, 7))
    p, q = rng.dirichlet(np.ones(number) * 2.0), rng.dirichlet(np.ones(number) * 2.0)

    def profile(epsilon):
        gamma = np.exp(np.asarray(epsilon, float))[..., None]
        return np.maximum(
            np.sum(np.maximum(q - gamma * p, 0.0), axis=-1),
            np.sum(np.maximum(p - gamma * q, 0.0), axis=-1),
        )

    return lambda epsilon: float(profile(epsilon)), profile, (p, q)
