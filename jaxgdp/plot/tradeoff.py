"""Trade-off curves: what an attacker's error rates can be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.special import ndtr

from .. import gdp
from ..bracket import Bracket
from ..deprecation import renamed_arguments
from ..numerics.optional import Axes
from ..numerics.shapes import Array
from .outline import below, outline
from .style import (
    BLACK,
    COLOURS,
    DOTTED,
    axes_or_current,
    from_floor,
    grid,
    line_style,
    marked,
    rounded_up,
)

FPR_LABEL, FNR_LABEL = "FPR (non-members flagged)", "FNR (members missed)"
_DENSE = ndtr(np.linspace(-9.0, 9.0, 721))  # so dense that no corner of the polygon shows


@renamed_arguments(alpha="fpr", beta="fnr")
def tradeoff_band(
    fpr: Array,
    fnr: Bracket,
    ax: Axes,
    *,
    colour: str = COLOURS[0],
    label: str | None = None,
    linestyle: Any = "-",
    linewidth: float = 1.5,
) -> Axes:
    """A certified trade-off curve at given rates: a band, and the lower side as a line.

    Straight lines between the points would lie above a convex curve, on its unsafe side; the line
    drawn lies below it between them (:func:`jaxgdp.plot.below`).

    Args:
        fpr: FPRs, increasing.
        fnr: bracket of the FNRs there, such as ``curve.beta(fpr)``.
        ax: matplotlib ``Axes`` to draw on.
        colour, label, linestyle, linewidth: of the line.
    """
    lower = below(fpr, fnr.lower)
    _fill(lower, (np.asarray(fpr), np.asarray(fnr.upper)), ax, colour)
    ax.plot(*lower, color=colour, label=label, linestyle=linestyle, linewidth=linewidth)
    return ax


def _fill(lower: tuple[Array, Array], upper: tuple[Array, Array], ax: Axes, colour: str) -> None:
    """The area between two polygons with corners of their own."""
    corners = (np.concatenate([a, b[::-1]]) for a, b in zip(lower, upper, strict=True))
    ax.fill(*corners, color=colour, alpha=0.3, linewidth=0)


@renamed_arguments(alpha="fpr", beta="fnr")
def gaussian_curve(
    fpr: Array, fnr: Array, ax: Axes, *, colour: str = BLACK, label: str | None = None
) -> Axes:
    """A Gaussian trade-off curve as a dotted line on top of what is there.

    Args:
        fpr: FPRs, increasing.
        fnr: f_μ there, such as ``jaxgdp.gdp.beta(fpr=fpr, mu=mu)``.
        ax: matplotlib ``Axes`` to draw on.
        colour, label: of the line.
    """
    ax.plot(fpr, fnr, color=colour, label=label, linestyle=DOTTED, linewidth=1.5, zorder=3)
    return ax


def square_axes(ax: Axes) -> Axes:
    """Axes of a trade-off plot: both error rates from 0 to 1, and the line of perfect privacy.

    Args:
        ax: matplotlib ``Axes``.
    """
    ax.plot([0.0, 1.0], [1.0, 0.0], color="0.75", linewidth=0.8, zorder=0)
    ax.set(xlim=(0.0, 1.0), ylim=(0.0, 1.0), aspect="equal")
    ax.set(xlabel=FPR_LABEL, ylabel=FNR_LABEL)
    grid(ax)
    return ax


def tradeoff_curve(
    curve: Any,
    ax: Axes | None = None,
    *,
    gaussian: bool = True,
    label: str | None = None,
    number: int = 0,
    lines: int = 1,
) -> Axes:
    """A certified trade-off curve, and its Gaussian summary f_μ with the upper μ at its FPR floor.

    The line is the certified lower side, the one to report: a polygon of tangents δ(ε)
    (:func:`jaxgdp.plot.outline`), nowhere above the curve. The band reaches to the upper side.

    Args:
        curve: from ``jaxgdp.tradeoff``, of one mechanism.
        ax: matplotlib ``Axes``, or None for the current one of pyplot.
        gaussian: whether to draw f_μ.
        label: of the line.
        number, lines: which of how many lines, for its style.

    Raises:
        ValueError: the curve is one of several mechanisms.

    Example:
        >>> from matplotlib.figure import Figure
        >>> import jaxgdp
        >>> ax = tradeoff_curve(jaxgdp.tradeoff(jaxgdp.Laplace(scale=1.0)), Figure().add_subplot())
        >>> ax.get_xlabel(), len(ax.lines)
        ('FPR (non-members flagged)', 3)
    """
    sides = outline(curve)
    ax = axes_or_current(ax)
    style = line_style(number)
    _fill(*sides, ax, style["color"])
    if lines == 1:
        del style["marker"]
    else:
        style |= marked(len(sides.lower[0]), number, lines)
    ax.plot(*sides.lower, label=label or "certified", linewidth=1.8, **style)
    if gaussian:
        mu = float(curve.mu().upper)
        if np.isfinite(mu):
            name = rf"$\mu$-GDP, $\mu$ = {rounded_up(mu)} ({from_floor(curve.fpr_floor)})"
            gaussian_curve(_DENSE, gdp.beta(fpr=_DENSE, mu=mu), ax, label=name)
    square_axes(ax)
    ax.legend(frameon=False, fontsize=8, loc="upper right")
    return ax


def compare_curves(curves: Mapping[str, Any], ax: Axes) -> Axes:
    """Certified trade-off curves of several mechanisms: lower sides, each with its own style.

    Args:
        curves: mapping from a name to a curve from ``jaxgdp.tradeoff``, each of one mechanism.
        ax: matplotlib ``Axes`` to draw on.

    Raises:
        ValueError: a curve is one of several mechanisms, or none is given.
    """
    if not curves:
        raise ValueError("curves must name at least one curve, got none")
    for number, (name, curve) in enumerate(curves.items()):
        tradeoff_curve(
            curve, ax, gaussian=False, label=name, number=number, lines=max(2, len(curves))
        )
    return ax
