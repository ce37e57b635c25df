"""Only the last model: the game of linear losses from below, all models from above."""

import numpy as np
import pytest

import jaxgdp
from jaxgdp.mechanisms.groups import binomial_weights
from tests.exact_mixtures import exact_delta


def test_lower_side_is_the_game_of_linear_losses():
    last = jaxgdp.last_iterate(1.0, 0.01, 1000)
    found = jaxgdp.epsilon(last, delta=1e-5)
    # (Annamalai et al. 2024: 1.277756)
    assert 1.277 <= found.lower <= 1.277757
    above = jaxgdp.epsilon(jaxgdp.dpsgd(1.0, 0.01, 1000), delta=1e-5)
    assert found.upper >= above.lower and found.upper <= 1.001 * above.upper


def test_one_step_without_sampling_has_both_sides():
    found = jaxgdp.mu(jaxgdp.last_iterate(2.0, 1.0, 1))
    assert found.lower <= 0.5 <= found.upper and found.upper - found.lower <= 2e-3


def test_steps_out_of_range_are_refused_by_name():
    with pytest.raises(ValueError, match="num_steps must be a whole number from 1 to 10000"):
        jaxgdp.last_iterate(1.0, 0.1, 20_000)
    assert jaxgdp.last_iterate([1.0, 2.0], 0.1, 5).shape == (2,)
    assert np.all(jaxgdp.mu(jaxgdp.last_iterate([1.0, 2.0], 0.1, 5)).lower > 0.0)


@pytest.mark.nightly
@pytest.mark.parametrize("steps, prob", [(20, 0.05), (60, 0.3), (400, 0.01)])
def test_lower_side_of_many_steps_is_exact_for_linear_losses(steps, prob):
    """The sum of all noisy sums: Bin(T, p) + N(0, Tσ²), with 40 digits."""
    last, sigma = jaxgdp.last_iterate(0.8, prob, steps), 0.8 * steps**0.5
    shifts, weights = np.arange(steps + 1.0), binomial_weights(steps, prob)
    for adjacency in ("remove", "add"):
        for epsilon in (0.1, 1.0):
            exact = exact_delta(sigma, shifts, weights, epsilon, adjacency)
            found = jaxgdp.delta(last, epsilon=epsilon, adjacency=adjacency)
            assert 0.99 * exact <= found.lower <= exact * (1.0 + 1e-12)
            assert found.upper >= exact
