"""Programs are compiled with options of the compiler, and without those that it does not know."""

import jax
import numpy as np
import pytest

from jaxgdp.numerics import compiling


@pytest.fixture(autouse=True)
def forget():
    compiling.compiler_options.cache_clear()
    yield
    compiling.compiler_options.cache_clear()


def doubled(x, *, times):
    return x * 2.0**times


@pytest.mark.parametrize("quickly", [False, True])
@pytest.mark.parametrize("options", [None, {}])
def test_options_change_nothing_but_the_compiler(monkeypatch, options, quickly):
    if options is not None:
        monkeypatch.setattr(compiling, "_QUICKLY" if quickly else "_WITH", options)
    program = compiling.Program(doubled, quickly=quickly, static_argnames=("times",))
    assert np.all(program(np.arange(3.0), times=2) == program.plain(np.arange(3.0), times=2))
    assert np.all(program(np.arange(3.0), times=2) == np.array([0.0, 4.0, 8.0]))


def test_an_option_that_the_compiler_does_not_know_is_left_out(monkeypatch):
    known = dict(compiling._WITH) if jax.default_backend() == "cpu" else {}
    monkeypatch.setattr(compiling, "_WITH", compiling._WITH | {"xla_cpu_no_such_option": True})
    assert compiling.compiler_options() == known
    assert compiling.Program(lambda x: x + 1)(1.0) == 2.0


@pytest.mark.skipif(
    jax.default_backend() != "cpu", reason="options are those of the compiler for CPUs"
)
def test_this_compiler_knows_the_options():
    assert compiling.compiler_options() == compiling._WITH
    assert compiling.compiler_options(quickly=True) == compiling._QUICKLY
