"""The verdict on every mechanism of the package, for its documentation: computed when the page is
built.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import mechanisms
from ..mechanisms import dpsgd
from ..numerics.rounding import rounded_outward
from .identify import GdpVerdict, identify

_GRID = np.linspace(-12.0, 13.0, 101)


def examples() -> dict[str, Any]:
    """One setting of every mechanism, by what it is."""
    densities = mechanisms.FromDensities.normalized(
        _GRID, -np.abs(_GRID) / 1.5, -np.abs(_GRID - 1.0) / 1.5
    )
    return {
        "Gaussian(2)": mechanisms.Gaussian(2.0),
        "SubsampledGaussian(1, 0.1)": mechanisms.SubsampledGaussian(1.0, 0.1),
        "dpsgd(9.4, 0.32768, 2000)": dpsgd(9.4, 16384 / 50_000, 2000),
        "Deterministic(2, 4 epochs)": mechanisms.Deterministic(2.0, 4),
        "Shuffled(1, 100 batches)": mechanisms.Shuffled(1.0, 100),
        "RandomAllocation(1, 100 steps)": mechanisms.RandomAllocation(1.0, 100),
        "TruncatedPoisson(1, 0.02, 30 of 1000)": mechanisms.TruncatedPoisson(1.0, 0.02, 30, 1000),
        "FixedSize(1, 20 of 1000)": mechanisms.FixedSize(1.0, 20, 1000),
        "DiscreteGaussian(2)": mechanisms.DiscreteGaussian(2.0),
        "Laplace(1)": mechanisms.Laplace(1.0),
        "SubsampledLaplace(1, 0.1)": mechanisms.SubsampledLaplace(1.0, 0.1),
        "DiscreteLaplace(1)": mechanisms.DiscreteLaplace(1.0),
        "RandomizedResponse(1)": mechanisms.RandomizedResponse(1.0),
        "PureDP(1)": mechanisms.PureDP(1.0),
        "ApproximateDP(1, 1e-6)": mechanisms.ApproximateDP(1.0, 1e-6),
        "ExponentialMechanism(1)": mechanisms.ExponentialMechanism(1.0),
        "FromPMFs, same outputs": mechanisms.FromPMFs([0.5, 0.3, 0.2], [0.3, 0.3, 0.4]),
        "FromPMFs, one output of Q only": mechanisms.FromPMFs([0.6, 0.4, 0.0], [0.5, 0.4, 0.1]),
        "FromProfile, last δ = 0": mechanisms.FromProfile([0.0, 0.5, 1.0], [0.3, 0.1, 0.0]),
        "FromProfile, last δ = 1e-6": mechanisms.FromProfile([0.0, 0.5, 1.0], [0.3, 0.1, 1e-6]),
        "FromDensities, nothing missing": densities,
    }


def verdicts() -> dict[str, GdpVerdict]:
    """The verdict on each of :func:`examples`."""
    return {name: identify(mechanism) for name, mechanism in examples().items()}


def markdown() -> str:
    """A table of :func:`verdicts`: whether a μ holds at every rate and which, μ_t, and the μ down
    to the default floor.
    """
    up = lambda x: "∞" if np.isinf(x) else rounded_outward(float(x), up=True, digits=5)
    lines = [
        (
            "| mechanism, used once | GDP at every rate | with μ | tail μ | head μ | holds from FPR"
            " | why |"
        ),
        "|---|---|---:|---:|---:|---:|---|",
    ]
    for name, v in verdicts().items():
        tail = "" if v.tail_mu is None else ("∞" if np.isinf(v.tail_mu) else f"{v.tail_mu:.5g}")
        floor = "0" if v.fpr_floor == 0.0 else f"{v.fpr_floor:.3g}"
        cells = (
            name,
            "yes" if v.is_gdp else "no",
            up(v.everywhere.upper),
            tail,
            up(v.head_mu.upper),
            floor,
            v.reason,
        )
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


__all__ = ["examples", "markdown", "verdicts"]
