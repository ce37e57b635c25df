"""No thread but the one that asks works: what BLAS shares out costs more than it saves."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

ASK = """
import os, time
import jaxgdp

def others():
    seconds = {}
    for thread in os.listdir("/proc/self/task"):
        fields = open(f"/proc/self/task/{thread}/stat").read().rsplit(")", 1)[1].split()
        seconds[thread] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    del seconds[str(os.getpid())]
    return sum(seconds.values())

SETTINGS = [
    (1.0, 0.01, 1000), (0.6, 1e-3, 10**5), (0.1, 1e-4, 10**4), (0.05, 0.5, 40), (20.0, 0.5, 300),
    (0.3, 1e-7, 10**8), (0.8, 0.3, 7), (0.4, 1e-5, 100),
]
jaxgdp.measure(jaxgdp.dpsgd(1.0, 0.01, 400), "mu", executor="eager")
time.sleep(0.5)  # (where it is loaded, threads of BLAS begin at full speed with nothing to do)
before, start = others(), time.process_time()
for sigma, p, steps in SETTINGS:
    for quantity, rate in (("mu", {}), ("epsilon", {"delta": 1e-6}), ("beta", {"fpr": 1e-3})):
        jaxgdp.measure(jaxgdp.dpsgd(sigma, p, steps), quantity, executor="eager", **rate)
mixed = jaxgdp.compose([(jaxgdp.Laplace(1.0), 20), (jaxgdp.SubsampledGaussian(0.7, 0.1), 20)])
jaxgdp.measure(mixed, "mu", executor="eager")
print(others() - before, time.process_time() - start)
"""


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="counts threads as Linux does")
def test_work_is_done_by_the_thread_that_asks():
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "2"}
    done = subprocess.run(
        [sys.executable, "-c", ASK], capture_output=True, text=True, check=True, env=environment
    )
    by_others, in_all = map(float, done.stdout.split())
    assert by_others < 0.02 * in_all, (by_others, in_all)
