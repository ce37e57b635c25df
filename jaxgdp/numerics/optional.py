"""Optional packages: their types, for type checkers, and the error that names the extra.

Nothing is loaded at run time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from distributed import Client
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from xarray import Dataset
else:
    Axes = Client = Dataset = Figure = Any

__all__ = ["Axes", "Client", "Dataset", "Figure", "how_to_install", "missing"]


def how_to_install(extra: str) -> str:
    """The commands that install an extra, from the package index and from a checkout.

    Example:
        >>> how_to_install("sweep")
        "pip install 'jaxgdp[sweep]', or from a checkout: pip install '.[sweep]'"
    """
    return f"pip install 'jaxgdp[{extra}]', or from a checkout: pip install '.[{extra}]'"


def missing(what: str, extra: str) -> ImportError:
    """The error for an optional package that is not installed.

    Args:
        what: the sentence before the colon, such as "figures need matplotlib".
        extra: the extra of ``jaxgdp`` that holds the package.

    Example:
        >>> raise missing("figures need matplotlib", "plot")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
            ...
        ImportError: figures need matplotlib: pip install 'jaxgdp[plot]', or from a checkout: ...
    """
    return ImportError(f"{what}: {how_to_install(extra)}")
