"""``python -P tests/attack/answers.py QUESTIONS ANSWERS``: answers of whichever jaxgdp is on the
path to a file of questions.

Runs on its own, so that it can be run with an earlier checkout (see ``against``). Files hold one
JSON value a line: a list of questions that are asked as one batch; its answer is a list too."""

from __future__ import annotations

import json
import sys
import time

import jax
import numpy

import jaxgdp


def answer(questions):
    """Brackets by quantity, as pairs of numbers, of each question, and the CPU seconds they took;
    or why there are none.
    """
    start = time.process_time()
    first = questions[0]
    try:
        mechanisms = [
            eval(each["mechanism"], {"jaxgdp": jaxgdp, "numpy": numpy}) for each in questions
        ]
        batch = jax.tree.map(lambda *leaves: numpy.stack(leaves), *mechanisms)
        at = {name: numpy.array([each["at"][name] for each in questions]) for name in first["at"]}
        found = jaxgdp.measure(batch, tuple(first["quantities"]), **first["options"], **at)
    except Exception as error:
        return [{"error": f"{type(error).__name__}: {error}"}] * len(questions)
    seconds = (time.process_time() - start) / len(questions)
    sides = {
        name: [numpy.asarray(side) for side in bracket] for name, bracket in found.brackets.items()
    }
    return [
        {
            "brackets": {
                name: [float(low[i]), float(high[i])] for name, (low, high) in sides.items()
            },
            "seconds": seconds,
        }
        for i in range(len(questions))
    ]


def main(questions, answers) -> None:
    print(f"answering with {jaxgdp.__file__}", file=sys.stderr)
    numpy.seterr(all="ignore")
    with open(questions, encoding="utf-8") as asked, open(answers, "w", encoding="utf-8") as told:
        for line in asked:
            told.write(json.dumps(answer(json.loads(line))) + "\n")
            told.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
