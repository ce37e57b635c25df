"""Figures of Chua 2024: each function takes results and a ``Figure``, and computes nothing."""

from __future__ import annotations

import numpy as np

from ...plot import BLACK, COLOURS, DASHES, marked

_DASHED = (0, (4, 1.6))


def compared(found, axis: str, value: str, title: str, least: float | None, figure) -> None:
    """The three samplers side by side; brackets are bands, and what is known from both sides is a
    line.

    Args:
        found: x, deterministic, poisson, shuffled, renyi; what is None is not drawn.
        axis, value, title: texts. least: lower end of the value axis, or None.
        figure: matplotlib ``Figure`` to draw on.
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
        ax.plot(
            found.x,
            side,
            color=colour,
            ls=dash,
            lw=1.5,
            label=label,
            marker=mark,
            **marked(len(found.x)),
        )
    if found.renyi is not None:
        ax.plot(
            found.x,
            np.maximum(found.renyi, floor),
            color=COLOURS[0],
            ls=_DASHED,
            lw=1.2,
            label="Poisson, Rényi DP",
        )
    ax.set(xlabel=axis, ylabel=value, title=title, yscale="log")
    if least is not None:
        ax.set_ylim(least, None)
    ax.grid(True, lw=0.4, alpha=0.5)
    figure.legend(
        *ax.get_legend_handles_labels(),
        frameon=False,
        fontsize=8,
        loc="outside upper center",
        ncols=2,
    )
