"""Brackets as they narrow: what all passes over a setting have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...bracket import Bracket
from ...numerics.shapes import Array, Float, Int
from ..certify.curve import Curve
from ..question import NO_EXECUTOR, Answer, Question
from ..steer.lattices import LatticeChoice
from .passes import Pass
from .rows import take


def unknown(number: int) -> Bracket:
    """Brackets of which nothing is known yet."""
    return Bracket(np.full(number, -np.inf), np.full(number, np.inf))


def worst(results: Mapping[str, Bracket], question: Question, row: int) -> float:
    """Width over the width promised, of the widest quantity of one setting."""
    excess = [
        quantity.excess(take(results[quantity.name], [row]), question.rtol)[0]
        for quantity, _ in question.asked
    ]
    return float(np.max(excess, initial=0.0))


def narrow_one(known: Bracket, row: int, found: Bracket) -> None:
    """Narrow the bracket of one setting of many, in place."""
    known.lower[row] = np.fmax(known.lower[row], found.lower[0])
    known.upper[row] = np.fmin(known.upper[row], found.upper[0])


class RunningBrackets:
    """The brackets so far, and of each setting's best one the lattice, the executor and the curve.

    Args:
        number: settings.
        question: what is computed.

    Method: docs/method/adjacency.md#symmetrisation
    """

    def __init__(self, number: int, question: Question):
        self.asked = question.asked
        self.results = {quantity.name: unknown(number) for quantity, _ in self.asked}
        # (where both orders count) of each order alone, shape (settings, sides)
        self.by_order = {
            quantity.name: Bracket(*(np.stack([side, side], -1) for side in unknown(number)))
            for quantity, _ in self.asked
            if quantity.worse_of_orders and question.adjacency.symmetric
        }
        self.excess = np.full(number, np.inf)
        self.sizes = np.zeros(number, np.int64)
        self.lattices: list[LatticeChoice | None] = [None] * number
        self.executors = np.full(number, NO_EXECUTOR, object)
        self.curves: list[Any] = [None] * number if question.keep else []

    def of(self, settings: Int[Array, " tasks"], question: Question) -> RunningBrackets:
        """What is known of some settings, to go on from; ``question`` is about these."""
        found = RunningBrackets(len(settings), question)
        found.results = {name: take(known, settings) for name, known in self.results.items()}
        found.by_order = {name: take(known, settings) for name, known in self.by_order.items()}
        return found

    def add(self, settings: Int[Array, " tasks"], found: Mapping[str, Bracket]) -> None:
        """Narrow the brackets of some settings."""
        for name, bracket in found.items():
            known = self.results[name]
            known.lower[settings] = np.fmax(known.lower[settings], bracket.lower)
            known.upper[settings] = np.fmin(known.upper[settings], bracket.upper)

    def add_orders(
        self, settings: Int[Array, " tasks"], found: Mapping[str, Bracket], side: int
    ) -> None:
        """Narrow the brackets of one order, and those of the worse of both."""
        for name, bracket in found.items():
            known = self.by_order[name]
            lower, upper = known.lower[settings], known.upper[settings]
            lower[:, side] = np.fmax(lower[:, side], bracket.lower)
            upper[:, side] = np.fmin(upper[:, side], bracket.upper)
            known.lower[settings], known.upper[settings] = lower, upper
            self.add(settings, {name: Bracket(np.max(lower, axis=-1), np.max(upper, axis=-1))})

    def of_order(self, name: str, setting: int, side: int) -> Bracket:
        """What an order leaves open of the worse of both orders, and no more than that."""
        total, own = self.results[name], self.by_order[name]
        lower, upper = total.lower[setting], total.upper[setting]
        return Bracket(lower, np.maximum(np.minimum(own.upper[setting, side], upper), lower))

    def add_best(self, setting: int, excess: float, one: Pass, curve: Curve | None) -> None:
        """Remember how a setting was computed, if its brackets were never narrower."""
        if excess < self.excess[setting] or self.sizes[setting] == 0:
            self.excess[setting], self.sizes[setting] = excess, one.lattices.leading.size
            self.lattices[setting], self.executors[setting] = (
                one.lattices.leading,
                one.executor.name,
            )
            if self.curves:
                self.curves[setting] = curve

    def put(self, settings: Int[Array, " tasks"], answer: Answer) -> None:
        """Add what is known of some settings by other means."""
        self.add(settings, answer.results)
        self.sizes[settings] = answer.sizes
        self.executors[settings] = answer.executors
        for i, lattice in zip(settings, answer.lattices, strict=True):
            self.lattices[i] = lattice
        for i, curve in zip(settings, answer.curves, strict=False):
            self.curves[i] = curve

    def answer(self) -> Answer:
        """All that was found."""
        return Answer(self.results, self.sizes, self.lattices, self.curves, self.executors)

    def width_over_promise(
        self, rtol: float, settings: Int[Array, " tasks"]
    ) -> Float[Array, "quantities tasks"]:
        """Width over the width promised, of every quantity."""
        none = np.zeros((0, len(settings)))
        excess = [q.excess(take(self.results[q.name], settings), rtol) for q, _ in self.asked]
        return np.stack(excess) if excess else none
