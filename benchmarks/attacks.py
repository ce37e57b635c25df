"""How close attacks on one training run come to the certified μ, over several seeds.

    python benchmarks/attacks.py --adult adult.csv            # all pieces that are missing
    python benchmarks/attacks.py --pieces 1                   # one more piece, under a minute
    python benchmarks/attacks.py --table                      # what is stored, as tables

A piece is one data set, one noise multiplier and one seed of ``examples/audit_attacks.py``. Numbers
of right guesses are stored (``benchmarks/results/audits/attacks.json``), so that every bound can be
worked out again from them.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import json
import sys
import time
from pathlib import Path

import numpy as np

import jaxgdp
from jaxgdp import audit

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "examples"))
import audit_attacks as example  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results" / "audits" / "attacks.json"
NOISES, SEEDS = (1.0, 0.6, 0.4), 5
ATTACKS = ("loss", "ratio", "gradient")


def certified(noise_multiplier):
    """The certified μ of the loop, at the example's FPR floor."""
    run = jaxgdp.dpsgd(noise_multiplier, example.RATE, example.STEPS)
    return float(jaxgdp.tradeoff(run, fpr_floor=example.FLOOR).mu().upper)


def measure(name, data, noise_multiplier, seed):
    """Right guesses of every attack for one data set, noise and seed; and minutes of CPU."""
    start = time.process_time()
    size = len(data.records[1]) + example.NUM_CANARIES
    padded = int(example.RATE * size + 8.0 * np.sqrt(example.RATE * size))
    included, scores = example.attack_scores(
        data, noise_multiplier, seed, example.REFERENCES, padded
    )
    right = {a: audit.correct_guesses(scores[a], included, example.GUESSES) for a in ATTACKS}
    return {
        "data": name,
        "noise_multiplier": noise_multiplier,
        "seed": seed,
        "num_canaries": example.NUM_CANARIES,
        "num_guesses": list(example.GUESSES),
        "num_correct": {attack: [int(x) for x in counts] for attack, counts in right.items()},
        "minutes": round((time.process_time() - start) / 60.0, 2),
    }


def found_mu(piece, attack):
    """The lower bound on μ of a piece: the best of its numbers of guesses, corrected."""
    number = piece["num_guesses"]
    bounds = audit.one_run_mus(
        piece["num_canaries"], number, piece["num_correct"][attack], 1.0 - 0.05 / len(number)
    )
    return float(np.max(bounds))


def table(pieces):
    """Medians over seeds, the least and the largest, as text."""
    print(
        "| data, noise multiplier | certified μ | loss | likelihood ratio | gradients | seeds |"
        " minutes each |\n|---|---|---|---|---|---|---|"
    )
    key = lambda piece: (piece["data"], -piece["noise_multiplier"])
    for (name, noise), group in itertools.groupby(sorted(pieces, key=key), key):
        rows = list(group)
        cells = []
        for attack in ATTACKS:
            mu = np.array([found_mu(piece, attack) for piece in rows])
            cells.append(f"{np.median(mu):.2f} ({mu.min():.2f} to {mu.max():.2f})")
        minutes = np.median([piece["minutes"] for piece in rows])
        print(
            f"| {name}, {-noise:g} | {certified(-noise):.2f} | {' | '.join(cells)} | {len(rows)} |"
            f" {minutes:.1f} |"
        )


def main(argv=None):
    """Measure what is missing, store it, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--adult", metavar="PATH", help="UCI Adult as a CSV file of numbers")
    parser.add_argument("--pieces", type=int, default=10**6, help="measure no more than so many")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--table", action="store_true", help="only print what is stored")
    args = parser.parse_args(argv)
    pieces = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else []
    have = {(p["data"], p["noise_multiplier"], p["seed"]) for p in pieces}
    load = {"digits": example.digits}
    if args.adult:
        load["Adult"] = functools.partial(example.adult, args.adult)
    missing = [
        (name, noise, seed)
        for seed, name, noise in itertools.product(range(args.seeds), load, NOISES)
        if (name, noise, seed) not in have
    ]
    for name, noise, seed in [] if args.table else missing[: args.pieces]:
        pieces.append(measure(name, load[name](seed=seed), noise, seed))
        RESULTS.parent.mkdir(parents=True, exist_ok=True)
        RESULTS.write_text(json.dumps(pieces, indent=1) + "\n", encoding="utf-8")
        print(pieces[-1], flush=True)
    table(pieces)


if __name__ == "__main__":
    main()
