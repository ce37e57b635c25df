"""Lower bounds on μ at equal numbers of scores, for Gaussian scores of shifts 0.5 to 4.

    python benchmarks/audits.py                  # some minutes of CPU
    python benchmarks/audits.py --quick
    python benchmarks/audits.py --interference   # canaries that disturb each other

Every procedure gets 1000 scores with and 1000 without the record (two samples), or 2000 canaries of
one run that do not interfere with each other. Shown are medians over seeds, at confidence 95 %.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import time

import numpy as np

from jaxgdp import audit, gdp

SHIFTS = (0.5, 1.0, 2.0, 3.0, 4.0)
GUESSES = (20, 60, 200, 600, 2000)


@functools.cache
def tight(*numbers):
    """The bound of the exact worst case; seconds for each different number of right guesses."""
    return float(audit.one_run_mu(*numbers, tight=True))


@functools.cache
def independent(*numbers):
    """The bound of independent canaries."""
    return float(audit.independent_run_mu(*numbers))


def bounds(shift, seed, number=1000):
    """Bounds of all procedures for one seed, by name."""
    rng = np.random.default_rng([seed, int(10 * shift)])
    member, nonmember = shift + rng.standard_normal(number), rng.standard_normal(number)
    included = rng.random(2 * number) < 0.5
    scores = shift * included + rng.standard_normal(2 * number)
    right = audit.correct_guesses(scores, included, GUESSES)
    one = dict(zip(GUESSES, audit.one_run_mus(2 * number, GUESSES, right), strict=True))
    of_epsilon = audit.one_run_epsilon(2 * number, 200, int(right[2]), 1e-5)
    return {
        "many runs, bands": float(audit.mu_lower_bound(member, nonmember)),
        "many runs, split": float(audit.mu_lower_bound(member, nonmember, method="split")),
        "many runs, at any time": float(audit.Sequential(shift).update(member, nonmember).mu_lower),
        "one run, 200 guesses": one[200],
        "one run, 200 guesses, tight": tight(2 * number, 200, int(right[2])),
        "one run, 600 guesses": one[600],
        "one run, best of five numbers": float(
            audit.one_run_mu_of_several(scores, included, GUESSES)
        ),
        "one run, independent canaries, 600 guesses": independent(2 * number, 600, int(right[3])),
        "one run, (ε, 1e-5) of 200 guesses": float(
            gdp.mu_from_epsilon_delta(epsilon=max(float(of_epsilon), 0.0), delta=1e-5)
        ),
    }


def interference(mu, dimensions, seed, number=1000):
    """(μ that an attacker sees of each canary, bound) for random unit vectors as canaries."""
    rng = np.random.default_rng([seed, dimensions])
    canaries = rng.standard_normal((number, dimensions)).astype(np.float32)
    canaries /= np.linalg.norm(canaries, axis=1, keepdims=True)
    included = rng.random(number) < 0.5
    output = (included - 0.5) @ canaries + rng.standard_normal(dimensions) / mu
    seen = mu / np.sqrt(1.0 + mu**2 * (number - 1) / (4.0 * dimensions))
    return seen, float(audit.one_run_mu_of_several(canaries @ output, included, GUESSES[:-1]))


def print_interference(seeds):
    """Print the table of canaries that disturb each other; returns its rows."""
    print("| true μ | dimensions | μ left of each canary | bound |\n|---|---|---|---|")
    rows = []
    for mu, dimensions in itertools.product((1.0, 4.0), (100, 1000, 10_000)):
        found = [interference(mu, dimensions, seed) for seed in range(seeds)]
        rows.append((mu, dimensions, found[0][0], float(np.median([b for _, b in found]))))
        print("| {:g} | {:,} | {:.2f} | {:.2f} |".format(*rows[-1]))
    return rows


def main(argv=None):
    """Print the table; returns medians by procedure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="3 seeds in place of 20")
    parser.add_argument("--interference", action="store_true", help="the table of interference")
    args = parser.parse_args(argv)
    start, seeds = time.process_time(), 3 if args.quick else 20
    if args.interference:
        return print_interference(seeds)
    found = {shift: [bounds(shift, seed) for seed in range(seeds)] for shift in SHIFTS}
    table = {
        name: [float(np.median([row[name] for row in found[shift]])) for shift in SHIFTS]
        for name in found[SHIFTS[0]][0]
    }
    print("| true μ | " + " | ".join(f"{shift:g}" for shift in SHIFTS) + " |")
    print("|---" * (len(SHIFTS) + 1) + "|")
    for name, values in table.items():
        print(f"| {name} | " + " | ".join(f"{value:.2f}" for value in values) + " |")
    print(f"\n{seeds} seeds, {time.process_time() - start:.0f} s of CPU")
    return table


if __name__ == "__main__":
    main()
