"""δ(ε) never falls below the mass at infinity, also between the largest finite loss and the next vertex of the curve."""

import numpy as np

import jaxgdp


def test_delta_just_beyond_the_largest_loss():
    epsilon = np.linspace(3.0, 3.05, 41)
    exact = 1.0 - 0.9**3  # three times (1, 0.1)-DP: losses of at most 3 or infinite
    found = jaxgdp.tradeoff(jaxgdp.compose([(jaxgdp.ApproximateDP(1.0, 0.1), 3)])).delta(epsilon)
    assert np.all(found.upper >= exact) and np.all(found.lower <= exact)
    assert np.all(found.upper <= exact * (1.0 + 1e-6))
