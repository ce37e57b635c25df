"""An executor that is named gives a batch the same bits, whatever its process did before."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import jax
import pytest
from by_day import first

import jaxgdp

# what is measured, by name: a batch that is cut in two where its programs are compiled already, one
# of thresholds that are known beforehand, one of pieces, atoms beside a smooth law
PROGRAM = """
import gc, json, sys
gc.set_threshold(50_000, 20, 20)  # programs are traced, which makes many objects
import numpy as np
import jaxgdp

AT = dict(rtol=1e-2, fpr_floor=1e-6, delta=1e-4, epsilon=0.4)

def smooth(number, most):
    return jaxgdp.dpsgd(np.geomspace(0.9, most, number), 0.02, 1000)

def atoms(number):
    return jaxgdp.compose([(jaxgdp.Laplace(np.geomspace(4.0, 9.0, number)), 60),
                           (jaxgdp.RandomizedResponse(0.3), 4)])

MEASURED = {
    # (on lattices of one size)
    "a batch that is cut, of one number": lambda: (smooth(194, 4.0), "epsilon"),
    "a batch that is cut": lambda: (smooth(194, 5.0), ("mu", "epsilon")),
    "thresholds": lambda: (smooth(7, 3.0), "delta"),
    "atoms": lambda: (atoms(3), ("mu", "delta")),
    "one setting": lambda: (jaxgdp.dpsgd(1.3, 0.01, 2000), ("mu", "regret")),
}

def bits(executor):
    found = {}
    for name in names:
        mechanism, quantities = MEASURED[name]()
        measured = jaxgdp.measure(mechanism, quantities, executor=executor, **AT)
        found[name] = [[float(x).hex() for x in np.ravel(side)]
                       for bracket in measured.brackets.values() for side in bracket]
        assert set(np.ravel(measured.executor).tolist()) == {executor}, measured.executor
    return found

def others(executor):
    several = ("mu", "epsilon") if len(names) > 1 else "epsilon"
    for number in (65, 2):
        jaxgdp.measure(smooth(number, 4.0), several, executor=executor, **AT)
    jaxgdp.tradeoff(smooth(2, 2.0), rtol=1e-2)

found = {}
names = json.loads(sys.argv[1])
for step in sys.argv[2:]:
    kind, _, executor = step.partition(":")
    if kind == "others":
        others(executor or None)
    else:
        found[executor] = bits(executor)
print(json.dumps(found))
"""


SMOOTH = ("a batch that is cut", "thresholds", "one setting")


def bits(names, *steps):
    environment = os.environ | {
        "PYTHONPATH": str(Path(jaxgdp.__file__).parent.parent),
        "JAX_COMPILATION_CACHE_DIR": str(jax.config.jax_compilation_cache_dir),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(names), *steps],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert found.returncode == 0, found.stderr
    return json.loads(found.stdout)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("names", "executors"),
    first(
        1,
        (
            (SMOOTH[1:], ("eager",)),
            (("a batch that is cut, of one number",), ("compiled", "eager")),
            (SMOOTH, ("compiled", "eager")),
            (("atoms",), ("compiled", "eager")),
        ),
    ),
)
def test_named_executor_gives_the_same_bits_whatever_its_process_did_before(names, executors):
    """Other batches and sizes, by the same executors and by none that is named."""
    fresh: dict = {}
    for executor in executors:
        fresh |= bits(names, f"measure:{executor}")
    after = [f"{step}:{executor}" for executor in executors for step in ("others", "measure")]
    later = bits(names, "others:", *after)
    assert fresh.keys() == later.keys() == set(executors)
    for executor, answers in fresh.items():
        assert set(answers) == set(names)
        for name, answer in answers.items():
            assert answer == later[executor][name], (executor, name)
