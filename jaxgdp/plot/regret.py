"""The regret of reporting μ, over settings of DP-SGD (Gomez 2025, Figure 3)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..numerics.optional import Axes, Dataset, Figure
from .band import both_sides
from .style import DASHES, MARKERS, from_floor, grid, marked, need_matplotlib

REGRET_LIMIT = 0.01
LOWEST = 1e-5  # the axis begins here; what is smaller is not drawn
_MOST_COLUMNS = 3  # panels side by side
_STEP_DASHES = (DASHES[3], DASHES[1], DASHES[0])  # the largest number of steps is solid


def in_order(dataset: Dataset) -> tuple[Dataset, list[Any]]:
    """The data set with σ, p and T as its axes in this order, increasing, and their values."""
    axes = ("noise_multiplier", "sampling_prob", "num_steps")
    ordered = dataset.transpose(*axes).sortby(list(dataset.sizes))
    return ordered, [ordered[name].values for name in axes]


def regret_landscape(
    dataset: Dataset, ax: Axes, *, num_steps: int | None = None, legend: bool = True
) -> Axes:
    """Δ against sampling rate: colour and marker are σ, dashes are T (Gomez 2025, Figure 3).

    Each band runs from the lower to the upper side of the bracket; the line is the upper side, the
    one to report. The axis begins at 1e-5; triangles mark the rates where a line leaves it. Up to
    25 rates have a marker each, since the lines between them are no answers.

    Args:
        dataset: from ``jaxgdp.landscape.landscape`` or ``jaxgdp.sweep`` with μ and regret.
        ax: matplotlib ``Axes`` to draw on.
        num_steps: the only T to draw; default all. Three T of eight σ are easier to tell apart in
            the panels of :func:`regret_panels`.
        legend: whether to name σ and T beside the axes.

    Raises:
        KeyError: the data set does not have ``num_steps``.
    """
    need_matplotlib()
    import matplotlib as mpl
    from matplotlib.lines import Line2D

    chosen = dataset if num_steps is None else dataset.sel(num_steps=[num_steps])
    ordered, (sigmas, rates, steps) = in_order(chosen)
    colours = mpl.colormaps["viridis"](np.linspace(0.0, 0.88, len(sigmas)))
    dashes = [_STEP_DASHES[(k - len(steps)) % len(_STEP_DASHES)] for k in range(len(steps))]
    styles = [
        {"color": colour, "marker": MARKERS[i % len(MARKERS)]} for i, colour in enumerate(colours)
    ]

    sides = both_sides(ordered, "regret")
    ax.set_xscale("log")
    ax.set_yscale("log", nonpositive="mask")
    for i, style in enumerate(styles):
        where = marked(len(rates), i, len(sigmas))
        for k, dash in enumerate(dashes):
            lower, upper = (side[i, :, k] for side in sides)
            shown = np.maximum(lower, 0.1 * LOWEST), np.maximum(upper, 0.1 * LOWEST)
            ax.fill_between(rates, *shown, color=style["color"], alpha=0.3, linewidth=0)
            ax.plot(rates, upper, linewidth=1.2, linestyle=dash, zorder=2.5, **style, **where)
            below = upper < LOWEST  # (marked where they leave the axis)
            if np.any(below):
                around = np.pad(below, 1, constant_values=True)
                at = np.flatnonzero(below & ~(around[:-2] & around[2:]))
                ends = {"marker": "v", "s": 9, "clip_on": False, "zorder": 3}
                ax.scatter(rates[at], [LOWEST] * len(at), color=[style["color"]], **ends)

    values = sides.upper
    ceiling = float(np.max(values, where=np.isfinite(values), initial=REGRET_LIMIT))
    ax.axhline(REGRET_LIMIT, color="black", linestyle="--", linewidth=1.0, zorder=4)
    ax.set_ylim(LOWEST, max(2.0 * ceiling, 10.0 * REGRET_LIMIT))
    if len(rates) > 1:
        ax.set_xlim(rates[0], rates[-1])
    ax.set_xlabel("sampling rate $p$")
    floor = dataset.attrs.get("fpr_floor")
    above = "" if floor is None else f" ({from_floor(floor)})"
    ax.set_ylabel(rf"regret $\Delta$ of reporting $\mu${above}")
    grid(ax)
    if legend:
        by_sigma = [
            Line2D([], [], label=f"{sigma:.3g}", markersize=4, **style)
            for sigma, style in zip(sigmas, styles, strict=True)
        ]
        beside = {"bbox_to_anchor": (1.01, 1.0), "frameon": False, "fontsize": 9}
        first = ax.legend(handles=by_sigma, title=r"noise $\sigma$", loc="upper left", **beside)
        label = rf"$\Delta$ = {REGRET_LIMIT:g}"
        limit = Line2D([], [], color="black", linestyle="--", linewidth=1.0, label=label)
        by_dash = [
            Line2D([], [], color="black", linestyle=dash, linewidth=1.5, label=f"{t:g}")
            for t, dash in zip(steps, dashes, strict=True)
        ]
        if len(steps) > 1:
            ax.add_artist(first)
            beside["bbox_to_anchor"] = (1.01, 0.0)
            ax.legend(handles=[*by_dash, limit], title="steps $T$", loc="lower left", **beside)
        else:
            beside |= {"title": r"noise $\sigma$", "loc": "upper left"}
            ax.legend(handles=[*by_sigma, limit], **beside)
    return ax


def panel_grid(number: int) -> tuple[int, int]:
    """Rows and columns of so many panels, at most three side by side.

    Example:
        >>> panel_grid(2), panel_grid(5)
        ((1, 2), (2, 3))
    """
    columns = min(number, _MOST_COLUMNS)
    return -(-number // columns), columns


def regret_panels(dataset: Dataset, figure: Figure) -> Figure:
    """:func:`regret_landscape`, a panel for each number of steps T.

    Args:
        dataset: from ``jaxgdp.landscape.landscape`` or ``jaxgdp.sweep`` with μ and regret.
        figure: matplotlib ``Figure`` to draw on.
    """
    steps = np.sort(np.asarray(dataset["num_steps"].values))
    rows, columns = panel_grid(len(steps))
    grid_of_axes = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    panels = grid_of_axes.reshape(-1)
    for spare in panels[len(steps) :]:
        spare.remove()
    last = panels[min(columns, len(steps)) - 1]  # (of the first row: the legend is beside it)
    for t, ax in zip(steps, panels, strict=False):
        regret_landscape(dataset, ax, num_steps=t, legend=ax is last)
        ax.set_title(f"$T$ = {t:g} steps", fontsize=10)
        ax.tick_params(labelbottom=True)
        if ax not in grid_of_axes[:, 0]:
            ax.set_ylabel("")
    return figure
