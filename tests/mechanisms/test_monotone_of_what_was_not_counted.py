"""Mechanisms of unknown domains, maxima, searches and drawn sizes show no less at a larger rate, of
more cells, keys or runs, and no more of more noise: both sides of their brackets say so.

More noise at the same threshold shows new cells more often: there the threshold moves along.
"""

import numpy as np
import pytest

import jaxgdp

# rows of mechanisms that show more and more
GROWING = {
    "thresholded_gaussian_noise": [
        jaxgdp.ThresholdedGaussian(s, 1 + 5.5 * s, 2) for s in (4, 2, 1)
    ],
    "thresholded_gaussian_cells": [jaxgdp.ThresholdedGaussian(2.0, 12.0, n) for n in (1, 3, 9)],
    "thresholded_gaussian_threshold": [jaxgdp.ThresholdedGaussian(2.0, t, 2) for t in (12, 9, 5)],
    "thresholded_laplace_noise": [jaxgdp.ThresholdedLaplace(b, 1 + 9.5 * b, 2) for b in (4, 2, 1)],
    "thresholded_laplace_cells": [jaxgdp.ThresholdedLaplace(2.0, 20.0, n) for n in (1, 3, 9)],
    "thresholded_laplace_threshold": [jaxgdp.ThresholdedLaplace(2.0, t) for t in (30, 20, 10)],
    "partition_epsilon": [jaxgdp.PartitionSelection(e, 1e-6) for e in (0.5, 1.0, 2.0)],
    "partition_delta": [jaxgdp.PartitionSelection(1.0, d) for d in (1e-8, 1e-6, 1e-4)],
    "partition_keys": [jaxgdp.PartitionSelection(1.0, 1e-6, n) for n in (1, 2, 5)],
    "maximum_noise": [jaxgdp.NoisyMaximum(s, 8, "gaussian") for s in (4.0, 2.0, 1.0)],
    "maximum_candidates": [jaxgdp.NoisyMaximum(2.0, n, "gaussian") for n in (2, 8, 64)],
    "sparse_vector_noise": [jaxgdp.SparseVector(b, 2 * b, 20) for b in (8.0, 4.0, 2.0)],
    "drawn_size_noise": [jaxgdp.DrawnBatchSize(s, 0.1, 100) for s in (4.0, 2.0, 1.0)],
    "drawn_size_rate": [jaxgdp.DrawnBatchSize(2.0, p, 100) for p in (0.05, 0.1, 0.3)],
    "search_runs": [
        jaxgdp.Selected(jaxgdp.Gaussian(2.0), jaxgdp.runs.Geometric(mean=m)) for m in (2, 5, 20)
    ],
    "search_noise": [
        jaxgdp.Selected(jaxgdp.Gaussian(s), jaxgdp.runs.Poisson(mean=5)) for s in (4.0, 1.0)
    ],
}


# (noise of a search: every day of geometric numbers of runs, in ``test_selected``)
NIGHTLY = {"search_noise"}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.nightly] if name in NIGHTLY or i % 2 else [])
        for i, name in enumerate(sorted(GROWING))
    ],
)
def test_brackets_grow_with_what_is_shown(name):
    asked = {"delta": 1e-3, "fpr": 1e-2}
    found = [jaxgdp.measure(one, ("epsilon", "tpr"), **asked).brackets for one in GROWING[name]]
    for quantity in ("epsilon", "tpr"):
        lower, upper = (
            np.array([getattr(each[quantity], side) for each in found])
            for side in ("lower", "upper")
        )
        # (what is certain of each may not contradict the order, and upper sides keep it themselves)
        assert np.all(lower[:-1] <= upper[1:]), (quantity, lower, upper)
        assert np.all(upper[:-1] <= upper[1:] * (1 + 1e-3) + 1e-9), (quantity, upper)
