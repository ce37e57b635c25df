"""Figures of Liu 2022: from results, on a matplotlib ``Figure``; nothing is computed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...numerics.optional import Axes, Figure
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
from ..drawing import DASHED, grid

if TYPE_CHECKING:
    from ...bracket import Bracket
    from ...numerics.shapes import Array

_DOTTED = (0, (1, 1.6))


def _style(k: int, points: int, lines: int) -> dict[str, Any]:
    """Colour and markers of a line whose dashes mean something else."""
    return {name: line_style(k)[name] for name in ("color", "marker")} | marked(points, k, lines)


def _labels(ax: Axes, x: str, y: str) -> None:
    ax.set(xlabel=x, ylabel=y)
    grid(ax)


def profiles(
    epsilon: Array,
    drawn: list[tuple[str, Array, Array]],
    reference: list[tuple[float, Array]],
    figure: Figure,
) -> None:
    """Figure 1: profiles as inverted (dashed) and refined; right in the log, with Gaussian ones.

    ``drawn`` has (name, inverted, refined) of each, ``reference`` (μ, its profile).
    """
    left, right = figure.subplots(1, 2)
    for k, (name, naive, refined) in enumerate(drawn):
        style = _style(k, len(epsilon), len(drawn))
        for ax in (left, right):
            ax.plot(epsilon, naive, ls=DASHED, lw=1.2, **style)
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


def transformations(
    epsilon: Array,
    drawn: list[tuple[str, Array]],
    stairs: list[tuple[float, Array, Array, Array]],
    figure: Figure,
) -> None:
    """Figure 2: the transformations, and both staircases around one of them.

    ``drawn`` has (name, μ_A) of each, ``stairs`` (width, edges, lower steps, upper steps).
    """
    left, right = figure.subplots(1, 2)
    for k, (name, values) in enumerate(drawn):
        left.plot(epsilon, values, lw=1.8, label=name, **_style(k, len(epsilon), len(drawn)))
    for (width, edges, low, high), colour in zip(stairs, COLOURS, strict=False):
        right.stairs(high, edges, color=colour, lw=1.2, label=f"width {width:g}", baseline=None)
        right.stairs(low, edges, color=colour, lw=1.2, ls=DASHED, baseline=None)
    name, values = drawn[1]
    inside = epsilon <= stairs[0][1][-1]
    right.plot(epsilon[inside], values[inside], color=BLACK, lw=1.4, label=name)
    for ax in (left, right):
        _labels(ax, r"$\varepsilon$", r"$\mu_A(\varepsilon)$")
        ax.legend(frameon=False, fontsize=8)


def composition(fpr: Array, beta: Bracket, curves: list[tuple[str, Array]], figure: Figure) -> None:
    """Figure 3: the exact composition and Gaussian curves by each route, as (name, FNRs)."""
    ax = figure.subplots()
    tradeoff_band(fpr, beta, ax, label="optimal")
    for (name, values), colour, dash in zip(curves[:2], COLOURS[1:], DASHES[1:], strict=False):
        ax.plot(fpr, values, color=colour, ls=dash, lw=1.4, label=name)
    gaussian_curve(fpr, curves[2][1], ax, label=curves[2][0])
    square_axes(ax)
    ax.legend(frameon=False, fontsize=8)


def laplace(drawn: list[tuple[float, Array, Array, float]], figure: Figure) -> None:
    """Figure E.1: transformations of Laplace mechanisms, and the μ of pure DP at the same ε.

    ``drawn`` has (ε of the mechanism, ε, μ_A, bound) of each.
    """
    ax = figure.subplots()
    for k, (loss, epsilon, values, bound) in enumerate(drawn):
        style = _style(k, len(epsilon), len(drawn))
        ax.plot(epsilon, values, lw=1.8, label=rf"$\Delta/b = {loss:g}$", **style)
        flat = style | {"markevery": None, "ls": _DOTTED, "lw": 1.2}
        ax.plot(epsilon[[0, -1]], np.full(2, bound), **flat)
    _labels(ax, r"$\varepsilon$", r"$\mu_A(\varepsilon)$")
    ax.legend(frameon=False, fontsize=8)


def sampled(epsilon: Array, drawn: list[tuple[float, Bracket]], figure: Figure) -> None:
    """Figure E.2: transformations of the sampled Laplace mechanism, by sampling probability."""
    ax = figure.subplots()
    for k, (rate, values) in enumerate(drawn):
        style = _style(k, len(epsilon), len(drawn))
        ax.plot(epsilon, values.upper, lw=1.8, label=f"p = {rate:g}", **style)
    _labels(ax, r"$\varepsilon$", r"$\mu_A(\varepsilon)$")
    ax.legend(frameon=False, fontsize=8)
