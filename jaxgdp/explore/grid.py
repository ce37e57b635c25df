"""The certified grid of an explorer's page, which comes with the package.

Sliders of the page stop where the grid has points. Whole numbers of records and steps, which do
not fit exactly, are rounded to the less private side: rate and steps up. That is safe, because a
smaller sample is a sample of a larger one, and fewer steps are a part of more.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import resources
from typing import Any, NamedTuple

import numpy as np

from .. import options
from .._version import __version__
from ..measure import measure
from ..mechanisms import Deterministic, compose, dpsgd
from ..numerics.rounding import rounded_outward
from ..numerics.shapes import Array, Float, Int

DELTAS = (1e-5, 1e-6, 1e-8)
FILE = "grid.json"
_MORE_STEPS = 1.01  # data sets are whole numbers ≥ 128, at most 1/128 above a power of √2


class Stops(NamedTuple):
    """Where sliders stop: positions of the grid along each axis.

    Attributes:
        noise_multiplier: σ, ascending.
        num_epochs: E, ascending whole numbers.
        half_octaves: k of the rates p = 2^(−k/2), ascending.
    """

    noise_multiplier: Float[Array, ...]
    num_epochs: Int[Array, ...]
    half_octaves: Int[Array, ...]

    @property
    def sampling_prob(self) -> Float[Array, ...]:
        """Rates, descending."""
        return 2.0 ** (-0.5 * self.half_octaves)

    @property
    def num_steps(self) -> Float[Array, ...]:
        """Steps of every rate and number of epochs, with room for whole numbers of records.

        Example:
            >>> float(STOPS.num_steps[STOPS.half_octaves.tolist().index(12), 0])  # 64 batches
            65.0
        """
        return np.ceil(_MORE_STEPS * self.num_epochs / self.sampling_prob[:, None])


STOPS = Stops(
    np.array([0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.4, 1.6, 1.8, 2, 2.5, 3, 4, 5, 7, 10.0]),
    np.array([1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 200, 300]),
    np.arange(33),
)


def computed(
    stops: Stops, rtol: float = 1e-2, progress: Callable[[int], Any] | None = None
) -> dict[str, Any]:
    """Upper sides of μ, the advantage and ε over the grid, ready for JSON.

    Args:
        stops: the grid.
        rtol: requested relative width.
        progress: called with the number of numbers finished.

    Returns:
        Stops, deltas, and lists "mu", "advantage", "epsilon" and "ordered" in C order of noise,
        rates and epochs (ε by δ first). "ordered" is ε of batches in a fixed order, which shuffled
        ones are no less private than, by δ, noise and epochs. All are rounded up.
    """
    sigma = stops.noise_multiplier[:, None, None]
    runs = dpsgd(sigma, stops.sampling_prob[:, None], stops.num_steps)
    found = measure(runs, ("mu", "advantage"), rtol=rtol, progress=progress)
    ordered = compose([Deterministic(sigma[..., 0], stops.num_epochs)])

    def epsilons(of: Any, progress: Callable[[int], Any] | None = None) -> list[Any]:
        asked = {"rtol": rtol, "progress": progress}
        return [
            rounded_up(measure(of, "epsilon", delta=d, **asked)["epsilon"].upper) for d in DELTAS
        ]

    return {
        "version": __version__,
        "noise_multiplier": stops.noise_multiplier.tolist(),
        "num_epochs": stops.num_epochs.tolist(),
        "half_octaves": stops.half_octaves.tolist(),
        "deltas": list(DELTAS),
        "fpr_floor": options.FPR_FLOOR,
        "mu": rounded_up(found["mu"].upper),
        "advantage": rounded_up(found["advantage"].upper),
        "epsilon": epsilons(runs, progress),
        "ordered": epsilons(ordered),
    }


def stored() -> dict[str, Any]:
    """The grid that comes with the package."""
    file = resources.files(__package__ or __name__).joinpath(FILE)
    return json.loads(file.read_text(encoding="utf-8"))


def rounded_up(values: Any) -> list[float | None]:
    """Numbers rounded up to four digits; None where there is no finite one."""
    return [
        float(rounded_outward(float(x), up=True, digits=4)) if np.isfinite(x) else None
        for x in np.ravel(values)
    ]
