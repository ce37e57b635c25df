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


@pytest.mark.parametrize(
    ("sigma", "p", "steps"),
    [(5.07, 0.0206, 600_000_000), (9.82, 0.796, 53_000_000), (0.06, 0.015, 470_000)],
)
def test_both_laws_have_all_of_their_mass_however_deep_the_loss_is_looked_at(sigma, p, steps):
    """log E_P 1 and log E_P e^ℓ of all uses, which are 0."""
    groups = jaxgdp.dpsgd(sigma, p, steps).stacked()
    with np.errstate(all="ignore"):
        deep = quadrature(groups, np.array([1400.0]), np.array([False, True]))
        ends = [composed(deep, s + np.zeros(2)).value for s in (0.0, 1.0)]
    assert np.all(np.abs(ends) <= 1e-3)
