"""``python -m tests.attack.proofs --number 200``: random brackets of every regime, proven in exact
arithmetic; fails where one is refuted.
"""

from __future__ import annotations

import argparse
import datetime
import itertools
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


ADJACENCIES = ("add_remove", "add", "remove")


def _noise(rng, extreme):
    """A noise multiplier; of extreme ones hardly any, or very much."""
    return float(rng.choice([0.05, 0.12, 30.0, 200.0]) if extreme else 10.0 ** rng.uniform(-0.4, 1))


def _rate(rng, extreme):
    return float(rng.choice([1e-8, 1e-5, 1 - 1e-6, 1.0]) if extreme else 10.0 ** rng.uniform(-3, 0))


def _pmfs(rng, extreme):
    """Two laws of a few outputs, some of which only one of them may show."""
    number = int(rng.integers(3, 6))
    rows = rng.dirichlet(np.ones(number), size=2) + 1e-3
    if extreme:
        rows[0, 0] = rows[1, -1] = 0.0
    return jaxgdp.FromPMFs(*(rows / rows.sum(1, keepdims=True)).tolist())


def _response(rng, noise):
    return jaxgdp.RandomizedResponse(1.0 / noise, int(rng.integers(2, 9)))


# by name: (generator, extreme, noise, number of uses, the same but few) -> (mechanism, uses)
KINDS = {
    "SubsampledGaussian": lambda g, x, s, n, few: (jaxgdp.SubsampledGaussian(s, _rate(g, x)), n),
    "Gaussian": lambda g, x, s, n, few: (jaxgdp.Gaussian(s * np.sqrt(n)), n),
    "Deterministic": lambda g, x, s, n, few: (jaxgdp.Deterministic(s * np.sqrt(few), few), 1),
    "Laplace": lambda g, x, s, n, few: (jaxgdp.Laplace(2.0 * s), few),
    "SubsampledLaplace": lambda g, x, s, n, few: (jaxgdp.SubsampledLaplace(s, _rate(g, x)), n),
    "DiscreteGaussian": lambda g, x, s, n, few: (
        jaxgdp.DiscreteGaussian(max(s, 0.3) * np.sqrt(few), int(g.integers(1, 4))), few,
    ),
    "DiscreteLaplace": lambda g, x, s, n, few: (jaxgdp.DiscreteLaplace(3.0 * s), few),
    "RandomizedResponse": lambda g, x, s, n, few: (_response(g, s), few),
    "PureDP": lambda g, x, s, n, few: (jaxgdp.PureDP(0.5 / s), few),
    "ApproximateDP": lambda g, x, s, n, few: (
        jaxgdp.ApproximateDP(0.5 / s, float(10.0 ** g.uniform(-14.0, -4.0))), few,
    ),
    "FromPMFs": lambda g, x, s, n, few: (_pmfs(g, x), min(few, 12)),
}  # fmt: skip


def regimes():
    """Every mechanism with every quantity and adjacency."""
    return list(itertools.product(KINDS, ASKED, ADJACENCIES))


def draw(seed: int, index: int, steps: float = 1e4):
    """(mechanism, quantity, adjacency, what it is asked at): the regimes in an order of the seed,
    one in four with extreme parameters, one in three composed with another mechanism."""
    every = regimes()
    shuffled = np.random.default_rng(seed).permutation(len(every))
    kind, quantity, adjacency = every[shuffled[index % len(every)]]
    rng = np.random.default_rng([seed, index])
    kinds = [kind] if rng.random() < 2.0 / 3.0 else [kind, str(rng.choice(list(KINDS)))]
    parts = []
    for each in kinds:
        extreme = bool(rng.random() < 0.25)
        number = 1 if rng.random() < 0.2 else int(10.0 ** rng.uniform(0.0, np.log10(steps)))
        parts.append(KINDS[each](rng, extreme, _noise(rng, extreme), number, min(number, 40)))
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
