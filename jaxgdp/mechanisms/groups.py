"""How many of one user's records a step takes: exact probabilities, rounded once."""

from __future__ import annotations

import functools
import math
from fractions import Fraction

import numpy as np

from ..numerics.shapes import Array
from .gaussian_mixture import GaussianMixture


@functools.lru_cache(maxsize=4096)
def binomial_weights(number: int, prob: float) -> tuple[float, ...]:
    """Pr[Bin(number, prob) = j] for j = 0 … number, each the double next to it."""
    p = Fraction(prob)
    top, whole = p.numerator, p.denominator
    rest, scale = whole - top, whole**number
    return tuple(
        float(Fraction(math.comb(number, j) * top**j * rest ** (number - j), scale))
        for j in range(number + 1)
    )


@functools.lru_cache(maxsize=4096)
def hypergeometric_weights(number: int, batch: int, size: int) -> tuple[float, ...]:
    """Probability that j of ``number`` records are among ``batch`` drawn of ``size``, j = 0 …."""
    every = math.comb(size, batch)
    return tuple(
        float(Fraction(math.comb(number, j) * math.comb(size - number, batch - j), every))
        if j <= batch
        else 0.0
        for j in range(number + 1)
    )


def poisson_group(noise_multiplier: Array, prob: Array, records: Array) -> GaussianMixture:
    """One step of DP-SGD with Poisson sampling for a user with so many records.

    Every record of the user enters with probability p on its own, and each moves the sum by up to
    1, so the sum moves by up to j with probability Pr[Bin(k, p) = j]; data in which all of them
    point the same way show exactly this.

    Method: docs/method/dominating.md#mixtures
    """
    prob, records = np.broadcast_arrays(np.asarray(prob, float), np.asarray(records, float))
    most = int(records.max())
    weights = np.zeros((*prob.shape, most + 1))
    for index in np.ndindex(prob.shape):
        found = binomial_weights(int(records[index]), float(prob[index]))
        weights[index][: len(found)] = found
    return GaussianMixture(noise_multiplier, np.arange(most + 1.0), weights)
