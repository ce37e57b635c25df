"""Numbers read off a certified curve: each side of a quantity by the side that bounds it."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...bracket import Bracket
from ...numerics import namespace as xp
from ...numerics.normal import argmax
from ...numerics.once import sharing
from ...numerics.shapes import Array, Float
from ..question import Kind, Quantity, Rates
from .curve import Curve, GaussianParts, both_sides
from .half_curve import Half
from .vertices import Vertices


class Reading(NamedTuple):
    """What one curve says.

    Attributes:
        numbers: quantity → bracket.
        by_order: quantity → brackets of each order alone, of shape (sides,), where both count and
            the quantity is the worse of them.
        located: quantity → threshold |ℓ| it was read off at, where that is only known afterwards;
            of shape (sides,) where there are brackets by order.
        reach: (threshold, log FPR) out to which each half has to be known, shape (sides,) each.
        curve: the curve, where it is asked for.
    """

    numbers: dict[str, Bracket]
    by_order: dict[str, Bracket]
    located: dict[str, Float[Array, ""]]
    reach: tuple[Float[Array, " sides"], Float[Array, " sides"]]
    curve: Curve | None


def read(parts: GaussianParts, plus: Half, minus: Half, rates: Rates, kind: Kind) -> Reading:
    """Numbers asked for, of one setting (unbatched).

    Args:
        parts: the Gaussian curves that its curve lies between.
        plus: vertices of the half-curve of removing a record, from above and from below.
        minus: those of adding one.
        rates: what is asked at.
        kind: what is asked.

    Method: docs/method/adjacency.md#symmetrisation
    """
    reach = tuple(xp.vmap(lambda v: _required_reach(v, rates))(both_sides(plus[0], minus[0])))
    if kind.adjacency.swapped:
        plus, minus, parts = minus, plus, parts.swapped()
    curve = Curve(plus[0], minus[0], plus[1], minus[1], *parts)
    symmetric = kind.adjacency.symmetric
    with sharing():
        by_order = _by_order(curve, rates, kind)
        found = numbers(curve, rates, kind, by_order)
        located = {
            quantity.name: _located(curve, quantity, query, found, by_order, symmetric)
            for quantity, query in _asked(rates, kind)
            if quantity.locate is not None and not kind.keep
        }
    return Reading(found, by_order, located, reach, curve if kind.keep else None)


def _by_order(curve: Curve, rates: Rates, kind: Kind) -> dict[str, Bracket]:
    """What each order has alone of quantities that are the worse of both."""
    if not kind.adjacency.symmetric:
        return {}
    orders = curve, curve.swapped()
    return {
        quantity.name: both_sides(
            *(quantity.read(order, query, symmetric=False) for order in orders)
        )
        for quantity, query in _asked(rates, kind)
        if quantity.worse_of_orders
    }


def _located(
    curve: Curve,
    quantity: Quantity,
    query: Array,
    found: dict[str, Bracket],
    by_order: dict[str, Bracket],
    symmetric: bool,
) -> Array:
    """The threshold, or thresholds, at which a quantity was read off."""
    assert quantity.locate is not None
    if quantity.name not in by_order:
        return quantity.locate(curve, query, found[quantity.name], symmetric=symmetric)
    lower, upper = by_order[quantity.name]
    each = zip((curve, curve.swapped()), range(2), strict=True)
    return xp.stack(
        [
            quantity.locate(order, query, Bracket(lower[i], upper[i]), symmetric=False)
            for order, i in each
        ]
    )


def numbers(
    curve: Curve, rates: Rates, kind: Kind, by_order: dict[str, Bracket] | None = None
) -> dict[str, Bracket]:
    """Numbers asked for, read off a curve that is oriented already; ``by_order`` as in
    :class:`Reading`, where it is known.
    """
    found: dict[str, Bracket] = {
        name: Bracket(*(xp.max(side, axis=-1) for side in both))
        for name, both in (by_order or {}).items()
    }
    for quantity, query in sorted(_asked(rates, kind), key=lambda each: bool(each[0].after)):
        if quantity.name in found:
            continue
        known: dict[str, Any] = {}
        if kind.shared and quantity.after is not None and quantity.after in found:
            known = {"given": found[quantity.after]}
        found[quantity.name] = quantity.read(
            curve, query, symmetric=kind.adjacency.symmetric, **known
        )
    return found


def _asked(rates: Rates, kind: Kind) -> list[tuple[Quantity, Float[Array, ""]]]:
    """Quantities and what each is asked at: the very same array where that is the same."""
    return [
        (quantity, rates.queries[first])
        for quantity, first in zip(kind.quantities, kind.alike, strict=True)
    ]


def _required_reach(v: Vertices, rates: Rates) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """How far out a half-curve must be known: the first vertex above noise past every rate.

    Where those vertices end before, the rest of the way is guessed from them; (inf, 0) where there
    are none. This only guides the search for better lattices."""
    t, log_alpha, log_tpr, log_beta = (
        a.reshape(-1) for a in (v.threshold(), v.log_alpha, v.log_tpr, v.log_beta)
    )
    known = (v.used & v.above_noise).reshape(-1)
    log_floor = rates.log_floor
    past = known & (log_alpha <= log_floor - 0.05) & (log_beta >= log_floor + 0.05)
    if rates.log_deepest is not None:
        past = past & (log_tpr <= rates.log_deepest - 0.05)
    k = argmax(-xp.where(past, t, xp.inf))
    last = argmax(xp.where(known, t, -xp.inf))
    short = xp.minimum(log_floor - 0.05 - log_alpha[last], 0.0)
    ahead = t[last] * (1.0 + 2.0 * short / log_alpha[last])
    guess = (
        xp.where(known[last], ahead, xp.inf),
        xp.where(known[last], log_alpha[last] + short, 0.0),
    )
    return xp.where(past[k], t[k], guess[0]), xp.where(past[k], log_alpha[k], guess[1])
