"""The sides to report, as plain numbers: the core that the adapters of other libraries share."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..measure import measure
from ..mechanisms import Composition
from ..mechanisms.base import Mechanism
from ..numerics.shapes import Array, ArrayLike
from ..quantities import registry

# false positive rates at which other libraries give a curve where none are asked for
_FPRS = 10.0 ** np.array([-10, -8, -6, -4, -3, -2, -1])


def plain(value: ArrayLike) -> Any:
    """A float for a number, else an array."""
    return float(value) if np.ndim(value) == 0 else np.asarray(value)  # type: ignore[arg-type]


def safe_side(mechanism: Mechanism | Composition, quantity: str, **settings: Any) -> Any:
    """The side of a quantity to report; a float for a number, else an array.

    Args:
        mechanism: a mechanism or composition.
        quantity: name of a registered quantity.
        **settings: of :func:`jaxgdp.measure`.
    """
    bracket = measure(mechanism, quantity, **settings).brackets[quantity]
    return plain(getattr(bracket, registry.named(quantity).safe_side))


class MuAndRegret(NamedTuple):
    """μ at FPRs down to a floor, and the regret of reporting it; both upper bounds."""

    mu: float
    regret: float


def mu_and_regret(
    mechanism: Mechanism | Composition, fpr_floor: float, **settings: Any
) -> MuAndRegret:
    """μ at FPRs down to the floor, and the regret of reporting it."""
    found = measure(mechanism, ("mu", "regret"), fpr_floor=fpr_floor, **settings).brackets
    return MuAndRegret(float(found["mu"].upper), float(found["regret"].upper))


def on_closed_unit(
    mechanism: Mechanism | Composition,
    quantity: str,
    argument: str,
    at: Array,
    at_zero: ArrayLike,
    at_one: ArrayLike,
) -> Any:
    """The safe side of a quantity at arguments in [0, 1], whose values at 0 and 1 are known."""
    inner = (at > 0.0) & (at < 1.0)
    found = safe_side(mechanism, quantity, **{argument: np.where(inner, at, 0.5)})
    return plain(np.where(inner, found, np.where(at == 0.0, at_zero, at_one)))


def default_fprs(advantage: float) -> Array:
    """1e-10, …, 0.1 and (1 − advantage)/2."""
    return np.append(_FPRS, 0.5 * (1.0 - advantage))


class MuOrRegret:
    """``get_mu`` and ``get_regret`` of an accountant that has ``get_mu_and_regret``."""

    def get_mu_and_regret(self, fpr_floor: float | None = None) -> MuAndRegret:
        """μ at FPRs down to the floor and the regret of reporting it, both upper bounds."""
        raise NotImplementedError

    def get_mu(self, fpr_floor: float | None = None) -> float:
        """μ at FPRs down to the floor, an upper bound."""
        return self.get_mu_and_regret(fpr_floor)[0]

    def get_regret(self, fpr_floor: float | None = None) -> float:
        """The loss from reporting :meth:`get_mu` for the whole curve, an upper bound."""
        return self.get_mu_and_regret(fpr_floor)[1]
