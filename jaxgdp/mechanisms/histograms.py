"""Noisy counts of people by cell, as the mechanism of what one person can change."""

from __future__ import annotations

import numpy as np

from ..adjacency import Adjacency
from ..numerics.validation import one_of, whole
from .base import Mechanism
from .composition import Composition, compose
from .discrete_gaussian import DiscreteGaussian
from .discrete_laplace import DiscreteLaplace
from .gaussian import Gaussian
from .laplace import Laplace

_NOISE = (Gaussian, DiscreteGaussian, Laplace, DiscreteLaplace)
CHANGES = ("add_remove", "replace_one")


def histogram(
    noise: Mechanism,
    cells: int | None = None,
    *,
    cells_per_person: int = 1,
    change: str = "add_remove",
    releases: int = 1,
) -> Composition:
    """A histogram with noise on every count: each person is in one cell of m, or in a few.

    Counts that no change of a person moves reveal nothing of that person. If one is added or
    removed, k counts move by one each; if one is replaced by another (or moves to other cells), up
    to 2k: k down and k up. Each of them is one use of the noise on a count of sensitivity 1. So a
    person who moves from one cell to another costs √2 times the μ of Gaussian noise, and not twice:
    ``adjacency="replace_one"`` of the noise itself is for one count that moves by two.

    Args:
        noise: of one count that moves by 1: Gaussian, DiscreteGaussian, Laplace or DiscreteLaplace.
        cells: m, cells of the histogram; None where they are many.
        cells_per_person: k, the most cells that one person is in.
        change: "add_remove" or "replace_one", of a person.
        releases: how often the histogram is released, with noise anew.

    Returns:
        A :class:`jaxgdp.Composition`; measure it with the default adjacency, whatever ``change``
        is: the pair is that of the changed counts.

    Raises:
        ValueError: an argument is out of range, or the noise another one; names it.

    Example:
        >>> import jaxgdp
        >>> moved = histogram(jaxgdp.Gaussian(1.0), cells=50, change="replace_one")
        >>> bool(jaxgdp.mu(moved).contains(2**0.5))
        True
    """
    if not isinstance(noise, _NOISE):
        names = ", ".join(kind.__name__ for kind in _NOISE)
        raise ValueError(f"noise must be one of {names}, got {noise!r}")
    if np.any(np.asarray(getattr(noise, "sensitivity", 1)) != 1):
        raise ValueError("noise must be that of a count that moves by 1: sensitivity 1")
    one_of("change", change, CHANGES)
    most, times = whole("cells_per_person", cells_per_person), whole("releases", releases)
    moved = most * (2.0 if Adjacency(change).replaces else 1.0)
    if cells is not None:
        moved = np.minimum(moved, whole("cells", cells))
    return compose([(noise, moved * times)])
