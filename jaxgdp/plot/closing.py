"""Brackets that narrow as more accuracy is requested."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..bracket import Bracket
from ..numerics.optional import Axes
from .style import grid, line_style


def closing_brackets(
    rtol: Sequence[float], found: Mapping[str, Sequence[Bracket]], ax: Axes
) -> Axes:
    """Brackets of one number at finer and finer ``rtol``, about the middle of the finest one.

    Args:
        rtol: requested relative widths, decreasing.
        found: mapping from a name to the brackets at each of them.
        ax: matplotlib ``Axes`` to draw on.

    Raises:
        ValueError: a bracket reaches outside the one before it, which none of the library's may.
    """
    places = np.arange(len(rtol), dtype=float)
    for number, (name, brackets) in enumerate(found.items()):
        lower, upper = np.array([(float(low), float(high)) for low, high in brackets]).T
        if np.any(np.diff(lower) < 0.0) or np.any(np.diff(upper) > 0.0):
            raise ValueError(f"brackets of {name} must each lie within the one before")
        middle = 0.5 * (lower[-1] + upper[-1])
        low, high = 1e6 * (lower / middle - 1.0), 1e6 * (upper / middle - 1.0)
        style = line_style(number)
        at = places + 0.25 * (number - 0.5 * (len(found) - 1))
        ax.vlines(at, low, high, color=style["color"], linewidth=1.6)
        ends = style | {"linestyle": "none", "markersize": 5}
        ax.plot(np.concatenate([at, at]), np.concatenate([low, high]), label=name, **ends)
    ax.axhline(0.0, color="0.6", linewidth=0.8, zorder=0)
    ax.set_xticks(places, [f"{each:g}" for each in rtol])
    ax.set_yscale("symlog", linthresh=1.0)
    ax.margins(y=0.1)
    ax.set(
        xlabel="relative width asked for (rtol)",
        ylabel="both sides, off the finest\nbracket's middle (parts per million)",
    )
    grid(ax)
    ax.legend(frameon=False, fontsize=8)
    return ax
