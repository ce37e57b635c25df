"""How long a new user waits: the first answer of a fresh process, next to dp_accounting's in the
same run.

    python benchmarks/first_answer.py # the table, next to dp_accounting python
    benchmarks/first_answer.py --session # one long session of many different questions, and its
    memory python benchmarks/first_answer.py --after # a small job after a larger one

Each entry point runs in processes of its own with empty caches, imports included; rounds of all of
them alternate, so that a busy minute meets all alike, and medians are given. CPU time stands beside
wall time, because other work on the machine stretches the second. Bytecode is compiled beforehand,
as an installer does. Without an option all three are measured. Writes a table (.md) and all numbers
(.json)."""

from __future__ import annotations

import argparse
import compileall
import datetime
import itertools
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
PEER = """
from dp_accounting import dp_event
from dp_accounting.pld import pld_privacy_accountant
accountant = pld_privacy_accountant.PLDAccountant()
event = dp_event.PoissonSampledDpEvent(0.01, dp_event.GaussianDpEvent(1.1))
print(accountant.compose(event, 2000).get_epsilon(1e-5))
"""
MEASURE = """
import jaxgdp
print(jaxgdp.measure(jaxgdp.dpsgd(1.1, 0.01, 2000), ("mu", "epsilon")).brackets)
"""
TRADEOFF = """
import itertools, sys
sys.path.insert(0, {folder!r})
import first_answer, jaxgdp
for mechanism in itertools.islice(first_answer.different(), 20):
    print(float(jaxgdp.tradeoff(mechanism).mu().upper))
"""
PLAN = """
from jaxgdp.training import plan_budget
print(plan_budget(1.1, 0.01, 5000).at(5000))
"""
RUN = ["--noise-multiplier", "9.4", "--sampling-prob", "0.32768", "--num-steps", "2000"]
GOAL = ["--fnr", "0.7", "--fpr", "0.1", "--sampling-prob", "0.001", "--num-steps", "10000"]
# name → (what a user does, arguments of the interpreter)
ENTRIES = {
    "peer": ("dp_accounting: ε of one DP-SGD run", ["-c", PEER]),
    "measure": ("`measure`: μ and ε of one DP-SGD run", ["-c", MEASURE]),
    "report": ("`jaxgdp report` of one DP-SGD run", ["-m", "jaxgdp", "report", *RUN]),
    "deployment": (
        "`jaxgdp report` of the Census (33 mechanisms, 130 uses)",
        ["-m", "jaxgdp", "report", "--deployment", "census_2020_pl94_persons"],
    ),
    "calibrate": ("`jaxgdp calibrate` of one run", ["-m", "jaxgdp", "calibrate", *GOAL]),
    "tradeoff": ("`tradeoff` of twenty different mechanisms", ["-c", TRADEOFF]),
    "plan": ("`plan_budget` of 5,000 steps", ["-c", PLAN]),
    "import": ("`import jaxgdp`", ["-c", "import jaxgdp"]),
    "help": ("`jaxgdp --help`", ["-m", "jaxgdp", "--help"]),
}
NEXT = 20
SESSION = 200
AFTER = ((72, 10), (300, 10), (1000, 10))
QUANTITIES = (
    "mu",
    "regret",
    "advantage",
    "epsilon",
    "delta",
    "tpr",
    "beta",
    "bayes_risk",
    "approximate_mu",
)
ADJACENCIES = ("add_remove", "add", "remove")


def different():
    """Mechanisms, one of every class first, then compositions of two."""
    import jaxgdp

    x = np.linspace(-30.0, 31.0, 611)
    singles = [
        jaxgdp.compose([(jaxgdp.Gaussian(5.0), 9)]),
        jaxgdp.dpsgd(1.1, 0.01, 2000),
        jaxgdp.compose([(jaxgdp.Laplace(20.0), 30)]),
        jaxgdp.compose([(jaxgdp.SubsampledLaplace(2.0, 0.05), 100)]),
        jaxgdp.compose([(jaxgdp.DiscreteGaussian(10.0), 20)]),
        jaxgdp.compose([(jaxgdp.DiscreteLaplace(10.0), 20)]),
        jaxgdp.compose([(jaxgdp.RandomizedResponse(0.3), 10)]),
        jaxgdp.compose([(jaxgdp.PureDP(0.2), 10)]),
        jaxgdp.compose([(jaxgdp.ApproximateDP(0.2, 1e-7), 10)]),
        jaxgdp.compose([(jaxgdp.ExponentialMechanism(0.2), 10)]),
        jaxgdp.compose([(jaxgdp.FromPMFs(p=[0.5, 0.3, 0.2], q=[0.4, 0.3, 0.3]), 10)]),
        jaxgdp.compose([(jaxgdp.FromProfile(epsilons=[0.0, 0.5, 1.0], deltas=[0.4, 0.2, 0.1]), 3)]),
        jaxgdp.compose([(jaxgdp.FromDensities.normalized(x, -np.abs(x), -np.abs(x - 0.2)), 10)]),
    ]
    yield from singles
    for one, other in itertools.combinations(singles, 2):
        parts = [
            *zip(one.mechanisms, one.counts, strict=True),
            *zip(other.mechanisms, other.counts, strict=True),
        ]
        yield jaxgdp.compose(parts)


def questions(seed: int):
    """(mechanism, quantity, adjacency) without end, each combination of the classes once before any
    other parameters.
    """
    mechanisms = list(itertools.islice(different(), 30))
    found = list(itertools.product(mechanisms, QUANTITIES, ADJACENCIES))
    for i in np.random.default_rng(seed).permutation(len(found)):
        yield found[i]


# Workers: each runs in a fresh process, reads a dict and returns one.


def clocks(function):
    """(wall seconds, CPU seconds)."""
    wall, cpu = time.perf_counter(), time.process_time()
    function()
    return time.perf_counter() - wall, time.process_time() - cpu


def resident() -> int:
    """Largest resident set of this process, bytes (not what ``getrusage`` tells where it can be
    helped: that begins with the parent's).
    """
    status = Path("/proc/self/status")
    if status.exists():
        (line,) = (line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return 1024 * int(line.split()[1])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def run_next(task: dict) -> dict:
    """The settings that follow the first one, asked one by one."""
    import jaxgdp

    ask = lambda steps: jaxgdp.measure(jaxgdp.dpsgd(1.1, 0.01, steps), ("mu", "epsilon"))
    first = clocks(lambda: ask(2000))
    return {
        "first": first,
        "next": [clocks(lambda k=k: ask(2000 + 50 * k)) for k in range(1, 1 + task["number"])],
    }


def run_session(task: dict) -> dict:
    """Many different questions in one process, no cache cleared; bytes resident after each."""
    import jaxgdp

    seconds, peaks, wide = [], [], 0
    for mechanism, quantity, adjacency in itertools.islice(questions(task["seed"]), task["number"]):
        found = []
        ask = lambda: found.append(jaxgdp.measure(mechanism, quantity, adjacency=adjacency))  # noqa: B023
        seconds.append(clocks(ask))
        peaks.append(resident())
        wide += int(np.max(found[0].status[quantity]) != 0)
    return {"seconds": seconds, "peak_memory": peaks, "wide": wide}


def run_after(task: dict) -> dict:
    """A larger job, then a smaller one of other settings."""
    import jaxgdp

    rng = np.random.default_rng(task["seed"])

    def ask(number):
        sigma, p = (
            rng.uniform(0.8, 4.0, number),
            np.exp(rng.uniform(np.log(1e-3), np.log(0.3), number)),
        )
        return clocks(lambda: jaxgdp.measure(jaxgdp.dpsgd(sigma, p, 1000.0), ("mu", "regret")))

    larger, smaller = task["numbers"]
    return {"numbers": [larger, smaller], "larger": ask(larger), "smaller": ask(smaller)}


WORKERS = {"next": run_next, "session": run_session, "after": run_after}


def environment(cache: str) -> dict:
    """The environment with empty caches and nothing that chooses an executor."""
    dropped = ("JAX_COMPILATION_CACHE_DIR", "JAXGDP_EXECUTOR", "PYTHONDONTWRITEBYTECODE")
    kept = {k: v for k, v in os.environ.items() if k not in dropped}
    search = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    return kept | {"XDG_CACHE_HOME": cache, "JAXGDP_NO_CACHE": "1", "PYTHONPATH": search}


def in_process(worker: str, task: dict) -> dict:
    """Run one worker in a fresh process with empty caches."""
    print(f"  {worker} {task} …", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory() as cache:
        result = Path(cache) / "result.json"
        command = [
            sys.executable,
            str(Path(__file__).resolve()),
            "--worker",
            worker,
            "--result",
            str(result),
        ]
        subprocess.run(
            command, input=json.dumps(task), text=True, check=True, env=environment(cache)
        )
        return json.loads(result.read_text())


def once(arguments: list[str], python: str = sys.executable) -> tuple[float, float]:
    """Wall and CPU seconds of a fresh process, from its start to its end."""
    with tempfile.TemporaryDirectory() as cache:
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        done = subprocess.run(
            [python, *arguments], cwd=cache, env=environment(cache), capture_output=True, text=True
        )
        wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
        if done.returncode:
            raise SystemExit(f"{arguments[:6]} failed:\n{done.stderr}")
        return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def median(pairs) -> dict:
    """Medians of wall and of CPU seconds, and how often."""
    wall, cpu = zip(*pairs, strict=True)
    return {"wall": statistics.median(wall), "cpu": statistics.median(cpu), "runs": len(pairs)}


def entry_points(names, rounds: int, python: str) -> dict:
    """Medians of every entry point, in rounds."""
    times: dict[str, list] = {name: [] for name in names}
    for number in range(rounds):
        for name in names:
            arguments = [
                part.replace("{folder!r}", repr(str(Path(__file__).parent)))
                for part in ENTRIES[name][1]
            ]
            times[name].append(once(arguments, python if name == "peer" else sys.executable))
            wall, cpu = times[name][-1]
            print(
                f"  {number + 1}/{rounds} {name}: {wall:.2f} s, CPU {cpu:.2f} s",
                file=sys.stderr,
                flush=True,
            )
    return {name: median(pairs) for name, pairs in times.items()}


def measure(args) -> dict:
    import landscape_speed

    compileall.compile_dir(ROOT / "jaxgdp", quiet=1)
    device = landscape_speed.in_process("device", {})
    everything = not (args.entries or args.session or args.after)
    results = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": landscape_speed.machine(device),
        "versions": device["versions"],
        "seed": args.seed,
    }
    if args.entries or everything:
        names = [
            name for name in args.entries or ENTRIES if not (name == "peer" and args.skip_peer)
        ]
        results["entries"] = entry_points(names, args.rounds, args.peer_python)
        results["next"] = median(in_process("next", {"number": NEXT})["next"])
    if "peer" in results.get("entries", {}):
        command = "from importlib.metadata import version; print(version('dp-accounting'))"
        found = subprocess.run(
            [args.peer_python, "-c", command], capture_output=True, text=True, check=True
        )
        results["versions"]["dp_accounting"] = found.stdout.strip()
    if args.session or everything:
        found = in_process("session", {"number": args.number, "seed": args.seed})
        wall, cpu = (float(np.mean(column)) for column in zip(*found["seconds"], strict=True))
        slowest = max(found["seconds"])
        results["session"] = {
            "number": args.number,
            "wall": wall,
            "cpu": cpu,
            "slowest": slowest,
            "wide": found["wide"],
        }
        results["session"]["peak_memory"] = found["peak_memory"][-1]
        results["session"]["peak_memory_half_way"] = found["peak_memory"][args.number // 2]
    if args.after or everything:
        results["after"] = [
            in_process("after", {"numbers": numbers, "seed": args.seed}) for numbers in AFTER
        ]
    return results


def table(r: dict) -> str:
    """Markdown table of one run."""
    m = r["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in r["versions"].items())
    memory = f", {m['memory_gib']:g} GiB" if m["memory_gib"] else ""
    lines = [
        (
            f"{m['cpu']}, {m['cores']} cores{memory}; {versions}; {r['date']}; medians of fresh"
            " processes, imports included, caches empty."
        ),
        "",
        "| What a user does first | seconds | CPU seconds | CPU time / dp_accounting's |",
        "|---|---|---|---|",
    ]
    entries = r.get("entries", {})
    for name, row in entries.items():
        ratio = f"{row['cpu'] / entries['peer']['cpu']:.2f} ×" if "peer" in entries else ""
        lines.append(f"| {ENTRIES[name][0]} | {row['wall']:.2f} | {row['cpu']:.2f} | {ratio} |")
    if "next" in r:
        row = r["next"]
        lines.append(
            f"| each of the next {row['runs']} settings, one by one | {row['wall']:.3f} |"
            f" {row['cpu']:.3f} | |"
        )
    if (row := r.get("session")) is not None:
        told = (
            f"{row['peak_memory'] / 2**20:.0f} MiB at most,"
            f" {row['peak_memory_half_way'] / 2**20:.0f} MiB half way"
        )
        lines.append(
            f"| one of {row['number']} different questions in one session ({told}) |"
            f" {row['wall']:.2f} | {row['cpu']:.2f} | |"
        )
    for row in r.get("after", []):
        larger, smaller = row["numbers"]
        lines.append(
            f"| {larger} settings in one call | {row['larger'][0]:.2f} | {row['larger'][1]:.2f} | |"
        )
        lines.append(
            f"| {smaller} others after them | {row['smaller'][0]:.2f} | {row['smaller'][1]:.2f} | |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--entries", nargs="+", choices=sorted(ENTRIES), help="only these entry points"
    )
    parser.add_argument("--session", action="store_true", help="only the long session")
    parser.add_argument("--after", action="store_true", help="only a small job after a larger one")
    parser.add_argument("--rounds", type=int, default=5, help="processes of each entry point")
    parser.add_argument("--number", type=int, default=SESSION, help="questions of the session")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--peer-python", default=sys.executable, help="interpreter that has dp_accounting"
    )
    parser.add_argument("--skip-peer", action="store_true", help="leave dp_accounting out")
    parser.add_argument(
        "--output",
        type=Path,
        default=ROOT / "benchmarks" / "results" / "first_answer",
        help="folder",
    )
    parser.add_argument("--worker", choices=sorted(WORKERS), help=argparse.SUPPRESS)
    parser.add_argument("--result", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        args.result.write_text(json.dumps(WORKERS[args.worker](json.load(sys.stdin))))
        return
    found = measure(args)
    print(table(found))
    args.output.mkdir(parents=True, exist_ok=True)
    stem = f"{found['machine']['platform']}-{found['date']}"
    (args.output / f"{stem}.json").write_text(json.dumps(found, indent=1) + "\n")
    (args.output / f"{stem}.md").write_text(table(found))


if __name__ == "__main__":
    main()
