"""Programs are compiled with options of the compiler, and without those that it does not know."""

import jax
import numpy as np
import pytest

from jaxgdp.numerics import compiling


@pytest.fixture(autouse=True)
def forget(monkeypatch):
    """As users have it: nothing kept, and nothing asked for by the environment."""
    monkeypatch.delenv("JAXGDP_COMPILE", raising=False)
    compiling._options_known.cache_clear()
    yield
    compiling._options_known.cache_clear()


def doubled(x, *, times):
    return x * 2.0**times


@pytest.mark.parametrize("quickly", [False, True])
@pytest.mark.parametrize("options", [None, {}])
def test_options_change_nothing_but_the_compiler(monkeypatch, options, quickly):
    if options is not None:
        monkeypatch.setattr(compiling, "_QUICK" if quickly else "_THOROUGH", options)
    program = compiling.Program(doubled, quickly=quickly, static_argnames=("times",))
    assert np.all(program(np.arange(3.0), times=2) == program.plain(np.arange(3.0), times=2))
    assert np.all(program(np.arange(3.0), times=2) == np.array([0.0, 4.0, 8.0]))


def test_option_that_the_compiler_does_not_know_is_left_out(monkeypatch):
    known = compiling.compiler_options()
    compiling._options_known.cache_clear()
    for name in ("_THOROUGH", "_ACCELERATOR"):
        options = getattr(compiling, name) | {"xla_no_such_option": True}
        monkeypatch.setattr(compiling, name, options)
    assert compiling.compiler_options() == known
    assert compiling.Program(lambda x: x + 1)(1.0) == 2.0


@pytest.mark.skipif(
    jax.default_backend() != "cpu", reason="options are those of the compiler for CPUs"
)
def test_compiler_knows_the_options():
    # (JAX 0.11 and later have the newer emitters only)
    gone = {"xla_cpu_use_fusion_emitters"} if jax.__version_info__ >= (0, 11) else set()
    for quickly, options in ((False, compiling._THOROUGH), (True, compiling._QUICK)):
        known = {name: value for name, value in options.items() if name not in gone}
        assert compiling.compiler_options(quickly) == known


@pytest.mark.parametrize("asked, quickly", [("quick", True), ("thorough", False), ("", False)])
def test_environment_asks_for_quick_compilation(monkeypatch, asked, quickly):
    monkeypatch.setenv("JAXGDP_COMPILE", asked)
    assert compiling.quick() is quickly
    assert compiling.compiler_options() == compiling._options_known(quickly)
    # programs that are not worth optimising never are
    assert compiling.compiler_options(quickly=True) == compiling._options_known(True)
    assert compiling.Program(lambda x: x + 1)(1.0) == 2.0


def test_unknown_word_is_refused_where_a_program_is_compiled(monkeypatch):
    monkeypatch.setenv("JAXGDP_COMPILE", "slowly")
    with pytest.raises(ValueError, match="JAXGDP_COMPILE must be 'thorough' or 'quick', got 'slow"):
        compiling.Program(lambda x: x + 1)(1.0)
