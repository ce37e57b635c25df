"""An audit against a claim."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import ndtr

from ..numerics.optional import Axes
from .style import BLACK, COLOURS, grid
from .tradeoff import tradeoff_band


def audit_verdict(verdict: Any, ax: Axes) -> Axes:
    """An audit against a claim: the claim's curve as a band, counted error rates with their boxes.

    A box runs from the counted rates to their upper limits; its far corner is what is sure. A
    corner below the band refutes the claim. Both axes are symmetric-logarithmic, so that small
    rates are visible.

    Args:
        verdict: from ``jaxgdp.audit.verdict`` or ``jaxgdp.audit.one_run_verdict`` (of one run, the
            claim only).
        ax: matplotlib ``Axes``.
    """
    from matplotlib.patches import Rectangle

    alpha, beta = verdict.curve
    tradeoff_band(alpha, beta, ax, label=f"claimed: {verdict.claim}")
    points = verdict.points
    if points is not None:
        colour = COLOURS[1] if verdict.refuted else COLOURS[2]
        rows = zip(
            points.empirical_fpr,
            points.empirical_fnr,
            points.fpr_limit,
            points.fnr_limit,
            strict=True,
        )
        for a, b, up, high in rows:
            ax.add_patch(
                Rectangle(
                    (a, b),
                    up - a,
                    high - b,
                    facecolor=colour,
                    alpha=0.18,
                    edgecolor="none",
                    zorder=1,
                )
            )
        ax.plot(
            points.empirical_fpr, points.empirical_fnr, ".", color=colour, ms=4, label="counted"
        )
        ax.plot(
            points.fpr_limit,
            points.fnr_limit,
            "+",
            color=colour,
            ms=6,
            label=f"limits at {100 * verdict.confidence:g} %",
        )
        if verdict.worst is not None:
            at = points.fpr_limit[verdict.worst], points.fnr_limit[verdict.worst]
            ax.plot(
                *at,
                "o",
                mfc="none",
                mec=BLACK,
                ms=8,
                label="furthest below" if verdict.refuted else "closest",
            )
    rates = ndtr(np.linspace(-9.0, 9.0, 361))
    ax.plot(rates, 1.0 - rates, color="0.75", linewidth=0.8, zorder=0)
    for axis in (ax.set_xscale, ax.set_yscale):
        axis("symlog", linthresh=1e-2)
    ax.set(
        xlim=(0.0, 1.0),
        ylim=(0.0, 1.0),
        xlabel="FPR (innocents accused)",
        ylabel="FNR (members missed)",
    )
    ax.set_title("refuted" if verdict.refuted else "consistent", fontsize=10)
    grid(ax)
    ax.legend(frameon=False, fontsize=7, loc="lower left")
    return ax
