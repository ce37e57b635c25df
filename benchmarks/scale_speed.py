"""Sweeps in stores: settings per second by one and two workers, what the store costs, and memory
against the size of the grid.

    python benchmarks/scale_speed.py [--settings 2560] [--rounds 2] [--chunks 3] [--output
    benchmarks/results/scale] python benchmarks/scale_speed.py --whole 100000 # one whole grid, and
    the memory over all of its chunks

Workers are processes kept to one core each, whether there is one or two; they are warmed up by
chunks of another store, and all settings are computed by NumPy, so that nothing is compiled. Rounds
of one and of two workers alternate and the fastest counts; beside it stands the CPU time of every
worker and of the client, which other work on the machine does not stretch. The store's cost is that
of a grid whose numbers cost nothing. Memory is the resident set of a fresh process after the first
chunks of grids of different sizes: a store is filled chunk by chunk, so what grows with the grid
shows there, and what grows with the chunks shows in their slope, and over all chunks of a whole
grid, which is computed as a user's would be, by compiled programs."""

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
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
SIZES = (10**3, 10**4, 10**5, 10**6)
CHUNK = 100
SMALL = 10  # settings of a chunk of a worker: all that one waits for at the end


def resident() -> float:
    """MiB in memory now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def axes(settings: int) -> dict:
    """A grid of so many settings of DP-SGD: ten numbers of steps, the rest shared by the other
    axes.
    """
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
    """Seconds for each setting that writing a store, and looking at one that is whole, take:
    nothing is computed.
    """
    from jaxgdp.scale.compute import compute_missing
    from jaxgdp.scale.layout import Layout
    from jaxgdp.scale.template import Template, Variable

    shape = (settings // chunk, chunk)
    names = (
        "mu",
        "mu_lower",
        "mu_upper",
        "status_mu",
        "regret",
        "regret_lower",
        "regret_upper",
        "status_regret",
        "status",
        "lattice_size",
    )
    table = {name: np.zeros((1, chunk)) for name in names}
    template = Template(
        {"a": np.arange(float(shape[0])), "b": np.arange(float(chunk))},
        {name: Variable("float64", {}) for name in names},
        {},
        {},
        Layout(shape, (1, chunk)),
    )
    seconds = []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(2):
            start = time.perf_counter()
            compute_missing(
                Path(folder) / "s.zarr", template, lambda *_: table, lambda n: None, lambda n: None
            )
            seconds.append(time.perf_counter() - start)
    return {
        "settings": settings,
        "settings_of_a_chunk": chunk,
        "variables": len(names),
        "microseconds_to_write_one": round(1e6 * seconds[0] / settings, 2),
        "microseconds_to_check_one": round(1e6 * seconds[1] / settings, 2),
    }


def _cpu_seconds() -> float:
    """Of this process, all threads."""
    return time.process_time()


def _kept_to(core: int) -> None:
    os.sched_setaffinity(0, [core])


def workers_speed(number: int, settings: int) -> dict:
    """Settings per second by so many workers, each on a core of its own."""
    import jaxgdp
    from jaxgdp.scale.local import cores, workers

    grid = axes(settings)
    count = int(
        np.prod([len(grid[axis]) for axis in ("noise_multiplier", "sampling_prob", "num_steps")])
    )
    with tempfile.TemporaryDirectory() as folder, workers(number) as client:
        for address, core in zip(
            client.scheduler_info(n_workers=-1)["workers"], cores(), strict=False
        ):
            client.run(_kept_to, core, workers=[address])
        warm = axes(20 * number) | {"noise_multiplier": np.linspace(2.0, 3.0, 4 * number)}
        jaxgdp.sweep(
            **warm, store=Path(folder) / "warm.zarr", chunk_size=SMALL, client=client
        ).close()
        before, client_before = client.run(_cpu_seconds), _cpu_seconds()
        start = time.perf_counter()
        jaxgdp.sweep(
            **grid, store=Path(folder) / "sweep.zarr", chunk_size=SMALL, client=client
        ).close()
        seconds, client_after = time.perf_counter() - start, _cpu_seconds()
        after = client.run(_cpu_seconds)
    return {
        "workers": number,
        "settings": count,
        "seconds": round(seconds, 2),
        "per_second": round(count / seconds, 2),
        "cpu_seconds_of_workers": [round(after[worker] - before[worker], 2) for worker in before],
        "cpu_seconds_of_client": round(client_after - client_before, 2),
    }


def whole_grid(settings: int) -> dict:
    """A whole grid, chunk after chunk, by whatever computes for a user who does not choose;
    resident memory (MiB) all along.
    """
    import jaxgdp

    grid: dict[str, Any] = axes(settings) | {
        "executor": None,
        "num_steps": np.round(np.geomspace(500, 2000, 10)),
    }
    grid["noise_multiplier"] = np.geomspace(1.0, 4.0, len(grid["noise_multiplier"]))
    grid["sampling_prob"] = np.geomspace(0.05, 0.2, len(grid["sampling_prob"]))
    done, seen, start = 0, [], time.perf_counter()

    def count(number):
        nonlocal done
        done += number
        seen.append((done, resident()))

    with tempfile.TemporaryDirectory() as folder:
        found = jaxgdp.sweep(**grid, store=Path(folder) / "sweep.zarr", progress=count)
        met = int((found.status == 0).sum())
        found.close()
    number, memory = np.array(seen).T
    number, memory = number[number > 0], memory[number > 0]
    late = number > 0.2 * done
    slope = float(np.polyfit(number[late], memory[late], 1)[0])
    peak = float(np.max(memory))
    return {
        "settings": done,
        "as_narrow_as_asked": met,
        "seconds": round(time.perf_counter() - start, 1),
        "samples": len(memory),
        "resident_mib": {
            f"{part:.0%}": round(float(memory[np.argmax(number >= part * done)]), 1)
            for part in (0.01, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
        },
        "peak_mib": round(peak, 1),
        "mib_for_each_100000_more": round(1e5 * slope, 2),
        "mib_at_1000000": round(peak + max(slope, 0.0) * (10**6 - done), 1),
    }


TASKS = {"memory": memory, "overhead": overhead, "workers": workers_speed, "whole": whole_grid}


def in_process(task: str, *arguments: int) -> dict:
    """One measurement in a process of its own."""
    print(f"  {task} {' '.join(map(str, arguments))} …", file=sys.stderr, flush=True)
    search = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    command = [sys.executable, __file__, "--task", task, *map(str, arguments)]
    found = subprocess.run(
        command,
        env=os.environ | {"PYTHONPATH": search},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(found.stdout.splitlines()[-1])


def about() -> dict:
    """When and where."""
    import landscape_speed

    device = landscape_speed.in_process("device", {})
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": landscape_speed.machine(device),
        "versions": device["versions"],
    }


def fastest(run: dict) -> dict[int, dict]:
    """The fastest round of each number of workers."""
    found: dict[int, dict] = {}
    for row in run["workers"]:
        known = found.setdefault(row["workers"], row)
        found[row["workers"]] = min(known, row, key=lambda row: row["seconds"])
    return found


def busy(run: dict) -> str:
    """What to say of other work on the machine, from the load before and after; nothing where there
    was next to none.
    """
    load = run["load_before"]
    return f"; a load of {load:g} by other work on the machine" if load > 0.5 else ""


def table(run: dict, whole: dict | None = None) -> str:
    """All of it, as Markdown."""
    one, two = (fastest(run)[number] for number in (1, 2))
    m, cpu = (
        run["machine"],
        [sum(row["cpu_seconds_of_workers"]) / row["settings"] for row in (one, two)],
    )
    lines = [
        f"{m['cpu']}, {m['cores']} cores; {run['date']}{busy(run)}.",
        "",
        "| | |",
        "|---|---|",
        f"| one worker on one core | {one['per_second']:.1f} settings/s |",
        f"| two workers on a core each | {two['per_second']:.1f} settings/s,"
        f" **{two['per_second'] / one['per_second']:.2f}×** |",
        "| CPU time of a setting, by one and by two workers |"
        f" {1e3 * cpu[0]:.1f} ms, {1e3 * cpu[1]:.1f} ms |",
        "| the store: writing a setting, checking one"
        f" (chunks of {run['overhead']['settings_of_a_chunk']}) |"
        f" {run['overhead']['microseconds_to_write_one']:.0f} µs,"
        f" {run['overhead']['microseconds_to_check_one']:.1f} µs |",
    ]
    lines += [
        f"| resident memory after {len(row['after_each_chunk'])} chunks of {CHUNK}, grid of"
        f" {row['settings']:,} | {row['after_each_chunk'][-1]:.0f} MiB |"
        for row in run["memory_mib"]
    ]
    if whole is not None:
        lines.append(
            f"| resident memory over a whole grid of {whole['settings']:,}, compiled"
            f" ({whole['date']}{busy(whole)}) | largest {whole['peak_mib']:.0f} MiB,"
            f" {whole['mib_for_each_100000_more']:+.1f} MiB for each 100,000 more:"
            f" {whole['mib_at_1000000']:.0f} MiB at 1,000,000 |"
        )
    return "\n".join(lines) + "\n"


def stored(folder: Path, name: str) -> dict:
    return json.loads((folder / f"{name}.json").read_text())


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--settings", type=int, default=2560)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--chunks", type=int, default=3)
    parser.add_argument(
        "--whole",
        type=int,
        help="compute a whole grid of so many settings instead of everything else",
    )
    parser.add_argument("--output", type=Path, default=ROOT / "benchmarks" / "results" / "scale")
    parser.add_argument("--task", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.task:
        name, *arguments = options.task
        print(json.dumps(TASKS[name](*map(int, arguments))))
        return
    found = about() | {"load_before": round(os.getloadavg()[0], 1)}
    if options.whole:
        name = "grid"
        found |= in_process("whole", options.whole)
    else:
        name = "speed"
        found |= {
            "workers": [
                in_process("workers", n, options.settings)
                for _ in range(options.rounds)
                for n in (1, 2)
            ],
            "overhead": in_process("overhead"),
            "memory_mib": [in_process("memory", size, options.chunks) for size in SIZES],
        }
    found["load_after"] = round(os.getloadavg()[0], 1)
    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / f"{name}.json").write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
