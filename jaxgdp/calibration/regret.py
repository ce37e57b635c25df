"""Calibration of the regret, which does not fall steadily: a scan, then a search."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..targets import Regret
from .solver import Solved, Solver
from .status import EVERY, NONE

STEP = 1.1  # factor in noise between two values of the scan
_LEAST = 1e-2  # smallest noise of the scan, relative to where it starts
_TOGETHER = 8  # values of the scan asked at once


def solve(
    family: Any,
    target: Regret,
    tolerance: float,
    adjacency: str,
    progress: Any = None,
    evaluated: Any = None,
) -> Solved:
    """The last crossing: every noise above the answer met the target wherever it was evaluated.

    Δ ≤ ½·δ_μ(0) for every curve, and μ falls as noise grows, so beyond the noise that brings μ down
    to 2Φ⁻¹(½ + Δ*) every noise provably meets the target. From there the scan goes down in factors
    of ``STEP`` to the first value that does not, and the ordinary search closes in between. A
    violation between two neighbouring values of the scan is not found."""
    sure = Solver(family, target.surely(), 0.05, adjacency, None, evaluated).run()
    solver = Solver(family, target, tolerance, adjacency, progress, evaluated)
    rows = np.flatnonzero(sure.status != NONE)
    top = np.asarray(sure.value)
    solver.evaluations += sure.evaluations
    solver.iterations += sure.iterations
    done = 0
    while len(rows) and STEP**-done > _LEAST:
        factors = STEP ** -np.arange(done, done + _TOGETHER, dtype=float)
        owners = np.repeat(rows, _TOGETHER)
        values = (top[rows][:, None] * factors).reshape(-1)
        solver.evaluated.expect(2 * len(owners))
        own, status = solver.ask(owners, values)
        solver.evaluations[rows] += _TOGETHER
        solver.iterations[rows] += 1
        met = target.take(owners).meets(own).reshape(-1, _TOGETHER)
        gaps = solver.gaps(owners, own)
        u = solver.unknown.coordinate(values)
        # the first value, from the safe end, that does not meet the target; what lies above it does
        stop = np.where(met.all(axis=1), _TOGETHER, np.argmin(met, axis=1))
        place = np.arange(len(rows)) * _TOGETHER
        for side, at, has in (
            (solver.accepted, stop - 1, stop > 0),
            (solver.refused, stop, stop < _TOGETHER),
        ):
            k = (place + at)[has]
            side.keep(rows[has], values[k], u[k], gaps[k], (own.lower[k], own.upper[k]), status[k])
        rows = rows[stop == _TOGETHER]
        done += _TOGETHER
    endless = rows
    both = np.flatnonzero(solver.accepted.known() & solver.refused.known())
    solver.narrow(both, solver.progress)
    solver.sharpen()
    found = solver.result()
    found.status[endless] = EVERY
    return found
