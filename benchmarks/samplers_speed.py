"""How long random allocation takes, and how wide its brackets are, next to pld-accounting.

    python benchmarks/samplers_speed.py # one setting from a fresh cache, and a grid of 300 python
    benchmarks/samplers_speed.py --quick # a grid of 30 python benchmarks/samplers_speed.py --peer #
    runs pld-accounting too, where it is installed (minutes)

The single setting is 1 of 1000 steps at σ = 1, ε at δ = 1e-5, both sides. Where pld-accounting is
not run, its figures are those measured with version 2.0 on two cores: 335 s for (0.13637, 0.14218).
Memory is the process's own largest. Writes a table (.md) and all numbers (.json)."""

from __future__ import annotations

import argparse
import datetime
import json
import os
import resource
import statistics
import time
from pathlib import Path

import numpy as np

SIGMA, STEPS, DELTA, EXACT = 1.0, 1000, 1e-5, 0.138847
MEASURED = {
    "seconds": 335.0,
    "lower": 0.13637,
    "upper": 0.14218,
    "source": "measured before, version 2.0, two cores",
}
ROUNDS = 5


def forget():
    """Empty what is kept of earlier settings."""
    from jaxgdp.mechanisms import random_allocation

    random_allocation._tables.cache_clear()


def single() -> dict:
    """One setting, several times, each from empty caches; imports and the first call apart."""
    import jaxgdp

    seconds, busy = [], []
    lower = upper = 0.0
    for _ in range(ROUNDS + 1):
        forget()
        start, used = time.perf_counter(), time.process_time()
        mechanism = jaxgdp.RandomAllocation(SIGMA, STEPS)
        found = jaxgdp.measure(mechanism, "epsilon", delta=DELTA, adjacency="remove").brackets[
            "epsilon"
        ]
        seconds.append(time.perf_counter() - start)
        busy.append(time.process_time() - used)
        lower, upper = float(found.lower), float(found.upper)
    if not lower <= EXACT + 5e-7 or not upper >= EXACT - 5e-7:
        raise SystemExit(f"the bracket [{lower}, {upper}] misses {EXACT}")
    spent = {
        "first": seconds[0],
        "seconds": statistics.median(seconds[1:]),
        "cpu_seconds": statistics.median(busy[1:]),
    }
    return spent | {"lower": lower, "upper": upper}


def peer() -> dict:
    """pld-accounting on the same setting, in this run."""
    from PLD_accounting import gaussian_allocation_epsilon_range  # type: ignore[import-not-found]

    start, busy = time.perf_counter(), time.process_time()
    upper, lower = gaussian_allocation_epsilon_range(
        delta=DELTA, sigma=SIGMA, num_steps=STEPS, num_selected=1
    )
    spent = {"seconds": time.perf_counter() - start, "cpu_seconds": time.process_time() - busy}
    return spent | {"lower": float(lower), "upper": float(upper), "source": "this run"}


def grid(number: int) -> dict:
    """ε, μ and advantage, both sides, of a grid of settings: σ from 0.5 to 10, t from 10 to
    10,000.
    """
    import jaxgdp

    forget()
    noise = np.geomspace(0.5, 10.0, max(number // 15, 2))
    steps = np.round(np.geomspace(10, 10_000, 15))
    start, busy = time.perf_counter(), time.process_time()
    worst = {"epsilon": 0.0, "mu": 0.0, "advantage": 0.0}
    for sigma in noise:
        found = jaxgdp.measure(
            jaxgdp.RandomAllocation(sigma, steps), ("epsilon", "mu", "advantage"), delta=DELTA
        )
        for name, bracket in found.brackets.items():
            wide = (bracket.upper - bracket.lower) / np.maximum(bracket.upper, 1e-12)
            worst[name] = max(worst[name], float(wide.max()))
    spent = {"seconds": time.perf_counter() - start, "cpu_seconds": time.process_time() - busy}
    return {"settings": len(noise) * len(steps), "widest": worst} | spent


def table(ours, other, many, memory, load) -> str:
    """The numbers as Markdown."""
    width = lambda found: (found["upper"] - found["lower"]) / found["upper"]
    rows = [
        "| | time | ε at δ = 1e-5 | relative width |",
        "|---|---|---|---|",
        *(
            f"| {name} | {found['seconds']:.3g} s | [{found['lower']:.6f}, {found['upper']:.6f}] |"
            f" {width(found):.1e} |"
            for name, found in (("jaxgdp", ours), (f"pld-accounting ({other['source']})", other))
        ),
        "",
        (
            f"{other['seconds'] / ours['seconds']:,.0f} times faster,"
            f" {width(other) / width(ours):,.0f} times narrower (the first call of a process takes"
            f" {ours['first']:.2f} s). Exact: {EXACT}."
        ),
        "",
        f"{many['settings']} settings, ε, μ and advantage, both sides: {many['seconds']:.1f} s"
        f" ({many['cpu_seconds']:.1f} of CPU); widest "
        + ", ".join(f"{name} {value:.1e}" for name, value in many["widest"].items())
        + f". Largest memory: {memory:.2f} GiB.",
        "",
        (
            f"One setting takes {ours['cpu_seconds']:.3g} s of CPU. {os.cpu_count()} cores; load"
            f" average when it began {load:.1f}."
        ),
    ]
    return "\n".join(rows) + "\n"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--peer", action="store_true")
    parser.add_argument(
        "--output",
        type=Path,
        default=Path(__file__).parent / "results" / "samplers" / "samplers_speed",
    )
    options = parser.parse_args()
    load = os.getloadavg()[0]
    ours = single()
    many = grid(30 if options.quick else 300)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    other = peer() if options.peer else MEASURED
    text = table(ours, other, many, memory, load)
    print(text)
    numbers = {"date": datetime.date.today().isoformat(), "cores": os.cpu_count(), "load": load}
    numbers |= {"ours": ours, "peer": other, "grid": many, "memory_gib": memory}
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.with_suffix(".md").write_text(text, encoding="utf-8")
    options.output.with_suffix(".json").write_text(
        json.dumps(numbers, indent=1) + "\n", encoding="utf-8"
    )


if __name__ == "__main__":
    main()
