"""Laws of the sums S = Σ log(1 + ρV) of a run whose record is hardly ever sampled, from above and
from below: sums of products of positive numbers, so that every mass has relative accuracy."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from scipy.special import erfcx, ndtr

from ....mechanisms.random_allocation import dyadic_sum
from ....mechanisms.random_allocation.dyadic_sum import difference
from ....numerics.errors import NORMAL_TAIL, SELDOM, UNIT
from ....numerics.shapes import Array, Float
from .layout import FULL, Focus, Plan, Run
from .many_steps import Roundings

_GAUSS = np.polynomial.legendre.leggauss(12)
_NODES = np.concatenate([0.25 + 0.25 * _GAUSS[0], 0.75 + 0.25 * _GAUSS[0]])  # on (0, 1)
_WEIGHTS = np.tile(0.25 * _GAUSS[1], 2) / math.sqrt(2.0 * math.pi)
_SPLIT = 2.0**27 + 1.0  # times a double, of which it takes half of the digits
_STEEPEST = 10.0  # how far the log of an integrand may move in a cell
_TOGETHER = 2**13  # cells whose integrands are taken at once
_LOG_UNITS, _NODE_UNITS = SELDOM
_MEAN, _MOST_OFF = 1.01, 1e-3  # times a mean over masses that are off by at most so much
_DROPPED = 1e-302  # Q-mass of a point that is not worth keeping
_SAME_LABEL = 1e-301  # mass given the record of labels far up that are one label
FAINT = 1e-302  # share of all runs with the record that have it too often to be counted
# products and sums beside the products that are counted, and how often all of them count at most
_OTHERS, _COPIES = 1e8, 4.0


class Law(NamedTuple):
    """Of a sum: logs of masses at its points, and bounds on what is off.

    Attributes:
        s: values of the sum.
        log_p: log P-masses.
        log_m: logs of E(e^S − 1) there, which is Q-mass given the record but for a factor.
        log_p_minus: log of the P-mass at −∞.
        log_m_plus: log of what is at +∞.
        error: bound on the relative error of masses that both laws share.
        near: bound on that of the ratio of both.
        most_off: bound on what ``near`` makes of any sum of masses given the record.
        tally: products that the sums took.
        lost: bound on what all products that are no doubles are off by, of the null's mass, and,
            times (1 − p)^−T, of what is carried of the record's.
    """

    s: Float[Array, " points"]
    log_p: Float[Array, " points"]
    log_m: Float[Array, " points"]
    log_p_minus: float
    log_m_plus: float
    error: float
    near: float
    most_off: float
    tally: dyadic_sum.Tally
    lost: float


def _flushed() -> bool:
    """Whether what is smaller than the least double with all digits is made 0."""
    return float(np.multiply(np.finfo(float).tiny, 0.25)) == 0.0


def _lost(run: Run, tally: dyadic_sum.Tally) -> float:
    """What products that are no doubles are off by, in all: each by a least double, or by the least
    one with all digits where what is smaller is made 0.

    Method: docs/method/seldom.md#seldom-least
    """
    info = np.finfo(float)
    least = float(info.tiny if _flushed() else info.smallest_subnormal)
    return _COPIES * run.steps * (tally.usual + tally.finer + _OTHERS) * least


def _apart(run: Run, error: float, each: float) -> tuple[float, float, float]:
    """Errors of a law of which each mass is off by ``error`` and, given the record, by
    (1 ± each)^J beside that, J steps of which have it: of masses, relative, of those given the
    record beside that, and of any sum of these, E((1 + each)^J − 1) given J ≥ 1.

    Method: docs/method/seldom.md#seldom-off
    """
    near = each * most_jumps(run)
    if max(error, near) > _MOST_OFF:
        return error, near, math.inf
    mean = math.expm1(run.steps * math.log1p(run.p * each)) / -math.expm1(-run.log_never)
    return error, near, _MEAN * mean


class _Cells(NamedTuple):
    """Cells between neighbouring points, from the first to the last between which all are narrow.

    Attributes:
        first, last: index of the points.
        z: the points, shape (cells + 1,).
        width: of each cell.
        steepest: how far the log of an integrand moves in a cell, at most.

    Method: docs/method/seldom.md#seldom-digits
    """

    first: int
    last: int
    z: Float[Array, " ends"]
    width: Float[Array, " cells"]
    steepest: float

    @property
    def units(self) -> float:
        """Bound on the relative error of a mass, in units."""
        return _LOG_UNITS * 2.0 * self.steepest + _NODE_UNITS

    @property
    def node(self) -> Float[Array, "cells nodes"]:
        """Where integrands are taken."""
        return self.z[:-1, None] + self.width[:, None] * _NODES

    def parts(self) -> Iterator[tuple[slice, _Cells]]:
        """So many of them at a time, and which ones: their integrands at all nodes are the largest
        arrays there are.
        """
        for start in range(0, max(len(self.width), 1), _TOGETHER):
            some = slice(start, min(start + _TOGETHER, len(self.width)))
            z = self.z[some.start : some.stop + 1]
            yield some, self._replace(z=z, width=self.width[some])

    def density(
        self, x: Float[Array, " cells"] | float = 0.0, moved: float = 0.0
    ) -> Float[Array, "cells nodes"]:
        """e^{x − (z − moved)²/2} times the weights, at the nodes: what is large in the exponent is
        that of a cell's lower end, exact but for what is small.
        """
        part = self.width[:, None] * _NODES
        start, rest = difference(self.z[:-1], moved)
        within = part * (start[:, None] + 0.5 * part)
        return _WEIGHTS * self.width[:, None] * (_normal(start, rest, x)[:, None] * np.exp(-within))


def _normal(z: Array, rest: Array | float = 0.0, x: Array | float = 0.0) -> Array:
    """e^{x − (z + rest)²/2}, ``rest`` being far smaller: the square of half of z's digits is exact,
    and so are differences.

    Method: docs/method/seldom.md#seldom-digits
    """
    wide = _SPLIT * z
    high = wide - (wide - z)
    square = 0.5 * high * high
    exponent, lost = difference(np.asarray(x, float), square)
    low = (z - high) + rest
    return np.exp(exponent) * np.exp(lost - low * (high + 0.5 * low))


def _tail(z: Array | float, moved: float = 0.0) -> float:
    """Pr[N > z − moved], with all digits however small it is."""
    start, rest = difference(np.asarray(z, float), moved)
    if start < 0.0:
        return float(ndtr(-start))
    return float(0.5 * erfcx(start / math.sqrt(2.0)) * _normal(start, rest))


def _cells(run: Run, z: Float[Array, " points"]) -> _Cells:
    """The cells between points as far as they are narrow."""
    width = np.diff(z)
    largest = np.maximum(np.abs(z[1:]), np.abs(z[:-1])) + run.tau
    moves = width * largest
    steep = moves > _STEEPEST
    below, above = np.flatnonzero(steep & (z[:-1] < 0.0)), np.flatnonzero(steep & (z[:-1] >= 0.0))
    first = int(below[-1]) + 1 if len(below) else 0
    last = int(above[0]) if len(above) else len(z) - 1
    most = float(np.max(moves[first:last], initial=0.0))
    return _Cells(first, last, z[first : last + 1], width[first:last], most)


def _sums(cells: _Cells, of_part: Callable[[slice, _Cells], tuple[Array, ...]]) -> list[Array]:
    """Sums over the nodes of each cell of what ``of_part`` gives for some of them."""
    columns = [
        [np.sum(terms, axis=1) for terms in of_part(some, part)] for some, part in cells.parts()
    ]
    return [np.concatenate(column) for column in zip(*columns, strict=True)]


def most_jumps(run: Run) -> int:
    """How often the record is sampled at most, but for a faint share of all runs in which it is
    sampled at all: Pr[J > j] ≤ (Tp)^{j+1}/(j + 1)!, and Pr[J ≥ 1] ≥ Tp·e^{−Tp}.

    Method: docs/method/seldom.md#seldom-above
    """
    mean, j, log_rest = run.p * run.steps, 0, 0.0
    while log_rest + mean > math.log(FAINT) - 1.0 and j < run.steps:
        j += 1
        log_rest += math.log(mean / (j + 1.0))
    return max(j, 1)


class _Above(NamedTuple):
    law: dyadic_sum.Law
    minus: float
    plus: float
    terms: int = 1


def dominating(run: Run, finer: float = 1.0, faint: float = 0.0, focus: Focus | None = None) -> Law:
    """From above: mass of V, and of every sum, moved apart with both masses kept.

    Args:
        run, finer, faint, focus: as for ``both_sides``.

    Method: docs/method/seldom.md#seldom-above
    Method: docs/method/seldom.md#seldom-cancel
    """
    plan = Plan.of(run, finer, faint, focus)
    layout, (x, z) = plan.layout(1), plan.points()
    cells = _cells(run, z)
    one, x = _one_above(run, layout, cells, x[cells.first : cells.last + 1])
    roundings = Roundings(run.steps, run.p, run.log_never, one.law.error)
    tally = dyadic_sum.Tally()

    def join(a: _Above, b: _Above, terms: int) -> _Above:
        found = _join(plan, a, b, terms, tally)
        roundings.add(terms, (a.law.error, b.law.error), found.law.error, a is b)
        return found

    total = dyadic_sum.by_parts(one, run.steps, join)
    s, (q,) = total.law.flat()
    minus, plus, whole = total.minus, total.plus, math.fsum(q)
    # (where the sum is 0 there is no mass given the record)
    some = s > 0.0
    minus += float(np.sum(q[~some]))
    s, q = s[some], q[some]
    logs = float(np.max(x)) + abs(run.log_odds) + run.tau * (40.0 + run.tau)
    each = (_LOG_UNITS * logs + _NODE_UNITS) * UNIT
    # (points are off by ``each``, and with them the mass of runs with the record)
    least = _lost(run, tally)
    lost = plus / whole + run.steps * math.exp(run.log_odds) * each + least
    errors = _apart(run, roundings.error(math.log(whole), lost, total.law.error), each)
    faint = FAINT * math.expm1(run.log_never) + least * math.exp(run.log_never)
    with np.errstate(divide="ignore"):
        log_q = np.log(q)
        room = (1.0 + 1e-9) * (1.0 + total.law.error)
        ends = min(np.log(minus * room + least), 0.0), np.log(plus * room + faint)
    ends = map(float, ends)
    return Law(s, log_q - s, log_q + np.log(-np.expm1(-s)), *ends, *errors, tally, least)


def _one_above(
    run: Run, layout: dyadic_sum.Layout, cells: _Cells, x: Array
) -> tuple[_Above, Array]:
    """One use from above, and its points: ``x`` at the ends of cells, and 0 where that is one."""
    z, odds = cells.z, math.exp(run.log_odds)

    def of_ends(some: slice, those: _Cells) -> tuple[Array, Array]:
        """Q-masses at a cell's ends: those of P times e^x."""
        width = those.width
        gap = -np.expm1(-width * run.tau)[:, None]
        part, rest = width[:, None] * _NODES, width[:, None] * (1.0 - _NODES)
        down = those.density(x[:-1][some]) * -np.expm1(-rest * run.tau) / gap
        up = those.density(x[1:][some]) * -np.expm1(-part * run.tau)
        return down, up * np.exp(-rest * run.tau) / gap

    down, up = _sums(cells, of_ends)
    q = np.zeros(len(x))
    q[:-1] += down
    q[1:] += up
    units = cells.units
    # what lies above the points goes to both infinities, and below the first one to it and 0, where
    # that is a point
    low, below = _tail(-z[0]), odds * _tail(-z[0], -run.tau)
    minus = _tail(z[-1])
    plus = minus + odds * _tail(z[-1], run.tau)
    share = below / math.expm1(x[0])
    if layout.centre == 0.0 and share < low:
        q[0] += share * math.exp(x[0])
        x, q = np.append(0.0, x), np.append(low - share, q)
        units += NORMAL_TAIL * (1.0 + low / (low - share))
    else:
        # (its Q-mass at the first point, and what P has too much at no Q-mass at all)
        q[0] += low + below
        minus += low * -math.expm1(-x[0])
        units += NORMAL_TAIL * (low + below) / q[0]
    start = dyadic_sum.spread(layout, np.asarray(x), q[None], units * UNIT, 0.0)
    return _Above(start, minus, plus), x


def _join(plan: Plan, a: _Above, b: _Above, terms: int, tally: dyadic_sum.Tally) -> _Above:
    s, masses, error, _ = dyadic_sum.add(a.law, b.law, tally=tally)
    q = masses[0]
    keep = (q > max(_DROPPED, plan.dropped(terms))) & (s >= 0.0)
    gone = ~keep
    minus = a.minus + b.minus + float(np.sum(q[gone] * np.exp(-s[gone])))
    # (the other terms have (1 − p)^{−n} in all)
    each = plan.run.log_never / plan.run.steps
    plus = a.plus * math.exp(each * b.terms) + b.plus * math.exp(each * a.terms)
    plus += float(np.sum(q[gone]))
    law = dyadic_sum.spread(plan.layout(terms), s[keep], q[None, keep], error, 0.0)
    return _Above(law, minus, plus, terms)


class _Below(NamedTuple):
    law: dyadic_sum.Law
    terms: int = 1


def _one_label(
    s: np.ndarray, masses: np.ndarray, some: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Labels, some of which become the last one of these, with what they have in all, rounded once
    (``math.fsum``).

    Method: docs/method/seldom.md#seldom-below
    """
    last, others = some[-1], some[:-1]
    masses[:, last] = [math.fsum(mass[some]) for mass in masses]
    return np.delete(s, others), np.delete(masses, others, axis=1)


def attack(run: Run, finer: float = 1.0, faint: float = 0.0, focus: Focus | None = None) -> Law:
    """From below: rounded log(1 + ρV) are added up, a test like any other.

    Args:
        run, finer, faint, focus: as for ``both_sides``.

    Method: docs/method/seldom.md#seldom-below
    Method: docs/method/seldom.md#seldom-cancel
    """
    plan = Plan.of(run, finer, faint, focus)
    layout, (x, _) = plan.layout(1), plan.points()
    between = run.place(0.5 * (x[1:] + x[:-1]))
    cells = _cells(run, between)
    x, z, odds = x[cells.first : cells.last + 2], cells.z, math.exp(run.log_odds)

    def of_both(_: slice, part: _Cells) -> tuple[Array, Array]:
        """Masses of the null, and of the other."""
        mass, node = part.density(), part.node
        ratio = np.exp(np.minimum(run.tau * (node - 0.5 * run.tau), 700.0))
        # (where the null's mass is no double, that of the other is one of its own)
        return mass, np.where(node < FULL, mass * ratio, part.density(moved=run.tau))

    inside = _sums(cells, of_both)
    ends = ((_tail(-z[0]), _tail(z[-1])), (_tail(-z[0], -run.tau), _tail(z[-1], run.tau)))
    p, m = (
        np.concatenate([[low], part, [high]])
        for part, (low, high) in zip(inside, ends, strict=True)
    )
    masses = np.stack([p, odds * m])
    # (a mass is one of a cell, or of a tail)
    units = max(cells.units, NORMAL_TAIL)
    exponent = run.tau * (float(np.max(np.abs(z))) + run.tau) + abs(run.log_odds)
    apart = (_LOG_UNITS * exponent + 2.0 * (units + NORMAL_TAIL)) * UNIT
    start = dyadic_sum.spread(layout, np.asarray(x), masses, units * UNIT, apart)

    roundings, tally = Roundings(run.steps, run.p, 0.0, start.error), dyadic_sum.Tally()

    def join(a: _Below, b: _Below, terms: int) -> _Below:
        s, found, *errors = dyadic_sum.add(a.law, b.law, joint=True, tally=tally)
        faint = plan.dropped(terms)
        for side, most in ((1, max(_SAME_LABEL, faint)), (0, faint)):
            inward = np.argsort(-s if side else s, kind="stable")
            number = int(np.searchsorted(np.cumsum(found[side][inward]), most))
            if 0 < number < len(s):
                s, found = _one_label(s, found, inward[: number + 1])
                errors = [errors[0] + UNIT, errors[1] + 2.0 * UNIT]
        law = dyadic_sum.spread(plan.layout(terms), s, found, *errors)
        roundings.add(terms, (a.law.error, b.law.error), law.error, a is b)
        return _Below(law, terms)

    law = dyadic_sum.by_parts(_Below(start), run.steps, join).law
    s, (p, m) = law.flat()
    lost = _lost(run, tally)
    with np.errstate(divide="ignore"):
        log_p, log_m = np.log(p + lost), np.log(m)
    error = roundings.error(math.log(math.fsum(p)), lost * len(p), law.error)
    return Law(s, log_p, log_m, -np.inf, -np.inf, *_apart(run, error, law.apart), tally, lost)
