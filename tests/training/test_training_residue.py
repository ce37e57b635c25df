"""The residue filter: exact profiles, and games in which the analyst does its best."""

import functools

import mpmath
import numpy as np
import pytest

import jaxgdp
from jaxgdp import gdp
from jaxgdp.training import residue
from jaxgdp.training.residue import admit, residue_filter


def gaussian_profile(mu, x):
    return mpmath.ncdf(mu / 2 - x / mu) - mpmath.exp(x) * mpmath.ncdf(-mu / 2 - x / mu)


def excess(epsilon, number, left, mu, thresholds):
    """The largest δ of the uses beside a Gaussian over that of the budget, less 1."""
    with mpmath.workdps(40):
        epsilon, left, mu = mpmath.mpf(epsilon), mpmath.mpf(left), mpmath.mpf(mu)
        up = 1 / (1 + mpmath.exp(-epsilon))
        ratios = []
        for x in thresholds:
            total = mpmath.fsum(
                mpmath.binomial(number, j)
                * up**j
                * (1 - up) ** (number - j)
                * gaussian_profile(left, mpmath.mpf(x) - (2 * j - number) * epsilon)
                for j in range(number + 1)
            )
            ratios.append(total / gaussian_profile(mu, mpmath.mpf(x)))
        return float(max(ratios) - 1)


@pytest.mark.parametrize(
    "mu, epsilon, number",
    [(1.0, 0.2, 1), (0.3, 0.2, 1), (3.0, 1.0, 1), (5.0, 2.0, 3), (1.0, 0.02, 20), (1.0, 0.7, 1)],
)
def test_residue_is_what_exact_profiles_allow_and_hardly_less(mu, epsilon, number):
    cost = number * float(gdp.mu_from_pure_dp(epsilon=epsilon)) ** 2
    left = residue.residue(mu, cost, epsilon, number)
    assert left**2 > mu**2 - cost
    thresholds = np.append(np.linspace(0.0, 4.0 * mu, 25), mu * np.array([6.0, 15.0, 40.0]))
    assert excess(epsilon, number, left, mu, thresholds) <= 0.0
    more = np.sqrt(mu**2 - (1.0 - 3e-3) * (mu**2 - left**2))
    assert excess(epsilon, number, more, mu, np.linspace(0.0, 4.0 * mu, 25)) > 0.0


def best_game(mu, menu, threshold, leaves, depth=7):
    """The largest E_P(1 − e^{x − L})₊ of an analyst who sees every answer, ends with Gaussian noise
    and may ask whatever ``leaves`` admits.
    """
    up = {epsilon: 1.0 / (1.0 + np.exp(-epsilon)) for epsilon in menu}

    @functools.cache
    def value(left, loss, rest):
        best = float(gaussian_profile(left, threshold - loss))
        for epsilon in menu if rest else ():
            following = leaves(left, epsilon)
            if following is not None:
                higher = value(following, round(loss + epsilon, 9), rest - 1)
                lower = value(following, round(loss - epsilon, 9), rest - 1)
                best = max(best, up[epsilon] * higher + (1.0 - up[epsilon]) * lower)
        return best

    return value(mu, 0.0, depth)


def test_no_choice_of_steps_beats_the_budget_and_a_cheaper_filter_is_beaten():
    @functools.cache
    def leaves(left, epsilon):
        cost = float(gdp.mu_from_pure_dp(epsilon=epsilon)) ** 2
        return residue.residue(left, cost, epsilon)

    def cheaper(left, epsilon):
        square = left**2 - 0.98 * epsilon**2
        return np.sqrt(square) if square > 0.0 else None

    for threshold in (0.0, 0.5, 2.0):
        budget = float(gaussian_profile(1.0, threshold))
        assert best_game(1.0, (0.3, 0.45), threshold, leaves, 5) <= budget * (1.0 + 1e-12)
    assert best_game(1.0, (0.3, 0.45), 0.0, cheaper, 5) > float(gaussian_profile(1.0, 0.0)) * 1.001


def test_gaussian_and_subsampled_steps_cost_their_mu():
    state, go = admit(residue_filter(1.0), jaxgdp.Gaussian(2.0))
    assert go and state.left == pytest.approx(np.sqrt(0.75), rel=1e-12) and state.left < 0.75**0.5
    sampled, go = admit(residue_filter(1.0), jaxgdp.SubsampledGaussian(2.0, 0.01))
    assert go and sampled.left == pytest.approx(state.left, rel=1e-12)


def test_filter_closes_for_good_and_admits_all_or_none():
    state, go = admit(residue_filter(1.0), jaxgdp.PureDP(0.1), number=90)
    assert go and state.admitted == 90
    state, go = admit(state, jaxgdp.PureDP(0.1), number=20)
    assert not go and state.closed and state.admitted == 90
    assert not admit(state, jaxgdp.PureDP(1e-9))[1]


def test_bad_steps_are_refused_by_name():
    state = residue_filter(1.0)
    with pytest.raises(ValueError, match="mu must be"):
        residue_filter(0.0)
    with pytest.raises(TypeError, match="step must be a mechanism"):
        admit(state, 0.1)
    with pytest.raises(ValueError, match="ApproximateDP, which has none"):
        admit(state, jaxgdp.ApproximateDP(0.1, 1e-6))
    with pytest.raises(ValueError, match="number must be a whole number"):
        admit(state, jaxgdp.PureDP(0.1), number=0)
    with pytest.raises(ValueError, match="shape"):
        admit(state, jaxgdp.PureDP([0.1, 0.2]))
