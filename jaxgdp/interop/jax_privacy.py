"""jax_privacy: an accountant function, and what an execution plan spends.

Needs dp_accounting (``pip install "jaxgdp[interop]"``), not jax_privacy itself.

    from jaxgdp.interop.jax_privacy import accountant_fn

    plan_config.calibrate(epsilon=1.0, delta=1e-5, accountant_fn=accountant_fn)

Versions that take an accountant object instead get
``accountant=accountant_fn(NeighboringRelation.REPLACE_SPECIAL)``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..mechanisms import Composition
from .dp_accounting.events import from_event, relation_name

if TYPE_CHECKING:
    import dp_accounting

    from .dp_accounting.accountant import Accountant


def accountant_fn(neighboring_relation: dp_accounting.NeighboringRelation) -> Accountant:
    """A fresh accountant for a neighbouring relation: what jax_privacy calls an ``AccountantFn``.

    Args:
        neighboring_relation: a ``dp_accounting.NeighboringRelation``.

    Raises:
        ValueError: an unknown relation.

    Example:
        >>> import dp_accounting
        >>> accountant = accountant_fn(dp_accounting.NeighboringRelation.REPLACE_SPECIAL)
        >>> accountant.compose(dp_accounting.GaussianDpEvent(2.0), 4).get_mu().__round__(6)
        1.0
    """
    from .dp_accounting import Accountant

    return Accountant(neighboring_relation)


def from_plan(plan: Any, neighboring_relation: Any = None) -> Composition:
    """The composition that a ``DPExecutionPlan`` spends, from its ``dp_event``.

    Args:
        plan: an execution plan, or anything with a ``dp_event``.
        neighboring_relation: a ``NeighboringRelation`` or its name; default the plan's own, where
            it has one, else REPLACE_SPECIAL, which plans of older versions assume.

    Returns:
        A :class:`jaxgdp.Composition`, for the default adjacency, both orders.

    Raises:
        ValueError: no ``dp_event``, an unknown relation, or an event that is not supported; names
            it.
    """
    if not hasattr(plan, "dp_event"):
        raise ValueError(f"plan must have a dp_event, got {type(plan).__name__}")
    if neighboring_relation is None:
        neighboring_relation = getattr(plan, "neighboring_relation", "REPLACE_SPECIAL")
    return from_event(plan.dp_event, relation_name(neighboring_relation))
