"""What large first calls cost, each in a fresh process: batches, a store's first chunk, one history
of many settings, a fine batch, and a session of many mixes.

    python benchmarks/first_batches.py                  # all of them
    python benchmarks/first_batches.py batch store      # some

Imports are counted. CPU time stands beside wall time, because other work on the machine stretches
the second. Beside each number stands what makes it comparable: brackets wider than asked, memory,
and the same settings another way in the same run. Writes all numbers (.json)."""

from __future__ import annotations

import argparse
import datetime
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
BATCH, SWEEP, STORE, HISTORY, FINE, MIXES = 1000, 1536, 4000, 2000, 32, 200
ASKED = {"quantities": ("mu", "epsilon"), "delta": 1e-5}


class Clock:
    """Wall and CPU seconds since the process began to load the library."""

    def __init__(self):
        self.wall, self.cpu = time.perf_counter(), time.process_time()

    def __call__(self) -> dict:
        wall, cpu = time.perf_counter() - self.wall, time.process_time() - self.cpu
        return {"wall": round(wall, 2), "cpu": round(cpu, 2)}


def settings(number: int, seed: int = 5):
    """Random (σ, p, T): σ in .6 to 7, p in .001 to .37, T in 300 to 3000."""
    rng = np.random.default_rng(seed)
    between = lambda low, high: np.exp(rng.uniform(np.log(low), np.log(high), number))
    return between(0.6, 7.0), between(0.001, 0.37), np.round(between(300, 3000))


def wide(found) -> int:
    """Settings with a bracket wider than asked."""
    return int(np.sum(np.max(list(found.status.values()), axis=0) != 0))


def resident() -> int:
    """Largest resident set of this process, MiB."""
    import first_answer

    return first_answer.resident() // 2**20


# Each runs in a fresh process and returns a dict.


def run_batch(executor: str = "auto") -> dict:
    """One call, and when how many settings were counted."""
    clock, done, seen = Clock(), 0, []
    import jaxgdp

    def count(number):
        nonlocal done
        done += number
        if not seen or clock()["wall"] - seen[-1][0] > 0.5:
            seen.append((clock()["wall"], done))

    chosen = None if executor == "auto" else executor
    found = jaxgdp.measure(jaxgdp.dpsgd(*settings(BATCH)), progress=count, executor=chosen, **ASKED)
    return clock() | {
        "settings": BATCH,
        "wider than asked": wide(found),
        "peak MiB": resident(),
        "counted": seen[:4],
        "by": {name: int(np.sum(found.executor == name)) for name in set(found.executor)},
    }


def run_sweep() -> dict:
    """The grid of the regret landscape in memory."""
    clock = Clock()
    import landscape_speed

    import jaxgdp

    grid = jaxgdp.sweep(*landscape_speed.GRID.values(), ("mu", "regret"))
    assert grid.mu.size == SWEEP
    return clock() | {"wider than asked": int((grid.status != 0).sum()), "peak MiB": resident()}


def run_store() -> dict:
    """When the first chunk of a store is written, and the last one."""
    clock = Clock()
    import jaxgdp
    from jaxgdp.scale.store import Store

    written, write = [], Store.write

    def recording(*arguments):
        write(*arguments)
        written.append(clock())

    Store.write = recording
    axes = (np.geomspace(0.6, 7, STORE // 100), np.geomspace(0.001, 0.37, 10))
    with tempfile.TemporaryDirectory() as folder:
        steps = np.round(np.geomspace(300, 3000, 10))
        jaxgdp.sweep(*axes, steps, **ASKED, store=Path(folder) / "sweep.zarr").close()
    return {"first": written[0], "last": written[-1], "chunks": len(written)}


def run_history() -> dict:
    """ε of one Opacus history of so many different settings."""
    clock = Clock()
    from jaxgdp.interop.opacus import CertifiedAccountant

    noise, rate, _ = settings(HISTORY)
    accountant = CertifiedAccountant()
    accountant.history = [(n, p, 3) for n, p in zip(noise.tolist(), rate.tolist(), strict=True)]
    epsilon = accountant.get_epsilon(1e-5)
    return clock() | {"settings": HISTORY, "epsilon": epsilon, "peak MiB": resident()}


def run_fine() -> dict:
    """ε(1e-15) at rtol 1e-7: a batch, and one setting by itself, loaded before."""
    import jaxgdp

    steps = np.round(np.linspace(1500, 4500, FINE))
    ask = lambda some: jaxgdp.measure(
        jaxgdp.dpsgd(2.0, 0.01, some), "epsilon", delta=1e-15, rtol=1e-7
    )
    ask(steps[:1])
    some, clock = steps[2::4], Clock()  # (later ones take longer)
    for one in some:
        ask(one)
    alone, clock = clock(), Clock()
    found = ask(steps)
    batch = clock()
    each = {key: (alone[key] / len(some), batch[key] / FINE) for key in ("cpu", "wall")}
    return {
        "one by one, CPU and seconds each": [round(pair[0], 3) for pair in each.values()],
        "batch, CPU and seconds each": [round(pair[1], 3) for pair in each.values()],
        "ratio of CPU, of seconds": [round(pair[1] / pair[0], 2) for pair in each.values()],
        "wider than asked": wide(found),
        "peak MiB": resident(),
    }


def run_mixes() -> dict:
    """Compositions of one to four of eight classes, 3 to 7 uses each."""
    clock = Clock()
    import jaxgdp

    rng = np.random.default_rng(0)
    size = lambda low, high: float(np.exp(rng.uniform(np.log(low), np.log(high))))
    classes = (
        lambda: jaxgdp.Gaussian(size(0.4, 20.0)),
        lambda: jaxgdp.SubsampledGaussian(size(0.4, 7.0), size(0.01, 0.3)),
        lambda: jaxgdp.Laplace(size(0.3, 20.0)),
        lambda: jaxgdp.SubsampledLaplace(size(0.3, 3.0), size(0.01, 0.3)),
        lambda: jaxgdp.DiscreteGaussian(size(1.0, 10.0)),
        lambda: jaxgdp.DiscreteLaplace(size(1.0, 10.0)),
        lambda: jaxgdp.RandomizedResponse(size(0.1, 2.0)),
        lambda: jaxgdp.PureDP(size(0.1, 1.0)),
    )
    wider = 0
    for _ in range(MIXES):
        some = rng.choice(len(classes), rng.integers(1, 5), replace=False)
        mix = jaxgdp.compose([(classes[k](), int(rng.integers(3, 8))) for k in some])
        found = jaxgdp.measure(mix, ("mu", "epsilon", "tpr"), delta=1e-5, fpr=1e-2)
        wider += any(int(status) != 0 for status in found.status.values())
    return clock() | {
        "CPU each": round(clock()["cpu"] / MIXES, 3),
        "mixes": MIXES,
        "wider than asked": wider,
        "peak MiB": resident(),
    }


TASKS = {
    "batch": (run_batch,),
    "compiled": (run_batch, "compiled"),
    "sweep": (run_sweep,),
    "store": (run_store,),
    "history": (run_history,),
    "fine": (run_fine,),
    "mixes": (run_mixes,),
}


def in_process(name: str) -> dict:
    """One task in a fresh process with empty caches."""
    import first_answer

    print(f"  {name} …", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory() as cache:
        done = subprocess.run(
            [sys.executable, __file__, "--task", name],
            env=first_answer.environment(cache),
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("tasks", nargs="*", choices=[[], *TASKS], help="only these")
    parser.add_argument("--task", choices=TASKS, help=argparse.SUPPRESS)
    parser.add_argument(
        "--output", type=Path, default=ROOT / "benchmarks" / "results" / "first_batches"
    )
    options = parser.parse_args()
    sys.path.insert(0, str(ROOT / "benchmarks"))
    if options.task:
        function, *arguments = TASKS[options.task]
        print(json.dumps(function(*arguments)))
        return
    found = {name: in_process(name) for name in options.tasks or TASKS}
    print(json.dumps(found, indent=1))
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / f"{date}.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
