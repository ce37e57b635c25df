"""A long session of different questions needs nothing cleared; what the benchmark of first answers
does, in small.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import jaxgdp

ROOT = Path(jaxgdp.__file__).parent.parent
BENCHMARK = ROOT / "benchmarks" / "first_answer.py"
GIB = 2**30

if not BENCHMARK.exists():
    pytest.skip("the benchmarks are in the source tree only", allow_module_level=True)


def _in_process(worker, task, folder):
    result = folder / "result.json"
    command = [sys.executable, str(BENCHMARK), "--worker", worker, "--result", str(result)]
    environment = {k: v for k, v in os.environ.items() if k != "JAXGDP_EXECUTOR"}
    environment |= {"PYTHONPATH": str(ROOT), "JAXGDP_NO_CACHE": "1", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        command,
        input=json.dumps(task),
        text=True,
        env=environment,
        capture_output=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(result.read_text())


def test_session_of_different_questions_stays_small(tmp_path):
    found = _in_process("session", {"number": 20, "seed": 0}, tmp_path)
    assert len(found["seconds"]) == 20
    assert found["peak_memory"][-1] < GIB
    # what one question leaves behind, after the first few have loaded what they need
    assert found["peak_memory"][-1] - found["peak_memory"][9] < GIB / 4


def test_questions_are_different_and_of_every_kind():
    spec = importlib.util.spec_from_file_location("first_answer", BENCHMARK)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    everything = list(module.questions(0))
    asked = [(id(m), q, a) for m, q, a in everything[: module.SESSION]]
    assert len(set(asked)) == module.SESSION
    classes = {type(part) for m, _, _ in everything for part in m.mechanisms}
    assert len(classes) >= 13 and {q for _, q, _ in asked} == set(module.QUANTITIES)


def test_first_answer_starts_no_backend_and_loads_no_other_mechanism():
    code = """
import sys, jaxgdp
jaxgdp.measure(jaxgdp.dpsgd(1.0, 0.01, 1000), "mu")
from jax._src import xla_bridge
assert not xla_bridge._backends, list(xla_bridge._backends)
others = {"random_allocation", "exponential_mechanism", "from_densities", "discrete_laplace"}
loaded = [name for name in others if f"jaxgdp.mechanisms.{name}" in sys.modules]
assert not loaded, loaded
"""
    environment = {k: v for k, v in os.environ.items() if k != "JAXGDP_EXECUTOR"}
    environment |= {"PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, "-c", code], text=True, env=environment, capture_output=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
