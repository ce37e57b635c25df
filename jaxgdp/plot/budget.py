"""The privacy that a run spends, step by step."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..bracket import Bracket
from ..numerics.optional import Axes
from ..numerics.shapes import Array
from ..quantities.registry import named
from .style import COLOURS, at_argument, grid, symbol

_MOST_MARKERS = 60


def budget(plan: Any, ax: Axes, quantity: str = "mu", limit: float | None = None) -> Axes:
    """The certified privacy loss of the first t steps of a planned run, the budget, the last step.

    A plan computes the privacy of some numbers of steps, drawn as markers (at most 60). A step
    between two of them has the value of the next one, drawn as a staircase, so that no value is
    below the privacy spent. (A straight line between them would be below it.)

    Args:
        plan: from ``jaxgdp.training.plan_budget``.
        ax: matplotlib ``Axes`` to draw on.
        quantity: one that the plan has.
        limit: the budget, or None.

    Raises:
        ValueError: the plan does not have the quantity.

    Example:
        >>> from matplotlib.figure import Figure
        >>> from jaxgdp.training import plan_budget
        >>> plan = plan_budget(
        ...     noise_multiplier=4.0, sampling_prob=1.0, max_steps=16, quantities="mu"
        ... )
        >>> ax = budget(plan, Figure().add_subplot(), limit=0.9)
        >>> _, labels = ax.get_legend_handles_labels()
        >>> labels[-1]
        'budget: 12 steps'
    """
    if quantity not in plan.quantities:
        raise ValueError(f"quantity must be one of the plan's {plan.quantities}, got {quantity!r}")
    # (the search for the last step comes first: what it computes, the plan tells from then on)
    last = None if limit is None else plan.max_steps_within(**{quantity: limit})
    steps, told, safe = _computed(plan, quantity)
    ax.vlines(steps, told.lower, told.upper, color=COLOURS[0], alpha=0.3, linewidth=2.0)
    points = {"color": COLOURS[0], "linestyle": "none", "marker": "o", "markersize": 4}
    points["markevery"] = -(-len(steps) // _MOST_MARKERS)
    ax.plot(steps, safe, label="computed", **points)
    stairs = {"color": COLOURS[0], "linewidth": 0.9, "drawstyle": "steps-pre"}
    ax.plot(steps, safe, label="between: the next one's", **stairs)
    if limit is not None and last is not None:
        dashed = {"color": "black", "linestyle": "--", "linewidth": 1.0}
        ax.axhline(limit, **dashed)
        ax.plot([last, last], [0.0, limit], label=f"budget: {last} steps", **dashed)
    of = named(quantity)
    at = None if of.argument is None else dict(plan.asked)[of.argument]
    label = symbol(of) + ("" if at is None else at_argument(of, at))
    label += f" ({of.unit})" if of.unit else ""
    ax.set(xlabel="steps", ylabel=label, xlim=(0, steps[-1]), ylim=(0.0, None))
    grid(ax)
    ax.legend(frameon=False, fontsize=8, loc="lower right")
    return ax


def _computed(plan: Any, quantity: str) -> tuple[Array, Bracket, Array]:
    """Numbers of steps with a value of their own, the brackets there, and the sides to report.

    The side to report is that of the next computed number of steps, so each stretch of equal values
    ends with the one it is of."""
    told = plan.at(np.arange(plan.max_steps + 1))[quantity]
    lower, upper = np.asarray(told.lower), np.asarray(told.upper)
    safe = lower if lower[-1] < lower[0] else upper
    at = np.append(np.flatnonzero(safe[1:] != safe[:-1]), plan.max_steps)
    return at, Bracket(lower[at], upper[at]), safe[at]
