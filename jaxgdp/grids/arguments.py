"""Arguments of grids: axes, and a single number for each argument of the quantities."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..numerics.shapes import Array, ArrayLike, Float
from ..numerics.validation import floor_rate
from ..quantities import registry


def axis(
    name: str, value: ArrayLike, check: Callable[[str, ArrayLike], Array]
) -> Float[Array, " settings"]:
    """One axis of a grid.

    Raises:
        ValueError: a value is out of range, or there is more than one dimension; names the axis.
    """
    array = np.atleast_1d(check(name, value))
    if array.ndim != 1:
        raise ValueError(f"{name} must be a scalar or one-dimensional, got shape {array.shape}")
    return array


def distinct(name: str, values: Float[Array, " settings"]) -> Float[Array, " settings"]:
    """An axis that holds no value twice: a coordinate that stands for two rows selects neither.

    Raises:
        ValueError: it does; names the first.
    """
    unique, counts = np.unique(values, return_counts=True)
    if np.any(counts > 1):
        twice = float(unique[counts > 1][0])
        raise ValueError(f"{name} must hold each value once, got {twice:g} more than once")
    return values


def single_numbers(
    caller: str, fpr_floor: ArrayLike, given: Mapping[str, ArrayLike]
) -> dict[str, Any]:
    """The FPR floor and the argument of every registered quantity, its default if none is given.

    Raises:
        ValueError: one is out of range or not a single number; names it.
        TypeError: no quantity has an argument of that name.
    """
    for name, value in ({"fpr_floor": fpr_floor} | dict(given)).items():
        if np.ndim(value) != 0:  # type: ignore[arg-type]
            raise ValueError(f"{name} must be a single number, got shape {np.shape(value)}")
    checked = registry.checked_arguments(caller, given)
    floor = float(floor_rate("fpr_floor", fpr_floor))
    return {name: float(value) for name, value in checked.items()} | {"fpr_floor": floor}


def asked_at(names: tuple[str, ...], numbers: Mapping[str, Any]) -> dict[str, float]:
    """Quantity → its argument, for those quantities that have one."""
    owned = ((name, registry.named(name).own_argument) for name in names)
    return {name: numbers[argument] for name, argument in owned if argument is not None}
