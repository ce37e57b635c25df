"""Float64 inside, whatever the user's JAX configuration is outside."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import jax

_Function = TypeVar("_Function", bound=Callable[..., Any])


def with_float64(function: _Function) -> _Function:
    """Run a function on the host in a local 64-bit context; the global one stays as it is."""

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any):
        with jax.enable_x64(True):
            return function(*args, **kwargs)

    return wrapped  # type: ignore[return-value]
