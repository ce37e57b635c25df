"""Immutable dataclasses as pytrees: checked when users build them, never when JAX does."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, TypeVar

import jax

from .shapes import Array
from .validation import broadcast

_Class = TypeVar("_Class", bound=type)
_Instance = TypeVar("_Instance")


def pytree(cls: _Class) -> _Class:
    """Register a frozen dataclass of children; unflattening skips ``__post_init__``."""
    names = tuple(field.name for field in dataclasses.fields(cls))

    def flatten(value: Any):
        return tuple((jax.tree_util.GetAttrKey(name), getattr(value, name)) for name in names), None

    def unflatten(_, children: Any):
        value = object.__new__(cls)
        for name, child in zip(names, children, strict=True):
            object.__setattr__(value, name, child)
        return value

    jax.tree_util.register_pytree_with_keys(cls, flatten, unflatten)
    return cls


def unchecked(cls: type[_Instance], **fields: Any) -> _Instance:
    """An instance of a frozen dataclass with these fields; ``__post_init__`` is skipped."""
    value = object.__new__(cls)
    put(value, **fields)
    return value


def put(instance: object, **fields: Any) -> None:
    """Set fields of a frozen dataclass, while it is built."""
    for name, value in fields.items():
        object.__setattr__(instance, name, value)


def check_fields(instance: object, **checks: Callable[[str, Any], Array]) -> None:
    """Replace fields of a frozen dataclass by arrays that have passed a check; they broadcast.

    Args:
        instance: what is built.
        checks: by field, a check of ``numerics.validation``: it takes the name and the value.

    Raises:
        ValueError: a value is out of range, or shapes do not broadcast; names the field.

    Example:
        >>> from types import SimpleNamespace
        >>> from jaxgdp.numerics.validation import positive, whole
        >>> step = SimpleNamespace(noise_multiplier=[1, 2], num_epochs=3)
        >>> check_fields(step, noise_multiplier=positive, num_epochs=whole)
        >>> step.noise_multiplier.tolist(), step.num_epochs.shape
        ([1.0, 2.0], ())
    """
    checked = {name: check(name, getattr(instance, name)) for name, check in checks.items()}
    broadcast(**checked)
    put(instance, **checked)


def default(value: Any) -> Any:
    """The default of a :data:`~jaxgdp.numerics.shapes.Parameter`, for type checkers."""
    return value
