"""Batch samplers side by side."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..arguments import greek
from ..numerics.optional import Axes, Dataset, Figure
from ..quantities.registry import named
from .band import both_sides
from .style import BLACK, COLOURS, DASHES, FEW, MARKERS, at_argument, grid, marked, symbol

# colour, dashes, marker and its size: open markers show where two lines are one
_SAMPLER_STYLES = {
    "deterministic": (BLACK, DASHES[3], "D", 8),
    "shuffled": (COLOURS[1], DASHES[1], "s", 4),
    "poisson": (COLOURS[0], DASHES[0], "o", 8),
    "random_allocation": (COLOURS[2], DASHES[2], "^", 4),
}
_AXES = {
    "noise_multiplier": r"noise multiplier $\sigma$",
    "batch_size": "batch size (records)",
    "num_epochs": "epochs",
}


def sampler_bands(
    dataset: Dataset, ax: Axes, quantity: str = "epsilon", *, legend: bool = True
) -> Axes:
    """One quantity of every sampler of ``jaxgdp.compare_samplers``, as bands.

    Along the axis of the data set that has several values (the first of noise multiplier, batch
    size and number of epochs that has); a bar for each sampler where none has. Where nothing is
    known from above, the lower side is drawn, with a mark that points up.

    Args:
        dataset: from ``jaxgdp.compare_samplers``; of axes that are not drawn the first value is.
        ax: matplotlib ``Axes`` to draw on.
        quantity: one that the data set has.
        legend: whether to name the samplers within the axes.

    Raises:
        ValueError: the data set does not have the quantity.
    """
    both_sides(dataset, quantity)
    along = next((axis for axis in _AXES if dataset.sizes[axis] > 1), None)
    others = {axis: 0 for axis in _AXES if axis != along}
    names = dataset["sampler"].values.tolist()
    for place, name in enumerate(names):
        spare = COLOURS[3 + place % 3], DASHES[4], MARKERS[4 + place % 6], 4
        colour, dash, marker, size = _SAMPLER_STYLES.get(name, spare)
        one = dataset.isel(others).sel(sampler=name)
        lower, upper = both_sides(one, quantity)
        open_above = not np.all(np.isfinite(upper))
        if along is None and open_above:
            ax.hlines([float(lower)], place - 0.3, place + 0.3, color=colour, linewidth=1.5)
            ax.plot([place], [float(lower)], marker="^", color=colour, linestyle="none")
            continue
        if along is None:
            ax.bar(place, upper - lower, bottom=lower, width=0.6, color=colour, alpha=0.35)
            sides = [float(lower), float(upper)]
            ax.hlines(sides, place - 0.3, place + 0.3, color=colour, linewidth=1.5)
            continue
        at = one[along].values
        order = np.argsort(at)
        told, upper = one[quantity].values, np.where(np.isfinite(upper), upper, lower)
        told = np.where(np.isfinite(told), told, lower)
        few = len(at) <= FEW  # (between these nothing is known: no lines, no area)
        if few:
            ax.vlines(at, lower, upper, color=colour, alpha=0.5, linewidth=4)
        else:
            sides = lower[order], upper[order]
            ax.fill_between(at[order], *sides, color=colour, alpha=0.3, linewidth=0)
        style = {"color": colour, "linestyle": "none" if few else dash, "linewidth": 1.5}
        style |= {"marker": marker, "markerfacecolor": "none"}
        style |= marked(len(at), place, len(names)) | {"markersize": size}
        label = name.replace("_", " ") + (", at least" if open_above else "")
        ax.plot(at[order], told[order], label=label, **style)
    if along is None:
        ax.set_xticks(range(len(names)), [name.replace("_", "\n") for name in names], fontsize=8)
        ax.set_xlabel("sampler")
    else:
        ax.set_xlabel(_AXES[along])
        if legend:
            ax.legend(frameon=False, fontsize=8)
    of = named(quantity)
    at = dataset.attrs["fpr_floor"] if of.own_argument is None else dataset[quantity].attrs["at"]
    word = f"{of.name} " if greek(of.name) == of.name else ""
    label = word + symbol(of) + (f" ({of.unit})" if of.unit == "nats" else "") + at_argument(of, at)
    ax.set_ylabel(label)
    ax.set_yscale("log")
    grid(ax)
    return ax


def sampler_panels(
    dataset: Dataset, figure: Figure, quantities: Sequence[str] = ("epsilon", "mu", "advantage")
) -> Figure:
    """:func:`sampler_bands`, a panel for each quantity, the samplers named above them.

    Args:
        dataset: from ``jaxgdp.compare_samplers``.
        figure: matplotlib ``Figure`` to draw on.
        quantities: names that the data set has.

    Raises:
        ValueError: the data set does not have a quantity.
    """
    panels = np.atleast_1d(figure.subplots(1, len(quantities)))
    for quantity, ax in zip(quantities, panels, strict=True):
        sampler_bands(dataset, ax, quantity, legend=False)
    handles, labels = panels[0].get_legend_handles_labels()
    if handles:
        above = {"frameon": False, "fontsize": 9, "loc": "outside upper center"}
        figure.legend(handles, labels, ncols=len(labels), **above)
    return figure
