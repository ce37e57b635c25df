"""Certified numbers of a run whose padded batches may overflow, and of a run of no steps.

A run of padded batches has a trade-off curve g with (1 − d)·f(α/(1 − d)) ≤ g(α) in place of the
curve f of exact Poisson sampling, d the probability of an overflow, and g ≤ f, as small data sets
never overflow (see ``poisson``). As f is convex with f(0) ≤ 1, the left side is at least f(α) − d.
Hence, on the safe side: δ(ε) + d, advantage + d, TPR + d, β − d, (1 − d)·Bayes risk, ε at (δ −
d)/(1 − d), d'-approximate μ at (d' − d)/(1 − d), and, as |dΦ⁻¹(x)/dx| ≤ √(π/2)/min(x, 1 − x), μ +
√(π/2)·d/floor. The regret of reporting that μ moves by at most φ(0) times as much."""

from __future__ import annotations

import numpy as np

from ..adjacency import Adjacency
from ..bracket import Bracket
from ..conversions import epsilon_from_rdp
from ..measure import QUANTITIES, measure
from ..mechanisms import SubsampledGaussian
from ..numerics.errors import CLOSED_FORM, SHORT
from ..numerics.validation import (
    checked,
    floor_rate,
    nonnegative,
    one_of,
    open_unit,
    relative_width,
)
from .filters import rdp_cost

ASKED_AT = {
    "mu": "fpr_floor",
    "regret": "fpr_floor",
    "epsilon": "delta",
    "delta": "epsilon",
    "tpr": "fpr",
    "beta": "fpr",
    "approximate_mu": "approximation",
    "bayes_risk": "prior",
}
_CHECKS = {
    "rtol": relative_width,
    "fpr_floor": floor_rate,
    "delta": open_unit,
    "epsilon": nonnegative,
    "fpr": open_unit,
    "approximation": open_unit,
    "prior": open_unit,
}
DEFAULTS = {
    "rtol": 1e-3,
    "fpr_floor": 1e-10,
    "adjacency": "add_remove",
    "delta": 1e-5,
    "epsilon": 1.0,
    "fpr": 1e-3,
    "approximation": 1e-10,
    "prior": 0.5,
}
FALLING = ("beta", "bayes_risk")  # their safe side is the lower one
_ROOM = 1.0 + CLOSED_FORM  # for the rounding of what is added
_SLOPE = np.sqrt(np.pi / 2.0) * _ROOM
_DENSITY = 1.0 / np.sqrt(2.0 * np.pi)
_ORDERS = (
    2,
    3,
    4,
    6,
    8,
    12,
    16,
    24,
    32,
    48,
    64,
    96,
    128,
    192,
    256,
)  # of a Rényi bound that need not be sharp
_NARROW = 1e-3  # of rtol: what the bound on ε at slightly less than δ may add to ε
_NEGLIGIBLE = 1e-12  # nats, likewise, where ε is 0
_REDUCED = {
    "epsilon": "delta",
    "approximate_mu": "approximation",
}  # asked at less than the rate itself


def question(quantities, overflow, given: dict) -> tuple[tuple[str, ...], dict]:
    """Names of the quantities, and of the arguments of ``measure`` those that they need.

    Raises:
        ValueError: a quantity or an argument is unknown, out of range or no single number, or a
            rate is not above the overflow.
    """
    names = (quantities,) if isinstance(quantities, str) else tuple(quantities)
    names = tuple(dict.fromkeys(one_of("quantity", q, QUANTITIES) for q in names))
    if not names:
        raise ValueError("quantities must name at least one, got none")
    d = _overflow(overflow)
    asked = {}
    needed = {"rtol", "adjacency", "fpr_floor"} | {ASKED_AT[q] for q in names if q in ASKED_AT}
    for name, value in (DEFAULTS | given).items():
        if one_of("argument", name, DEFAULTS) == "adjacency":
            value = Adjacency.checked(value)
        else:
            value = single(name, value, _CHECKS[name])
        if name in needed:
            asked[name] = value
    for quantity, rate in _REDUCED.items():
        if quantity in names and asked[rate] <= d:
            raise ValueError(f"{rate} must be above the overflow {d:g}, got {asked[rate]:g}")
    return names, asked


def single(name: str, value, check) -> float:
    """A checked number that is not an array."""
    if np.ndim(check(name, value)) > 0:
        raise ValueError(f"{name} must be a single number, got shape {np.shape(value)}")
    return float(value)


def _overflow(value) -> float:
    return single(
        "overflow",
        value,
        lambda n, v: checked(n, v, "in [0, 1e-3]", lambda a: (a >= 0.0) & (a <= 1e-3)),
    )


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


def epsilon_at_less(mechanism, upper, delta: float, less: float):
    """A bound on ε at a rate slightly below δ from the bound at δ: no second evaluation.

    The profile is convex in γ = e^ε, being the largest of Q(A) − γ·P(A) over all events A. It is at
    most δ at γ₁ = e^upper and, by Rényi DP, at most δ/2 at some γ₂. With s = 2·(δ − less)/δ it is
    hence at most (1 − s)·δ + s·δ/2 = less at (1 − s)·γ₁ + s·γ₂.

    Args:
        mechanism: a composition. upper: ε at ``delta``, an upper bound, of the mechanism's shape.
            delta, less: δ ≥ less > 0.

    Returns:
        ε at ``less``, an upper bound; ∞ where this says nothing.
    """
    # (at s = 1 there is no room to be made: there the bound is ε at δ/2 itself)
    share = min(2.0 * (delta - less) / delta * _ROOM, 1.0)
    parts = list(zip(mechanism.mechanisms, mechanism.counts, strict=True))
    if less < 0.5 * delta or not all(isinstance(part, SubsampledGaussian) for part, _ in parts):
        return np.full(np.shape(upper), np.inf)
    with np.errstate(over="ignore", invalid="ignore"):
        costs = [
            np.asarray(count, np.float64)[..., None]
            * rdp_cost(part.noise_multiplier, part.sampling_prob, _ORDERS)
            for part, count in parts
        ]
        far = epsilon_from_rdp(delta=0.5 * delta, orders=_ORDERS, rho=sum(costs) * _ROOM)
        more = upper + np.log1p(share * np.expm1(np.maximum(far - upper, 0.0)))
        return np.where(np.isnan(more), np.inf, more * _ROOM)


def certified(
    mechanism, names, asked: dict, overflow: float = 0.0, progress=None
) -> tuple[dict[str, Bracket], np.ndarray]:
    """Brackets of quantities of a batch of mechanisms, as :func:`jaxgdp.measure` finds them,
    widened by the overflow.

    Args:
        mechanism: as for ``measure``. names, asked: from :func:`question`. overflow: d. progress:
            as for ``measure``.

    Returns:
        (name → Bracket, status).
    """
    d = _overflow(overflow)
    found = measure(mechanism, quantities=names, progress=progress, **asked)
    brackets = dict(found.brackets)
    if d == 0.0:
        return brackets, found.worst
    reduced = tuple(name for name in names if name in _REDUCED)
    # the lower side is that of the rate itself, the upper one that of slightly less
    rates = {_REDUCED[name]: asked[_REDUCED[name]] for name in reduced}
    less: dict = {
        name: float(np.nextafter((rate - d) / (1.0 - d) * (1.0 - SHORT), 0.0))
        for name, rate in rates.items()
    }
    if "epsilon" in names and not asked["adjacency"].replaces:
        lower, upper = brackets["epsilon"]
        more = epsilon_at_less(mechanism, upper, asked["delta"], less["delta"])
        if np.all(more - upper <= _NARROW * asked["rtol"] * upper + _NEGLIGIBLE):
            brackets["epsilon"] = Bracket(lower, more)
            reduced = tuple(name for name in reduced if name != "epsilon")
    if reduced:
        less = {_REDUCED[name]: less[_REDUCED[name]] for name in reduced}
        for name, bracket in measure(
            mechanism, quantities=reduced, **(asked | less)
        ).brackets.items():
            brackets[name] = Bracket(
                brackets[name].lower, np.maximum(bracket.upper, brackets[name].upper)
            )
    floor = asked["fpr_floor"]
    return {
        name: _shifted(bracket, name, d, floor) for name, bracket in brackets.items()
    }, found.worst
