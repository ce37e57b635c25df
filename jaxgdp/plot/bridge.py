"""The bridge from a privacy profile to Gaussian DP."""

from __future__ import annotations

import numpy as np

from ..bracket import Bracket
from ..numerics.optional import Figure
from ..numerics.shapes import Array
from .profile import gdp_transformation
from .style import BLACK, COLOURS, DOTTED, from_floor, grid, rounded_up
from .tradeoff import gaussian_curve, square_axes


def bridge_panels(
    epsilon: Array,
    delta: tuple[Array, Array],
    transformation: Bracket,
    tradeoff: tuple[Array, Array, Array],
    mu: float,
    fpr_floor: float,
    figure: Figure,
) -> Figure:
    """A privacy profile, its GDP transformation and trade-off curve, each with that of one μ.

    Args:
        epsilon: ε, increasing.
        delta: (profile, that of μ) there.
        transformation: bracket of the GDP transformation there.
        tradeoff: (FPRs, FNRs of the curve, of μ).
        mu: the μ.
        fpr_floor: from which FPR on it holds; 0 for everywhere.
        figure: matplotlib ``Figure`` to draw on.
    """
    left, middle, right = figure.subplots(1, 3)
    name = rf"$\mu$ = {rounded_up(mu)}"
    left.plot(epsilon, delta[0], color=COLOURS[0], linewidth=1.6, label="profile")
    left.plot(epsilon, delta[1], color=BLACK, linestyle=DOTTED, linewidth=1.4, label=name)
    least = float(np.min(delta[0], where=delta[0] > 0.0, initial=1.0))
    left.set(yscale="log", ylim=(max(0.3 * least, 1e-20), 1.5))
    left.set(xlabel=r"$\varepsilon$ (nats)", ylabel=r"$\delta(\varepsilon)$ (probability)")
    left.legend(frameon=False, fontsize=8)
    grid(left)
    gdp_transformation(epsilon, transformation, mu, middle)
    right.plot(tradeoff[0], tradeoff[1], color=COLOURS[0], linewidth=1.6, label="trade-off curve")
    gaussian_curve(tradeoff[0], tradeoff[2], right, label=name)
    square_axes(right)
    right.set_title(f"$\\mu$ holds at {from_floor(fpr_floor)}", fontsize=9)
    return figure
