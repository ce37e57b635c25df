"""One quantity by its name: ``jaxgdp.epsilon(run, delta=1e-5)`` and its kin, from the registry.

Every registered quantity has such a function, also those that are registered later.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

from ..bracket import Bracket, Status
from ..quantities import registry
from ..quantities.base import Quantity
from ..tradeoff import ContradictionWarning
from .ask import Measurable, measure

if TYPE_CHECKING:
    from typing import Unpack

    from ..numerics.shapes import ArrayLike
    from .pieces import Count

    class Settings(TypedDict, total=False):
        """The bracket of a quantity, as by :func:`jaxgdp.measure`."""

        rtol: float
        fpr_floor: ArrayLike
        adjacency: str
        progress: Count | bool | None
        nested: bool
        executor: str | None
        client: Any

    Runs = Measurable | Sequence[Measurable]

    def mu(mechanism: Runs, **settings: Unpack[Settings]) -> Bracket: ...
    def regret(mechanism: Runs, **settings: Unpack[Settings]) -> Bracket: ...
    def advantage(mechanism: Runs, **settings: Unpack[Settings]) -> Bracket: ...
    def epsilon(
        mechanism: Runs, *, delta: ArrayLike = ..., **settings: Unpack[Settings]
    ) -> Bracket: ...
    def delta(
        mechanism: Runs, *, epsilon: ArrayLike = ..., **settings: Unpack[Settings]
    ) -> Bracket: ...
    def tpr(mechanism: Runs, *, fpr: ArrayLike = ..., **settings: Unpack[Settings]) -> Bracket: ...
    def beta(mechanism: Runs, *, fpr: ArrayLike = ..., **settings: Unpack[Settings]) -> Bracket: ...
    def bayes_risk(
        mechanism: Runs, *, prior: ArrayLike = ..., **settings: Unpack[Settings]
    ) -> Bracket: ...
    def approximate_mu(
        mechanism: Runs, *, approximation: ArrayLike = ..., **settings: Unpack[Settings]
    ) -> Bracket: ...


_SETTINGS = ("rtol", "fpr_floor", "adjacency", "progress", "nested", "executor", "client")
_MADE: dict[str, tuple[Quantity, Callable[..., Bracket]]] = {}


def __getattr__(name: str) -> Callable[..., Bracket]:
    if name.startswith("_") or name not in registry.REGISTRY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    quantity = registry.named(name)
    if name not in _MADE or _MADE[name][0] is not quantity:
        _MADE[name] = quantity, _made(quantity)
    return _MADE[name][1]


def __dir__() -> list[str]:
    return sorted({*globals(), *registry.REGISTRY})


def _made(quantity: Quantity) -> Callable[..., Bracket]:
    """The function of a quantity."""
    name, argument = quantity.name, quantity.own_argument

    def of_runs(mechanism: Any, *args: Any, **given: Any) -> Bracket:
        if args:
            call = f"{argument}=…" if argument else "rtol=…"
            raise TypeError(
                f"{name}() takes keywords after the mechanism: write {name}(mechanism, {call})"
            )
        found = measure(mechanism, name, **given)
        if np.any(found.status[name] == Status.CONTRADICTION):
            warnings.warn(
                f"{name}: the two sides contradict each other, which is an error of jaxgdp; the"
                " value is withheld",
                ContradictionWarning,
                stacklevel=2,
            )
        return found[name]

    of_runs.__name__ = of_runs.__qualname__ = name
    of_runs.__module__ = "jaxgdp"
    of_runs.__doc__ = _docstring(quantity)
    of_runs.__signature__ = _signature(quantity)  # type: ignore[attr-defined]
    return of_runs


def _signature(quantity: Quantity) -> inspect.Signature:
    whole = inspect.signature(measure)
    own = []
    if quantity.own_argument is not None:
        kind = inspect.Parameter.KEYWORD_ONLY
        default = quantity.default
        own.append(
            inspect.Parameter(quantity.own_argument, kind, default=default, annotation="ArrayLike")
        )
    kept = [whole.parameters[name] for name in _SETTINGS]
    return inspect.Signature(
        [whole.parameters["mechanism"], *own, *kept], return_annotation="Bracket"
    )


def _docstring(quantity: Quantity) -> str:
    argument = quantity.own_argument
    asked = "" if argument is None else f" {argument}: {_at(quantity)}"
    lines = [
        f"{quantity.long_name[:1].upper()}{quantity.long_name[1:]}, {quantity.symbol}, of a"
        " mechanism, a batch or a list of runs.",
        "",
        quantity.description,
        "",
        "Args:",
        "    mechanism: as for :func:`jaxgdp.measure`.",
        *([f"   {asked}"] if asked else []),
        f"    {', '.join(_SETTINGS)}: as for :func:`jaxgdp.measure`.",
        "",
        "Returns:",
        f"    Bracket; report the {quantity.safe_side} side.",
        "",
        "Raises:",
        "    ValueError, TypeError: as by :func:`jaxgdp.measure`.",
    ]
    return "\n".join(lines)


def _at(quantity: Quantity) -> str:
    """The argument of a quantity, for its help."""
    return f"what it is asked at, a number or an array; default {quantity.default:g}."
