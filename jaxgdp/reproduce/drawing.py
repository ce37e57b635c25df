"""Pieces that the figures of several papers share."""

from __future__ import annotations

from ..numerics.optional import Axes, Figure

DASHED = (0, (4, 1.6))


def grid(ax: Axes) -> None:
    """A faint grid."""
    ax.grid(True, lw=0.4, alpha=0.5)


def legend_above(figure: Figure, ax: Axes, columns: int) -> None:
    """The legend of some axes, above all panels."""
    handles, labels = ax.get_legend_handles_labels()
    figure.legend(
        handles, labels, frameon=False, fontsize=8, loc="outside upper center", ncols=columns
    )
