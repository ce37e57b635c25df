"""Certified numbers of a run whose padded batches may overflow, and of a run of no steps.

A run of padded batches has a trade-off curve g with (1 − d)·f(α/(1 − d)) ≤ g(α) in place of the curve f of exact Poisson sampling, d the
probability of an overflow, and g ≤ f, as small data sets never overflow (see ``poisson``). As f is convex with f(0) ≤ 1, the
left side is at least f(α) − d. Hence, on the safe side: δ(ε) + d, advantage + d, TPR + d, β − d, (1 − d)·Bayes risk, ε at (δ − d)/(1 − d),
d'-approximate μ at (d' − d)/(1 − d), and, as |dΦ⁻¹(x)/dx| ≤ √(π/2)/min(x, 1 − x), μ + √(π/2)·d/floor. The regret of reporting that μ
moves by at most φ(0) times as much.
"""

from __future__ import annotations

import numpy as np

from ..bracket import Bracket
from ..measure import measure
from ..validation import checked

FALLING = ("beta", "bayes_risk")  # their safe side is the lower one
_ROOM = 1.0 + 1e-12  # for the rounding of what is added
_SLOPE = np.sqrt(np.pi / 2.0) * _ROOM
_DENSITY = 1.0 / np.sqrt(2.0 * np.pi)
_REDUCED = {"epsilon": "delta", "approximate_mu": "d"}  # asked at less than the rate itself


def without_steps(name: str, asked: dict) -> float:
    """A quantity before the first step, when nothing has been released."""
    if name == "tpr":
        return asked["fpr"]
    if name == "beta":
        return 1.0 - asked["fpr"]
    if name == "bayes_risk":
        return min(asked["prior"], 1.0 - asked["prior"])
    return 0.0


def _shifted(bracket: Bracket, name: str, d: float, floor: float) -> Bracket:
    lower, upper = bracket
    if name == "mu":
        return Bracket(lower, upper + _SLOPE * d / floor)
    if name == "regret":
        return Bracket(np.maximum(lower - d, 0.0), upper + _DENSITY * _SLOPE * d / floor)
    if name in ("delta", "advantage", "tpr"):
        return Bracket(lower, np.minimum(upper + d * _ROOM, 1.0))
    if name == "beta":
        return Bracket(np.maximum(lower - d * _ROOM, 0.0), upper)
    if name == "bayes_risk":
        return Bracket(lower * (1.0 - d * _ROOM), upper)
    return bracket


def certified(
    mechanism, quantities, asked: dict, overflow: float = 0.0, progress=None
) -> tuple[dict[str, Bracket], np.ndarray]:
    """Brackets of quantities of a batch of mechanisms, as :func:`jaxgdp.measure` finds them, widened by the overflow.

    Args:
        mechanism: as for ``measure``. quantities: their names. asked: further arguments of ``measure``, scalars.
        overflow: d in [0, 1e-3]. progress: as for ``measure``.

    Returns:
        (name → Bracket, status).

    Raises:
        ValueError: an argument is out of range, or a rate is not above the overflow.
    """
    d = float(checked("overflow", overflow, "in [0, 1e-3]", lambda a: (a >= 0.0) & (a <= 1e-3)))
    quantities = (quantities,) if isinstance(quantities, str) else tuple(quantities)
    found = measure(mechanism, quantities=quantities, progress=progress, **asked)
    brackets = dict(found.brackets)
    if d == 0.0:
        return brackets, found.status
    rates = {_REDUCED[name]: asked[_REDUCED[name]] for name in quantities if name in _REDUCED}
    if rates:
        for name, rate in rates.items():
            checked(name, rate, f"above the overflow {d:g}", lambda a: a > d)
        less = {name: np.nextafter((rate - d) / (1.0 - d) * (1.0 - 1e-15), 0.0) for name, rate in rates.items()}
        tight = measure(mechanism, quantities=tuple(q for q in quantities if q in _REDUCED), **(asked | less))
        for name, bracket in tight.brackets.items():
            brackets[name] = Bracket(brackets[name].lower, np.maximum(bracket.upper, brackets[name].upper))
    floor = asked.get("fpr_floor", 1e-10)
    return {name: _shifted(bracket, name, d, floor) for name, bracket in brackets.items()}, found.status
