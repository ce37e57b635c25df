"""``python -m tests.attack.against CHECKOUT --number 500``: brackets of this tree next to those of
another checkout.

Both are certified, so they must overlap; and what is here should be nowhere much wider, unless it
is as accurate as was asked already, where it stops. Each tree answers in a process of its own, with
what it finds on its path. Prints every exception with the question that led to it. With ``--alike
32`` so many compositions of the same classes are asked as one batch: a tree that compiles a program
for each list of classes has fewer to compile."""

from __future__ import annotations

import argparse
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

from jaxgdp import Bracket
from jaxgdp.quantities import registry

from .questions import question_of, questions_alike

_HERE = pathlib.Path(__file__).resolve()
_SAME = 1e-11  # by which rounding may make two brackets miss each other
_WIDER = 1.1  # times as wide, and more, is reported
_NOTHING = 1e-12  # a relative width that does not matter


def judged(new, old, quantity, rtol: float) -> str | None:
    """What is wrong with a bracket next to an earlier one: "apart", "wider" (and wider than asked)
    or nothing.
    """
    (low, high), (old_low, old_high) = new, old
    finite = [abs(v) for v in (*new, *old) if math.isfinite(v)]
    slack = _SAME * max(finite, default=0.0)
    if not (low <= old_high + slack and old_low <= high + slack):
        return "apart"
    width, before = ((b - a) if b > a else 0.0 for a, b in (new, old))
    scale = max(finite, default=0.0)
    missed = quantity.excess(Bracket(*new), rtol) > 1.0
    return "wider" if missed and width > _WIDER * before + _NOTHING * scale else None


def answers_of(checkout: pathlib.Path, questions: str, folder: str, executor: str | None):
    """A running process that answers, and the file it answers into."""
    out = pathlib.Path(folder) / f"{abs(hash(checkout))}.jsonl"
    environment = (
        os.environ
        | {"PYTHONPATH": str(checkout)}
        | ({"JAXGDP_EXECUTOR": executor} if executor else {})
    )
    command = [
        sys.executable,
        "-P",
        "-W",
        "ignore",
        str(_HERE.parent / "answers.py"),
        questions,
        str(out),
    ]
    return subprocess.Popen(command, env=environment, cwd=folder), out


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.attack.against", description=__doc__)
    parser.add_argument("checkout", type=pathlib.Path, help="folder that holds the other jaxgdp")
    parser.add_argument("--number", type=int, default=500, help="compositions (default: 500)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument(
        "--quantities",
        type=int,
        default=9,
        help="how many of them to ask of each (default: all nine)",
    )
    parser.add_argument(
        "--rtol", type=float, nargs="+", default=(1e-3,), help="accuracies to draw from"
    )
    parser.add_argument(
        "--executor", choices=("eager", "compiled", "auto"), default="eager", help="of this tree"
    )
    parser.add_argument(
        "--alike", type=int, default=1, help="compositions of each list of classes (default: 1)"
    )
    asked = parser.parse_args(arguments)
    how = tuple(asked.rtol), asked.quantities
    batches = (
        [[question_of(asked.seed, i, *how)] for i in range(asked.first, asked.first + asked.number)]
        if asked.alike == 1
        else [
            questions_alike(asked.seed, i, asked.alike, *how)
            for i in range(asked.first, asked.first + -(-asked.number // asked.alike))
        ]
    )
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "questions.jsonl"
        lines = (
            json.dumps([
                {
                    "mechanism": q.mechanism, "quantities": q.quantities, "at": q.at,
                    "options": {"rtol": q.rtol, "adjacency": q.adjacency},
                }
                for q in batch
            ])
            for batch in batches
        )  # fmt: skip
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        here, there = _HERE.parents[2], asked.checkout.resolve()
        runs = [answers_of(where, str(path), folder, asked.executor) for where in (here, there)]
        codes = [process.wait() for process, _ in runs]
        new, old = (
            [each for line in out.read_text().splitlines() for each in json.loads(line)]
            for _, out in runs
        )
    if any(codes):
        print(f"answering failed: {codes}")
        return 2
    return report([question for batch in batches for question in batch], new, old)


def report(questions, new, old) -> int:
    """Prints what is wrong and a summary; 1 where two brackets exclude each other."""
    counts = {"apart": 0, "wider": 0, "compared": 0, "errors": 0}
    ratios = []
    for question, mine, other in zip(questions, new, old, strict=True):
        if "error" in mine or "error" in other:
            counts["errors"] += 1
            print(
                f"{question}\n    {mine.get('error', 'answered')} | before:"
                f" {other.get('error', 'answered')}"
            )
            continue
        for name in question.quantities:
            a, b = mine["brackets"][name], other["brackets"][name]
            wrong = judged(a, b, registry.named(name), question.rtol)
            counts["compared"] += 1
            if b[1] > b[0] and math.isfinite(b[1] - b[0]):
                ratios.append((a[1] - a[0]) / (b[1] - b[0]))
            if wrong:
                counts[wrong] += 1
                print(f"{wrong}: {name} {a} | before: {b}\n    {question}")
    ratios.sort()
    middle = ratios[len(ratios) // 2] if ratios else math.nan
    seconds = [
        sum(a.get("seconds", 0.0) for a in answers) / max(len(answers), 1) for answers in (new, old)
    ]
    print(
        f"{len(questions)} compositions, {counts['compared']} brackets: {counts['apart']} apart,"
        f" {counts['wider']} wider, {counts['errors']} errors; median width {middle:.3g} of that"
        f" before; {seconds[0]:.2f} s of CPU a composition, before {seconds[1]:.2f} s"
    )
    return 1 if counts["apart"] else 0


if __name__ == "__main__":
    sys.exit(main())
