"""Doctests of what needs an extra are collected where the extra is installed; workers do not compete for the cores."""

import os
from importlib.util import find_spec

# each worker has a core: threads of the linear algebra would only wait for one another (read when NumPy is first imported)
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

_NEEDS = {"dp_accounting": ["jaxgdp/interop/dp_accounting/*", "jaxgdp/interop/jax_privacy.py"]}
collect_ignore_glob = [
    pattern for package, patterns in _NEEDS.items() if find_spec(package) is None for pattern in patterns
]
