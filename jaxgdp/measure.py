"""Certified numbers of many mechanisms in one call, without keeping their curves."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import numpy as np

from .accounting import engine
from .accounting.nested import answer as nested_answer
from .accounting.question import Question
from .bracket import Bracket
from .mechanisms import as_composition
from .numerics.validation import broadcast, floor_rate, nonnegative, one_of, open_unit, relative_width
from .quantities.registry import REGISTRY
from .tradeoff import dominating

QUANTITIES = ("mu", "regret", "advantage", "epsilon", "delta", "tpr", "beta", "bayes_risk", "approximate_mu")
_RATES = {"epsilon": "delta", "tpr": "fpr", "beta": "fpr", "approximate_mu": "d"}  # quantity → the rate it is asked at
_BAYES_DEPTH = 1e-6  # a relative accuracy no Bayes risk needs to be better than


class Measured(NamedTuple):
    """What :func:`measure` found; arrays have the common shape of the mechanism and of what it was asked at.

    Attributes:
        brackets: quantity → :class:`Bracket`; report the upper side, of "beta" and "bayes_risk" the lower one.
        at: quantity → the δ, ε, FPR, prior or d it was asked at; only those that have one.
        status: 0 where ``rtol`` was reached, else a code of ``jaxgdp.accounting.engine.STATUS``; brackets hold all the same.
        lattice_size: lattice points used.
        rtol, fpr_floor: as asked.
    """

    brackets: dict[str, Bracket]
    at: dict[str, Any]
    status: Any
    lattice_size: Any
    rtol: float
    fpr_floor: Any


def measure(
    mechanism,
    quantities=("mu", "regret"),
    rtol=1e-3,
    fpr_floor: Any = 1e-10,
    adjacency="add_remove",
    delta: Any = 1e-5,
    epsilon: Any = 1.0,
    fpr: Any = 1e-3,
    d: Any = 1e-10,
    prior: Any = 0.5,
    progress=None,
    nested: bool = True,
) -> Measured:
    """Certified quantities of a batch of mechanisms, each computed only as far out as they need.

    Much cheaper than the whole curves of :func:`tradeoff`; thousands of compositions make one call.

    Args:
        mechanism: a mechanism or composition, scalar or batched.
        quantities: any of "mu", "regret", "advantage", "epsilon", "delta", "tpr", "beta", "bayes_risk", "approximate_mu".
        rtol: relative width asked of the μ bracket, in [1e-8, 1).
        fpr_floor: FPR floor of μ and of the regret, in [1e-300, 0.5).
        adjacency: "add_remove", "add", "remove", or "replace_one" where that is sound.
        delta: δ of "epsilon". epsilon: ε of "delta", nats (the upper side never falls much below ``fpr_floor``: for a smaller δ give a
            smaller floor). fpr: FPR of "tpr" and "beta". d: of "approximate_mu".
        prior: of "bayes_risk", the probability that the record is absent, in (0, 1).
        progress: called with the number of settings finished, as they finish.
        nested: whether brackets shall lie within those that a coarser ``rtol`` gives; the levels 1e-3, 1e-4, … down to ``rtol`` are
            then all computed.

        ``fpr_floor``, ``delta``, ``epsilon``, ``fpr``, ``d`` and ``prior`` are numbers or arrays that broadcast with the
        mechanism's shape.

    Returns:
        :class:`Measured`.

    Raises:
        ValueError: an argument is out of range, shapes do not broadcast or a quantity is unknown (before tracing).

    Example:
        >>> import jaxgdp
        >>> batch = jaxgdp.compose([(jaxgdp.Gaussian([2.0, 4.0]), 1), (jaxgdp.Laplace(10.0), 3)])
        >>> measure(batch, quantities=("mu", "epsilon"), delta=[1e-5, 1e-6]).brackets["mu"].upper.shape
        (2,)
    """
    mechanism = as_composition(mechanism)
    asked = {
        "delta": open_unit("delta", delta),
        "epsilon": nonnegative("epsilon", epsilon),
        "fpr": open_unit("fpr", fpr),
        "d": open_unit("d", d),
        "prior": open_unit("prior", prior),
    }
    quantities = (quantities,) if isinstance(quantities, str) else tuple(quantities)
    quantities = tuple(dict.fromkeys(one_of("quantity", q, QUANTITIES) for q in quantities))
    parameter = {**_RATES, "delta": "epsilon", "bayes_risk": "prior"}
    at = {q: asked[parameter[q]] for q in quantities if q in parameter}
    floor = floor_rate("fpr_floor", fpr_floor)
    paired, order = dominating(mechanism, adjacency)
    used = {parameter[q]: value for q, value in at.items()}
    shape = broadcast(mechanism=np.empty(mechanism.shape), fpr_floor=floor, **used)
    axes = len(mechanism.shape)

    def rows(value):
        return value if np.ndim(value) == 0 else np.broadcast_to(value, shape).reshape(-1)

    depths = [at[q] for q in quantities if q in _RATES] + [_BAYES_DEPTH] * ("bayes_risk" in quantities)
    records = [REGISTRY[q] for q in quantities]
    question = Question(
        rtol=float(relative_width("rtol", rtol)),
        fpr_floor=rows(floor),
        adjacency=order,
        asked=tuple((record, rows(at[record.name]) if record.name in at else None) for record in records),
        deepest=functools.reduce(np.minimum, (rows(depth) for depth in depths)) if depths else None,
    )

    def spread(leaf):
        new = len(shape) - axes
        leaf = np.asarray(leaf).reshape((1,) * new + leaf.shape)
        return np.broadcast_to(leaf, shape + leaf.shape[len(shape) :]).reshape((-1,) + leaf.shape[len(shape) :])

    answer = nested_answer if nested else engine.answer
    found = answer(jax.tree.map(spread, paired.stacked()), question, progress=progress)
    excess = {r.name: r.excess(found.results[r.name], question.rtol) for r in records}
    brackets = {name: Bracket(*(np.reshape(side, shape) for side in found.results[name])) for name in quantities}
    brackets = {name: Bracket(np.minimum(low, high), high) for name, (low, high) in brackets.items()}
    status = {name: np.reshape(np.where(excess[name] <= 1.0, engine.OK, engine.WIDE), shape) for name in quantities}
    sizes = np.reshape(found.sizes, shape)
    at = {name: float(value) if np.ndim(value) == 0 else value for name, value in at.items()}
    return Measured(brackets, at, status, sizes, question.rtol, float(floor) if np.ndim(floor) == 0 else floor)
