"""DP-SGD of few steps, or of large ones: losses rounded to a grid in both directions."""

from __future__ import annotations

import numpy as np

from .rounded import pair
from .setting import Setting, adjacency_of, built, of_adjacency, rates

_POINTS = 6000
_QUANTITIES = ("epsilon", "delta", "tpr", "beta", "advantage", "bayes_risk")
_ACCURACY = 1e-10  # of the sums of products


def draw(rng) -> Setting:
    """A run of 2 to 60 steps."""
    sigma = float(np.exp(rng.uniform(np.log(0.08), np.log(5.0))))
    p = float(np.exp(rng.uniform(np.log(1e-7), np.log(0.95))))
    steps = int(np.exp(rng.uniform(np.log(2.0), np.log(60.0))))
    # of so many steps that the record takes part in
    taken = min(float(rng.uniform(0.0, 3.0)), steps)
    most = taken * (0.5 / sigma**2 + 5.0 / sigma) - steps * np.log1p(-p) + 1.0
    curves = pair(sigma, p, steps, float(most), _POINTS)
    adjacency = adjacency_of(rng)
    at = rates(rng, float(most) / 1.1)
    return Setting(
        f"jaxgdp.dpsgd({sigma!r}, {p!r}, {steps})",
        built(f"jaxgdp.dpsgd({sigma!r}, {p!r}, {steps})"),
        adjacency,
        tuple(of_adjacency(curve, adjacency) for curve in curves),
        at,
        accuracy=_ACCURACY,
        quantities=tuple(str(name) for name in rng.choice(_QUANTITIES, 2, replace=False)),
    )
