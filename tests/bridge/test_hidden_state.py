"""The last model of noisy gradient descent on strongly convex losses."""

import numpy as np
import pytest

from jaxgdp.bridge import strongly_convex_full_batch_mu


def test_last_model_of_a_quadratic_loss():
    """x ← (1 − ηm)x + η·(shift + noise): mean and variance of the last x, step by step."""
    for eta, m, smooth, steps in ((0.1, 0.2, 1.0, 7), (1.8, 0.3, 1.0, 12), (0.5, 1.0, 1.0, 40)):
        c = max(abs(1 - eta * m), abs(1 - eta * smooth))
        mean = variance = 0.0
        for _ in range(steps):
            mean, variance = c * mean + 0.3, c * c * variance + 1.0
        found = strongly_convex_full_batch_mu(
            0.3, steps, learning_rate=eta, strong_convexity=m, smoothness=smooth
        )
        np.testing.assert_allclose(found, mean / np.sqrt(variance), rtol=1e-12)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        (dict(learning_rate=3.0), "learning_rate must be below 2/smoothness"),
        (dict(strong_convexity=2.0), "strong_convexity must be at most smoothness"),
        (dict(smoothness=-1.0), "smoothness"),
    ],
)
def test_bad_input_is_refused_by_name(fields, words):
    usual = {"learning_rate": 0.1, "strong_convexity": 0.2, "smoothness": 1.0}
    with pytest.raises(ValueError, match=words):
        strongly_convex_full_batch_mu(0.1, 10, **(usual | fields))
