"""Checks of what users pass in: every failure names the argument, its value and the valid range."""

from __future__ import annotations

import decimal
import math
import numbers
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from ..arguments import FLOOR_RATE, OPEN_UNIT, POSITIVE, PROBABILITY, RELATIVE_WIDTH, WHOLE
from ..vocabulary import did_you_mean
from .batching import Batched
from .shapes import Array

ROUNDED_RATE = 1e-12  # by which a rate summed up in floats may exceed 1: 10^4 roundings
_WITHOUT_NUMBERS: Any = (Tracer, Batched)
_Choice = TypeVar("_Choice")


def _numbers(name: str, value: Any, valid: str) -> np.ndarray:
    if isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{name} must be {valid}, got {value!r}")
    try:
        array = np.asarray(value)
        found = array.astype(np.float64) if _holds_numbers(array) else None
    except (TypeError, ValueError, OverflowError):
        array = found = None
    if found is None:
        text = array is not None and _holds_text(array)
        valid = f"a number ({valid}), not text" if text else valid
        raise ValueError(f"{name} must be {valid}, got {value!r}")
    return found


def _holds_text(array: np.ndarray) -> bool:
    return array.dtype.kind in "US" or any(isinstance(x, (str, bytes)) for x in array.flat)


def _holds_numbers(array: np.ndarray) -> bool:
    """Whether these are real numbers: of any precision, fractions and decimal numbers, too."""
    if array.dtype == object:
        kinds = (numbers.Real, decimal.Decimal)
        return all(isinstance(x, kinds) and not isinstance(x, bool) for x in array.flat)
    return array.dtype.kind in "iuf" or jnp.issubdtype(array.dtype, np.floating)


def checked(name: str, value: Any, valid: str, test: Callable[[Any], Any]) -> Array:
    """``value`` as a float64 array if ``test`` holds for all of it; tracers and rows pass.

    Raises:
        ValueError: naming the argument, the first offending value and the valid range.
    """
    if isinstance(value, _WITHOUT_NUMBERS):
        return value
    array = _numbers(name, value, valid)
    good = np.isfinite(array) & test(np.where(np.isfinite(array), array, math.nan))
    if not np.all(good):
        worst = float(array[~good].flat[0])
        # (in full where six digits would be in the range)
        short = f"{worst:g}"
        shown = repr(worst) if np.all(test(np.asarray(float(short)))) else short
        if valid == PROBABILITY[0] and 1.0 < worst <= 1.0 + ROUNDED_RATE:
            shown += f", 1 but for the rounding of a sum: write min({name}, 1.0)"
        raise ValueError(f"{name} must be {valid}, got {shown}")
    if array.size == 0:
        raise ValueError(f"{name} must hold at least one value, got an empty array")
    return array


def one_number(name: str, value: Any, valid: str, test: Callable[[Any], Any]) -> float:
    """:func:`checked`, of one number.

    Raises:
        ValueError: it is out of range, or an array.
    """
    array = checked(name, value, f"one number {valid}", test)
    if array.ndim:
        raise ValueError(f"{name} must be one number {valid}, got shape {array.shape}")
    return float(array)


def known(
    mechanism: object, why: str = "its losses are sorted by their values", **fields: Any
) -> None:
    """Refuse tracers in a mechanism whose losses are made from known numbers.

    Raises:
        NotImplementedError: a field is traced; names the mechanism and the field.
    """
    for name, value in fields.items():
        if isinstance(value, Tracer):
            raise NotImplementedError(
                f"{type(mechanism).__name__} cannot be traced or differentiated in {name}: {why},"
                " which have to be known numbers (other mechanisms composed with it, and numbers"
                " of uses, can be)"
            )


def positive(name: str, value: Any) -> Any:
    """Strictly positive and finite."""
    return checked(name, value, *POSITIVE)


def nonnegative(name: str, value: Any) -> Any:
    """At least zero and finite."""
    return checked(name, value, "a finite number >= 0", lambda a: a >= 0.0)


def probability(name: str, value: Any) -> Any:
    """In (0, 1]."""
    return checked(name, value, *PROBABILITY)


def open_unit(name: str, value: Any) -> Any:
    """In (0, 1)."""
    return checked(name, value, *OPEN_UNIT)


def closed_unit(name: str, value: Any) -> Any:
    """In [0, 1]."""
    return checked(name, value, "in [0, 1]", lambda a: (a >= 0.0) & (a <= 1.0))


def finite(name: str, value: Any) -> Any:
    """Any finite number."""
    return checked(name, value, "a finite number", lambda a: np.isfinite(a))


def relative_width(name: str, value: Any) -> Any:
    """A relative width that may be requested of a bracket."""
    return checked(name, value, *RELATIVE_WIDTH)


def floor_rate(name: str, value: Any) -> Any:
    """An FPR floor that a curve reaches."""
    return checked(name, value, *FLOOR_RATE)


def whole(name: str, value: Any) -> Any:
    """A whole number, at least 1 and small enough to be exact in float64."""
    return checked(name, value, *WHOLE)


def whole_up_to(name: str, value: Any, most: float) -> Any:
    """A whole number from 1 to another."""
    holds = lambda a: (a >= 1) & (a <= most) & (a == np.floor(a))
    return checked(name, value, f"a whole number in [1, {most:.15g}]", holds)


def at_most(name: str, value: Any, limit_name: str, limit: Any) -> None:
    """Refuse a whole number that is larger than another.

    Raises:
        ValueError: there is one; names both.
    """
    if np.any(value > limit):
        value, limit = np.broadcast_arrays(value, limit)
        worst, most = value[value > limit].flat[0], limit[value > limit].flat[0]
        raise ValueError(
            f"{name} must be a whole number in [1, {limit_name}] = [1, {most:g}], got {worst:g}"
        )


def broadcast(**arrays: Any) -> tuple[int, ...]:
    """The common NumPy broadcast shape of named arrays.

    Raises:
        ValueError: the shapes do not broadcast; names each argument and its shape.
    """
    try:
        return np.broadcast_shapes(*(np.shape(a) for a in arrays.values()))
    except ValueError:
        shapes = ", ".join(f"{name} {np.shape(a)}" for name, a in arrays.items())
        raise ValueError(f"shapes do not broadcast together: {shapes}") from None


def one_of(name: str, value: _Choice, choices: Iterable[_Choice]) -> _Choice:
    """A value from a fixed list."""
    choices = tuple(choices)
    if value not in choices:
        shown = ", ".join(map(repr, choices))
        close = did_you_mean(str(value), map(str, choices))
        raise ValueError(f"{name} must be one of {shown}, got {value!r}{close}")
    return value


def on_host(name: str, *values: Any) -> None:
    """Refuse values that JAX is tracing: ``name`` chooses its lattices from the numbers themselves.

    Raises:
        TypeError: one is traced; names those that can be.
    """
    if any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(values)):
        raise TypeError(
            f"jaxgdp.{name} needs known numbers and cannot be traced by jit, vmap or grad: inside a"
            f" transformation use jaxgdp.differentiable, or call jaxgdp.{name} outside of it (a"
            " batch of settings is one call with arrays)"
        )


def truth(name: str, value: Any) -> Array:
    """The value as an array of truth values.

    Raises:
        ValueError: it is something else; names the argument.
    """
    found = np.asarray(value)
    if found.dtype != bool:
        raise ValueError(f"{name} must be True or False, got {value!r}")
    return found
