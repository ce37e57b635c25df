"""What all jobs of one call read and none changes, and who computes each of them.

An executor that is named computes everything. Where none is, NumPy answers, and what it does often
is compiled beside it (``background``) and does the rest: a process remembers what it has compiled
and how much NumPy has done."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ...adjacency import Adjacency
from ...mechanisms.composition import collapse_gaussians
from ...numerics.shapes import Array, Float
from ..question import Kind, Question, Rates
from ..steer.lattices import Lattices
from . import executors
from .background import BACKGROUND
from .executors import COMPILED, Executor
from .rows import take

# what several tasks have in common that one compiled program serves: its stage, and what decides
# the program beside the mechanisms' classes
Program: TypeAlias = tuple
_COMPILED: set[Program] = set()  # programs that have been compiled, with the mechanisms' classes


_EAGER_WORK_SO_FAR: dict[Program, float] = {}  # passes that NumPy did in place of a program


def plan_program(whole: bool, pieces: int, both: bool) -> Program:
    """The program that plans tasks, of both sides or of one."""
    return "plan", whole, pieces, both


def half_program(lattices: Lattices) -> Program:
    """The program that composes half-curves on lattices."""
    return "half", lattices.shapes()


def read_program(pieces: int, kind: Kind, length: int) -> Program:
    """The program that reads numbers off curves of so many vertices a piece."""
    return "read", pieces, kind, length


class Batch(NamedTuple):
    """What every job reads and none changes.

    Attributes:
        groups: ``Composition.stacked()`` with leaves of shape (settings, components).
        question: what to compute.
        rates: of every setting.
        parts: ``curve.gaussian_parts`` of every setting.
        anchor: a threshold known beforehand, or 0.
        executor: the one that was named, or None.
        ahead: how many times as much work as that of the batch is expected after it.
        prepare: whether compiled programs will do that work in any case.
    """

    groups: tuple
    question: Question
    rates: Rates
    parts: Any
    anchor: Float[Array, " settings"]
    executor: Executor | None
    ahead: float = 0.0
    prepare: bool = False

    @property
    def number(self) -> int:
        """Settings."""
        return self.groups[0][1].shape[0]

    @property
    def components(self) -> int:
        """Mechanisms of one composition."""
        return sum(count.shape[-1] for _, count in self.groups)

    @property
    def symmetric(self) -> bool:
        """Whether every pair is the same read backwards, so that both halves are equal."""
        return all(mechanism.symmetric for mechanism, _ in self.groups)

    def sides(self, side: int | None) -> tuple[int, ...]:
        """The half-curves that are composed for a task about one side, or about both."""
        if self.symmetric:
            return (0,)
        return (0, 1) if side is None else (side,)

    def kind(self, quantity: int | None, side: int | None = None) -> Kind:
        """What is read off the curves of a task: of the whole one everything, else one quantity;
        of one side what the pair has that this is the half-curve of.
        """
        kind = self.question.kind
        if side is not None:
            kind = kind._replace(adjacency=Adjacency.REMOVE)
        if quantity is None:
            return kind
        return kind._replace(quantities=kind.quantities[quantity : quantity + 1], alike=(0,))

    def rates_of(self, quantity: int | None, settings: Array) -> Rates:
        """The rates that it is read off at."""
        rates = self.rates
        if quantity is not None:
            rates = rates._replace(queries=rates.queries[quantity : quantity + 1])
        return take(rates, settings)

    def choose(self, work: float, program: Program) -> Executor:
        """Who does so much work with a program: the executor that was named, if one was; else
        the program where it is compiled already, and NumPy where it is not.
        """
        return self.executor or executors.of_compiled(work, self.is_compiled(program))

    def compile_beside(self, work: float, program: Program, compile_it: Callable[[], Any]) -> None:
        """Begin to compile a program beside NumPy, which has so much work that it would have done,
        if that and what is expected takes about as long as compiling.

        A few passes at a time are never worth it. Where an executor is named, programs are only
        compiled for what follows.

        Args:
            work: passes on 512 vertices each.
            program: that would have done them.
            compile_it: runs it once.
        """
        if work <= executors.MANY_ONCE_COMPILED or self.is_compiled(program):
            return
        if self.executor is not None and not self.prepare:
            return
        key = self._key(program)
        so_far = _EAGER_WORK_SO_FAR[key] = _EAGER_WORK_SO_FAR.get(key, 0.0) + work
        if self.prepare or so_far + work * self.ahead > executors.MANY_IN_ALL:

            def compile_and_remember() -> None:
                compile_it()
                self.remember(COMPILED, program)

            BACKGROUND.begin(key, compile_and_remember)

    def wait_for(self, executor: Executor, program: Program) -> None:
        """Wait for a program that is being compiled, if that executor needs it."""
        if executor is COMPILED:
            BACKGROUND.wait(self._key(program))

    def is_compiled(self, program: Program) -> bool:
        """Whether a program has been compiled for mechanisms of these classes."""
        return self._key(program) in _COMPILED

    def remember(self, executor: Executor, program: Program) -> None:
        """A program that an executor has run is compiled from now on, if that executor compiles."""
        if executor is COMPILED:
            _COMPILED.add(self._key(program))

    def _key(self, program: Program) -> tuple:
        return _classes(self.groups), *program


def _classes(groups: tuple) -> tuple:
    """What a program depends on of the mechanisms: classes, and how many there are of each."""
    return tuple((type(mechanism), count.shape[1:]) for mechanism, count in groups)


def halves_compiled(groups: tuple) -> bool:
    """Whether any program that composes half-curves of mechanisms of these classes is compiled."""
    classes = _classes(collapse_gaussians(groups))
    return any(key[:2] == (classes, "half") for key in list(_COMPILED))


def known_threshold(quantity: Any, value: Any, number: int) -> Float[Array, " settings"] | None:
    """|ℓ| at which a quantity is read off, for every setting, where that is known beforehand."""
    if quantity.threshold is None:
        return None
    return np.broadcast_to(np.asarray(quantity.threshold(value), float), (number,))
