"""Error rates at the ends of the range and between the corners of a curve of few segments."""

import numpy as np
import pytest

import jaxgdp

CURVES = {
    "gaussian": (jaxgdp.Gaussian(1.0), lambda a: jaxgdp.gdp.beta(a, 1.0)),
    "randomized response": (
        jaxgdp.RandomizedResponse(1.0),
        lambda a: np.maximum(1.0 - np.e * a, (1.0 - a) / np.e),
    ),
}


@pytest.fixture(scope="module", params=list(CURVES))
def case(request):
    mechanism, exact = CURVES[request.param]
    return jaxgdp.tradeoff(mechanism), exact


@pytest.mark.parametrize("alpha", [0.0, 1e-300, 1e-12, 0.1, 0.25, 0.3, 0.6, 0.999, 1.0])
def test_fnr_and_tpr_hold_the_exact_curve(case, alpha):
    curve, exact = case
    found, true = curve.beta(alpha), exact(alpha)
    assert found.lower <= true + 1e-12 and found.upper >= true - 1e-12
    assert found.width <= 1e-3
    tpr = curve.tpr(alpha)
    assert tpr.lower <= 1.0 - true + 1e-12 and tpr.upper >= 1.0 - true - 1e-12


def test_between_corners_the_attack_reaches_the_curve():
    found = jaxgdp.tradeoff(CURVES["randomized response"][0]).beta([0.01, 0.1, 0.2, 0.4, 0.9])
    assert np.max(found.width) <= 1e-9
