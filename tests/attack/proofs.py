"""``python -m tests.attack.proofs --number 200``: random brackets of every regime, proven in exact
arithmetic; fails where one is refuted.
"""

from __future__ import annotations

import argparse
import datetime
import sys

import numpy as np

import jaxgdp

ASKED = {
    "delta": lambda rng: {"epsilon": float(rng.choice([0.0, 0.5, 2.0, 8.0]))},
    "epsilon": lambda rng: {"delta": float(10.0 ** rng.uniform(-12.0, -1.0))},
    "tpr": lambda rng: {"fpr": float(10.0 ** rng.uniform(-8.0, -0.3))},
    "beta": lambda rng: {"fpr": float(10.0 ** rng.uniform(-4.0, -0.3))},
    "advantage": lambda rng: {},
    "bayes_risk": lambda rng: {"prior": float(rng.uniform(0.02, 0.98))},
    "mu": lambda rng: {"fpr_floor": float(10.0 ** rng.uniform(-12.0, -2.0))},
    "approximate_mu": lambda rng: {"approximation": float(10.0 ** rng.uniform(-8.0, -1.0))},
    "regret": lambda rng: {"fpr_floor": float(10.0 ** rng.uniform(-10.0, -2.0))},
}


def _mechanism(rng, steps):
    """A mechanism of one of all kinds, and how often it is used."""
    noise, rate = 10.0 ** rng.uniform(-0.4, 1.0), float(10.0 ** rng.uniform(-3.0, 0.0))
    number = int(10.0 ** rng.uniform(0.0, np.log10(steps)))
    few = min(number, 40)
    return [
        lambda: (jaxgdp.SubsampledGaussian(noise, rate), number),
        lambda: (jaxgdp.SubsampledGaussian(noise, rate), few),
        lambda: (jaxgdp.Gaussian(noise * np.sqrt(number)), number),
        lambda: (jaxgdp.Laplace(noise * 2.0), few),
        lambda: (jaxgdp.SubsampledLaplace(noise, rate), number),
        lambda: (jaxgdp.DiscreteGaussian(noise * np.sqrt(few), int(rng.integers(1, 4))), few),
        lambda: (jaxgdp.DiscreteLaplace(noise * 3.0), few),
        lambda: (jaxgdp.RandomizedResponse(1.0 / noise, int(rng.integers(2, 9))), few),
        lambda: (jaxgdp.PureDP(0.5 / noise), few),
        lambda: (jaxgdp.ApproximateDP(0.5 / noise, float(10.0 ** rng.uniform(-14.0, -4.0))), few),
        lambda: (jaxgdp.FromPMFs([0.5, 0.3, 0.2], [0.3, 0.3, 0.4]), min(few, 12)),
    ][rng.integers(11)]()


def draw(seed: int, index: int, steps: float = 1e4):
    """(mechanism, quantity, adjacency, what it is asked at)."""
    rng = np.random.default_rng([seed, index])
    parts = [_mechanism(rng, steps) for _ in range(int(rng.choice([1, 1, 1, 2])))]
    quantity = str(rng.choice(list(ASKED)))
    adjacency = str(rng.choice(["add_remove", "add", "remove"]))
    return jaxgdp.compose(parts), quantity, adjacency, ASKED[quantity](rng)


def verdict(seed: int, index: int, seconds: float, steps: float = 1e4):
    """The proof of one random bracket."""
    mechanism, quantity, adjacency, asked = draw(seed, index, steps)
    bracket = jaxgdp.measure(mechanism, quantity, adjacency=adjacency, **asked)[quantity]
    return jaxgdp.prove(mechanism, quantity, bracket, seconds, adjacency=adjacency, **asked)


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.attack.proofs", description=__doc__)
    parser.add_argument("--number", type=int, default=200, help="brackets (default: 200)")
    parser.add_argument("--seed", type=int, default=None, help="default: today's date")
    parser.add_argument("--first", type=int, default=0, help="number of the first bracket")
    parser.add_argument("--seconds", type=float, default=30.0, help="for each (default: 30)")
    asked = parser.parse_args(arguments)
    seed = asked.seed if asked.seed is not None else int(datetime.date.today().strftime("%Y%m%d"))
    counts = dict.fromkeys(("proven", "refuted", "undecided"), 0)
    for index in range(asked.first, asked.first + asked.number):
        found = verdict(seed, index, asked.seconds)
        counts[found.verdict] += 1
        if found.verdict != "proven":
            mechanism, *_ = draw(seed, index)
            print(f"--seed {seed} --first {index} --number 1: {found}\n  {mechanism}", flush=True)
    print(f"seed {seed}: " + ", ".join(f"{count} {name}" for name, count in counts.items()))
    return 1 if counts["refuted"] else 0


if __name__ == "__main__":
    sys.exit(main())
