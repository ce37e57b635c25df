"""A sweep of 2,000 settings whose workers, and which itself, are killed with SIGKILL at random
moments: the store stays the same.

    python benchmarks/scale_kills.py [--settings 2000] [--kills 10] [--seed 1] [--output
    benchmarks/results/scale]

Three stores: an undisturbed one; one whose sweep is killed as a whole so many times and gone on
with; one by two workers of which one is killed so many times. Moments are random places of the
work, so that a busy machine does not move them. All files are compared byte by byte. It takes
minutes and is no part of the tests, which do the same in small."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

import jaxgdp

CHUNKS = 80


def grid(settings: int) -> dict:
    """So many settings of DP-SGD, each cheap: 2,000 are 20 noise multipliers, 20 rates and 5
    numbers of steps.
    """
    return {
        "noise_multiplier": np.geomspace(0.8, 8.0, settings // 100),
        "sampling_prob": np.geomspace(0.01, 0.5, 20),
        "num_steps": [200, 400, 800, 1600, 3200],
        "quantities": ("mu",),
        "rtol": 1e-2,
        "executor": "eager",
        "chunk_size": settings // CHUNKS,
    }


def files(path: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(path)): file.read_bytes()
        for file in sorted(path.rglob("*"))
        if file.is_file()
    }


def records(path: Path) -> int:
    return len(list((path / "jaxgdp" / "done" / "c").glob("*/0/0")))


def moments(path: Path, kills: int, generator: random.Random, seconds: float, over):
    """Waits for so many random moments of a sweep, one after the other: so many chunks are whole,
    and a part of the next one is done.

    Ends early where the sweep is over. Moments follow the work and not a clock, which other work on
    the machine would stretch."""
    for place in sorted(generator.uniform(0.0, 0.9 * CHUNKS) for _ in range(kills)):
        while records(path) < int(place) and not over():
            time.sleep(0.01)
        time.sleep((place - int(place)) * seconds / CHUNKS)
        if over():
            return
        yield


def killed_as_a_whole(
    path: Path, settings: int, kills: int, generator: random.Random, seconds: float
) -> list[int]:
    """Chunks that were whole after each kill, the last one after the run that was left alone."""
    whole, environment = [], os.environ | {"PYTHONPATH": str(Path(jaxgdp.__file__).parent.parent)}
    command = [sys.executable, __file__, "--child", str(path), "--settings", str(settings)]

    def started():
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        return process

    def over():
        return process.poll() is not None

    process = started()
    for _ in moments(path, kills, generator, seconds, over):
        process.send_signal(signal.SIGKILL)
        process.communicate()
        whole.append(records(path))
        assert whole == sorted(whole), "something that was whole is lost"
        process = started()
    process.communicate()
    assert process.returncode == 0 and len(whole) == kills
    return [*whole, records(path)]


def with_killed_workers(
    path: Path, settings: int, kills: int, generator: random.Random, seconds: float
) -> int:
    """How many workers were killed."""
    from jaxgdp.scale.local import workers

    killed, over = [], threading.Event()

    with workers(2) as client:

        def kill():
            for number, _ in enumerate(
                moments(path, kills, generator, seconds, over.is_set), start=1
            ):
                # (a worker that has just died does not answer, and the one in its place does not
                # yet)
                while len(killed) < number and not over.is_set():
                    with contextlib.suppress(Exception):
                        pid = generator.choice(sorted(client.run(os.getpid).values()))
                        os.kill(pid, signal.SIGKILL)
                        killed.append(pid)

        thread = threading.Thread(target=kill)
        thread.start()
        try:
            jaxgdp.sweep(**grid(settings), store=path, client=client).close()
        finally:
            over.set()
            thread.join()
    return len(killed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--settings", type=int, default=2000)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print("ready", flush=True)
        jaxgdp.sweep(**grid(options.settings), store=options.child).close()
        return
    generator, folder = random.Random(options.seed), Path(tempfile.mkdtemp())
    begin = time.monotonic()
    jaxgdp.sweep(**grid(options.settings), store=folder / "undisturbed.zarr").close()
    seconds = time.monotonic() - begin
    print(f"undisturbed: {seconds:.0f} s", flush=True)
    expected = files(folder / "undisturbed.zarr")
    whole = killed_as_a_whole(
        folder / "sweep.zarr", options.settings, options.kills, generator, seconds
    )
    same_sweep = files(folder / "sweep.zarr") == expected
    print(
        f"the sweep killed {options.kills} times, chunks whole after each: {whole}; same bytes:"
        f" {same_sweep}",
        flush=True,
    )
    killed = with_killed_workers(
        folder / "workers.zarr", options.settings, options.kills, generator, seconds
    )
    same_workers = files(folder / "workers.zarr") == expected
    print(f"workers killed: {killed}")
    print(
        f"byte by byte the same: sweep {same_sweep}, workers {same_workers} ({len(expected)} files)"
    )
    if options.output is not None:
        options.output.mkdir(parents=True, exist_ok=True)
        found = {
            "settings": options.settings,
            "files": len(expected),
            "seconds_undisturbed": round(seconds, 1),
            "sweep": {
                "kills": options.kills,
                "chunks_whole_after_each": whole,
                "same_bytes": same_sweep,
            },
            "workers": {"kills": killed, "same_bytes": same_workers},
        }
        (options.output / "kills.json").write_text(json.dumps(found, indent=2) + "\n")
    shutil.rmtree(folder)
    if not (same_sweep and same_workers):
        raise SystemExit("the stores differ")
    if killed != options.kills:
        raise SystemExit(f"only {killed} workers were killed")


if __name__ == "__main__":
    main()
