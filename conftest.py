"""Doctests of what needs an extra are collected where the extra is installed."""

from importlib.util import find_spec

_NEEDS = {"dp_accounting": ["jaxgdp/interop/dp_accounting/*", "jaxgdp/interop/jax_privacy.py"]}
collect_ignore_glob = [
    pattern for package, patterns in _NEEDS.items() if find_spec(package) is None for pattern in patterns
]
