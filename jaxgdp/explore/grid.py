"""The certified grid of an explorer's page.

Between its points the page takes the next one that is less private: noise rounded down, rate and
steps rounded up. That is safe, because more noise is post-processing of less, a smaller sample is a
sample of a larger one, and fewer steps are a part of more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import gdp, options
from ..measure import measure
from ..mechanisms import dpsgd
from ..numerics.rounding import rounded_outward
from ..numerics.shapes import Array

DELTAS = (1e-3, 1e-5, 1e-6, 1e-8)
_ENDS = {"noise_multiplier": (0.4, 10.0), "sampling_prob": (1e-4, 1.0), "num_steps": (10.0, 1e5)}
_SHARES = {"noise_multiplier": 1.3, "sampling_prob": 1.0, "num_steps": 0.8}  # of points, on an axis
_MOST_MU, _MUS = 100.0, 160  # of runs in a fixed order, which shuffled ones are no worse than


def axes(points: int) -> dict[str, Array]:
    """Coordinates of a grid of about so many settings in all.

    Example:
        >>> {name: len(values) for name, values in axes(1000).items()}
        {'noise_multiplier': 13, 'sampling_prob': 10, 'num_steps': 8}
    """
    side = points ** (1.0 / 3.0)
    found = {}
    for name, (low, high) in _ENDS.items():
        values = np.geomspace(low, high, max(2, round(side * _SHARES[name])))
        values[-1] = high
        found[name] = np.unique(np.round(values)) if name == "num_steps" else values
    return found


def computed(
    points: int, rtol: float = 1e-2, progress: Callable[[int], Any] | None = None
) -> dict[str, Any]:
    """Upper sides of μ, the advantage and ε over the grid, ready for JSON.

    Args:
        points: settings, about.
        rtol: requested relative width.
        progress: called with the number of numbers finished.

    Returns:
        Axes, deltas, lists "mu", "advantage" and "epsilon" in C order (ε by δ first), and a table
        of ε of Gaussian mechanisms for runs in a fixed order. All are rounded up.
    """
    coordinates = axes(points)
    flat = [a.reshape(-1) for a in np.meshgrid(*coordinates.values(), indexing="ij")]
    runs = dpsgd(*flat)
    found = measure(runs, ("mu", "advantage"), rtol=rtol, progress=progress)
    by_delta = [
        measure(runs, "epsilon", delta=delta, rtol=rtol, progress=progress)["epsilon"].upper
        for delta in DELTAS
    ]
    mus = np.geomspace(0.01, _MOST_MU, _MUS)
    ordered = [np.asarray(gdp.epsilon(delta=delta, mu=mus)) * (1.0 + 1e-9) for delta in DELTAS]
    return {
        "axes": {name: values.tolist() for name, values in coordinates.items()},
        "deltas": list(DELTAS),
        "fpr_floor": options.FPR_FLOOR,
        "mu": _up(found["mu"].upper),
        "advantage": _up(found["advantage"].upper),
        "epsilon": [_up(upper) for upper in by_delta],
        "ordered": {"mu": mus.tolist(), "epsilon": [_up(values) for values in ordered]},
    }


def _up(values: Any) -> list[float | None]:
    """Numbers rounded up to four digits; None where there is no finite one."""
    return [
        float(rounded_outward(float(x), up=True, digits=4)) if np.isfinite(x) else None
        for x in np.ravel(values)
    ]
