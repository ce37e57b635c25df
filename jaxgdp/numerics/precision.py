"""Float64 inside, whatever the user's JAX configuration says outside."""

from __future__ import annotations

import functools

import jax


def with_float64(function):
    """Run a host-level function inside a local 64-bit context; the global configuration is
    untouched.
    """

    @functools.wraps(function)
    def wrapped(*args, **kwargs):
        with jax.enable_x64(True):
            return function(*args, **kwargs)

    return wrapped
