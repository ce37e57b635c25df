"""Differentiable parameters: mechanisms declare the fields in which their derivatives are right,
everything else is refused by name.
"""

from __future__ import annotations

import dataclasses
import functools

import jax
from jax.core import Tracer

from ..adjacency import Adjacency
from ..mechanisms import Composition
from ..mechanisms.base import Mechanism
from ..numerics.shapes import Array

_NEEDS_NUMBERS = (
    jax.errors.TracerArrayConversionError,
    jax.errors.ConcretizationTypeError,
    jax.errors.TracerIntegerConversionError,
)


def _refusal(mechanism: Mechanism, where: str) -> str:
    own = mechanism.differentiable
    others = f"; it has them in {' and '.join(own)}" if own else ""
    why = mechanism.undifferentiable
    return (
        f"jaxgdp.differentiable has no derivatives of {type(mechanism).__name__} in {where}:"
        f" {why}{others}"
    )


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def _constant(message: str, value: Array) -> Array:
    """``value``, of which no derivative may be taken."""
    return value


@_constant.defjvp
def _constant_jvp(message: str, primals: tuple[Array], tangents: tuple[Array]):
    raise NotImplementedError(message)


def declared(composition: Composition, adjacency: Adjacency) -> Composition:
    """The composition, of which only derivatives that mechanisms declare can be taken.

    Raises:
        NotImplementedError: a mechanism cannot be traced in one of its fields or in its number of
            uses; or later, when a derivative in a field is taken that is not declared. Names the
            mechanism and why.
    """
    parts = []
    for part, count in zip(composition.mechanisms, composition.counts, strict=True):
        fields = [field.name for field in dataclasses.fields(part)]
        traced = [name for name in fields if isinstance(getattr(part, name), Tracer)]
        refused = [name for name in traced if name not in part.differentiable]
        guarded = [
            (
                _constant(_refusal(part, name), getattr(part, name))
                if name in refused
                else getattr(part, name)
            )
            for name in fields
        ]
        new = jax.tree.unflatten(jax.tree.structure(part), guarded)
        try:
            pair = new.replace_one() if adjacency.replaces else new
            pair.canonical().gathered(count)
        except _NEEDS_NUMBERS:
            if adjacency.replaces and traced and not refused:
                name, where = type(part).__name__, " and ".join(traced)
                raise NotImplementedError(
                    f"jaxgdp.differentiable has no derivatives of {name} in {where} for adjacency"
                    " 'replace_one': the pair of replacing a record is made from known numbers"
                ) from None
            raise NotImplementedError(
                _refusal(part, " and ".join(refused or ["its number of uses"]))
            ) from None
        parts.append(new)
    return Composition(tuple(parts), composition.counts)
