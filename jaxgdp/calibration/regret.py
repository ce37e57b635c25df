"""Calibration of the regret, which does not fall steadily: a scan, then a search."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..adjacency import Adjacency
from ..measure import measure
from ..numerics.shapes import Array
from ..targets import Regret
from .families import NOISE_MULTIPLIER
from .solver import Solved, Solver
from .status import EVERY, NONE

STEP = 1.1  # factor in noise between two values of the scan
_COARSE = 4  # steps at once where the regret is far below the goal
_FAR = 0.25  # of the goal
_REVEALED = 0.1  # σ at which one use tells a sampled record from any other
_LEAST = 1e-4  # smallest scale of the scan, relative to where it starts
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
    of ``STEP``, or four of them at once where the regret is below a quarter of the goal, to the
    first value that does not, and the ordinary search closes in between. A violation between two
    neighbouring values of the scan is not found.

    Both curves of a regret lie between 0 and the mechanism's own, f, so that Δ is at most the point
    x = f(x). For both orders together that is (1 − η)/2, and η grows as noise falls. Where that is
    at most Δ*, every smaller noise provably meets the target, too, and the scan ends."""
    sure = Solver(family, target.surely(), 0.05, adjacency, None, evaluated).run()
    solver = Solver(family, target, tolerance, adjacency, progress, evaluated)
    rows = np.flatnonzero(sure.status != NONE)
    at = np.asarray(sure.value).copy()
    end = _last(solver, at)
    solver.evaluations += sure.evaluations
    solver.iterations += sure.iterations
    factor = np.full(len(at), STEP)
    while len(rows):
        regret = _scan(solver, rows, at, factor)
        crossed = solver.refused.known(rows)
        calm = regret < _FAR * np.broadcast_to(target.goal, at.shape)[rows]
        rows = rows[~crossed]
        factor[rows] = np.where(calm[~crossed], STEP**_COARSE, STEP)
        rows = rows[at[rows] > end[rows]]
        if len(rows):
            rows = rows[~_settled(solver, rows)]
    both = np.flatnonzero(solver.accepted.known() & solver.refused.known())
    solver.narrow(both, solver.progress)
    solver.sharpen()
    found = solver.result()
    found.status[(sure.status != NONE) & ~solver.refused.known()] = EVERY
    return found


def _last(solver: Solver, top: Array) -> Array:
    """The smallest noise of each scan."""
    if solver.unknown is NOISE_MULTIPLIER:
        return np.minimum(_REVEALED, 0.5 * top)
    return _LEAST * top


def _scan(solver: Solver, rows: Array, at: Array, factor: Array) -> Array:
    """Ask the next values of each row, and move on; the largest regret of each that was found."""
    powers = np.arange(_TOGETHER, dtype=float)
    values = (at[rows][:, None] * factor[rows][:, None] ** -powers).reshape(-1)
    owners = np.repeat(rows, _TOGETHER)
    solver.evaluated.expect(2 * len(owners))
    own, status = solver.ask(owners, np.asarray(values))
    solver.evaluations[rows] += _TOGETHER
    solver.iterations[rows] += 1
    met = solver.target.take(owners).meets(own).reshape(-1, _TOGETHER)
    gaps, u = solver.gaps(owners, own), solver.unknown.coordinate(values)
    # the first value, from the safe end, that does not meet the target; what lies above it does
    stop = np.where(met.all(axis=1), _TOGETHER, np.argmin(met, axis=1))
    place = np.arange(len(rows)) * _TOGETHER
    for side, which, has in (
        (solver.accepted, stop - 1, stop > 0),
        (solver.refused, stop, stop < _TOGETHER),
    ):
        k = (place + which)[has]
        side.keep(
            np.asarray(rows)[has], values[k], u[k], gaps[k], (own.lower[k], own.upper[k]), status[k]
        )
    at[rows] = at[rows] * factor[rows] ** -float(_TOGETHER)
    return np.max(own.upper.reshape(-1, _TOGETHER), axis=1)


def _settled(solver: Solver, rows: Array) -> Array:
    """Whether every noise below the last accepted one provably meets the target."""
    if not Adjacency(solver.adjacency).symmetric:
        return np.zeros(len(rows), bool)
    mechanism = solver.family.at(solver.accepted.value[rows], rows)
    asked = {"rtol": 0.05, "adjacency": solver.adjacency, "nested": False}
    advantage = np.asarray(measure(mechanism, ("advantage",), **asked).brackets["advantage"].lower)
    goal = np.broadcast_to(solver.target.goal, (solver.number,))[rows]
    return 0.5 * (1.0 - advantage) * (1.0 + 1e-12) <= goal


__all__ = ["STEP", "solve"]
