"""Figures of Negoescu 2023: each function takes results and a ``Figure``, and computes nothing."""

from __future__ import annotations

from ...plot import BLACK, COLOURS, line_style


def _grid(ax) -> None:
    ax.grid(True, lw=0.4, alpha=0.5)


def landscape(strategies, data: str, utility: str, figure) -> None:
    """Figures 1 and 2: each strategy a point, error bars from the least to the largest of its
    seeds.

    Args:
        strategies: with ``name``, ``epsilon``, ``star`` and ``utility``. data: name of the data
            set. utility: name of the axis.
        figure: matplotlib ``Figure`` to draw on.
    """
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
        ax.errorbar(
            x,
            y,
            spread[1],
            spread[0],
            fmt=mark,
            color=COLOURS[0 if private else 1],
            ms=6,
            lw=1.0,
            label=label,
        )
    ax.set(xlabel="Epsilon* (parametric)", ylabel=utility, title=data)
    _grid(ax)
    figure.legend(
        *ax.get_legend_handles_labels(),
        frameon=False,
        fontsize=8,
        loc="outside upper center",
        ncols=4,
    )


def ratios(found, figure) -> None:
    """Figure 3: the first two ratios, with rates known and counted.

    Args:
        found: with ``where``, ``exact`` and ``counted``. figure: matplotlib ``Figure`` to draw on.
    """
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
        _grid(ax)
    figure.axes[0].set_ylabel("logarithm")
    figure.axes[0].legend(frameon=False, fontsize=9, markerscale=5)


def sizes(panels, figure) -> None:
    """Figures 4 and 5: Epsilon* against the number of losses, a panel for each distance.

    Args:
        panels: (distance, result with ``numbers``, ``exact``, ``empirical`` and ``parametric``).
            figure: matplotlib ``Figure`` to draw on.
    """
    axes = figure.subplots(1, len(panels), sharey=len(panels) > 1, squeeze=False)[0]
    for (distance, found), ax in zip(panels, axes, strict=True):
        for values, colour, mark, label in (
            (found.empirical, COLOURS[1], "s", "empirical"),
            (found.parametric, COLOURS[0], "o", "parametric"),
        ):
            spread = values.std(axis=1, ddof=1)
            ax.errorbar(
                found.numbers,
                values.mean(axis=1),
                spread,
                fmt=mark + "-",
                color=colour,
                ms=4,
                lw=1.0,
                label=label,
            )
        ax.plot(
            found.numbers,
            found.exact[:, 0],
            "--",
            color=BLACK,
            lw=1.2,
            label=r"exact, rates in $(\delta, 1 - \delta)$",
        )
        ax.plot(
            found.numbers,
            found.exact[:, 1],
            ":",
            color=BLACK,
            lw=1.2,
            label="exact, rates in (0.001, 0.999)",
        )
        ax.set(xscale="log", xlabel="losses", title=f"d = {distance}")
        _grid(ax)
    axes[0].set_ylabel("Epsilon*")
    columns = 2 if len(panels) == 1 else 4
    figure.legend(
        *axes[0].get_legend_handles_labels(),
        frameon=False,
        fontsize=8,
        loc="outside upper center",
        ncols=columns,
    )


def fits(panels, figure) -> None:
    """Figure 6: p-values against the number of components.

    Args:
        panels: with ``name``, ``components``, ``samples`` and ``pvalues``. figure: matplotlib
            ``Figure`` to draw on.
    """
    for panel, ax in zip(panels, figure.subplots(1, len(panels), sharey=True), strict=True):
        for k, (row, number) in enumerate(zip(panel.pvalues, panel.samples, strict=True)):
            ax.plot(panel.components, row, ms=3, lw=1.0, label=f"{number} samples", **line_style(k))
        ax.axhline(0.05, color=BLACK, lw=0.8, ls=":")
        ax.set(xlabel="components", title=panel.name, ylim=(0.0, 1.0))
        _grid(ax)
    figure.axes[0].set_ylabel("p-value")
    figure.legend(
        *figure.axes[0].get_legend_handles_labels(),
        frameon=False,
        fontsize=8,
        loc="outside upper center",
        ncols=4,
    )
