"""Many uses of a Gaussian mechanism are fewer uses with less noise: the same pair."""

import numpy as np

import jaxgdp
from jaxgdp.mechanisms.composition import collapse_gaussians


def test_gaussians_keep_their_mu():
    """The μ of composed Gaussian mechanisms is √(Σ T)/σ (Dong et al. 2022, Corollary 3.3)."""
    sigma, uses = np.array([0.7, 3.0, 40.0]), np.array([300.0, 2_000.0, 1e9])
    ((mechanism, count),) = collapse_gaussians(
        jaxgdp.compose([(jaxgdp.Gaussian(sigma), uses)]).stacked()
    )
    mu = np.sqrt(count) / np.asarray(mechanism.noise_multiplier)
    np.testing.assert_allclose(mu[:, 0], np.sqrt(uses) / sigma, rtol=1e-15)
    assert np.all(count == count[0])


def test_subsampled_gaussians_stay_as_they_are():
    composition = jaxgdp.dpsgd([0.7, 3.0], 0.1, [300, 2000])
    groups = composition.stacked()
    (mechanism, count), (before, stated) = collapse_gaussians(groups)[0], groups[0]
    np.testing.assert_array_equal(mechanism.noise_multiplier, before.noise_multiplier)
    np.testing.assert_array_equal(count, stated)


def test_collapse_of_what_is_collapsed_changes_nothing():
    parts = [(jaxgdp.Gaussian([0.7, 3.0]), [300, 2000]), (jaxgdp.Laplace(4.0), 3)]
    once = collapse_gaussians(jaxgdp.compose(parts).stacked())
    for (mechanism, count), (again, more) in zip(once, collapse_gaussians(once), strict=True):
        np.testing.assert_array_equal(count, more)
        for mine, other in zip(vars(mechanism).values(), vars(again).values(), strict=True):
            np.testing.assert_array_equal(mine, other)
