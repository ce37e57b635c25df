"""δ(ε) never falls below the mass at infinity, also between the largest finite loss and the next
vertex of the curve.
"""

import time

import numpy as np
import pytest
from scipy.special import ndtr, ndtri
from scipy.stats import binom, norm

import jaxgdp


def test_delta_just_beyond_the_largest_loss():
    epsilon = np.linspace(3.0, 3.05, 41)
    exact = 1.0 - 0.9**3  # three times (1, 0.1)-DP: losses of at most 3 or infinite
    found = jaxgdp.tradeoff(jaxgdp.compose([(jaxgdp.ApproximateDP(1.0, 0.1), 3)])).delta(epsilon)
    assert np.all(found.upper >= exact) and np.all(found.lower <= exact)
    assert np.all(found.upper <= exact * (1.0 + 1e-6))


@pytest.mark.parametrize("epsilon, mass", [(1.0, 0.1), (1.0, 1e-5), (0.3, 1e-9), (2.5, 1e-200)])
def test_delta_is_the_mass_at_infinity_or_it_is_not(epsilon, mass):
    """One use of (ε, δ)-DP: ε from δ on, ∞ below, be it by 5e-13 of it."""
    mechanism = jaxgdp.ApproximateDP(epsilon, mass)
    asked = np.array([mass * (1.0 - 5e-13), mass, mass * (1.0 + 5e-13)])
    exact = np.array([np.inf, epsilon, epsilon])
    found = jaxgdp.measure(
        mechanism, ("epsilon", "approximate_mu"), delta=asked, approximation=asked
    ).brackets
    curve = jaxgdp.tradeoff(mechanism)
    for bracket in (found["epsilon"], curve.epsilon(asked)):
        # (5e-13 above the mass ε is a little below: 1 − 8e-14 for ε = 1 and a mass of 0.1)
        assert np.all(bracket.lower <= exact) and np.all(bracket.upper >= exact * (1.0 - 1e-12))
        assert np.allclose(bracket.upper, exact, rtol=1e-9)
    for bracket in (found["approximate_mu"], curve.approximate_mu(asked)):
        pure = jaxgdp.gdp.mu_from_pure_dp(epsilon=epsilon)
        assert (
            bracket.upper[0] == np.inf
            and np.all(bracket.lower[1:] <= pure)
            and np.all(pure <= bracket.upper[1:])
        )
        assert np.allclose(bracket.upper[1:], pure, rtol=1e-6)


def test_mass_at_infinity_of_several_uses_is_rounded_up():
    """1 − (1 − δ)³ is no double: a δ that is less, by however little, must not get a finite ε."""
    rest = (1.0 - 0.1) ** 3
    found = jaxgdp.measure(
        jaxgdp.compose([(jaxgdp.ApproximateDP(1.0, 0.1), 3)]),
        "epsilon",
        delta=(1.0 - rest) * (1.0 - 1e-12),
    )
    assert found.brackets["epsilon"].upper == np.inf


@pytest.mark.parametrize(
    "mechanism, uses",
    [
        (jaxgdp.NoisyMaximum(2.46e-6, 2, "laplace", True), 3),
        (jaxgdp.NoisyMaximum(1e-4, 5, "gaussian"), 2),
    ],
)
@pytest.mark.parametrize(
    "epsilon", [10_000.0, pytest.param([0.0, 210.0, 700.0], marks=pytest.mark.nightly)]
)
def test_tables_with_all_their_mass_at_infinity_show_all_however_often_they_are_used(
    mechanism, uses, epsilon
):
    """Scores that move by 10⁴ times their noise: the index changes for certain."""
    found = jaxgdp.compose([(mechanism, uses)])
    assert np.all(jaxgdp.delta(found, epsilon=epsilon).upper == 1.0)


def mu_of_atoms(null, shown, floor):
    """Largest Φ⁻¹(TPR) − Φ⁻¹(FPR) where both error rates are at least the floor (or both at most),
    of a pair's atoms.
    """
    with np.errstate(divide="ignore"):
        order = np.argsort(np.log(null) - np.log(shown), kind="stable")
    rates = np.array([np.append(0.0, np.cumsum(masses[order])) for masses in (null, shown)])
    ends = [(floor, np.interp(floor, *rates)), (np.interp(1.0 - floor, *rates[::-1]), 1.0 - floor)]
    fpr, tpr = np.append(rates, np.transpose(ends), axis=1)
    fnr = 1.0 - tpr
    inside = (fpr >= floor) & (fnr >= floor * (1.0 - 1e-9))
    if 1.0 - ends[0][1] < floor:
        inside = (fpr <= floor) & (fnr <= floor * (1.0 + 1e-9))
    return np.max(ndtri(tpr[inside]) - ndtri(fpr[inside]))


@pytest.mark.parametrize("adjacency", ["remove", "add", "add_remove"])
@pytest.mark.parametrize("floor", [6.06482e-05, 1e-4, 1.3e-4])
@pytest.mark.parametrize("uses", [0, 51])
def test_mu_where_nearly_all_mass_is_at_infinity(adjacency, floor, uses):
    """Twenty uses show everything but for 1.6e-4: no tilt has its mean at ℓ = 0, and one half has
    next to no losses.
    """
    # masses and the first floor: origin not recorded, probably a random search; the other floors
    # are round numbers beside it
    few, many = np.array([0.483646, 0.516354]), np.array([0.31141, 0.334856])
    k, flips = np.arange(21), np.arange(uses + 1)
    keep = 1.0 / (1.0 + np.exp(-0.28))
    pmfs = [binom(20, p[1] / p.sum()).pmf(k) * p.sum() ** 20 for p in (few, many)]
    of_flips = [binom(uses, p).pmf(flips) for p in (1.0 - keep, keep)]
    null, shown = (np.outer(*both).ravel() for both in zip(pmfs, of_flips, strict=True))
    exact = mu_of_atoms(np.append(0.0, null), np.append(1.0 - shown.sum(), shown), floor)

    parts = [(jaxgdp.FromPMFs(np.append(0.0, few), np.append(1.0 - many.sum(), many)), 20)]
    parts += [(jaxgdp.RandomizedResponse(0.28), uses)] if uses else []
    for rtol in (1e-2, 1e-4):
        found = jaxgdp.measure(
            jaxgdp.compose(parts), "mu", adjacency=adjacency, fpr_floor=floor, rtol=rtol
        )
        bracket = found.brackets["mu"]
        assert bracket.lower <= exact * (1.0 + 1e-9) and exact * (1.0 - 1e-9) <= bracket.upper
        assert found.worst == 0 and bracket.upper - bracket.lower <= rtol * exact


def test_mu_where_both_error_rates_have_to_be_at_most_the_floor():
    """No vertex has: the range is a stretch of one edge, whose end at the floor an attack
    achieves.
    """
    # masses and floor: origin not recorded, probably a random search
    null, shown = (
        np.array([0.0, 0.26382563, 0.43108885, 0.30508552]),
        np.array([0.5, 0.0116625, 0.36394091, 0.12439659]),
    )
    of_all = [
        np.multiply.reduce(masses[np.indices((4, 4, 4, 4)).reshape(4, -1)], axis=0)
        for masses in (null, shown)
    ]
    floor = 0.05515521449079817
    exact = mu_of_atoms(*of_all, floor)
    found = jaxgdp.measure(
        jaxgdp.compose([(jaxgdp.FromPMFs(null, shown), 4)]),
        "mu",
        fpr_floor=floor,
        rtol=1e-3,
        adjacency="remove",
    )
    bracket = found.brackets["mu"]
    assert (
        found.worst == 0
        and bracket.lower <= exact * (1.0 + 1e-9)
        and exact <= bracket.upper * (1.0 + 1e-9)
    )
    assert bracket.upper - bracket.lower < 1.1e-3 * exact


def _delta_of_one_step(sigma, p, epsilon):
    """δ(ε) of one step of DP-SGD at any real ε, in closed form."""
    rest = np.expm1(epsilon) / p + 1.0
    place = sigma * np.log(np.where(rest > 0.0, rest, 1.0)) + 0.5 / sigma
    one, other = ndtr(-place), ndtr(1.0 / sigma - place)
    above = (1.0 - p) * one + p * other - np.exp(epsilon) * one
    return np.where(rest > 0.0, above, -np.expm1(epsilon))


def _delta_of_both(epsilon, own, lost, sigma, p):
    """δ(ε) of three uses of (own, lost)-DP and three steps of DP-SGD: atoms one by one, and two
    steps by quadrature."""
    z, width = np.linspace(-9.0, 10.0, 401, retstep=True)
    loss = np.log1p(p * np.expm1(z / sigma - 0.5 / sigma**2))
    weight = width * np.exp(loss - 0.5 * z * z) / np.sqrt(2.0 * np.pi)
    total = 1.0 - (1.0 - lost) ** 3
    for up, ways in enumerate((1, 3, 3, 1)):
        mass = ways * (1.0 - lost) ** 3 * np.exp(own * up) / (1.0 + np.exp(own)) ** 3
        left = epsilon - own * (2 * up - 3) - loss[:, None] - loss
        total += mass * weight @ _delta_of_one_step(sigma, p, left) @ weight
    return total


def test_mass_at_infinity_leaves_nothing_behind_in_the_attack():
    """(what rounding leaves of its cell, under a steep tilt, was more than everything else)"""
    run = jaxgdp.compose(
        [(jaxgdp.ApproximateDP(0.1, 1e-8), 3), (jaxgdp.SubsampledGaussian(1.5, 0.02), 3)]
    )
    found = jaxgdp.measure(run, "epsilon", delta=1e-5, adjacency="remove")
    low, high = found.epsilon
    assert found.status["epsilon"] == 0
    assert _delta_of_both(low, 0.1, 1e-8, 1.5, 0.02) >= 1e-5 * (1 - 1e-6)
    assert _delta_of_both(high, 0.1, 1e-8, 1.5, 0.02) <= 1e-5 * (1 + 1e-6)
    assert high - low <= 1e-3 * high


@pytest.mark.parametrize(("uses", "chance"), [(150, 1e-3), (300, 1e-5), (3000, 1e-4)])
def test_leaks_beside_smooth_laws_take_no_longer_than_those(uses, chance):
    """Uses that show all with a small chance, and otherwise one loss, beside k·Gaussian noise: with
    a the chance that none of them shows all, TPR(α) = 1 − a + a·Φ(√k − z_α) for removing the
    record, and μ at the floor of 1e-10 is that of the floor, which all larger rates are below.
    """
    leak = jaxgdp.FromPMFs(p=[1.0, 0.0], q=[1.0 - chance, chance])
    run = jaxgdp.compose([(leak, uses), (jaxgdp.Gaussian(1.0), 3)])
    started = time.thread_time()
    found = jaxgdp.measure(run, ("mu", "tpr"), fpr=1e-3, adjacency="remove")
    assert time.thread_time() - started < 5.0  # (25 s where such uses were planned for wrongly)
    hidden = uses * np.log1p(-chance)
    tpr = lambda z: -np.expm1(hidden) + np.exp(hidden) * norm.cdf(np.sqrt(3.0) - z)
    assert found.tpr.lower <= tpr(norm.isf(1e-3)) <= found.tpr.upper
    z = norm.isf(np.geomspace(1e-10, 0.5, 2001))
    exact = np.max(norm.ppf(tpr(z)) + z)
    assert found.mu.lower <= exact * (1.0 + 1e-9) and exact <= found.mu.upper * (1.0 + 1e-9)
    assert max(found.status.values()) == 0
