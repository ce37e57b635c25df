"""δ(ε) never falls below the mass at infinity, also between the largest finite loss and the next vertex of the curve."""

import numpy as np
import pytest

import jaxgdp


def test_delta_just_beyond_the_largest_loss():
    epsilon = np.linspace(3.0, 3.05, 41)
    exact = 1.0 - 0.9**3  # three times (1, 0.1)-DP: losses of at most 3 or infinite
    found = jaxgdp.tradeoff(jaxgdp.compose([(jaxgdp.ApproximateDP(1.0, 0.1), 3)])).delta(epsilon)
    assert np.all(found.upper >= exact) and np.all(found.lower <= exact)
    assert np.all(found.upper <= exact * (1.0 + 1e-6))


@pytest.mark.parametrize("epsilon, mass", [(1.0, 0.1), (1.0, 1e-5), (0.3, 1e-9), (2.5, 1e-200)])
def test_a_delta_is_the_mass_at_infinity_or_it_is_not(epsilon, mass):
    """One use of (ε, δ)-DP: ε from δ on, ∞ below, be it by 5e-13 of it."""
    mechanism = jaxgdp.ApproximateDP(epsilon, mass)
    asked = np.array([mass * (1.0 - 5e-13), mass, mass * (1.0 + 5e-13)])
    exact = np.array([np.inf, epsilon, epsilon])
    found = jaxgdp.measure(mechanism, ("epsilon", "approximate_mu"), delta=asked, d=asked).brackets
    curve = jaxgdp.tradeoff(mechanism)
    for bracket in (found["epsilon"], curve.epsilon(asked)):
        assert np.all(bracket.lower <= exact) and np.all(bracket.upper >= exact)
        assert np.allclose(bracket.upper, exact, rtol=1e-9)
    for bracket in (found["approximate_mu"], curve.approximate_mu(asked)):
        pure = jaxgdp.gdp.mu_from_pure_dp(epsilon)
        assert bracket.upper[0] == np.inf and np.all(bracket.lower[1:] <= pure) and np.all(pure <= bracket.upper[1:])
        assert np.allclose(bracket.upper[1:], pure, rtol=1e-6)


def test_mass_at_infinity_of_several_uses_is_rounded_up():
    """1 − (1 − δ)³ is no double: a δ that is less, by however little, must not get a finite ε."""
    rest = (1.0 - 0.1) ** 3
    found = jaxgdp.measure(
        jaxgdp.compose([(jaxgdp.ApproximateDP(1.0, 0.1), 3)]), "epsilon", delta=(1.0 - rest) * (1.0 - 1e-12)
    )
    assert found.brackets["epsilon"].upper == np.inf
