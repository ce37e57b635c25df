"""The parts of a composition, side by side."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..bracket import Bracket
from ..numerics.optional import Axes
from .style import BLACK, COLOURS, from_floor, grid, rounded_up


def parts(brackets: Mapping[str, Bracket], total: Bracket, fpr_floor: float, ax: Axes) -> Axes:
    """μ of every part of a release as bars, and of the whole; μ² adds up for Gaussian parts.

    A bar ends at the upper side of its bracket, the one to report; the black tick marks the lower
    side.

    Args:
        brackets: mapping from a part's name to the bracket of its μ.
        total: bracket of the μ of all of them.
        fpr_floor: of all μ.
        ax: matplotlib ``Axes`` to draw on.
    """
    names = [*brackets, "all"]
    found = [*brackets.values(), total]
    at = np.arange(len(names))[::-1]
    for place, bracket, hatch in zip(at, found, [""] * len(brackets) + ["//"], strict=True):
        upper, lower = float(bracket.upper), float(bracket.lower)
        ax.barh(
            place, upper, color=COLOURS[4], edgecolor=BLACK, linewidth=0.6, height=0.7, hatch=hatch
        )
        ax.vlines(lower, place - 0.35, place + 0.35, color=BLACK, linewidth=1.0)
        ax.text(upper, place, f" {rounded_up(upper)}", va="center", fontsize=8)
    ax.set_yticks(at, names)
    ax.set(xlim=(0.0, 1.2 * float(total.upper)), ylim=(-0.6, len(names) - 0.4))
    ax.set(xlabel=rf"$\mu$ ({from_floor(fpr_floor)})", ylabel="part of the release")
    grid(ax)
    return ax
