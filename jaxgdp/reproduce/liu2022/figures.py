"""Figures of Liu 2022: each function takes results and a ``Figure``, and computes nothing."""

from __future__ import annotations

import numpy as np

from ...plot import (
    BLACK,
    COLOURS,
    DASHES,
    gaussian_curve,
    line_style,
    marked,
    square_axes,
    tradeoff_band,
)

_DASHED = (0, (4, 1.6))
_DOTTED = (0, (1, 1.6))


def _style(k: int, points: int, lines: int) -> dict:
    """Colour and markers of a line whose dashes mean something else."""
    return {name: line_style(k)[name] for name in ("color", "marker")} | marked(points, k, lines)


def _labels(ax, x, y) -> None:
    ax.set(xlabel=x, ylabel=y)
    ax.grid(True, lw=0.4, alpha=0.5)


def profiles(epsilon, drawn, reference, figure) -> None:
    """Figure 1: profiles as inverted (dashed) and refined, left as they are, right in the log with
    those of Gaussian mechanisms.

    Args:
        epsilon: ε. drawn: (name, inverted, refined) each. reference: (μ, its profile) each. figure:
            matplotlib ``Figure``.
    """
    left, right = figure.subplots(1, 2)
    for k, (name, naive, refined) in enumerate(drawn):
        style = _style(k, len(epsilon), len(drawn))
        for ax in (left, right):
            ax.plot(epsilon, naive, ls=_DASHED, lw=1.2, **style)
            ax.plot(epsilon, refined, lw=1.8, label=name, **style)
    gaussian = [
        right.plot(
            epsilon, values, color=BLACK, ls=dash, lw=1.0, label=rf"Gaussian, $\mu = {mu:g}$"
        )[0]
        for (mu, values), dash in zip(reference, DASHES[1:], strict=False)
    ]
    right.set(yscale="log", ylim=(1e-12, 2.0))
    for ax in (left, right):
        _labels(ax, r"$\varepsilon$", r"$\delta(\varepsilon)$")
    left.legend(frameon=False, fontsize=8)
    figure.legend(
        handles=gaussian, frameon=False, fontsize=8, loc="outside upper right", ncols=len(gaussian)
    )


def transformations(epsilon, drawn, stairs, figure) -> None:
    """Figure 2: the transformations, and both staircases around one of them.

    Args:
        epsilon: ε. drawn: (name, μ_A) each. stairs: (width, grid, lower steps, upper steps) each.
            figure: matplotlib ``Figure``.
    """
    left, right = figure.subplots(1, 2)
    for k, (name, values) in enumerate(drawn):
        left.plot(epsilon, values, lw=1.8, label=name, **_style(k, len(epsilon), len(drawn)))
    for (width, grid, low, high), colour in zip(stairs, COLOURS, strict=False):
        right.stairs(high, grid, color=colour, lw=1.2, label=f"width {width:g}", baseline=None)
        right.stairs(low, grid, color=colour, lw=1.2, ls=_DASHED, baseline=None)
    name, values = drawn[1]
    inside = epsilon <= stairs[0][1][-1]
    right.plot(epsilon[inside], values[inside], color=BLACK, lw=1.4, label=name)
    for ax in (left, right):
        _labels(ax, r"$\varepsilon$", r"$\mu_A(\varepsilon)$")
        ax.legend(frameon=False, fontsize=8)


def composition(alpha, beta, curves, figure) -> None:
    """Figure 3: the exact composition and Gaussian curves by each route.

    Args:
        alpha: FPRs. beta: bracket of the FNRs. curves: (name, FNRs) each. figure: matplotlib
            ``Figure``.
    """
    ax = figure.subplots()
    tradeoff_band(alpha, beta, ax, label="optimal")
    for (name, values), colour, dash in zip(curves[:2], COLOURS[1:], DASHES[1:], strict=False):
        ax.plot(alpha, values, color=colour, ls=dash, lw=1.4, label=name)
    gaussian_curve(alpha, curves[2][1], ax, label=curves[2][0])
    square_axes(ax)
    ax.legend(frameon=False, fontsize=8)


def laplace(drawn, figure) -> None:
    """Figure E.1: transformations of Laplace mechanisms, and the μ of pure DP at the same ε.

    Args:
        drawn: (ε of the mechanism, ε, μ_A, bound) each. figure: matplotlib ``Figure``.
    """
    ax = figure.subplots()
    for k, (loss, epsilon, values, bound) in enumerate(drawn):
        style = _style(k, len(epsilon), len(drawn))
        ax.plot(epsilon, values, lw=1.8, label=rf"$\Delta/b = {loss:g}$", **style)
        ax.plot(
            epsilon[[0, -1]], np.full(2, bound), ls=_DOTTED, lw=1.2, **(style | {"markevery": None})
        )
    _labels(ax, r"$\varepsilon$", r"$\mu_A(\varepsilon)$")
    ax.legend(frameon=False, fontsize=8)


def sampled(epsilon, drawn, figure) -> None:
    """Figure E.2: transformations of the sampled Laplace mechanism.

    Args:
        epsilon: ε. drawn: (sampling probability, bracket) each. figure: matplotlib ``Figure``.
    """
    ax = figure.subplots()
    for k, (rate, values) in enumerate(drawn):
        ax.plot(
            epsilon,
            values.upper,
            lw=1.8,
            label=f"p = {rate:g}",
            **_style(k, len(epsilon), len(drawn)),
        )
    _labels(ax, r"$\varepsilon$", r"$\mu_A(\varepsilon)$")
    ax.legend(frameon=False, fontsize=8)
