"""Privacy profiles δ(ε), and read the other way round, ε against δ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .. import gdp
from ..bracket import Bracket
from ..numerics.optional import Axes
from ..numerics.shapes import Array
from .band import band
from .style import BLACK, DOTTED, from_floor, grid, rounded_up

_LEAST = 1e-20


def privacy_profile(curve: Any, epsilon: Array, ax: Axes, *, gaussian: bool = True) -> Axes:
    """The privacy profile δ(ε) of a curve on a logarithmic axis, and that of its Gaussian summary.

    The Gaussian line is δ_μ with the upper μ at the curve's FPR floor. It covers the profile only
    for as large an ε as the floor reaches.

    Args:
        curve: from ``jaxgdp.tradeoff``, of one mechanism.
        epsilon: ε ≥ 0 in nats, increasing.
        ax: matplotlib ``Axes`` to draw on.
        gaussian: whether to draw δ_μ.
    """
    delta = curve.delta(epsilon)
    band(epsilon, delta, ax, label=r"certified $\delta(\varepsilon)$")
    if gaussian:
        mu = float(curve.mu().upper)
        name = rf"$\mu$-GDP, $\mu$ = {rounded_up(mu)}" + f"\n({from_floor(curve.fpr_floor)})"
        style = {"color": BLACK, "linestyle": DOTTED, "linewidth": 1.5}
        ax.plot(epsilon, gdp.delta(epsilon=epsilon, mu=mu), label=name, **style)
    least = float(np.min(delta.lower, where=np.asarray(delta.lower) > 0.0, initial=1.0))
    ax.set(yscale="log", ylim=(max(0.3 * least, _LEAST), 1.5), xlim=(epsilon[0], epsilon[-1]))
    ax.set(xlabel=r"$\varepsilon$ (nats)", ylabel=r"$\delta(\varepsilon)$ (probability)")
    ax.legend(frameon=False, fontsize=8)
    return ax


def epsilon_against_delta(curves: Mapping[str, Any], delta: Array, ax: Axes) -> Axes:
    """The smallest ε of each δ, for one curve or several.

    Args:
        curves: mapping from a name to a curve from ``jaxgdp.tradeoff``, each of one mechanism.
        delta: in (0, 1), increasing.
        ax: matplotlib ``Axes`` to draw on.
    """
    for number, (name, curve) in enumerate(curves.items()):
        band(delta, curve.epsilon(delta), ax, label=name, number=number, lines=len(curves))
    ax.set(xscale="log", xlim=(delta[0], delta[-1]), ylim=(0.0, None))
    ax.set(xlabel=r"$\delta$ (probability)", ylabel=r"$\varepsilon$ (nats)")
    ax.legend(frameon=False, fontsize=8)
    return ax


def gdp_transformation(epsilon: Array, transformation: Bracket, mu: float, ax: Axes) -> Axes:
    """The GDP transformation μ_A(ε) of a profile, and the μ that covers it (Liu et al. 2022).

    Args:
        epsilon: ε, increasing.
        transformation: bracket there.
        mu: the μ.
        ax: matplotlib ``Axes`` to draw on.
    """
    shown = np.isfinite(transformation.upper)
    lower, upper = transformation.lower[shown], transformation.upper[shown]
    ax.fill_between(epsilon[shown], lower, upper, color="#0072B2", alpha=0.3)
    ax.plot(epsilon[shown], upper, color="#0072B2", linewidth=1.6)
    ax.axhline(mu, color=BLACK, linestyle=DOTTED, linewidth=1.4)
    ax.set(xlabel=r"$\varepsilon$ (nats)", ylim=(0.0, None))
    ax.set_ylabel(r"GDP transformation $\mu_A(\varepsilon)$")
    grid(ax)
    return ax
