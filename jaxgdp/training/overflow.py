"""Certified quantities of a run whose padded batches may overflow, and of a run of no steps.

Every quantity's own file declares its shift by an overflow; the formulas, and why they hold,
stand in ``jaxgdp.quantities.overflow``. A quantity that declares none is refused by name as soon as
batches may overflow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from .. import options
from ..adjacency import Adjacency
from ..bracket import Bracket
from ..conversions import epsilon_from_rdp
from ..measure import measure
from ..measure.pieces import Count
from ..mechanisms import Composition, SubsampledGaussian
from ..numerics.shapes import Array, ArrayLike
from ..numerics.validation import checked, floor_rate, one_of, relative_width
from ..quantities import registry
from ..quantities.base import Quantity
from ..quantities.overflow import ROOM
from .filters import rdp_cost

# of a Rényi bound that need not be sharp
_ORDERS = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
_NARROW = 1e-3  # of rtol: what a bound at slightly less than the argument may add
_NEGLIGIBLE = 1e-12  # likewise, where the quantity is 0


def question(
    quantities: str | Iterable[str], overflow: float, given: Mapping[str, Any]
) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Names of the quantities, and of the arguments of ``measure`` those that they need.

    Args:
        quantities: names, as for :func:`jaxgdp.measure`.
        overflow: probability d of an overflow.
        given: rtol, fpr_floor, adjacency and the arguments of quantities; the default where
            an argument is missing.

    Raises:
        ValueError: a quantity or an argument is unknown, out of range or no single number, a rate
            is not above the overflow, or a quantity does not define its shift by an overflow.
    """
    names = (quantities,) if isinstance(quantities, str) else tuple(quantities)
    names = tuple(dict.fromkeys(one_of("quantity", q, registry.REGISTRY) for q in names))
    if not names:
        raise ValueError("quantities must name at least one, got none")
    d = _overflow(overflow)
    own = registry.arguments()
    for name in given:
        one_of("argument", name, ("rtol", "fpr_floor", "adjacency", *own))
    asked: dict[str, Any] = {
        "rtol": single("rtol", given.get("rtol", options.RTOL), relative_width),
        "fpr_floor": single("fpr_floor", given.get("fpr_floor", options.FPR_FLOOR), floor_rate),
        "adjacency": Adjacency.checked(given.get("adjacency", options.ADJACENCY)),
    }
    rates = {
        name: single(
            name, given.get(name, first.default), lambda _, value, q=first: q.checked(value)
        )
        for name, first in own.items()
    }
    selected = registry.select(names)
    needed = {quantity.own_argument for quantity in selected}
    asked |= {name: value for name, value in rates.items() if name in needed}
    for quantity in selected if d > 0.0 else ():
        _refuse_overflow(quantity, asked, d)
    return names, asked


def _refuse_overflow(quantity: Quantity, asked: Mapping[str, Any], d: float) -> None:
    """Raise where a quantity cannot pay for an overflow."""
    if quantity.overflow is None:
        raise ValueError(
            f"overflow must be 0 for {quantity.name!r}, got {d:g}: this quantity does not define"
            " how an overflow shifts it"
        )
    if quantity.overflow.reduced is not None and asked[str(quantity.argument)] <= d:
        rate = asked[str(quantity.argument)]
        raise ValueError(f"{quantity.argument} must be above the overflow {d:g}, got {rate:g}")


def single(name: str, value: ArrayLike, check: Callable[[str, Any], Any]) -> float:
    """A checked number that is not an array."""
    if np.ndim(check(name, value)) > 0:
        raise ValueError(f"{name} must be a single number, got shape {np.shape(value)}")
    return float(value)  # type: ignore[arg-type]


def _overflow(value: ArrayLike) -> float:
    return single(
        "overflow",
        value,
        lambda n, v: checked(n, v, "in [0, 1e-3]", lambda a: (a >= 0.0) & (a <= 1e-3)),
    )


def without_steps(name: str, asked: Mapping[str, Any]) -> float:
    """A quantity before the first step, when nothing has been released."""
    quantity = registry.named(name)
    return float(quantity.idle(None if quantity.argument is None else asked[quantity.argument]))


def _rough_epsilon(mechanism: Composition, adjacency: Adjacency) -> Callable[[float], Array] | None:
    """δ ↦ an upper bound on ε by Rényi DP, which need not be sharp; None where none is known."""
    parts = list(zip(mechanism.mechanisms, mechanism.counts, strict=True))
    if adjacency.replaces or not all(isinstance(part, SubsampledGaussian) for part, _ in parts):
        return None

    def rough(delta: float) -> Array:
        costs = [
            np.asarray(count, np.float64)[..., None]
            * rdp_cost(part.noise_multiplier, part.sampling_prob, _ORDERS)
            for part, count in parts
        ]
        return epsilon_from_rdp(delta=delta, orders=_ORDERS, rho=sum(costs) * ROOM)

    return rough


def certified(
    mechanism: Composition,
    names: tuple[str, ...],
    asked: Mapping[str, Any],
    overflow: float = 0.0,
    progress: Count | bool | None = None,
) -> tuple[dict[str, Bracket], Array]:
    """Brackets of quantities as :func:`jaxgdp.measure` finds them, widened by the overflow.

    Args:
        mechanism: as for ``measure``.
        names: of the quantities, from :func:`question`.
        asked: likewise.
        overflow: probability d of an overflow.
        progress: as for ``measure``.

    Returns:
        (name → Bracket, status).
    """
    d = _overflow(overflow)
    found = measure(mechanism, quantities=names, progress=progress, **asked)
    brackets = dict(found.brackets)
    if d == 0.0:
        return brackets, found.worst
    selected = registry.select(names)
    for quantity in selected:
        _refuse_overflow(quantity, asked, d)
    _at_reduced_arguments(mechanism, selected, asked, d, brackets)
    shifted = {
        quantity.name: quantity.overflow.shift(
            brackets[quantity.name],
            d,
            None if quantity.argument is None else asked[quantity.argument],
        )
        for quantity in selected
        if quantity.overflow is not None
    }
    return shifted, found.worst


def _at_reduced_arguments(
    mechanism: Composition,
    selected: tuple[Quantity, ...],
    asked: Mapping[str, Any],
    d: float,
    brackets: dict[str, Bracket],
) -> None:
    """Replace the safe side by that at the argument that an overflow leaves."""
    reduced: dict[str, float] = {}
    for quantity in selected:
        if quantity.overflow is not None and quantity.overflow.reduced is not None:
            reduced[quantity.name] = quantity.overflow.reduced(asked[str(quantity.argument)], d)
    rough = _rough_epsilon(mechanism, asked["adjacency"])
    for quantity in selected:
        near = None if quantity.overflow is None else quantity.overflow.near
        if near is None or rough is None or quantity.name not in reduced:
            continue
        lower, upper = brackets[quantity.name]
        more = near(upper, asked[str(quantity.argument)], reduced[quantity.name], rough)
        if np.all(more - upper <= _NARROW * asked["rtol"] * upper + _NEGLIGIBLE):
            brackets[quantity.name] = Bracket(lower, more)
            del reduced[quantity.name]
    # (quantities of one argument that are reduced to different ones are asked apart)
    while reduced:
        at: dict[str, float] = {}
        for name, value in reduced.items():
            at.setdefault(str(registry.named(name).argument), value)
        together = tuple(
            name
            for name, value in reduced.items()
            if at[str(registry.named(name).argument)] == value
        )
        less = measure(mechanism, quantities=together, **{**asked, **at}).brackets
        for name in together:
            (lower, upper), new = brackets[name], less[name]
            brackets[name] = (
                Bracket(lower, np.maximum(new.upper, upper))
                if registry.named(name).grows
                else Bracket(np.minimum(new.lower, lower), upper)
            )
            del reduced[name]
