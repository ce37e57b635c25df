"""The definition of a quantity: name, argument, reading off a certified curve, accuracy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np

from ..bracket import LEAST, Bracket, Status
from ..numerics import namespace as xp
from ..numerics.shapes import Array, ArrayLike
from .overflow import Overflow
from .tangency import Tangency

SHALLOW = 1e-6  # smallest rate that matters for numbers from the middle of the curve
_Value = TypeVar("_Value")


def identity(value: _Value) -> _Value:
    """The argument itself."""
    return value


def log_rate(value: ArrayLike) -> Array:
    """log of a rate, −∞ at 0; the rate may be traced."""
    with np.errstate(divide="ignore"):
        return xp.log(value)


def nothing(argument: Array | None = None) -> float:
    """0: the value of nearly every quantity where nothing has been released."""
    return 0.0


class Complement(NamedTuple):
    """What a quantity is 1 less so many times of.

    Attributes:
        name: of the other quantity.
        factor: how many times.
        given: what the other one is asked at, where that is not the quantity's own argument.
    """

    name: str
    factor: float = 1.0
    given: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True)
class Quantity:
    """One number that can be read off a certified curve; equal by name and reading.

    Attributes:
        name: as users write it.
        symbol: in reports and tables.
        read: ``read(curve, query, symmetric=…)`` → :class:`Bracket` (unbatched, arrays of either
            library). Each side is worked out on its own and must hold on a curve of which only some
            vertices are known; the two are not compared before :meth:`settle`.
        read_known: ``read_known(known, query, symmetric=…)`` → the same off a batch of curves that
            are known in closed form (:class:`~jaxgdp.pairs.known_curves.OrientedCurve`), without
            vertices; None where those curves have no closed form of it, and where no curve has.
        after: name of a quantity of the same argument that ``read`` takes as ``given`` where it has
            been read already.
        long_name: what it is called in full.
        description: what it means, in one sentence.
        argument: name of its argument, such as "delta", or None. "fpr_floor" is that of the
            whole question.
        default: of the argument.
        check: ``check(name, value)`` → the argument as an array, or a ValueError that names it.
        closed: whether a whole curve answers at 0 and 1, too, where ``check`` allows numbers in
            between only.
        query: the argument as ``read`` takes it (its log, where it is a rate).
        rate: smallest error rate, or δ, that the curve has to resolve for an argument; None for
            nothing beyond the FPR floor.
        threshold: privacy loss |ℓ| at which an argument is read off, where that is known
            beforehand.
        locate: ``locate(curve, query, found, symmetric=…)`` → |ℓ|, where it is known from a first
            pass only; ``found`` is what ``read`` gave.
        absolute: the accuracy promised is ``absolute``·rtol instead of rtol relative to the upper
            side.
        safe_side: "upper" or "lower", the one to report; what grows with privacy loss is safe from
            above.
        monotone: whether a mechanism of which another one's outputs can be made has at least as
            much of it (if it ``grows``; at most as much, otherwise).
        worse_of_orders: whether, where both orders of a pair count, it is the larger of what the
            two orders have each, so that each order may be asked for itself.
        of_one_curve: whether it is a place on one curve, so that the sides read off several curves
            of a mechanism must not be combined.
        unit: "nats", "probability" or "".
        extent: (least, largest) value it can have, whatever the mechanism.
        complement: :class:`Complement`: another quantity that falls where it grows, with the digits
            that count where this one is next to 1; None where there is none.
        rounding: absolute distance that the rounding of the readings may make the two sides cross
            by.
        reported: arguments at which a report gives it; () where it does not, None for the default
            alone.
        idle: its value, of the argument, where nothing has been released.
        tangency: ``tangency(halves, query, found, given)`` → :class:`~.tangency.Tangency`: how its
            derivative acts on the curve, where both half-curves of the dominating pair, the query
            and the bracket at it are known, and that of ``after``. None where this is not defined:
            ``jaxgdp.differentiable`` refuses it by name.
        reach: ``reach(argument)`` → (FPR floor, smallest other rate or None) out to which a curve
            that is traced must be known; by default as far as ``rate``.
        overflow: :class:`~.overflow.Overflow`: how an overflow of padded batches shifts it. None
            where this is not defined: plans of runs that may overflow refuse it by name.
        of_gaussian: ``of_gaussian(μ, argument)``, its value on the curve of the Gaussian mechanism;
            None where there is no closed form.
        share_of_mu: ``share_of_mu(spread)``, how wide a bracket of μ may be, over the width
            promised, where this one is to be as narrow as promised, by the standard deviation of
            the composed loss. It only guides the choice of lattices; None where it is not known.
        of_all_rates: whether it is the largest μ of a range of rates, so that pieces of a curve
            tell it. It only guides the search.
        sharp_beyond: σ of a record that is seldom sampled beyond which curves of few points leave
            it wide. It only guides the choice of points.
        order: place in tables.
    """

    name: str
    symbol: str
    read: Callable[..., Bracket]
    read_known: Callable[..., Bracket | None] | None = None
    after: str | None = None
    long_name: str = ""
    description: str = ""
    argument: str | None = None
    default: float | None = None
    check: Callable[[str, ArrayLike], Any] | None = None
    closed: bool = False
    query: Callable[[Any], Any] = identity
    rate: Callable[[Any], Any] | None = None
    threshold: Callable[[Any], Any] | None = None
    locate: Callable[..., Array] | None = None
    absolute: float | None = None
    safe_side: Literal["upper", "lower"] = "upper"
    monotone: bool = True
    worse_of_orders: bool = False
    of_one_curve: bool = False
    unit: str = ""
    extent: tuple[float, float] = (0.0, np.inf)
    complement: Complement | None = None
    rounding: float = LEAST
    reported: tuple[float, ...] | None = None
    idle: Callable[[Any], Any] = nothing
    of_gaussian: Callable[[Any, Any], Any] | None = None
    tangency: Callable[..., Tangency] | None = None
    reach: Callable[[Any], tuple[Any, Any]] | None = None
    overflow: Overflow | None = None
    share_of_mu: Callable[[Any], Any] | None = None
    of_all_rates: bool = False
    sharp_beyond: float = np.inf
    order: int = 100

    def __hash__(self) -> int:
        return hash(self.name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantity) and self.name == other.name and self.read == other.read

    @property
    def grows(self) -> bool:
        """Whether it grows with privacy loss."""
        return self.safe_side == "upper"

    @property
    def own_argument(self) -> str | None:
        """The argument that is its own, not the floor of the whole question."""
        return None if self.argument == "fpr_floor" else self.argument

    @property
    def worst(self) -> float:
        """The trivial end of its extent, which is reported where nothing is known."""
        return self.extent[1] if self.grows else self.extent[0]

    @property
    def promise(self) -> str:
        """The accuracy promised, in words."""
        if self.absolute is None:
            return "relative width at most rtol"
        return f"width at most {self.absolute:g} rtol"

    def traced_reach(self, argument: Any) -> tuple[Any, Any]:
        """``reach``, or as far as ``rate``: (FPR floor, smallest other rate or None)."""
        if self.reach is not None:
            return self.reach(argument)
        if self.argument == "fpr_floor":
            return argument, None
        if self.rate is None:
            return SHALLOW, None
        rate = xp.minimum(self.rate(argument), SHALLOW)
        return rate, rate

    def checked(self, value: ArrayLike | None) -> Any:
        """The argument as an array; None for a quantity without an argument.

        Raises:
            ValueError: it is out of range, or there is none to be given; names it.
        """
        if self.argument is None:
            if value is not None:
                raise ValueError(f"{self.name} takes no argument, got {value!r}")
            return None
        given = np.nan if value is None else value
        return np.asarray(given, float) if self.check is None else self.check(self.argument, given)

    def excess(self, bracket: Bracket, rtol: float) -> Array:
        """How many times wider a bracket is than promised: met where it is at most 1."""
        lower, upper = np.asarray(bracket.lower, float), np.asarray(bracket.upper, float)
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            width = np.where(upper == lower, 0.0, upper - lower)
            scale = self.absolute if self.absolute is not None else np.maximum(np.abs(upper), LEAST)
            excess = width / (scale * rtol)
        small = (np.abs(upper) <= LEAST) & (self.absolute is None)
        return np.where(small, 0.0, np.where(np.isnan(excess), np.inf, excess))

    def settle(self, bracket: Bracket) -> tuple[Bracket, Array]:
        """The bracket of two sides worked out on their own, and where they contradict.

        To be called once both sides hold all that is known (the intersection of all looks at a
        setting), on the host.

        Method: docs/method/notation.md#brackets
        """
        return Bracket.from_sides(bracket.lower, bracket.upper, self.extent, self.rounding)

    def status(self, bracket: Bracket, contradicted: Array, rtol: float) -> Array:
        """Codes of :class:`jaxgdp.bracket.Status` for what :meth:`settle` returned."""
        reached = np.where(self.excess(bracket, rtol) <= 1.0, Status.OK, Status.WIDE)
        return np.where(contradicted, Status.CONTRADICTION, reached)
