"""What is asked of a batch of settings: accuracy, quantities, rates; and the form of answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from scipy.special import ndtri_exp

from .. import options
from ..adjacency import Adjacency
from ..bracket import Bracket
from ..numerics.shapes import Array, ArrayLike, Float, Int


class Quantity(Protocol):
    """What an accountant needs to know of a number requested; see ``quantities.base.Quantity``."""

    @property
    def name(self) -> str: ...

    @property
    def argument(self) -> str | None: ...

    @property
    def unit(self) -> str: ...

    @property
    def monotone(self) -> bool: ...

    @property
    def worse_of_orders(self) -> bool: ...

    @property
    def query(self) -> Callable[[Any], Any]: ...

    @property
    def read(self) -> Callable[..., Bracket]: ...

    @property
    def read_known(self) -> Callable[..., Bracket | None] | None: ...

    @property
    def after(self) -> str | None: ...

    @property
    def threshold(self) -> Callable[[Any], Any] | None: ...

    @property
    def locate(self) -> Callable[..., Any] | None: ...

    @property
    def share_of_mu(self) -> Callable[[Any], Any] | None: ...

    @property
    def rate(self) -> Callable[[Any], Any] | None: ...

    @property
    def of_all_rates(self) -> bool: ...

    @property
    def sharp_beyond(self) -> float: ...

    def excess(self, bracket: Bracket, rtol: float) -> Any: ...


# the usual accuracy, 1e-3: up to it lattices keep enough digits of whatever is seen, and are as a
# rule quicker than what is known without them
USUAL = 0.99e-3

QuantitiesAsked: TypeAlias = tuple[tuple[Quantity, Any], ...]  # each with what it is asked at


@dataclass(frozen=True, eq=False)
class Question:
    """What to compute for every setting; rates are numbers or arrays of shape (settings,).

    Attributes:
        rtol: relative width of the μ bracket.
        fpr_floor: FPR floor of μ and of the regret.
        adjacency: order or orders in which the pair is taken; a name is made an ``Adjacency``.
        asked: quantities wanted, each with the rate, ε or prior it is
            asked at; None for those asked at the FPR floor and those asked at nothing.
        deepest: smallest TPR (or δ) that has to be resolved, or None for nothing beyond the floor.
        keep: whether whole curves are wanted instead of numbers.
    """

    rtol: float
    fpr_floor: ArrayLike
    adjacency: Adjacency = Adjacency.ADD_REMOVE
    asked: QuantitiesAsked = ()
    deepest: ArrayLike | None = None
    keep: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "adjacency", Adjacency.checked(self.adjacency))

    @property
    def kind(self) -> Kind:
        shared = bool(np.all(np.asarray(self.fpr_floor) >= options.DEEPEST))
        return Kind(
            self.adjacency,
            tuple(quantity for quantity, _ in self.asked),
            self.keep,
            shared,
            self._alike(),
        )

    def share_of_mu(self, spread: Array) -> Array:
        """How wide a bracket of μ may be, over the width promised, for all quantities to be as
        narrow as promised, by the standard deviation of the composed loss; 0 where that is not
        known of one of them.
        """
        found = np.full(np.shape(spread), 0.0 if self.keep else 1.0)
        for quantity, _ in self.asked:
            own = quantity.share_of_mu
            found = np.minimum(found, 0.0 if own is None else own(spread))
        return found

    def _alike(self) -> tuple[int, ...]:
        """For each quantity the first one of the same argument, asked at the same values."""

        def same(one, other):
            return (
                one[0].argument == other[0].argument
                and one[0].query is other[0].query
                and np.array_equal(one[1], other[1])
            )

        each = range(len(self.asked))
        return tuple(
            next(k for k in each if k == i or same(self.asked[k], self.asked[i])) for i in each
        )

    def take(self, rows: Array, number: int) -> Question:
        """The same question about some of ``number`` settings."""

        def some(value):
            return (
                value
                if value is None or np.ndim(value) == 0
                else np.broadcast_to(value, (number,))[rows]
            )

        asked = tuple((quantity, some(value)) for quantity, value in self.asked)
        return replace(
            self, fpr_floor=some(self.fpr_floor), deepest=some(self.deepest), asked=asked
        )

    def rates(self, number: int) -> Rates:
        """Its rates, one row for each of ``number`` settings."""

        def row(value):
            return np.broadcast_to(np.asarray(value, float), (number,))

        log_floor = np.log(row(self.fpr_floor))
        log_deepest = None if self.deepest is None else np.log(row(self.deepest))

        def query(quantity, value):
            if quantity.argument == "fpr_floor":
                value = self.fpr_floor
            return 0.0 if value is None else quantity.query(value)

        queries = (query(*each) for each in self.asked)
        return Rates(
            log_floor,
            log_deepest,
            -ndtri_exp(log_floor),
            None if log_deepest is None else -ndtri_exp(log_deepest),
            tuple(row(q) for q in queries),
        )


class Kind(NamedTuple):
    """The part of a question that decides the program.

    Attributes:
        adjacency, keep: as in :class:`Question`.
        quantities: those that are requested.
        shared: whether quantities asked at the FPR floor are all asked at the same one, none of
            them at 0.
        alike: for each quantity the first one that is asked at the same.
    """

    adjacency: Adjacency
    quantities: tuple[Quantity, ...]
    keep: bool
    shared: bool = False
    alike: tuple[int, ...] = ()


class Rates(NamedTuple):
    """The other part, by setting.

    Attributes:
        log_floor: log of the FPR floor.
        log_deepest: log of the smallest rate to be resolved, or None.
        z_floor, z_delta: depths of both in standard deviations.
        queries: what each quantity is asked at.
    """

    log_floor: Float[Array, " settings"]
    log_deepest: Float[Array, " settings"] | None
    z_floor: Float[Array, " settings"]
    z_delta: Float[Array, " settings"] | None
    queries: tuple[Float[Array, " settings"], ...]


NO_EXECUTOR = "none"  # stands for the executor where no lattice was needed


class Answer(NamedTuple):
    """Results of one batch.

    Attributes:
        results: name → Bracket of arrays of shape (settings,): both sides as found, not compared
            with each other.
        sizes: lattice points used per setting, 0 where none are needed.
        lattices: the lattice of each setting's best bracket, None where there is none.
        curves: one Curve per setting when curves were kept.
        executors: name of the executor that composed the half-curves of each setting's best
            bracket, ``NO_EXECUTOR`` where no lattice was needed.
    """

    results: dict[str, Bracket]
    sizes: Int[np.ndarray, " settings"]
    lattices: list[Any]
    curves: list[Any]
    executors: Any
