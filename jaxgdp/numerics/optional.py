"""Types of optional packages, for readers and type checkers: nothing is loaded at run time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from distributed import Client
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from xarray import Dataset
else:
    Axes = Client = Dataset = Figure = Any

__all__ = ["Axes", "Client", "Dataset", "Figure"]
