"""How often the accuracy asked for is met, at what cost: every quantity on random settings, each
asked alone, one by one, by NumPy.

There are three domains. All ask δ at an ε, ε at a δ, TPR and β at an FPR, the Bayes risk at a prior
in [0.01, 0.99] and approximate μ at an approximation, all but priors log-uniform.

``usual``: DP-SGD, σ log-uniform in [0.5, 20], p in [1e-4, 1], T in [100, 2e4], both orders.
``whole``: DP-SGD, σ in [0.05, 100], p in [1e-9, 1] and p = 1 in one setting of ten, T in [1, 1e9];
add_remove, add or remove.
``mixes``: compositions of one to five classes, 1 to 200 uses of each; add_remove, add or remove.
Mechanisms whose two sides are of different laws are left out: no lattice brings them together.

Met means status 0: the width promised for ``rtol``, or an upper side below 1e-300. With
``--curves`` the kept curve of every tenth setting is asked as well: both brackets have to overlap,
and what is wider than promised may be at most twice as wide as the other one. Either ends as soon
as it is as narrow as promised, so the other one may well be narrower; how often that is so by more
than twice is counted apart.

    python benchmarks/accuracy.py --domain whole --number 1000 --rtol 1e-3
"""

from __future__ import annotations

import argparse
import datetime
import json
import resource
import signal
import time
import warnings
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import landscape_speed
import numpy as np
from random_mechanisms import CLASSES, log_uniform

import jaxgdp
from jaxgdp.bracket import Bracket
from jaxgdp.quantities import registry

RESULTS = Path(__file__).parent / "results" / "accuracy"
ORDERS = ("add_remove", "add", "remove")
# argument → its range
USUAL = {"epsilon": (0.1, 8.0), "delta": (1e-12, 1e-3), "fpr": (1e-8, 0.4)}
WHOLE = {"epsilon": (0.1, 1000.0), "delta": (1e-15, 1e-2), "fpr": (1e-12, 0.4)}
WHOLE["approximation"] = USUAL["approximation"] = (1e-15, 1e-2)


class Setting(NamedTuple):
    """A composition, its adjacency, what quantities are asked at, and words for all that."""

    run: Any
    adjacency: str
    asked: dict[str, float]
    says: str


def _asked(rng, ranges: dict) -> dict[str, float]:
    asked = {name: log_uniform(rng, *ends) for name, ends in ranges.items()}
    return asked | {"prior": float(rng.uniform(0.01, 0.99))}


def _dpsgd(rng, sigma: tuple, p: tuple, steps: tuple, always: float) -> tuple[Any, str]:
    """A random run, sampled with probability 1 in a share of all."""
    noise = log_uniform(rng, *sigma)
    prob = 1.0 if rng.random() < always else log_uniform(rng, *p)
    number = round(log_uniform(rng, *steps))
    return jaxgdp.dpsgd(noise, prob, number), f"dpsgd({noise!r}, {prob!r}, {number})"


def usual(rng) -> Setting:
    run, says = _dpsgd(rng, (0.5, 20.0), (1e-4, 1.0), (100.0, 2e4), 0.0)
    return Setting(run, "add_remove", _asked(rng, USUAL), says)


def whole(rng) -> Setting:
    run, says = _dpsgd(rng, (0.05, 100.0), (1e-9, 1.0), (1.0, 1e9), 0.1)
    return Setting(run, str(rng.choice(ORDERS)), _asked(rng, WHOLE), says)


def mixes(rng) -> Setting:
    parts = []
    for name in rng.permutation(list(CLASSES))[: int(rng.integers(1, 6))]:
        mechanism, uses = CLASSES[str(name)](rng)[0], int(rng.integers(1, 201))
        if mechanism.tight:
            parts.append((mechanism, uses))
    if not parts:
        return mixes(rng)
    asked = _asked(rng, USUAL)
    return Setting(jaxgdp.compose(parts), str(rng.choice(ORDERS)), asked, f"compose({parts!r})")


DOMAINS: dict[str, Callable[[Any], Setting]] = {"usual": usual, "whole": whole, "mixes": mixes}


class Job(NamedTuple):
    """What one process measures; ``limit`` is in seconds of CPU for one setting."""

    domain: str
    quantity: str
    number: int
    seed: int
    rtol: float
    limit: float
    curves: bool


class _OutOfTime(Exception):
    pass


def _stop(*_: Any) -> None:
    raise _OutOfTime


def _compared(name: str, rtol: float, number: Bracket, curve: Bracket) -> str:
    """How the bracket of a kept curve stands to that of the number asked alone: "disjoint",
    "curve_wider" or "number_wider" if it is more than twice as wide (widths of rounding errors do
    not count) and wider than promised, "as_promised" if it is the former alone, else "alike".
    """
    if max(number.lower, curve.lower) > min(number.upper, curve.upper):
        return "disjoint"
    size = 1e-9 * min(abs(number.upper), abs(curve.upper))
    of_number, of_curve = (one.upper - one.lower + size for one in (number, curve))
    curve_wider = not of_curve <= 2.0 * of_number
    if not curve_wider and of_number <= 2.0 * of_curve:
        return "alike"
    wider = curve if curve_wider else number
    if registry.named(name).excess(wider, rtol) <= 1.0:
        return "as_promised"
    return "curve_wider" if curve_wider else "number_wider"


def _beside(name: str, rtol: float, found: dict) -> str:
    """The same of what was written down of a setting."""
    number = Bracket(found["lower"], found["upper"])
    return _compared(name, rtol, number, Bracket(found["curve_lower"], found["curve_upper"]))


def _of_curve(setting: Setting, name: str, at: dict, rtol: float) -> dict:
    """What the kept curve of a setting says of a number."""
    curve = jaxgdp.tradeoff(setting.run, adjacency=setting.adjacency, rtol=rtol)
    found = getattr(curve, name)(*at.values())
    return dict(zip(("curve_lower", "curve_upper"), map(float, found), strict=True))


def one_quantity(job: Job) -> dict:
    """Every setting of a domain, asked for one quantity; runs in a process of its own."""
    domain, name, number, seed, rtol, limit, curves = job
    warnings.simplefilter("ignore")
    argument = registry.named(name).own_argument
    jaxgdp.measure(jaxgdp.dpsgd(1.0, 0.01, 1000), "mu")  # imports are no part of a setting
    signal.signal(signal.SIGVTALRM, _stop)
    status, seconds, missed, beside = [], [], [], []
    for index in range(number):
        setting = DOMAINS[domain](np.random.default_rng([seed, index]))
        at = {argument: setting.asked[argument]} if argument in setting.asked else {}
        asked = {"adjacency": setting.adjacency, "rtol": rtol, "executor": "eager", **at}
        begin, found = time.process_time(), None
        signal.setitimer(signal.ITIMER_VIRTUAL, limit)
        try:
            found = jaxgdp.measure(setting.run, name, **asked)
            status.append(int(found.status[name]))
        except _OutOfTime:
            status.append(-1)
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        seconds.append(time.process_time() - begin)
        about = {"setting": setting.says, **asked, "seconds": round(seconds[-1], 3)}
        if found is not None:
            about |= dict(zip(("lower", "upper"), map(float, found[name]), strict=True))
        if status[-1] != 0:
            missed.append(about)
        if curves and index % 10 == 0 and found is not None:
            about |= _of_curve(setting, name, at, rtol)
            beside.append(about | {"compared": _beside(name, rtol, about)})
    return {
        "met": float(np.mean(np.array(status) == 0)),
        "contradictions": status.count(2),
        "no_answer": status.count(-1),
        "cpu_median": float(np.median(seconds)),
        "cpu_95_percent": float(np.quantile(seconds, 0.95)),
        "cpu_worst": float(np.max(seconds)),
        "memory_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "missed": missed,
        "compared": len(beside),
        "apart": [one for one in beside if one["compared"] != "alike"],
    }


def table(run: dict) -> str:
    """Markdown table of one run."""
    m = run["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in run["versions"].items())
    about = {
        "usual": "of DP-SGD",
        "whole": "of DP-SGD from all of its domain (σ from 0.05 to 100, p from 1e-9, T to 1e9)",
        "mixes": "of compositions of one to five classes, 1 to 200 uses of each",
    }[run["domain"]]
    lines = [
        f"{m['cpu']}, {m['cores']} cores; {versions}; {run['date']}; {run['number']} random"
        f" settings {about}, `rtol` = {run['rtol']:g}, each quantity alone, one by one, NumPy.",
        "",
        "| quantity | as accurate as asked | contradictions | CPU s: median | 95 % | worst | memory"
        " (MiB) |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for name, row in run["quantities"].items():
        lines += [
            f"| {name} | {row['met']:.1%} | {row['contradictions']} | {row['cpu_median']:.3f} |"
            f" {row['cpu_95_percent']:.2f} | {row['cpu_worst']:.1f} | {row['memory_mib']:.0f} |"
        ]
    without = sum(row["no_answer"] for row in run["quantities"].values())
    lines += ["", "The others have status 1."]
    if without:
        lines += [f"{without} had no answer after {run['limit']:g} s of CPU."]
    if run["curves"]:
        lines += [_of_curves(run)]
    return "\n".join(lines) + "\n"


def _of_curves(run: dict) -> str:
    """How the kept curves stand to the numbers, in a sentence."""
    rows, how = run["quantities"], []
    if not all("compared" in row for row in rows.values()):
        # (as it was counted before)
        return (
            "The kept curve of every tenth setting agrees, neither bracket more than twice as wide"
            f" as the other, but for {sum(len(row['apart']) for row in rows.values())}."
        )
    for name, row in rows.items():
        how += [
            _beside(name, run["rtol"], one) for one in row["apart"] + row.get("number_wider", [])
        ]
    compared, narrow = sum(row["compared"] for row in rows.values()), how.count("as_promised")
    agree = compared - len(how) + how.count("alike") + narrow
    return (
        f"Of {compared} numbers, {agree} agree with the kept curve: what is wider than promised is"
        f" at most twice as wide as the other one. For {narrow} of them one of both is less than"
        " half as wide as the other, which is as narrow as promised."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--domain", choices=sorted(DOMAINS), default="usual")
    parser.add_argument("--number", type=int, default=500)
    parser.add_argument("--rtol", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=float, default=60.0, help="CPU seconds of one setting")
    parser.add_argument("--curves", action="store_true", help="ask kept curves as well")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--quantities", default=",".join(registry.REGISTRY))
    parser.add_argument("--output", type=Path, default=RESULTS)
    asked = parser.parse_args()
    jobs = [
        Job(asked.domain, name, asked.number, asked.seed, asked.rtol, asked.limit, asked.curves)
        for name in asked.quantities.split(",")
    ]
    rows = {}
    with get_context("spawn").Pool(asked.workers, maxtasksperchild=1) as pool:
        for job, row in zip(jobs, pool.imap(one_quantity, jobs, chunksize=1), strict=True):
            rows[job.quantity] = row
            print(
                f"{job.quantity:15s} met {row['met']:7.2%}; CPU {row['cpu_median']:.3f} s median,"
                f" {row['cpu_worst']:.1f} s worst; {row['memory_mib']:.0f} MiB",
                flush=True,
            )
    device = landscape_speed.in_process("device", {})
    run = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": landscape_speed.machine(device),
        "versions": device["versions"],
        "domain": asked.domain,
        "number": asked.number,
        "rtol": asked.rtol,
        "seed": asked.seed,
        "limit": asked.limit,
        "curves": asked.curves,
        "quantities": rows,
    }
    asked.output.mkdir(parents=True, exist_ok=True)
    stem = f"{run['machine']['platform']}-{run['date']}-{asked.domain}-rtol-{asked.rtol:g}"
    (asked.output / f"{stem}.json").write_text(json.dumps(run, indent=1) + "\n", encoding="utf-8")
    print(table(run))


if __name__ == "__main__":
    main()
