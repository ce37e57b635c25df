"""Table 3 of Gomez 2025: the μ of the Gaussian mechanism that just meets common (ε, δ) targets."""

from __future__ import annotations

import numpy as np

from .. import gdp
from ..numerics.shapes import Array, ArrayLike
from ..vocabulary import keywords_only

TABLE3_EPSILONS = (0.1, 0.5, 1.0, 2.0, 4.0, 6.0, 8.0, 10.0)
TABLE3_DELTAS = (1e-5, 1e-6, 1e-9)
# as printed in the paper, rows by epsilon, columns by delta
TABLE3_PRINTED = (
    (0.03, 0.03, 0.02),
    (0.14, 0.12, 0.09),
    (0.27, 0.24, 0.18),
    (0.50, 0.45, 0.35),
    (0.92, 0.84, 0.67),
    (1.31, 1.20, 0.97),
    (1.67, 1.53, 1.26),
    (2.00, 1.85, 1.54),
)


@keywords_only
def table3(*, epsilons: ArrayLike = TABLE3_EPSILONS, deltas: ArrayLike = TABLE3_DELTAS) -> Array:
    """μ with δ_μ(ε) = δ for every pair of an ε and a δ (Gomez 2025, Table 3).

    Args:
        epsilons: one-dimensional, ε ≥ 0 in nats.
        deltas: one-dimensional, δ in (0, 1).

    Returns:
        μ, float64, shape (number of ε, number of δ): the largest μ that is (ε, δ)-DP.

    Raises:
        ValueError: an argument is out of range or not one-dimensional.

    Example:
        >>> table3(epsilons=[1.0], deltas=[1e-5, 1e-9]).round(2).tolist()
        [[0.27, 0.18]]
    """
    for name, values in (("epsilons", epsilons), ("deltas", deltas)):
        if np.ndim(values) != 1:
            raise ValueError(f"{name} must be one-dimensional, got shape {np.shape(values)}")
    return gdp.mu_from_epsilon_delta(
        epsilon=np.asarray(epsilons)[:, None], delta=np.asarray(deltas)[None, :]
    )
