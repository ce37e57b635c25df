"""The regret of reporting μ over a grid of settings, as colours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..numerics.optional import Dataset
from ..numerics.shapes import Array
from .band import both_sides
from .regret import LOWEST, REGRET_LIMIT, in_order
from .style import from_floor, need_matplotlib, plain_log


def regret_heat_map(dataset: Dataset, axes: Any) -> Any:
    """Δ over noise and sampling rate as colours, a panel for each T, with the contour Δ = 0.01.

    Colours and the solid contour are of the upper side, the one to report; the dashed contour is of
    the lower side, and is visible only where the brackets are wide. Values below 1e-5 have the
    colour of 1e-5. In a figure that follows the mouse (a notebook with ipympl), the status line
    contains the setting and its bracket, and so does a note beside the mouse where mplcursors is
    installed (extra ``interactive``).

    Args:
        dataset: from ``jaxgdp.landscape.landscape`` or ``jaxgdp.sweep`` with the regret.
        axes: as many matplotlib ``Axes`` as the data set has numbers of steps.

    Raises:
        ValueError: there are more or fewer axes than numbers of steps.
    """
    need_matplotlib()
    from matplotlib.colors import LogNorm

    ordered, (sigmas, rates, steps) = in_order(dataset)
    panels = list(np.atleast_1d(axes))
    if len(panels) != len(steps):
        raise ValueError(
            f"axes must be one for each of the {len(steps)} numbers of steps, got {len(panels)}"
        )
    sides = both_sides(ordered, "regret")
    lower, upper = (np.maximum(side, LOWEST) for side in sides)
    norm = LogNorm(LOWEST, max(float(np.max(upper)), 10.0 * REGRET_LIMIT))
    drawn, settings, told = None, np.meshgrid(rates, sigmas), {}
    for k, ax in enumerate(panels):
        style = {"norm": norm, "cmap": "viridis", "rasterized": True}
        drawn = ax.pcolormesh(_edges(rates), _edges(sigmas), upper[:, :, k], **style)
        for side, dashes in ((upper, "solid"), (lower, "dashed")):
            straddles = np.min(side[:, :, k]) < REGRET_LIMIT < np.max(side[:, :, k])
            if min(len(sigmas), len(rates)) > 1 and straddles:
                lines = {"colors": "white", "linestyles": dashes, "linewidths": 1.2}
                ax.contour(rates, sigmas, side[:, :, k], levels=[REGRET_LIMIT], **lines)
        ax.set(xscale="log", yscale="log", title=f"$T$ = {steps[k]:g}", xlabel="sampling rate $p$")
        ax.format_coord = _setting(rates, sigmas, steps[k], *(side[:, :, k] for side in sides))
        # (what a cursor finds: every setting, however far from the mouse)
        places = (a.ravel() for a in settings)
        (points,) = ax.plot(*places, ls="none", marker=",", alpha=0.0, pickradius=np.inf)
        told[points] = ax.format_coord
    _follow(told)
    for ax in panels:
        plain_log(ax.yaxis)
        ax.set_ylabel(r"noise multiplier $\sigma$")
    floor = dataset.attrs.get("fpr_floor")
    label = rf"regret $\Delta$ (contour: {REGRET_LIMIT:g})"
    label += "" if floor is None else f", {from_floor(floor)}"
    panels[0].figure.colorbar(drawn, ax=panels, label=label)
    return axes


def _edges(values: Array) -> Array:
    """Edges of the cells around points on a logarithmic axis."""
    logs = np.log(values)
    if len(logs) == 1:
        return np.exp(logs[0] + np.array([-0.5, 0.5]))
    middles = 0.5 * (logs[1:] + logs[:-1])
    ends = [2.0 * logs[0] - middles[0]], [2.0 * logs[-1] - middles[-1]]
    return np.exp(np.concatenate([ends[0], middles, ends[1]]))


def _follow(told: dict[Any, Callable[[float, float], str]]) -> None:
    """A note beside the mouse, with the text of the nearest point, if mplcursors is there."""
    try:
        import mplcursors
    except ImportError:
        return
    cursor = mplcursors.cursor(list(told), hover=True)
    cursor.connect(
        "add", lambda found: found.annotation.set_text(told[found.artist](*found.target))
    )


def _setting(
    rates: Array, sigmas: Array, steps: float, lower: Array, upper: Array
) -> Callable[[float, float], str]:
    """The status line at a place: the nearest setting and its bracket."""

    def told(x: float, y: float) -> str:
        j, i = (
            int(np.argmin(np.abs(np.log(values / at)))) for values, at in ((rates, x), (sigmas, y))
        )
        return (
            f"σ = {sigmas[i]:.4g}, p = {rates[j]:.4g}, T = {steps:g}: Δ in [{lower[i, j]:.4g},"
            f" {upper[i, j]:.4g}]"
        )

    return told
