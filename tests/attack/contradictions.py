"""``python -m tests.attack.contradictions --number 1000``: random questions; prints every one whose
two sides exclude each other.

Both sides of a bracket are worked out on their own, so that each of the ways to be wrong by more
than rounding shows here sooner or later, with no exact answer needed. A question is answered by
NumPy; ``--executor compiled`` has it answered by compiled programs. With ``--values 16`` the curve
of each question is asked too, at so many random values of everything that has any."""

from __future__ import annotations

import argparse
import datetime
import os
import sys
import time

import numpy as np

import jaxgdp
from jaxgdp.bracket import Status
from jaxgdp.quantities.registry import named

from .questions import built, question_of

# what a curve is asked at, from … to …, each of every size
VALUES = {
    "delta": (1e-14, 0.5),
    "epsilon": (1e-3, 20.0),
    "fpr": (1e-12, 0.9),
    "prior": (1e-4, 1.0 - 1e-4),
    "approximation": (1e-10, 0.1),
    "fpr_floor": (1e-14, 0.1),
}
SEARCHED = ("fpr_floor", "approximation")  # quantities asked at these search, each value anew


def wrong(found, status) -> bool:
    """Whether a bracket contradicts itself, or is none."""
    return bool(np.any(~(found.lower <= found.upper)) or np.any(status == Status.CONTRADICTION))


def contradictions(asked) -> list[str]:
    """Quantities of a question whose bracket is wrong."""
    with np.errstate(all="ignore"):
        found = jaxgdp.measure(
            built(asked.mechanism), asked.quantities, nested=False, **asked.options()
        )
    return [name for name, bracket in found.brackets.items() if wrong(bracket, found.status[name])]


def contradictions_of_curve(asked, generator, number: int) -> tuple[list[str], int]:
    """The same of a question's whole curve, asked at ``number`` values of each quantity: which are
    wrong, of how many.
    """
    bad, brackets = [], 0
    with np.errstate(all="ignore"):
        curve = jaxgdp.tradeoff(built(asked.mechanism), rtol=asked.rtol, adjacency=asked.adjacency)
        for name in asked.quantities:
            argument = named(name).argument
            if argument not in VALUES:
                continue
            few = 2 if argument in SEARCHED else number
            low, high = np.log(VALUES[argument])
            for value in (
                np.exp(generator.uniform(low, high, few))
                if few == 2
                else [np.exp(generator.uniform(low, high, few))]
            ):
                brackets += np.size(value)
                if wrong(*curve.answer(name, value)):
                    bad.append(f"{name} at {argument} {value}")
    return bad, brackets


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.attack.contradictions", description=__doc__
    )
    parser.add_argument(
        "--number", type=int, default=1000, help="questions of up to nine brackets (default: 1000)"
    )
    parser.add_argument("--seed", type=int, default=None, help="default: today's date, as 20260131")
    parser.add_argument(
        "--first", type=int, default=0, help="number of the first question, to look at one again"
    )
    parser.add_argument("--executor", choices=("eager", "compiled", "auto"), default="eager")
    parser.add_argument(
        "--rtol",
        type=float,
        nargs="+",
        default=(1e-2, 1e-3, 1e-4, 1e-5),
        help="accuracies to draw from",
    )
    parser.add_argument(
        "--values",
        type=int,
        default=0,
        help="values to ask the curve of each question at (default: no curve)",
    )
    asked = parser.parse_args(arguments)
    os.environ["JAXGDP_EXECUTOR"] = asked.executor
    seed = asked.seed if asked.seed is not None else int(datetime.date.today().strftime("%Y%m%d"))
    brackets = failed = 0
    start = told = time.process_time()
    for index in range(asked.first, asked.first + asked.number):
        question = question_of(seed, index, tuple(asked.rtol))
        bad = contradictions(question)
        brackets += len(question.quantities)
        if asked.values:
            more, number = contradictions_of_curve(
                question, np.random.default_rng([seed, index, 1]), asked.values
            )
            bad, brackets = bad + more, brackets + number
        failed += len(bad)
        if bad:
            print(
                f"--seed {seed} --first {index} --number 1\n  {question}\n    {', '.join(bad)}",
                flush=True,
            )
        spent = time.process_time() - start
        if spent - told + start > 20.0:
            told = time.process_time()
            print(
                f"{brackets} brackets, {failed} contradictions, {spent / brackets:.3f} s each",
                file=sys.stderr,
            )
    spent = time.process_time() - start
    print(
        f"seed {seed}: {failed} contradictions in {brackets} brackets,"
        f" {spent / max(brackets, 1):.3f} s of CPU each"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
