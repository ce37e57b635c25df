"""Put the newest measurements of every device between the benchmark markers of README.md."""

from __future__ import annotations

import json
from pathlib import Path

import calibration_speed
import composition_speed
import first_answer
from landscape_speed import ROOT, table

BEGIN, END = "<!-- benchmark:begin -->", "<!-- benchmark:end -->"


def newest(folder: Path) -> list[dict]:
    """The newest run of each device, CPU first."""
    runs = {}
    for path in sorted(folder.glob("*.json")):
        run = json.loads(path.read_text())
        key = (run["machine"]["platform"] != "cpu", run["machine"]["device"])
        if key not in runs or run["date"] >= runs[key]["date"]:
            runs[key] = run
    return [runs[key] for key in sorted(runs)]


def main() -> None:
    readme = ROOT / "README.md"
    results = ROOT / "benchmarks" / "results"
    runs = newest(results)
    if not runs:
        raise SystemExit("no measurements in benchmarks/results: run `make bench` first")
    tables = [table(run) for run in runs]
    tables += [
        "Compositions of different mechanisms, next to [dp_accounting](https://pypi.org/project/dp-accounting) in one run: "
        + composition_speed.table(run)
        for run in newest(results / "compositions")
    ]
    tables += [
        "Calibration of the noise to an attacker's error rates, next to [riskcal](https://pypi.org/project/riskcal) in one run: "
        + calibration_speed.table(run)
        for run in newest(results / "calibration")
    ]
    tables += [
        "First answers of a fresh process, next to [dp_accounting](https://pypi.org/project/dp-accounting) in one run: "
        + first_answer.table(run)
        for run in newest(results / "first_answer")
    ]
    before, rest = readme.read_text().split(BEGIN)
    _, after = rest.split(END)
    readme.write_text(f"{before}{BEGIN}\n" + "\n".join(tables) + f"{END}{after}")


if __name__ == "__main__":
    main()
