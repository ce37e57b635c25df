"""Compare the brackets of one setting with its exact curve."""

from __future__ import annotations

import functools
from unittest import mock

import mpmath
import numpy as np
from mpmath import mpf

import jaxgdp
from jaxgdp.accounting.run import engine

ARGUMENT = {
    "mu": "fpr_floor",
    "regret": "fpr_floor",
    "epsilon": "delta",
    "delta": "epsilon",
    "tpr": "fpr",
    "beta": "fpr",
    "bayes_risk": "prior",
    "approximate_mu": "approximation",
}
LARGEST_LATTICE = 2**13  # a bracket has to hold on any lattice, and the small ones are quick
ROUNDING = mpf("1e-15")  # the last digit of a double is not what is looked for
SMALLER = ("beta", "bayes_risk")  # smaller on the curve of the less private


def failures(setting) -> list[str]:
    """What of a setting does not hold, one line each; empty if all holds."""
    small = functools.partial(engine.answer, max_size=LARGEST_LATTICE)
    few = mock.patch.object(engine, "_PIECES", (1, 8), create=True)
    with np.errstate(all="ignore"), mock.patch.object(engine, "answer", small), few:
        found = jaxgdp.measure(
            setting.mechanism,
            setting.quantities,
            adjacency=setting.adjacency,
            nested=False,
            **setting.at,
        )
    lines = []
    with mpmath.workdps(setting.digits):
        for name in setting.quantities:
            bracket = found.brackets[name]
            lower, upper = float(bracket.lower), float(bracket.upper)
            curves = (
                setting.curve
                if isinstance(setting.curve, tuple)
                else (setting.curve, setting.curve)
            )
            argument = [setting.at[ARGUMENT[name]]] if name in ARGUMENT else []
            exact = [getattr(curve, name)(*argument) for curve in curves]
            if any(value is None for value in exact):
                continue
            # what is certain of the truth
            least, most = exact[::-1] if name in SMALLER else exact
            room = mpf(setting.accuracy) + ROUNDING
            # (rates are sums and differences of numbers of order one)
            last = mpf(10) ** (10 - setting.digits)
            wrong = []
            if not lower <= most * (1 + room) + last:
                wrong.append("lower")
            if not upper >= least * (1 - room) - last:
                wrong.append("upper")
            if np.isnan(lower) or np.isnan(upper):
                wrong.append("nan")
            if wrong:
                at = f" at {ARGUMENT[name]}={argument[0]!r}" if argument else ""
                lines.append(
                    f"{name}{at}: [{lower!r}, {upper!r}] but {mpmath.nstr(least, 20)}"
                    + (f" .. {mpmath.nstr(most, 20)}" if most is not least else "")
                    + f" ({', '.join(wrong)} side)"
                )
    return lines
