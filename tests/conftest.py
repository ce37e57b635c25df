"""Shared settings: a persistent compilation cache, and no more compiled programs in memory than one module needs."""

import ctypes
import gc
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
_LIBRARY = ctypes.CDLL(None)  # glibc keeps what was freed unless it is told not to


@pytest.fixture(autouse=True)
def forget_programs():
    """Each compiled program maps about a thousand memory regions; an operating system allows a process some 65,000."""
    yield
    if _MAPS.exists() and _MAPS.read_bytes().count(b"\n") > _MOST_REGIONS:
        jax.clear_caches()


@pytest.fixture(autouse=True, scope="module")
def forget_module():
    """No more compiled programs in memory than one module needs, nor what the compiler leaves behind."""
    yield
    jax.clear_caches()
    gc.collect()
    if hasattr(_LIBRARY, "malloc_trim"):
        _LIBRARY.malloc_trim(0)
