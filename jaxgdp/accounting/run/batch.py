"""What all jobs of one call read and none changes, and who computes each of them.

An executor that is named computes everything. Where none is, the work decides, and what this
process has compiled and done before: that is all it remembers."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ...numerics.shapes import Array, Float
from ..question import Kind, Question, Rates
from ..steer.lattice_choice import LatticeChoice
from . import executors
from .executors import COMPILED, Executor
from .rows import take

# what several tasks have in common that one compiled program serves: its stage, and what decides
# the program beside the mechanisms' classes
Program: TypeAlias = tuple
_COMPILED: set[Program] = set()  # programs that have been compiled, with the mechanisms' classes


class _EagerWork(NamedTuple):
    """Passes that NumPy did in place of a program: all of them, and the most at once."""

    total: float
    most: float


_EAGER_WORK_SO_FAR: dict[Program, _EagerWork] = {}


def plan_program(whole: bool, pieces: int) -> Program:
    """The program that plans tasks."""
    return "plan", whole, pieces


def half_program(lattice: LatticeChoice) -> Program:
    """The program that composes half-curves on a lattice."""
    return "half", lattice._replace(size=0, pieces=1)


def read_program(pieces: int, kind: Kind) -> Program:
    """The program that reads numbers off curves."""
    return "read", pieces, kind


class Batch(NamedTuple):
    """What every job reads and none changes.

    Attributes:
        groups: ``Composition.stacked()`` with leaves of shape (settings, components).
        question: what to compute.
        rates: of every setting.
        parts: ``curve.gaussian_parts`` of every setting.
        anchor: a threshold known beforehand, or 0.
        executor: the one that was named, or None.
    """

    groups: tuple
    question: Question
    rates: Rates
    parts: Any
    anchor: Float[Array, " settings"]
    executor: Executor | None

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

    def kind(self, quantity: int | None) -> Kind:
        """What is read off the curves of a task: of the whole one everything, else one quantity."""
        kind = self.question.kind
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
        """Who does so much work with a program: the executor that was named, if one was.

        A program is compiled for work that is as large as any before it, so that nothing smaller
        has to wait for that."""
        if self.executor is not None:
            return self.executor
        key = self._key(program)
        so_far = _EAGER_WORK_SO_FAR.get(key, _EagerWork(0.0, 0.0))
        before = so_far.total if work >= so_far.most else 0.0
        executor = executors.choose(work, self.is_compiled(program), before)
        if executor is not COMPILED and work > executors.MANY_ONCE_COMPILED:
            _EAGER_WORK_SO_FAR[key] = _EagerWork(so_far.total + work, max(so_far.most, work))
        return executor

    def is_compiled(self, program: Program) -> bool:
        """Whether a program has been compiled for mechanisms of these classes."""
        return self._key(program) in _COMPILED

    def remember(self, executor: Executor, program: Program) -> None:
        """A program that an executor has run is compiled from now on, if that executor compiles."""
        if executor is COMPILED:
            _COMPILED.add(self._key(program))

    def _key(self, program: Program) -> tuple:
        """A program with what it depends on of the mechanisms: classes, and their numbers."""
        classes = tuple((type(mechanism), count.shape[1:]) for mechanism, count in self.groups)
        return classes, *program


def known_threshold(quantity: Any, value: Any, number: int) -> Float[Array, " settings"] | None:
    """|ℓ| at which a quantity is read off, for every setting, where that is known beforehand."""
    if quantity.threshold is None:
        return None
    return np.broadcast_to(np.asarray(quantity.threshold(value), float), (number,))
