"""Tilts at which a composed loss has a given mean."""

import numpy as np
import pytest

import jaxgdp
from jaxgdp.accounting.steer import tilts
from jaxgdp.accounting.steer.cumulants import composed, quadrature


@pytest.mark.parametrize(
    ("sigma", "p", "steps"),
    [(1.0, 0.01, 1000), (0.173, 0.00141, 29_589_636), (0.192, 0.259, 519_474)],
)
def test_tilt_at_zero_has_its_mean_there_whatever_single_steps_add_to_it(sigma, p, steps):
    groups = jaxgdp.dpsgd(sigma, p, steps).stacked()
    with np.errstate(all="ignore"):
        loss = quadrature(groups, np.array([400.0]), np.array([False, True]))
        _, mean, square = composed(loss, tilts.at_zero(loss))
    assert np.all(np.abs(mean) <= 1e-3 * np.sqrt(square))
