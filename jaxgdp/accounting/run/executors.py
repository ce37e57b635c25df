"""Who computes: the same stages run by NumPy, one setting after the other, or compiled by JAX, many
settings at a time.

The eager executor answers at once and is best for few settings; the compiled one pays tens of
seconds of compiling once per lattice shape and is then many times faster per setting. Both give the
same brackets up to the rounding that they allow for. The one by products is compiled, too, and
without any FFT, for accelerators that have none of 64 bits; and one leaves to the accelerator only
what 32 bits do without rounding."""

from __future__ import annotations

import os

import jax

from .compiled import COMPILED, PRODUCT, Compiled, Product
from .eager import EAGER, Eager
from .executor import Executor
from .float32 import FLOAT32, Float32

BY_NAME: dict[str, Executor] = {who.name: who for who in (EAGER, COMPILED, PRODUCT, FLOAT32)}
# passes at once, on 512 vertices each, that take NumPy a fifth of the time of compiling programs:
# more are compiled for
MANY = 600
MANY_IN_ALL = 1800  # … that take about as long, all those before counted
# settings that NumPy answers in as much time as it takes to compile their programs and to run them
# once
MANY_AND_NO_MORE = 4000
MANY_ONCE_COMPILED = 4  # … as a compiled chunk


def for_one_call(number: int) -> str | None:
    """Who answers the only call of a process, of so many settings of DP-SGD, as an argument
    ``executor``; None leaves it open.

    On a CPU NumPy is done with thousands of settings before their programs are compiled, and
    nothing comes after them."""
    left_open = by_name(None) is None and jax.default_backend() == "cpu"
    return EAGER.name if left_open and number <= MANY_AND_NO_MORE else None


def by_name(name: str | None) -> Executor | None:
    """The executor requested by an argument, else by the environment variable ``JAXGDP_EXECUTOR``;
    None where neither decides.

    Raises:
        ValueError: the name is none of "eager", "compiled", "product", "float32" and "auto".
    """
    name = name or os.environ.get("JAXGDP_EXECUTOR") or "auto"
    if name not in (*BY_NAME, "auto"):
        raise ValueError(
            f"executor must be one of {', '.join(map(repr, (*BY_NAME, 'auto')))}, got {name!r}"
        )
    return BY_NAME.get(name)


def choose(work: float, compiled: bool, before: float = 0.0) -> Executor:
    """Who does so many passes: NumPy a few, a program many, as compiling makes others wait.

    Args:
        work: passes, on 512 vertices each.
        compiled: whether their program is compiled already.
        before: passes that it would have spared NumPy so far: what NumPy has done for as long as
            compiling takes will be requested again.
    """
    pays = work > MANY_ONCE_COMPILED and (compiled or work > MANY or before + work > MANY_IN_ALL)
    return COMPILED if pays else EAGER


__all__ = [
    "BY_NAME",
    "COMPILED",
    "EAGER",
    "FLOAT32",
    "PRODUCT",
    "Compiled",
    "Eager",
    "Executor",
    "Float32",
    "Product",
    "by_name",
    "choose",
    "for_one_call",
]
