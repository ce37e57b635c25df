"""``python -m tests.attack.narrow --number 2000 --seed 20260101``: brackets by 32 bits against
those by 64; fails where two have nothing in common, and prints how wide they are."""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np

import jaxgdp
from jaxgdp.accounting.run import executors
from jaxgdp.quantities import registry

QUANTITIES = ("mu", "epsilon", "regret")
BATCH = 100


def settings(generator, number: int) -> tuple[np.ndarray, ...]:
    """Noise multipliers, rates and numbers of steps: of every size, each 50th without sampling."""
    between = lambda low, high: np.exp(generator.uniform(np.log(low), np.log(high), number))
    rate = np.where(np.arange(number) % 50 == 49, 1.0, between(1e-4, 1.0))
    return between(0.6, 12.0), rate, np.round(between(1.0, 2e4))


def disjoint(one, other):
    """Which brackets of the same numbers have nothing in common."""
    return ~(np.maximum(one.lower, other.lower) <= np.minimum(one.upper, other.upper))


def width(name: str, bracket):
    """As promised: relative, but of a difference absolute."""
    scale = (
        np.ones_like(bracket.upper)
        if registry.named(name).absolute is not None
        else np.maximum(bracket.upper, 1e-300)
    )
    return np.where(bracket.upper > bracket.lower, (bracket.upper - bracket.lower) / scale, 0.0)


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.attack.narrow", description=__doc__)
    parser.add_argument("--number", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=20260101)
    parser.add_argument("--rtol", type=float, default=1e-2)
    parser.add_argument(
        "--numpy",
        action="store_true",
        help="what the host does by NumPy: next to nothing is compiled",
    )
    asked = parser.parse_args(arguments)
    executors.BY_NAME["float32"] = executors.Float32(
        executors.EAGER if asked.numpy else executors.COMPILED
    )
    by_64 = "eager" if asked.numpy else "compiled"
    generator, start, failed = np.random.default_rng(asked.seed), time.monotonic(), 0
    widths: dict[tuple[str, int], list] = {
        (name, bits): [] for name in QUANTITIES for bits in (64, 32)
    }
    unmet: dict[str, int] = dict.fromkeys(QUANTITIES, 0)
    for first in range(0, asked.number, BATCH):
        sigma, rate, steps = settings(generator, min(BATCH, asked.number - first))
        both = [
            jaxgdp.measure(
                jaxgdp.dpsgd(sigma, rate, steps),
                QUANTITIES,
                rtol=asked.rtol,
                nested=False,
                executor=who,
            )
            for who in (by_64, "float32")
        ]
        for name in QUANTITIES:
            one, other = (found.brackets[name] for found in both)
            wrong = np.flatnonzero(disjoint(one, other))
            failed += len(wrong)
            for i in wrong:
                print(
                    f"{name} of σ = {sigma[i]!r}, p = {rate[i]!r}, T = {steps[i]!r}: "
                    f"{one[0][i]!r} … {one[1][i]!r} by 64 bits, "
                    f"{other[0][i]!r} … {other[1][i]!r} by 32"
                )
            unmet[name] += int(np.sum(both[1].status[name] != 0))
            for bits, bracket in ((64, one), (32, other)):
                widths[name, bits].append(width(name, bracket))
        done = first + len(sigma)
        print(
            f"{done} settings, {failed} brackets disjoint, {time.monotonic() - start:.0f} s",
            file=sys.stderr,
        )
    print(
        f"seed {asked.seed}, rtol {asked.rtol:g}: {failed} of {3 * asked.number} brackets disjoint"
    )
    for (name, bits), found in widths.items():
        at = np.quantile(np.concatenate(found), [0.5, 0.9, 1.0])
        told = f", {unmet[name]} wider than asked and flagged" if bits == 32 else ""
        print(
            f"{name} by {bits} bits: width {at[0]:.1e} (median), {at[1]:.1e} (90 %), {at[2]:.1e}"
            f" (widest){told}"
        )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
