"""Evaluation of a kept curve: any quantity at a checked argument, with its status."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..accounting.run import nested
from ..adjacency import Adjacency
from ..bracket import Bracket
from ..mechanisms import Composition
from ..numerics.precision import with_float64
from ..numerics.shapes import Array, ArrayLike
from ..numerics.validation import broadcast, checked, closed_unit, nonnegative, on_host
from ..quantities import registry
from ..quantities.base import Quantity, log_rate
from ..quantities.quantities import reading
from . import alone
from .readings import read_curves


class ContradictionWarning(RuntimeWarning):
    """The two sides of an answer excluded each other: an error in this library."""


class Queries:
    """Quantities of a :class:`TradeoffCurve` by name; its attributes are described there."""

    mechanism: Composition
    adjacency: str
    rtol: float
    fpr_floor: float
    _curves: tuple
    _achieved: tuple
    _known: Mapping[str, Bracket]
    _of_levels: tuple
    _alone: dict[tuple, Bracket]

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the mechanism's parameters."""
        return self.mechanism.shape

    @with_float64
    def _sides(self, asked: Quantity, values: Array) -> Bracket:
        """The common part of all readings of each curve, side by side and not yet compared."""
        if asked.name in self._known and np.all(values == asked.query(self.fpr_floor)):
            shape = broadcast(mechanism=np.empty(self.shape), argument=values)
            return Bracket(*(np.broadcast_to(side, shape) for side in self._known[asked.name]))
        symmetric = Adjacency(self.adjacency).symmetric
        found = read_curves(self._curves, asked, values, self.shape, symmetric)
        for curves in self._achieved if asked.monotone else ():
            found = nested.narrowed(
                asked, found, read_curves(curves, asked, values, self.shape, symmetric)
            )
        return found

    def _query(self, name: str, values: Array) -> Bracket:
        """One reading at the argument that it takes."""
        return self._settled(reading(name), self._sides(reading(name), values))

    def _settled(self, asked: Quantity, sides: Bracket) -> Bracket:
        """Sides compared: a contradiction is withheld and warned of."""
        bracket, contradicted = asked.settle(sides)
        if np.any(contradicted):
            warnings.warn(
                f"{asked.name}: the two sides of {np.sum(contradicted)} of {np.size(contradicted)}"
                " answers contradict each other, which is an error of jaxgdp; they are withheld",
                ContradictionWarning,
                stacklevel=3,
            )
        return bracket

    def _rate(self, name: str, argument: str, value: ArrayLike) -> Bracket:
        """A reading at the log of a rate in [0, 1], named ``argument`` in errors."""
        on_host(f"TradeoffCurve.{name}", value)
        return self._query(name, log_rate(closed_unit(argument, value)))

    def _argument(self, asked: Quantity, argument: ArrayLike | None):
        on_host(f"TradeoffCurve.{asked.name}", argument)
        if asked.argument is None:
            asked.checked(argument)
            return np.zeros(())
        if asked.argument == "fpr_floor":
            return asked.query(self._floor(argument))
        argument = asked.default if argument is None else argument
        if asked.closed:
            return asked.query(closed_unit(asked.argument or "", argument))
        return asked.query(asked.checked(argument))

    def quantity(self, name: str, argument: ArrayLike | None = None) -> Bracket:
        """Any quantity of the registry, by name.

        Args:
            name: of a quantity of ``jaxgdp.measure``.
            argument: its argument, broadcast against the mechanism's shape; its default (or
                the curve's floor) where not given.

        Returns:
            Bracket; ``jaxgdp.quantities`` names the side to report.

        Raises:
            ValueError: the name is unknown, or the argument out of range.

        Example:
            >>> import jaxgdp
            >>> curve = jaxgdp.tradeoff(jaxgdp.Gaussian(2.0))
            >>> curve.quantity("epsilon", 1e-6) == curve.epsilon(1e-6)
            True
        """
        asked = registry.named(name)
        return self._settled(asked, self._sides_of(asked, argument))

    def _sides_of(self, asked: Quantity, argument: ArrayLike | None) -> Bracket:
        """Sides at an argument that is not checked yet, narrowed where single numbers are wide."""
        values = self._argument(asked, argument)
        found = self._sides(asked, values)
        if asked.argument == "fpr_floor":
            argument = self.fpr_floor if argument is None else argument
        elif asked.argument is not None and argument is None:
            argument = asked.default
        return alone.narrowed(
            self, asked, argument, found, lambda level: self._sides_of_level(asked, values, level)
        )

    @with_float64
    def _sides_of_level(self, asked: Quantity, values: Array, level: float) -> Bracket:
        """What a curve of that accuracy has at most: by the curves that it shares with this one."""
        curves = tuple(
            tuple(curve for curve, rtol in zip(row, of, strict=True) if rtol >= 0.99 * level)
            for row, of in zip(self._curves, self._of_levels, strict=True)
        )
        symmetric = Adjacency(self.adjacency).symmetric
        return read_curves(curves, asked, values, self.shape, symmetric)

    def answer(self, name: str, argument: ArrayLike | None = None) -> tuple[Bracket, Any]:
        """:meth:`quantity`, with its status.

        Args:
            name, argument: as for :meth:`quantity`.

        Returns:
            (bracket, codes of ``jaxgdp.bracket.STATUS``): 0 where the bracket is as narrow as
            ``rtol`` requires, 1 where not, 2 where its two sides contradicted each other, so that
            it is all that the quantity can be.
        """
        asked = registry.named(name)
        bracket, contradicted = asked.settle(self._sides_of(asked, argument))
        return bracket, asked.status(bracket, contradicted, self.rtol)

    def __getattr__(self, name: str):
        # (only what has no method of its own comes here)
        if name.startswith("_") or name not in registry.REGISTRY:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return functools.partial(self.quantity, name)

    def _floor(self, fpr_floor: ArrayLike | None):
        floor = self.fpr_floor if fpr_floor is None else fpr_floor
        return checked("fpr_floor", floor, "in [0, 0.5)", lambda a: (a >= 0.0) & (a < 0.5))

    def _loss(self, name: str, epsilon: ArrayLike) -> Bracket:
        on_host(f"TradeoffCurve.{name}", epsilon)
        return self._query(name, nonnegative("epsilon", epsilon))
