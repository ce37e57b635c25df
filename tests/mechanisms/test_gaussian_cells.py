"""Masses of wide cells of a Gaussian pair against 50 digits: within the rounding they state, by
NumPy and compiled.
"""

from __future__ import annotations

import jax
import mpmath
import numpy as np
import pytest

import jaxgdp
from jaxgdp.numerics.errors import UNIT


def _log_mass(low, high, mean, sigma):
    """log of the normal mass between two outputs, from the side on which nothing cancels."""
    low, high = ((end - mean) / sigma for end in (low, high))
    if low > 0:
        low, high = -high, -low
    return mpmath.log(mpmath.ncdf(high) - mpmath.ncdf(low))


# (σ, spacing of the points): cells wide enough that each feels the rounding of its own edges
@pytest.mark.parametrize(
    ("sigma", "spacing"), [(1.3, 0.2), (2.8868, 0.2), (5.0, 0.2), (30.0, 0.037), (30.0, 0.2)]
)
def test_masses_hold_far_out(sigma, spacing):
    ell = spacing * np.arange(-40.0, 41.0)
    step = jaxgdp.SubsampledGaussian(sigma, 1.0)
    cells = lambda step, ell: step.cells(ell, np.inf)
    with np.errstate(all="ignore"):
        found = [cells(step, ell)]
    with jax.enable_x64(True):
        found.append(jax.tree.map(np.asarray, jax.jit(cells)(step, ell)))
    with mpmath.workdps(50):
        s = mpmath.mpf(sigma)
        edges = [s * s * mpmath.mpf(float(x)) + mpmath.mpf(1) / 2 for x in ell]
        for mean, name in ((0, "log_x"), (1, "log_y")):
            exact = [_log_mass(a, b, mean, s) for a, b in zip(edges[:-1], edges[1:], strict=True)]
            for one in found:
                room = UNIT * (one.roundoff + one.jitter)[1:-1]
                for mass, log, allowed in zip(getattr(one, name)[1:-1], exact, room, strict=True):
                    assert log < -690 or abs(mpmath.mpf(float(mass)) - log) <= allowed, (
                        name,
                        float(log),
                    )
