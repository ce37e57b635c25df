"""Put the newest measurements of every device into docs/measurements.md, and a table of the most
telling ones into README.md.
"""

from __future__ import annotations

import json
from pathlib import Path

import accuracy
import calibration_speed
import composition_speed
import device
import first_answer
import group_privacy_speed
import numpy as np
import scale_speed
import training_speed
from landscape_speed import ROOT
from landscape_table import table

BEGIN, END = "<!-- benchmark:begin -->", "<!-- benchmark:end -->"
RESULTS = ROOT / "benchmarks" / "results"


def newest(folder: Path) -> list[dict]:
    """The newest run of each device (of each domain and accuracy), CPU first."""
    runs = {}
    for path in sorted(folder.glob("*.json")):
        run = json.loads(path.read_text())
        machine, domain = run["machine"], run.get("domain", "")
        key = (machine["platform"] != "cpu", machine["device"], domain, -run.get("rtol", 0.0))
        if key not in runs or run["date"] >= runs[key]["date"]:
            runs[key] = run
    return [runs[key] for key in sorted(runs)]


def everything() -> str:
    """All tables, as Markdown."""
    dp_accounting = "[dp_accounting](https://pypi.org/project/dp-accounting)"
    parts = ["## The regret landscape, next to [gdpnum](https://pypi.org/project/gdpnum)"]
    parts += [table(run) for run in newest(RESULTS)]
    parts += ["## The regret landscape on accelerators"]
    parts += [device.table(run) for run in newest(RESULTS / "devices")]
    parts += [f"## Compositions of different mechanisms, next to {dp_accounting}"]
    parts += [composition_speed.table(run) for run in newest(RESULTS / "compositions")]
    parts += [
        "## Calibration to an attacker's error rates, next to"
        " [riskcal](https://pypi.org/project/riskcal)"
    ]
    parts += [calibration_speed.table(run) for run in newest(RESULTS / "calibration")]
    parts += [f"## First answers of a fresh process, next to {dp_accounting}"]
    parts += [first_answer.table(run) for run in newest(RESULTS / "first_answer")]
    parts += [f"## Users with several records, next to {dp_accounting}"]
    parts += [group_privacy_speed.table(run) for run in newest(RESULTS / "groups")]
    parts += ["## How often the accuracy asked for is met"]
    parts += [accuracy.table(run) for run in newest(RESULTS / "accuracy")]
    parts += ["## Clipped sums, next to [jax_privacy](https://pypi.org/project/jax-privacy)"]
    parts += [training_speed.table(run) for run in newest(RESULTS / "training")]
    parts += ["## Sweeps in stores", scale_speed.table(*scale_runs())]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def scale_runs() -> tuple[dict, dict]:
    """What was measured of stores and workers, and over a whole grid."""
    folder = RESULTS / "scale"
    return scale_speed.stored(folder, "speed"), scale_speed.stored(folder, "grid")


def summary() -> str:
    """One table of a few numbers, of the first device, as Markdown."""
    grid, compositions, calibration, first = (
        newest(RESULTS / name)[0] for name in ("", "compositions", "calibration", "first_answer")
    )
    batches = json.loads(max((RESULTS / "first_batches").glob("*.json")).read_text())
    peer, same = grid["peer"], grid["same_sample"]
    theirs = 1.0 / peer["mean_seconds"]
    ratios = [
        np.mean(row["peer"]["seconds"]) / (row["ours"]["warm"] / row["number"])
        for row in compositions["rows"]
        if row.get("peer")
    ]
    row = next(row for row in calibration["rows"] if row.get("peer"))
    each, riskcal = row["ours"]["cpu"] / row["number"], float(np.mean(row["peer"]["cpu"]))
    answers = first["entries"]
    rows = [
        (
            f"μ and Δ of {grid['ours']['number']} settings of DP-SGD, compiled",
            f"{grid['ours']['per_second']:.0f} a second",
            (
                f"gdpnum: {theirs:.1f} a second ({same['per_second'] / theirs:.0f}×), outside our"
                f" bracket on {peer['below_bracket'] + peer['above_bracket']}, no answer on"
                f" {peer['crashes']}"
            ),
        ),
        (
            "relative width of those μ brackets",
            (
                f"median {grid['ours']['median_width']:.1e}, largest"
                f" {grid['ours']['largest_width']:.1e}"
            ),
            "no brackets",
        ),
        (
            "the same in a fresh process, by NumPy while programs compile; by compiled ones alone",
            f"{batches['sweep']['wall']:.0f} s; {grid['ours']['cold_seconds']:.0f} s",
            f"gdpnum: {peer['mean_seconds'] * grid['ours']['number']:.0f} s",
        ),
        (
            "compositions of different mechanisms, compiled",
            f"{min(ratios):.0f}× to {max(ratios):.0f}× as fast",
            "as dp_accounting",
        ),
        (
            f"noise for an FNR at an FPR, {row['number']} at once, CPU time of each",
            f"{1e3 * each:.1f} ms, {row['verdict']['fail']} fail their target",
            (
                f"riskcal: {riskcal:.0f} s, {row['peer_verdict']['fail']} of"
                f" {row['peer_verdict']['number']} fail theirs"
            ),
        ),
        (
            "first answer of a fresh process: μ and ε of one run, imports included",
            f"{answers['measure']['wall']:.1f} s",
            f"dp_accounting, ε: {answers['peer']['wall']:.1f} s",
        ),
    ]
    speed, whole = scale_runs()
    one, two = (scale_speed.fastest(speed)[number]["per_second"] for number in (1, 2))
    small = [row for row in speed["memory_mib"] if row["settings"] <= 10**5]
    sizes = ", ".join(f"{row['settings']:,}" for row in small)
    resident = ", ".join(f"{row['after_each_chunk'][-1]:.0f}" for row in small)
    m = grid["machine"]
    rows += [
        (
            f"sweep in a store, by one and by two workers on a core each{scale_speed.busy(speed)}",
            f"{one:.1f} and {two:.1f} settings a second ({two / one:.2f}×)",
            "",
        ),
        (
            "what the store costs",
            f"{1e-3 * speed['overhead']['microseconds_to_write_one']:.2f} ms a setting",
            "",
        ),
        (
            f"resident memory in grids of {sizes} settings, after the first chunks",
            f"{resident} MiB",
            "",
        ),
        (
            f"… over a whole grid of {whole['settings']:,}, compiled",
            (
                f"at most {whole['peak_mib']:.0f} MiB, {whole['mib_for_each_100000_more']:+.0f} MiB"
                " for each 100,000 more"
            ),
            "",
        ),
    ]
    lines = ["| | jaxgdp, both sides certified | others |", "|---|---|---|"]
    lines += [f"| {' | '.join(cells)} |" for cells in rows]
    dates = sorted({run["date"] for run in (grid, compositions, calibration, first, speed, whole)})
    lines += [
        "",
        f"{m['cpu']}, {m['cores']} cores; {' and '.join(dates)}; `rtol` = {grid['rtol']:g}.",
    ]
    return "\n".join(lines) + "\n"


def between_marks(text: str, new: str) -> str:
    """The text with what stands between the marks replaced."""
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n{new}{END}{after}"


def main() -> None:
    if not newest(RESULTS):
        raise SystemExit("no measurements in benchmarks/results: run `make bench` first")
    for path, new in (
        (ROOT / "README.md", summary()),
        (ROOT / "docs" / "measurements.md", everything()),
    ):
        path.write_text(between_marks(path.read_text(encoding="utf-8"), new), encoding="utf-8")


if __name__ == "__main__":
    main()
