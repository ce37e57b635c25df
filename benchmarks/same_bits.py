"""Brackets of random compositions, to the last bit: written by one version of the package and
compared by another.

    python benchmarks/same_bits.py write before.json          # in the checkout of one version
    python benchmarks/same_bits.py compare before.json        # in that of the other

Two thousand compositions of one to three mechanisms of every class are measured by NumPy, each for
one to three quantities and one adjacency, so that every class meets every quantity and every
adjacency; and some batches by the executors that compile. What is refused is compared, too. Both
runs are fresh processes, and every executor is named. (``random_mechanisms.py`` goes with this
file.)"""

from __future__ import annotations

import argparse
import json
import sys
import time
from multiprocessing import get_context

import numpy as np
from random_mechanisms import CLASSES, SLOW, log_uniform

import jaxgdp

NUMBER = 2000
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
ADJACENCIES = ("add_remove", "add", "remove", "replace_one")
APPROXIMATION = "d" if jaxgdp.__version__.startswith("0.2.") else "approximation"
RTOL = (1e-2, 1e-3)


def _at(rng) -> dict[str, float]:
    return {
        "delta": log_uniform(rng, 1e-10, 1e-2),
        "epsilon": float(rng.uniform(0.0, 4.0)),
        "fpr": log_uniform(rng, 1e-8, 0.3),
        "prior": float(rng.uniform(0.05, 0.95)),
        APPROXIMATION: log_uniform(rng, 1e-10, 1e-3),
        "fpr_floor": log_uniform(rng, 1e-12, 1e-2),
    }


def setting(index: int):
    """Composition, quantities and arguments of ``measure`` of one number."""
    rng = np.random.default_rng([20261125, index])
    names = list(CLASSES)
    first = names[index % len(names)]
    others = [str(name) for name in rng.permutation(names) if name != first and name not in SLOW]
    chosen = [first, *others[: int(rng.choice([0, 0, 1, 2]))]]
    parts = []
    for name in chosen:
        mechanism, most = CLASSES[name](rng)
        parts.append((mechanism, int(rng.integers(1, most + 1))))
    turn = index // len(names)
    quantities = [QUANTITIES[turn % len(QUANTITIES)]]
    quantities += [str(q) for q in rng.choice(QUANTITIES, int(rng.integers(0, 3)), replace=False)]
    adjacency = ADJACENCIES[(turn // len(QUANTITIES)) % len(ADJACENCIES)]
    asked = {"adjacency": adjacency, "rtol": float(rng.choice(RTOL)), **_at(rng)}
    return parts, tuple(dict.fromkeys(quantities)), asked


def _bits(found) -> dict:
    return {
        name: (
            [[float(x).hex() for x in np.ravel(side)] for side in bracket]
            + [np.ravel(found.status[name]).tolist()]
        )
        for name, bracket in found.brackets.items()
    }


def measured(index: int) -> dict:
    """What NumPy finds for one number, or which error it raises."""
    parts, quantities, asked = setting(index)
    try:
        return _bits(
            jaxgdp.measure(jaxgdp.compose(parts), quantities=quantities, executor="eager", **asked)
        )
    except ValueError as error:
        return {"refused": type(error).__name__}


# settings in one call, for the executors that compile
BATCHES = {
    "dpsgd": lambda: jaxgdp.dpsgd(np.geomspace(0.8, 5.0, 12), 0.02, 2000),
    "laplace": lambda: jaxgdp.compose([(jaxgdp.Laplace(np.geomspace(2.0, 9.0, 12)), 40)]),
    "mixed": lambda: jaxgdp.compose(
        [
            (jaxgdp.SubsampledGaussian(np.geomspace(1.0, 3.0, 12), 0.05), 400),
            (jaxgdp.DiscreteGaussian(6.0), 5),
        ]
    ),
}


def batched(executor: str, name: str) -> dict:
    """What one executor finds for one batch."""
    at = {"delta": 1e-6, "epsilon": 1.0, "fpr": 1e-4, "prior": 0.4, APPROXIMATION: 1e-8}
    return _bits(jaxgdp.measure(BATCHES[name](), quantities=QUANTITIES, executor=executor, **at))


def _answers(number: int, workers: int, tell) -> dict:
    found: dict[str, dict] = {}
    start = told = time.monotonic()
    with get_context("spawn").Pool(workers) as pool:
        for index, answer in enumerate(pool.imap(measured, range(number), chunksize=8)):
            found[f"composition {index}"] = answer
            if time.monotonic() - told > 20.0:
                told = time.monotonic()
                tell(f"{index + 1} of {number} compositions, {told - start:.0f} s")
        jobs = [
            (executor, name) for executor in ("compiled", "product", "float32") for name in BATCHES
        ]
        for job, answer in zip(jobs, pool.starmap(batched, jobs, chunksize=1), strict=True):
            found[" ".join(job)] = answer
    return found


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("write", "compare"))
    parser.add_argument("file")
    parser.add_argument(
        "--number", type=int, default=NUMBER, help=f"compositions (default: {NUMBER})"
    )
    parser.add_argument("--workers", type=int, default=2, help="processes (default: 2)")
    asked = parser.parse_args(arguments)
    found = _answers(
        asked.number, asked.workers, lambda line: print(line, file=sys.stderr, flush=True)
    )
    if asked.what == "write":
        with open(asked.file, "w", encoding="utf-8") as file:
            json.dump({"version": jaxgdp.__version__, "answers": found}, file)
        print(f"{len(found)} answers of {jaxgdp.__version__} in {asked.file}")
        return 0
    with open(asked.file, encoding="utf-8") as file:
        before = json.load(file)
    different = [key for key, answer in found.items() if before["answers"].get(key) != answer]
    for key in different[:20]:
        print(f"{key}: {before['answers'].get(key)} before, {found[key]} now")
    refused = sum("refused" in answer for answer in found.values())
    print(
        f"{len(found)} answers ({refused} refused): {len(different)} differ from those of"
        f" {before['version']}"
    )
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
