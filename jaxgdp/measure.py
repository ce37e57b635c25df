"""Certified numbers of many mechanisms in one call, without keeping their curves."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import numpy as np

from . import options
from .accounting.question import Question
from .accounting.run import engine
from .accounting.run.executors import by_name
from .accounting.run.lower_bound_member import answer as achieved_answer
from .accounting.run.nested import answer as nested_answer
from .accounting.run.nested import narrowed
from .bracket import STATUS, Bracket
from .deprecation import renamed_arguments
from .mechanisms import as_composition
from .numerics.showing import cells, html_table, short, sides
from .numerics.validation import broadcast, floor_rate, on_host, relative_width
from .progress import counting
from .quantities import registry
from .tradeoff import dominating

QUANTITIES = registry.REGISTRY.keys()  # a view: whatever is registered


# that a batch is cut into for the workers of a client, at least, unless they would be too small
_PIECES = 64
_SMALLEST = 16  # settings of a piece


class Measured(NamedTuple):
    """What :func:`measure` found; arrays have the common shape of the mechanism and of what it was
    asked at.

    Attributes:
        brackets: quantity → :class:`Bracket`; report the upper side, of "beta" and "bayes_risk" the
            lower one.
        at: quantity → the δ, ε, FPR, prior or approximation it was asked at; only those that have one.
        status: quantity → codes of ``jaxgdp.bracket.STATUS``: 0 where ``rtol`` was reached, 1 where
            not; 2 where the two sides contradicted each other, so that the bracket is all that the
            quantity can be. Brackets hold in any case.
        lattice_size: lattice points used.
        rtol, fpr_floor: as asked.
    """

    brackets: dict[str, Bracket]
    at: dict[str, Any]
    status: Mapping[str, Any]
    lattice_size: Any
    rtol: float
    fpr_floor: Any

    def __repr__(self) -> str:
        head = (
            f"Measured(shape {np.shape(self.worst)}, rtol={self.rtol:g},"
            f" fpr_floor={short(self.fpr_floor)}"
        )
        return (
            head
            + "".join(
                f",\n  {self._title(name)}: {sides(b)}, {self._told(name)}"
                for name, b in self.brackets.items()
            )
            + ")"
        )

    def _title(self, name: str) -> str:
        return (
            name
            if name not in self.at
            else f"{name} at {registry.named(name).own_argument} = {short(self.at[name])}"
        )

    def _told(self, name: str) -> str:
        return STATUS[int(np.max(self.status[name]))] if np.size(self.status[name]) else STATUS[0]

    def _repr_html_(self) -> str:
        shape = np.shape(self.worst)
        rows = []
        for index in np.ndindex(*shape):
            for name, bracket in self.brackets.items():
                low, high = (np.broadcast_to(side, shape)[index] for side in bracket)
                at = (
                    ""
                    if name not in self.at
                    else f"{np.broadcast_to(self.at[name], shape)[index]:g}"
                )
                report, told = (
                    registry.named(name).safe_side,
                    STATUS[int(np.broadcast_to(self.status[name], shape)[index])],
                )
                rows.append(
                    (*([index] if shape else []), name, at, *cells(low, high), report, told)
                )
        header = (
            *(["setting"] if shape else []),
            "quantity",
            "at",
            "lower",
            "upper",
            "report",
            "status",
        )
        return html_table(f"rtol {self.rtol:g}, FPR floor {short(self.fpr_floor)}", header, rows)

    @property
    def worst(self):
        """The largest code of all quantities, by setting."""
        return functools.reduce(np.maximum, self.status.values(), np.zeros_like(self.lattice_size))


@renamed_arguments(d="approximation")
def measure(
    mechanism,
    quantities=("mu", "regret"),
    rtol=options.RTOL,
    fpr_floor: Any = options.FPR_FLOOR,
    adjacency=options.ADJACENCY,
    delta: Any = options.DELTA,
    epsilon: Any = options.EPSILON,
    fpr: Any = options.FPR,
    approximation: Any = options.APPROXIMATION,
    prior: Any = options.PRIOR,
    progress=None,
    nested: bool = True,
    executor: str | None = None,
    client=None,
    **others: Any,
) -> Measured:
    """Certified quantities of a batch of mechanisms, each computed only as far out as they need.

    Much cheaper than the whole curves of :func:`tradeoff`; thousands of compositions make one call.

    Args:
        mechanism: a mechanism or composition, scalar or batched.
        quantities: any of "mu", "regret", "advantage", "epsilon", "delta", "tpr", "beta",
            "bayes_risk", "approximate_mu" and whatever else is registered (``jaxgdp.quantities``).
        rtol: relative width asked of every bracket (of the regret: a width of rtol/10), in [1e-8,
            1).
        fpr_floor: FPR floor of μ and of the regret, in [1e-300, 0.5).
        adjacency: "add_remove", "add", "remove", or "replace_one" where that is sound.
        delta: δ of "epsilon".
        epsilon: ε of "delta", nats.
        fpr: FPR of "tpr" and "beta".
        approximation: d of "approximate_mu".
        prior: of "bayes_risk", the probability that the record is absent, in (0, 1).
        progress: called with the number of settings finished, as they finish; or True for a bar
            with the settings done, how many a second and the time left.
        nested: whether brackets shall lie within those that a coarser ``rtol`` gives; the levels
            1e-3, 1e-4, … down to ``rtol`` are then all computed.
        executor: "eager" (NumPy, at once), "compiled" (JAX, for many settings), "product" (the same
            without an FFT, for devices that have none of 64 bits) or "float32" (32 bits on the
            device, the rest on its host: wider brackets); None lets the environment variable
            ``JAXGDP_EXECUTOR`` decide, else the number of settings and what is compiled already.
        client: ``dask.distributed.Client`` or the address of a scheduler (extra ``scale``): its
            workers compute, in pieces of up to 1024 settings. Quantities of your own have to be
            registered there, too.
        **others: what quantities registered by others are asked at.

        ``fpr_floor``, ``delta``, ``epsilon``, ``fpr``, ``approximation`` and ``prior`` are numbers or arrays
        that broadcast with the mechanism's shape.

    Returns:
        :class:`Measured`.

    Raises:
        ValueError: an argument is out of range, shapes do not broadcast or a quantity is unknown.
        TypeError: the mechanism or an argument is traced by JAX, or an argument is unknown.

    Example:
        >>> import jaxgdp
        >>> batch = jaxgdp.compose([(jaxgdp.Gaussian([2.0, 4.0]), 1), (jaxgdp.Laplace(10.0), 3)])
        >>> measure(batch, quantities=("mu", "epsilon"), delta=[1e-5, 1e-6]).brackets["mu"].upper.shape
        (2,)
    """
    on_host(
        "measure", mechanism, fpr_floor, rtol, delta, epsilon, fpr, approximation, prior, others
    )
    mechanism = as_composition(mechanism)
    given = {
        "delta": delta,
        "epsilon": epsilon,
        "fpr": fpr,
        "approximation": approximation,
        "prior": prior,
    } | others
    asked = registry.checked_arguments("measure", given)
    records = registry.select(quantities)
    at = {
        record.name: asked[record.own_argument]
        for record in records
        if record.own_argument is not None
    }
    floor = floor_rate("fpr_floor", fpr_floor)
    paired, order = dominating(mechanism, adjacency)
    used = {
        record.own_argument: at[record.name]
        for record in records
        if record.own_argument is not None
    }
    shape = broadcast(mechanism=np.empty(mechanism.shape), fpr_floor=floor, **used)
    axes = len(mechanism.shape)

    def rows(value):
        return value if np.ndim(value) == 0 else np.broadcast_to(value, shape).reshape(-1)

    depths = [record.rate(at.get(record.name)) for record in records if record.rate is not None]
    question = Question(
        rtol=float(relative_width("rtol", rtol)),
        fpr_floor=rows(floor),
        adjacency=order,
        asked=tuple(
            (record, rows(at[record.name]) if record.name in at else None) for record in records
        ),
        deepest=functools.reduce(np.minimum, (rows(depth) for depth in depths)) if depths else None,
    )

    def spread(leaf):
        new = len(shape) - axes
        leaf = np.asarray(leaf).reshape((1,) * new + leaf.shape)
        return np.broadcast_to(leaf, shape + leaf.shape[len(shape) :]).reshape(
            (-1,) + leaf.shape[len(shape) :]
        )

    by_name(executor)
    how = "nested" if nested else "plain"
    with counting(progress, "measuring", int(np.prod(shape))) as count:
        found = _answer(
            how, jax.tree.map(spread, paired.stacked()), question, executor, client, count
        )
    monotone = tuple(entry for entry in question.asked if entry[0].monotone)
    for achieved in paired.lower_bound_mechanisms() if monotone else ():
        seen = dataclasses.replace(question, asked=monotone)
        attacks = _answer(
            "achieved", jax.tree.map(spread, achieved.stacked()), seen, executor, client
        ).results
        results = {
            record.name: narrowed(record, found.results[record.name], attacks[record.name])
            for record, _ in monotone
        }
        found = found._replace(results=found.results | results)
    brackets, status = {}, {}
    for record in records:
        sides = (np.reshape(side, shape) for side in found.results[record.name])
        brackets[record.name], contradicted = record.settle(Bracket(*sides))
        status[record.name] = record.status(brackets[record.name], contradicted, question.rtol)
    sizes = np.reshape(found.sizes, shape)
    at = {name: float(value) if np.ndim(value) == 0 else value for name, value in at.items()}
    return Measured(
        brackets, at, status, sizes, question.rtol, float(floor) if np.ndim(floor) == 0 else floor
    )


class _Found(NamedTuple):
    """The part of an answer that is read here."""

    results: dict[str, Bracket]
    sizes: Any


def _answer(how, groups, question: Question, executor, client, progress=None) -> _Found:
    """Numbers of a flat batch, computed here or by the workers of a client."""
    if client is None:
        return _answer_here((how, groups, question, executor), progress)
    from .scale.cluster import each
    from .scale.layout import SETTINGS

    number = groups[0][1].shape[0]
    size = int(np.clip(-(-number // _PIECES), _SMALLEST, SETTINGS))
    pieces = []
    for start in range(0, number, size):
        rows = np.arange(start, min(start + size, number))
        part = question.take(rows, number)
        # quantities travel by name: what is pickled by value would be a new program for every piece
        asked = tuple((record.name, value) for record, value in part.asked)
        pieces.append(
            (
                start,
                (how, engine.take(groups, rows), dataclasses.replace(part, asked=asked), executor),
            )
        )
    results = {
        record.name: Bracket(np.empty(number), np.empty(number)) for record, _ in question.asked
    }
    sizes = np.empty(number, np.int64)
    for start, found in each(client, _piece, pieces):
        rows = slice(start, start + len(found.sizes))
        sizes[rows] = found.sizes
        for name, bracket in found.results.items():
            results[name].lower[rows], results[name].upper[rows] = bracket
        if progress is not None:
            progress(len(found.sizes))
    return _Found(results, sizes)


def _piece(piece) -> tuple[int, _Found]:
    """What a worker does."""
    start, (how, groups, question, executor) = piece
    asked = tuple((registry.named(name), value) for name, value in question.asked)
    return start, _answer_here((how, groups, dataclasses.replace(question, asked=asked), executor))


def _answer_here(piece, progress=None) -> _Found:
    how, groups, question, executor = piece
    who = by_name(executor)
    if how == "achieved":
        found = achieved_answer(groups, question, executor=who)
    else:
        answer = nested_answer if how == "nested" else engine.answer
        found = answer(groups, question, progress=progress, executor=who)
    return _Found(found.results, found.sizes)
