"""Certified numbers of many mechanisms in one call, without keeping their curves."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import numpy as np

from . import engine
from .bracket import Bracket
from .mechanisms import as_composition
from .tradeoff import dominating
from .validation import checked, floor_rate, one_of, open_unit, relative_width

QUANTITIES = ("mu", "regret", "advantage", "epsilon", "delta", "tpr", "approximate_mu")


class Measured(NamedTuple):
    """What :func:`measure` found; arrays have the mechanism's shape.

    Attributes:
        brackets: quantity → :class:`Bracket`; report the upper side.
        at: quantity → the δ, ε, FPR or d it was asked at; only those that have one.
        status: 0 where ``rtol`` was reached, else a code of ``jaxgdp.engine.STATUS``; brackets hold all the same.
        lattice_size: lattice points used.
        rtol, fpr_floor: as asked.
    """

    brackets: dict[str, Bracket]
    at: dict[str, float]
    status: Any
    lattice_size: Any
    rtol: float
    fpr_floor: float


def measure(
    mechanism,
    quantities=("mu", "regret"),
    rtol=1e-3,
    fpr_floor=1e-10,
    adjacency="add_remove",
    delta=1e-5,
    epsilon=1.0,
    fpr=1e-3,
    d=1e-10,
    progress=None,
) -> Measured:
    """Certified quantities of a batch of mechanisms, each computed only as far out as they need.

    Much cheaper than the whole curves of :func:`tradeoff`; thousands of compositions make one call.

    Args:
        mechanism: a mechanism or composition, scalar or batched.
        quantities: any of "mu", "regret", "advantage", "epsilon", "delta", "tpr", "approximate_mu".
        rtol: relative width asked of the μ bracket, in [1e-8, 1). fpr_floor: FPR floor of μ, in [1e-300, 0.5).
        adjacency: "add_remove", "add", "remove", or "replace_one" where that is sound.
        delta: δ of "epsilon". epsilon: ε of "delta", nats. fpr: FPR of "tpr". d: of "approximate_mu".
        progress: called with the number of settings finished, as they finish.

    Returns:
        :class:`Measured`.

    Raises:
        ValueError: an argument is out of range or a quantity unknown (before tracing).

    Example:
        >>> import jaxgdp
        >>> batch = jaxgdp.compose([(jaxgdp.Gaussian([2.0, 4.0]), 1), (jaxgdp.Laplace(10.0), 3)])
        >>> measure(batch, quantities=("mu", "epsilon")).brackets["mu"].upper.shape
        (2,)
    """
    mechanism = as_composition(mechanism)
    parameters = {
        "epsilon": float(open_unit("delta", delta)),
        "delta": float(checked("epsilon", epsilon, "a finite number >= 0", lambda a: a >= 0.0)),
        "tpr": float(open_unit("fpr", fpr)),
        "approximate_mu": float(open_unit("d", d)),
    }
    quantities = (quantities,) if isinstance(quantities, str) else tuple(quantities)
    names = tuple((one_of("quantity", q, QUANTITIES), parameters.get(q)) for q in quantities)
    depths = [parameters[q] for q in quantities if q in ("epsilon", "tpr", "approximate_mu")]
    paired, order = dominating(mechanism, adjacency)
    question = engine.Question(
        rtol=float(relative_width("rtol", rtol)),
        fpr_floor=float(floor_rate("fpr_floor", fpr_floor)),
        adjacency=order,
        names=names,
        deepest=min(depths) if depths else None,
    )
    shape = mechanism.shape
    flat = jax.tree.map(lambda a: a.reshape((-1,) + a.shape[len(shape) :]), paired.stacked())
    found = engine.answer(flat, question, progress=progress)
    brackets = {}
    for name, parameter in names:
        bracket = found.results[name if parameter is None else f"{name}@{parameter:g}"]
        brackets[name] = Bracket(*(np.reshape(side, shape) for side in bracket))
    at = {name: parameter for name, parameter in names if parameter is not None}
    status, sizes = np.reshape(found.status, shape), np.reshape(found.sizes, shape)
    return Measured(brackets, at, status, sizes, question.rtol, question.fpr_floor)
