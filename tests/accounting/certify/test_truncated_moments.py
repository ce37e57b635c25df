"""A bound on δ by truncated moments, against one and two uses with 40 digits."""

import numpy as np
import pytest
from by_day import every_value
from mpmath import mp, mpf

from jaxgdp.accounting.certify import truncated_moments


def _tail(z):
    return mp.erfc(z / mp.sqrt(2)) / 2


def _place(sigma, p, loss):
    """z at which the loss of one step is so large."""
    return sigma * mp.log((mp.exp(loss) - 1 + p) / p) + 1 / (2 * sigma)


def _one_use(sigma, p, epsilon):
    with mp.workdps(60):
        sigma, p, epsilon = map(mpf, (sigma, p, epsilon))
        z = _place(sigma, p, epsilon)
        above = (1 - p) * _tail(z) + p * _tail(z - 1 / sigma)
        return mp.log(above - mp.exp(epsilon) * _tail(z))


@pytest.mark.parametrize("wanted", [-5.0, -40.0, -690.0])
@pytest.mark.parametrize("epsilon", [0.02, 0.7, 5.0, 60.0])
@pytest.mark.parametrize("sigma, p", [(0.3, 1e-6), (0.8, 0.3), (2.0, 0.01), (9.0, 1e-4)])
def test_bound_is_above_one_use(sigma, p, epsilon, wanted):
    bound = truncated_moments.log_delta(sigma, p, 1.0, epsilon, wanted)
    assert bound >= _one_use(sigma, p, epsilon)


@pytest.mark.parametrize(
    ("setting", "epsilon"), every_value(((0.7, 0.1), (2.0, 0.02), (1.0, 0.6)), (0.1, 1.0, 6.0))
)
def test_bound_is_above_two_uses(setting, epsilon):
    """δ of two uses is an integral over the first one of δ of the second."""
    sigma, p = setting
    with mp.workdps(25):
        s, q, e = mpf(sigma), mpf(p), mpf(epsilon)

        def rest(z):
            loss = mp.log(1 - q + q * mp.exp(z / s - 1 / (2 * s * s)))
            at = e - loss  # the second step has to be larger
            if mp.exp(at) <= 1 - q:
                second = 1 - mp.exp(at)
            else:
                place = _place(s, q, at)
                second = (
                    (1 - q) * _tail(place) + q * _tail(place - 1 / s) - mp.exp(at) * _tail(place)
                )
            return mp.npdf(z) * mp.exp(loss) * second

        exact = mp.quad(rest, [-12, -6, -3, 0, 2, 4, 6, 9, 13, 18])
    for wanted in (-10.0, -100.0):
        bound = truncated_moments.log_delta(sigma, p, 2.0, epsilon, wanted)
        assert bound >= float(mp.log(exact)) - 1e-9


def test_moments_are_above_those_by_quadrature_and_near_them():
    sigma, p, z = 1.5, 0.01, np.arange(-4500, 7000) * 0.002
    terms = truncated_moments._Terms(sigma, p, z)
    for order in (1.0, 2.0, 17.0):
        with mp.workdps(30):
            ratio = lambda x: 1 + mpf(p) * mp.expm1(x / mpf(sigma) - 1 / (2 * mpf(sigma) ** 2))
            places = [-12, -5, -2, 0, 2, 5, 8, 11, float(z[-1])]
            exact = mp.quad(lambda x: mp.npdf(x) * (ratio(x) ** mpf(order) - 1), places)  # noqa: B023
        found = np.expm1(terms.log_moment(order))
        assert float(exact) <= found <= float(exact) + 2e-3 * order * p


def test_moments_of_losses_below_0_are_above_those_by_quadrature_and_near_them():
    """Of little noise the loss is below 0 in all cells, and beyond them, too."""
    for sigma, p, orders in ((1.5, 0.01, (1.0, 17.0, 800.0)), (0.05, 0.3, (1.0, 4.0))):
        terms = truncated_moments._Terms(sigma, p, truncated_moments._body(), falling=True)
        for order in orders:
            with mp.workdps(40):
                s, q = mpf(sigma), mpf(p)
                ratio = lambda x: 1 + q * mp.expm1(x / s - 1 / (2 * s * s))  # noqa: B023
                value = lambda x: mp.npdf(x) * (ratio(x) ** -mpf(order) - 1)  # noqa: B023
                exact = mp.quad(value, [-40, -12, -9, -5, -2, 0, 2, 5, 8, 9, 10, 11, 12, 20, 40])
            found = np.expm1(terms.log_moment(-order))
            assert float(exact) <= found <= float(exact) + 4e-3 * max(order * p, abs(float(exact)))


@pytest.mark.parametrize("wanted", [-5.0, -40.0, -690.0])
@pytest.mark.parametrize("part", [0.05, 0.5, 0.97])
@pytest.mark.parametrize("sigma, p", [(0.05, 0.2), (0.3, 1e-6), (0.8, 0.3), (2.0, 0.01)])
def test_bound_of_adding_is_above_one_use(sigma, p, part, wanted):
    epsilon = -part * float(np.log1p(-p))
    bound = truncated_moments.log_delta_adding(sigma, p, 1.0, epsilon, wanted)
    with mp.workdps(60):
        s, q, e = map(mpf, (sigma, p, epsilon))
        z = -_place(s, q, -e)  # (of the tail below)
        exact = _tail(z) - mp.exp(e) * ((1 - q) * _tail(z) + q * _tail(z + 1 / s))
        assert bound >= mp.log(exact)


def test_few_large_sums_are_bounded_by_their_logs():
    """(1 + x)^T of two steps, and not e^{Tx}: each would have to be 28 deviations out."""
    bound = truncated_moments.log_delta(22.361, 0.020392, 2.0, 0.10489, -690.8)
    assert -2.0 * 29.0**2 / 2.0 <= bound <= -690.8
