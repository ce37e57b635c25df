"""``jaxgdp.measure``: certified quantities of a mechanism, a batch or a list of runs."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import jax
import numpy as np

from .. import options
from ..accounting.question import Question
from ..accounting.run.executors import by_name
from ..accounting.run.nested import narrowed
from ..bracket import Bracket
from ..deprecation import keywords_after, renamed_arguments
from ..mechanisms import Composition, as_composition
from ..mechanisms.base import AccountedBy, Mechanism
from ..numerics.optional import Client
from ..numerics.shapes import Array, ArrayLike
from ..numerics.validation import broadcast, floor_rate, on_host, relative_width
from ..progress import counting
from ..quantities import registry
from ..quantities.base import Quantity
from ..quantities.table import documented
from ..tradeoff import dominating
from . import pieces, several
from .pieces import Count, Found, Piece
from .result import Measured

Measurable: TypeAlias = Mechanism | Composition | AccountedBy
DEFAULT = ("mu", "regret")  # quantities


@renamed_arguments(d="approximation")
@keywords_after(
    2,
    *("rtol", "fpr_floor", "adjacency", "delta", "epsilon", "fpr", "approximation", "prior"),
    *("progress", "nested", "executor", "client"),
)
@documented
def measure(
    mechanism: Measurable | Sequence[Measurable],
    quantities: str | Iterable[str] = DEFAULT,
    *,
    rtol: float = options.RTOL,
    fpr_floor: ArrayLike = options.FPR_FLOOR,
    adjacency: str = options.ADJACENCY,
    delta: ArrayLike | None = None,
    epsilon: ArrayLike | None = None,
    fpr: ArrayLike | None = None,
    approximation: ArrayLike | None = None,
    prior: ArrayLike | None = None,
    progress: Count | bool | None = None,
    nested: bool = True,
    executor: str | None = None,
    client: Client | str | None = None,
    **others: ArrayLike,
) -> Measured:
    """Certified quantities of a batch of mechanisms, each computed only as far out as they need.

    Much cheaper than the whole curves of :func:`tradeoff`; thousands of compositions make one call.
    A list of runs is a batch of separate runs, each on its own data: the first axis of every number
    counts them. (Runs on the same data add up: :func:`jaxgdp.compose` makes one of them.)

    Args:
        mechanism: a mechanism or composition, scalar or batched; or a list of those. A run whose
            sampler is "unknown" (:func:`jaxgdp.run`) is the list of its two mechanisms.
        quantities: any of "mu", "regret", "advantage", "epsilon", "delta", "tpr", "beta",
            "bayes_risk", "approximate_mu" and whatever else is registered (``jaxgdp.quantities``).
        {rtol, fpr_floor, adjacency, delta, epsilon, fpr, approximation, prior}
        progress: called with the number of settings finished, as they finish; True draws a bar.
        nested: whether brackets shall lie within those that a coarser ``rtol`` gives; the levels
            1e-3, 1e-4, … down to ``rtol`` are then all computed.
        executor: "eager" (NumPy, at once), "compiled" (JAX, for many settings), "product" (the same
            without an FFT, for devices that have none of 64 bits) or "float32" (32 bits on the
            device, the rest on its host: wider brackets); None lets the environment variable
            ``JAXGDP_EXECUTOR`` decide, else NumPy begins, and programs that compile beside it where
            that pays take over.
        client: ``dask.distributed.Client`` or the address of a scheduler (extra ``scale``): its
            workers compute, in pieces of up to 1024 settings. Quantities of your own have to be
            registered there, too.
        **others: arguments of other registered quantities. ``fpr_floor`` and the arguments of
            quantities are numbers or arrays that broadcast with the mechanism's shape.

    Returns:
        :class:`Measured`.

    Raises:
        ValueError: an argument is out of range, shapes do not broadcast, a quantity is unknown, or
            an argument of a quantity is given although no quantities are named.
        TypeError: the mechanism or an argument is traced by JAX, or an argument is unknown.

    Example:
        >>> import jaxgdp
        >>> batch = jaxgdp.compose([(jaxgdp.Gaussian([2.0, 4.0]), 1), (jaxgdp.Laplace(10.0), 3)])
        >>> measure(batch, ("mu", "epsilon"), delta=[1e-5, 1e-6]).mu.upper.shape
        (2,)
        >>> runs = [jaxgdp.Laplace(2.0), jaxgdp.Gaussian(2.0)]
        >>> measure(runs, "advantage").advantage.upper.round(4).tolist()
        [0.2212, 0.1974]
    """
    given = {
        "delta": delta, "epsilon": epsilon, "fpr": fpr, "approximation": approximation,
        "prior": prior,
    }  # fmt: skip
    given = {name: value for name, value in (given | others).items() if value is not None}
    on_host("measure", mechanism, fpr_floor, rtol, given)
    asked = registry.select(quantities)
    at = _arguments(asked, given)
    if quantities is DEFAULT:
        _refuse_what_nothing_takes(given)
    settings = _Settings(asked, at, rtol, fpr_floor, adjacency, nested, executor, client)
    by_name(executor)
    if isinstance(mechanism, AccountedBy) and len(mechanism.cases) > 1:
        mechanism = list(mechanism.cases.values())
    if isinstance(mechanism, (list, tuple)):
        batches = several.batches(
            [as_composition(run) for run in mechanism], fpr_floor=settings.floor, **at
        )
        with counting(
            progress, "measuring", sum(math.prod((len(b.runs), *b.shape)) for b in batches)
        ) as count:
            found = [_measured(batch.composition, settings, count) for batch in batches]
        return several.joined(batches, found)
    composition = as_composition(mechanism)  # type: ignore[arg-type]
    with counting(progress, "measuring", math.prod(settings.shape(composition))) as count:
        return _measured(composition, settings, count)


def _arguments(asked: tuple[Quantity, ...], given: Mapping[str, ArrayLike]) -> dict[str, Any]:
    """Argument → the checked value, for the arguments of the quantities."""
    checked = registry.checked_arguments("measure", given)
    needed = [q.own_argument for q in asked if q.own_argument is not None]
    return {name: checked[name] for name in needed}


def _refuse_what_nothing_takes(given: Mapping[str, ArrayLike]) -> None:
    """Refuse an argument of a quantity without the quantity: the default does not include it."""
    for name in given:
        takes = [q.name for q in registry.REGISTRY.values() if q.own_argument == name]
        if takes and not set(takes) & set(DEFAULT):
            raise ValueError(
                f"{name} is what {' and '.join(takes)} {'are' if takes[1:] else 'is'} asked at, and"
                f" the default quantities are {' and '.join(DEFAULT)}: write"
                f" measure(…, {takes[0]!r}, {name}=…) or jaxgdp.{takes[0]}(…, {name}=…)"
            )


# width over the width promised, below which no other mechanism is asked for a lower side
_NARROW = 0.01


class _Settings:
    """The checked question for every mechanism.

    Attributes:
        asked: the quantities.
        at: argument → its value, for the quantities that take it.
        floor: FPR floor.
    """

    def __init__(
        self,
        asked: tuple[Quantity, ...],
        at: dict[str, Any],
        rtol: float,
        fpr_floor: ArrayLike,
        adjacency: str,
        nested: bool,
        executor: str | None,
        client: Any,
    ):
        self.asked, self.at, self.adjacency = asked, at, adjacency
        self.floor: Array = floor_rate("fpr_floor", fpr_floor)
        self.rtol = float(relative_width("rtol", rtol))
        self.how = pieces.NESTED if nested else pieces.PLAIN
        self.executor, self.client = executor, client

    def shape(self, composition: Composition) -> tuple[int, ...]:
        """The common shape of a mechanism and of the arguments."""
        mechanism = np.empty(composition.shape)
        return broadcast(mechanism=mechanism, fpr_floor=self.floor, **self.at)

    def question(self, shape: tuple[int, ...], order: Any) -> Question:
        """The question for a flat batch."""

        def rows(value: Any) -> Any:
            return value if np.ndim(value) == 0 else np.broadcast_to(value, shape).reshape(-1)

        at = {q: self.at[q.own_argument] for q in self.asked if q.own_argument is not None}
        depths = [q.rate(at.get(q)) for q in self.asked if q.rate is not None]
        deepest = functools.reduce(np.minimum, (rows(d) for d in depths)) if depths else None
        return Question(
            rtol=self.rtol,
            fpr_floor=rows(self.floor),
            adjacency=order,
            asked=tuple((q, rows(at[q]) if q in at else None) for q in self.asked),
            deepest=deepest,
        )


def _measured(composition: Composition, settings: _Settings, progress: Count | None) -> Measured:
    """Quantities of one batch."""
    paired, order = dominating(composition, settings.adjacency)
    shape, axes = settings.shape(composition), len(composition.shape)
    question = settings.question(shape, order)

    def spread(leaf: Array) -> Array:
        new = len(shape) - axes
        leaf = np.asarray(leaf).reshape((1,) * new + leaf.shape)
        inner = leaf.shape[len(shape) :]
        return np.broadcast_to(leaf, shape + inner).reshape((-1,) + inner)

    def found_by(how: str, mine: Composition, question: Question, count: Count | None) -> Found:
        groups = jax.tree.map(spread, mine.stacked())
        return pieces.answer(
            Piece(how, groups, question, settings.executor), settings.client, count
        )

    found = found_by(settings.how, paired, question, progress)
    results = dict(found.results)
    monotone = tuple(entry for entry in question.asked if entry[0].monotone)
    for member in paired.lower_bound_mechanisms() if monotone else ():
        excess = [q.excess(results[q.name], settings.rtol) for q, _ in monotone]
        # (each takes as long as the first)
        wide = np.any(np.stack(excess) > _NARROW, axis=0)
        if not np.any(wide):
            break
        of_monotone = dataclasses.replace(question, asked=monotone)
        own = found_by(pieces.LOWER_BOUND, member, of_monotone, None).results
        for quantity, _ in monotone:
            before = results[quantity.name]
            more = narrowed(quantity, before, own[quantity.name])
            # (a setting has the same numbers beside whichever others)
            sides = (np.where(wide, *each) for each in zip(more, before, strict=True))
            results[quantity.name] = Bracket(*sides)
    return _settled(settings, shape, found._replace(results=results))


def _settled(settings: _Settings, shape: tuple[int, ...], found: Found) -> Measured:
    """Sides that were worked out on their own, compared and in the user's shape."""
    brackets, status = {}, {}
    for quantity in settings.asked:
        sides = Bracket(*(np.reshape(side, shape) for side in found.results[quantity.name]))
        brackets[quantity.name], contradicted = quantity.settle(sides)
        status[quantity.name] = quantity.status(
            brackets[quantity.name], contradicted, settings.rtol
        )
    at = {
        q.name: _number(settings.at[q.own_argument])
        for q in settings.asked
        if q.own_argument is not None
    }
    sizes, executors = np.reshape(found.sizes, shape), np.reshape(found.executors, shape)
    floor = _number(settings.floor)
    return Measured(brackets, at, status, sizes, settings.rtol, floor, executors[()])


def _number(value: Array) -> Array | float:
    """A plain float where there is one number."""
    return float(value) if np.ndim(value) == 0 else value
