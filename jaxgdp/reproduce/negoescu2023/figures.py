"""Figures of Negoescu 2023: from results, on a matplotlib ``Figure``; nothing is computed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...numerics.optional import Figure
from ...plot import BLACK, COLOURS, line_style
from ..drawing import grid, legend_above

if TYPE_CHECKING:
    from .fits import Fits
    from .simulations import Ratios, Simulated
    from .training import Strategy


def landscape(strategies: list[Strategy], data: str, utility: str, figure: Figure) -> None:
    """Figures 1 and 2: each strategy a point, error bars over all of its seeds."""
    ax = figure.subplots()
    for number, s in enumerate(strategies):
        private = s.epsilon is not None
        x, y = s.star.mean(), s.utility.mean()
        spread = (
            [[x - s.star.min()], [s.star.max() - x]],
            [[y - s.utility.min()], [s.utility.max() - y]],
        )
        mark = line_style(number)["marker"]
        label = f"DP-SGD, {s.name}" if private else f"no DP, {s.name}"
        style = {"fmt": mark, "color": COLOURS[0 if private else 1], "ms": 6, "lw": 1.0}
        ax.errorbar(x, y, spread[1], spread[0], label=label, **style)
    ax.set(xlabel="Epsilon* (parametric)", ylabel=utility, title=data)
    grid(ax)
    legend_above(figure, ax, 4)


def ratios(found: Ratios, figure: Figure) -> None:
    """Figure 3: the first two ratios, with rates known and counted."""
    for ax, values, title in zip(
        figure.subplots(1, 2, sharey=True),
        (found.exact, found.counted),
        ("(a) known", "(b) counted"),
        strict=True,
    ):
        for row, colour, mark, label in zip(
            values, COLOURS, (".", "x"), (r"$(1 - \eta)/t$", r"$(1 - t)/\eta$"), strict=False
        ):
            ax.plot(found.where, row, mark, ms=2, mew=0.5, color=colour, label=label)
        ax.set(xlabel=r"$\frac{1}{2}(TPR + FPR)$", title=title)
        ax.label_outer()
        grid(ax)
    figure.axes[0].set_ylabel("logarithm")
    figure.axes[0].legend(frameon=False, fontsize=9, markerscale=5)


def sizes(panels: list[tuple[int, Simulated]], figure: Figure) -> None:
    """Figures 4 and 5: Epsilon* against the number of losses, a panel for each distance."""
    axes = figure.subplots(1, len(panels), sharey=len(panels) > 1, squeeze=False)[0]
    for (distance, found), ax in zip(panels, axes, strict=True):
        for values, colour, mark, label in (
            (found.empirical, COLOURS[1], "s", "empirical"),
            (found.parametric, COLOURS[0], "o", "parametric"),
        ):
            mean, spread = values.mean(axis=1), values.std(axis=1, ddof=1)
            style = {"fmt": mark + "-", "color": colour, "ms": 4, "lw": 1.0}
            ax.errorbar(found.numbers, mean, spread, label=label, **style)
        for exact, dash, rates in zip(
            found.exact.T, ("--", ":"), (r"$(\delta, 1 - \delta)$", "(0.001, 0.999)"), strict=True
        ):
            label = f"exact, rates in {rates}"
            ax.plot(found.numbers, exact, dash, color=BLACK, lw=1.2, label=label)
        ax.set(xscale="log", xlabel="losses", title=f"d = {distance}")
        grid(ax)
    axes[0].set_ylabel("Epsilon*")
    legend_above(figure, axes[0], 2 if len(panels) == 1 else 4)


def fits(panels: list[Fits], figure: Figure) -> None:
    """Figure 6: p-values against the number of components."""
    for panel, ax in zip(panels, figure.subplots(1, len(panels), sharey=True), strict=True):
        for k, (row, number) in enumerate(zip(panel.pvalues, panel.samples, strict=True)):
            ax.plot(panel.components, row, ms=3, lw=1.0, label=f"{number} samples", **line_style(k))
        ax.axhline(0.05, color=BLACK, lw=0.8, ls=":")
        ax.set(xlabel="components", title=panel.name, ylim=(0.0, 1.0))
        grid(ax)
    figure.axes[0].set_ylabel("p-value")
    legend_above(figure, figure.axes[0], 4)
