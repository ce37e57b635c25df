"""How often the accuracy asked for is met: every quantity on random DP-SGD settings, asked alone.

σ is log-uniform in [0.5, 20], p in [1e-4, 1], T in [100, 2e4]; δ is asked at ε in [0.1, 8], ε at δ
in [1e-12, 1e-3], TPR and β at FPRs in [1e-8, 0.4], the Bayes risk at priors in [0.01, 0.99]. Met
means status 0: the width promised for ``rtol``, or an upper side below 1e-300.

    python benchmarks/accuracy.py --number 500 --rtol 1e-3
"""

from __future__ import annotations

import argparse
import datetime
import json
import time
from pathlib import Path

import landscape_speed
import numpy as np

import jaxgdp
from jaxgdp.quantities import registry

RESULTS = Path(__file__).parent / "results" / "accuracy"


def log_uniform(rng, low, high, number):
    return np.exp(rng.uniform(np.log(low), np.log(high), number))


def settings(number: int, seed: int):
    """A batch of compositions and what each quantity is asked at."""
    rng = np.random.default_rng(seed)
    sigma, p, steps = (
        log_uniform(rng, *ends, number) for ends in ((0.5, 20.0), (1e-4, 1.0), (100.0, 2e4))
    )
    asked = {
        "epsilon": rng.uniform(0.1, 8.0, number),
        "delta": log_uniform(rng, 1e-12, 1e-3, number),
        "fpr": log_uniform(rng, 1e-8, 0.4, number),
        "prior": rng.uniform(0.01, 0.99, number),
    }
    return jaxgdp.dpsgd(sigma, p, np.round(steps)), asked


def table(run: dict) -> str:
    """Markdown table of one run."""
    m = run["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in run["versions"].items())
    lines = [
        (
            f"{m['cpu']}, {m['cores']} cores; {versions}; {run['date']}; {run['number']} random"
            f" settings of DP-SGD, `rtol` = {run['rtol']:g}, each quantity alone."
        ),
        "",
        (
            "| quantity | as accurate as asked | true values below 1e-300 | contradictions | CPU"
            " seconds each |"
        ),
        "|---|---:|---:|---:|---:|",
    ]
    for name, row in run["quantities"].items():
        lines += [
            f"| {name} | {row['met']:.1%} | {row['below_1e-300']:.1%} | {row['contradictions']} |"
            f" {row['cpu_seconds_each']:.2f} |"
        ]
    return "\n".join([*lines, "", "The others have status 1."]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--number", type=int, default=500)
    parser.add_argument("--rtol", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quantities", default=",".join(registry.REGISTRY))
    parser.add_argument("--output", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    batch, asked = settings(arguments.number, arguments.seed)
    rows = {}
    for name in arguments.quantities.split(","):
        argument = registry.named(name).own_argument
        mine = {argument: asked[argument]} if argument in asked else {}
        begin = time.process_time()
        found = jaxgdp.measure(batch, name, rtol=arguments.rtol, **mine)
        status, bracket = found.status[name], found.brackets[name]
        rows[name] = {
            "met": float(np.mean(status == 0)),
            "contradictions": int(np.sum(status == 2)),
            "cpu_seconds_each": (time.process_time() - begin) / arguments.number,
            "below_1e-300": float(np.mean(bracket.upper <= 1e-300)),
            "missed": [
                {
                    "noise_multiplier": float(batch.mechanisms[0].noise_multiplier[i]),
                    "sampling_prob": float(batch.mechanisms[0].sampling_prob[i]),
                    "num_steps": float(batch.counts[0][i]),
                    **{key: float(value[i]) for key, value in mine.items()},
                    "lower": float(bracket.lower[i]),
                    "upper": float(bracket.upper[i]),
                }
                for i in np.flatnonzero(status)[:20]
            ],
        }
        print(
            f"{name:15s} met {rows[name]['met']:7.2%}  {rows[name]['cpu_seconds_each']:.3f} s of"
            " CPU each",
            flush=True,
        )
    device = landscape_speed.in_process("device", {})
    run = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": landscape_speed.machine(device),
        "versions": device["versions"],
        "number": arguments.number,
        "rtol": arguments.rtol,
        "seed": arguments.seed,
        "quantities": rows,
    }
    arguments.output.mkdir(parents=True, exist_ok=True)
    stem = f"{run['machine']['platform']}-{run['date']}-rtol-{run['rtol']:g}"
    (arguments.output / f"{stem}.json").write_text(
        json.dumps(run, indent=1) + "\n", encoding="utf-8"
    )
    print(table(run))


if __name__ == "__main__":
    main()
