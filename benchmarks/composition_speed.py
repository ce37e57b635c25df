"""Speed and accuracy of heterogeneous compositions next to dp_accounting: the same compositions in
one run.

    python benchmarks/composition_speed.py

Three tasks: twenty different mechanisms composed, the census releases of 2020 (every query a
discrete Gaussian of its own noise), and a batch of 1,000 different compositions in one call. Ours
is timed after compilation, the first call apart; beside it, the whole curve down to error rates of
1e-300. Both report ε at δ = 1e-10 of the same mechanisms; ours is a bracket, dp_accounting's number
is its pessimistic one. Writes a table (.md) and all numbers (.json)."""

from __future__ import annotations

import argparse
import datetime
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
DELTA = 1e-10
CENSUS = (
    "census_2020_pl94_persons",
    "census_2020_pl94_units",
    "census_2020_dhc_persons",
    "census_2020_dhc_housing",
)
BATCH = 1000


def twenty() -> list[tuple[str, dict, int]]:
    """Twenty mechanisms of five kinds, each with its own parameter and number of uses: (class,
    fields, uses).
    """
    parts = []
    for k in range(4):
        parts += [
            ("Gaussian", {"noise_multiplier": 8.0 + 3.0 * k}, 1 + k),
            (
                "SubsampledGaussian",
                {"noise_multiplier": 1.5 + 0.5 * k, "sampling_prob": 0.01 * (k + 1)},
                50 * (k + 1),
            ),
            ("Laplace", {"scale": 12.0 + 5.0 * k}, 2 + k),
            ("DiscreteGaussian", {"sigma": 9.0 + 4.0 * k}, 3 + k),
            ("RandomizedResponse", {"epsilon": 0.02 * (k + 1)}, 5),
        ]
    return parts


def batch(number: int) -> list[list[tuple[str, dict, int]]]:
    """Random compositions of a Gaussian, a subsampled Gaussian and Laplace noise."""
    rng = np.random.default_rng(0)
    draw = lambda low, high: float(np.exp(rng.uniform(np.log(low), np.log(high))))
    return [
        [
            ("Gaussian", {"noise_multiplier": draw(4, 40)}, int(draw(1, 20))),
            (
                "SubsampledGaussian",
                {"noise_multiplier": draw(0.8, 5), "sampling_prob": draw(1e-3, 0.1)},
                int(draw(10, 1000)),
            ),
            ("Laplace", {"scale": draw(5, 50)}, int(draw(1, 10))),
        ]
        for _ in range(number)
    ]


def tasks(number: int) -> dict[str, list]:
    """Name → compositions."""
    sys.path.insert(0, str(ROOT))
    import jaxgdp

    census = {}
    for name in CENSUS:
        mechanism = getattr(jaxgdp.deployments, name)()
        parts = zip(mechanism.mechanisms, mechanism.counts, strict=True)
        census[name] = [
            [("DiscreteGaussian", {"sigma": float(m.sigma)}, int(count)) for m, count in parts]
        ]
    return {"twenty mechanisms": [twenty()]} | census | {f"batch of {number}": batch(number)}


# Workers: each runs in a fresh process, reads compositions and returns numbers.


def ours(compositions: list) -> dict:
    sys.path.insert(0, str(ROOT))
    import jaxgdp

    def column(i):
        kind = compositions[0][i][0]
        fields = {
            name: np.array([c[i][1][name] for c in compositions]) for name in compositions[0][i][1]
        }
        counts = np.array([c[i][2] for c in compositions])
        if len(compositions) == 1:
            fields, counts = {name: value[0] for name, value in fields.items()}, counts[0]
        return getattr(jaxgdp, kind)(**fields), counts

    mechanism = jaxgdp.compose([column(i) for i in range(len(compositions[0]))])

    def timed(ask):
        start = time.perf_counter()
        found = ask()
        return time.perf_counter() - start, found

    ask = lambda: jaxgdp.measure(mechanism, quantities=("mu", "epsilon"), delta=DELTA)
    cold, _ = timed(ask)
    warm, found = timed(ask)
    mu, epsilon = found.brackets["mu"], found.brackets["epsilon"]
    result = {
        "cold": cold,
        "warm": warm,
        "epsilon": [np.ravel(side).tolist() for side in epsilon],
        "width": float(np.max(mu.width / np.maximum(mu.upper, 1e-300))),
        "status": int(np.sum(found.worst != 0)),
    }
    if len(compositions) == 1:
        # the whole curve, down to error rates of 1e-300
        result["curve_cold"], _ = timed(lambda: jaxgdp.tradeoff(mechanism))
        result["curve_warm"], _ = timed(lambda: jaxgdp.tradeoff(mechanism))
    return result


def peer(compositions: list) -> dict:
    from dp_accounting.pld import privacy_loss_distribution as pld

    makers = {
        "Gaussian": lambda f: pld.from_gaussian_mechanism(f["noise_multiplier"]),
        "SubsampledGaussian": lambda f: pld.from_gaussian_mechanism(
            f["noise_multiplier"], sampling_prob=f["sampling_prob"]
        ),
        "Laplace": lambda f: pld.from_laplace_mechanism(f["scale"]),
        "DiscreteGaussian": lambda f: pld.from_discrete_gaussian_mechanism(f["sigma"]),
        "RandomizedResponse": lambda f: pld.from_randomized_response(
            2.0 / (1.0 + np.exp(f["epsilon"])), 2
        ),
    }
    seconds, found = [], []
    for composition in compositions:
        start = time.perf_counter()
        total = None
        for kind, fields, count in composition:
            part = makers[kind](fields)
            part = part.self_compose(count) if count > 1 else part
            total = part if total is None else total.compose(part)
        found.append(float(total.get_epsilon_for_delta(DELTA)))
        seconds.append(time.perf_counter() - start)
    return {"seconds": seconds, "epsilon": found}


WORKERS = {"ours": ours, "peer": peer}


def in_process(worker: str, compositions: list, python: str = sys.executable) -> dict:
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result.json"
        command = [python, __file__, "--worker", worker, "--result", str(result)]
        subprocess.run(command, input=json.dumps(compositions), text=True, check=True)
        return json.loads(result.read_text())


def measure(args) -> dict:
    import landscape_speed

    device = landscape_speed.in_process("device", {})
    rows = []
    for name, compositions in tasks(args.number).items():
        row = {"name": name, "number": len(compositions), "ours": in_process("ours", compositions)}
        if not args.skip_peer:
            row["peer"] = in_process("peer", compositions[: args.peer_number], args.peer_python)
        rows.append(row)
    about = {"machine": landscape_speed.machine(device), "versions": device["versions"]}
    return {"date": str(datetime.date.today())} | about | {"rows": rows}


def table(r: dict) -> str:
    """Markdown table of one run."""
    m = r["machine"]
    lines = [
        f"{m['cpu']}, {m['cores']} cores; "
        + ", ".join(f"{k} {v}" for k, v in r["versions"].items())
        + f"; {r['date']}.",
        "",
        (
            "| composition | compiled | whole curve | first call | dp_accounting | ratio | width of"
            " μ | ε(1e-10) | dp_accounting |"
        ),
        "|---|---:|---:|---:|---:|---:|---:|---|---:|",
    ]
    for row in r["rows"]:
        a, b = row["ours"], row.get("peer")
        each = a["warm"] / row["number"]
        low, high = (side[0] for side in a["epsilon"])
        curve = f"{a['curve_warm']:.2f} s" if "curve_warm" in a else ""
        cells = [row["name"], f"{a['warm']:.2f} s", curve, f"{a['cold']:.1f} s"]
        theirs = np.mean(b["seconds"]) if b else np.nan
        cells += [
            f"{theirs:.2f} s each" if b else "",
            f"**{theirs / each:.0f}×**" if b else "",
            f"{a['width']:.1e}",
        ]
        cells += [f"{low:.6g} … {high:.6g}", f"{b['epsilon'][0]:.6g}" if b else ""]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--number", type=int, default=BATCH, help="compositions in the batch")
    parser.add_argument(
        "--peer-number",
        type=int,
        default=10,
        help="compositions of the batch given to dp_accounting",
    )
    parser.add_argument(
        "--peer-python", default=sys.executable, help="interpreter that has dp_accounting"
    )
    parser.add_argument("--skip-peer", action="store_true", help="leave dp_accounting out")
    parser.add_argument(
        "--output",
        type=Path,
        default=ROOT / "benchmarks" / "results" / "compositions",
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
