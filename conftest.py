"""Doctests of what needs an extra are collected where the extra is installed; workers do not compete for the cores; long files first."""

import collections
import os
from importlib.util import find_spec

# each worker has a core: threads of the linear algebra would only wait for one another (read when NumPy is first imported)
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

_NEEDS = {"dp_accounting": ["jaxgdp/interop/dp_accounting/*", "jaxgdp/interop/jax_privacy.py"]}
collect_ignore_glob = [
    pattern for package, patterns in _NEEDS.items() if find_spec(package) is None for pattern in patterns
]


def pytest_collection_modifyitems(config, items):
    """``nightly`` tests where they are asked for; files with many slow tests first: a long one never starts last."""
    if "nightly" not in config.option.markexpr:
        nightly = [item for item in items if item.get_closest_marker("nightly")]
        config.hook.pytest_deselected(items=nightly)
        items[:] = [item for item in items if item not in nightly]
    slow = collections.Counter(item.path for item in items if item.get_closest_marker("slow"))
    items.sort(key=lambda item: -slow[item.path])
