"""Figures as files that say what they are."""

from __future__ import annotations

import datetime
from os import PathLike
from pathlib import Path

from .._version import __version__
from ..numerics.optional import Figure

_DOTS = 200  # per inch, of PNG


def blank_figure(size: tuple[float, float]) -> Figure:
    """A figure of (width, height) in inches that needs no screen."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def save(
    figure: Figure, path: str | PathLike[str], *, question: str, fpr_floor: float | None
) -> None:
    """Write a figure with the version, the question, the FPR floor and the date in its metadata.

    Args:
        figure: matplotlib ``Figure``.
        path: ending in .png, .pdf or .svg; an existing file is replaced.
        question: what the figure answers, such as the command that makes it.
        fpr_floor: of the μ in it, 0 where it holds at every FPR, or None where nothing in it
            depends on one: the file says "none".

    Raises:
        ValueError: the path ends otherwise.

    Example:
        >>> import tempfile
        >>> from matplotlib.figure import Figure
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     save(Figure(), f"{folder}/a.svg", question="what is mu?", fpr_floor=1e-10)
        ...     "what is mu?; FPR floor 1e-10" in Path(folder, "a.svg").read_text()
        True
    """
    path, program = Path(path), f"jaxgdp {__version__}"
    said = f"{question}; FPR floor {'none' if fpr_floor is None else f'{fpr_floor:g}'}"
    now = datetime.datetime.now(datetime.UTC).replace(microsecond=0)
    keys = {
        ".png": ("Description", "Software", "Creation Time"),
        ".pdf": ("Subject", "Creator", "CreationDate"),
        ".svg": ("Description", "Creator", "Date"),
    }
    suffix = path.suffix.lower()
    if suffix not in keys:
        raise ValueError(f"path must end in {', '.join(keys)}, got {str(path)!r}")
    date = now if suffix == ".pdf" else now.isoformat()
    metadata = dict(zip(("Title", *keys[suffix]), (question, said, program, date), strict=True))
    figure.savefig(path, dpi=_DOTS, metadata=metadata)
