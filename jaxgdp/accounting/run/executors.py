"""Who computes: the same stages by NumPy, setting after setting, or compiled, many at a time.

The eager executor answers at once and is best for few settings; the compiled one pays tens of
seconds of compiling once per lattice shape and is then many times faster per setting. Both give the
same brackets up to the rounding that they allow for. The one by products is compiled, too, and
without any FFT, for accelerators that have none of 64 bits; and one leaves to the accelerator only
what 32 bits do without rounding."""

from __future__ import annotations

import os

from .compiled import COMPILED, PRODUCT, Compiled, Product
from .eager import EAGER, Eager
from .executor import Executor
from .float32 import FLOAT32, Float32

BY_NAME: dict[str, Executor] = {who.name: who for who in (EAGER, COMPILED, PRODUCT, FLOAT32)}
# passes at once, on 512 vertices each, that take NumPy a fifth of the time of compiling a program
MANY = 600
# passes that take NumPy as long as compiling their programs beside it does: more, those before and
# those expected counted, are compiled for
MANY_IN_ALL = 6000
MANY_ONCE_COMPILED = 4  # passes that take NumPy as long as a compiled chunk


def by_name(name: str | None) -> Executor | None:
    """The executor of an argument, else of ``JAXGDP_EXECUTOR``; None where neither decides.

    Raises:
        ValueError: the name is none of "eager", "compiled", "product", "float32" and "auto".
    """
    name = name or os.environ.get("JAXGDP_EXECUTOR") or "auto"
    if name not in (*BY_NAME, "auto"):
        raise ValueError(
            f"executor must be one of {', '.join(map(repr, (*BY_NAME, 'auto')))}, got {name!r}"
        )
    return BY_NAME.get(name)


def choose(work: float, compiled: bool) -> Executor:
    """Who does so many passes where compiling cannot go on beside them: NumPy a few, a program
    many.

    Args:
        work: passes, on 512 vertices each.
        compiled: whether their program is compiled already.
    """
    return COMPILED if work > MANY else of_compiled(work, compiled)


def of_compiled(work: float, compiled: bool) -> Executor:
    """Who does so many passes without compiling anything."""
    return COMPILED if compiled and work > MANY_ONCE_COMPILED else EAGER


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
    "of_compiled",
]
