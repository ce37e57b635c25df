"""A report as a figure."""

from __future__ import annotations

from typing import Any

from ..numerics.optional import Axes
from .style import rounded_up
from .tradeoff import tradeoff_curve


def report_tier(report: Any, curve: Any, ax: Axes) -> Axes:
    """A report's trade-off curve with its Gaussian summary, and its tier (Gomez et al. 2025).

    Args:
        report: from ``jaxgdp.report``.
        curve: from ``jaxgdp.tradeoff``, of the same mechanism with the same floor.
        ax: matplotlib ``Axes`` to draw on.

    Raises:
        ValueError: the curve's floor is not the report's.
    """
    if curve.fpr_floor != report.fpr_floor:
        raise ValueError(
            f"curve must have the report's FPR floor {report.fpr_floor:g}, got {curve.fpr_floor:g}"
        )
    tradeoff_curve(curve, ax)
    what = r"$\mu$ is enough" if report.tier == "I" else "the curve is part of the answer"
    regret = rf"$\Delta \leq$ {rounded_up(float(report.regret.upper))}"
    ax.set_title(f"Tier {report.tier}: {what} ({regret})", fontsize=9)
    return ax
