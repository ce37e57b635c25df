"""Sweeps in stores: settings per second by one and two workers, what the store costs, and memory against the size of the grid.

    python benchmarks/scale_speed.py [--settings 240] [--chunks 3] [--output benchmarks/results/scale]

Workers are processes pinned to a core each; they are warmed up by one chunk of another store, and all settings are computed by
NumPy, so that nothing is compiled. The store's cost is that of a grid whose numbers cost nothing. Memory is the resident set of a
fresh process after the first chunks of grids of different sizes: a store is filled chunk by chunk, so what grows with the grid
shows there, and what grows with the chunks shows in their slope.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
SIZES = (10**3, 10**4, 10**5, 10**6)
CHUNK = 100


def resident() -> float:
    """MiB in memory now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def axes(settings: int) -> dict:
    """A grid of so many settings of DP-SGD: ten numbers of steps, the rest shared by the other axes."""
    sigmas = max(1, round((settings / 10) ** 0.5))
    return {
        "noise_multiplier": np.geomspace(1.0, 8.0, sigmas),
        "sampling_prob": np.geomspace(0.01, 0.3, settings // 10 // sigmas),
        "num_steps": np.round(np.geomspace(200, 2000, 10)),
        "quantities": ("mu",),
        "rtol": 1e-2,
        "executor": "eager",
    }


class Enough(Exception):
    """As many chunks as wanted are written."""


def memory(settings: int, chunks: int) -> dict:
    """Resident memory (MiB) of this process before, and after each of the first chunks."""
    import jaxgdp

    grid, after, done = axes(settings), [], 0

    def count(number):
        nonlocal done
        done += number
        if done and done % CHUNK == 0:
            after.append(round(resident(), 1))
            if len(after) == chunks:
                raise Enough

    jaxgdp.measure(jaxgdp.dpsgd(2.0, 0.1, 500), "mu", rtol=1e-2)
    before = round(resident(), 1)
    with tempfile.TemporaryDirectory() as folder, contextlib.suppress(Enough):
        jaxgdp.sweep(**grid, store=Path(folder) / "sweep.zarr", chunk_size=CHUNK, progress=count)
    return {"settings": settings, "before": before, "after_each_chunk": after}


def overhead(settings: int = 100_000, chunk: int = 1000) -> dict:
    """Seconds for each setting that writing a store, and looking at one that is whole, take: nothing is computed."""
    from jaxgdp.scale.fill import fill
    from jaxgdp.scale.layout import Layout
    from jaxgdp.scale.template import Template, Variable

    shape = (settings // chunk, chunk)
    names = ("mu", "mu_lower", "status_mu", "regret", "regret_lower", "status_regret", "status", "lattice_size")
    table = {name: np.zeros((1, chunk)) for name in names}
    template = Template(
        {"a": np.arange(float(shape[0])), "b": np.arange(float(chunk))},
        {name: Variable("float64", {}) for name in names}, {}, {}, Layout(shape, (1, chunk)),
    )  # fmt: skip
    seconds = []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(2):
            start = time.perf_counter()
            fill(Path(folder) / "s.zarr", template, lambda *_: table, lambda n: None, lambda n: None)
            seconds.append(time.perf_counter() - start)
    return {
        "settings": settings, "settings_of_a_chunk": chunk, "variables": len(names),
        "microseconds_to_write_one": round(1e6 * seconds[0] / settings, 2),
        "microseconds_to_check_one": round(1e6 * seconds[1] / settings, 2),
    }  # fmt: skip


def workers_speed(number: int, settings: int) -> dict:
    """Settings per second by so many workers, each on cores of its own."""
    import jaxgdp
    from jaxgdp.scale.local import workers

    grid = axes(settings)
    with tempfile.TemporaryDirectory() as folder, workers(number) as client:
        warm = axes(10 * number) | {"noise_multiplier": np.linspace(2.0, 3.0, number)}
        jaxgdp.sweep(**warm, store=Path(folder) / "warm.zarr", chunk_size=10, client=client).close()
        start = time.perf_counter()
        jaxgdp.sweep(**grid, store=Path(folder) / "sweep.zarr", chunk_size=10, client=client).close()
        seconds = time.perf_counter() - start
    count = int(np.prod([len(grid[axis]) for axis in ("noise_multiplier", "sampling_prob", "num_steps")]))
    return {"workers": number, "settings": count, "seconds": round(seconds, 2), "per_second": round(count / seconds, 2)}


TASKS = {"memory": memory, "overhead": overhead, "workers": workers_speed}


def in_process(task: str, *arguments: int) -> dict:
    """One measurement in a process of its own."""
    print(f"  {task} {' '.join(map(str, arguments))} …", file=sys.stderr, flush=True)
    search = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    command = [sys.executable, __file__, "--task", task, *map(str, arguments)]
    found = subprocess.run(
        command, env=os.environ | {"PYTHONPATH": search}, stdout=subprocess.PIPE, text=True, check=True
    )
    return json.loads(found.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--settings", type=int, default=240)
    parser.add_argument("--chunks", type=int, default=3)
    parser.add_argument("--output", type=Path, default=ROOT / "benchmarks" / "results" / "scale")
    parser.add_argument("--task", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.task:
        name, *arguments = options.task
        print(json.dumps(TASKS[name](*map(int, arguments))))
        return
    found = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "cores": len(os.sched_getaffinity(0)),
        "load_before": round(os.getloadavg()[0], 1),
        "overhead": in_process("overhead"),
        "workers": [in_process("workers", number, options.settings) for number in (1, 2)],
        "memory_mib": [in_process("memory", size, options.chunks) for size in SIZES],
    }
    found["load_after"] = round(os.getloadavg()[0], 1)
    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / "speed.json").write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
