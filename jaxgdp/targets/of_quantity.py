"""A target for any quantity of the registry, whether or not it has a class of its own."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtr

from .. import options
from ..measure import measure
from ..mechanisms import Gaussian
from ..numerics.shapes import Array
from ..numerics.showing import short
from ..numerics.validation import finite
from ..quantities.base import Quantity
from ..quantities.registry import named
from .base import DEEPEST, HIGHEST_FLOOR, REGISTRY, Target, first

_LEAST_MU, _LARGEST_MU = 1e-4, 1e2
_HALVINGS = 50
_INSIDE = 1.0 + 1e-9  # from the ends of that range, where a search for μ stops
_TABLE = 24  # Gaussian curves that stand for all, where a quantity has no closed form


@dataclass(frozen=True)
class OfQuantity(Target):
    """The safe side of any registered quantity on the right side of a value: at most it, or at
    least it where less privacy means less.

    Args:
        quantity: name, as for :func:`jaxgdp.measure`.
        value: the goal, any shape.
        at: the argument of the quantity (δ of "epsilon", ε of "delta", an FPR, a prior, …); its
            default where not given.

    Raises:
        ValueError: the quantity is unknown or does not fall and rise with privacy ("regret"), a
            number is out of range, or guessing reaches the goal whatever the noise.

    Example:
        >>> OfQuantity("delta", 1e-6, at=[1.0, 2.0]).shape
        (2,)
    """

    quantity: str  # type: ignore[misc]
    value: Any
    at: Any = None

    goal_field: ClassVar[str] = "value"
    option: ClassVar[str] = "value"
    meaning: ClassVar[str] = "safe side of --quantity, any that `jaxgdp quantities` lists"

    def __post_init__(self):
        asked = named(self.quantity)
        if not asked.monotone:
            targets = REGISTRY.values()
            own = [each.__name__ for each in targets if vars(each).get("quantity") == asked.name]
            raise ValueError(
                f"quantity must not be {asked.name!r}, which does not fall steadily with the noise"
                + "".join(f": use targets.{name}" for name in own[:1])
            )
        if self.at is None:
            object.__setattr__(self, "at", np.nan if asked.argument is None else asked.default)
        elif asked.argument is None:
            asked.checked(self.at)
        super().__post_init__()

    @property
    def safe(self) -> str:  # type: ignore[override]
        """The side that decides."""
        return self.asked.safe_side

    @property
    def asked(self) -> Quantity:
        """The quantity itself."""
        return named(self.quantity)

    @property
    def has_closed_form(self) -> bool:
        """Whether the quantity has one, and the goal is that of a μ in the range searched."""
        if self.asked.of_gaussian is None:
            return False
        mu = self.gaussian_mu()
        return bool(np.all((mu > _LEAST_MU * _INSIDE) & (mu < _LARGEST_MU / _INSIDE)))

    def numbers(self):
        return ("value", "at")

    def describe(self):
        at = (
            ""
            if self.asked.argument is None
            else f" at {self.asked.argument} {short(np.squeeze(self.at))}"
        )
        return f"{self.quantity} {short(np.squeeze(self.value))}{at}"

    def _checked(self, name: str, value: Any) -> Any:
        if name == "at":
            return (
                np.asarray(value, float)
                if self.asked.argument is None
                else self.asked.checked(value)
            )
        return finite(name, value)

    def _feasible(self) -> None:
        idle = np.asarray(self.asked.idle(self.at), float)
        bad = self.value <= idle if self.asked.grows else self.value >= idle
        if np.any(bad):
            value, reached = first(bad, self.value, idle)
            side = "above" if self.asked.grows else "below"
            raise ValueError(
                f"value must be {side} {reached:g}, where {self.quantity} is when nothing is"
                f" released, got {value:g}"
            )

    def parameters(self) -> dict[str, Any]:
        if self.asked.argument is None:
            return {"fpr_floor": self._floor()}
        if self.asked.argument == "fpr_floor":
            return {"fpr_floor": self.at}
        return {self.asked.argument: self.at, "fpr_floor": self._floor()}

    def _floor(self):
        """As far out as the goal is decided, where that is known; else the default, or further."""
        deep = 0.5 * self.place(np.clip(self.gaussian_mu(), _LEAST_MU, _LARGEST_MU))
        known = self.asked.argument == "fpr" or self.asked.threshold is not None
        return np.clip(
            deep if known else np.minimum(deep, options.FPR_FLOOR), DEEPEST, HIGHEST_FLOOR
        )

    def equivalent_mu(self, value: Array) -> Array:
        value, at = np.broadcast_arrays(np.asarray(value, float), self.at)
        low, high = (
            np.full(value.shape, np.log(_LEAST_MU)),
            np.full(value.shape, np.log(_LARGEST_MU)),
        )
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            found = self._of_gaussian(np.exp(middle), at)
            less = found < value if self.asked.grows else found > value
            low, high = np.where(less, middle, low), np.where(less, high, middle)
        return np.exp(0.5 * (low + high))

    def of_gaussian(self, mu: Array) -> Array:
        return self._of_gaussian(mu, self.at)

    def _of_gaussian(self, mu: Array, at: Array) -> Array:
        if self.asked.of_gaussian is not None:
            with np.errstate(all="ignore"):
                return np.asarray(self.asked.of_gaussian(mu, at))
        mu, at = np.broadcast_arrays(np.asarray(mu, float), at)
        found = np.empty(mu.shape)
        for each in np.unique(at):
            here = np.isnan(at) if np.isnan(each) else at == each
            grid, values = _table(self.asked, None if np.isnan(each) else float(each))
            found[here] = np.interp(np.log(mu[here]), grid, values)
        return found

    def place(self, mu: Array) -> Array:
        if self.asked.argument == "fpr":
            return np.clip(self.at, DEEPEST, HIGHEST_FLOOR)
        slope = 0.0 if self.asked.threshold is None else self.asked.threshold(self.at)
        return np.clip(ndtr(-mu / 2.0 - slope / mu), DEEPEST, HIGHEST_FLOOR)

    def without_noise(self, detected: Array, adjacency: str) -> Array:
        """The worst the quantity can be: the search finds that no noise meets the target."""
        worst = self.asked.extent[1] if self.asked.grows else self.asked.extent[0]
        return np.full(np.broadcast_shapes(np.shape(detected), self.shape), worst)


@functools.lru_cache(maxsize=64)
def _table(quantity: Quantity, at: float | None) -> tuple[Any, Any]:
    """(log μ, value) of a few Gaussian curves, monotone: for steering only."""
    grid = np.linspace(np.log(_LEAST_MU), np.log(_LARGEST_MU), _TABLE)
    asked: dict[str, Any] = {} if quantity.argument is None else {quantity.argument: at}
    found = measure(
        Gaussian(np.exp(-grid)), quantity.name, rtol=1e-2, nested=False, **asked
    ).brackets[quantity.name]
    sign = 1.0 if quantity.grows else -1.0
    return grid, sign * np.maximum.accumulate(
        sign * np.asarray(found.upper if quantity.grows else found.lower)
    )
