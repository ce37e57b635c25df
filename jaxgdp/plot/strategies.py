"""Strategies of correlated noise at the same accepted risk."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..numerics.optional import Axes
from .style import COLOURS, grid


def strategies(found: Any, ax: Axes) -> Axes:
    """Error of prefix sums of every strategy, by how records get into the steps.

    Args:
        found: from ``jaxgdp.compare_strategies``.
        ax: matplotlib ``Axes`` to draw on.
    """
    names = list(dict.fromkeys(row.strategy for row in found.rows))
    ways = list(dict.fromkeys(row.sampling for row in found.rows))
    height = 0.8 / len(ways)
    hatches = ("", "///", "...")
    for number, way in enumerate(ways):
        some = [row for row in found.rows if row.sampling == way]
        place = np.array([names.index(row.strategy) for row in some]) + height * number
        ax.barh(
            place,
            [row.error for row in some],
            height=0.9 * height,
            color=COLOURS[number],
            hatch=hatches[number % len(hatches)],
            edgecolor="white",
            linewidth=0.0,
            label=way,
        )
        for at, row in zip(place, some, strict=True):
            ax.annotate(
                f" {row.error:.3g} (noise {row.noise_multiplier:.3g})",
                (row.error, at),
                va="center",
                fontsize=7,
            )
    ax.set_yticks(np.arange(len(names)) + 0.5 * height * (len(ways) - 1), names)
    ax.invert_yaxis()
    ax.set_xlim(0.0, 1.45 * max(row.error for row in found.rows))
    ax.set(xlabel="root mean squared error of prefix sums", ylabel="strategy")
    ax.set_title(f"{found.goal}, $n$ = {found.num_steps}, {found.num_epochs} epochs", fontsize=10)
    grid(ax)
    ax.legend(frameon=False, fontsize=8, loc="lower right")
    return ax
