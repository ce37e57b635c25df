"""Figures of Kulynych 2024: each function takes results and a ``Figure``, and computes nothing."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...bracket import Bracket
from ...plot import BLACK, COLOURS, gaussian_curve, square_axes, tradeoff_band

STANDARD, DIRECT = COLOURS[0], COLOURS[1]
_GREY = "0.88"
_DASHED = (0, (4, 1.6))


def _grid(ax) -> None:
    ax.grid(True, lw=0.4, alpha=0.5)


def regions(panels, figure) -> None:
    """Figure 2: what (ε, δ) leaves to an attacker, and what the Gaussian mechanism does.

    Args:
        panels: results with ``epsilon``, ``alpha``, ``generic`` and ``exact``.
        figure: matplotlib ``Figure`` to draw on.
    """
    for panel, ax in zip(panels, figure.subplots(1, len(panels), sharey=True), strict=True):
        ax.fill_between(panel.alpha, panel.generic, 1.0 - panel.alpha, color=_GREY, lw=0)
        ax.plot(
            panel.alpha,
            panel.generic,
            color=STANDARD,
            lw=1.8,
            label=r"any $(\varepsilon, \delta)$-DP mechanism",
        )
        gaussian_curve(panel.alpha, panel.exact, ax, label="Gaussian mechanism")
        for curve, colour in ((panel.generic, STANDARD), (panel.exact, BLACK)):
            best = np.argmax(1.0 - panel.alpha - curve)
            ax.plot(panel.alpha[best], curve[best], "o", color=colour, ms=4)
        square_axes(ax)
        ax.set_title(rf"$\varepsilon = {panel.epsilon:g}$, $\delta = 10^{{-5}}$", fontsize=10)
        ax.label_outer()
    ax.legend(frameon=False, fontsize=8, loc="upper right")


def advantage_panels(pair, cost, advantage: float, at: float, figure) -> None:
    """Figure 3: noise against advantage, and FNR of the generic mechanism by both calibrations.

    Args:
        pair: noise by both calibrations, with ``risk["advantage"]``. cost: with ``alpha``,
            ``generic_standard``, ``generic_direct``.
        advantage: of the second panel. at: FPR of its arrow.
        figure: matplotlib ``Figure`` to draw on.
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
    right.plot(
        cost.alpha, cost.generic_standard, color=STANDARD, lw=1.8, label="standard calibration"
    )
    right.plot(
        cost.alpha,
        cost.generic_direct,
        color=DIRECT,
        lw=1.8,
        ls=_DASHED,
        label="advantage calibration",
    )
    ends = [np.interp(at, cost.alpha, c) for c in (cost.generic_direct, cost.generic_standard)]
    right.annotate("", (at, ends[0]), (at, ends[1]), arrowprops={"arrowstyle": "<->", "lw": 1.0})
    note = {"xytext": (0.3, 0.42), "fontsize": 9, "arrowprops": {"arrowstyle": "-", "lw": 0.6}}
    right.annotate(rf"$\Delta\beta = {ends[1] - ends[0]:.2f}$", (at, 0.5 * sum(ends)), **note)
    square_axes(right)
    right.set_title(rf"(b) generic mechanism, $\eta = {advantage:g}$", fontsize=12)
    right.legend(frameon=False, fontsize=9)
    _grid(left)


def _noise(pair, x, part, ax) -> None:
    for bracket, colour, dash, label in (
        (pair.standard, STANDARD, "-", "standard calibration"),
        (pair.direct, DIRECT, _DASHED, "direct calibration"),
    ):
        ax.fill_between(
            x[part], bracket.lower[part], bracket.upper[part], color=colour, alpha=0.35, lw=0
        )
        ax.plot(
            x[part],
            bracket.upper[part],
            color=colour,
            ls=dash,
            marker="o",
            ms=4,
            lw=1.6,
            label=label,
        )


def rate_panels(pair, figure) -> None:
    """Figure 4: noise against TPR, one panel for each FPR.

    Args:
        pair: noise by both calibrations, with ``risk["fpr"]`` and ``risk["tpr"]``.
        figure: matplotlib ``Figure`` to draw on.
    """
    rates = np.unique(pair.risk["fpr"])
    for fpr, ax in zip(rates, figure.subplots(1, len(rates), sharey=True), strict=True):
        _noise(pair, pair.risk["tpr"], pair.risk["fpr"] == fpr, ax)
        ax.set_title(rf"FPR $\alpha = {fpr:g}$", fontsize=10)
        ax.set(
            xlim=(0.05, 0.55), xlabel=r"attack TPR $1 - \beta$", ylabel=r"noise multiplier $\sigma$"
        )
        ax.label_outer()
        _grid(ax)
    ax.legend(frameon=False, fontsize=8)


class Touching(NamedTuple):
    """What Figure 5 shows: two curves, the ε of each at δ, the line that touches the second one,
    and the target.
    """

    alpha: np.ndarray
    beta: Bracket
    noise_multiplier: np.ndarray
    epsilon: Bracket
    needed: float
    tangent: Any
    delta: float
    target: tuple[float, float]


def touching_lines(found: Touching, figure) -> None:
    """Figure 5: the curves of both calibrations, and the (ε, δ) lines that reach the target.

    Args:
        found: what to draw. figure: matplotlib ``Figure`` to draw on.
    """
    ax = figure.subplots()
    for i, (name, colour, dash) in enumerate(
        (("standard", STANDARD, "-"), ("direct", DIRECT, "--"))
    ):
        label = (
            rf"{name}: $\sigma$ = {found.noise_multiplier[i]:.3f}, $\varepsilon(10^{{-5}}) \leq$"
            rf" {found.epsilon.upper[i]:.2f}"
        )
        tradeoff_band(
            found.alpha,
            Bracket(found.beta.lower[i], found.beta.upper[i]),
            ax,
            colour=colour,
            label=label,
            linestyle=dash,
        )
    alpha = np.linspace(0.0, 1.0, 201)
    line = 1.0 - found.delta - np.exp(found.needed) * alpha
    ax.plot(
        alpha,
        line,
        color=STANDARD,
        ls=":",
        lw=1.2,
        label=rf"$\varepsilon$ = {found.needed:.2f}, $\delta = 10^{{-5}}$",
    )
    epsilon, delta = found.tangent.epsilon.midpoint, found.tangent.delta.midpoint
    label = rf"$\varepsilon'$ = {epsilon:.2f}, $\delta'$ = {delta:.2f}"
    ax.plot(
        alpha, 1.0 - delta - np.exp(epsilon) * alpha, color=DIRECT, ls="-.", lw=1.2, label=label
    )
    ax.plot(*found.target, "s", color=BLACK, ms=5, zorder=5, label="target")
    square_axes(ax)
    ax.set(xlim=(0.0, 0.5))
    ax.set_aspect("auto")
    figure.legend(
        *ax.get_legend_handles_labels(),
        frameon=False,
        fontsize=8,
        loc="outside upper center",
        ncols=2,
    )


def cost_panels(cost, advantage: float, figure) -> None:
    """Figure 6: FNR of the Gaussian mechanism by both calibrations, and what direct calibration
    costs, beside the generic mechanism.

    Args:
        cost: FNRs by both calibrations of both mechanisms. advantage: calibrated to.
        figure: matplotlib ``Figure`` to draw on.
    """
    left, right = figure.subplots(1, 2)
    left.plot(
        cost.alpha, cost.gaussian_standard, color=STANDARD, lw=1.8, label="standard calibration"
    )
    left.plot(
        cost.alpha,
        cost.gaussian_direct,
        color=DIRECT,
        lw=1.8,
        ls=_DASHED,
        label="advantage calibration",
    )
    square_axes(left)
    left.set_title(rf"Gaussian mechanism, $\eta = {advantage:g}$", fontsize=11)
    left.legend(frameon=False, fontsize=9)
    right.plot(cost.alpha, cost.generic, color=BLACK, ls=_DASHED, lw=1.4, label="generic mechanism")
    right.plot(cost.alpha, cost.gaussian, color=COLOURS[2], lw=1.8, label="Gaussian mechanism")
    right.set(
        xlim=(0.0, 1.0), ylim=(0.0, None), xlabel="FPR", ylabel="increase in attack sensitivity"
    )
    right.legend(frameon=False, fontsize=9)
    _grid(right)


def risk_against_accuracy(panels, fprs, figure) -> None:
    """Figure 1: risk by both readings against published accuracy.

    Args:
        panels: (title, accuracies in per cent, risk with ``standard`` and ``direct``), one row
            each. fprs: one column each.
        figure: matplotlib ``Figure`` to draw on.
    """
    axes = figure.subplots(len(panels), len(fprs), squeeze=False)
    for (title, accuracy, risk), row in zip(panels, axes, strict=True):
        for k, (fpr, ax) in enumerate(zip(fprs, row, strict=True)):
            ax.plot(
                accuracy,
                risk.standard[:, k],
                color=STANDARD,
                marker="o",
                ms=4,
                label="standard calibration",
            )
            ax.plot(
                accuracy,
                risk.direct.upper[:, k],
                color=DIRECT,
                marker="o",
                ms=4,
                ls=_DASHED,
                label="direct calibration",
            )
            ax.fill_between(
                accuracy,
                risk.direct.lower[:, k],
                risk.direct.upper[:, k],
                color=DIRECT,
                alpha=0.35,
                lw=0,
            )
            ax.set_title(rf"{title}, $\alpha = {fpr:g}$", fontsize=9)
            ax.set(xlabel="accuracy, per cent", ylabel="bound on TPR", ylim=(0.0, None))
            _grid(ax)
    axes[0, 0].legend(frameon=False, fontsize=8)


def digits(fprs, risk, accuracy, width: float, figure) -> None:
    """Figure 1 on the digits: risk by both readings against accuracy over seeds.

    Args:
        fprs: one panel each. risk: with ``standard`` and ``direct``. accuracy: (mean, standard
            error) in per cent of each noise multiplier.
        width: of the error bars, in standard errors. figure: matplotlib ``Figure`` to draw on.
    """
    mean, error = (np.array(column) for column in zip(*accuracy, strict=True))
    for k, (fpr, ax) in enumerate(zip(fprs, figure.subplots(1, len(fprs)), strict=True)):
        for values, colour, dash, label in (
            (risk.standard[:, k], STANDARD, "-", "standard calibration"),
            (risk.direct.upper[:, k], DIRECT, _DASHED, "direct calibration"),
        ):
            style = {"color": colour, "ls": dash, "marker": "o", "ms": 4, "lw": 1.4}
            ax.errorbar(mean, values, xerr=width * error, label=label, **style)
        ax.set_title(rf"digits, $\alpha = {fpr:g}$", fontsize=10)
        ax.set(xlabel="accuracy, per cent", ylabel="bound on TPR", ylim=(0.0, 1.02))
        _grid(ax)
    ax.legend(frameon=False, fontsize=8, loc="upper left")
