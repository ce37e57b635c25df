"""Random derivatives with their exact values: any mechanism, quantity, setting, number of uses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import exact_derivatives as exact
import jax
import mpmath
import numpy as np
from mpmath import mpf

import jaxgdp
from jaxgdp import differentiable, mechanisms
from jaxgdp.mechanisms import Composition

POLYGON = (
    "mu", "advantage", "epsilon", "delta", "tpr", "beta", "bayes_risk", "approximate_mu", "log_tpr",
    "log_beta",
)  # fmt: skip
CURVE = ("advantage", "epsilon", "delta", "tpr", "beta", "bayes_risk", "log_tpr", "log_beta")
GAUSSIAN = ("mu", *CURVE)
RIGHT, REFUSED, WRONG = "right", "refused", "wrong"


class Case(NamedTuple):
    """One derivative.

    Attributes:
        text: the case in words.
        ours: the bracket as a function of what is varied, traced.
        at: the place.
        slopes: () → exact slopes from the left and from the right.
    """

    text: str
    ours: Callable[[Any], Any]
    at: float
    slopes: Callable[[], tuple[Any, Any]]


def _log_uniform(rng, low, high):
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def _responses(rng):
    epsilon, categories = _log_uniform(rng, 0.01, 5.0), int(rng.choice([2, 3, 10]))
    make = lambda x: mechanisms.RandomizedResponse(x, categories)
    return make, lambda x, t: exact.randomized_response(x, t, categories - 2), epsilon, 200, POLYGON


def _pure(rng):
    epsilon = _log_uniform(rng, 0.01, 5.0)
    return mechanisms.PureDP, exact.randomized_response, epsilon, 200, POLYGON


def _discrete_laplace(rng):
    law = lambda x, t: exact.randomized_response(1 / x, t)
    return mechanisms.DiscreteLaplace, law, _log_uniform(rng, 0.2, 100.0), 200, POLYGON


def _approximate(rng):
    epsilon, delta = _log_uniform(rng, 0.01, 5.0), _log_uniform(rng, 1e-12, 1e-2)
    if rng.uniform() < 0.5:
        make = lambda x: mechanisms.ApproximateDP(x, delta)
        return make, lambda x, t: exact.approximate_dp(x, mpf(delta), t), epsilon, 60, POLYGON
    make = lambda x: mechanisms.ApproximateDP(epsilon, x)
    return make, lambda x, t: exact.approximate_dp(mpf(epsilon), x, t), delta, 60, POLYGON


def _discrete_gaussian(rng):
    sigma = _log_uniform(rng, 0.5, 6.0)
    return mechanisms.DiscreteGaussian, exact.discrete_gaussian, sigma, 12, POLYGON


def _laplace(rng):
    return mechanisms.Laplace, exact.laplace, _log_uniform(rng, 0.3, 30.0), 4, CURVE


def _sampled(rng, kind, law):
    noise, rate = _log_uniform(rng, 0.4, 10.0), _log_uniform(rng, 1e-3, 0.9)
    if rng.uniform() < 0.5:
        return lambda x: kind(x, rate), lambda x, t: law(x, mpf(rate)), noise, 1, CURVE
    return lambda x: kind(noise, x), lambda x, t: law(mpf(noise), x), rate, 1, CURVE


def _sampled_laplace(rng):
    return _sampled(rng, mechanisms.SubsampledLaplace, exact.subsampled_laplace)


def _sampled_gaussian(rng):
    return _sampled(rng, mechanisms.SubsampledGaussian, exact.subsampled_gaussian)


def _gaussian(rng):
    law = lambda x, t: exact.Gaussian(mpmath.sqrt(t) / x)
    return mechanisms.Gaussian, law, _log_uniform(rng, 0.3, 100.0), 1000, GAUSSIAN


def _deterministic(rng):
    epochs = int(rng.integers(1, 30))
    law = lambda x, t: exact.Gaussian(mpmath.sqrt(epochs * t) / x)
    make = lambda x: mechanisms.Deterministic(x, epochs)
    return make, law, _log_uniform(rng, 1.0, 100.0), 30, GAUSSIAN


KINDS = {
    "RandomizedResponse": _responses,
    "PureDP": _pure,
    "DiscreteLaplace": _discrete_laplace,
    "ApproximateDP": _approximate,
    "DiscreteGaussian": _discrete_gaussian,
    "Laplace": _laplace,
    "SubsampledLaplace": _sampled_laplace,
    "SubsampledGaussian": _sampled_gaussian,
    "Gaussian": _gaussian,
    "Deterministic": _deterministic,
}
_LOSS = {
    "RandomizedResponse": lambda at, make: at,
    "PureDP": lambda at, make: at,
    "DiscreteLaplace": lambda at, make: 1.0 / at,
    "ApproximateDP": lambda at, make: float(make(at).epsilon),
}  # largest loss of one use
_ARGUMENT = {
    "mu": (1e-12, 0.3),
    "epsilon": (1e-12, 0.1),
    "delta": (0.01, 8.0),
    "tpr": (1e-8, 0.6),
    "beta": (1e-8, 0.6),
    "log_tpr": (1e-8, 0.6),
    "log_beta": (1e-8, 0.6),
    "bayes_risk": (0.02, 0.98),
    "approximate_mu": (1e-10, 0.1),
}


def case(seed: int) -> Case:
    """One random case."""
    rng = np.random.default_rng([34, seed])
    name = list(KINDS)[seed % len(KINDS)]
    make, law, at, most, quantities = KINDS[name](rng)
    if name in _LOSS:  # (masses in fixed point hold losses up to some hundred)
        most = min(most, max(1.0, 150.0 / _LOSS[name](at, make)))
    count = int(np.ceil(_log_uniform(rng, 0.5, most)))
    # (an FNR is what a TPR lacks to 1, and may be as small as a loss is large)
    largest = count * _LOSS[name](at, make) if name in _LOSS else 0.0
    if name in ("Gaussian", "Deterministic"):
        largest = 350.0 + float(law(mpf(at), count).parameter) ** 2 / 8.0
    digits = exact.DIGITS + int(largest)
    quantity = str(rng.choice(quantities))
    asked = quantity.removeprefix("log_")
    argument = None if quantity == "advantage" else _log_uniform(rng, *_ARGUMENT[quantity])
    read = (lambda v: mpmath.log(v)) if quantity.startswith("log_") else (lambda v: v)

    def number(x, t, a):
        return read(getattr(law(mpf(x), t), asked)(mpf(0 if a is None else a)))

    def ours(x, t, a):
        given = () if a is None else (a,)
        return getattr(differentiable, quantity)(Composition((make(x),), (t,)), *given)

    what = rng.choice(["parameter", "argument", "uses"], p=[0.7, 0.2, 0.1])
    text = f"{seed}: {quantity}({argument}) of {count} × {make(at)!r} in {what}"
    if what == "argument" and argument is not None:
        slopes = lambda: exact.one_sided(lambda a: number(at, count, a), argument, digits)
        return Case(text, lambda a: ours(at, float(count), a), argument, slopes)
    if what == "uses" and most > 1 and name not in ("Gaussian", "Deterministic"):

        def slopes():
            with mpmath.workdps(digits):
                less = max(count - 1, 1)
                change = number(at, count + 1, argument) - number(at, less, argument)
            return (change / (count + 1 - less),) * 2

        return Case(text, lambda t: ours(at, t, argument), float(count), slopes)
    slopes = lambda: exact.one_sided(lambda x: number(x, count, argument), at, digits)
    return Case(text, lambda x: ours(x, float(count), argument), at, slopes)


class Verdict(NamedTuple):
    """What came of a case: one of three words, our slope (None if refused) and the exact ones."""

    word: str
    found: float | None
    exact: tuple[float, float]


def judged(one: Case) -> Verdict:
    """A case computed and compared: right where it is within 1 % of both one-sided slopes."""
    known = tuple(map(float, one.slopes()))
    try:
        with jax.enable_x64(True):
            found = float(jax.grad(lambda x: one.ours(x).upper)(one.at))
    except jaxgdp.differentiable.UnprovenDerivative:
        return Verdict(REFUSED, None, known)
    near = all(abs(found - slope) <= 0.01 * abs(slope) + 1e-280 for slope in known)
    return Verdict(RIGHT if near else WRONG, found, known)
