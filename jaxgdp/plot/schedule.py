"""Noise schedules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..numerics.optional import Axes
from .style import grid, line_style


def noise_schedules(schedules: Mapping[str, Any], ax: Axes) -> Axes:
    """Noise multipliers over the steps of a run, one staircase for each schedule.

    Args:
        schedules: mapping from a name to a schedule with ``noise_multiplier`` and ``num_steps`` of
            each stage (``jaxgdp.optimize(…).schedule``).
        ax: matplotlib ``Axes`` to draw on.
    """
    highest, edges = 0.0, np.zeros(1)
    for number, (name, schedule) in enumerate(schedules.items()):
        edges = np.concatenate([[0.0], np.cumsum(np.asarray(schedule.num_steps, float))])
        noise = np.asarray(schedule.noise_multiplier, float)
        highest = max(highest, float(np.max(noise)))
        style = line_style(number) | {"linewidth": 1.8, "markersize": 4}
        ax.plot(np.repeat(edges, 2)[1:-1], np.repeat(noise, 2), label=name, **style)
    ax.set(xlim=(0.0, edges[-1]), ylim=(0.0, 1.4 * highest))
    ax.set(xlabel="steps", ylabel=r"noise multiplier $\sigma$")
    grid(ax)
    ax.legend(frameon=False, fontsize=8, loc="upper left")
    return ax
