"""``python -P tests/attack/answers.py QUESTIONS ANSWERS``: answers of whichever jaxgdp is on the path to a file of questions.

Runs on its own, so that it can be run with an earlier checkout (see ``against``). Files hold one JSON value a line.
"""

from __future__ import annotations

import json
import sys
import time

import numpy

import jaxgdp


def answer(question):
    """Brackets by quantity, as pairs of numbers, and the CPU seconds they took; or why there are none."""
    start = time.process_time()
    try:
        mechanism = eval(question["mechanism"], {"jaxgdp": jaxgdp, "numpy": numpy})
        found = jaxgdp.measure(mechanism, tuple(question["quantities"]), **question["options"])
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}
    brackets = {name: [float(side) for side in bracket] for name, bracket in found.brackets.items()}
    return {"brackets": brackets, "seconds": time.process_time() - start}


def main(questions, answers) -> None:
    print(f"answering with {jaxgdp.__file__}", file=sys.stderr)
    numpy.seterr(all="ignore")
    with open(questions, encoding="utf-8") as asked, open(answers, "w", encoding="utf-8") as told:
        for line in asked:
            told.write(json.dumps(answer(json.loads(line))) + "\n")
            told.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
