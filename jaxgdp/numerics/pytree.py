"""Immutable dataclasses as pytrees: checked when a user builds them, never when JAX rebuilds
them.
"""

from __future__ import annotations

import dataclasses

import jax


def pytree(cls):
    """Register a frozen dataclass whose fields are all children. Unflattening skips
    ``__post_init__``.
    """
    names = tuple(field.name for field in dataclasses.fields(cls))

    def flatten(value):
        return tuple((jax.tree_util.GetAttrKey(name), getattr(value, name)) for name in names), None

    def unflatten(_, children):
        value = object.__new__(cls)
        for name, child in zip(names, children, strict=True):
            object.__setattr__(value, name, child)
        return value

    jax.tree_util.register_pytree_with_keys(cls, flatten, unflatten)
    return cls
