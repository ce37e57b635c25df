"""Figures of Kulynych 2024: from results, on a ``Figure``; nothing is computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...bracket import Bracket
from ...numerics.optional import Axes, Figure
from ...numerics.shapes import Array
from ...plot import BLACK, COLOURS, gaussian_curve, square_axes, tradeoff_band
from ..drawing import DASHED, grid, legend_above

if TYPE_CHECKING:
    from .illustrations import Cost, Region
    from .noise import Pair, Tangent
    from .training import Risk

STANDARD, DIRECT = COLOURS[0], COLOURS[1]


def _both(
    ax: Axes, x: Array, standard: Array, direct: Array, name: str = "direct", **style: Any
) -> None:
    """A line for either calibration."""
    for values, colour, dash, label in (
        (standard, STANDARD, "-", "standard"),
        (direct, DIRECT, DASHED, name),
    ):
        ax.plot(x, values, color=colour, ls=dash, label=f"{label} calibration", **style)


def regions(panels: list[Region], figure: Figure) -> None:
    """Figure 2: the curve of any (ε, δ)-DP mechanism, and that of the Gaussian mechanism."""
    axes = figure.subplots(1, len(panels), sharey=True)
    for panel, ax in zip(panels, axes, strict=True):
        ax.fill_between(panel.alpha, panel.generic, 1.0 - panel.alpha, color="0.88", lw=0)
        label = r"any $(\varepsilon, \delta)$-DP mechanism"
        ax.plot(panel.alpha, panel.generic, color=STANDARD, lw=1.8, label=label)
        gaussian_curve(panel.alpha, panel.exact, ax, label="Gaussian mechanism")
        for curve, colour in ((panel.generic, STANDARD), (panel.exact, BLACK)):
            best = np.argmax(1.0 - panel.alpha - curve)
            ax.plot(panel.alpha[best], curve[best], "o", color=colour, ms=4)
        square_axes(ax)
        ax.set_title(rf"$\varepsilon = {panel.epsilon:g}$, $\delta = 10^{{-5}}$", fontsize=10)
        ax.label_outer()
    axes[-1].legend(frameon=False, fontsize=8, loc="upper right")


def advantage_panels(pair: Pair, cost: Cost, advantage: float, at: float, figure: Figure) -> None:
    """Figure 3: noise against advantage, and FNR of the generic mechanism by both calibrations.

    Args:
        pair: noise by both calibrations to ``risk["advantage"]``.
        cost: FNRs by both calibrations.
        advantage: of the second panel.
        at: FPR of its arrow.
        figure: to draw on.
    """
    left, right = figure.subplots(1, 2)
    _noise(pair, pair.risk["advantage"], slice(None), left)
    left.set_yscale("log")
    left.set(
        xlabel=r"attack advantage $\eta$",
        ylabel=r"noise multiplier $\sigma$",
        title="(a) DP-SGD, p = 0.001, T = 10,000",
    )
    left.legend(frameon=False, fontsize=9)
    curves = cost.generic_standard, cost.generic_direct
    _both(right, cost.alpha, *curves, name="advantage", lw=1.8)
    ends = [np.interp(at, cost.alpha, c) for c in curves[::-1]]
    right.annotate("", (at, ends[0]), (at, ends[1]), arrowprops={"arrowstyle": "<->", "lw": 1.0})
    note = {"xytext": (0.3, 0.42), "fontsize": 9, "arrowprops": {"arrowstyle": "-", "lw": 0.6}}
    right.annotate(rf"$\Delta\beta = {ends[1] - ends[0]:.2f}$", (at, 0.5 * sum(ends)), **note)
    square_axes(right)
    right.set_title(rf"(b) generic mechanism, $\eta = {advantage:g}$", fontsize=12)
    right.legend(frameon=False, fontsize=9)
    grid(left)


def _noise(pair: Pair, x: Array, part: Any, ax: Axes) -> None:
    for bracket, colour, dash, label in (
        (pair.standard, STANDARD, "-", "standard calibration"),
        (pair.direct, DIRECT, DASHED, "direct calibration"),
    ):
        lower, upper = bracket.lower[part], bracket.upper[part]
        ax.fill_between(x[part], lower, upper, color=colour, alpha=0.35, lw=0)
        style = {"color": colour, "ls": dash, "marker": "o", "ms": 4, "lw": 1.6}
        ax.plot(x[part], upper, label=label, **style)


def rate_panels(pair: Pair, figure: Figure) -> None:
    """Figure 4: noise against ``risk["tpr"]``, one panel for each ``risk["fpr"]``."""
    rates = np.unique(pair.risk["fpr"])
    axes = figure.subplots(1, len(rates), sharey=True)
    for fpr, ax in zip(rates, axes, strict=True):
        _noise(pair, pair.risk["tpr"], pair.risk["fpr"] == fpr, ax)
        ax.set_title(rf"FPR $\alpha = {fpr:g}$", fontsize=10)
        ax.set(
            xlim=(0.05, 0.55), xlabel=r"attack TPR $1 - \beta$", ylabel=r"noise multiplier $\sigma$"
        )
        ax.label_outer()
        grid(ax)
    axes[-1].legend(frameon=False, fontsize=8)


class Touching(NamedTuple):
    """What Figure 5 shows: two curves with their ε at δ, a touching line, and the target."""

    alpha: np.ndarray
    beta: Bracket
    noise_multiplier: np.ndarray
    epsilon: Bracket
    needed: float
    tangent: Tangent
    delta: float
    target: tuple[float, float]


def touching_lines(found: Touching, figure: Figure) -> None:
    """Figure 5: the curves of both calibrations, and the (ε, δ) lines that reach the target."""
    ax = figure.subplots()
    for i, (name, colour, dash) in enumerate(
        (("standard", STANDARD, "-"), ("direct", DIRECT, "--"))
    ):
        label = (
            rf"{name}: $\sigma$ = {found.noise_multiplier[i]:.3f}, $\varepsilon(10^{{-5}}) \leq$"
            rf" {found.epsilon.upper[i]:.2f}"
        )
        beta = Bracket(found.beta.lower[i], found.beta.upper[i])
        tradeoff_band(found.alpha, beta, ax, colour=colour, label=label, linestyle=dash)
    alpha = np.linspace(0.0, 1.0, 201)
    touched = found.tangent.epsilon.midpoint, found.tangent.delta.midpoint
    for (epsilon, delta), colour, dash, label in (
        (
            (found.needed, found.delta),
            STANDARD,
            ":",
            rf"$\varepsilon$ = {found.needed:.2f}, $\delta = 10^{{-5}}$",
        ),
        (
            touched,
            DIRECT,
            "-.",
            rf"$\varepsilon'$ = {touched[0]:.2f}, $\delta'$ = {touched[1]:.2f}",
        ),
    ):
        line = 1.0 - delta - np.exp(epsilon) * alpha
        ax.plot(alpha, line, color=colour, ls=dash, lw=1.2, label=label)
    ax.plot(*found.target, "s", color=BLACK, ms=5, zorder=5, label="target")
    square_axes(ax)
    ax.set(xlim=(0.0, 0.5))
    ax.set_aspect("auto")
    legend_above(figure, ax, 2)


def cost_panels(cost: Cost, advantage: float, figure: Figure) -> None:
    """Figure 6: FNR of the Gaussian by both calibrations, and the cost of direct calibration."""
    left, right = figure.subplots(1, 2)
    curves = cost.gaussian_standard, cost.gaussian_direct
    _both(left, cost.alpha, *curves, name="advantage", lw=1.8)
    square_axes(left)
    left.set_title(rf"Gaussian mechanism, $\eta = {advantage:g}$", fontsize=11)
    left.legend(frameon=False, fontsize=9)
    right.plot(cost.alpha, cost.generic, color=BLACK, ls=DASHED, lw=1.4, label="generic mechanism")
    right.plot(cost.alpha, cost.gaussian, color=COLOURS[2], lw=1.8, label="Gaussian mechanism")
    right.set(
        xlim=(0.0, 1.0), ylim=(0.0, None), xlabel="FPR", ylabel="increase in attack sensitivity"
    )
    right.legend(frameon=False, fontsize=9)
    grid(right)


def risk_against_accuracy(
    panels: Sequence[tuple[str, Array, Risk]], fprs: tuple[float, ...], figure: Figure
) -> None:
    """Figure 1: risk by both readings against published accuracy.

    Args:
        panels: (title, accuracies in per cent, risk), one row each.
        fprs: one column each.
        figure: to draw on.
    """
    axes = figure.subplots(len(panels), len(fprs), squeeze=False)
    for (title, accuracy, risk), row in zip(panels, axes, strict=True):
        for k, (fpr, ax) in enumerate(zip(fprs, row, strict=True)):
            low, high = risk.direct.lower[:, k], risk.direct.upper[:, k]
            _both(ax, accuracy, risk.standard[:, k], high, marker="o", ms=4)
            ax.fill_between(accuracy, low, high, color=DIRECT, alpha=0.35, lw=0)
            ax.set_title(rf"{title}, $\alpha = {fpr:g}$", fontsize=9)
            ax.set(xlabel="accuracy, per cent", ylabel="bound on TPR", ylim=(0.0, None))
            grid(ax)
    axes[0, 0].legend(frameon=False, fontsize=8)


def digits(
    fprs: tuple[float, ...],
    risk: Risk,
    accuracy: list[tuple[float, float]],
    width: float,
    figure: Figure,
) -> None:
    """Figure 1 on the digits: risk by both readings against accuracy over seeds.

    Args:
        fprs: one panel each.
        risk: of the models.
        accuracy: (mean, standard error) in per cent of each noise multiplier.
        width: of the error bars, in standard errors.
        figure: to draw on.
    """
    mean, error = (np.array(column) for column in zip(*accuracy, strict=True))
    axes = figure.subplots(1, len(fprs))
    for k, (fpr, ax) in enumerate(zip(fprs, axes, strict=True)):
        for values, colour, dash, label in (
            (risk.standard[:, k], STANDARD, "-", "standard calibration"),
            (risk.direct.upper[:, k], DIRECT, DASHED, "direct calibration"),
        ):
            style = {"color": colour, "ls": dash, "marker": "o", "ms": 4, "lw": 1.4}
            ax.errorbar(mean, values, xerr=width * error, label=label, **style)
        ax.set_title(rf"digits, $\alpha = {fpr:g}$", fontsize=10)
        ax.set(xlabel="accuracy, per cent", ylabel="bound on TPR", ylim=(0.0, 1.02))
        grid(ax)
    axes[-1].legend(frameon=False, fontsize=8, loc="upper left")
