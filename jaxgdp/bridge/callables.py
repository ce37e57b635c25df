"""Privacy profiles known as a callable ε ↦ δ: called, and refused where they are no profiles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from ..numerics.shapes import Array, ArrayLike

ProfileFunction: TypeAlias = Callable[[float], Any]

RISE = (1e-15, 1e-12)  # by which rounding may make a function increase, absolute and relative


def values(function: ProfileFunction, epsilon: ArrayLike) -> Array:
    """δ at every ε, one call each.

    Raises:
        ValueError: the function raised, or returned what is not a δ; names what and at which ε.
    """
    found = np.empty(np.shape(epsilon))
    for index, e in np.ndenumerate(np.asarray(epsilon, float)):
        found[index] = value(function, float(e))
    return found


def value(function: ProfileFunction, epsilon: float) -> float:
    """δ at one ε.

    Raises:
        ValueError: the function raised, or returned what is not a δ; names what and at which ε.
    """
    try:
        answer = function(epsilon)
    except Exception as error:
        raise ValueError(
            f"the profile raised {type(error).__name__} at epsilon = {epsilon!r}: {error}"
        ) from error
    try:
        found = float(np.squeeze(np.asarray(answer, float)))
    except (TypeError, ValueError):
        raise ValueError(
            f"the profile must return a number, got {answer!r} at epsilon = {epsilon!r}"
        ) from None
    if not 0.0 <= found <= 1.0:
        raise ValueError(f"the profile must be in [0, 1], got {found!r} at epsilon = {epsilon!r}")
    return found


def refuse_increase(epsilon: ArrayLike, delta: ArrayLike) -> None:
    """Refuse values that increase with ε by more than rounding.

    Raises:
        ValueError: they do; names the two ε and δ.
    """
    order = np.argsort(epsilon, kind="stable")
    e, d = np.asarray(epsilon, float)[order], np.asarray(delta, float)[order]
    least = np.minimum.accumulate(d)
    rises = d > least * (1.0 + RISE[1]) + RISE[0]
    if np.any(rises):
        i = int(np.argmax(rises))
        before = int(np.argmin(d[:i]))
        raise ValueError(
            f"the profile must not increase, got {float(d[before])!r} at epsilon ="
            f" {float(e[before])!r} and {float(d[i])!r} at epsilon = {float(e[i])!r}"
        )
