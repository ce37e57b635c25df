"""An audit against a claim."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import ndtr

from ..numerics.optional import Axes
from .style import BLACK, COLOURS, grid
from .tradeoff import FNR_LABEL, FPR_LABEL, tradeoff_band


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
        counted = points.empirical_fpr, points.empirical_fnr
        limits = points.fpr_limit, points.fnr_limit
        style = {"facecolor": colour, "alpha": 0.18, "edgecolor": "none", "zorder": 1}
        for a, b, up, high in zip(*counted, *limits, strict=True):
            ax.add_patch(Rectangle((a, b), up - a, high - b, **style))
        ax.plot(*counted, ".", color=colour, ms=4, label="counted")
        ax.plot(*limits, "+", color=colour, ms=6, label=f"limits at {100 * verdict.confidence:g} %")
        if verdict.worst is not None:
            label = "furthest below" if verdict.refuted else "closest"
            at = (limit[verdict.worst] for limit in limits)
            ax.plot(*at, "o", mfc="none", mec=BLACK, ms=8, label=label)
    rates = ndtr(np.linspace(-9.0, 9.0, 361))
    ax.plot(rates, 1.0 - rates, color="0.75", linewidth=0.8, zorder=0)
    for axis in (ax.set_xscale, ax.set_yscale):
        axis("symlog", linthresh=1e-2)
    ax.set(xlim=(0.0, 1.0), ylim=(0.0, 1.0), xlabel=FPR_LABEL, ylabel=FNR_LABEL)
    ax.set_title("refuted" if verdict.refuted else "consistent", fontsize=10)
    grid(ax)
    ax.legend(frameon=False, fontsize=7, loc="lower left")
    return ax
