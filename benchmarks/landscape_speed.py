"""Speed, accuracy and memory on a random sample of the grid of the regret landscape (Gomez 2025,
Figure 3).

    python benchmarks/landscape_speed.py                 # everything, next to gdpnum
    python benchmarks/landscape_speed.py --skip-peer     # where gdpnum is not installed

Both libraries answer the same settings in one run. Every measurement has a process of its own, so
each starts cold, and its peak memory is its own. The first call is timed with its compilation;
compile time is also given apart. Runs on the default JAX device. Writes a table (.md) and all
numbers (.json)."""

from __future__ import annotations

import argparse
import datetime
import itertools
import json
import os
import platform
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from landscape_table import table

ROOT = Path(__file__).resolve().parent.parent
GRID = {
    "noise_multiplier": [0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 8.0],
    "sampling_prob": list(np.geomspace(1e-4, 1.0, 64)),
    "num_steps": [400, 1000, 2000],
}
STEPS = (100, 10_000, 1_000_000)
BATCHES = (64, 256, 1024)
FFT_BLOCK, FFT_FORWARD, FFT_INVERSE = 16, 4, 6


# Workers: each runs in a fresh process, reads a dict and returns one.


def peak_memory() -> int:
    """Largest resident set of this process, bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def run_peer(task: dict) -> dict:
    """gdpnum on every setting, one call each; crashes are counted and their time is left out of its
    rate.
    """
    from importlib.metadata import version

    import gdpnum

    seconds, found = [], []
    for sigma, p, steps in task["settings"]:
        start = time.perf_counter()
        try:
            mu, regret = gdpnum.dpsgd.get_mu_and_regret_for_dpsgd(
                noise_multiplier=sigma, sample_rate=p, num_steps=int(steps)
            )
            found.append([float(mu), float(regret)])
        except Exception as error:
            found.append(type(error).__name__)
        seconds.append(time.perf_counter() - start)
    return {
        "version": version("gdpnum"),
        "seconds": seconds,
        "found": found,
        "peak_memory": peak_memory(),
    }


def asker(task: dict):
    """(function from settings to an answer, running totals of compile time)."""
    sys.path.insert(0, str(ROOT))
    import jax

    from jaxgdp import dpsgd, measure

    compiled = {"seconds": 0.0, "programs": 0}

    def listen(event, duration, **_):
        if event.startswith("/jax/core/compile/"):
            compiled["seconds"] += duration
            compiled["programs"] += event.endswith("backend_compile_duration")

    jax.monitoring.register_event_duration_secs_listener(listen)

    def ask(settings):
        columns = (np.asarray(column, float) for column in zip(*settings, strict=True))
        asked = {"rtol": task["rtol"], "fpr_floor": task["fpr_floor"], "nested": False}
        return measure(dpsgd(*columns), ("mu", "regret"), **asked)

    return ask, compiled


def timed(function, repeats: int = 3):
    """(shortest time, last result)."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        result = function()
        times.append(time.perf_counter() - start)
    return min(times), result


def run_ours(task: dict) -> dict:
    """Every setting in one call, by compiled programs unless another executor is named: cold, then
    warm; μ brackets, status and lattice sizes beside the times.
    """
    os.environ.setdefault("JAXGDP_EXECUTOR", "compiled")
    start = time.perf_counter()
    ask, compiled = asker(task)
    imported = time.perf_counter() - start
    cold, _ = timed(lambda: ask(task["settings"]), repeats=1)
    compiled = dict(compiled)
    warm, found = timed(lambda: ask(task["settings"]), repeats=2)
    return {
        "import_seconds": imported,
        "cold_seconds": cold,
        "compile_seconds": compiled["seconds"],
        "programs": compiled["programs"],
        "warm_seconds": warm,
        "mu_lower": found.brackets["mu"].lower.tolist(),
        "mu_upper": found.brackets["mu"].upper.tolist(),
        "status": np.asarray(found.status["mu"]).tolist(),
        "sizes": np.asarray(found.lattice_size).tolist(),
        "peak_memory": peak_memory(),
        "device_memory": device_memory(),
    }


def device_memory():
    """Peak bytes in use on the accelerator; None where the device does not tell."""
    import jax

    stats = jax.devices()[0].memory_stats()
    return stats.get("peak_bytes_in_use") if stats else None


def run_scaling(task: dict) -> dict:
    """Warm time per setting, for each list of settings, all by compiled programs."""
    os.environ.setdefault("JAXGDP_EXECUTOR", "compiled")
    ask, _ = asker(task)
    rows = []
    for settings in task["lists"]:
        ask(settings)
        seconds, found = timed(lambda: ask(settings))  # noqa: B023
        rows.append(
            {
                "seconds": seconds,
                "number": len(settings),
                "lattice": float(np.median(found.lattice_size)),
            }
        )
    return {"rows": rows, "peak_memory": peak_memory()}


def run_ffts(task: dict) -> dict:
    """Seconds that the bare FFTs of a dense method take for one setting, by number of lattice
    points N.

    The method itself sums few points at few frequencies, whatever N. The yardstick is a dense
    method with the same low-pass: four forward transforms of N points and six inverse ones of N/16,
    of many settings at once, on all cores."""
    from concurrent.futures import ThreadPoolExecutor

    import jax
    import jax.numpy as jnp

    seconds = {}
    with jax.enable_x64(True), ThreadPoolExecutor(os.cpu_count()) as pool:
        for size in task["sizes"]:
            chunk, coarse = max(1, min(64, 2**20 // size)), size // FFT_BLOCK
            forward, inverse = (
                jax.jit(jnp.fft.rfft),
                jax.jit(lambda x, n=coarse: jnp.fft.irfft(x, n)),
            )
            x = jax.random.normal(jax.random.key(0), (chunk, FFT_FORWARD, size), jnp.float64)
            y = forward(x)[..., : coarse // 2 + 1]
            y = jnp.concatenate([y, y], axis=1)[:, :FFT_INVERSE]
            calls = max(2, 128 // chunk)

            def transforms(_, forward=forward, inverse=inverse, x=x, y=y):
                with jax.enable_x64(True):
                    jax.block_until_ready((forward(x), inverse(y)))

            transforms(0)
            one, _ = timed(lambda run=transforms, n=calls: [run(i) for i in range(n)], repeats=3)
            both, _ = timed(
                lambda run=transforms, n=calls: list(pool.map(run, range(n))), repeats=3
            )
            seconds[str(size)] = min(one, both) / (calls * chunk)
    return seconds


def run_device(task: dict) -> dict:
    """What JAX computes on."""
    sys.path.insert(0, str(ROOT))
    import jax

    import jaxgdp

    device = jax.devices()[0]
    versions = {
        "python": platform.python_version(),
        "jax": jax.__version__,
        "numpy": np.__version__,
    }
    return {
        "platform": device.platform,
        "kind": device.device_kind,
        "versions": versions | {"jaxgdp": jaxgdp.__version__},
    }


WORKERS = {
    "peer": run_peer,
    "ours": run_ours,
    "scaling": run_scaling,
    "ffts": run_ffts,
    "device": run_device,
}


def clean_environment(cache: str) -> dict:
    """The environment, with empty caches."""
    kept = {k: v for k, v in os.environ.items() if k != "JAX_COMPILATION_CACHE_DIR"}
    search = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    return kept | {"XDG_CACHE_HOME": cache, "PYTHONPATH": search}


def in_process(worker: str, task: dict, python: str = sys.executable) -> dict:
    """Run one worker in a fresh process with empty caches."""
    print(f"  {worker} …", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory() as cache:
        result = Path(cache) / "result.json"
        command = [
            python,
            str(Path(__file__).resolve()),
            "--worker",
            worker,
            "--result",
            str(result),
        ]
        subprocess.run(
            command, input=json.dumps(task), text=True, check=True, env=clean_environment(cache)
        )
        return json.loads(result.read_text())


def cold_landscape() -> dict:
    """Wall time of ``jaxgdp landscape`` with empty caches, from start to files written."""
    print("  jaxgdp landscape …", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as cache:
        command = [sys.executable, "-m", "jaxgdp", "landscape"]
        start = time.perf_counter()
        done = subprocess.run(
            command, cwd=folder, env=clean_environment(cache), capture_output=True, text=True
        )
        seconds = time.perf_counter() - start
        if done.returncode:
            return {
                "seconds": None,
                "error": (done.stderr.strip().splitlines() or ["no message"])[-1][:200],
            }
        return {"seconds": seconds, "files": sorted(p.name for p in Path(folder).iterdir())}


# The run


def machine(device: dict) -> dict:
    """Description of the machine, without its name."""
    model, memory = platform.machine(), None
    cpuinfo, meminfo = Path("/proc/cpuinfo"), Path("/proc/meminfo")
    if cpuinfo.exists() and (line := re.search(r"model name\s*:\s*(.+)", cpuinfo.read_text())):
        model = line[1].strip()
    if meminfo.exists() and (line := re.search(r"MemTotal:\s*(\d+) kB", meminfo.read_text())):
        memory = round(int(line[1]) / 2**20, 1)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "cores": cores,
        "cpu": model,
        "memory_gib": memory,
        "device": device["kind"],
        "platform": device["platform"],
    }


def relative_width(lower, upper):
    lower, upper = np.asarray(lower), np.asarray(upper)
    return (upper - lower) / np.maximum(upper, 1e-300)


def compare(peer: dict, ours: dict) -> dict:
    """gdpnum against our brackets on the same settings, and both rates."""
    ok = np.array([not isinstance(f, str) for f in peer["found"]])
    mu = np.array([f[0] if good else np.nan for f, good in zip(peer["found"], ok, strict=True)])
    lower, upper = np.asarray(ours["mu_lower"]), np.asarray(ours["mu_upper"])
    seconds = np.asarray(peer["seconds"])
    with np.errstate(invalid="ignore"):
        finite = ok & np.isfinite(mu)
        below, above = finite & (mu < lower), finite & (mu > upper)
        under = np.where(below, 1.0 - mu / lower, 0.0)
        over = np.where(above, mu / upper - 1.0, 0.0)
    return {
        "number": len(mu),
        "crashes": int(np.sum(~ok)),
        "not_finite": int(np.sum(ok & ~np.isfinite(mu))),
        "below_bracket": int(np.sum(below)),
        "above_bracket": int(np.sum(above)),
        "largest_under_report": float(np.max(under)),
        "largest_over_report": float(np.max(over)),
        "mean_seconds": float(np.mean(seconds[ok])),
        "median_seconds": float(np.median(seconds[ok])),
        "peak_memory": peer["peak_memory"],
    }


def summary(ours: dict, rtol: float) -> dict:
    """Speed and accuracy of one of our runs, without the arrays."""
    width = relative_width(ours["mu_lower"], ours["mu_upper"])
    number = len(width)
    sizes, counts = np.unique(ours["sizes"], return_counts=True)
    kept = (
        "import_seconds",
        "cold_seconds",
        "compile_seconds",
        "programs",
        "warm_seconds",
        "peak_memory",
    )
    return {k: ours[k] for k in (*kept, "device_memory")} | {
        "number": number,
        "per_second": number / ours["warm_seconds"],
        "per_second_cold": number / ours["cold_seconds"],
        "median_width": float(np.median(width)),
        "largest_width": float(np.max(width)),
        "wider_than_rtol": int(np.sum(width > rtol)),
        "sizes": {str(size): int(count) for size, count in zip(sizes, counts, strict=True)},
    }


def measure(args) -> dict:
    """All measurements."""
    whole = [tuple(map(float, s)) for s in itertools.product(*GRID.values())]
    order = np.random.default_rng(args.seed).permutation(len(whole))
    many = [whole[i] for i in order[: args.number]]
    few = [whole[i] for i in order[: args.peer_number]]
    base = {"rtol": args.rtol, "fpr_floor": 1e-10}
    device = in_process("device", {})
    results = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": machine(device),
        "versions": device["versions"],
        "seed": args.seed,
        **base,
    }
    if not args.skip_peer:
        peer = in_process("peer", {"settings": few}, args.peer_python)
        same = in_process("ours", base | {"settings": few})
        results["versions"]["gdpnum"] = peer["version"]
        results["peer"] = compare(peer, same)
        results["same_sample"] = summary(same, args.rtol)
    whole_run = args.skip_peer or few != many
    results["ours"] = summary(
        in_process("ours", base | {"settings": many}) if whole_run else same, args.rtol
    )
    if not args.skip_landscape:
        results["landscape"] = cold_landscape()

    generator = np.random.default_rng(args.seed)
    sigma = generator.uniform(2.0, 4.0, max(BATCHES))
    p = np.exp(generator.uniform(np.log(0.05), np.log(0.5), max(BATCHES)))
    alike = np.column_stack([sigma, p, np.full(len(p), 1000.0)]).tolist()
    nearly = generator.uniform(4.9, 5.1, 64)
    steps = [[[s, 0.01, float(n)] for s in nearly] for n in STEPS]
    results["steps"] = in_process("scaling", base | {"lists": steps})["rows"]
    for row, n in zip(results["steps"], STEPS, strict=True):
        row["num_steps"] = n
    results["batches"] = in_process("scaling", base | {"lists": [alike[:n] for n in BATCHES]})[
        "rows"
    ]
    # a lattice has at most four times the points that were needed (0: a closed form has none)
    sizes = {int(size): count for size, count in results["ours"]["sizes"].items() if int(size)}
    bare = in_process(
        "ffts", {"sizes": sorted({n for size in sizes for n in (size, max(size // 4, 64))})}
    )
    results["ffts"] = {
        "per_size": bare,
        "seconds": sum(count * bare[str(size)] for size, count in sizes.items()),
        "seconds_fewest": sum(
            count * bare[str(max(size // 4, 64))] for size, count in sizes.items()
        ),
    }
    return results


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--number", type=int, default=1536, help="settings for our rate (1536: the whole grid)"
    )
    parser.add_argument("--peer-number", type=int, default=1536, help="settings given to gdpnum")
    parser.add_argument("--rtol", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--peer-python", default=sys.executable, help="interpreter that has gdpnum")
    parser.add_argument("--skip-peer", action="store_true", help="leave gdpnum out")
    parser.add_argument("--skip-landscape", action="store_true", help="leave the command line out")
    parser.add_argument(
        "--output", type=Path, default=ROOT / "benchmarks" / "results", help="folder"
    )
    parser.add_argument("--worker", choices=sorted(WORKERS), help=argparse.SUPPRESS)
    parser.add_argument("--result", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        args.result.write_text(json.dumps(WORKERS[args.worker](json.load(sys.stdin))))
        return
    results = measure(args)
    m = results["machine"]
    device = (
        m["platform"]
        if m["platform"] == "cpu"
        else re.sub(r"[^a-z0-9]+", "-", m["device"].lower()).strip("-")
    )
    args.output.mkdir(parents=True, exist_ok=True)
    stem = args.output / f"{device}-{results['date']}"
    stem.with_suffix(".json").write_text(json.dumps(results, indent=1) + "\n")
    stem.with_suffix(".md").write_text(table(results))
    print(table(results))


if __name__ == "__main__":
    main()
