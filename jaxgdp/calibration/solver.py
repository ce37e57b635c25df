"""The batched root search: every unfinished calibration advances in the accountant's same call.

A calibration keeps a value that meets its target and one that does not, and stops when they are one
tolerance step apart. The search runs on log-log axes, where the μ of the Gaussian curve that just
meets the target is nearly linear in the parameter: a saddle-point guess, one correction along its
slope, then secants through what is known, and halving when those stall. Near the end two values one
step apart are evaluated together, so that acceptance and rejection come from one call."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import jax
import numpy as np
from scipy.special import ndtri

from ..bracket import Bracket
from ..measure import measure
from ..numerics.shapes import Array
from ..progress import Progress
from ..targets import Target
from .saddlepoint import approximate_mu
from .status import EVERY, NONE, OK, OPEN, WIDE

MAX_ROUNDS = 40
_FLOWING = (
    64  # larger batches are computed in full chunks, whose places are better filled than left empty
)
_FULL = 72
# values asked at once of a calibration: a guess and its neighbour; more cost as much each and save
# no round
_FEW = 2
_PATIENCE = 4  # rounds before halving takes turns with secants
_MODEL_ROUNDS = 10
_SHARPER = 8.0
_SLOPES = (-12.0, -0.2)
_SPREAD = (
    0.5,
    -0.5,
    2.0,
    -2.0,
    8.0,
    -8.0,
    32.0,
    -32.0,
)  # of the probes about an estimate, in tolerance steps
_TRUST = 0.25  # relative error left after a correction by the model's slope


class Solved(NamedTuple):
    """Arrays over calibrations: see :class:`jaxgdp.calibration.Calibration`."""

    value: Array
    achieved: Bracket
    rejected: Array
    rejected_achieved: Bracket
    status: Array
    iterations: Array
    evaluations: Array


class _Side:
    """The values nearest to the root on one side of it, and what was found there."""

    def __init__(self, number: int):
        self.value, self.u, self.gap = (np.full(number, np.nan) for _ in range(3))
        self.own = Bracket(np.full(number, np.nan), np.full(number, np.nan))
        self.measured = np.zeros(number, np.int64)

    def keep(self, rows: np.ndarray, value: Any, u: Any, gap: Any, own: Any, measured: Any) -> None:
        self.value[rows], self.u[rows], self.gap[rows], self.measured[rows] = (
            value,
            u,
            gap,
            measured,
        )
        self.own.lower[rows], self.own.upper[rows] = own

    def known(self, rows: np.ndarray | slice = slice(None)):
        return ~np.isnan(self.value[rows])


def _safe(own: Bracket, target: Target):
    return own.upper if target.safe == "upper" else own.lower


def _log_ratio(mu: Array, goal: Array) -> Array:
    """log(μ/goal), kept finite."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.clip(
            np.nan_to_num(np.log(mu) - np.log(goal), nan=0.0, posinf=30.0, neginf=-30.0),
            -30.0,
            30.0,
        )


class Solver:
    """One batch of calibrations; every array is flat.

    Args:
        family: :class:`DPSGD` or :class:`Scaled`, of the batch. target: flat, of the same length.
        tolerance: relative step. adjacency, progress: as for :func:`jaxgdp.calibrate`. evaluated:
            counts evaluations.
    """

    few: ClassVar[int] = _FEW

    def __init__(
        self,
        family: Any,
        target: Target,
        tolerance: float,
        adjacency: str,
        progress: Any = None,
        evaluated: Any = None,
    ):
        self.family, self.target, self.tolerance, self.adjacency = (
            family,
            target,
            tolerance,
            adjacency,
        )
        self.unknown = family.unknown
        self.progress = progress or (lambda done: None)
        self.evaluated = evaluated or Progress("calibrating")
        self.number = number = len(target.goal)
        self.step = np.log1p(tolerance)
        self.accepted, self.refused = _Side(number), _Side(number)
        self.iterations, self.evaluations = (np.zeros(number, np.int64) for _ in range(2))
        self.slope = np.full(number, -1.0)
        self.rtol = float(np.clip(tolerance, 1e-8, 0.3))

    # what is asked

    def ask(self, rows: np.ndarray, values: np.ndarray):
        """The target's own quantity of the rows' mechanisms, and the status of its bracket."""
        target = self.target.take(rows)
        mechanism = self.family.at(values, rows)
        asked = {"rtol": self.rtol, "adjacency": self.adjacency, "nested": False}
        found = measure(mechanism, (target.quantity,), **asked, **target.parameters())
        self.evaluated(len(rows))
        bracket = Bracket(*(np.asarray(side) for side in found.brackets[target.quantity]))
        return target.read(bracket), np.asarray(found.status[target.quantity])

    def gaps(self, rows: np.ndarray, own: Bracket):
        """log of the safe side's equivalent μ over the goal's: positive where it is not met."""
        target = self.target.take(rows)
        return _log_ratio(
            target.equivalent_mu(_safe(own, target)), target.equivalent_mu(target.goal)
        )

    # where to start

    def model(self, rows: np.ndarray, u: np.ndarray):
        """The same gap by the saddle-point approximation."""
        mechanism = self.family.at(self.unknown.value(u), rows)
        groups = jax.tree.map(np.asarray, mechanism.stacked())
        target = self.target.take(rows)
        mu = target.gaussian_mu()
        fpr = np.broadcast_to(target.place(mu), (len(rows),))
        return _log_ratio(approximate_mu(groups, ndtri(fpr), by_threshold=False), mu)

    def start(self):
        """u of the model's root, and the model's slope there."""
        best = self.family.guess(self.target.gaussian_mu())
        ends = sorted(
            (self.unknown.coordinate(self.unknown.low), self.unknown.coordinate(self.unknown.high))
        )
        rows, u = np.arange(self.number), best.copy()
        low, high = np.full(self.number, ends[0]), np.full(self.number, ends[1])
        gap = self.model(rows, u)
        for _ in range(_MODEL_ROUNDS):
            best[rows] = u
            rest = np.abs(gap) > 0.05 * self.step
            rows, u, gap = rows[rest], u[rest], gap[rest]
            if len(rows) == 0:
                break
            low[rows], high[rows] = (
                np.where(gap > 0.0, u, low[rows]),
                np.where(gap > 0.0, high[rows], u),
            )
            new = u - np.clip(gap / self.slope[rows], -4.0, 4.0)
            new = np.where(
                (new <= low[rows]) | (new >= high[rows]), 0.5 * (low[rows] + high[rows]), new
            )
            after = self.model(rows, new)
            far = np.abs(new - u) > 1e-6
            slope = np.where(far, (after - gap) / np.where(far, new - u, 1.0), self.slope[rows])
            self.slope[rows] = np.clip(slope, *_SLOPES)
            u, gap = new, after
        return best

    # one round

    def estimate(self, rows: np.ndarray, round_number: int):
        """The expected root of each row, and how far from there the root may be."""
        a, r = self.accepted, self.refused
        u, error = np.empty(len(rows)), np.empty(len(rows))
        has_a, has_r = a.known(rows), r.known(rows)
        both = has_a & has_r
        for i, row in enumerate(rows):
            if both[i]:
                width = a.u[row] - r.u[row]
                share = r.gap[row] / max(r.gap[row] - a.gap[row], 1e-300)
                share = min(max(share, 0.02), 0.98)
                if round_number >= _PATIENCE and round_number % 2 == 0:
                    share = 0.5
                u[i], error[i] = r.u[row] + share * width, 0.1 * width
            else:
                side = a if has_a[i] else r
                move = -side.gap[row] / self.slope[row] * 1.5 ** max(round_number - 3, 0)
                least = self.step * 2.0 ** max(round_number - 2, 0)
                # towards the other side at least a little
                move = min(move, -least) if has_a[i] else max(move, least)
                u[i], error[i] = side.u[row] + move, _TRUST * abs(move)
        return u, error

    def probes(self, rows: np.ndarray, u: np.ndarray, error: np.ndarray, first: bool):
        """Values to evaluate: (row of each, value of each)."""
        many = self.number > _FLOWING
        share = _FULL // max(len(rows), 1) if many else self.few // max(len(rows), 1)
        owners, values = [], []
        for i, row in enumerate(rows):
            alone = first or error[i] > self.step
            number = max(1 if alone and many else 2, min(share, len(_SPREAD)))
            offsets = self.step * np.asarray((0.0,) if number == 1 else _SPREAD[:number])
            ends = self.refused.u[row], self.accepted.u[row]
            found = self.unknown.value(u[i] + offsets)
            if number > 1:
                found[1] = self.unknown.less_private(found[0], self.tolerance)
            at = self.unknown.coordinate(found)
            inside = ~((at <= ends[0]) | (at >= ends[1]))
            found = np.unique(found[inside])
            if len(found) == 0:
                found = np.unique(self.unknown.value(np.array([0.5 * (ends[0] + ends[1])])))
            owners.append(np.full(len(found), row))
            values.append(found)
        return np.concatenate(owners), np.concatenate(values)

    def learn(self, owners: np.ndarray, values: np.ndarray):
        """Ask the accountant and keep what is nearest to the root on either side."""
        own, status = self.ask(owners, values)
        gaps = self.gaps(owners, own)
        met = self.target.take(owners).meets(own)
        u = self.unknown.coordinate(values)
        for side, mine, nearest in ((self.accepted, met, -1.0), (self.refused, ~met, 1.0)):
            # the last one written wins: the nearest to the root
            order = np.flatnonzero(mine)
            order = order[np.argsort(nearest * u[order], kind="stable")]
            rows = owners[order]
            with np.errstate(invalid="ignore"):
                better = ~(nearest * u[order] <= nearest * side.u[rows])
            order, rows = order[better], rows[better]
            side.keep(
                rows,
                values[order],
                u[order],
                gaps[order],
                (own.lower[order], own.upper[order]),
                status[order],
            )
        np.add.at(self.evaluations, owners, 1)

    def closed(self):
        """Whether accepted and refused values are one tolerance step apart, or less."""
        a, r = self.accepted, self.refused
        known = a.known() & r.known()
        limit = self.unknown.less_private(np.where(known, a.value, 1.0), self.tolerance)
        with np.errstate(invalid="ignore"):
            if self.unknown.sign > 0:
                return known & (r.value >= limit * (1.0 - 1e-12))
            return known & (r.value <= limit * (1.0 + 1e-12))

    def ended(self):
        """Rows whose whole range meets the target, and rows none of whose range does."""
        least, most = self.unknown.least_private, self.unknown.most_private
        return self.accepted.value == least, self.refused.value == most

    def run(self) -> Solved:
        """Search until every calibration is closed or at an end of its range."""
        rows = np.arange(self.number)
        self.evaluated.expect(2 * self.few * self.number)
        self.learn(*self.probes(rows, self.start(), np.full(self.number, np.inf), first=True))
        self.iterations += 1
        self.narrow(rows, self.progress)
        self.sharpen()
        return self.result()

    def narrow(self, rows: np.ndarray, progress: Any = lambda done: None):
        """Go on from what is known of some rows until they are closed or at an end."""
        for round_number in range(1, MAX_ROUNDS):
            every, none = self.ended()
            done = (self.closed() | every | none)[rows]
            progress(int(done.sum()))
            rows = rows[~done]
            if len(rows) == 0:
                break
            self.evaluated.expect(self.few * len(rows))
            u, error = self.estimate(rows, round_number)
            self.learn(*self.probes(rows, u, error, first=False))
            self.iterations[rows] += 1

    def loose(self):
        """Closed rows whose bracket, as wide as it is, leaves more than a tolerance step open."""
        a, r = self.accepted, self.refused
        target = self.target
        mus = [target.equivalent_mu(side) for side in a.own]
        open_by = np.abs(_log_ratio(mus[0], mus[1])) / np.abs(self.slope)
        return self.closed() & ~target.violates(r.own) & ((open_by > self.step) | (a.measured != 0))

    def sharpen(self):
        """Ask loose rows again with narrower brackets; what was accepted stays so, what was refused
        may be accepted now.
        """
        rows = np.flatnonzero(self.loose())
        if len(rows) == 0:
            return
        self.rtol = max(self.rtol / _SHARPER, 1e-8)
        kept = self.accepted.value[rows]
        for side in (self.accepted, self.refused):
            side.keep(rows, np.nan, np.nan, np.nan, (np.nan, np.nan), 0)
        self.learn(rows, kept)
        self.iterations[rows] += 1
        self.narrow(rows)

    def result(self) -> Solved:
        """The results, with the status of each."""
        a, r = self.accepted, self.refused
        every, none = self.ended()
        status = np.full(self.number, OPEN)
        status[self.closed()] = OK
        status[self.loose()] = WIDE
        status[every] = EVERY
        status[~a.known()] = NONE
        return Solved(a.value, a.own, r.value, r.own, status, self.iterations, self.evaluations)
