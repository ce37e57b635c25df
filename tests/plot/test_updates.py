"""Noise of an update against batch size: what is drawn is σ/B, and what cannot be is refused."""

import numpy as np
import pytest

pytest.importorskip("matplotlib")
from matplotlib.figure import Figure

from jaxgdp import plot


def test_noise_of_an_update_is_the_noise_multiplier_over_the_batch_size():
    ax = plot.noise_per_update([100, 400], {"one": [1.0, 2.0]}, Figure().add_subplot())
    sizes, noise = ax.lines[0].get_data()
    np.testing.assert_allclose(sizes, [100.0, 400.0])
    np.testing.assert_allclose(noise, [0.01, 0.005])


def test_noise_multipliers_that_do_not_belong_to_batch_sizes_are_refused():
    for given in ([1.0], 1.0, [[1.0, 2.0]]):
        with pytest.raises(ValueError, match="one number for each batch size"):
            plot.noise_per_update([100, 400], {"one": given}, Figure().add_subplot())
    with pytest.raises(ValueError, match="one must be"):
        plot.noise_per_update([100, 400], {"one": [1.0, 0.0]}, Figure().add_subplot())
