"""Gaussian and Laplace noise: one use of each in closed form, sampled or not, and any number of
uses of the Gaussian.
"""

from __future__ import annotations

import mpmath
import numpy as np
from mpmath import mpf

from .normal import cdf
from .setting import Setting, adjacency_of, built, of_adjacency, rates
from .smooth import Smooth

_DIGITS = 40


def _probability(rng):
    """Sampling probabilities at both ends and in between."""
    kind = rng.integers(3)
    if kind == 0:
        return 1.0 - 10.0 ** -float(rng.integers(1, 16))
    return 10.0 ** -float(rng.uniform(0.0, 11.0)) if kind == 1 else float(rng.uniform())


def _sampled(p, tails, loss):
    """Rates of a sampled mechanism from those of the unsampled one: tails(v) → (Pr_P,
    Pr_Q₁)[log-ratio > v].
    """

    def rate(epsilon):
        r = (mpmath.exp(mpf(epsilon)) - (1 - p)) / p
        if r <= 0:
            return mpf(1), mpf(1)
        alpha, tpr = tails(mpmath.log(r))
        return alpha, (1 - p) * alpha + p * tpr

    mixed = lambda v: mpmath.log(1 - p + p * mpmath.exp(v))
    return rate, mixed(-loss), mixed(loss)


def gaussian_tails(sigma):
    """Of N(1, σ²) against N(0, σ²)."""
    return lambda v: (cdf(-(sigma * v + 1 / (2 * sigma))), cdf(-(sigma * v - 1 / (2 * sigma))))


def laplace_tails(scale):
    """Of Lap(1, b) against Lap(0, b)."""
    most = 1 / scale

    def tails(v):
        if v >= most:
            return mpf(0), mpf(0)
        if v < -most:
            return mpf(1), mpf(1)
        output = (scale * v + 1) / 2  # between 0 and 1
        return mpmath.exp(-output / scale) / 2, 1 - mpmath.exp((output - 1) / scale) / 2

    return tails


def draw(rng) -> Setting:
    """One use of sampled Gaussian or Laplace noise, or many of the Gaussian."""
    kind = rng.choice(["sampled gaussian", "sampled laplace", "laplace", "gaussians"])
    replace = ("add_remove", "add", "remove", "replace_one")
    deepest, digits = 1e-12, _DIGITS
    with mpmath.workdps(_DIGITS):
        if kind == "gaussians":
            sigma = float(np.exp(rng.uniform(np.log(0.3), np.log(2e4))))
            uses = int(rng.choice([1, 2, 3, 17, 1000, 10**5, 10**7]))
            while not 1e-3 < np.sqrt(uses) / sigma < 12.0:
                sigma = float(np.exp(rng.uniform(np.log(0.3), np.log(2e4))))
            adjacency = adjacency_of(rng, replace)
            mu = mpmath.sqrt(uses) / mpf(sigma) * (2 if adjacency == "replace_one" else 1)
            plain = rng.uniform() < 0.5
            text = (
                f"jaxgdp.compose([(jaxgdp.Gaussian({sigma!r}), {uses})])"
                if plain
                else f"jaxgdp.dpsgd({sigma!r}, 1.0, {uses})"
            )
            if rng.uniform() < 0.3:
                deepest, digits = 1e-300, 340
            reach = mpf(40) if deepest < 1e-100 else mpf(12)
            curve = Smooth(
                gaussian_tails(1 / mu), -mu * mu / 2 - reach * mu, mu * mu / 2 + reach * mu
            )
            largest = float(mu * mu / 2 + 5 * mu)
        elif kind == "laplace":
            adjacency = adjacency_of(rng, replace)
            scale = float(np.exp(rng.uniform(np.log(0.03), np.log(1e3))))
            own = mpf(scale) / 2 if adjacency == "replace_one" else mpf(scale)
            text, largest = f"jaxgdp.Laplace({scale!r})", float(1 / own)
            curve = Smooth(laplace_tails(own), -1 / own, 1 / own)
        else:
            adjacency = adjacency_of(rng)
            p = _probability(rng)
            if kind == "sampled gaussian":
                sigma = float(np.exp(rng.uniform(np.log(0.15), np.log(200.0))))
                text, own = f"jaxgdp.dpsgd({sigma!r}, {p!r}, 1)", mpf(sigma)
                rate, low, high = _sampled(mpf(p), gaussian_tails(own), 1 / (2 * own**2) + 9 / own)
            else:
                scale = float(np.exp(rng.uniform(np.log(0.03), np.log(100.0))))
                text, own = f"jaxgdp.SubsampledLaplace({scale!r}, {p!r})", mpf(scale)
                rate, low, high = _sampled(mpf(p), laplace_tails(own), 1 / own)
            curve, largest = Smooth(rate, low, high), float(max(-low, high))
        at = rates(rng, largest, deepest)
        at["fpr_floor"] = max(at["fpr_floor"], 1e-290)
        # (what is left to 1 is multiplied by e^ε)
        digits += int(max(-curve.low, curve.high, largest) / mpmath.log(10))
        return Setting(
            text, built(text), adjacency, of_adjacency(curve, adjacency), at, digits, accuracy=1e-13
        )
