"""The loss of a sampled mechanism and its inverse against 60 digits, at every sampling probability
and next to every seam.
"""

import jax
import mpmath
import numpy as np
import pytest

from jaxgdp.numerics.precision import with_float64
from jaxgdp.pairs.mixture import log_mixture, log_unmixed

UNIT = 2.3e-16
PROBS = [
    1e-300,
    1e-81,
    1e-79,
    1e-20,
    1e-6,
    0.01,
    0.4999,
    0.5,
    0.5001,
    0.9,
    1.0 - 1e-6,
    1.0 - 1e-13,
    1.0 - 2**-53,
    1.0,
]


COMPILED = {function: with_float64(jax.jit(function)) for function in (log_mixture, log_unmixed)}


def library(name):
    return lambda function, *args: np.asarray(
        (function if name == "numpy" else COMPILED[function])(*args)
    )


def exact_loss(p, v):
    with mpmath.workdps(350):
        p, v = mpmath.mpf(p), mpmath.mpf(v)
        return mpmath.log1p(p * mpmath.expm1(v)) if p < 1 else v


@pytest.mark.parametrize("name", ["numpy", "compiled"])
@pytest.mark.parametrize("p", PROBS)
def test_loss_is_right_for_every_likelihood_ratio(p, name):
    rng = np.random.default_rng(3)
    turn = np.log1p(-0.5 / p) if p > 0.5 else -1.0
    seams = np.array(
        [
            0.0,
            turn,
            np.nextafter(turn, 0.0),
            np.nextafter(turn, -9.0),
            600.0,
            600.1,
            40.0 - np.log(p),
        ]
    )
    v = np.concatenate(
        [rng.normal(size=12) * 10.0 ** rng.uniform(-12, 2.5, 12), seams, [-800.0, 900.0, 3e4]]
    )
    found = library(name)(log_mixture, np.float64(p), v)
    for one, loss in zip(v, found, strict=True):
        true = exact_loss(p, float(one))
        assert abs(true - loss) <= 8.0 * UNIT * max(
            1.0 if name == "compiled" else 0.0, abs(one), abs(true)
        ), one


@pytest.mark.parametrize("name", ["numpy", "compiled"])
@pytest.mark.parametrize("p", PROBS)
def test_likelihood_ratio_has_the_loss_it_was_asked_for(p, name):
    rng = np.random.default_rng(4)
    least = float(mpmath.log1p(-mpmath.mpf(p))) if p < 1.0 else -np.inf
    turn = np.log1p(-0.5 * p)
    near = (least if np.isfinite(least) else -30.0) * (
        1.0 + 10.0 ** rng.uniform(-15, 0, 8) * rng.choice([-1, 1], 8)
    )
    seams = np.array(
        [turn, np.nextafter(turn, 9.0), np.nextafter(turn, -9.0), 0.0, 39.9, 40.0, 40.1, 700.0]
    )
    ell = np.concatenate([rng.normal(size=12) * 10.0 ** rng.uniform(-15, 2, 12), near, seams])
    found = library(name)(log_unmixed, np.float64(p), ell)
    scale = max(1.0, abs(least)) if np.isfinite(least) else 1.0
    for one, v in zip(ell, found, strict=True):
        slack = 8.0 * UNIT * max(scale, abs(one))
        if v == -np.inf:
            assert one <= least + slack
        else:
            assert abs(exact_loss(p, float(v)) - one) <= slack, one
