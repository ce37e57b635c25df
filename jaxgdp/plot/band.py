"""A bracket against anything: the band between its sides, and the side to report as a line."""

from __future__ import annotations

import numpy as np

from ..bracket import Bracket
from ..numerics.optional import Axes, Dataset
from ..numerics.shapes import ArrayLike
from .style import grid, line_style, marked


def band(
    x: ArrayLike,
    bracket: Bracket,
    ax: Axes,
    *,
    label: str | None = None,
    number: int = 0,
    lines: int = 1,
    side: str = "upper",
) -> Axes:
    """A bracket along an axis.

    Args:
        x: one-dimensional.
        bracket: with ``lower`` and ``upper`` of the same length.
        ax: matplotlib ``Axes`` to draw on.
        label: of the line.
        number, lines: which of how many lines, for its style.
        side: "upper" or "lower", the one to report, drawn as the line. Few points get a marker
            each, so that the straight lines between them are not taken for answers.

    Raises:
        ValueError: the lengths differ, or ``side`` is neither.

    Example:
        >>> from matplotlib.figure import Figure
        >>> import jaxgdp
        >>> found = jaxgdp.measure(jaxgdp.dpsgd([1.0, 2.0, 4.0], 0.01, 1000), "mu")
        >>> ax = Figure().add_subplot()
        >>> ax = band([1.0, 2.0, 4.0], found["mu"], ax, label="p = 0.01")
        >>> ax.lines[0].get_label()
        'p = 0.01'
    """
    if side not in ("lower", "upper"):
        raise ValueError(f"side must be 'lower' or 'upper', got {side!r}")
    x, lower, upper = (np.asarray(values, float) for values in (x, bracket.lower, bracket.upper))
    if x.ndim != 1 or x.shape != lower.shape:
        raise ValueError(
            f"x and the bracket must be one-dimensional and equally long, got {x.shape} and"
            f" {lower.shape}"
        )
    style = line_style(number) | marked(len(x), number, lines)
    ax.fill_between(x, lower, upper, color=style["color"], alpha=0.3, linewidth=0)
    ax.plot(x, upper if side == "upper" else lower, label=label, linewidth=1.5, **style)
    grid(ax)
    return ax


def both_sides(dataset: Dataset, quantity: str) -> Bracket:
    """The bracket of a quantity of labelled data, such as those of ``jaxgdp.sweep``.

    Raises:
        ValueError: the data set lacks a side; data of jaxgdp before 0.3 had no upper sides of their
            own.
    """
    for name in (f"{quantity}_lower", f"{quantity}_upper"):
        if name not in dataset:
            raise ValueError(
                f"quantity must be one that the data set has both sides of, got {quantity!r}: there"
                f" is no {name!r}"
            )
    return Bracket(dataset[f"{quantity}_lower"].values, dataset[f"{quantity}_upper"].values)
