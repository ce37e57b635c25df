"""``python -m tests.attack.nesting --number 20``: random DP-SGD at two tolerances; prints every
bracket that does not agree with its other.

A tight bracket lies inside a loose one where ``measure`` promises that, and overlaps it where each
is worked out on its own. Settings are of any kind, those that take minutes or that no lattice can
close among them."""

from __future__ import annotations

import argparse
import datetime
import sys

import numpy as np

import jaxgdp

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
TOLERANCES = (2e-2, 1e-4)
SLACK = 1e-9  # of brackets apart from each other: rounding at the end of a curve


def random_settings(number, seed):
    """σ, p and T of so many settings, each log-uniform; p = 1 now and then."""
    rng = np.random.default_rng(seed)
    sigma = np.exp(rng.uniform(np.log(0.3), np.log(200.0), number))
    p = np.exp(rng.uniform(np.log(1e-6), 0.0, number))
    p[rng.random(number) < 0.05] = 1.0
    steps = np.floor(np.exp(rng.uniform(0.0, np.log(1e6), number)))
    return sigma, p, steps


def two_answers(batch, nested=True):
    """What is found at both tolerances for every quantity."""
    # (where δ is 1e-8: the same ε for all would ask most of them for a δ of 1e-200)
    epsilon = jaxgdp.measure(batch, "epsilon", delta=1e-8, nested=False).brackets["epsilon"].upper
    return [
        jaxgdp.measure(batch, QUANTITIES, rtol=rtol, epsilon=epsilon, nested=nested)
        for rtol in TOLERANCES
    ]


def not_inside(coarse, fine) -> list[str]:
    """Quantities of which a tight bracket does not lie inside the loose one."""
    pairs = ((name, coarse.brackets[name], fine.brackets[name]) for name in QUANTITIES)
    return [
        n
        for n, a, b in pairs
        if not np.all((a.lower <= b.lower) & (b.lower <= b.upper) & (b.upper <= a.upper))
    ]


def apart(coarse, fine) -> list[str]:
    """Quantities of which both brackets have no number in common."""
    wrong = []
    for name in coarse.brackets:
        a, b = coarse.brackets[name], fine.brackets[name]
        slack = SLACK * np.maximum(a.upper, SLACK)
        if not np.all((a.lower <= b.upper + slack) & (b.lower <= a.upper + slack)):
            wrong.append(name)
    return wrong


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.attack.nesting", description=__doc__)
    parser.add_argument("--number", type=int, default=20, help="settings (default: 20)")
    parser.add_argument("--seed", type=int, default=None, help="default: today's date, as 20260131")
    parser.add_argument(
        "--first", type=int, default=0, help="number of the first setting, to look at one again"
    )
    asked = parser.parse_args(arguments)
    seed = asked.seed if asked.seed is not None else int(datetime.date.today().strftime("%Y%m%d"))
    failed = 0
    for index in range(asked.first, asked.first + asked.number):
        (sigma,), (p,), (steps,) = random_settings(1, [seed, index])
        batch = jaxgdp.dpsgd(sigma, p, steps)
        wrong = [f"{name} is not inside" for name in not_inside(*two_answers(batch))]
        wrong += [f"{name} apart" for name in apart(*two_answers(batch, nested=False))]
        if wrong:
            failed += 1
            print(
                f"--seed {seed} --first {index} --number 1\n  jaxgdp.dpsgd({sigma!r}, {p!r},"
                f" {steps!r})",
                flush=True,
            )
            print("\n".join(f"    {line}" for line in wrong), flush=True)
    print(f"seed {seed}: {failed} of {asked.number} settings failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
