"""Shared settings: a persistent compilation cache, so that programs compile once per machine."""

import os
import pathlib
import tempfile

import jax

_CACHE = os.environ.get("JAXGDP_TEST_CACHE", str(pathlib.Path(tempfile.gettempdir()) / "jaxgdp-test-cache"))
jax.config.update("jax_compilation_cache_dir", _CACHE)
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)
