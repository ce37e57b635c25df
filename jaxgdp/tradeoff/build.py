"""From a mechanism to its certified trade-off curve."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import jax
import numpy as np

from .. import options
from ..accounting.question import Question
from ..accounting.run import lower_bound_member as attacks_on
from ..accounting.run import nested
from ..bracket import Bracket
from ..deprecation import keywords_after
from ..mechanisms import Composition, as_composition
from ..mechanisms.base import AccountedBy, Mechanism
from ..mechanisms.dominating import dominating
from ..numerics.validation import floor_rate, on_host, relative_width
from ..progress import counting
from ..quantities import registry
from ..quantities.table import documented
from ..vocabulary import explain_arguments
from .curve import TradeoffCurve


@keywords_after(1, "rtol", "fpr_floor", "adjacency")
@explain_arguments
@documented
def tradeoff(
    mechanism: Mechanism | Composition | AccountedBy,
    *,
    rtol: float = options.RTOL,
    fpr_floor: float = options.FPR_FLOOR,
    adjacency: str = options.ADJACENCY,
    progress: Callable[[int], object] | bool | None = None,
) -> TradeoffCurve:
    """Certified trade-off curve of a mechanism, down to error rates of 1e-300.

    The dominating pair bounds privacy loss from above, an explicit attack from below; both come
    from the same lattice, which is refined until they agree on μ. Up to four numbers at once, of a
    single mechanism, are computed for themselves where the curve leaves them wider than ``rtol``.

    Args:
        mechanism: a mechanism or composition, scalar or batched.
        {rtol, fpr_floor}
        adjacency: "add_remove" (both orders), "remove" (slopes of P against Q as they are), "add",
            or "replace_one" (both orders of the pair of replacing a record; Gaussian and Laplace
            noise then count for half).
        progress: called with the number of settings finished, as they finish; or True for a bar.

    Raises:
        ValueError: an argument is out of range, or no sound pair is known for the adjacency.
        TypeError: the mechanism or an argument is traced by JAX.

    Example:
        >>> import jaxgdp
        >>> run = jaxgdp.dpsgd(noise_multiplier=2.0, sampling_prob=1.0, num_steps=4)
        >>> curve = jaxgdp.tradeoff(run)
        >>> bool(curve.epsilon(delta=1e-5).contains(jaxgdp.gdp.epsilon(delta=1e-5, mu=1.0)))
        True
    """
    on_host("tradeoff", mechanism, rtol, fpr_floor)
    composition = as_composition(mechanism)
    paired, order = dominating(composition, adjacency)
    mu = registry.named("mu")
    width = float(relative_width("rtol", rtol))
    floor = float(floor_rate("fpr_floor", fpr_floor))
    question = Question(
        rtol=width,
        fpr_floor=floor,
        adjacency=order,
        asked=((mu, None),),
        deepest=options.DEEPEST,
        keep=True,
    )
    groups = paired.stacked()
    axes = len(composition.shape)
    flat = jax.tree.map(lambda a: a.reshape((-1,) + a.shape[axes:]), groups)
    with counting(progress, "measuring", int(np.prod(composition.shape))) as count:
        found = nested.answer(flat, question, progress=count)
    sides, attacks = found.results["mu"], []
    for achieved in paired.lower_bound_mechanisms():
        own = jax.tree.map(lambda a: a.reshape((-1,) + a.shape[axes:]), achieved.stacked())
        seen = attacks_on.answer(own, question)
        sides = nested.narrowed(mu, sides, seen.results["mu"])
        attacks.append(tuple(seen.curves))
    tail = np.array([row[-1].tail_mu for row in found.curves])
    known = {mu.name: Bracket(*(np.reshape(side, composition.shape) for side in sides))}
    curve = TradeoffCurve(
        composition,
        adjacency,
        width,
        floor,
        np.zeros(composition.shape),
        tail.reshape(composition.shape),
        tuple(found.curves),
        tuple(attacks),
        known,
        tuple(found.of_levels),
    )
    return dataclasses.replace(curve, status=curve.answer(mu.name)[1])
