"""Speed and accuracy of calibration to error rates, next to riskcal: the same targets in one run.

    python benchmarks/calibration_speed.py

Targets are those of Kulynych 2024, Section 4: DP-SGD with p = 0.001 and T = 10,000, FPR 0.01, 0.05
or 0.1, TPR up to 0.5. Ours are 1,000 in one call at tolerance 1e-3, timed after compilation, the
first call apart; riskcal gets a few of the same targets, at its own default tolerance. Wall time
and CPU time are both given, because other work on the machine stretches the first. Every answer,
ours and riskcal's, is then measured with brackets ten times narrower: does it meet its target? A
second task varies p and T too. Writes a table (.md) and all numbers (.json)."""

from __future__ import annotations

import argparse
import datetime
import functools
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
TOLERANCE = 1e-3
NUMBER = 1000
PAPER, VARIED = "p = 0.001, T = 10,000", "p from 0.001 to 0.02, T from 1,000 to 20,000"


def targets(number: int, seed: int, varied: bool) -> dict:
    """Random error rates, and the settings they are asked of."""
    rng = np.random.default_rng(seed)
    fpr = rng.choice([0.01, 0.05, 0.1], number)
    tpr = rng.uniform(np.maximum(0.1, fpr + 0.02), 0.5)
    p, steps = np.full(number, 1e-3), np.full(number, 10_000.0)
    if varied:
        p = np.exp(rng.uniform(np.log(1e-3), np.log(0.02), number))
        steps = np.round(np.exp(rng.uniform(np.log(1000), np.log(20_000), number)))
    return {
        "fnr": (1.0 - tpr).tolist(),
        "fpr": fpr.tolist(),
        "sampling_prob": p.tolist(),
        "num_steps": steps.tolist(),
    }


# Workers: each runs in a fresh process, reads a dict and returns one.


def clocks(function) -> tuple[float, float, object]:
    """Wall seconds, CPU seconds, result."""
    wall, cpu = time.perf_counter(), time.process_time()
    found = function()
    return time.perf_counter() - wall, time.process_time() - cpu, found


def ours(task: dict) -> dict:
    sys.path.insert(0, str(ROOT))
    import jaxgdp

    target = jaxgdp.targets.FNR(task["fnr"], task["fpr"])
    ask = lambda: jaxgdp.calibrate(
        target,
        sampling_prob=task["sampling_prob"],
        num_steps=task["num_steps"],
        rtol=TOLERANCE,
        infeasible="flag",
    )
    cold, _, _ = clocks(ask)
    runs = [clocks(ask) for _ in range(task.get("repeats", 3))]
    wall, cpu, found = min(runs, key=lambda run: run[0])
    return {
        "cold": cold,
        "wall": wall,
        "cpu": min(run[1] for run in runs),
        "value": found.value.tolist(),
        "status": found.status.tolist(),
        "evaluations": found.evaluations.tolist(),
        "iterations": found.iterations.tolist(),
        "proved_tight": float(np.mean(found.proved_tight)),
    }


def peer(task: dict) -> dict:
    import warnings
    from importlib.metadata import version

    warnings.simplefilter("ignore")
    from riskcal.calibration.dpsgd import find_noise_multiplier_for_err_rates

    wall, cpu, found = [], [], []
    for fnr, fpr, p, steps in zip(
        *(task[k] for k in ("fnr", "fpr", "sampling_prob", "num_steps")), strict=True
    ):
        settings = {"alpha": fpr, "beta": fnr, "sample_rate": p, "num_steps": int(steps)}
        seconds = clocks(functools.partial(find_noise_multiplier_for_err_rates, **settings))
        wall.append(seconds[0])
        cpu.append(seconds[1])
        found.append(float(seconds[2]))
    return {"version": version("riskcal"), "wall": wall, "cpu": cpu, "value": found}


def check(task: dict) -> dict:
    """FNR of the given noise, in brackets ten times narrower than those of the calibration."""
    sys.path.insert(0, str(ROOT))
    import jaxgdp

    mechanism = jaxgdp.dpsgd(task["value"], task["sampling_prob"], task["num_steps"])
    fpr = np.asarray(task["fpr"])
    found = jaxgdp.measure(
        mechanism, "beta", rtol=TOLERANCE / 10, fpr=fpr, fpr_floor=0.5 * fpr
    ).brackets["beta"]
    return {"lower": found.lower.tolist(), "upper": found.upper.tolist()}


WORKERS = {"ours": ours, "peer": peer, "check": check}


def in_process(worker: str, task: dict, python: str = sys.executable) -> dict:
    """Run one worker in a fresh process with empty caches."""
    import landscape_speed

    print(f"  {worker} …", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result.json"
        command = [
            python,
            str(Path(__file__).resolve()),
            "--worker",
            worker,
            "--result",
            str(result),
        ]
        environment = landscape_speed.clean_environment(folder)
        subprocess.run(command, input=json.dumps(task), text=True, check=True, env=environment)
        return json.loads(result.read_text())


def verdict(task: dict, values) -> dict:
    """How many answers meet their target, provably or not, and by how much they miss it."""
    values = np.asarray(values)
    some = np.isfinite(values)
    task = {name: np.asarray(value)[: len(values)][some].tolist() for name, value in task.items()}
    bracket = in_process("check", task | {"value": values[some].tolist()})
    fnr, lower, upper = (
        np.asarray(task["fnr"]),
        np.asarray(bracket["lower"]),
        np.asarray(bracket["upper"]),
    )
    return {
        "number": len(fnr),
        "meet": int(np.sum(lower >= fnr)),
        "fail": int(np.sum(upper < fnr)),
        "worst_miss": float(np.max(np.maximum(fnr - upper, 0.0))),
        "mean_slack": float(np.mean(0.5 * (lower + upper) - fnr)),
        "fnr": bracket,
    }


def without_arrays(row: dict) -> dict:
    """A row with counts in place of its long arrays; the seed gives the targets again."""
    found = dict(row["ours"])
    found.pop("value")
    for name in ("status", "evaluations", "iterations"):
        numbers, counts = np.unique(found[name], return_counts=True)
        found[name] = {
            str(number): int(count) for number, count in zip(numbers, counts, strict=True)
        }
    short = {name: value for name, value in row.items() if name != "task"} | {"ours": found}
    short["verdict"] = {name: value for name, value in row["verdict"].items() if name != "fnr"}
    return short


def measure(args) -> dict:
    import landscape_speed

    device = landscape_speed.in_process("device", {})
    results = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": landscape_speed.machine(device),
    }
    results |= {
        "versions": device["versions"],
        "tolerance": TOLERANCE,
        "seed": args.seed,
        "rows": [],
    }
    for name, varied in ((PAPER, False), (VARIED, True)):
        task = targets(args.number, args.seed, varied)
        found = in_process("ours", task)
        row = {
            "name": name,
            "number": args.number,
            "task": task,
            "ours": found,
            "verdict": verdict(task, found["value"]),
        }
        if not args.skip_peer and not varied:
            few = {key: value[: args.peer_number] for key, value in task.items()}
            row["peer"] = in_process("peer", few, args.peer_python)
            row["peer_verdict"] = verdict(few, row["peer"]["value"])
            results["versions"]["riskcal"] = row["peer"]["version"]
        results["rows"].append(without_arrays(row))
    return results


def table(r: dict) -> str:
    """Markdown table of one run."""
    m = r["machine"]
    lines = [
        f"{m['cpu']}, {m['cores']} cores; "
        + ", ".join(f"{k} {v}" for k, v in r["versions"].items())
        + f"; {r['date']}; tolerance {r['tolerance']:g}.",
        "",
        (
            "| FNR at FPR 0.01, 0.05 or 0.1 | | each (CPU time) | first call | evaluations each |"
            " meet their target | fail it |"
        ),
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for row in r["rows"]:
        a, v = row["ours"], row["verdict"]
        each = f"{1e3 * a['wall'] / row['number']:.2f} ms ({1e3 * a['cpu'] / row['number']:.2f})"
        evaluations = (
            sum(int(number) * count for number, count in a["evaluations"].items()) / row["number"]
        )
        cells = [row["name"], str(row["number"]), each, f"{a['cold']:.0f} s", f"{evaluations:.2f}"]
        lines.append("| " + " | ".join([*cells, str(v["meet"]), str(v["fail"])]) + " |")
        if b := row.get("peer"):
            v = row["peer_verdict"]
            each = f"{np.mean(b['wall']):.1f} s ({np.mean(b['cpu']):.1f})"
            miss = f"{v['fail']}" + (f" (by up to {v['worst_miss']:.1e})" if v["fail"] else "")
            lines.append(
                "| "
                + " | ".join(
                    ["riskcal, of the same", str(v["number"]), each, "", "", str(v["meet"]), miss]
                )
                + " |"
            )
            ratio = (
                np.mean(b["wall"]) / (a["wall"] / row["number"]),
                np.mean(b["cpu"]) / (a["cpu"] / row["number"]),
            )
            lines.append(
                f"| ratio of each | | **{ratio[0]:.0f}×** (CPU time {ratio[1]:.0f}×) | | | | |"
            )
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--number", type=int, default=NUMBER, help="calibrations in one call")
    parser.add_argument(
        "--peer-number", type=int, default=4, help="of them, given to riskcal (20 s each)"
    )
    parser.add_argument(
        "--peer-python", default=sys.executable, help="interpreter that has riskcal"
    )
    parser.add_argument("--skip-peer", action="store_true", help="leave riskcal out")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--output",
        type=Path,
        default=ROOT / "benchmarks" / "results" / "calibration",
        help="folder",
    )
    parser.add_argument("--worker", choices=sorted(WORKERS), help=argparse.SUPPRESS)
    parser.add_argument("--result", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        args.result.write_text(json.dumps(WORKERS[args.worker](json.load(sys.stdin))))
        return
    results = measure(args)
    args.output.mkdir(parents=True, exist_ok=True)
    stem = args.output / f"{results['machine']['platform']}-{results['date']}"
    stem.with_suffix(".json").write_text(json.dumps(results, indent=1) + "\n")
    stem.with_suffix(".md").write_text(table(results))
    print(table(results))


if __name__ == "__main__":
    main()
