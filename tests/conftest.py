"""Shared settings: a persistent compilation cache, and no more compiled programs in memory than one module needs."""

import os
import pathlib
import tempfile

import jax
import pytest

_CACHE = os.environ.get("JAXGDP_TEST_CACHE", str(pathlib.Path(tempfile.gettempdir()) / "jaxgdp-test-cache"))
jax.config.update("jax_compilation_cache_dir", _CACHE)
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)


_MOST_REGIONS = 25_000
_MAPS = pathlib.Path("/proc/self/maps")


@pytest.fixture(autouse=True)
def forget_programs():
    """Each compiled program maps about a thousand memory regions; an operating system allows a process some 65,000."""
    yield
    if _MAPS.exists() and _MAPS.read_bytes().count(b"\n") > _MOST_REGIONS:
        jax.clear_caches()


@pytest.fixture(autouse=True, scope="module")
def forget_module():
    """No more compiled programs in memory than one module needs."""
    yield
    jax.clear_caches()
