"""Figures of Gomez 2025: from results, on a matplotlib ``Figure``; nothing is computed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...numerics.optional import Figure
from ...plot import BLACK, COLOURS, DASHES, from_floor, gaussian_curve, square_axes, tradeoff_band
from ...report import rounded_outward
from ..drawing import grid, legend_above

if TYPE_CHECKING:
    from .illustrations import Panel, Profile
    from .training import Line


def _up(value: float, digits: int) -> str:
    """An upper side as mathematical text, rounded up."""
    mantissa, times, exponent = rounded_outward(float(value), up=True, digits=digits).partition("e")
    return rf"{mantissa} \times 10^{{{exponent}}}" if times else mantissa


def _pair(epsilon: float, delta: float) -> str:
    mantissa, exponent = f"{delta:.0e}".split("e")
    times = "" if mantissa == "1" else rf"{mantissa}\times "
    return rf"$\varepsilon = {epsilon:.3g}$, $\delta = {times}10^{{{int(exponent)}}}$"


def profile_and_attacks(profile: Profile, figure: Figure) -> None:
    """Figure 1: the profile with single (ε, δ) on it, and attack bounds of these and of all."""
    left, right = figure.subplots(1, 2)
    left.plot(profile.epsilon, profile.delta, color=BLACK, lw=1.8)
    left.set_yscale("log")
    left.set(
        xlim=(0.0, 12.0),
        ylim=(1e-10, 1.0),
        xlabel=r"$\varepsilon$",
        ylabel=r"$\delta(\varepsilon)$",
    )
    (calibrated, delta), *others = profile.pairs
    right.plot(
        profile.fpr, profile.tpr, color=BLACK, lw=2.4, label="all pairs: the curve itself", zorder=4
    )
    right.plot(
        profile.fpr, profile.pair_tprs[0], color=COLOURS[0], lw=1.6, label=_pair(calibrated, delta)
    )
    for i, ((epsilon, d), tpr) in enumerate(zip(others, profile.pair_tprs[1:], strict=True)):
        left.plot(epsilon, d, marker="s", color=COLOURS[1], ms=5, zorder=3)
        label = "other pairs, one at a time" if i == 0 else None
        right.plot(profile.fpr, tpr, color=COLOURS[1], lw=1.1, ls=DASHES[1], label=label)
    left.plot(calibrated, delta, marker="o", color=COLOURS[0], ms=9, zorder=4)
    left.annotate(
        _pair(calibrated, delta),
        (calibrated, delta),
        xytext=(-10, -16),
        textcoords="offset points",
        ha="right",
        fontsize=9,
    )
    right.set_xscale("log")
    right.set(xlim=(1e-6, 1.0), ylim=(0.0, 1.02), xlabel="FPR", ylabel="bound on TPR")
    legend_above(figure, right, 3)
    for ax in (left, right):
        grid(ax)


def definitions(panel: Panel, figure: Figure) -> None:
    """Figure 2: one mechanism's exact curve, and bounds on it by other definitions."""
    ax = figure.subplots()
    tradeoff_band(
        panel.alpha, panel.beta, ax, colour=COLOURS[0], label="exact (certified)", linewidth=2.6
    )
    floor = from_floor(panel.fpr_floor)
    label = rf"$\mu$-GDP, $\mu \leq {_up(panel.mu.upper, 5)}$ ({floor})"
    gaussian_curve(panel.alpha, panel.gaussian, ax, label=label)
    for (name, values), colour, dash in zip(panel.others, COLOURS[1:], DASHES[1:], strict=False):
        ax.plot(panel.alpha, values, color=colour, ls=dash, lw=1.6, label=name)
    square_axes(ax)
    ax.legend(frameon=False, fontsize=9)


def three_panels(panels: list[Panel], figure: Figure) -> None:
    """Figure 4: three mechanisms' exact curves beside their μ-GDP bounds."""
    for panel, ax in zip(panels, figure.subplots(1, len(panels), sharey=True), strict=True):
        tradeoff_band(
            panel.alpha, panel.beta, ax, colour=COLOURS[0], label="exact (certified)", linewidth=2.0
        )
        gaussian_curve(
            panel.alpha, panel.gaussian, ax, label=rf"$\mu$-GDP, {from_floor(panel.fpr_floor)}"
        )
        square_axes(ax)
        ax.set_title(panel.title, fontsize=10)
        ax.text(0.96, 0.66, rf"$\mu \leq {_up(panel.mu.upper, 5)}$", ha="right", fontsize=9)
        ax.text(0.96, 0.57, rf"$\Delta \leq {_up(panel.regret.upper, 3)}$", ha="right", fontsize=9)
        ax.legend(frameon=False, fontsize=8, loc="upper right")
        ticks, labels = (0.0, 0.5, 1.0), ("0", "0.5", "1")
        ax.set(xticks=ticks, yticks=ticks, xticklabels=labels, yticklabels=labels)
        ax.label_outer()


def curves_and_gaps(lines: list[Line], figure: Figure) -> None:
    """Figures 5 and 6: trade-off curves with their μ-GDP bounds, and the differences, in log."""
    left, right = figure.subplots(1, 2)
    for line, colour, dash in zip(lines, COLOURS, DASHES, strict=False):
        gap = line.gap
        label = rf"{line.label}, $\sigma$ = {line.noise_multiplier:g}"
        tradeoff_band(
            gap.alpha, gap.beta, left, colour=colour, label=label, linestyle=dash, linewidth=2.2
        )
        gaussian_curve(gap.alpha, gap.gaussian, left)
        low, high = gap.beta.lower - gap.gaussian, gap.beta.upper - gap.gaussian
        right.fill_between(gap.alpha, low, high, color=colour, alpha=0.35, lw=0)
        right.plot(gap.alpha, high, color=colour, ls=dash, lw=1.5)
    nowhere, label = np.empty(0), rf"$\mu$-GDP of each, {from_floor(lines[0].fpr_floor)}"
    gaussian_curve(nowhere, nowhere, left, label=label)
    square_axes(left)
    legend_above(figure, left, 3)
    right.set_xscale("log")
    right.set_xlim(1e-6, 1.0)
    right.set_ylim(0.0, 1.08 * right.get_ylim()[1])
    right.set(xlabel="FPR", ylabel=r"FNR, exact minus $\mu$-GDP")
    right.ticklabel_format(axis="y", style="sci", scilimits=(-3, -3))
    grid(right)
