"""Shared settings: a persistent compilation cache, and no more compiled programs in memory than one module needs."""

import os
import pathlib
import tempfile

import jax
import pytest

_CACHE = os.environ.get("JAXGDP_TEST_CACHE", str(pathlib.Path(tempfile.gettempdir()) / "jaxgdp-test-cache"))
jax.config.update("jax_compilation_cache_dir", _CACHE)
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)


@pytest.fixture(autouse=True, scope="module")
def forget_programs():
    """Each compiled program maps about a thousand memory regions; an operating system allows a process some 65,000."""
    yield
    jax.clear_caches()
