"""``PrivacyLossDistribution`` objects of dp_accounting, both ways, with mass at infinity intact."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import options
from ...mechanisms import Composition, compose
from ...mechanisms.base import Mechanism
from ...mechanisms.finite_pair import FinitePair
from ...numerics.errors import FOREIGN_SUM, SHORT
from ...numerics.shapes import Array
from ...numerics.validation import positive, relative_width
from ..dominating import dominating_pair

_SUM = 1e-6  # how far from one the masses may sum


def _table(pmf: Any, name: str) -> tuple[Array, Array, float]:
    """Losses, masses and mass at infinity of one half."""
    if not getattr(pmf, "_pessimistic_estimate", True):
        raise ValueError(
            f"{name} is an optimistic estimate: only a pessimistic one can bound privacy loss"
        )
    spacing, infinite = float(pmf._discretization), float(pmf._infinity_mass)
    if hasattr(pmf, "_loss_probs"):
        places = np.array(sorted(pmf._loss_probs), dtype=float)
        masses = np.array([pmf._loss_probs[k] for k in sorted(pmf._loss_probs)], dtype=float)
    else:
        masses = np.array(pmf._probs, dtype=float)
        places = pmf._lower_loss + np.arange(masses.size, dtype=float)
    total = math.fsum(masses) + infinite
    if not np.all(np.isfinite(masses)) or abs(total - 1.0) > _SUM or not 0.0 <= infinite <= 1.0:
        raise ValueError(
            f"{name} must hold masses that sum to 1 with the mass at infinity, got a sum of"
            f" {total:.12g}"
        )
    # (convolutions leave rounding noise of either sign)
    return spacing * places, np.maximum(masses, 0.0), infinite


def _delta_at_zero(loss: Array, mass: Array, infinite: float) -> float:
    return infinite + math.fsum(-np.expm1(-loss) * mass)


def _lowered(loss: Array, mass: Array, infinite: float, delta: float) -> tuple[Array, Array]:
    """Losses and masses of the lower convex hull once δ(0) is known to be smaller: the least losses
    give way to a chord.

    In γ = e^ε the profile has slope −Σ e^{−ℓ}·y right of γ, over the losses beyond; the chord from
    (1, δ) ends where it is no steeper."""
    loss_x, mass_x = loss.astype(np.longdouble), mass.astype(np.longdouble)
    other = np.exp(-loss_x) * mass_x
    beyond = lambda a: np.append(np.cumsum(a[::-1])[::-1], 0.0)[1:]
    gamma = np.exp(loss_x)
    height = infinite + beyond(mass_x) - gamma * beyond(other)
    chord, right = (height - delta) / np.expm1(loss_x), -beyond(other)
    holds = np.flatnonzero(chord <= right)
    if _delta_at_zero(loss, mass, infinite) <= delta or holds.size == 0:
        return loss, mass
    first = holds[0]
    mass = mass.copy()
    mass[first] = float((right[first] - chord[first]) * gamma[first])
    return loss[first:], mass[first:]


def from_pld(pld: Any) -> Composition:
    """A mechanism with the privacy losses of a ``PrivacyLossDistribution``.

    The distribution for removal gives the losses above 0, with masses under "record present", that
    for addition those below, with masses under "record absent"; the rest of either law sits at loss
    0. Mass at infinity is kept on either side. The result is as pessimistic as the object: rounding
    errors of its own convolutions, which reach 1e-10 in δ, are beyond repair.

    Args:
        pld: a ``dp_accounting.pld.privacy_loss_distribution.PrivacyLossDistribution``, pessimistic.

    Returns:
        A :class:`jaxgdp.Composition`; ask it with the default adjacency, both orders.

    Raises:
        ValueError: an optimistic estimate, or masses that do not sum to one.

    Example:
        >>> from dp_accounting.pld import common, privacy_loss_distribution
        >>> parameters = common.DifferentialPrivacyParameters(1.0, 0.1)
        >>> pld = privacy_loss_distribution.from_privacy_parameters(parameters)
        >>> float(from_pld(pld).mechanisms[0].log_q_plus.round(6))
        -2.302585
    """
    try:
        remove, add = pld._pmf_remove, pld._pmf_add
    except AttributeError:
        raise ValueError(
            f"pld must be a PrivacyLossDistribution of dp_accounting, got {type(pld).__name__}"
        ) from None
    (up, q_up, q_plus), (down, p_down, p_minus) = (
        _table(remove, "pld (removal)"),
        _table(add, "pld (addition)"),
    )
    halves = [
        (loss[loss > 0.0], mass[loss > 0.0], far)
        for loss, mass, far in ((up, q_up, q_plus), (down, p_down, p_minus))
    ]
    # both orders share δ(0), the total variation distance, so the smaller of two bounds on it holds
    # for both
    shared = min(_delta_at_zero(*half) for half in halves)
    (up, q_up), (down, p_down) = (_lowered(*half, shared) for half in halves)
    # each law's remainder at 0; where rounding leaves less than nothing, larger losses leave more
    raised = []
    for loss, mass, rest in (
        (up, q_up, 1.0 - math.fsum(p_down) - p_minus),
        (down, p_down, 1.0 - math.fsum(q_up) - q_plus),
    ):
        other = math.fsum(np.exp(-loss) * mass)
        if other > rest + FOREIGN_SUM:
            excess = other / rest if rest > 0.0 else math.inf
            if excess > 1.0 + 1e-2:
                raise ValueError(
                    f"pld must be a pair of laws in both orders, got masses {other:g}"
                    f" and {rest:g} on one side"
                )
            loss = loss + math.log(excess) + SHORT
        raised.append((loss, math.fsum(np.exp(-loss) * mass)))
    (up, p_up), (down, q_down) = raised
    p_zero, q_zero = (
        1.0 - math.fsum(p_down) - p_minus - p_up,
        1.0 - math.fsum(q_up) - q_plus - q_down,
    )
    zero = 0.0
    if abs(p_zero - q_zero) <= FOREIGN_SUM:
        p_zero = q_zero = max(p_zero, q_zero) if max(p_zero, q_zero) > FOREIGN_SUM else 0.0
    elif min(p_zero, q_zero) > 0.0:
        zero = math.log(q_zero) - math.log(p_zero)
    else:
        # what one law alone has left is told apart for sure
        p_minus, q_plus = p_minus + max(p_zero, 0.0), q_plus + max(q_zero, 0.0)
        p_zero = q_zero = 0.0
    zero = np.full(1, zero)
    with np.errstate(divide="ignore"):
        middle = np.log([p_zero]), np.log([q_zero])
        log_q, log_p = np.log(q_up), np.log(p_down)
        ends = np.log(p_minus), np.log(q_plus)
    pair = FinitePair.build(
        np.concatenate([-down, zero, up]),
        np.concatenate([log_p, middle[0], log_q - up]),
        np.concatenate([log_p - down, middle[1], log_q]),
        *(np.asarray(end) for end in ends),
    )
    return compose([pair])


def to_pld(
    mechanism: Mechanism | Composition,
    value_discretization_interval: float = 1e-4,
    tail_mass: float = 1e-20,
    rtol: float = options.RTOL,
) -> Any:
    """A ``PrivacyLossDistribution`` that dominates a mechanism, in both orders.

    Its masses are those of the certified upper side of the whole composition: no convolution of
    dp_accounting enters, and mass at infinity is the mechanism's own but for ``tail_mass``.

    Args:
        mechanism: an unbatched mechanism or composition.
        value_discretization_interval: spacing of the losses, > 0.
        tail_mass: mass that may be moved to infinity, > 0.
        rtol: requested relative width of the μ bracket, in [1e-8, 1).

    Returns:
        A pessimistic ``PrivacyLossDistribution`` with separate distributions for removal and
        addition.

    Raises:
        ValueError: an argument is out of range, a batch, or a spacing too fine for the range of
            losses.

    Example:
        >>> import jaxgdp
        >>> mechanism = jaxgdp.ApproximateDP(epsilon=1.0, delta=0.1)
        >>> pld = to_pld(mechanism, value_discretization_interval=0.125)
        >>> round(float(pld.get_delta_for_epsilon(2.0)), 9)
        0.1
    """
    from dp_accounting.pld import privacy_loss_distribution

    spacing = float(positive("value_discretization_interval", value_discretization_interval))
    pair = dominating_pair(
        mechanism,
        spacing,
        float(positive("tail_mass", tail_mass)),
        float(relative_width("rtol", rtol)),
    )
    halves = []
    for places, masses, infinite, across in (
        (pair.above, pair.q_above, pair.q_plus, (pair.below, pair.p_below)),
        (pair.below, pair.p_below, pair.p_minus, (pair.above, pair.q_above)),
    ):
        other, mirrored = across
        table = dict(
            zip(
                (-other[::-1]).tolist(),
                (mirrored * np.exp(-spacing * other))[::-1].tolist(),
                strict=True,
            )
        )
        table[0] = 0.0
        table |= zip(places.tolist(), masses.tolist(), strict=True)
        table[0] = max(1.0 - infinite - math.fsum(table.values()), 0.0)
        halves.append((table, infinite))
    (remove, q_plus), (add, p_minus) = halves
    return privacy_loss_distribution.PrivacyLossDistribution.create_from_rounded_probability(
        remove,
        q_plus,
        spacing,
        pessimistic_estimate=True,
        rounded_probability_mass_function_add=add,
        infinity_mass_add=p_minus,
        symmetric=False,
    )
