"""Shared settings: a persistent compilation cache, quick compilation of what the tests compile
themselves, and the digits of mpmath.
"""

import os
import pathlib
import tempfile

import jax
import mpmath
import pytest

_CACHE = os.environ.get(
    "JAXGDP_TEST_CACHE", str(pathlib.Path(tempfile.gettempdir()) / "jaxgdp-test-cache")
)
jax.config.update("jax_compilation_cache_dir", _CACHE)
# (small programs, too: thousands of them took a third of what the tests of training take)
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.02)

# Tests compile quickly, unless JAXGDP_COMPILE=thorough asks for the programs that users run:
# .ci/run does so once for the files that compile most of what users do, and the nightly tests do
_THOROUGH = os.environ.get("JAXGDP_COMPILE") == "thorough"

# what the tests themselves compile runs a few times: for CPUs with LLVM's quick optimisations only
# (with none at all, training runs take five times as long) and without XLA's newer emitters, like
# the programs of the package; processes that a test starts are left alone.
# XLA ends a process that names a flag it does not have: JAX 0.11 and later have no other emitters
_FLAGS = "--xla_backend_optimization_level=1"
if jax.__version_info__ < (0, 11):
    _FLAGS += " --xla_cpu_use_fusion_emitters=false"
with pytest.MonkeyPatch.context() as _environment:
    if not _THOROUGH:
        _environment.setenv("XLA_FLAGS", os.environ.get("XLA_FLAGS", "") + " " + _FLAGS)
    jax.devices()


@pytest.fixture(scope="session")
def flags_of_xla() -> str:
    """What a process that a test starts may put among its flags, to compile as the tests do."""
    return "" if _THOROUGH else _FLAGS


def pytest_configure(config):
    """Let the package compile quickly, but for tests that are run at night."""
    if "nightly" not in config.option.markexpr:
        os.environ.setdefault("JAXGDP_COMPILE", "quick")


@pytest.fixture(scope="module", autouse=True)
def digits_of_mpmath(request):
    """The digits of mpmath in a file of tests: its ``DIGITS``, whatever other files ask for."""
    with mpmath.workdps(getattr(request.module, "DIGITS", 30)):
        yield
