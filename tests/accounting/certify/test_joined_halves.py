"""Bounds of several kinds in one half-curve, against Gaussian curves and exact lines."""

import numpy as np
import pytest
from mpmath import mp, mpf

from jaxgdp.accounting.certify.curve import (
    Curve,
    GaussianParts,
    log_delta_at,
    log_one_minus_delta_at,
)
from jaxgdp.accounting.certify.finite_laws import padded
from jaxgdp.accounting.certify.joined_halves import beyond_largest, bounds, joined
from jaxgdp.accounting.certify.jump_sides import best
from jaxgdp.accounting.certify.normal_curve import Profile, profile_half, row
from jaxgdp.quantities.approximate_mu import approximate_mu


def _exact(mu, epsilon):
    """log δ and log(1 − δ) of a Gaussian curve, to many digits."""
    with mp.workdps(60):
        mu, e = mpf(mu), mpf(float(epsilon))
        above, below = (mp.erfc(z / mp.sqrt(2)) / 2 for z in (e / mu - mu / 2, mu / 2 - e / mu))
        both = mp.exp(e) * mp.erfc((e / mu + mu / 2) / mp.sqrt(2)) / 2
        return float(mp.log(above - both)), float(mp.log(below + both))


def _half(mu, thresholds):
    """The polygon of a Gaussian curve's own bounds at some thresholds."""
    at = np.array([_exact(mu, t) for t in thresholds])
    room = 1e-14 * (1.0 + np.abs(at))
    found = Profile(np.minimum(at[:, 0] + room[:, 0], 0.0), at[:, 1] - room[:, 1])
    with np.errstate(all="ignore"):
        return profile_half(np.asarray(thresholds, float), found)


@pytest.mark.parametrize("mu", [0.3, 3.0, 45.0])
def test_joined_bounds_hold_a_gaussian_curve_and_are_no_worse_than_each(mu):
    far = 0.5 * mu * mu + 6.0 * mu
    coarse = _half(mu, np.linspace(0.0, far, 9))
    # (a finer one that begins later, ends before, and is silent between)
    fine = _half(mu, np.linspace(0.0, far, 40))
    k = np.arange(fine.used.shape[-1])
    fine = fine._replace(used=fine.used & (k > 9) & (k < 30) & (k != 17))
    rates, every = (np.full(3, -np.inf), np.zeros(3), np.full(3, -np.inf)), np.ones(3, bool)
    silent = row(np.linspace(0.0, far, 4), rates, every, np.inf, -np.inf)
    e = np.random.default_rng(5).uniform(0.0, 0.98 * far, 40)
    delta, rest = np.array([_exact(mu, at) for at in e]).T
    size = 1.0 + np.abs(rest)
    of_one = lambda half: half._replace(top=None, log_infinity_mass=None)
    with np.errstate(all="ignore"):
        found = of_one(joined([bounds(half) for half in (coarse, fine, silent)]))
        assert np.all(log_delta_at(found, e) >= delta - 1e-12)
        assert np.all(log_one_minus_delta_at(found, e) <= rest + 1e-12 * size)
        for half in map(of_one, (coarse, fine)):
            assert np.all(log_delta_at(found, e) <= log_delta_at(half, e) + 1e-10)
            better = log_one_minus_delta_at(half, e) - log_one_minus_delta_at(found, e)
            assert np.all(better <= 1e-9 * size)


def test_joined_halves_are_read_as_the_curve_they_bound():
    """Approximate μ of a Gaussian curve, from halves of which either lacks every other stretch."""
    mu, far = 45.0, 0.5 * 45.0**2 + 9.0 * 45.0
    several = [_half(mu, np.linspace(0.0, far, 401 + j)) for j in (0, 7)]
    for j, half in enumerate(several):
        k = np.arange(half.used.shape[-1])
        several[j] = half._replace(used=half.used & ((k % 80 < 42) == (j == 0)))
    with np.errstate(all="ignore"):
        plus, none = padded([joined([bounds(each) for each in several]), best([])])
        curve = Curve(plus, plus, none, none, *GaussianParts(np.inf, 0.0))
        found = approximate_mu(curve, np.log(1e-9))
    # (thresholds are up to a fourteenth of μ apart, in deviations)
    assert mu <= found.upper <= mu * (1.0 + 0.01)


def test_some_fnr_says_no_more_than_none():
    """At the least of its slopes a vertex without any FNR says as much as before, nowhere more."""
    t = np.array([0.0, 120.0, 800.0])
    log_alpha = np.array([-1057.0, -1057.0 - 1e-9])
    half = row(t, (log_alpha, np.zeros(2), np.full(2, -np.inf)), np.ones(2, bool), np.inf, -np.inf)
    with np.errstate(all="ignore"):
        found = joined([bounds(half)])
    used = np.flatnonzero(found.used[0])
    assert np.all(np.isfinite(found.log_beta[0][used])) and len(used)
    with mp.workdps(40):
        for k in used:
            low, high = found.at[0][k], found.at[0][k + 1]
            for e in np.linspace(low, high, 7):
                fpr, fnr = mpf(found.log_alpha[0][k]), mpf(found.log_beta[0][k])
                says = mp.exp(fnr) + mp.exp(mpf(e) + fpr)
                known = mp.exp(mpf(log_alpha[0 if e < t[1] else 1]) + mpf(e))
                assert says <= known * (1 + mpf(2e-9))
            # no more than that, and no less than half of it where it begins
            least = mp.exp(mpf(log_alpha[0]) + mpf(low)) / 2 * (1 - mpf(2e-9))
            assert mp.exp(fnr) + mp.exp(mpf(low) + fpr) >= least


def test_nothing_is_left_beyond_the_largest_loss():
    half = _half(2.0, [0.0, 1.0, 2.0])
    with np.errstate(all="ignore"):
        found = joined([bounds(half), beyond_largest(5.0)])
        delta = np.exp(log_delta_at(found, np.array([2.0, 3.5, 5.0, 6.0])))
    # a chord from δ(2) to nothing at 5
    exact = np.exp(_exact(2.0, 2.0)[0])
    chord = exact * (np.exp(5.0) - np.exp(3.5)) / (np.exp(5.0) - np.exp(2.0))
    np.testing.assert_allclose(delta, [exact, chord, 0.0, 0.0], rtol=1e-9, atol=1e-12)
    assert found.top[0] == 5.0 and found.log_infinity_mass[0] == -np.inf
    assert len(beyond_largest(np.inf).loss) == 0


def test_bound_of_nothing_says_nothing():
    with np.errstate(all="ignore"):
        (found,) = padded([joined([beyond_largest(np.inf)])])
        assert not np.any(found.used)
        assert log_delta_at(found, np.array([1.0]))[0] == 0.0
