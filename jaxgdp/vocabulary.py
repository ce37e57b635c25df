"""The public vocabulary: names that people bring along, and calls that are refused with the right
one.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import ParamSpec, TypeVar

_Given = ParamSpec("_Given")
_Found = TypeVar("_Found")


def keywords_only(function: Callable[_Given, _Found]) -> Callable[_Given, _Found]:
    """A function of keywords alone, whose refusal of a positional call shows the call to write.

    Raises:
        TypeError: (when called) an argument was given by position.

    Example:
        >>> @keywords_only
        ... def epsilon(*, delta, mu):
        ...     return delta * mu
        >>> epsilon(0.5, 1e-5)
        Traceback (most recent call last):
        ...
        TypeError: epsilon() takes keywords only: write epsilon(delta=…, mu=…)
    """
    name = function.__name__
    names = [
        parameter.name
        for parameter in inspect.signature(function).parameters.values()
        if parameter.kind is parameter.KEYWORD_ONLY
    ]

    @functools.wraps(function)
    def wrapper(*args: _Given.args, **given: _Given.kwargs) -> _Found:
        if args:
            call = ", ".join(f"{argument}=…" for argument in names)
            raise TypeError(f"{name}() takes keywords only: write {name}({call})")
        return function(**given)  # type: ignore[call-arg]

    return wrapper
