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

# what the tests themselves compile runs a few times: for CPUs without LLVM's optimisations, which take longer (the programs of the
# package name a level of their own, and processes that a test starts are left alone)
with pytest.MonkeyPatch.context() as _environment:
    _environment.setenv("XLA_FLAGS", os.environ.get("XLA_FLAGS", "") + " --xla_backend_optimization_level=0")
    jax.devices()


_MOST_REGIONS = 25_000
_MAPS = pathlib.Path("/proc/self/maps")
_MOST_MEMORY, _GROWTH = 2**30, 2**27  # bytes
_SIZE = pathlib.Path("/proc/self/statm")
_LIBRARY = ctypes.CDLL(None)  # glibc keeps what was freed unless it is told not to


def _resident() -> int:
    """Bytes in memory, where the operating system tells."""
    return int(_SIZE.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if _SIZE.exists() else 0


class _Programs:
    """What to forget, and when: it takes a third of a second, and what is forgotten is compiled again."""

    compiled = 0  # programs since they were last forgotten
    kept = 0  # bytes that were left then

    @classmethod
    def count(cls, event, duration, **_):
        cls.compiled += event.endswith("backend_compile_duration")

    @classmethod
    def forget(cls):
        jax.clear_caches()
        gc.collect()
        if hasattr(_LIBRARY, "malloc_trim"):
            _LIBRARY.malloc_trim(0)
        cls.compiled, cls.kept = 0, _resident()

    @classmethod
    def grown(cls) -> bool:
        return _resident() > max(_MOST_MEMORY, cls.kept + _GROWTH)


jax.monitoring.register_event_duration_secs_listener(_Programs.count)


@pytest.fixture(autouse=True)
def forget_programs():
    """Each compiled program maps about a thousand memory regions; an operating system allows a process some 65,000."""
    before = _Programs.compiled
    yield
    mapped = _Programs.compiled > before and _MAPS.exists()
    if _Programs.grown() or (mapped and _MAPS.read_bytes().count(b"\n") > _MOST_REGIONS):
        _Programs.forget()


@pytest.fixture(autouse=True, scope="module")
def forget_module():
    """No more compiled programs in memory than one module needs, nor what the compiler leaves behind."""
    yield
    if _Programs.compiled:
        _Programs.forget()
