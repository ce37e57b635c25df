"""Noise that an accepted risk needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..bracket import Bracket
from ..numerics.optional import Axes
from ..numerics.shapes import ArrayLike
from .band import band
from .style import plain_log


def calibration_curves(
    found: Mapping[str, Any],
    values: ArrayLike,
    ax: Axes,
    *,
    axis_label: str,
    parameter_label: str = r"noise multiplier $\sigma$",
) -> Axes:
    """Calibrated noise against the accepted risk, for one kind of target or several.

    The line is the calibrated value, which provably meets the target; the band reaches to the
    rejected one next to it, for which that is not certified.

    Args:
        found: mapping from a name to a ``jaxgdp.calibrate`` result over ``values``.
        values: what the targets accept, one-dimensional.
        ax: matplotlib ``Axes`` to draw on.
        axis_label: of ``values``, with its unit.
        parameter_label: of the parameter solved for.
    """
    for number, (name, calibration) in enumerate(found.items()):
        value, rejected = np.asarray(calibration.value), np.asarray(calibration.rejected)
        rejected = np.where(np.isfinite(rejected), rejected, value)
        band(values, Bracket(rejected, value), ax, label=name, number=number, lines=len(found))
    ax.set(yscale="log", xlabel=axis_label, ylabel=parameter_label)
    plain_log(ax.yaxis)
    ax.legend(frameon=False, fontsize=8)
    return ax
