"""Functions compiled by JAX, with what its compiler for CPUs need not do.

The environment variable ``JAXGDP_COMPILE`` decides how much the compiler for CPUs optimises:
"thorough" (the default), or "quick", which takes a third of the time and makes programs that run up
to five times slower. "quick" is for tests, and for users who run each program once. It is read when
a program is first called. Brackets hold either way, and differ in their last digits."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable
from typing import Any

import jax

# XLA's newer emitters of fused loops: programs of as many operations as these have take a quarter
# longer to compile with them, and more memory, and run no faster (with LLVM's first level of
# optimisations alone they run a tenth slower). Vectors as wide as the CPU has them, where LLVM
# would stay with 256 bits: a twentieth faster
_THOROUGH: dict[str, Any] = {
    "xla_cpu_use_fusion_emitters": False,
    "xla_cpu_prefer_vector_width": 512,
}
# … and no optimisation, where a program runs a few times for milliseconds: a third of the time for
# compiling is left
_QUICK: dict[str, Any] = _THOROUGH | {"xla_backend_optimization_level": 0}
# to try several ways of each product of matrices on a GPU took a quarter of the time of compiling
_ACCELERATOR: dict[str, Any] = {"xla_gpu_autotune_level": 0}
_ENVIRONMENT = "JAXGDP_COMPILE"
# two tasks that first call a program at the same time must share what is compiled
_MADE_ONCE = threading.Lock()


def quick() -> bool:
    """Whether ``JAXGDP_COMPILE`` requests quick compilation of every program.

    Raises:
        ValueError: it is neither "thorough" nor "quick".
    """
    asked = os.environ.get(_ENVIRONMENT) or "thorough"
    if asked not in ("thorough", "quick"):
        raise ValueError(f"{_ENVIRONMENT} must be 'thorough' or 'quick', got {asked!r}")
    return asked == "quick"


def compiler_options(quickly: bool = False) -> dict[str, Any]:
    """Options for the compiler of the backend that JAX computes on, only those that it has.

    Args:
        quickly: whether the program is not worth optimising; so are all where ``JAXGDP_COMPILE`` is
            "quick".

    Raises:
        ValueError: ``JAXGDP_COMPILE`` is neither "thorough" nor "quick".
    """
    return _options_known(quickly or quick())


@functools.cache
def _options_known(quickly: bool) -> dict[str, Any]:
    of_cpu = _QUICK if quickly else _THOROUGH
    options = of_cpu if jax.default_backend() == "cpu" else _ACCELERATOR
    if _known(options):
        return options
    return {name: value for name, value in options.items() if _known({name: value})}


def _known(options: dict[str, Any]) -> bool:
    """Whether the compiler takes options: they come and go with the versions of XLA."""
    try:
        jax.jit(lambda: 0, compiler_options=options)()
    except jax.errors.JaxRuntimeError:
        return False
    return True


class Program:
    """A function that is compiled, once for each shape of its arguments.

    Args:
        function: of arrays, which JAX can trace.
        quickly: whether it runs so few times that nothing is worth optimising.
        static: what ``jax.jit`` takes beside it.
    """

    def __init__(self, function: Callable, *, quickly: bool = False, **static: Any):
        functools.update_wrapper(self, function)
        self.function, self.quickly, self.static = function, quickly, static

    @functools.cached_property
    def plain(self) -> Any:
        """As ``jax.jit`` compiles it; this is what exports."""
        return jax.jit(self.function, **self.static)

    @functools.cached_property
    def jitted(self) -> Any:
        """As it is compiled here; made at the first call, which settles JAX's backend."""
        options = compiler_options(self.quickly)
        if not options:
            return self.plain
        return jax.jit(self.function, compiler_options=options, **self.static)

    def __call__(self, *args: Any, **named: Any) -> Any:
        with _MADE_ONCE:
            jitted = self.jitted
        return jitted(*args, **named)
