"""Every quantity, by name: found in the files of this folder, so that a new one is one new file.

A file belongs to the registry if it holds a :class:`Quantity` called ``QUANTITY``; :func:`register`
adds one from elsewhere."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable, Mapping
from typing import Any

from ..vocabulary import did_you_mean, unknown_argument
from . import __name__ as _PACKAGE
from . import __path__ as _PATH
from .base import Quantity

REGISTRY: dict[str, Quantity] = {}
_NO_QUANTITIES = ("base", "overflow", "quantities", "registry", "table", "tangency")


def _sorted() -> None:
    for quantity in sorted(REGISTRY.values(), key=lambda q: (q.order, q.name)):
        REGISTRY[quantity.name] = REGISTRY.pop(quantity.name)


def register(quantity: Quantity) -> Quantity:
    """Add a quantity, which is available everywhere from then on.

    Raises:
        ValueError: there is another one of that name.
    """
    if not isinstance(quantity, Quantity):
        raise ValueError(f"quantity must be a Quantity, got {quantity!r}")
    if quantity.name in REGISTRY and REGISTRY[quantity.name] is not quantity:
        raise ValueError(f"there is a quantity {quantity.name!r} already")
    REGISTRY[quantity.name] = quantity
    _sorted()
    return quantity


def unregister(name: str) -> None:
    """Take a quantity out again."""
    REGISTRY.pop(name)


def discover() -> None:
    """Register the quantity of every file of this folder (and of its ``__path__``)."""
    for found in pkgutil.iter_modules(_PATH):
        if found.ispkg or found.name in _NO_QUANTITIES:
            continue
        register(importlib.import_module(f"{_PACKAGE}.{found.name}").QUANTITY)


def named(name: str) -> Quantity:
    """The quantity of that name.

    Raises:
        ValueError: there is none; lists those that there are.
    """
    if name not in REGISTRY:
        raise ValueError(
            f"quantity must be one of {', '.join(map(repr, REGISTRY))}, got"
            f" {name!r}{did_you_mean(str(name), REGISTRY)}"
        )
    return REGISTRY[name]


def select(names: str | Iterable[str]) -> tuple[Quantity, ...]:
    """Quantities by name, each once.

    Raises:
        ValueError: one is unknown.
    """
    names = (names,) if isinstance(names, str) else tuple(names)
    return tuple(named(name) for name in dict.fromkeys(names))


def arguments() -> dict[str, Quantity]:
    """The arguments of quantities beside the floor: argument → the first of that argument."""
    found: dict[str, Quantity] = {}
    for quantity in REGISTRY.values():
        if quantity.own_argument is not None:
            found.setdefault(quantity.own_argument, quantity)
    return found


def checked_arguments(function: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """All arguments of quantities, checked; the default where nothing is given.

    Raises:
        ValueError: an argument is out of range.
        TypeError: no quantity has an argument of that name.
    """
    known = arguments()
    for name in given:
        if name not in known:
            own = ("quantities", "rtol", "fpr_floor", "adjacency", *known)
            raise unknown_argument(function, name, own)
    return {
        name: quantity.checked(given.get(name, quantity.default))
        for name, quantity in known.items()
    }


discover()
