"""What the README's table of speed says, on the device that JAX finds here: an accelerator, or the
CPU.

    python benchmarks/device.py [--number 1536] [--executors compiled,product] [--quick]
        [--peer-number 64] [--output device.json]

The measurements are those of ``landscape_speed.py``, once for each executor: "product" does without
an FFT, for devices that have none of 64 bits. ``--quick`` leaves out scaling and the bare FFTs;
``--peer-number`` settings are given to gdpnum, on the host, where it is installed. Writes one JSON
file."""

from __future__ import annotations

import argparse
import datetime
import itertools
import json
import os
from pathlib import Path

import numpy as np
from landscape_speed import BATCHES, GRID, STEPS, in_process, machine, summary

RTOL = 1e-3


def lists(seed: int) -> dict[str, list]:
    """Batches of settings that are alike, by size, and settings that differ in their numbers of
    steps.
    """
    generator = np.random.default_rng(seed)
    sigma, p = (
        generator.uniform(2.0, 4.0, max(BATCHES)),
        np.exp(generator.uniform(-3.0, -0.7, max(BATCHES))),
    )
    alike = np.column_stack([sigma, p, np.full(len(p), 1000.0)]).tolist()
    nearly = generator.uniform(4.9, 5.1, 64)
    return {
        "batches": [alike[:number] for number in BATCHES],
        "steps": [[[s, 0.01, float(steps)] for s in nearly] for steps in STEPS],
    }


def landscape(number: int, seed: int) -> list[tuple[float, ...]]:
    """So many settings of the landscape, in any order."""
    whole = [tuple(map(float, setting)) for setting in itertools.product(*GRID.values())]
    order = np.random.default_rng(seed).permutation(len(whole))[:number]
    return [whole[i] for i in order]


def measured(executor: str, number: int, quick: bool, seed: int) -> dict:
    """Everything with one executor."""
    os.environ["JAXGDP_EXECUTOR"] = executor
    base = {"rtol": RTOL, "fpr_floor": 1e-10}
    found = {
        "landscape": summary(in_process("ours", base | {"settings": landscape(number, seed)}), RTOL)
    }
    if quick:
        return found
    return found | {
        name: in_process("scaling", base | {"lists": rows})["rows"]
        for name, rows in lists(seed).items()
    }


def peer(number: int, seed: int) -> dict:
    """What gdpnum takes on the host for so many of the same settings."""
    done = in_process("peer", {"settings": landscape(number, seed)})
    seconds = [
        took
        for took, found in zip(done["seconds"], done["found"], strict=True)
        if not isinstance(found, str)
    ]
    return {
        "version": done["version"],
        "number": number,
        "crashes": number - len(seconds),
        "mean_seconds": float(np.mean(seconds)),
    }


def table(run: dict) -> str:
    """Markdown table of one run."""
    m = run["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in run["versions"].items())
    lines = [
        f"{m['device']}, host: {m['cpu']}, {m['cores']} cores; {versions}; {run['date']}; `rtol` ="
        f" {RTOL:g}.",
        "",
        "| executor | settings | first call, compilation included | warm | width of μ | wider |",
        "|---|---|---|---|---|---|",
    ]
    for name, found in run["executors"].items():
        f = found["landscape"]
        lines.append(
            f"| {name} | {f['number']} | {f['cold_seconds']:.0f} s | {f['per_second']:.0f}"
            f" settings/s | median {f['median_width']:.1e}, largest {f['largest_width']:.1e} |"
            f" {f['wider_than_rtol']} |"
        )
    if other := run.get("peer"):
        ratios = (
            f"{name} {found['landscape']['per_second'] * other['mean_seconds']:.0f}×"
            for name, found in run["executors"].items()
        )
        lines += [
            "",
            f"gdpnum {other['version']} on the host of the device, in the same run:"
            f" {1.0 / other['mean_seconds']:.2f} settings/s ({other['number']} settings,"
            f" {other['crashes']} of which it crashes on). Ratio, warm: {', '.join(ratios)}.",
        ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--number", type=int, default=1536)
    parser.add_argument("--executors", default="compiled,product")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--peer-number", type=int, default=0)
    parser.add_argument("--output", type=Path, default=Path("device.json"))
    options = parser.parse_args()
    device = in_process("device", {})
    found = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": machine(device),
        "accelerator": device["platform"] != "cpu",
        "versions": device["versions"],
        "load_before": os.getloadavg(),
        "executors": {
            name: measured(name, options.number, options.quick, options.seed)
            for name in options.executors.split(",")
        },
    }
    if options.peer_number:
        found["peer"] = peer(options.peer_number, options.seed)
    if not options.quick:
        found["bare_ffts"] = in_process("ffts", {"sizes": [2**k for k in (12, 14, 16, 18)]})
    options.output.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
