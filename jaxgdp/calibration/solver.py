"""The batched root search: every unfinished calibration advances in the accountant's same call.

A calibration keeps a value that meets its target and one that does not, and stops when they are one
tolerance step apart. The search runs on log-log axes, where the μ of the Gaussian curve that just
meets the target is nearly linear in the parameter: a saddle-point guess, one correction along its
slope, then secants through what is known, and halving when those stall. Near the end two values one
step apart are evaluated together, so that acceptance and rejection come from one call.

Goals that allow large losses need small noise, where an evaluation may take seconds. There every
evaluation begins with a loose ``rtol``, which often gives a narrow bracket anyway, and is repeated
only where neither side decides; brackets of one value are intersected, as each of them holds. Such
searches evaluate one value at a time until an end is near.

The range of the search follows the guess. Whole numbers are settled exactly: the next one is
evaluated as finely as it takes to tell it apart, up to ``_EXACT``."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import jax
import numpy as np
from scipy.special import ndtri

from ..bracket import Bracket
from ..measure import measure
from ..numerics.shapes import Array
from ..progress import Progress
from ..targets import EpsilonDelta, Target
from .families import NOISE_MULTIPLIER, SCALE
from .saddlepoint import approximate_epsilon, approximate_mu
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
_SLOPES, _MEASURED_SLOPES = (-12.0, -0.2), (-60.0, -0.2)
_NEAR = 0.05  # relative distance from the limit without noise
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
_LARGE_MU, _SMALL_NOISE = 5.0, 0.25  # goals and guesses of which evaluations begin loosely
_LOOSE = 0.03  # the rtol with which they begin
_WIDE = 0.1  # log of the sides' ratio from which on the safe side does not say where the root is
_FARTHEST = np.log(4.0)  # move of one round, where evaluations begin loosely
_EXACT = 1e6  # largest whole number that is settled exactly
_ENOUGH = 6  # rounds among wide brackets
_APART = 0.1  # rtol that tells n from n + 1, times n
_SHARPENINGS = 2  # after that
_REACH = np.log(1e6)  # how far from the guess noise is searched, as a logarithm


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

    def known(self, rows: np.ndarray | slice | int = slice(None)):
        return ~np.isnan(self.value[rows])


def _safe(own: Bracket, target: Target):
    """The safe side and the other one."""
    return own[::-1] if target.safe == "upper" else own


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
            counts evaluations. limit: the target's quantity without noise, where it is known.
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
        limit: Array | None = None,
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
        self.last_u, self.last_gap = np.full(number, np.nan), np.full(number, np.nan)
        self.limit = np.full(number, np.inf) if limit is None else limit
        self.rtol = float(np.clip(tolerance, 1e-8, 0.3))
        self.goal_mu = np.broadcast_to(target.equivalent_mu(target.goal), (number,))
        # (that of a goal and of its Gaussian curve are not the same for every target)
        self.gaussian_mu = np.broadcast_to(target.gaussian_mu(), (number,))
        self.large = np.array(self.gaussian_mu > _LARGE_MU)
        self.low, self.high = (
            np.full(number, end) for end in (self.unknown.low, self.unknown.high)
        )

    # what is asked

    def ask(self, rows: np.ndarray, values: np.ndarray):
        """The target's own quantity of the rows' mechanisms, and the status of its bracket."""
        self.evaluated(len(rows))
        loose = self.large[rows] & (self.rtol < _LOOSE)
        if not np.any(loose):
            return self.measured(rows, values, self.rtol)
        own = Bracket(np.full(len(rows), -np.inf), np.full(len(rows), np.inf))
        status = np.zeros(len(rows), np.int64)
        pending = ~loose
        for rtol, asked in ((_LOOSE, loose), (self.rtol, pending)):
            some = np.flatnonzero(asked)
            if len(some) == 0:
                continue
            found, status[some] = self.measured(rows[some], values[some], rtol)
            own.lower[some] = np.maximum(own.lower[some], found.lower)
            own.upper[some] = np.minimum(own.upper[some], found.upper)
            pending |= loose & self.undecided(rows, own)
        return own, status

    def undecided(self, rows: np.ndarray, own: Bracket):
        """Where neither side decides, and more than a tolerance step lies between them."""
        target = self.target.take(rows)
        sides = [target.equivalent_mu(side) for side in own]
        apart = np.abs(_log_ratio(*sides)) > self.step * np.abs(self.slope[rows])
        return apart & ~target.meets(own) & ~target.violates(own)

    def measured(self, rows: np.ndarray, values: np.ndarray, rtol: float):
        """One call of the accountant."""
        target = self.target.take(rows)
        mechanism = self.family.at(values, rows)
        asked = {"rtol": rtol, "adjacency": self.adjacency, "nested": False}
        found = measure(mechanism, (target.quantity,), **asked, **target.parameters())
        bracket = Bracket(*(np.asarray(side) for side in found.brackets[target.quantity]))
        return target.read(bracket), np.asarray(found.status[target.quantity])

    def gaps(self, rows: np.ndarray, own: Bracket):
        """log of the safe side's equivalent μ over the goal's: positive where it is not met.

        Where the bracket is wide it is that of the other side, if that breaks the target. Next to
        what a run without noise has, μ hardly moves, and the distance from that limit counts.
        """
        target = self.target.take(rows)
        goal = self.goal_mu[rows]
        gap, other = (_log_ratio(target.equivalent_mu(side), goal) for side in _safe(own, target))
        limit = self.limit[rows]
        with np.errstate(invalid="ignore"):
            room = np.abs(limit - target.goal)
            rooms = [np.abs(limit - side) for side in _safe(own, target)]
        if np.any(near := room < _NEAR * np.abs(limit)):
            gap = np.where(near, _log_ratio(room, rooms[0]), gap)
            other = np.where(near, _log_ratio(room, rooms[1]), other)
        return np.where((gap - other > _WIDE) & target.violates(own), np.maximum(other, 0.0), gap)

    # where to start

    def model(self, rows: np.ndarray, u: np.ndarray):
        """The same gap by the saddle-point approximation."""
        mechanism = self.family.at(self.unknown.value(u), rows)
        groups = jax.tree.map(np.asarray, mechanism.stacked())
        target = self.target.take(rows)
        mu = self.gaussian_mu[rows]
        fpr = np.broadcast_to(target.place(mu), (len(rows),))
        found = _log_ratio(approximate_mu(groups, ndtri(fpr), by_threshold=False), mu)
        if isinstance(target, EpsilonDelta) and np.any(self.large[rows]):
            log_delta = np.broadcast_to(np.log(target.delta), (len(rows),))
            equivalent = target.equivalent_mu(approximate_epsilon(groups, log_delta))
            found = np.where(self.large[rows], _log_ratio(equivalent, mu), found)
        return found

    def start(self):
        """u of the model's root, and the model's slope there."""
        best = self.family.guess(self.gaussian_mu)
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
                if self.large[row]:
                    move = float(np.clip(move, -_FARTHEST, _FARTHEST))
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
            if self.large[row]:
                share = 1
            lone = self.large[row] and (alone or not self.enclosed(row))
            number = max(1 if (alone and many) or lone else 2, min(share, len(_SPREAD)))
            offsets = self.step * np.asarray((0.0,) if number == 1 else _SPREAD[:number])
            ends = self.refused.u[row], self.accepted.u[row]
            found = np.clip(self.unknown.value(u[i] + offsets), self.low[row], self.high[row])
            if lone and error[i] <= self.step:
                found = self.neighbour(row)
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

    def enclosed(self, row: int):
        """Whether values on both sides of the root are known."""
        return bool(self.accepted.known(row) and self.refused.known(row))

    def neighbour(self, row: int):
        """One tolerance step beyond the side that is known."""
        if self.accepted.known(row):
            return self.unknown.less_private(self.accepted.value[row : row + 1], self.tolerance)
        return self.unknown.more_private(self.refused.value[row : row + 1], self.tolerance)

    def learn(self, owners: np.ndarray, values: np.ndarray):
        """Ask the accountant and keep what is nearest to the root on either side."""
        own, status = self.ask(owners, values)
        gaps = self.gaps(owners, own)
        met = self.target.take(owners).meets(own)
        u = self.unknown.coordinate(values)
        self.update_slopes(owners, u, gaps)
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

    def update_slopes(self, owners: np.ndarray, u: np.ndarray, gaps: np.ndarray):
        """Slopes by the last two values that are not neighbours."""
        for row, here, gap in zip(owners, u, gaps, strict=True):
            move = here - self.last_u[row]
            if abs(move) > 2.0 * self.step:
                self.slope[row] = np.clip((gap - self.last_gap[row]) / move, *_MEASURED_SLOPES)
            if not abs(move) <= 2.0 * self.step:
                self.last_u[row], self.last_gap[row] = here, gap

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
        with np.errstate(invalid="ignore"):
            if self.unknown.sign > 0:
                return self.accepted.value <= self.low, self.refused.value >= self.high
            return self.accepted.value >= self.high, self.refused.value <= self.low

    def run(self) -> Solved:
        """Search until every calibration is closed or at an end of its range."""
        rows = np.arange(self.number)
        self.evaluated.expect(2 * self.few * self.number)
        guess = self.start()
        if self.unknown in (NOISE_MULTIPLIER, SCALE):
            self.large |= self.unknown.value(guess) < _SMALL_NOISE
            self.low = np.maximum(self.low, self.unknown.value(guess - _REACH))
            self.high = np.minimum(self.high, self.unknown.value(guess + _REACH))
            near = np.abs(self.limit - self.target.goal) < _NEAR * np.abs(self.limit)
            self.slope[near] = -np.clip(0.25 * self.unknown.value(guess)[near] ** -2.0, 1.0, 60.0)
        self.learn(*self.probes(rows, guess, np.full(self.number, np.inf), first=True))
        self.iterations += 1
        self.narrow(rows, self.progress)
        self.sharpen()
        self.settle()
        return self.result()

    def narrow(self, rows: np.ndarray, progress: Any = lambda done: None):
        """Go on from what is known of some rows until they are closed or at an end."""
        for round_number in range(1, MAX_ROUNDS):
            every, none = self.ended()
            done = self.closed() | every | none
            if round_number >= _ENOUGH:
                # brackets that stay wide tell no more
                wide = (self.accepted.measured != 0) & (self.refused.measured != 0)
                done |= self.large & wide & self.accepted.known() & self.refused.known()
            done = done[rows]
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
        found = self.closed()
        rows = np.flatnonzero(found)
        if len(rows) == 0:
            return found
        target = self.target.take(rows)
        mus = [target.equivalent_mu(side[rows]) for side in a.own]
        open_by = np.abs(_log_ratio(mus[0], mus[1])) / np.abs(self.slope[rows])
        proved = target.violates(Bracket(*(side[rows] for side in r.own)))
        wide = (open_by > self.step) | (a.measured[rows] != 0)
        if self.unknown.whole:
            wide |= r.value[rows] - a.value[rows] == 1.0
        found[rows] = ~proved & wide
        return found

    def sharpen(self):
        """Ask loose rows again with narrower brackets; what was accepted stays so."""
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

    def settle(self):
        """Narrow whole numbers down to neighbours, with brackets that tell them apart."""
        a, r = self.accepted, self.refused
        with np.errstate(invalid="ignore"):
            small = self.unknown.whole & self.closed() & (a.value <= _EXACT)
            rows = np.flatnonzero(small & ((r.value - a.value > 1.0) | self.loose()))
        if len(rows) == 0:
            return
        self.tolerance, self.step = 1.0 / (2.0 * _EXACT), np.log1p(1.0 / (2.0 * _EXACT))
        self.rtol = float(np.clip(_APART / np.max(a.value[rows]), 1e-8, self.rtol))
        target = self.target.take(rows)
        unproved = ~target.violates(Bracket(*(side[rows] for side in r.own)))
        again, values = rows[unproved], r.value[rows][unproved]
        r.keep(again, np.nan, np.nan, np.nan, (np.nan, np.nan), 0)
        if len(again):
            self.learn(again, values)
        self.iterations[rows] += 1
        self.narrow(rows)
        for _ in range(_SHARPENINGS):
            self.sharpen()

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
