"""What all tests and doctests share.

Doctests of what needs an extra are collected where the extra is installed; workers do not compete
for the cores; long files come first; no file's programs are compiled because of what another one
did; and compiled programs are forgotten when they have become many."""

import collections
import ctypes
import gc
import os
import pathlib
import sys
from importlib.util import find_spec

# each worker has a core: threads of the linear algebra would only wait for one another (read when
# NumPy is first imported)
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import jax
import pytest

# hundreds of processes that tests start import the package: whatever the environment says, it is
# compiled to bytecode once and not by each of them, which takes a second and more
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

_NEEDS = {
    "dp_accounting": ["jaxgdp/interop/dp_accounting/*", "jaxgdp/interop/jax_privacy.py"],
    "flint": ["jaxgdp/proof/*"],
}
collect_ignore_glob = [
    pattern
    for package, patterns in _NEEDS.items()
    if find_spec(package) is None
    for pattern in patterns
]


def pytest_collection_modifyitems(config, items):
    """``nightly`` tests where they are asked for; files with many slow tests first: a long one
    never starts last.
    """
    if "nightly" not in config.option.markexpr:
        nightly = [item for item in items if item.get_closest_marker("nightly")]
        config.hook.pytest_deselected(items=nightly)
        items[:] = [item for item in items if item not in nightly]
    slow = collections.Counter(item.path for item in items if item.get_closest_marker("slow"))
    items.sort(key=lambda item: -slow[item.path])


def pytest_collection_finish():
    """What was imported and collected stays to the end: not looked through for garbage again and
    again while programs are traced, which makes many objects.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


_MOST_REGIONS = 25_000
_MAPS = pathlib.Path("/proc/self/maps")
_MOST_MEMORY = 11 * 2**27  # bytes
# bytes beyond what was left: between two files, and within one, whose tests share programs
_GROWTH, _GROWTH_WITHIN = 2**26, 2**28
_SIZE = pathlib.Path("/proc/self/statm")
_LIBRARY = ctypes.CDLL(None)  # glibc keeps what was freed unless it is told not to


def _resident() -> int:
    """Bytes in memory, where the operating system tells."""
    return int(_SIZE.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if _SIZE.exists() else 0


class _Programs:
    """What to forget, and when: it takes a third of a second, and what is forgotten is compiled
    again.
    """

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
    def grown(cls, growth: int) -> bool:
        return _resident() > max(_MOST_MEMORY, cls.kept + growth)


jax.monitoring.register_event_duration_secs_listener(_Programs.count)


@pytest.fixture(scope="module", autouse=True)
def nothing_compiled_so_far():
    """Who computes in a file is what it would be if the file was run alone: not compiled programs
    because another file compiled some of that kind, or because NumPy did much there.
    """
    if (batch := sys.modules.get("jaxgdp.accounting.run.batch")) is not None:
        batch.BACKGROUND.wait_for_all()
        batch.BACKGROUND._known.clear()
        batch._COMPILED.clear()
        batch._EAGER_WORK_SO_FAR.clear()
    if _Programs.grown(_GROWTH):
        _Programs.forget()


@pytest.fixture(autouse=True)
def forget_programs():
    """Each compiled program maps about a thousand memory regions; an operating system allows a
    process some 65,000.
    """
    before = _Programs.compiled
    yield
    mapped = _Programs.compiled > before and _MAPS.exists()
    if _Programs.grown(_GROWTH_WITHIN) or (
        mapped and _MAPS.read_bytes().count(b"\n") > _MOST_REGIONS
    ):
        _Programs.forget()
