"""How many runs a private selection makes: laws of K with their generating functions.

G(x) = E x^K, and the density of the best of K outputs is p(y)·G′(F(y)), F the distribution function
of one output in the order of the scores. K is drawn anew, independent of the data, and is not told.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..numerics.pytree import check_fields, pytree, unchecked
from ..numerics.shapes import Array, ArrayLike, Parameter
from ..numerics.validation import checked, whole

MOST_RUNS = 1e12  # mean number of runs up to which generating functions keep their digits
_HALVINGS = 200  # of an interval of log γ, far more than a double has digits


class Step:
    """A step of a distribution function from a to b = a + ``size``, each end with its complement.

    Attributes:
        size: b − a, to its own digits.
        start, end: a and b.
        start_rest, end_rest: 1 − a and 1 − b, to their own digits.
    """

    def __init__(
        self, size: Array, start: Array, end: Array, start_rest: Array, end_rest: Array
    ) -> None:
        self.size, self.start, self.end = size, start, end
        self.start_rest, self.end_rest = start_rest, end_rest


class Runs:
    """A law of K; its fields broadcast, its methods take scalars of them and arrays of arguments.

    Method: docs/method/selection.md#output
    """

    def gain(self, step: Step) -> Array:
        """G(b) − G(a), to some units of itself."""
        raise NotImplementedError

    def log_slope(self, value: Array, rest: Array) -> Array:
        """log G′(x); ``rest`` is 1 − x to its own digits."""
        raise NotImplementedError

    def log_curvature(self, value: float, rest: float) -> float:
        """log G″(x), but for a constant; it only guides the choice of an order."""
        raise NotImplementedError

    def most(self) -> float:
        """The largest K, ∞ where there is none."""
        return np.inf

    def single(self) -> bool:
        """Whether K is always 1."""
        return False

    def nothing(self) -> float:
        """The probability that K is 0 and nothing is published."""
        return 0.0

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """Broadcast shape of the fields."""
        values = [np.shape(getattr(self, f.name)) for f in dataclasses.fields(self)]  # type: ignore
        return np.broadcast_shapes(*values)

    def at(self, index: tuple[int, ...]) -> Any:
        """The law at one index of the shape."""
        names = [f.name for f in dataclasses.fields(self)]  # type: ignore
        one = {
            name: np.broadcast_to(getattr(self, name), self.batch_shape)[index] for name in names
        }
        return unchecked(type(self), **one)

    def __str__(self) -> str:
        shown = lambda a: f"{float(a):.10g}" if np.ndim(a) == 0 else f"<{np.size(a)} values>"
        names = [f.name for f in dataclasses.fields(self)]  # type: ignore
        fields = ", ".join(f"{name}={shown(getattr(self, name))}" for name in names)
        return f"{type(self).__name__}({fields})"


def _mean(name: str, value: ArrayLike) -> Array:
    valid = f"a number in [1, {MOST_RUNS:g}]"
    return checked(name, value, valid, lambda a: (a >= 1.0) & (a <= MOST_RUNS))


def _shape(name: str, value: ArrayLike) -> Array:
    valid = "in (-1, 100], 0 for the logarithmic law and 1 for the geometric one"
    return checked(name, value, valid, lambda a: (a > -1.0) & (a <= 100.0))


class _TruncatedNegativeBinomial(Runs):
    """G(x) = (y(x)^{−η} − 1)/(γ^{−η} − 1), y(x) = 1 − (1 − γ)x, K ≥ 1 (Papernot & Steinke 2022)."""

    def _order_and_rate(self) -> tuple[float, float]:
        """η and γ."""
        raise NotImplementedError

    def single(self) -> bool:
        """Whether the mean is 1."""
        return float(np.asarray(self.mean)) == 1.0  # type: ignore[attr-defined]

    def gain(self, step: Step) -> Array:
        """G(b) − G(a)."""
        order, rate = self._order_and_rate()
        if self.single():
            return np.asarray(step.size)
        other = 1.0 - rate
        before, after = rate + other * step.start_rest, rate + other * step.end_rest
        part = other * step.size / before
        fall = _log_left(part, after / before)
        if order == 0.0:
            return fall / np.log(rate)
        low = np.log(rate)
        if order > 0.0:
            top = np.exp(order * (low - np.log(after))) * -np.expm1(order * fall)
            return top / -np.expm1(order * low)
        return np.exp(-order * np.log(before)) * np.expm1(-order * fall) / np.expm1(-order * low)

    def log_slope(self, value: Array, rest: Array) -> Array:
        """log of η(1 − γ)·y^{−η − 1}/(γ^{−η} − 1)."""
        order, rate = self._order_and_rate()
        if self.single():
            return np.zeros(np.shape(rest))
        log_rate = math.log(rate)
        scale = -1.0 / log_rate if order == 0.0 else order / math.expm1(-order * log_rate)
        return math.log((1.0 - rate) * scale) - (order + 1.0) * np.log(rate + (1.0 - rate) * rest)

    def log_curvature(self, value: float, rest: float) -> float:
        """−(η + 2)·log y."""
        order, rate = self._order_and_rate()
        return -(order + 2.0) * math.log(rate + (1.0 - rate) * rest)


class _OfMean(_TruncatedNegativeBinomial):
    """Those with a fixed shape, of which only the mean is given."""

    _ORDER: ClassVar[float]

    def __post_init__(self) -> None:
        check_fields(self, mean=_mean)

    def _order_and_rate(self) -> tuple[float, float]:
        mean = float(np.asarray(self.mean))  # type: ignore[attr-defined]
        return self._ORDER, _rate_of_mean(self._ORDER, mean)


@functools.lru_cache(maxsize=1024)
def _rate_of_mean(order: float, mean: float) -> float:
    """γ of the mean η(1 − γ)/(γ(1 − γ^η)), or (1 − γ)/(γ log(1/γ)) where η is 0; it falls in γ."""
    if mean == 1.0 or order == 1.0:
        return 1.0 / mean

    def found(log_rate: float) -> float:
        other = -np.expm1(log_rate)
        if order == 0.0:
            return other * np.exp(-log_rate) / -log_rate
        return order * other * np.exp(-log_rate) / -np.expm1(order * log_rate)

    low, high = -100.0, -1e-16
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if found(middle) > mean else (low, middle)
    return float(np.exp(high))


@pytree
@dataclass(frozen=True)
class NegativeBinomial(_TruncatedNegativeBinomial):
    """K ≥ 1 of the truncated negative binomial law of Papernot & Steinke (2022).

    Pr[K = k] ∝ (1 − γ)^k·Γ(k + η)/(k!·Γ(η)); the mean is η(1 − γ)/(γ(1 − γ^η)).

    Args:
        mean: of K, in [1, 1e12]; any shape.
        shape: η in (−1, 100]; 1 is the geometric law, 0 the logarithmic one, smaller values have
            heavier tails.

    Raises:
        ValueError: an argument is out of range (before tracing).

    Example:
        >>> NegativeBinomial(mean=20.0, shape=0.5).batch_shape
        ()
    """

    mean: Parameter
    shape: Parameter

    def __post_init__(self) -> None:
        check_fields(self, mean=_mean, shape=_shape)

    def _order_and_rate(self) -> tuple[float, float]:
        return float(self.shape), _rate_of_mean(float(self.shape), float(self.mean))


@pytree
@dataclass(frozen=True)
class Geometric(_OfMean):
    """K ≥ 1, Pr[K = k] = γ(1 − γ)^{k − 1}, γ = 1/mean: after every run, stop with probability γ.

    Args:
        mean: of K, in [1, 1e12]; any shape.

    Raises:
        ValueError: the mean is out of range (before tracing).

    Example:
        >>> Geometric(mean=10.0).batch_shape
        ()
    """

    mean: Parameter

    _ORDER: ClassVar[float] = 1.0


@pytree
@dataclass(frozen=True)
class Logarithmic(_OfMean):
    """K ≥ 1 with Pr[K = k] ∝ (1 − γ)^k/k; the mean is (1 − γ)/(γ·log(1/γ)).

    Args:
        mean: of K, in [1, 1e12]; any shape.

    Raises:
        ValueError: the mean is out of range (before tracing).

    Example:
        >>> Logarithmic(mean=10.0).batch_shape
        ()
    """

    mean: Parameter

    _ORDER: ClassVar[float] = 0.0


@pytree
@dataclass(frozen=True)
class Poisson(Runs):
    """K ≥ 0 of a Poisson law, G(x) = e^{m(x − 1)}; where K is 0 nothing is published.

    Args:
        mean: m in (0, 1e12]; any shape.

    Raises:
        ValueError: the mean is out of range (before tracing).

    Example:
        >>> Poisson(mean=10.0).batch_shape
        ()
    """

    mean: Parameter

    def __post_init__(self) -> None:
        valid = f"in (0, {MOST_RUNS:g}]"
        inside = lambda a: (a > 0.0) & (a <= MOST_RUNS)
        check_fields(self, mean=lambda name, value: checked(name, value, valid, inside))

    def gain(self, step: Step) -> Array:
        """e^{−m(1 − b)}·(1 − e^{−m(b − a)})."""
        mean = float(self.mean)
        return np.exp(-mean * step.end_rest) * -np.expm1(-mean * step.size)

    def log_slope(self, value: Array, rest: Array) -> Array:
        """log m − m·(1 − x)."""
        return math.log(self.mean) - float(self.mean) * np.asarray(rest)

    def log_curvature(self, value: float, rest: float) -> float:
        """−m·(1 − x)."""
        return -float(self.mean) * rest

    def nothing(self) -> float:
        """e^{−m}."""
        return float(np.exp(-float(self.mean)))


@pytree
@dataclass(frozen=True)
class Fixed(Runs):
    """Always k runs, G(x) = x^k: what is done without thinking about it.

    Args:
        number: k, a whole number ≥ 1; any shape.

    Raises:
        ValueError: it is no whole number ≥ 1 (before tracing).

    Example:
        >>> Fixed(number=10).batch_shape
        ()
    """

    number: Parameter

    def __post_init__(self) -> None:
        check_fields(self, number=whole)

    def most(self) -> float:
        """k."""
        return float(self.number)

    def single(self) -> bool:
        """Whether k is 1."""
        return float(self.number) == 1.0

    def gain(self, step: Step) -> Array:
        """b^k·(1 − (a/b)^k)."""
        number = float(self.number)
        end = np.maximum(step.end, 5e-324)
        part = step.size / end
        with np.errstate(divide="ignore"):
            fall = _log_left(part, np.asarray(step.start) / end)
            power = _log_left(step.end_rest, step.end)
        return np.exp(number * power) * -np.expm1(number * fall)

    def log_slope(self, value: Array, rest: Array) -> Array:
        """log k + (k − 1)·log x."""
        number = float(self.number)
        return (
            math.log(number) + (number - 1.0) * _log_left(rest, value)
            if number > 1.0
            else np.zeros(np.shape(rest))
        )

    def log_curvature(self, value: float, rest: float) -> float:
        """(k − 2)·log x."""
        number = float(self.number)
        return (number - 2.0) * math.log(max(value, 5e-324)) if number > 2.0 else 0.0


def _log_left(rest: Array, value: Array) -> Array:
    """log x of 1 − x and x, from whichever has its own digits."""
    with np.errstate(divide="ignore"):
        return np.where(
            np.asarray(rest) < 0.5, np.log1p(-np.minimum(rest, 0.5)), np.log(np.asarray(value))
        )


def parse(text: str) -> Runs:
    """A law in one word and its numbers, as the command line takes it.

    Args:
        text: such as "geometric:10", "negative_binomial:10:0.5" or "fixed:5".

    Raises:
        ValueError: there is no such law, or its numbers are not as many or out of range.

    Example:
        >>> str(parse("geometric:10"))
        'Geometric(mean=10)'
    """
    name, *numbers = text.split(":")
    laws = {"".join(f"_{c.lower()}" if c.isupper() else c for c in key)[1:]: key for key in BY_NAME}
    if name not in laws:
        raise ValueError(f"tuning must be one of {', '.join(laws)} with its numbers, got {text!r}")
    kind = BY_NAME[laws[name]]
    fields = [field.name for field in dataclasses.fields(kind)]  # type: ignore[arg-type]
    if len(numbers) != len(fields):
        raise ValueError(
            f"tuning must be {':'.join([name, *map(str.upper, fields)])}, got {text!r}"
        )
    return kind(*(_number(number, text) for number in numbers))


def _number(word: str, text: str) -> float:
    try:
        return float(word)
    except ValueError:
        raise ValueError(f"tuning must hold numbers after its name, got {text!r}") from None


BY_NAME: dict[str, Any] = {
    kind.__name__: kind for kind in (Geometric, Poisson, Logarithmic, NegativeBinomial, Fixed)
}

__all__ = ["BY_NAME", "Fixed", "Geometric", "Logarithmic", "NegativeBinomial", "Poisson", "Runs"]
