"""Figures of Chua 2024: from results, on a matplotlib ``Figure``; nothing is computed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...numerics.optional import Figure
from ...plot import BLACK, COLOURS, DASHES, marked
from ..drawing import DASHED, grid, legend_above

if TYPE_CHECKING:
    from .samplers import Compared


def compared(
    found: Compared, axis: str, value: str, title: str, least: float | None, figure: Figure
) -> None:
    """The three samplers side by side: brackets as bands, lines where both sides are known.

    Args:
        found: x, deterministic, poisson, shuffled, renyi; what is None is not drawn.
        axis, value, title: texts.
        least: lower end of the value axis, or None.
        figure: to draw on.
    """
    ax = figure.subplots()
    floor = 1e-300 if least is None else least
    for name, bracket, colour, dash, mark in (
        ("shuffled", found.shuffled, COLOURS[1], DASHES[2], "s"),
        ("Poisson", found.poisson, COLOURS[0], DASHES[0], "o"),
        ("fixed order", found.deterministic, BLACK, DASHES[3], "D"),
    ):
        if bracket is None:
            continue
        lower, upper = np.maximum(bracket.lower, floor), np.maximum(bracket.upper, floor)
        ax.fill_between(found.x, lower, upper, color=colour, alpha=0.3, lw=0)
        side, label = (lower, f"{name}, lower side") if name == "shuffled" else (upper, name)
        style = {"color": colour, "ls": dash, "lw": 1.5, "marker": mark} | marked(len(found.x))
        ax.plot(found.x, side, label=label, **style)
    if found.renyi is not None:
        style = {"color": COLOURS[0], "ls": DASHED, "lw": 1.2}
        ax.plot(found.x, np.maximum(found.renyi, floor), label="Poisson, Rényi DP", **style)
    ax.set(xlabel=axis, ylabel=value, title=title, yscale="log")
    if least is not None:
        ax.set_ylim(least, None)
    grid(ax)
    legend_above(figure, ax, 2)
