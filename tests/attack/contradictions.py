"""``python -m tests.attack.contradictions --number 1000``: random questions; prints every one whose two sides exclude each other.

Both sides of a bracket are worked out on their own, so that each of the ways to be wrong by more than rounding shows here sooner or
later, with no exact answer needed. A question is answered by NumPy; ``--executor compiled`` has it answered by compiled programs.
"""

from __future__ import annotations

import argparse
import datetime
import os
import sys
import time

import numpy as np

import jaxgdp
from jaxgdp.bracket import Status

from .questions import built, question_of


def contradictions(asked) -> list[str]:
    """Quantities of a question whose bracket contradicts itself, or is none."""
    with np.errstate(all="ignore"):
        found = jaxgdp.measure(built(asked.mechanism), asked.quantities, nested=False, **asked.options())
    wrong = []
    for name, (lower, upper) in found.brackets.items():
        if not lower <= upper or np.any(found.status[name] == Status.CONTRADICTION):
            wrong.append(name)
    return wrong


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.attack.contradictions", description=__doc__)
    parser.add_argument("--number", type=int, default=1000, help="questions of up to nine brackets (default: 1000)")
    parser.add_argument("--seed", type=int, default=None, help="default: today's date, as 20260131")
    parser.add_argument("--first", type=int, default=0, help="number of the first question, to look at one again")
    parser.add_argument("--executor", choices=("eager", "compiled", "auto"), default="eager")
    parser.add_argument(
        "--rtol", type=float, nargs="+", default=(1e-2, 1e-3, 1e-4, 1e-5), help="accuracies to draw from"
    )
    asked = parser.parse_args(arguments)
    os.environ["JAXGDP_EXECUTOR"] = asked.executor
    seed = asked.seed if asked.seed is not None else int(datetime.date.today().strftime("%Y%m%d"))
    brackets = failed = 0
    start = told = time.process_time()
    for index in range(asked.first, asked.first + asked.number):
        question = question_of(seed, index, tuple(asked.rtol))
        wrong = contradictions(question)
        brackets += len(question.quantities)
        failed += len(wrong)
        if wrong:
            print(f"--seed {seed} --first {index} --number 1\n  {question}\n    {', '.join(wrong)}", flush=True)
        spent = time.process_time() - start
        if spent - told + start > 20.0:
            told = time.process_time()
            print(f"{brackets} brackets, {failed} contradictions, {spent / brackets:.3f} s each", file=sys.stderr)
    spent = time.process_time() - start
    print(f"seed {seed}: {failed} contradictions in {brackets} brackets, {spent / max(brackets, 1):.3f} s of CPU each")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
