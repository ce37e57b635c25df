"""Time and accuracy of the privacy of users with several records, next to dp_accounting's event of
a mixture of Gaussians: the same settings in one run.

    python benchmarks/group_privacy_speed.py

DP-SGD by Poisson sampling in which a user has k records: how many of them a step draws is binomial,
and so is the mixture. Both report ε at δ = 1e-5 when the user is added or removed. Ours is a
bracket at ``rtol`` = 1e-3, timed in a fresh process and again; dp_accounting's number is its
pessimistic one, with its default interval of discretisation, timed once. Times are CPU seconds.
Writes a table (.md) and all numbers (.json) to benchmarks/results/groups."""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import landscape_speed

ROOT = Path(__file__).resolve().parent.parent
DELTA = 1e-5
# (noise multiplier, sampling probability, steps, records of a user)
SETTINGS = (
    (1.0, 0.01, 100, 2),
    (1.0, 0.01, 100, 4),
    (1.0, 0.01, 100, 8),
    (2.0, 0.05, 100, 4),
    (1.0, 0.001, 1000, 4),
)


def ours(setting: tuple) -> dict:
    sys.path.insert(0, str(ROOT))
    import jaxgdp

    sigma, rate, steps, records = setting

    def ask():
        start = time.process_time()
        found = jaxgdp.measure(
            jaxgdp.dpsgd(sigma, rate, int(steps), records_per_user=int(records)),
            "epsilon",
            delta=DELTA,
        )
        return time.process_time() - start, found

    first, _ = ask()
    again, found = ask()
    bracket = found.epsilon
    return {
        "first": first,
        "again": again,
        "epsilon": [float(bracket.lower), float(bracket.upper)],
        "status": int(found.status["epsilon"]),
    }


def peer(setting: tuple) -> dict:
    import dp_accounting
    from dp_accounting.pld import PLDAccountant
    from scipy.stats import binom

    sigma, rate, steps, records = setting
    drawn = list(range(int(records) + 1))
    event = dp_accounting.dp_event.MixtureOfGaussiansDpEvent(
        sigma, drawn, binom.pmf(drawn, int(records), rate).tolist()
    )
    start = time.process_time()
    accountant = PLDAccountant()
    accountant.compose(event, int(steps))
    epsilon = accountant.get_epsilon(DELTA)
    return {"seconds": time.process_time() - start, "epsilon": float(epsilon)}


def in_process(worker: str, setting: tuple) -> dict:
    """What a worker finds in a fresh process on one core."""
    code = f"import json, group_privacy_speed as g; print(json.dumps(g.{worker}({setting!r})))"
    search = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": search, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout.strip().splitlines()[-1])


def table(run: dict) -> str:
    """The measurements as Markdown."""
    machine = run["machine"]
    packages = ", ".join(f"{name} {version}" for name, version in run["versions"].items())
    lines = [
        f"{machine['cpu']}, {machine['cores']} cores; {packages}; {run['date']}; ε at δ = {DELTA:g}"
        " when a user with k records is added or removed; CPU seconds.",
        "",
        "| σ, p, T, k | ours | first answer | again | dp_accounting | | ratio, first and again |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in run["rows"]:
        (lower, upper), theirs = row["ours"]["epsilon"], row["peer"]
        first, again = row["ours"]["first"], row["ours"]["again"]
        flag = ", wider" if row["ours"]["status"] else ""
        lines.append(
            f"| {', '.join(f'{number:g}' for number in row['setting'])} | [{lower:.5f},"
            f" {upper:.5f}]{flag} | {first:.2f} s | {again:.3f} s | {theirs['epsilon']:.4f} |"
            f" {theirs['seconds']:.1f} s | {theirs['seconds'] / first:.0f}×,"
            f" {theirs['seconds'] / again:.0f}× |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--output", type=Path, default=ROOT / "benchmarks" / "results" / "groups")
    options = parser.parse_args()
    device = landscape_speed.in_process("device", {})
    run = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": landscape_speed.machine(device),
        "versions": device["versions"]
        | {"dp_accounting": importlib.metadata.version("dp-accounting")},
        "rows": [
            {
                "setting": setting,
                "ours": in_process("ours", setting),
                "peer": in_process("peer", setting),
            }
            for setting in SETTINGS
        ],
    }
    options.output.mkdir(parents=True, exist_ok=True)
    path = options.output / f"cpu-{run['date']}"
    path.with_suffix(".json").write_text(json.dumps(run, indent=1) + "\n")
    path.with_suffix(".md").write_text(table(run))
    print(table(run))


if __name__ == "__main__":
    main()
