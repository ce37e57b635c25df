"""The wealth of sequential audits over time."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..numerics.optional import Axes
from .style import grid, line_style

_LOWEST = -7.0  # natural logarithm of the smallest wealth that is drawn


def wealth_over_time(
    log_wealth: Mapping[str, np.ndarray], ax: Axes, confidence: float = 0.95
) -> Axes:
    """The wealth after every pair of runs: a line that reaches the level refutes its claim.

    Args:
        log_wealth: by name, the logarithm after every pair, as from
            :meth:`jaxgdp.audit.Sequential.path`.
        ax: matplotlib ``Axes``.
        confidence: of the audits: the level is 1/(1 − confidence).
    """
    level = 1.0 / (1.0 - confidence)
    most, least = level, 0.5
    for number, (name, values) in enumerate(log_wealth.items()):
        wealth = np.exp(np.clip(np.asarray(values, float), _LOWEST, 80.0))
        most = max(most, float(wealth.max(initial=1.0)))
        least = min(least, 0.5 * float(wealth.min(initial=1.0)))
        style = line_style(number) | {"marker": "", "linewidth": 1.4}
        ax.plot(np.arange(len(wealth) + 1), np.append(1.0, wealth), label=name, **style)
    ax.axhline(
        level, color="0.3", linewidth=1.0, linestyle=":", label=f"refuted from {level:.3g} on"
    )
    ax.set_yscale("log")
    ax.set_ylim(least, min(most * 3.0, level * 1e4))
    ax.set(xlabel="pairs of runs", ylabel="wealth: evidence against the claim")
    grid(ax)
    ax.legend(frameon=False, fontsize=8, loc="best")
    return ax
